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

use crate::interface::Mutation;
use crate::interface::{AffectedWaves, Event, Instant, LinkId, Output, Role};
use crate::members::membership::Child;
use crate::members::membership::Membership;
use crate::members::vacancy::{Applicant, Manner, Vacancy};
use crate::node::Node;
use crate::turn::Turn;
use crate::waves::slot::Slot;

/// How long waves are held back for a back-end whose link has closed and which is not known to have
/// ended: it connects anew at once if it can.
const BACK_END_GRACE: Duration = Duration::from_millis(1000);

/// How much longer a place is held open for those who are just telling how far they have come.
const RESUMPTION_TIME: Duration = Duration::from_millis(100);

impl Node {
    /// A communication process below is gone: its place is held open. Gives whether it is.
    pub(crate) fn hold_open(
        &mut self,
        rank: Rank,
        link: LinkId,
        Manner { is_back_end, was_silent, is_starting }: Manner,
        back_ends: &RankSet,
        why: &str,
    ) -> bool {
        let is_off = !self.repairs() || self.turn.breaks(Mutation::ForgetOrphans);
        if is_off || back_ends.is_empty() || self.turn.has_ended {
            return false;
        }
        let number = self.membership.next_vacancy;
        self.membership.next_vacancy += 1;
        let mut waves = Vec::new();
        for at in 0..self.streams.len() {
            let stream = self.streams.at(at);
            if let Some(slot) = stream.slot_of(link) {
                waves.push((stream.id, stream.slots[slot].next.wave));
                stream.orphan_slot(slot, number);
            }
        }
        let grace = self.turn.settings.recovery.grace;
        let grace = match was_silent {
            // Those below it notice as late as this node did.
            true => grace + self.turn.settings.recovery.silence,
            false if is_back_end => grace.min(BACK_END_GRACE),
            false => grace,
        };
        let until = self.turn.now + grace;
        self.membership.vacancies.push(Vacancy {
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
            self.turn.tell_broken(rank, back_ends.clone(), why.into());
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
    ) -> Result<(), String> {
        if !self.repairs() {
            return Err(String::from("this network does not repair itself"));
        }
        if self.turn.rank.is_none_or(|own| own == rank) || between.contains(&rank) {
            return Err(alloc::format!("rank {rank} is no descendant of this process"));
        }
        let is_other = |child: &Child| child.link.is_some() && child.pid != pid;
        if self.membership.child(rank).is_some_and(is_other) {
            return Err(alloc::format!("another process has taken rank {rank}"));
        }
        if self.membership.child(rank).is_some_and(|child| child.standing.is_distrusted) {
            return Err(alloc::format!(
                "the link of rank {rank} was broken: it broke the protocol"
            ));
        }
        // Its old link, if it is still here, is of no use any more.
        if let Some(old) = self.membership.link_of(rank) {
            self.turn.outputs.push_back(Output::Hangup(old));
            self.link_down(old, "it has connected anew");
        }
        self.membership.applicants.retain(|other| other.rank != rank);
        let applicant = Applicant { link, rank, between, pid, keeps_time };
        self.membership.applicants.push(applicant);
        self.answer_applicants();
        Ok(())
    }

    /// Takes in the orphans that nothing stands against any more.
    pub(crate) fn answer_applicants(&mut self) {
        let mut waiting = core::mem::take(&mut self.membership.applicants);
        waiting.retain(|applicant| {
            if self.turn.links.link(applicant.link).is_none() {
                return false;
            }
            let mut between = applicant.between.iter().copied();
            let fence = between.find(|&rank| self.membership.link_of(rank).is_some());
            if let (Some(child), false) = (fence, self.turn.breaks(Mutation::SkipFence)) {
                self.suspect(child);
                return true;
            }
            self.take_in(applicant);
            false
        });
        self.membership.applicants.append(&mut waiting);
    }

    /// The process that stands between answers: orphans of its have to turn to it.
    pub(crate) fn refuse_applicants(&mut self) {
        let waiting = core::mem::take(&mut self.membership.applicants);
        for applicant in waiting {
            let mut between = applicant.between.iter();
            let fence = between.find(|&&rank| {
                let child = self.membership.child(rank);
                child.is_some_and(|child| child.link.is_some() && child.suspected.is_none())
            });
            let Some(&fence) = fence else {
                self.membership.applicants.push(applicant);
                continue;
            };
            let reason = alloc::format!("process {fence} is there: turn to it");
            self.turn.reject(applicant.link, &Control::Referred { rank: fence, reason });
        }
    }

    fn take_in(&mut self, applicant: &Applicant) {
        let mut child = Child::awaited(RankSet::new(), Vec::new());
        child.keeps_time = applicant.keeps_time;
        child.pid = applicant.pid;
        child.is_orphan = true;
        let between: RankSet = applicant.between.iter().copied().collect();
        child.standing = self.membership.standing_of_orphan(applicant.rank, &applicant.between);
        self.supersede(&between, &child.standing.domain);
        child.is_resuming = true;
        if let Some(old) = self.membership.child(applicant.rank) {
            child.expected = old.expected.clone();
        }
        self.membership.put_child(applicant.rank, child);
        self.pass_over(&applicant.between);
        self.take_as_child(applicant.link, applicant.rank, Vec::new());
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
            let holders = self.membership.holders_of(rank);
            holders.into_iter().for_each(|holder| self.evict(holder));
        }
        for parent in former.iter().filter(|&parent| parent != rank) {
            self.evict(parent);
        }
        let others = self.membership.connected_but(rank);
        let is_stale = !is_back_end
            && (others.as_ref().intersects(covers.as_ref())
                || self.membership.is_superseded(rank)
                || self.is_replaced(rank));
        if is_stale {
            self.turn.reject(link, &Control::Dissolve);
            self.membership.forget_child(rank);
            // The start may have waited for it.
            return self.report_if_ready();
        }
        let Some(child) = self.membership.child_mut(rank) else { return };
        child.covers = covers;
        if child.expected.is_empty() {
            child.expected = back_ends.clone();
        }
        self.turn.counted.adopted += 1;
        self.returned(rank, back_ends);
    }

    /// A child says that what these processes have kept must not be used any more.
    pub(crate) fn supersede_for(&mut self, child: Rank, ranks: &RankSet) {
        let domain = self.membership.child(child).map(|child| child.standing.domain.clone());
        self.supersede(ranks, &domain.unwrap_or_default());
    }

    /// What these processes have kept must not be used any more, as processes say that speak for
    /// these back-ends: all ancestors are told.
    fn supersede(&mut self, ranks: &RankSet, domain: &RankSet) {
        let forgets = self.turn.breaks(Mutation::ForgetSuperseded)
            || self.turn.breaks(Mutation::FindWholeOverlapsOnly);
        if forgets {
            return;
        }
        self.membership.note_superseded(ranks, domain);
        let news = ranks.difference(self.membership.superseded.as_ref());
        if news.is_empty() {
            return;
        }
        self.membership.superseded.union_with(news.as_ref());
        if let Some(parent) = self.turn.parent {
            self.turn.send_control(parent, &Control::Superseded { ranks: Ranges::from(&news) });
        }
    }

    /// A child that a newcomer has left, and that has come here by another way: it ends, since what
    /// it has kept must not be used, and its other children come by themselves.
    fn evict(&mut self, rank: Rank) {
        let Some(link) = self.membership.link_of(rank) else { return };
        self.turn.reject(link, &Control::Dissolve);
        self.child_down(rank, link, "its children have gone elsewhere", false);
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
            if stream.slots[slot].next >= END {
                stream.slots[slot].next = up;
                stream.waves.wait_from(up);
                self.take_back_end(at);
            }
            return;
        }
        let Some(child) = self.membership.child(rank) else { return };
        let members = stream.members_in(&child.covers);
        stream.resumed_until = stream.resumed_until.max(stream.waves.end()).max(stream.ended);
        self.begin_slot(at, link, members, up, down);
        self.take_back_end(at);
    }

