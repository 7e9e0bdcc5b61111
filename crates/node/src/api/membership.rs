//! The part of this process in its tree: its children, its parent, dynamic members.

use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet};

use crate::interface::{ChildPlan, LinkId};
use crate::members::children::State;
use crate::members::dynamic::DynamicRanks;
use crate::node::Node;

impl Node {
    /// Has this process take members that were not planned; before [`Node::expect`]. `plan` is sent
    /// to a communication process that joins below it as its own plan; it must not be empty.
    /// Its height is one less than this process's, and one at least.
    pub fn accept_dynamic_members(&mut self, plan: Vec<u8>) {
        self.membership.dynamic_ranks =
            self.turn.rank.and_then(|rank| DynamicRanks::of(rank, plan));
    }

    /// Says that this communication process comes by itself; before it has a parent.
    pub fn join(&mut self) {
        self.membership.is_joining = true;
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
        if let Some(child) = self.membership.children.get_mut(rank)
            && child.state == State::Awaited
        {
            child.plan = plan;
        }
    }

    /// Why this process last broke a link: its peer sent what is no frame, or what it may not say.
    /// `None` as long as all peers have kept the rules.
    #[must_use]
    pub fn last_breach(&self) -> Option<&str> {
        self.membership.last_breach.as_deref()
    }

    /// Whether this process has ended while its network goes on.
    #[must_use]
    pub fn has_stepped_down(&self) -> bool {
        self.membership.has_stepped_down
    }

    /// Whether this process has lost its parent and looks for another one.
    #[must_use]
    pub fn is_orphan(&self) -> bool {
        self.membership.ancestry.search.is_some()
    }
}
