//! The part of this process in its tree: its children, its parent, dynamic members.

use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet, StreamId};
use sapwood_wire::Control;
use sapwood_wire::limits::REPLY_BYTES_MAX;

use crate::interface::{ChildPlan, LinkId, NodeError, Role};
use crate::members::dynamic::DynamicRanks;
use crate::members::membership::State;
use crate::node::Node;

impl Node {
    /// Has this process take members that were not planned; before [`Node::expect`]. `plan` is what
    /// a communication process that joins below it is told as its own plan; it must not be empty.
    /// Its height is one less than this process's, and one at least.
    pub fn accept_dynamic_members(&mut self, plan: Vec<u8>) {
        self.membership.dynamic_ranks =
            self.turn.rank.and_then(|rank| DynamicRanks::of(rank, plan));
    }

    /// Says that this communication process comes by itself; before it has a parent.
    pub fn join(&mut self) {
        self.membership.is_joining = true;
    }

    /// Answers a visitor's question. One that has gone is not missed.
    pub fn reply(&mut self, visitor: u64, answer: &[u8]) {
        let here = &self.membership.visitors.here;
        let link = here.iter().find(|(_, other)| *other == visitor).map(|&(link, _)| link);
        let Some(link) = link else { return };
        let mut parts = answer.chunks(REPLY_BYTES_MAX).peekable();
        loop {
            let bytes = parts.next().unwrap_or_default().to_vec();
            let is_last = parts.peek().is_none();
            self.turn.send_control(link, &Control::Reply { is_last, bytes });
            if is_last {
                return;
            }
        }
    }

    /// Says which children this node is to have, and which ranks it keeps for back-ends that
    /// attach. `height` is the number of levels to the farthest back-end, `total` the network's
    /// back-ends.
    pub fn expect(&mut self, children: Vec<ChildPlan>, attach: RankSet, height: u32, total: u32) {
        self.membership.await_children(children, attach, height, total, &mut self.turn)
    }

    /// The link to the parent, while there is one.
    #[must_use]
    pub fn parent_link(&self) -> Option<LinkId> {
        self.turn.parent
    }

    /// Has a communication process that has not come yet be told another plan of the same subtree.
    pub fn replan(&mut self, rank: Rank, plan: Vec<u8>) {
        if let Some(child) = self.membership.children.get_mut(&rank)
            && child.state == State::Awaited
        {
            child.plan = plan;
        }
    }

    /// Why this process last broke a link: its peer sent what is no frame, or what it may not say.
    /// `None` as long as all peers have kept the rules.
    #[must_use]
    pub fn distrusts(&self) -> Option<&str> {
        self.membership.distrusts.as_deref()
    }

    /// Has the tree repair itself from now on, or not (front-end): without, what is below a
    /// process that dies is lost, as with [`Recovery::off`](crate::Recovery::off). What is sent is
    /// kept either way, so that it can be switched on again.
    ///
    /// # Errors
    /// [`NodeError::NotFrontEnd`]; [`NodeError::NotRecovering`] when it is to be on and the network
    /// has begun without.
    pub fn switch_recovery(&mut self, is_on: bool) -> Result<(), NodeError> {
        if self.turn.settings.role != Role::FrontEnd {
            return Err(NodeError::NotFrontEnd);
        }
        if !self.turn.settings.recovery.is_on {
            return if is_on { Err(NodeError::NotRecovering) } else { Ok(()) };
        }
        if self.membership.repairs != is_on {
            self.membership.repairs = is_on;
            self.membership.tell_ancestry(&mut self.turn);
        }
        Ok(())
    }

    /// Has this front-end number its streams from here on; before it opens one. Gives whether it
    /// could be done: a number must not have been given already.
    pub fn begin_streams_at(&mut self, first: StreamId) -> bool {
        let is_free = first >= self.streams.next;
        if is_free {
            self.streams.next = first;
        }
        is_free
    }

    /// Whether this process has ended while its network goes on.
    #[must_use]
    pub fn has_stepped_down(&self) -> bool {
        self.membership.has_stepped_down
    }

    /// Whether this process has lost its parent and looks for another one.
    #[must_use]
    pub fn is_orphan(&self) -> bool {
        self.membership.search.is_some()
    }
}
