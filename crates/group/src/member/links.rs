//! Which links are up, and what becomes of a member whose link is not.

use alloc::collections::BTreeSet;

use super::{Event, Member};
use crate::error::Refusal;
use crate::identity::MemberId;
use crate::message::{Life, Message};

/// The links of a member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    up: BTreeSet<MemberId>,
    dialled: BTreeSet<MemberId>,
}

impl Links {
    /// Whether a member is to be dialled; it counts as dialled from then on.
    pub(crate) fn needs_connection(&mut self, member: MemberId) -> bool {
        !self.up.contains(&member) && self.dialled.insert(member)
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
}

impl Member {
    pub(super) fn link_up(&mut self, member: MemberId, was_address: bool) {
        self.links.set_up(member);
        if was_address {
            let record = self.own_record();
            self.send(member, Message::Join { space: self.config.space, record });
        }
        self.measure_asked(member);
    }

    /// What was on its way is lost. Whether the member is, a new connection shows.
    pub(super) fn link_down(&mut self, member: MemberId) {
        self.links.set_down(member);
        if self.view.is_alive(member) {
            self.reconnected(member);
            self.suspect(member);
        }
    }

    pub(super) fn connect_failed(&mut self, member: Option<MemberId>) {
        let Some(member) = member else {
            self.tell(Event::Refused(Refusal::Format));
            return;
        };
        self.links.set_down(member);
        self.bury(member, Life::Dead);
    }
}
