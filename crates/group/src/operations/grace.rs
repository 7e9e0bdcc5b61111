//! How long a call that leaves a reduction early waits for values that are almost there.
//!
//! After "Application-Bypass Reduction for Large-Scale Clusters" (Wagner, Buntinas, Panda,
//! Brightwell, Cluster 2003): a call that leaves while the last values are on their way has the
//! program interrupted for them a moment later. How late they come is measured for each kind of
//! call, and a call waits only where nearly all come within a bound. What is sent never waits: it
//! is the call that returns later.

use alloc::vec::Vec;

use super::combine::Operation;
use crate::identity::{FoldId, Request, Time};
use crate::limits::GRACE_MAX;
use crate::member::{Event, Member, Timer};
use crate::trees::TreeKind;

/// Of how many kinds of calls the history is kept; the one not called for longest is forgotten.
const KINDS_MAX: usize = 64;
/// A shorter history, in calls, says nothing.
const CALLS_MIN: u32 = 4;
/// Values that come later count as late by this many times the bound: one that is lost for a second
/// is forgotten about as soon.
const LATE_BOUNDS_MAX: Time = 4;
/// The delay is the mean and this many mean deviations.
const DEVIATIONS: Time = 2;
/// A delay stays as it was told until it differs by more than this part of it.
const CHANGE_PART: Time = 4;

/// A kind of calls, at one member: the values from below come about equally late to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraceKey {
    root: u32,
    tree: TreeKind,
    operation: Operation,
    /// How many bits the length of the value has.
    length_bits: u32,
}

impl GraceKey {
    /// That of a reduction to a virtual node, with an own value of a length in bytes.
    #[must_use]
    pub fn new(root: u32, tree: TreeKind, operation: Operation, bytes: u64) -> Self {
        Self { root, tree, operation, length_bits: u64::BITS - bytes.leading_zeros() }
    }
}

/// How long the calls of a kind wait from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraceDelay {
    /// The kind.
    pub key: GraceKey,
    /// At most this long, in nanoseconds; 0 for not at all.
    pub delay: Time,
}

/// A call whose values from below have not all come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeftCall {
    key: GraceKey,
    called: Time,
    /// When the caller is told that it may leave, unless that was done.
    until: Option<Time>,
}

/// How late the values from below came to calls of one kind.
#[derive(Debug)]
struct CallHistory {
    key: GraceKey,
    calls: u32,
    mean: Time,
    deviation: Time,
    /// As it was told.
    delay: Time,
}

impl CallHistory {
    fn new(key: GraceKey) -> Self {
        Self { key, calls: 0, mean: 0, deviation: 0, delay: 0 }
    }

    /// Smooths as TCP does round trips (RFC 6298).
    fn note(&mut self, late: Time) {
        if self.calls == 0 {
            (self.mean, self.deviation) = (late, late / 2);
        } else {
            self.deviation = (3 * self.deviation + self.mean.abs_diff(late)) / 4;
            self.mean = (7 * self.mean + late) / 8;
        }
        self.calls = self.calls.saturating_add(1);
    }

    fn measured_delay(&self, most: Time) -> Time {
        let delay = self.mean + DEVIATIONS * self.deviation;
        if self.calls < CALLS_MIN || delay > most { 0 } else { delay }
    }
}

/// The delays of a member's calls, and from what they follow.
#[derive(Debug, Default)]
pub(crate) struct Grace {
    /// The kind that was called last is the last one.
    histories: Vec<CallHistory>,
}

impl Grace {
    fn delay(&self, key: GraceKey) -> Time {
        let known = self.histories.iter().find(|history| history.key == key);
        known.map_or(0, |history| history.delay)
    }

    /// The last value from below came this long after a call. Gives the delays that are others now.
    fn learn(&mut self, key: GraceKey, late: Time, most: Time) -> Vec<GraceDelay> {
        let mut changes = Vec::new();
        let known = self.histories.iter().position(|history| history.key == key);
        let mut history = match known {
            Some(index) => self.histories.remove(index),
            None => CallHistory::new(key),
        };
        if self.histories.len() == KINDS_MAX {
            let forgotten = self.histories.remove(0);
            if forgotten.delay > 0 {
                changes.push(GraceDelay { key: forgotten.key, delay: 0 });
            }
        }
        history.note(late.min(LATE_BOUNDS_MAX * most));
        let delay = history.measured_delay(most);
        if delay.abs_diff(history.delay) > history.delay / CHANGE_PART {
            history.delay = delay;
            changes.push(GraceDelay { key, delay });
        }
        self.histories.push(history);
        changes
    }
}

