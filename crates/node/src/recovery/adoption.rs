//! The place of a child that is gone: held open for those below it, and taken by them as they come.
//!
//! **The fence.** An orphan is taken in only when every process between it and this node that is a
//! child of this node is gone: such a child might still hold packets of the orphan's, merged with
//! others'. Until that is known the orphan's hello waits, and the child is asked whether it is
//! there.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use sapwood_link::{END, Position};
use sapwood_packet::{Rank, RankSet, StreamId};
use sapwood_wire::{Control, Ranges};

use crate::interface::{AffectedWaves, Event, LinkId, Mutation, Output, Role};
use crate::members::children::Child;
use crate::members::membership::Membership;
use crate::members::superseded::Superseded;
use crate::members::vacancy::{Applicant, Manner, Vacancy};
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
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

    /// The parent was told that nothing more comes on a stream, which is not so any more.
    pub(crate) fn withdraw_end(&mut self, turn: &mut Turn) {
        let has_told = core::mem::take(&mut self.has_said_end) && !self.sender.withdraw_end();
        if !has_told {
            return;
        }
        let up = (self.ended.max(self.waves.end()), 0);
        let (stream, down) = (self.id, (self.down_next.wave, self.down_next.offset));
        if let Some(parent) = turn.parent {
            turn.send_control(parent, &Control::Resume { stream, up, down });
        }
    }
}

/// How long waves are held back for a back-end whose link has closed and which is not known to have
/// ended: it connects anew at once if it can.
const BACK_END_GRACE: Duration = Duration::from_millis(1000);

/// How much longer a place is held open for those who are just telling how far they have come.
const RESUMPTION_TIME: Duration = Duration::from_millis(100);

impl Membership {
    /// A communication process below is gone: its place is held open. Gives whether it is.
    pub(crate) fn hold_open(
        &mut self,
        rank: Rank,
        link: LinkId,
        Manner { is_back_end, was_silent, is_starting }: Manner,
        back_ends: &RankSet,
        why: &str,
        streams: &mut Streams,
        turn: &mut Turn,
    ) -> bool {
        let is_off = !self.ancestry.repairs(turn) || turn.breaks(Mutation::ForgetOrphans);
        if is_off || back_ends.is_empty() || turn.has_ended {
            return false;
        }
        let number = self.vacancies.next;
        self.vacancies.next += 1;
        let mut waves = Vec::new();
        for at in 0..streams.len() {
            let stream = streams.at(at);
            if let Some(slot) = stream.slot_of(link) {
                // For the event of the repair, which names the waves that were held back.
                waves.push((stream.id, stream.slots[slot].next.wave));
                stream.orphan_slot(slot, number);
            }
        }
        let grace = turn.settings.recovery.grace;
        let grace = match was_silent {
            // Those below it notice as late as this node did.
            true => grace + turn.settings.recovery.silence,
            // A back-end whose process is gone does not come back; one that has lost only its link
            // does so at once.
            false if is_back_end => grace.min(BACK_END_GRACE),
            false => grace,
        };
        let until = turn.now + grace;
        self.vacancies.open.push(Vacancy {
            rank,
            awaited: back_ends.clone(),
            returned: RankSet::new(),
            orphans: Vec::new(),
            until,
            grace,
            is_back_end,
            is_starting,
            reason: why.into(),
            number,
            waves,
        });
        if !is_back_end {
            turn.tell_broken(rank, back_ends.clone(), why.into());
        }
        true
    }

    /// An orphan asks to be taken in.
    pub(crate) fn orphan_hello(
        &mut self,
        link: LinkId,
        rank: Rank,
        between: Vec<Rank>,
        pid: u32,
        keeps_time: bool,
        streams: &mut Streams,
        turn: &mut Turn,
    ) -> Result<(), String> {
        if !self.ancestry.repairs(turn) {
            return Err(String::from("this network does not repair itself"));
        }
        if turn.rank.is_none_or(|own| own == rank) || between.contains(&rank) {
            return Err(alloc::format!("rank {rank} is no descendant of this process"));
        }
        // The same process may come over a second link before this one has seen the first one's
        // end.
        let is_other = |child: &Child| child.link.is_some() && child.pid != pid;
        if self.children.get(rank).is_some_and(is_other) {
            return Err(alloc::format!("another process has taken rank {rank}"));
        }
        if self.children.get(rank).is_some_and(|child| child.authority.is_distrusted) {
            return Err(alloc::format!(
                "the link of rank {rank} was broken: it broke the protocol"
            ));
        }
        // Its old link, if it is still here, is of no use any more.
        if let Some(old) = self.children.link_of(rank) {
            turn.outputs.push_back(Output::Hangup(old));
            self.link_down(old, "it has connected anew", streams, turn);
        }
        // It has asked before, over a link that is gone.
        self.vacancies.applicants.retain(|other| other.rank != rank);
        let applicant = Applicant { link, rank, between, pid, keeps_time };
        self.vacancies.applicants.push(applicant);
        self.answer_applicants(streams, turn);
        Ok(())
    }