    /// A child takes part in a stream from these places on.
    fn begin_slot(
        &mut self,
        at: usize,
        link: LinkId,
        members: RankSet,
        up: Position,
        down: Position,
    ) {
        let Self { turn: Turn { links, .. }, streams, .. } = self;
        let stream = streams.at(at);
        // What has come to a process above others is kept until it tells what has come to those: it
        // may be gone before.
        let mut slot = Slot::new(link, members, up, stream.request.window_bytes);
        slot.down_sent = down;
        for (frame, info) in stream.down_retransmit.frames_from(down) {
            let destinations = frame.destinations();
            if !destinations.is_empty() && !slot.members.as_ref().intersects(destinations) {
                continue;
            }
            slot.down_sent = info.behind;
            match links.outbox(link) {
                Some(outbox) if slot.down.is_open() => {
                    slot.down.pass(frame.length());
                    outbox.push_frame(&frame);
                }
                _ => slot.down.wait(frame, info),
            }
        }
        stream.add_slot(slot);
    }

    /// The parent was told that nothing more comes on a stream, which is not so any more.
    pub(crate) fn take_back_end(&mut self, at: usize) {
        let stream = self.streams.at(at);
        let has_told = core::mem::take(&mut stream.has_said_end) && !stream.sender.withdraw_end();
        if !has_told {
            return;
        }
        let up = (stream.ended.max(stream.waves.end()), 0);
        let (stream, down) = (stream.id, (stream.down_next.wave, stream.down_next.offset));
        if let Some(parent) = self.turn.parent {
            self.turn.send_control(parent, &Control::Resume { stream, up, down });
        }
    }

