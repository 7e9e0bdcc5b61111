//! The first message of a stranger: it becomes a child, waits as an orphan, or is told why not.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet};
use sapwood_wire::{Claim, WIRE_VERSION};

use crate::inbound::Inbound;
use crate::interface::LinkId;
use crate::members::children::{Child, State};

impl Inbound<'_> {
    /// A newcomer identifies itself: it becomes a child, or is told why not.
    pub(crate) fn hello(
        &mut self,
        link: LinkId,
        version: u16,
        claim: Claim,
        pid: u32,
        is_responsive: bool,
    ) {
        self.turn.counted.begin(self.turn.now);
        if claim == Claim::Visitor {
            let admitted = self.members.visitors.admit_visitor(link, version, self.turn);
            return admitted.unwrap_or_else(|reason| self.turn.refuse(link, reason));
        }
        let admitted = match (self.admit(version, &claim), claim) {
            (Ok(rank), Claim::Orphan { between, .. }) => self
                .tree_change()
                .orphan_hello(link, rank, between, pid, is_responsive)
                .map(|()| None),
            (admitted, _) => admitted.map(Some),
        };
        match admitted {
            Ok(None) => {}
            Ok(Some(rank)) => {
                if let Some(child) = self.members.children.get_mut(rank) {
                    child.is_responsive = is_responsive || !child.plan.is_empty();
                    child.pid = pid;
                }
                self.welcome(link, rank);
            }
            Err(reason) => self.turn.refuse(link, reason),
        }
    }

    fn admit(&mut self, version: u16, claim: &Claim) -> Result<Rank, String> {
        if version != WIRE_VERSION {
            return Err(alloc::format!(
                "wire version {version} is not {WIRE_VERSION}: install the same release on both sides"
            ));
        }
        if self.turn.has_ended {
            return Err("the network is ending".to_string());
        }
        match *claim {
            Claim::Started { rank } => {
                let child = self.members.children.get(rank);
                match child.map(Child::has_come) {
                    // One that was given up was only slow.
                    Some(false) => Ok(rank),
                    Some(true) => Err(alloc::format!("rank {rank} has connected already")),
                    None => Err(alloc::format!("rank {rank} is no child of this process")),
                }
            }
            Claim::Attached { rank } => self.admit_attached(rank),
            Claim::Orphan { rank, .. } => Ok(rank),
            Claim::Visitor => Err("this process answers no status queries".to_string()),
            Claim::Joining => self.members.admit_joining(self.turn),
        }
    }

    fn admit_attached(&mut self, rank: Option<Rank>) -> Result<Rank, String> {
        let children = &self.members.children;
        let is_free =
            |rank: &Rank| children.get(*rank).is_none_or(|child| child.state == State::Gone);
        let rank = match rank {
            Some(rank) if !self.members.attach.contains(rank) => {
                return Err(alloc::format!(
                    "rank {rank} may not attach here; kept ranks are '{}'",
                    self.members.attach
                ));
            }
            Some(rank) if !is_free(&rank) => {
                return Err(alloc::format!("rank {rank} has attached already"));
            }
            Some(rank) => rank,
            None => {
                // A process whose rank is held open may come back.
                let is_held = |rank: &Rank| self.members.vacancies.is_held(*rank);
                let kept = self.members.attach.iter().find(|rank| is_free(rank) && !is_held(rank));
                kept.map_or_else(|| self.members.admit_dynamic(), Ok)?
            }
        };
        // A new process under a rank whose place was held open for the old one.
        self.tree_change().close_place_of(rank);
        let child = Child::awaited(RankSet::range(rank, rank), Vec::new());
        self.members.children.insert(rank, child);
        Ok(rank)
    }

    fn welcome(&mut self, link: LinkId, rank: Rank) {
        let Some(child) = self.members.children.get_mut(rank) else { return };
        let plan = core::mem::take(&mut child.plan);
        let is_back_end = plan.is_empty();
        let expected = child.expected.clone();
        child.authority.is_back_end = is_back_end;
        self.members.take_as_child(link, rank, plan, self.turn);
        self.open_streams_to(link, &expected);
        if is_back_end {
            self.tree_change().reached(rank, expected, Vec::new());
        }
    }

    /// Tells a child that has just come of the streams that it is a member of.
    fn open_streams_to(&mut self, link: LinkId, back_ends: &RankSet) {
        for at in 0..self.streams.len() {
            if let Some(request) = self.streams.at(at).request_for(link, back_ends) {
                self.members.tell_open(link, request, self.turn);
                self.streams.at(at).withdraw_end(self.turn);
            }
        }
    }
}
