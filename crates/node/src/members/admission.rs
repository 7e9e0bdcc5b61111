//! Children come: started ones, those that attach, and those that return.

use crate::interface::{LinkId, Role};
use crate::members::children::{Child, State};
use crate::members::membership::Membership;
use crate::streams::table::Streams;
use crate::turn::Turn;
use crate::turn::links::Peer;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use sapwood_packet::{Rank, RankSet};
use sapwood_wire::{Claim, Control, WIRE_VERSION};

impl Membership {
    /// A stranger says who it is: it becomes a child, or is told why not.
    pub(crate) fn hello(
        &mut self,
        link: LinkId,
        version: u16,
        claim: Claim,
        pid: u32,
        keeps_time: bool,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        turn.counted.begin(turn.now);
        if claim == Claim::Visitor {
            let admitted = self.visitors.admit_visitor(link, version, turn);
            return admitted.unwrap_or_else(|reason| turn.refuse(link, reason));
        }
        let admitted = match (self.admit(version, &claim, streams, turn), claim) {
            (Ok(rank), Claim::Orphan { between, .. }) => self
                .orphan_hello(link, rank, between, pid, keeps_time, streams, turn)
                .map(|()| None),
            (admitted, _) => admitted.map(Some),
        };
        match admitted {
            Ok(None) => {}
            Ok(Some(rank)) => {
                if let Some(child) = self.children.get_mut(rank) {
                    child.keeps_time = keeps_time || !child.plan.is_empty();
                    child.pid = pid;
                }
                self.welcome(link, rank, streams, turn);
            }
            Err(reason) => turn.refuse(link, reason),
        }
    }

    fn admit(
        &mut self,
        version: u16,
        claim: &Claim,
        streams: &mut Streams,
        turn: &mut Turn,
    ) -> Result<Rank, String> {
        if version != WIRE_VERSION {
            return Err(alloc::format!(
                "wire version {version} is not {WIRE_VERSION}: install the same release on both sides"
            ));
        }
        if turn.has_ended {
            return Err("the network is ending".to_string());
        }
        match *claim {
            Claim::Started { rank } => {
                let child = self.children.get(rank);
                match child.map(Child::has_come) {
                    // One that was given up was only slow.
                    Some(false) => Ok(rank),
                    Some(true) => Err(alloc::format!("rank {rank} has connected already")),
                    None => Err(alloc::format!("rank {rank} is no child of this process")),
                }
            }
            Claim::Attached { rank } => self.admit_attached(rank, streams, turn),
            Claim::Orphan { rank, .. } => Ok(rank),
            Claim::Visitor => Err("this process answers no visitors".to_string()),
            Claim::Joining => self.admit_joining(turn),
        }
    }

    fn admit_attached(
        &mut self,
        rank: Option<Rank>,
        streams: &mut Streams,
        turn: &mut Turn,
    ) -> Result<Rank, String> {
        let children = &self.children;
        let is_free =
            |rank: &Rank| children.get(*rank).is_none_or(|child| child.state == State::Gone);
        let rank = match rank {
            Some(rank) if !self.attach.contains(rank) => {
                return Err(alloc::format!(
                    "rank {rank} may not attach here; kept ranks are '{}'",
                    self.attach
                ));
            }
            Some(rank) if !is_free(&rank) => {
                return Err(alloc::format!("rank {rank} has attached already"));
            }
            Some(rank) => rank,
            None => {
                // A process whose rank is held open may come back.
                let is_held = |rank: &Rank| self.vacancies.is_held(*rank);
                let kept = self.attach.iter().find(|rank| is_free(rank) && !is_held(rank));
                kept.map_or_else(|| self.admit_dynamic(), Ok)?
            }
        };
        // A new process under a rank whose place was held open for the old one.
        self.close_place_of(rank, streams, turn);
        let child = Child::awaited(RankSet::range(rank, rank), Vec::new());
        self.children.insert(rank, child);
        Ok(rank)
    }

    fn welcome(&mut self, link: LinkId, rank: Rank, streams: &mut Streams, turn: &mut Turn) {
        let Some(child) = self.children.get_mut(rank) else { return };
        let plan = core::mem::take(&mut child.plan);
        let is_back_end = plan.is_empty();
        let expected = child.expected.clone();
        child.authority.is_back_end = is_back_end;
        self.take_as_child(link, rank, plan, turn);
        self.open_streams_to(link, &expected, streams, turn);
        if is_back_end {
            self.reached(rank, expected, Vec::new(), streams, turn);
        }
    }

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
            keeps_time: turn.settings.role == Role::Communication,
        };
        turn.send_control(link, &welcome);
        if !self.ancestry.has_recovery {
            let ancestors = self.ancestry.of_children(turn);
            turn.send_control(link, &Control::Ancestry { ancestors, repairs: false });
        }
        let carries = |child: &Child| child.keeps_time && !child.is_orphan;
        if self.children.get(rank).is_some_and(carries) {
            self.send_files(link, &[], turn);
        }
    }

    /// The back-ends below an orphan are there again. The parent is told of back-ends that had been
    /// reported as lost.
    pub(crate) fn returned(
        &mut self,
        rank: Rank,
        back_ends: RankSet,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        // Another of the places that were held for them may have been given up.
        let known = self.vacancies.awaited().difference(turn.losses.ranks().as_ref());
        let Some(child) = self.children.get_mut(rank) else { return };
        child.connected = back_ends.clone();
        child.state = State::Reported;
        let news = back_ends.difference(known.as_ref());
        if !news.is_empty() || !self.has_reported {
            self.reached(rank, news, Vec::new(), streams, turn);
        }
    }

    /// Tells a child that has just come of the streams that it is a member of.
    fn open_streams_to(
        &mut self,
        link: LinkId,
        back_ends: &RankSet,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        for at in 0..streams.len() {
            if let Some(request) = streams.at(at).request_for(link, back_ends) {
                self.tell_open(link, request, turn);
                streams.at(at).withdraw_end(turn);
            }
        }
    }

    /// Back-ends have come to a child: it takes part in the streams that they are members of.
    pub(crate) fn admit_members(
        &mut self,
        rank: Rank,
        back_ends: &RankSet,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let Some(link) = self.children.link_of(rank) else { return };
        for at in 0..streams.len() {
            let stream = streams.at(at);
            let members = stream.members_in(back_ends);
            if members.is_empty() {
                continue;
            }
            if let Some(slot) = stream.slot_of(link) {
                stream.slots[slot].members.union_with(members.as_ref());
                stream.gain(&members);
            } else if let Some(request) = stream.request_for(link, back_ends) {
                self.tell_open(link, request, turn);
                streams.at(at).withdraw_end(turn);
            }
        }
    }
}
