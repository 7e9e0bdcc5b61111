//! Orphans that ask to be taken in, and take the place of a child that is gone.
//!
//! **The fence.** An orphan is taken in only when every process between it and this node that is a
//! child of this node is gone: such a child might still hold packets of the orphan's, merged with
//! others'. Until that is known the orphan's hello waits, and the child is asked whether it is
//! there.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_link::{END, Position};
use sapwood_packet::{Rank, RankSet, StreamId};
use sapwood_wire::{Cause, Control, Ranges};

use crate::interface::{LinkId, Mutation, Output};
use crate::members::children::Child;
use crate::members::superseded::Superseded;
use crate::members::vacancy::Applicant;
use crate::recovery::change::TreeChange;
use crate::streams::stream::Stream;
use crate::turn::Turn;
use crate::waves::slot::Slot;

impl Stream {
    /// A child takes part in a stream from these places on.
    fn begin_slot(
        &mut self,
        link: LinkId,
        members: RankSet,
        up: Position,
        down: Position,
        turn: &mut Turn,
    ) {
        let Turn { links, .. } = turn;
        // The new child's `down` is only what it has received itself. Frames stay in the retransmit
        // buffer until it acknowledges for its own children.
        let mut slot = Slot::new(Some(link), members, up, self.request.window_bytes);
        slot.down_sent = down;
        for (frame, info) in self.down_retransmit.frames_from(down) {
            let destinations = frame.destinations();
            if !destinations.is_empty() && !slot.members.as_ref().intersects(destinations) {
                continue;
            }
            slot.down_sent = info.behind;
            match links.outbox(link) {
                Some(outbox) if slot.down.is_open() => {
                    slot.down.charge(frame.length());
                    outbox.push_frame(&frame);
                }
                _ => slot.down.wait(frame, info),
            }
        }
        self.add_slot(slot);
    }
}

