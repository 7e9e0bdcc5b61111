//! The place of a child that is gone: held open for those below it, and closed when they have come,
//! or when its time is over.

use alloc::vec::Vec;
use core::time::Duration;

use sapwood_packet::{Rank, RankSet};
use sapwood_wire::{Cause, Control, Ranges};

use crate::interface::{AffectedWaves, Event, LinkId, Mutation, Output, Reason, Role};
use crate::members::vacancy::{Manner, Vacancy};
use crate::recovery::change::TreeChange;
use crate::turn::Turn;

/// How long waves are held back for a back-end whose link has closed and which is not known to have
/// ended: it connects anew at once if it can.
const BACK_END_GRACE: Duration = Duration::from_millis(1000);

/// How much longer a place is held open for processes that are just reporting how far they have
/// come.
const RESUMPTION_TIME: Duration = Duration::from_millis(100);

impl TreeChange<'_> {
    /// A communication process below is gone: its place is held open. Gives whether it is.
    pub(crate) fn hold_open(
        &mut self,
        rank: Rank,
        link: LinkId,
        Manner { is_back_end, was_silent, is_starting }: Manner,
        back_ends: &RankSet,
        why: &Reason,
    ) -> bool {
        let is_off =
            !self.members.ancestry.repairs(self.turn) || self.turn.breaks(Mutation::ForgetOrphans);
        if is_off || back_ends.is_empty() || self.turn.has_ended {
            return false;
        }
        let number = self.members.vacancies.next;
        self.members.vacancies.next += 1;
        let mut waves = Vec::new();
        for at in 0..self.streams.len() {
            let stream = self.streams.at(at);
            if let Some(slot) = stream.slot_of(link) {
                // For the event of the repair, which names the waves that were held back.
                waves.push((stream.id, stream.slots[slot].next.wave));
                stream.orphan_slot(slot, number);
            }
        }
        let grace = self.turn.settings.recovery.grace;
        let grace = match was_silent {
            // Those below it notice as late as this node did.
            true => grace + self.turn.settings.recovery.silence,
            // A back-end whose process is gone does not come back; one that has lost only its link
            // does so at once.
            false if is_back_end => grace.min(BACK_END_GRACE),
            false => grace,
        };
        let until = self.turn.now + grace;
        self.members.vacancies.open.push(Vacancy {
            rank,
            awaited: back_ends.clone(),
            returned: RankSet::new(),
            orphans: Vec::new(),
            until,
            grace,
            is_back_end,
            is_starting,
            reason: why.clone(),
            number,
            waves,
        });
        // A back-end has no process below it that goes on without it: its loss is told by `Lost`
        // alone, if it does not come back.
        if !is_back_end {
            self.turn.tell_broken(rank, back_ends.clone(), why.clone());
        }
        true
    }

    /// Closes the places that are filled, and those that have been held open for long enough.
    pub(crate) fn close_vacancies(&mut self) {
        if self.members.vacancies.open.is_empty() {
            return;
        }
        let now = self.turn.now;
        // Those that are there and have not told all yet have come in time.
        let resuming = self.members.children.resuming();
        for vacancy in &mut self.members.vacancies.open {
            if vacancy.until <= now && vacancy.awaited.as_ref().intersects(resuming.as_ref()) {
                vacancy.until = now + RESUMPTION_TIME;
            }
        }
        let is_over = |vacancy: &Vacancy| vacancy.awaited.is_empty() || vacancy.until <= now;
        while let Some(index) = self.members.vacancies.open.iter().position(is_over) {
            let vacancy = self.members.vacancies.open.swap_remove(index);
            self.close_vacancy(vacancy);
        }
    }

    fn close_vacancy(&mut self, vacancy: Vacancy) {
        let Vacancy { rank, mut awaited, returned, orphans, reason, number, waves, grace, .. } =
            vacancy;
        match grace.is_zero() {
            // The process has exited, so no other vacancy awaits these back-ends.
            true => self.members.vacancies.await_no_longer(&awaited),
            // An orphan that was adopted and lost before its last `Resumed` has a vacancy of its
            // own, which still awaits these back-ends.
            false => awaited.subtract(self.members.vacancies.awaited().as_ref()),
        }
        if !awaited.is_empty() {
            let reason = match grace.as_millis() {
                0 => reason,
                waited => {
                    let words = alloc::format!("{}; not back within {waited} ms", reason.words);
                    Reason { words, ..reason }
                }
            };
            if vacancy.is_starting && !self.members.children.has_rejoined(rank) {
                self.turn.pass_on_failure(rank, reason.words.clone());
            }
            self.members.lost(rank, awaited, reason, self.turn);
        }
        let is_back = orphans.contains(&rank) || self.members.children.has_rejoined(rank);
        let mut affected = Vec::new();
        for (id, first) in waves {
            let Some(at) = self.streams.find(id) else { continue };
            let end = self.streams.at(at).waves.end().max(first);
            affected.push(AffectedWaves { stream: id, first, end });
            if let Some(slot) = self.streams.at(at).slot_of_vacancy(number) {
                self.streams.at(at).slots[slot].vacancy = None;
                // A process that is back keeps its own filters' state, so nothing is inherited.
                if !is_back {
                    self.streams.at(at).inherit(slot, rank, self.turn);
                }
                // First the absent members, which need the slot's positions; `give_up` closes it.
                self.streams.at(at).await_absentees(slot, &returned, self.turn);
                self.streams.at(at).give_up_slot(slot, self.turn);
            }
        }
        if !orphans.is_empty() && !vacancy.is_back_end {
            let adopter = self.turn.rank();
            self.turn.tell_repaired(rank, adopter, orphans, returned, affected);
        }
        if vacancy.is_starting {
            self.members.report_if_ready(self.turn);
        }
    }

    /// A child has named the members below it: places of processes that were slow to start are held
    /// for these no more. If it was thought gone itself, no other back-ends come in its place.
    pub(crate) fn close_place_of_slow(&mut self, rank: Rank, back_ends: &RankSet) {
        for vacancy in self.members.vacancies.open.iter_mut().filter(|vacancy| vacancy.is_starting)
        {
            match vacancy.rank == rank {
                true => vacancy.awaited = RankSet::new(),
                false => vacancy.awaited.subtract(back_ends.as_ref()),
            }
        }
        self.close_vacancies();
    }

    /// Back-ends that are awaited have died for good: no wave waits for them any more.
    pub(crate) fn no_longer_awaited(&mut self, back_ends: &RankSet) {
        self.members.vacancies.await_no_longer(back_ends);
        self.close_vacancies();
    }

    /// A back-end is known to have ended: no process comes back in its place.
    pub(crate) fn close_place_of(&mut self, rank: Rank) {
        let now = self.turn.now;
        let places = self.members.vacancies.open.iter_mut();
        for vacancy in places.filter(|vacancy| vacancy.is_back_end && vacancy.rank == rank) {
            vacancy.until = now;
            vacancy.grace = Duration::ZERO;
        }
        self.close_vacancies();
    }

    /// A back-end's link was broken for this reason: no process comes back in its place.
    pub(crate) fn close_place_because(&mut self, rank: Rank, why: &str) {
        let reason = Reason::gone(Cause::Refused, format_args!("back-end {rank}"), why);
        self.explain_place_of(rank, |_| reason.clone());
        self.close_place_of(rank);
    }

    /// A back-end's process has ended in this way: no process comes back in its place.
    pub(crate) fn close_place_ended(&mut self, rank: Rank, cause: Cause) {
        self.explain_place_of(rank, |reason| reason.ended(cause));
        self.close_place_of(rank);
    }

    fn explain_place_of(&mut self, rank: Rank, explain: impl Fn(&Reason) -> Reason) {
        let places = self.members.vacancies.open.iter_mut();
        for vacancy in places.filter(|vacancy| vacancy.is_back_end && vacancy.rank == rank) {
            vacancy.reason = explain(&vacancy.reason);
        }
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
    pub(crate) fn tell_broken(&mut self, rank: Rank, back_ends: RankSet, reason: Reason) {
        let Reason { cause, words: reason } = reason;
        if self.settings.role == Role::FrontEnd {
            self.outputs.push_back(Output::Event(Event::Broken { rank, back_ends, reason, cause }));
        } else if let Some(parent) = self.parent {
            let back_ends = Ranges::from(&back_ends);
            self.send_control(parent, &Control::Broken { rank, back_ends, reason, cause });
        }
    }
}