impl Member {
    /// The longest delay; 0 if no call waits.
    fn grace_max(&self) -> Time {
        self.config.grace_max.min(GRACE_MAX)
    }

    /// A call that leaves its reduction early was started: its caller may leave at once, or after a
    /// delay, unless it has its answer before.
    pub(super) fn begin_grace(&mut self, request: Request, id: FoldId, key: GraceKey) {
        let (now, most) = (self.now, self.grace_max());
        let Some(fold) = self.folds.get_mut(&id).filter(|fold| !fold.is_root && !fold.to_all)
        else {
            return;
        };
        let own = fold.my_names.as_ref();
        let has_below = fold.places.iter().any(|place| !place.expected.as_ref().is_within(own));
        let is_measured = most > 0 && has_below;
        if fold.request != Some(request) {
            // All had come before.
            if is_measured {
                self.learn_lateness(key, 0);
            }
            return;
        }
        let delay = if is_measured { self.grace.delay(key) } else { 0 };
        let until = (delay > 0).then_some(now + delay);
        fold.left_call = is_measured.then_some(LeftCall { key, called: now, until });
        match until {
            Some(until) => {
                self.reduce_counts.grace_waits += 1;
                self.wake_at(until, Timer::Grace(id));
            }
            None => self.tell(Event::MayLeave(request)),
        }
    }

    /// A delay is over.
    pub(crate) fn grace_over(&mut self, id: FoldId) {
        let now = self.now;
        let Some(fold) = self.folds.get_mut(&id) else { return };
        let is_due = |call: &&mut LeftCall| call.until.is_some_and(|until| until <= now);
        let Some(call) = fold.left_call.as_mut().filter(is_due) else { return };
        call.until = None;
        if let Some(request) = fold.request {
            self.tell(Event::MayLeave(request));
        }
    }

    /// All of a call's values have come, and are on their way.
    pub(super) fn grace_met(&mut self, id: FoldId) {
        let call = self.folds.get_mut(&id).and_then(|fold| fold.left_call.take());
        let Some(call) = call else { return };
        if let Some(until) = call.until {
            // The timer may be late itself.
            self.reduce_counts.grace_met += u64::from(self.now <= until);
            self.agenda.remove(&(until, Timer::Grace(id)));
        }
        self.learn_lateness(call.key, self.now - call.called);
    }

    /// A call ends without them.
    pub(super) fn grace_missed(&mut self, call: Option<LeftCall>) {
        if let Some(call) = call {
            self.learn_lateness(call.key, self.now - call.called);
        }
    }

    fn learn_lateness(&mut self, key: GraceKey, late: Time) {
        let most = self.grace_max();
        for change in self.grace.learn(key, late, most) {
            self.tell(Event::GraceDelay(change));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Time = 100_000;

    fn key(root: u32) -> GraceKey {
        GraceKey::new(root, TreeKind::List, Operation::Sum, 8)
    }

    /// Four values that are late by 20 us, which is the first history that says something.
    fn settle(grace: &mut Grace, root: u32) -> Vec<GraceDelay> {
        (0..CALLS_MIN).flat_map(|_| grace.learn(key(root), 20_000, MOST)).collect()
    }

    #[test]
    fn the_kind_that_was_not_called_for_longest_is_forgotten_and_that_is_told() {
        let mut grace = Grace::default();
        let told = settle(&mut grace, 0);
        let [GraceDelay { delay, .. }] = told[..] else { panic!("one change: {told:?}") };
        (1..KINDS_MAX as u32).for_each(|root| drop(settle(&mut grace, root)));
        assert_eq!((grace.delay(key(0)), grace.delay(key(1))), (delay, delay));
        grace.learn(key(0), 20_000, MOST);
        let told = grace.learn(key(KINDS_MAX as u32), 20_000, MOST);
        assert_eq!(told, [GraceDelay { key: key(1), delay: 0 }]);
        assert_eq!((grace.delay(key(0)), grace.delay(key(1))), (delay, 0));
        assert_eq!(grace.histories.len(), KINDS_MAX);
    }

    #[test]
    fn a_delay_is_told_anew_only_if_it_is_quite_another() {
        let mut grace = Grace::default();
        assert_eq!(settle(&mut grace, 0).len(), 1);
        let told: Vec<GraceDelay> =
            (0..3).flat_map(|_| grace.learn(key(0), 21_000, MOST)).collect();
        assert_eq!(told, [], "24.9 us are not far from 28.4");
        let told = grace.learn(key(0), 60_000, MOST);
        assert_eq!((told.len(), grace.delay(key(0))), (1, told[0].delay));
        assert!((28_437..=MOST).contains(&told[0].delay), "{told:?}");
    }
}