    /// Takes in the orphans that nothing stands against any more.
    pub(crate) fn answer_applicants(&mut self, streams: &mut Streams, turn: &mut Turn) {
        let mut waiting = core::mem::take(&mut self.vacancies.applicants);
        waiting.retain(|applicant| {
            if turn.links.link(applicant.link).is_none() {
                return false;
            }
            let mut between = applicant.between.iter().copied();
            // A process between that is still connected may forward what the orphan would send
            // again.
            let fence = between.find(|&rank| self.children.link_of(rank).is_some());
            if let (Some(child), false) = (fence, turn.breaks(Mutation::SkipFence)) {
                self.suspect(child, turn);
                return true;
            }
            self.take_in(applicant, streams, turn);
            false
        });
        self.vacancies.applicants.append(&mut waiting);
    }

    /// A suspected child has answered: orphans from below it are referred to it.
    pub(crate) fn refuse_applicants(&mut self, turn: &mut Turn) {
        let waiting = core::mem::take(&mut self.vacancies.applicants);
        for applicant in waiting {
            let mut between = applicant.between.iter();
            let fence = between.find(|&&rank| {
                let child = self.children.get(rank);
                child.is_some_and(|child| child.link.is_some() && child.suspected.is_none())
            });
            let Some(&fence) = fence else {
                self.vacancies.applicants.push(applicant);
                continue;
            };
            let reason = alloc::format!("process {fence} is there: turn to it");
            turn.reject(applicant.link, &Control::Referred { rank: fence, reason });
        }
    }

    fn take_in(&mut self, applicant: &Applicant, streams: &mut Streams, turn: &mut Turn) {
        let mut child = Child::awaited(RankSet::new(), Vec::new());
        child.keeps_time = applicant.keeps_time;
        child.pid = applicant.pid;
        child.is_orphan = true;
        let between: RankSet = applicant.between.iter().copied().collect();
        child.authority = self.authority_of_orphan(applicant.rank, &applicant.between);
        // From now on the processes between must not come back with what they hold of this orphan.
        self.superseded.supersede(&between, &child.authority.domain, turn);
        child.is_resuming = true;
        if let Some(old) = self.children.get(applicant.rank) {
            // Whether it is complete is judged by what it was started with.
            child.expected = old.expected.clone();
        }
        self.children.insert(applicant.rank, child);
        streams.pass_over(&applicant.between, turn);
        self.take_as_child(applicant.link, applicant.rank, Vec::new(), turn);
    }

    /// An orphan that was welcomed says what comes with it.
    pub(crate) fn rejoin(
        &mut self,
        link: LinkId,
        rank: Rank,
        back_ends: RankSet,
        covers: RankSet,
        former: &RankSet,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        self.supersede_for(rank, former, turn);
        let is_back_end = covers == RankSet::range(rank, rank);
        if is_back_end {
            // A back-end knows best where it is.
            let holders = self.children.holders_of(rank);
            holders.into_iter().for_each(|holder| self.evict(holder, streams, turn));
        }
        for parent in former.iter().filter(|&parent| parent != rank) {
            self.evict(parent, streams, turn);
        }
        let others = self.children.connected_but(rank);
        let is_stale = !is_back_end
            && (others.as_ref().intersects(covers.as_ref())
                || self.superseded.contains(rank, &self.children)
                || streams.is_replaced(rank, turn));
        if is_stale {
            // It holds packets of back-ends that have come here by another way.
            turn.reject(link, &Control::Dissolve);
            self.children.forget(rank);
            // The start may have waited for it.
            return self.report_if_ready(turn);
        }
        let Some(child) = self.children.get_mut(rank) else { return };
        child.covers = covers;
        if child.expected.is_empty() {
            child.expected = back_ends.clone();
        }
        turn.counted.adopted += 1;
        self.returned(rank, back_ends, streams, turn);
    }

    /// A child says that what these processes have kept must not be used any more.
    pub(crate) fn supersede_for(&mut self, child: Rank, ranks: &RankSet, turn: &mut Turn) {
        let domain = self.children.get(child).map(|child| child.authority.domain.clone());
        self.superseded.supersede(ranks, &domain.unwrap_or_default(), turn);
    }

