//! Which records of an event file its rank cannot have written: a file that was kept in a folder
//! may be damaged, and such a record accuses ranks that have done nothing of what it says.

use crate::event::Event;
use crate::file::{FileClock, Space};

/// By how much the times of records may be beyond what is known of their file, in nanoseconds.
const SLACK_NS: u64 = 60_000_000_000;
/// By which part of the time since its calibration a clock may be wrong, as a power of two.
const RATE_SHIFT: u32 = 6;

/// Between which times the records of a file lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordBounds {
    clock: FileClock,
    /// How long the file is known to have been written, with what that may be off; none where
    /// moments of `CLOCK_MONOTONIC` say nothing of it.
    lasted_ns: Option<u64>,
    /// The first and the last moment, in ticks.
    first: u64,
    last: u64,
}

impl RecordBounds {
    /// Those of a file that was written until this moment of its host's `CLOCK_MONOTONIC`, at the
    /// longest; [`u64::MAX`] if that is not known.
    #[must_use]
    pub fn new(clock: FileClock, until_ns: u64) -> Self {
        // A moment before the file was made is one of another clock.
        let lasted_ns = until_ns.checked_sub(clock.ns).unwrap_or(u64::MAX);
        let lasted_ns = lasted_ns.saturating_add(lasted_ns >> RATE_SHIFT).saturating_add(SLACK_NS);
        let ticks = |ns: u64| match clock.scale {
            0 => u64::MAX,
            scale => u64::try_from((u128::from(ns) << 32) / u128::from(scale)).unwrap_or(u64::MAX),
        };
        let first = clock.ticks.saturating_sub(ticks(SLACK_NS));
        let last = clock.ticks.saturating_add(ticks(lasted_ns));
        Self { clock, lasted_ns: Some(lasted_ns), first, last }
    }

    /// Those of a file that its rank may write still. While its host is suspended, a counter of
    /// cycles may go on and `CLOCK_MONOTONIC` does not, so that no moment of the one bounds the
    /// other: only what was before the file was made is not believed.
    #[must_use]
    pub fn of_live(clock: FileClock) -> Self {
        let Self { first, .. } = Self::new(clock, u64::MAX);
        Self { clock, lasted_ns: None, first, last: u64::MAX }
    }

    /// Whether a call may have begun and returned when an event says so.
    #[must_use]
    pub fn hold(&self, event: &Event) -> bool {
        let end = event.time.checked_add(event.span);
        event.time >= self.first && end.is_some_and(|end| end <= self.last)
    }

    /// Whether these ticks may have been read at this moment of `CLOCK_MONOTONIC`.
    #[must_use]
    pub fn hold_moment(&self, ticks: u64, ns: u64) -> bool {
        let FileClock { ticks: from, ns: from_ns, scale, .. } = self.clock;
        if scale == 0 {
            return true;
        }
        let Some(lasted_ns) = self.lasted_ns else { return ticks >= self.first };
        let passed = (u128::from(ticks.abs_diff(from)) * u128::from(scale)) >> 32;
        let is_near = passed.abs_diff(u128::from(ns.abs_diff(from_ns)))
            <= (passed >> RATE_SHIFT) + u128::from(SLACK_NS);
        (self.first..=self.last).contains(&ticks)
            && ns.saturating_sub(from_ns) <= lasted_ns
            && is_near
    }
}

impl Space {
    /// Whether its processes have the root or the other side that an event names. Of two groups the
    /// size of the other one is not known.
    #[must_use]
    pub const fn has_peer_of(&self, event: &Event) -> bool {
        let is_known = self.size > 0 && !self.is_between;
        !is_known || event.peer < 0 || event.peer.cast_unsigned() < self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind;

    const SECOND: u64 = 1_000_000_000;
    /// A counter of 2 GHz.
    const CLOCK: FileClock =
        FileClock { ticks: 1_000 * SECOND, ns: 300 * SECOND, scale: 1 << 31, is_cycles: true };

    fn event(time: u64, span: u64, peer: i32) -> Event {
        let (function, space, kind, members) = (3, 0, EventKind::Receive, 1);
        Event { time, span, function, space, kind, members, sequence: 1, peer, tag: 0 }
    }

    #[test]
    fn calls_outside_of_the_time_of_their_file_are_not_believed() {
        let bounds = RecordBounds::new(CLOCK, 310 * SECOND);
        let holds = |after_s: u64, span_s: u64| {
            let time = CLOCK.ticks + 2 * after_s * SECOND;
            bounds.hold(&event(time, 2 * span_s * SECOND, 0))
        };
        assert!(holds(0, 0) && holds(9, 1));
        assert!(!holds(3_600, 0) && !holds(1, 3_600));
        assert!(!bounds.hold(&event(0, 5, 0)) && !bounds.hold(&event(u64::MAX, 5, 0)));
        let unknown = RecordBounds::new(CLOCK, u64::MAX);
        assert!(unknown.hold(&event(CLOCK.ticks * 100, 5, 0)) && !unknown.hold(&event(7, 5, 0)));
        // The moment is of another clock.
        let other = RecordBounds::new(CLOCK, 3);
        assert_eq!(other, unknown);
        let without = RecordBounds::new(FileClock::default(), 3);
        assert!(without.hold(&event(CLOCK.ticks, 5, 0)));
    }

    #[test]
    fn a_host_that_was_suspended_damages_no_record_of_a_rank_that_runs() {
        let bounds = RecordBounds::of_live(CLOCK);
        // An hour in which only the counter went on.
        let after = CLOCK.ticks + 2 * 3_600 * SECOND;
        assert!(bounds.hold(&event(after, 5, 0)));
        assert!(bounds.hold_moment(after, CLOCK.ns + SECOND));
        assert!(!bounds.hold(&event(7, 5, 0)) && !bounds.hold(&event(u64::MAX, 5, 0)));
        assert!(!bounds.hold_moment(7, CLOCK.ns));
    }

    #[test]
    fn moments_by_two_clocks_that_are_far_apart_are_not_believed() {
        let bounds = RecordBounds::new(CLOCK, 400 * SECOND);
        let holds =
            |after_s: u64, ns: u64| bounds.hold_moment(CLOCK.ticks + 2 * after_s * SECOND, ns);
        assert!(holds(0, CLOCK.ns) && holds(90, 390 * SECOND) && holds(90, 391 * SECOND));
        assert!(!holds(90, 3_900 * SECOND) && !holds(90_000, 90_300 * SECOND));
        assert!(!holds(90, u64::MAX) && !bounds.hold_moment(u64::MAX, 390 * SECOND));
    }

    #[test]
    fn a_participant_that_its_communicator_does_not_have_is_none() {
        let space = Space { size: 4, ..Space::default() };
        let has = |space: Space, peer| space.has_peer_of(&event(5, 5, peer));
        assert!(has(space, 3) && has(space, 0) && has(space, -2));
        assert!(!has(space, 4) && !has(space, i32::MAX));
        assert!(has(Space { is_between: true, ..space }, 9) && has(Space::default(), 9));
    }
}
