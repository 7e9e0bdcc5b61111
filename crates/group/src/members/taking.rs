//! The member that takes a part of another one's virtual nodes when it joins. It asks for them as
//! an heir does ([`Message::Take`]), and gets them as an heir does.

use alloc::vec::Vec;

use super::giving::AGAIN;
use crate::error::Refusal;
use crate::identity::{MemberId, SECOND, Time};
use crate::member::{Event, Member, Phase, Timer};
use crate::message::{Message, Ranges};

/// For how long it asks: the giver lets what it has begun end first.
const ASK_MAX: Time = 5 * SECOND;

impl Member {
    /// This member is in the group, and asks for what it takes.
    pub(super) fn begin_to_take(&mut self) {
        if !self.config.take.is_empty() {
            self.taking = Some(self.now.saturating_add(ASK_MAX));
            self.taking_step();
        }
    }

    /// Asks once more, unless that is of no use.
    pub(crate) fn taking_step(&mut self) {
        let Some(until) = self.taking.filter(|_| self.phase == Phase::Joined) else { return };
        match self.giver().filter(|_| self.now < until) {
            Some(giver) => {
                // The giver may not have heard of this member.
                let record = self.own_record();
                self.tell_records(giver, Vec::from([record]));
                let names = Ranges::from(&self.config.take);
                self.send(giver, Message::Take { names });
                self.wake_at(self.now + AGAIN, Timer::Taking);
            }
            None => {
                self.tell(Event::Refused(Refusal::NotGiven));
                let has_some = self.names().as_ref().intersects(self.config.take.as_ref());
                if has_some { self.leave_to(None) } else { self.leave() }
            }
        }
    }

    /// The member that carries all that this one takes, and more.
    fn giver(&self) -> Option<MemberId> {
        let take = self.config.take.as_ref();
        let (owners, unassigned) = self.view.owners(take);
        let [(giver, _)] = owners.as_slice() else { return None };
        let keeps_others = self.view.names_of(*giver) != self.config.take;
        (*giver != self.me && unassigned.is_empty() && keeps_others).then_some(*giver)
    }

    /// Virtual nodes have come here: perhaps all that this member takes.
    pub(super) fn note_taken(&mut self) {
        if self.config.take.as_ref().is_within(self.names().as_ref()) {
            self.taking = None;
        }
    }
}