impl TreeChange<'_> {
    /// An orphan asks to be taken in.
    pub(crate) fn orphan_hello(
        &mut self,
        link: LinkId,
        rank: Rank,
        between: Vec<Rank>,
        pid: u32,
        is_responsive: bool,
    ) -> Result<(), String> {
        if !self.members.ancestry.repairs(self.turn) {
            return Err(String::from("this network does not repair itself"));
        }
        if self.turn.rank.is_none_or(|own| own == rank) || between.contains(&rank) {
            return Err(alloc::format!("rank {rank} is no descendant of this process"));
        }
        // The same process may come over a second link before this one has seen the first one's
        // end.
        let is_other = |child: &Child| child.link.is_some() && child.pid != pid;
        if self.members.children.get(rank).is_some_and(is_other) {
            return Err(alloc::format!("another process has taken rank {rank}"));
        }
        if self.members.children.get(rank).is_some_and(|child| child.authority.is_distrusted) {
            return Err(alloc::format!(
                "the link of rank {rank} was broken: it broke the protocol"
            ));
        }
        // Its old link, if it is still here, is of no use any more.
        if let Some(old) = self.members.children.link_of(rank) {
            self.turn.outputs.push_back(Output::Hangup(old));
            self.link_down(old, "it has reconnected");
        }
        // It has asked before, over a link that is gone.
        self.members.vacancies.applicants.retain(|other| other.rank != rank);
        let applicant = Applicant { link, rank, between, pid, is_responsive };
        self.members.vacancies.applicants.push(applicant);
        self.answer_applicants();
        Ok(())
    }

    /// Takes in the orphans that nothing stands against any more.
    pub(crate) fn answer_applicants(&mut self) {
        let mut waiting = core::mem::take(&mut self.members.vacancies.applicants);
        waiting.retain(|applicant| {
            if self.turn.links.link(applicant.link).is_none() {
                return false;
            }
            let mut between = applicant.between.iter().copied();
            // A process between that is still connected may forward what the orphan would send
            // again.
            let fence = between.find(|&rank| self.members.children.link_of(rank).is_some());
            if let (Some(child), false) = (fence, self.turn.breaks(Mutation::SkipFence)) {
                self.members.suspect(child, self.turn);
                return true;
            }
            self.take_in(applicant);
            false
        });
        self.members.vacancies.applicants.append(&mut waiting);
    }

    /// A suspected child has answered: orphans from below it are referred to it.
    pub(crate) fn refuse_applicants(&mut self) {
        let waiting = core::mem::take(&mut self.members.vacancies.applicants);
        for applicant in waiting {
            let mut between = applicant.between.iter();
            let fence = between.find(|&&rank| {
                let child = self.members.children.get(rank);
                child.is_some_and(|child| child.link.is_some() && child.suspected.is_none())
            });
            let Some(&fence) = fence else {
                // No child between has answered yet: it waits until one does, or all of them are
                // gone.
                self.members.vacancies.applicants.push(applicant);
                continue;
            };
            let reason = alloc::format!("process {fence} is alive: connect to it");
            self.turn.reject(applicant.link, &Control::Referred { rank: fence, reason });
        }
    }

    fn take_in(&mut self, applicant: &Applicant) {
        let mut child = Child::awaited(RankSet::new(), Vec::new());
        child.is_responsive = applicant.is_responsive;
        child.pid = applicant.pid;
        child.is_orphan = true;
        let between: RankSet = applicant.between.iter().copied().collect();
        child.authority = self.members.authority_of_orphan(applicant.rank, &applicant.between);
        // From now on the processes between must not come back with what they hold of this orphan.
        self.members.superseded.supersede(&between, &child.authority.domain, self.turn);
        child.is_resuming = true;
        if let Some(old) = self.members.children.get(applicant.rank) {
            // Whether it is complete is judged by what it was started with.
            child.expected = old.expected.clone();
        }
        self.members.children.insert(applicant.rank, child);
        self.streams.pass_over(&applicant.between, self.turn);
        self.members.take_as_child(applicant.link, applicant.rank, Vec::new(), self.turn);
    }

    /// An orphan that was welcomed says what comes with it.
    pub(crate) fn rejoin(
        &mut self,
        link: LinkId,
        rank: Rank,
        back_ends: RankSet,
        covers: RankSet,
        former: &RankSet,
    ) {
        self.supersede_for(rank, former);
        let is_back_end = covers == RankSet::range(rank, rank);
        if is_back_end {
            // A back-end knows best where it is.
            let holders = self.members.children.holders_of(rank);
            holders.into_iter().for_each(|holder| self.evict(holder));
        }
        for parent in former.iter().filter(|&parent| parent != rank) {
            self.evict(parent);
        }
        let others = self.members.children.connected_but(rank);
        let is_stale = !is_back_end
            && (others.as_ref().intersects(covers.as_ref())
                || self.members.superseded.contains(rank, &self.members.children)
                || self.streams.is_replaced(rank, self.turn));
        if is_stale {
            // It holds packets of back-ends that have come here by another way.
            self.turn.reject(link, &Control::Dissolve);
            self.members.children.forget(rank);
            // The start may have waited for it.
            return self.members.report_if_ready(self.turn);
        }
        let Some(child) = self.members.children.get_mut(rank) else { return };
        child.covers = covers;
        if child.expected.is_empty() {
            child.expected = back_ends.clone();
        }
        self.turn.counted.adopted += 1;
        self.returned(rank, back_ends);
    }

    /// A child says that what these processes have kept must not be used any more.
    pub(crate) fn supersede_for(&mut self, child: Rank, ranks: &RankSet) {
        let domain = self.members.children.get(child).map(|child| child.authority.domain.clone());
        self.members.superseded.supersede(ranks, &domain.unwrap_or_default(), self.turn);
    }

    /// A child that a newcomer has left, and that has come here by another way: it ends, since what
    /// it has kept must not be used, and its other children come by themselves.
    fn evict(&mut self, rank: Rank) {
        let Some(link) = self.members.children.link_of(rank) else { return };
        self.turn.reject(link, &Control::Dissolve);
        self.child_down(rank, link, "its children have gone elsewhere", Cause::Died);
    }

    /// An orphan says how far it has come on a stream; or a child, that it has members again.
    pub(crate) fn resume(
        &mut self,
        link: LinkId,
        rank: Rank,
        id: StreamId,
        up: Position,
        down: Position,
    ) {
        let Some(at) = self.streams.find(id) else {
            return self.turn.send_control(link, &Control::Close { stream: id });
        };
        let stream = self.streams.at(at);
        if let Some(slot) = stream.slot_of(link) {
            // It had said that nothing more comes; now it has members again.
            if stream.slots[slot].next >= END {
                stream.slots[slot].next = up;
                stream.waves.wait_from(up);
                self.streams.at(at).withdraw_end(self.turn);
            }
            return;
        }
        let Some(child) = self.members.children.get(rank) else { return };
        let members = stream.members_in(&child.covers);
        // The orphan may retransmit waves up to here: contributors are compared until then.
        stream.resumed_until = stream.resumed_until.max(stream.waves.end()).max(stream.ended);
        self.streams.at(at).begin_slot(link, members, up, down, self.turn);
        self.streams.at(at).withdraw_end(self.turn);
    }

    /// An orphan has told all: it is told of the streams that it has missed, and places that are
    /// filled are closed.
    pub(crate) fn resumed(&mut self, link: LinkId, rank: Rank) {
        let Some(child) = self.members.children.get_mut(rank) else { return };
        child.is_resuming = false;
        let covers = child.covers.clone();
        for at in 0..self.streams.len() {
            let stream = self.streams.at(at);
            let members = stream.members_in(&covers);
            if members.is_empty() || stream.slot_of(link).is_some() {
                continue;
            }
            let request = stream.request.clone();
            let first = Position::start_of(request.first_wave);
            self.members.tell_open(link, request, self.turn);
            self.streams.at(at).begin_slot(link, members, first, Position::default(), self.turn);
            self.streams.at(at).withdraw_end(self.turn);
        }
        for vacancy in &mut self.members.vacancies.open {
            let mut back = vacancy.awaited.clone();
            back.intersect_with(covers.as_ref());
            if !back.is_empty() {
                vacancy.orphans.push(rank);
                vacancy.returned.union_with(back.as_ref());
                vacancy.awaited.subtract(back.as_ref());
            }
        }
        self.close_vacancies();
    }
}

impl Superseded {
    /// What these processes have kept must not be used any more, as processes say that speak for
    /// these back-ends: all ancestors are told.
    fn supersede(&mut self, ranks: &RankSet, domain: &RankSet, turn: &mut Turn) {
        let forgets =
            turn.breaks(Mutation::ForgetSuperseded) || turn.breaks(Mutation::FindWholeOverlapsOnly);
        if forgets {
            return;
        }
        self.note(ranks, domain);
        let news = ranks.difference(self.ranks.as_ref());
        if news.is_empty() {
            return;
        }
        self.ranks.union_with(news.as_ref());
        if let Some(parent) = turn.parent {
            turn.send_control(parent, &Control::Superseded { ranks: Ranges::from(&news) });
        }
    }
}
