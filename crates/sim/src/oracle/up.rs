//! The rules of answers: each by itself, and all of them together at rest.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_filter::WaveRule;
use sapwood_node::Answer;
use sapwood_packet::{Rank, RankSet, StreamId, Wave};

use super::{ENTERED, EXCUSED, Known, NAMED, REPEATED, Rule, SENT, Struck};
use crate::dropped::Dropped;
use crate::scenario::Kind;

/// What an answer did wrong.
type Found = Vec<(Rule, String)>;

impl Known {
    /// Looks at an answer and remembers it. Gives how many contributions it brought.
    pub(super) fn take(&mut self, answer: &Answer, struck: Struck<'_>, found: &mut Found) -> u64 {
        if self.is_closed {
            found.push((Rule::Order, "it comes after the stream was closed".into()));
        }
        for rank in answer.contributors.iter() {
            match self.enter(rank, answer.wave) {
                fate if fate & SENT == 0 => {
                    found.push((Rule::Value, format!("rank {rank} is in it and sent nothing")));
                }
                fate if fate & (ENTERED | REPEATED) == ENTERED => {
                    found.push((Rule::Twice, format!("rank {rank} is in it twice")));
                }
                _ => {}
            }
        }
        match &answer.packet {
            Some(packet) if answer.contributors.is_empty() => {
                found.push((
                    Rule::Value,
                    format!("a value without contributors: {:?}", packet.header),
                ));
            }
            Some(packet) => {
                if let Err(text) = self.recipe.check(answer.wave, &answer.contributors, packet) {
                    let who = &answer.contributors;
                    found.push((Rule::Value, format!("the value of '{who}' is wrong: {text}")));
                }
            }
            None if !answer.contributors.is_empty() => {
                let who = &answer.contributors;
                found.push((Rule::Value, format!("'{who}' are in it, and it has no value")));
            }
            None => {}
        }
        if self.wave == WaveRule::Immediate {
            if !answer.missing.is_empty() {
                found.push((Rule::Missing, format!("missing are {:?}", answer.missing)));
            }
        } else if !answer.is_late {
            self.take_on_time(answer, struck, found);
        }
        answer.contributors.len()
    }

    /// Records that a contribution is in an answer; returns its former state.
    fn enter(&mut self, rank: Rank, wave: Wave) -> u8 {
        let fates = self.fates.get_mut(&rank);
        let Some(fate) = fates.and_then(|fates| fates.get_mut(wave as usize)) else { return 0 };
        let before = *fate;
        *fate |= ENTERED;
        before
    }

    fn fate(&self, rank: Rank, wave: Wave) -> u8 {
        let fates = self.fates.get(&rank);
        fates.and_then(|fates| fates.get(wave as usize)).copied().unwrap_or(0)
    }

    fn take_on_time(&mut self, answer: &Answer, struck: Struck<'_>, found: &mut Found) {
        let mut present = answer.contributors.clone();
        if self.recipe.kind == Kind::None {
            // Its packets arrive one by one; the last one names the missing members.
            let (wave, mut passed) = self.passing.take().unwrap_or_default();
            if wave == answer.wave {
                passed.union_with(present.as_ref());
                present = passed;
            }
            if answer.packet.as_ref().is_some_and(|packet| !packet.header.ends_wave) {
                self.passing = Some((answer.wave, present));
                return;
            }
        }
        let wave = answer.wave as usize;
        if self.answered.len() <= wave {
            self.answered.resize(wave + 1, false);
        }
        if core::mem::replace(&mut self.answered[wave], true) {
            found.push((Rule::Order, "it was answered before".into()));
        } else if self.last.is_some_and(|last| last > answer.wave) {
            let last = self.last.unwrap_or_default();
            found.push((Rule::Order, format!("it comes after that of wave {last}")));
        }
        self.last = Some(answer.wave);
        self.check_missing(answer, present, struck, found);
    }

    fn check_missing(
        &mut self,
        answer: &Answer,
        mut all: RankSet,
        struck: Struck<'_>,
        found: &mut Found,
    ) {
        for missing in &answer.missing {
            for rank in missing.ranks.iter() {
                if all.contains(rank) {
                    found.push((Rule::Missing, format!("rank {rank} is missing and there")));
                }
                if let Err(text) = self.check_reason(rank, answer.wave, &missing.reason, struck) {
                    found.push((Rule::Missing, text));
                }
            }
            all.union_with(missing.ranks.as_ref());
        }
        if all != self.members {
            let left = self.members.difference(all.as_ref());
            let beyond = all.difference(self.members.as_ref());
            let text = format!("neither there nor missing are '{left}', no members '{beyond}'");
            found.push((Rule::Missing, text));
        }
    }

