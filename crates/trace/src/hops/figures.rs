//! Statistics of links, processes and answers.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use sapwood_node::ArrivalSums;
use sapwood_packet::{Rank, StreamId};

use crate::scope_figures::ScopeStatistics;

/// How many of the last values a figure shows apart from all of them: the paper's window.
pub const RECENT_EVENTS: usize = 100;

/// Statistics of one quantity in nanoseconds: of all its values, and of the last
/// [`RECENT_EVENTS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figure {
    /// Of all values.
    pub all: ScopeStatistics,
    recent: VecDeque<u64>,
}

impl Figure {
    pub(super) fn add(&mut self, ns: u64) {
        self.all.add(ns);
        if self.recent.len() == RECENT_EVENTS {
            self.recent.pop_front();
        }
        self.recent.push_back(ns);
    }

    /// Of the last values.
    #[must_use]
    pub fn recent(&self) -> ScopeStatistics {
        let mut statistics = ScopeStatistics::default();
        self.recent.iter().for_each(|&ns| statistics.add(ns));
        statistics
    }

    /// The median of the last values, exactly; none if there is no value.
    #[must_use]
    pub fn recent_median(&self) -> Option<u64> {
        let mut sorted: Vec<u64> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        sorted.get(sorted.len().checked_sub(1)? / 2).copied()
    }
}

/// Figures of a link, named by its child.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeFigures {
    /// The parent, when the last wave passed.
    pub parent: Rank,
    /// From the child's sending to the parent's having the part, whole.
    pub up: OneWay,
    /// From the parent's sending of a packet to the child's having it.
    pub down: OneWay,
    /// Both ways of a question with its answer, out of four time stamps.
    pub two_way: Figure,
    /// How long the child's part lay at the parent before the last part came.
    pub arrival_wait: Figure,
    /// How much later than the first child this one had a packet of the parent's.
    pub departure_wait: Figure,
    /// By how much `up` and `down` may be wrong, either way: the error of the clocks' alignment, in
    /// nanoseconds.
    pub clock_error: u64,
}

/// Times between two clocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneWay {
    /// The times; those inside the error of the clocks count as 0.
    pub figure: Figure,
    /// How many lie inside that error.
    pub undecided: u64,
}

/// Figures of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessFigures {
    /// From the last part to the sending of what was made of all of them.
    pub passing: Figure,
    /// From the first part to the last.
    pub spread: Figure,
    /// Of a back-end: from the question to its answer.
    pub own: Figure,
}

/// What an answer waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blame {
    /// A back-end, between question and answer.
    BackEnd(Rank),
    /// A process, between its last part and its sending.
    Process(Rank),
    /// The link to the parent of this process, both ways.
    Link(Rank),
}

/// A part of the time of all answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlameShare {
    /// What they waited for.
    pub blame: Blame,
    /// For how long, over all answers, in nanoseconds.
    pub ns: u64,
    /// In how many answers.
    pub answers: u64,
}

/// Figures of a stream.
#[derive(Clone, Debug, Default)]
pub struct StreamFigures {
    /// From the question at the front-end to its answer.
    pub elapsed: Figure,
    /// By child.
    pub edges: BTreeMap<Rank, EdgeFigures>,
    /// By process.
    pub processes: BTreeMap<Rank, ProcessFigures>,
    /// Whose parts came last, by parent.
    pub arrivals: BTreeMap<Rank, ArrivalSums>,
    /// At which back-end the path of the parts that came last ends, and in how many waves.
    pub path_ends: BTreeMap<Rank, u64>,
    /// Answers whose time could be cut into parts.
    pub explained: u64,
    pub(super) blame: BTreeMap<Blame, (u64, u64)>,
}

impl StreamFigures {
    /// What the answers waited for, the longest first.
    #[must_use]
    pub fn blame(&self) -> Vec<BlameShare> {
        let share = |(&blame, &(ns, answers))| BlameShare { blame, ns, answers };
        let mut all: Vec<BlameShare> = self.blame.iter().map(share).collect();
        all.sort_by_key(|one| (core::cmp::Reverse(one.ns), one.blame));
        all
    }
}

/// What is lacking in the figures, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopLosses {
    /// Events that processes have noted.
    pub noted: u64,
    /// Of these, events that were overwritten before they were read.
    pub overwritten: u64,
    /// Events that lie at processes, unread.
    pub unread: u64,
    /// Processes that had no room for a further session.
    pub refused: u64,
    /// Waves that were given up without the front-end's part.
    pub unfinished: u64,
    /// Sessions of processes that lapsed, since no question came in time: what was noted by then
    /// and not read is gone, and in no other number here.
    pub lapsed: u64,
}

/// Figures by stream.
pub(super) type ByStream = BTreeMap<StreamId, StreamFigures>;