    /// A child that a newcomer has left, and that has come here by another way: it ends, since what
    /// it has kept must not be used, and its other children come by themselves.
    fn evict(&mut self, rank: Rank, streams: &mut Streams, turn: &mut Turn) {
        let Some(link) = self.children.link_of(rank) else { return };
        turn.reject(link, &Control::Dissolve);
        self.child_down(rank, link, "its children have gone elsewhere", false, streams, turn);
    }

    /// An orphan says how far it has come on a stream; or a child, that it has members again.
    pub(crate) fn resume(
        &mut self,
        link: LinkId,
        rank: Rank,
        id: StreamId,
        up: Position,
        down: Position,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let Some(at) = streams.find(id) else {
            return turn.send_control(link, &Control::Close { stream: id });
        };
        let stream = streams.at(at);
        if let Some(slot) = stream.slot_of(link) {
            // It had said that nothing more comes; now it has members again.
            if stream.slots[slot].next >= END {
                stream.slots[slot].next = up;
                stream.waves.wait_from(up);
                streams.at(at).withdraw_end(turn);
            }
            return;
        }
        let Some(child) = self.children.get(rank) else { return };
        let members = stream.members_in(&child.covers);
        // The orphan may retransmit waves up to here: contributors are compared until then.
        stream.resumed_until = stream.resumed_until.max(stream.waves.end()).max(stream.ended);
        streams.at(at).begin_slot(link, members, up, down, turn);
        streams.at(at).withdraw_end(turn);
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

impl Membership {
    /// An orphan has told all: it is told of the streams that it has missed, and places that are
    /// filled are closed.
    pub(crate) fn resumed(
        &mut self,
        link: LinkId,
        rank: Rank,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let Some(child) = self.children.get_mut(rank) else { return };
        child.is_resuming = false;
        let covers = child.covers.clone();
        for at in 0..streams.len() {
            let stream = streams.at(at);
            let members = stream.members_in(&covers);
            if members.is_empty() || stream.slot_of(link).is_some() {
                continue;
            }
            let request = stream.request.clone();
            let first = Position::start_of(request.first_wave);
            self.tell_open(link, request, turn);
            streams.at(at).begin_slot(link, members, first, Position::default(), turn);
            streams.at(at).withdraw_end(turn);
        }
        for vacancy in &mut self.vacancies.open {
            let mut back = vacancy.awaited.clone();
            back.intersect_with(covers.as_ref());
            if !back.is_empty() {
                vacancy.orphans.push(rank);
                vacancy.returned.union_with(back.as_ref());
                vacancy.awaited.subtract(back.as_ref());
            }
        }
        self.close_vacancies(streams, turn);
    }

    /// Closes the places that are filled, and those that have been held open for long enough.
    pub(crate) fn close_vacancies(&mut self, streams: &mut Streams, turn: &mut Turn) {
        if self.vacancies.open.is_empty() {
            return;
        }
        let now = turn.now;
        // Those that are there and have not told all yet have come in time.
        let resuming = self.children.resuming();
        for vacancy in &mut self.vacancies.open {
            if vacancy.until <= now && vacancy.awaited.as_ref().intersects(resuming.as_ref()) {
                vacancy.until = now + RESUMPTION_TIME;
            }
        }
        let is_over = |vacancy: &Vacancy| vacancy.awaited.is_empty() || vacancy.until <= now;
        while let Some(index) = self.vacancies.open.iter().position(is_over) {
            let vacancy = self.vacancies.open.swap_remove(index);
            self.close_vacancy(vacancy, streams, turn);
        }
    }

    fn close_vacancy(&mut self, vacancy: Vacancy, streams: &mut Streams, turn: &mut Turn) {
        let Vacancy { rank, mut awaited, returned, orphans, reason, number, waves, grace, .. } =
            vacancy;
        match grace.is_zero() {
            // The process has exited, so no other vacancy awaits these back-ends.
            true => self.vacancies.await_no_longer(&awaited),
            // An orphan that was adopted and lost before its last `Resumed` has a vacancy of its
            // own, which still awaits these back-ends.
            false => awaited.subtract(self.vacancies.awaited().as_ref()),
        }
        if !awaited.is_empty() {
            let reason = match grace.as_millis() {
                0 => reason,
                waited => alloc::format!("{reason}; not back within {waited} ms"),
            };
            if vacancy.is_starting && !self.children.has_rejoined(rank) {
                turn.pass_on_failure(rank, reason.clone());
            }
            self.lost(rank, awaited, reason, turn);
        }
        let is_back = orphans.contains(&rank) || self.children.has_rejoined(rank);
        let mut affected = Vec::new();
        for (id, first) in waves {
            let Some(at) = streams.find(id) else { continue };
            let end = streams.at(at).waves.end().max(first);
            affected.push(AffectedWaves { stream: id, first, end });
            if let Some(slot) = streams.at(at).slot_of_vacancy(number) {
                streams.at(at).slots[slot].vacancy = None;
                // A process that is back keeps its own filters' state, so nothing is inherited.
                if !is_back {
                    streams.at(at).inherit(slot, rank, turn);
                }
                // First the absent members, which need the slot's positions; `give_up` closes it.
                streams.at(at).await_absentees(slot, &returned, turn);
                streams.at(at).give_up(slot, turn);
            }
        }
        if !orphans.is_empty() && !vacancy.is_back_end {
            let adopter = turn.rank();
            turn.tell_repaired(rank, adopter, orphans, returned, affected);
        }
        if vacancy.is_starting {
            self.report_if_ready(turn);
        }
    }

    /// A child has told who is below it: places of processes that were slow to start are held for
    /// these no more. If it was thought gone itself, no other back-ends come in its place.
    pub(crate) fn close_place_of_slow(
        &mut self,
        rank: Rank,
        back_ends: &RankSet,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        for vacancy in self.vacancies.open.iter_mut().filter(|vacancy| vacancy.is_starting) {
            match vacancy.rank == rank {
                true => vacancy.awaited = RankSet::new(),
                false => vacancy.awaited.subtract(back_ends.as_ref()),
            }
        }
        self.close_vacancies(streams, turn);
    }

    /// Back-ends that are awaited have died for good: no wave waits for them any more.
    pub(crate) fn no_longer_awaited(
        &mut self,
        back_ends: &RankSet,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        self.vacancies.await_no_longer(back_ends);
        self.close_vacancies(streams, turn);
    }

    /// A back-end is known to have ended: no process comes back in its place.
    pub(crate) fn close_place_of(&mut self, rank: Rank, streams: &mut Streams, turn: &mut Turn) {
        let now = turn.now;
        let places = self.vacancies.open.iter_mut();
        for vacancy in places.filter(|vacancy| vacancy.is_back_end && vacancy.rank == rank) {
            vacancy.until = now;
            vacancy.grace = Duration::ZERO;
        }
        self.close_vacancies(streams, turn);
    }

    /// A back-end's link was broken for this reason: no process comes back in its place.
    pub(crate) fn close_place_because(
        &mut self,
        rank: Rank,
        why: &str,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let places = self.vacancies.open.iter_mut();
        for vacancy in places.filter(|vacancy| vacancy.is_back_end && vacancy.rank == rank) {
            vacancy.reason = alloc::format!("back-end {rank} is gone: {why}");
        }
        self.close_place_of(rank, streams, turn);
    }
}

impl Turn {
    /// Tells the parent, or the application, that a place has been taken.
    pub(crate) fn tell_repaired(
        &mut self,
        rank: Rank,
        adopter: Rank,
        orphans: Vec<Rank>,
        back_ends: RankSet,
        waves: Vec<AffectedWaves>,
    ) {
        if self.settings.role == Role::FrontEnd {
            let event = Event::Repaired { rank, adopter, orphans, back_ends, waves };
            return self.outputs.push_back(Output::Event(event));
        }
        let Some(parent) = self.parent else { return };
        let mut orphans = orphans;
        orphans.truncate(sapwood_wire::limits::ORPHANS_MAX);
        let waves = waves.iter().take(sapwood_wire::limits::AFFECTED_MAX);
        let waves = waves.map(|affected| (affected.stream, affected.first, affected.end)).collect();
        let back_ends = Ranges::from(&back_ends);
        self.send_control(parent, &Control::Repaired { rank, adopter, orphans, back_ends, waves });
    }

    /// Tells the parent, or the application, of a process that is gone.
    pub(crate) fn tell_broken(&mut self, rank: Rank, back_ends: RankSet, reason: String) {
        if self.settings.role == Role::FrontEnd {
            self.outputs.push_back(Output::Event(Event::Broken { rank, back_ends, reason }));
        } else if let Some(parent) = self.parent {
            let back_ends = Ranges::from(&back_ends);
            self.send_control(parent, &Control::Broken { rank, back_ends, reason });
        }
    }
}
