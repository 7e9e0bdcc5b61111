//! What must be true of a run, whatever happens in it.
//!
//! The oracle is told what was sent and answered, and which processes were struck. It knows nothing
//! of how nodes work and does not influence the run: it only records violations.

mod down;
mod up;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sapwood_filter::WaveRule;
use sapwood_node::{Answer, Policy};
use sapwood_packet::{Rank, RankSet, StreamId, Wave};

use crate::agenda::Time;
use crate::dropped::Dropped;
use crate::payload::Recipe;
use crate::scenario::StreamPlan;

/// A rule that every run has to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// An answer's value is what its contributors sent.
    Value,
    /// No back-end is in a wave twice.
    Twice,
    /// Every member of a stream is in a wave or named as missing, for a reason that holds.
    Missing,
    /// Waves are answered once, in order.
    Order,
    /// At rest, what a back-end sent that is still there has entered an answer.
    Lost,
    /// Packets that go down arrive once, in order and completely.
    Down,
    /// No queue grows beyond its bound.
    Bound,
    /// Nothing waits for ever: the tree comes to rest, and starts and answers in time.
    Deadline,
    /// All processes end after the network has.
    Ending,
    /// No process asks to be woken without end.
    Wakes,
    /// The front-end's list of members is right.
    View,
    /// No orphan is adopted while its old parent may still forward its data.
    Fence,
    /// No process breaks a link because of a message from an honest process.
    Distrust,
    /// A node's own code failed.
    Panic,
}

impl Rule {
    /// A word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Twice => "twice",
            Self::Missing => "missing",
            Self::Order => "order",
            Self::Lost => "lost",
            Self::Down => "down",
            Self::Bound => "bound",
            Self::Deadline => "deadline",
            Self::Ending => "ending",
            Self::Wakes => "wakes",
            Self::View => "view",
            Self::Fence => "fence",
            Self::Distrust => "distrust",
            Self::Panic => "panic",
        }
    }
}

/// A rule that a run has broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// When, in virtual nanoseconds since the run began.
    pub at: u64,
    /// What was observed.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.at as f64 / 1e6;
        write!(f, "{} at {milliseconds:.3} ms: {}", self.rule.name(), self.text)
    }
}

/// What is demanded when communication processes die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The processes below a lost process, or behind a broken link, are lost as well.
    Losses,
    /// Each living process is adopted again, and nothing that it sent is lost.
    Recovery,
}

/// Most violations that are written down; the first ones say most.
const VIOLATIONS_MAX: usize = 32;

/// The state of a contribution.
const SENT: u8 = 1;
/// It is in an answer.
const ENTERED: u8 = 2;
/// An answer said that it is missing.
const NAMED: u8 = 4;
/// It may be lost, for a reason that an answer has stated.
const EXCUSED: u8 = 8;
/// It may arrive once more, from another process of that rank.
const REPEATED: u8 = 16;

/// The ranks that faults have met.
#[derive(Clone, Copy, Debug)]
struct Struck<'a> {
    disturbed: &'a RankSet,
    gone: &'a RankSet,
}

/// The state of one stream.
#[derive(Debug)]
struct Known {
    recipe: Recipe,
    wave: WaveRule,
    drops: bool,
    /// Whether the tree repairs itself.
    repairs: bool,
    members: RankSet,
    is_closed: bool,
    /// By rank, and there by wave: the state of its contribution.
    fates: BTreeMap<Rank, Vec<u8>>,
    /// By wave: whether it has been answered on time.
    answered: Vec<bool>,
    /// Of the wave whose packets arrive one by one: its number, and the ranks that have arrived.
    passing: Option<(Wave, RankSet)>,
    /// The last wave that was answered on time.
    last: Option<Wave>,
    /// Back-ends whose place another process has taken since the stream opened. No wave waits for
    /// it after its ancestors were told that no member is left.
    reborn: RankSet,
    down: down::Downward,
}

/// Everything that was sent, and its state.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    repairs: bool,
    /// Longer packets are cut.
    chunk_bytes: usize,
    streams: BTreeMap<StreamId, Known>,
    /// Back-ends to which something was done, or to a process or link above them.
    disturbed: RankSet,
    /// Back-ends that were reported lost: packets that went down meanwhile are not kept for them.
    given_up: RankSet,
    /// Back-ends that died, left, or were reported lost: only these can tear a large packet.
    gone: RankSet,
    pub(crate) answers: u64,
    pub(crate) contributions: u64,
    pub(crate) received: u64,
    violations: Vec<Violation>,
}

impl Oracle {
    /// For a tree that repairs itself, or one that only names missing members.
    pub(crate) fn new(expect: Expect, chunk_bytes: usize) -> Self {
        Self { repairs: expect == Expect::Recovery, chunk_bytes, ..Self::default() }
    }