    /// Whether a reason holds: it may be untrue in words only where something was done to a rank.
    fn check_reason(
        &mut self,
        rank: Rank,
        wave: Wave,
        reason: &str,
        struck: Struck<'_>,
    ) -> Result<(), String> {
        let Struck { disturbed, gone } = struck;
        let has_sent = self.fate(rank, wave) & SENT != 0;
        let is_torn = reason.contains("in the middle of a large packet");
        if is_torn && !self.is_tearable(wave, gone) {
            return Err(format!("no back-end that sent in it is gone, and it is torn: '{reason}'"));
        }
        let was_away = reason.contains("not back within") || reason.contains("was not connected");
        // Of one that was given up itself, or came too late, what it sends only after that comes
        // too late as well.
        let is_too_late = reason.starts_with("back-end") || was_away || self.is_timed();
        let is_lost = is_torn || self.recipe.is_cut_and_folded() && is_too_late;
        let fates = self.fates.entry(rank).or_default();
        if fates.len() <= wave as usize && is_lost {
            fates.resize(wave as usize + 1, 0);
        }
        if let Some(fate) = fates.get_mut(wave as usize) {
            *fate |= if is_lost { NAMED | EXCUSED } else { NAMED };
        }
        // The members below a lost process are waited for, whatever they do.
        let is_hasty = self.repairs && reason.contains("communication process") && !was_away;
        if is_hasty {
            return Err(format!("rank {rank} was not waited for, and is missing: '{reason}'"));
        }
        let is_true = if reason.contains("sent nothing") {
            !has_sent || self.drops || self.reborn.contains(rank)
        } else if reason.contains("no answer within") {
            self.is_timed()
        } else {
            // The oracle does not follow the parents after repairs: the reason is accepted
            // for members that were given up or absent, if any member was struck.
            is_torn || disturbed.contains(rank) || was_away && !disturbed.is_empty()
        };
        if is_true && !reason.is_empty() {
            return Ok(());
        }
        let did = if has_sent { "sent" } else { "sent nothing" };
        Err(format!("rank {rank} {did}, nothing was done to it, and it is missing: '{reason}'"))
    }

    /// Whether a large packet of a wave may have lost a contributor in its middle: a back-end that
    /// had sent in the wave is gone, or the stream's time-out may have passed between two chunks.
    fn is_tearable(&self, wave: Wave, gone: &RankSet) -> bool {
        let mut members = gone.clone();
        members.intersect_with(self.members.as_ref());
        let has_lost_one = || members.iter().any(|rank| self.fate(rank, wave) & SENT != 0);
        self.recipe.is_cut_and_folded() && (self.is_timed() || has_lost_one())
    }

    fn is_timed(&self) -> bool {
        matches!(self.wave, WaveRule::Timeout { .. })
    }

    /// Contributions of present back-ends that are in no answer at rest.
    pub(super) fn lacking(
        &self,
        there: &RankSet,
        stream: StreamId,
        (gone, dropped): (&RankSet, &Dropped),
    ) -> Vec<String> {
        let mut lacking = Vec::new();
        if self.is_closed {
            return lacking;
        }
        for (&rank, fates) in self.fates.iter().filter(|(rank, _)| there.contains(**rank)) {
            let is_lost = |fate: u8| fate & (SENT | ENTERED | EXCUSED) == SENT;
            let lost = fates.iter().filter(|&&fate| is_lost(fate)).count() as u64;
            // A wave that timed out before any of its chunks came is in no answer at all, nor is
            // one that all others skipped, and a member sent in only when it had come back.
            let are_refused = (self.is_timed() || gone.contains(rank))
                && self.recipe.is_cut_and_folded()
                && lost <= dropped.above(stream);
            if lost == 0 || are_refused || self.drops && lost <= dropped.by(rank, stream) {
                continue;
            }
            let wave = fates.iter().position(|&fate| is_lost(fate)).unwrap_or(0);
            lacking.push(format!(
                "of what rank {rank} sent, {lost} of {} packets are in no answer; the first is that \
                 of wave {wave}",
                fates.iter().filter(|&&fate| fate & SENT != 0).count()
            ));
        }
        lacking
    }
}