    /// An orphan has told all: it is told of the streams that it has missed, and places that are
    /// filled are closed.
    pub(crate) fn resumed(&mut self, link: LinkId, rank: Rank) {
        let Some(child) = self.membership.child_mut(rank) else { return };
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
            self.tell_open(link, request);
            self.begin_slot(at, link, members, first, Position::default());
            self.take_back_end(at);
        }
        for vacancy in &mut self.membership.vacancies {
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

    /// A stream that has just opened waits for members who are on their way to another parent.
    pub(crate) fn await_orphans(&mut self, at: usize) {
        let Self { membership, streams, .. } = self;
        let stream = streams.at(at);
        for vacancy in &mut membership.vacancies {
            if stream.await_members(&vacancy.awaited, vacancy.number) {
                vacancy.waves.push((stream.id, stream.request.first_wave));
            }
        }
    }

    /// Closes the places that are filled, and those that have been held open for long enough.
    pub(crate) fn close_vacancies(&mut self) {
        if self.membership.vacancies.is_empty() {
            return;
        }
        let now = self.turn.now;
        // Those that are there and have not told all yet have come in time.
        let resuming = self.membership.resuming();
        for vacancy in &mut self.membership.vacancies {
            if vacancy.until <= now && vacancy.awaited.as_ref().intersects(resuming.as_ref()) {
                vacancy.until = now + RESUMPTION_TIME;
            }
        }
        let is_over = |vacancy: &Vacancy| vacancy.awaited.is_empty() || vacancy.until <= now;
        while let Some(index) = self.membership.vacancies.iter().position(is_over) {
            let vacancy = self.membership.vacancies.swap_remove(index);
            self.close_vacancy(vacancy);
        }
    }

    fn close_vacancy(&mut self, vacancy: Vacancy) {
        let Vacancy { rank, mut awaited, returned, orphans, reason, number, waves, grace, .. } =
            vacancy;
        match grace.is_zero() {
            // They cannot come to another place either.
            true => self.membership.await_no_longer(&awaited),
            // One that had come and has gone before it had told all has a place of its own besides.
            false => awaited.subtract(self.membership.awaited().as_ref()),
        }
        if !awaited.is_empty() {
            let reason = match grace.as_millis() {
                0 => reason,
                waited => alloc::format!("{reason}; not back within {waited} ms"),
            };
            if vacancy.is_starting && !self.membership.has_rejoined(rank) {
                self.pass_on_failure(rank, reason.clone());
            }
            self.lost(rank, awaited, reason);
        }
        let is_back = orphans.contains(&rank) || self.membership.has_rejoined(rank);
        let mut affected = Vec::new();
        for (id, first) in waves {
            let Some(at) = self.streams.find(id) else { continue };
            let end = self.streams.at(at).waves.end().max(first);
            affected.push(AffectedWaves { stream: id, first, end });
            if let Some(slot) = self.streams.at(at).slot_of_vacancy(number) {
                self.streams.at(at).slots[slot].vacancy = None;
                if !is_back {
                    self.inherit(at, slot, rank);
                }
                self.await_absentees(at, slot, &returned);
                self.give_up(at, slot);
            }
        }
        if !orphans.is_empty() && !vacancy.is_back_end {
            let adopter = self.turn.rank_or_max();
            self.turn.tell_repaired(rank, adopter, orphans, returned, affected);
        }
        if vacancy.is_starting {
            self.report_if_ready();
        }
    }

    /// A child has told who is below it: places of processes that were slow to start are held for
    /// these no more. If it was thought gone itself, no other back-ends come in its place.
    pub(crate) fn close_place_of_slow(&mut self, rank: Rank, back_ends: &RankSet) {
        for position in self.membership.vacancies.iter_mut().filter(|position| position.is_starting)
        {
            match position.rank == rank {
                true => position.awaited = RankSet::new(),
                false => position.awaited.subtract(back_ends.as_ref()),
            }
        }
        self.close_vacancies();
    }

    /// Back-ends that are awaited have died for good: nobody waits for them any more.
    pub(crate) fn no_longer_awaited(&mut self, back_ends: &RankSet) {
        self.membership.await_no_longer(back_ends);
        self.close_vacancies();
    }

    /// A back-end is known to have ended: nobody comes back in its place.
    pub(crate) fn close_place_of(&mut self, rank: Rank) {
        let now = self.turn.now;
        let places = self.membership.vacancies.iter_mut();
        for position in places.filter(|position| position.is_back_end && position.rank == rank) {
            position.until = now;
            position.grace = Duration::ZERO;
        }
        self.close_vacancies();
    }

    /// A back-end's link was broken for this reason: nobody comes back in its place.
    pub(crate) fn close_place_because(&mut self, rank: Rank, why: &str) {
        let places = self.membership.vacancies.iter_mut();
        for position in places.filter(|position| position.is_back_end && position.rank == rank) {
            position.reason = alloc::format!("back-end {rank} is gone: {why}");
        }
        self.close_place_of(rank);
    }
}

impl Membership {
    /// When the next place is closed though it is not filled.
    pub(crate) fn vacancy_deadline(&self) -> Option<Instant> {
        self.vacancies.iter().map(|vacancy| vacancy.until).min()
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
