//! Whether a tree answers once nothing strikes any more: a fresh stream to all back-ends that the
//! front-end lists, opened after the last fault, before the tree has come to rest.
//!
//! A back-end that has ended without the front-end's knowledge is a member of it, so that it waits
//! for ever where that is not told. Its answer is judged by the oracle, as any other: contributors
//! and missing together are its members.

use alloc::format;
use core::time::Duration;

use sapwood_filter::WaveRule;
use sapwood_node::{Answer, Event, Policy, Recovery};
use sapwood_packet::{RankSet, StreamId, nanoseconds};

use crate::agenda::{SECOND, Time};
use crate::oracle::Rule;
use crate::process::State;
use crate::scenario::{Kind, Members, StreamPlan};
use crate::world::{FRONT_END, World};

/// The state of the fresh stream, and the back-ends that have been named.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    stream: Option<StreamId>,
    opened_at: Time,
    answered_at: Option<Time>,
    /// Back-ends that the front-end's application was told of, and those that it was told to be
    /// gone.
    listed: RankSet,
    named: RankSet,
}

impl Fresh {
    /// The front-end's application receives an event.
    pub(crate) fn told(&mut self, event: &Event) {
        match event {
            Event::Ready { back_ends, .. } | Event::Joined { back_ends } => {
                self.listed.union_with(back_ends.as_ref());
                self.named.subtract(back_ends.as_ref());
            }
            Event::Lost { back_ends, .. } => self.named.union_with(back_ends.as_ref()),
            _ => {}
        }
    }

    /// It receives an answer.
    pub(crate) fn answered(&mut self, now: Time, answer: &Answer) {
        if self.stream == Some(answer.stream) {
            self.answered_at.get_or_insert(now);
        }
    }
}

impl World {
    /// No back-end that the front-end's application was told to be gone is on its list.
    pub(crate) fn check_list(&mut self) {
        // Back-ends that join before the start is complete are reported when it is.
        if self.fresh.named.is_empty() || !self.front_end.has_begun() {
            return;
        }
        let mut both = self.processes[FRONT_END].node.application().back_ends();
        both.intersect_with(self.fresh.named.as_ref());
        if !both.is_empty() {
            let text = format!("back-ends '{both}' are listed, and were told of as lost");
            self.oracle.violate(self.now, Rule::View, text);
            self.fresh.named.subtract(both.as_ref());
        }
    }

    /// Opens a stream to all back-ends that the front-end lists.
    pub(crate) fn ask_everyone(&mut self) {
        if self.processes[FRONT_END].node.application().back_ends().is_empty() {
            return;
        }
        let index = self.scenario.streams.len();
        self.scenario.streams.push(plan());
        self.front_end.add_stream();
        self.open(index);
        self.fresh.stream = self.streams.iter().find(|&(_, &at)| at == index).map(|(&id, _)| id);
        self.fresh.opened_at = self.now;
        self.poke(FRONT_END, self.now);
    }

    /// Whether the fresh stream still owes its answer: one of which all members are gone owes none.
    pub(crate) fn waits_for_answer(&mut self) -> bool {
        let Some(stream) = self.fresh.stream else { return false };
        if self.processes[FRONT_END].node.application().is_deserted(stream) {
            self.fresh.answered_at.get_or_insert(self.now);
        }
        self.fresh.answered_at.is_none()
    }

    /// The fresh stream has answered in time, and every back-end that has ended was named.
    pub(crate) fn check_fresh(&mut self, there: &RankSet) {
        let limit = answer_limit(&self.scenario.recovery);
        let waits = self.waits_for_answer();
        let until = self.fresh.answered_at.unwrap_or(self.now);
        let taken = until.saturating_sub(self.fresh.opened_at);
        if self.fresh.stream.is_some() && (waits || taken > limit) {
            let how = if waits { "has not answered" } else { "answered only" };
            let (taken, limit) = (taken / 1_000_000, limit / 1_000_000);
            let text = format!("a fresh stream {how} after {taken} ms; its limit is {limit} ms");
            self.oracle.violate(self.now, Rule::Deadline, text);
        }
        for process in 0..self.processes.len() {
            let one = &self.processes[process];
            let has_ended = matches!(one.state, State::Ended | State::Crashed);
            let Some(rank) = one.rank.filter(|_| has_ended) else { continue };
            let is_news = self.fresh.listed.contains(rank) && !self.fresh.named.contains(rank);
            if is_news && !there.contains(rank) {
                let text = format!("rank {rank} has ended, and the front-end was not told");
                self.oracle.violate(self.now, Rule::View, text);
            }
        }
    }
}

/// The smallest of streams: one wave of all, at once.
fn plan() -> StreamPlan {
    StreamPlan {
        kind: Kind::Sum,
        wave: WaveRule::All,
        policy: Policy::default(),
        window_bytes: None,
        members: Members::Everyone,
        length: 0,
        opens: 0,
        closes: None,
        waves: 1,
        period: 0,
        skips: false,
        broadcasts: alloc::vec::Vec::new(),
    }
}

/// Within how long it has to answer: a silent process is noticed, its place is held open for those
/// below it, which look for another parent, and so for one more that ends meanwhile.
fn answer_limit(recovery: &Recovery) -> Time {
    let Recovery { orphan_limit, grace, silence, .. } = *recovery;
    let terms: Duration = silence + grace + orphan_limit;
    nanoseconds(terms).saturating_add(WORK_MAX)
}

/// How long everything else may take: what is under way before it on slow links.
const WORK_MAX: Time = 30 * SECOND;