    pub(crate) fn violate(&mut self, now: Time, rule: Rule, text: String) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation { rule, at: now, text });
        }
    }

    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }

    /// A stream has opened.
    pub(crate) fn opened(&mut self, stream: StreamId, plan: &StreamPlan, members: RankSet) {
        let Self { chunk_bytes, .. } = *self;
        let recipe = Recipe { kind: plan.kind, stream, length: plan.length, chunk_bytes };
        let known = Known {
            recipe,
            wave: plan.wave,
            drops: plan.policy == Policy::DropOldest,
            repairs: self.repairs,
            members,
            is_closed: false,
            fates: BTreeMap::new(),
            answered: Vec::new(),
            passing: None,
            last: None,
            reborn: RankSet::new(),
            down: down::Downward::default(),
        };
        self.streams.insert(stream, known);
    }

    /// How a stream's packets are made.
    pub(crate) fn recipe(&self, stream: StreamId) -> Option<Recipe> {
        self.streams.get(&stream).map(|known| known.recipe)
    }

    /// The front-end has closed a stream: packets under way on it may be lost.
    pub(crate) fn closed(&mut self, stream: StreamId) {
        if let Some(known) = self.streams.get_mut(&stream) {
            known.is_closed = true;
        }
    }

    /// The front-end was told that these are lost; they may come back.
    pub(crate) fn given_up(&mut self, ranks: &RankSet) {
        self.given_up.union_with(ranks.as_ref());
        self.gone.union_with(ranks.as_ref());
    }

    /// A back-end has died, or leaves.
    pub(crate) fn died(&mut self, rank: Rank) {
        self.gone.insert(rank);
    }

    /// These back-ends, or processes on which they depend, were struck.
    pub(crate) fn disturbed(&mut self, ranks: &RankSet) {
        self.disturbed.union_with(ranks.as_ref());
    }

    /// Another process has come in the place of a back-end that was gone. What that one sent and
    /// is in no answer is lost, and where nothing is waited for, waves are counted anew.
    pub(crate) fn reborn(&mut self, rank: Rank) {
        for known in self.streams.values_mut() {
            let is_immediate = known.wave == WaveRule::Immediate;
            for fate in known.fates.entry(rank).or_default() {
                *fate |= if is_immediate { EXCUSED | REPEATED } else { EXCUSED };
            }
            known.reborn.insert(rank);
            known.down.reborn(rank);
        }
    }

    /// A back-end has sent in a wave.
    pub(crate) fn sent(&mut self, stream: StreamId, rank: Rank, wave: Wave) {
        let Some(known) = self.streams.get_mut(&stream) else { return };
        let fates = known.fates.entry(rank).or_default();
        let wave = wave as usize;
        if fates.len() <= wave {
            fates.resize(wave + 1, 0);
        }
        fates[wave] |= SENT;
    }

    /// Records an answer.
    pub(crate) fn answer(&mut self, now: Time, answer: &Answer) {
        self.answers += 1;
        let Some(known) = self.streams.get_mut(&answer.stream) else {
            let text = alloc::format!("an answer of stream {}, which never opened", answer.stream);
            return self.violate(now, Rule::Order, text);
        };
        let mut found = Vec::new();
        let fates = Struck { disturbed: &self.disturbed, gone: &self.gone };
        self.contributions += known.take(answer, fates, &mut found);
        for (rule, text) in found {
            let (stream, wave) = (answer.stream, answer.wave);
            let late = if answer.is_late { ", late" } else { "" };
            let text = alloc::format!("stream {stream} wave {wave}{late}: {text}");
            self.violate(now, rule, text);
        }
    }

    /// The front-end has sent a packet of this number to these back-ends.
    pub(crate) fn broadcast(&mut self, stream: StreamId, destinations: RankSet) -> u64 {
        self.streams.get_mut(&stream).map_or(0, |known| known.down.sent(destinations))
    }

    /// A back-end has received a packet: this process, which has that rank.
    pub(crate) fn received(
        &mut self,
        now: Time,
        stream: StreamId,
        (process, rank): (usize, Rank),
        number: u64,
    ) {
        self.received += 1;
        let Some(known) = self.streams.get_mut(&stream) else { return };
        if let Err(text) = known.down.received(process, rank, number) {
            let text = alloc::format!("stream {stream}: {text}");
            self.violate(now, Rule::Down, text);
        }
    }

    /// Those of these back-ends that everything which goes down is kept for.
    fn kept_for(&self, there: &RankSet) -> RankSet {
        there.difference(self.given_up.as_ref())
    }

    /// Whether nothing is missing that these back-ends, which are still there, sent or are to
    /// receive.
    pub(crate) fn is_complete(&self, there: &RankSet, dropped: &Dropped) -> bool {
        self.streams.iter().all(|(&stream, known)| {
            known.lacking(there, stream, (&self.gone, dropped)).is_empty()
                && known.down_lacking(&self.kept_for(there), &self.disturbed).is_none()
        })
    }

    /// As [`Oracle::is_complete`], and records what is missing.
    pub(crate) fn demand_complete(&mut self, now: Time, there: &RankSet, dropped: &Dropped) {
        let mut found = Vec::new();
        for (&stream, known) in &self.streams {
            for text in known.lacking(there, stream, (&self.gone, dropped)) {
                found.push((Rule::Lost, alloc::format!("stream {stream}: {text}")));
            }
            if let Some(text) = known.down_lacking(&self.kept_for(there), &self.disturbed) {
                found.push((Rule::Down, alloc::format!("stream {stream}: {text}")));
            }
        }
        for (rule, text) in found {
            self.violate(now, rule, text);
        }
    }
}
