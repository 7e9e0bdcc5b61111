//! Which links are up, and what becomes of a member whose link is not.

use alloc::collections::{BTreeMap, BTreeSet};

use super::{Event, Member, Output, Timer};
use crate::error::Refusal;
use crate::identity::{MemberId, Time};
use crate::message::{Life, Message};
use crate::mutation::Mutation;
use crate::random::around;

/// This number of connections in a row must fail before a member counts as dead.
const FAILURES_MIN: u32 = 4;
/// The first pause before a member is dialled again is this part of a ping's patience; each further
/// one is twice as long, up to half of the patience.
const FIRST_PAUSE_PART: Time = 16;

/// The links of a member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    up: BTreeSet<MemberId>,
    dialled: BTreeMap<MemberId, Dialling>,
}

/// A member to which there is no link yet.
#[derive(Clone, Copy, Debug, Default)]
struct Dialling {
    /// How many connections have failed in a row.
    failures: u32,
    /// When the first of them did.
    since: Time,
    /// Whether the next one is still to be made.
    is_paused: bool,
}

impl Links {
    /// Whether a member is to be dialled; it counts as dialled from then on.
    pub(crate) fn needs_connection(&mut self, member: MemberId) -> bool {
        if self.up.contains(&member) || self.dialled.contains_key(&member) {
            return false;
        }
        self.dialled.insert(member, Dialling::default());
        true
    }

    pub(crate) fn is_up(&self, member: MemberId) -> bool {
        self.up.contains(&member)
    }

    fn set_up(&mut self, member: MemberId) {
        self.dialled.remove(&member);
        self.up.insert(member);
    }

    fn set_down(&mut self, member: MemberId) {
        self.dialled.remove(&member);
        self.up.remove(&member);
    }

    /// A member that is dead is not dialled again by itself. One that has left is, once: what waits
    /// for it is dropped when that fails.
    pub(crate) fn forget_pause(&mut self, member: MemberId) {
        if self.dialled.get(&member).is_some_and(|dialling| dialling.is_paused) {
            self.dialled.remove(&member);
        }
    }

    /// A connection has failed: what is known of the member's dials now.
    fn note_failure(&mut self, member: MemberId, now: Time) -> Dialling {
        self.up.remove(&member);
        let dialling = self.dialled.entry(member).or_default();
        if dialling.failures == 0 {
            dialling.since = now;
        }
        dialling.failures = dialling.failures.saturating_add(1);
        dialling.is_paused = true;
        *dialling
    }

    /// Whether a pause is over; the member counts as being dialled then.
    fn end_pause(&mut self, member: MemberId) -> bool {
        let paused = self.dialled.get_mut(&member).filter(|dialling| dialling.is_paused);
        paused.is_some_and(|dialling| core::mem::take(&mut dialling.is_paused))
    }
}

impl Dialling {
    /// How long to wait for the next dial; none if the member has refused for long enough.
    fn pause(&self, patience: Time, now: Time) -> Option<Time> {
        if self.failures >= FAILURES_MIN && now >= self.since + patience {
            return None;
        }
        let doubled = (patience / FIRST_PAUSE_PART) << (self.failures - 1).min(8);
        Some(doubled.min(patience / 2))
    }
}

impl Member {
    pub(super) fn link_up(&mut self, member: MemberId, was_address: bool) {
        self.links.set_up(member);
        self.note_link_of_receiver(member);
        if was_address {
            let record = self.own_record();
            self.send(member, Message::Join { space: self.config.space, record });
        }
        self.measure_asked(member);
    }

    /// What was on its way is lost. Whether the member is, a new connection shows.
    pub(super) fn link_down(&mut self, member: MemberId) {
        self.links.set_down(member);
        let due = self.credit.lose(member);
        if self.view.is_alive(member) {
            self.reconnected(member);
            self.suspect(member);
        }
        self.redirect(member, due);
    }

    /// One failure says little of a member: a host may refuse a connection for want of memory or
    /// places, or a switch between may. It is dialled again for as long as one ping has, and is
    /// asked for a sign of life meanwhile, which a connection that it makes itself carries too.
    pub(super) fn connect_failed(&mut self, member: Option<MemberId>) {
        let Some(member) = member else {
            self.tell(Event::Refused(Refusal::Format));
            return;
        };
        if !self.view.is_alive(member) {
            self.links.set_down(member);
            let due = self.credit.lose(member);
            self.redirect(member, due);
            return;
        }
        let dialling = self.links.note_failure(member, self.now);
        let pause = dialling.pause(self.ping_patience(), self.now);
        let Some(pause) = pause.filter(|_| !self.breaks(Mutation::BuryRefused)) else {
            self.links.set_down(member);
            self.bury(member, Life::Dead);
            return;
        };
        let pause = around(&mut self.random, pause);
        self.wake_at(self.now + pause, Timer::Redial(member));
        self.suspect(member);
    }

    /// The pause after a failed connection is over.
    pub(super) fn redial(&mut self, member: MemberId) {
        if !self.links.end_pause(member) {
            return;
        }
        match self.view.record(member).filter(|record| record.life != Life::Dead) {
            Some(record) => {
                let address = record.address.clone();
                self.outputs.push_back(Output::Connect { member: Some(member), address });
            }
            None => self.links.set_down(member),
        }
    }
}
