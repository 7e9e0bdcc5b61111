//! The welcome of a child: what it is told of the tree.

use crate::interface::{LinkId, Role};
use crate::members::children::{Child, State};
use crate::members::membership::Membership;
use crate::turn::Turn;
use crate::turn::links::Peer;
use alloc::vec::Vec;
use sapwood_packet::Rank;
use sapwood_wire::Control;

impl Membership {
    /// The process at the other end of a link is a child from now on, and is told its place. An
    /// orphan has a plan already, and says itself what it has.
    pub(crate) fn take_as_child(
        &mut self,
        link: LinkId,
        rank: Rank,
        plan: Vec<u8>,
        turn: &mut Turn,
    ) {
        if let Some(child) = self.children.get_mut(rank) {
            child.link = Some(link);
            child.state = State::Connected;
        }
        if let Some(open) = turn.links.link_mut(link) {
            open.peer = Peer::Child(rank);
        }
        let welcome = Control::Welcome {
            parent: turn.rank(),
            rank,
            back_ends: self.total,
            plan,
            ancestors: self.ancestry.of_children(turn),
            terms: turn.settings.recovery.to_terms(),
            is_responsive: turn.settings.role == Role::Communication,
        };
        turn.send_control(link, &welcome);
        if !self.ancestry.has_recovery {
            let ancestors = self.ancestry.of_children(turn);
            turn.send_control(link, &Control::Ancestry { ancestors, repairs: false });
        }
        let carries = |child: &Child| child.is_responsive && !child.is_orphan;
        if self.children.get(rank).is_some_and(carries) {
            self.send_files(link, &[], turn);
        }
    }
}
