//! Members that are gone: how long their records are kept, and when the dead are asked again.
//!
//! A record of a dead or left member outlives it, so that older news does not bring the member
//! back. It is forgotten once the member has been gone for [`PAST_KEPT`], or where more than
//! [`PAST_MAX`] members are. Records say how long ago a member went, so that all forget it at about
//! the same time, and none learns of it anew from one that forgets it a moment later.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::identity::{MILLISECOND, MemberId, SECOND, Time};
use crate::limits::MEMBERS_MAX;
use crate::member::Member;
use crate::message::{Life, Record};

/// How long a member is remembered after it has gone.
pub(super) const PAST_KEPT: Time = 3600 * SECOND;
/// How many members that are gone are remembered: those that went last.
const PAST_MAX: usize = 4096;
/// A dead member is asked again after another half of the time for which it has been dead, and at
/// least once in this span: cuts of a network heal.
const ASK_PERIOD_MAX: Time = 600 * SECOND;

/// Until when members that are gone are remembered. Not since when: the clock of this process may
/// have begun after that.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    gone: BTreeMap<MemberId, Gone>,
    order: BTreeSet<(Time, MemberId)>,
}

#[derive(Clone, Copy, Debug)]
struct Gone {
    until: Time,
    /// When it is asked for a sign of life again, if it is dead.
    ask: Option<Time>,
}

impl Past {
    fn note(&mut self, member: MemberId, age: Time, is_dead: bool, now: Time) {
        self.remove(member);
        let until = now + PAST_KEPT.saturating_sub(age);
        self.gone.insert(member, Gone { until, ask: is_dead.then_some(now) });
        self.order.insert((until, member));
    }

    fn remove(&mut self, member: MemberId) {
        if let Some(known) = self.gone.remove(&member) {
            self.order.remove(&(known.until, member));
        }
    }

    /// The member that went first, if it need not be remembered any more.
    fn oldest(&self, now: Time) -> Option<MemberId> {
        let &(until, member) = self.order.first()?;
        (until <= now || self.order.len() > PAST_MAX).then_some(member)
    }

    /// A dead member that is to be asked for a sign of life.
    pub(super) fn next_to_ask(&mut self, now: Time) -> Option<MemberId> {
        let dead = self.gone.iter_mut().filter_map(|(member, gone)| {
            let ask = gone.ask?;
            (ask <= now).then_some((ask, *member, gone))
        });
        let (_, member, gone) = dead.min_by_key(|(ask, member, _)| (*ask, *member))?;
        gone.ask = Some(now + (age_of(gone.until, now) / 2).min(ASK_PERIOD_MAX));
        Some(member)
    }
}

/// How long a member has been gone that is remembered until a time.
fn age_of(until: Time, now: Time) -> Time {
    (now + PAST_KEPT).saturating_sub(until)
}

impl Member {
    /// Takes a record over if it is news; gives whether it is.
    pub(super) fn merge(&mut self, record: Record) -> bool {
        let (id, is_alive) = (record.id, record.life == Life::Alive);
        let is_dead = record.life == Life::Dead;
        let age = Time::from(record.gone_ms) * MILLISECOND;
        let is_known = self.view.record(id).is_some();
        let is_refused = if is_alive { self.view.len() >= MEMBERS_MAX } else { age >= PAST_KEPT };
        if (!is_known && is_refused) || !self.is_of_space(&record) || !self.view.merge(record) {
            return false;
        }
        if is_alive {
            self.past.remove(id);
        } else {
            self.past.note(id, age, is_dead, self.now);
        }
        true
    }

    /// Forgets members that went long ago, and what was kept of their transfers and trees.
    pub(super) fn forget_past(&mut self) {
        self.handed.forget(self.now.saturating_sub(self.config.linger));
        while let Some(member) = self.past.oldest(self.now) {
            self.past.remove(member);
            self.view.forget(member);
            self.floors.remove(&member);
            self.papers.forget(member);
        }
    }

    /// All records as they are told to another member, with the time since members have gone: those
    /// of living members first.
    pub(super) fn records_to_tell(&self) -> Vec<Record> {
        let living = self.view.records().filter(|record| record.life == Life::Alive).cloned();
        let past = self.past.order.iter().rev().filter_map(|&(until, member)| {
            let age = age_of(until, self.now) / MILLISECOND;
            let gone_ms = u32::try_from(age).unwrap_or(u32::MAX);
            Some(Record { gone_ms, ..self.view.record(member)?.clone() })
        });
        living.chain(past).take(MEMBERS_MAX).collect()
    }
}
