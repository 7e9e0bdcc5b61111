//! The synchronisation rule of a stream: a user's, which decides when a wave goes on that a child
//! has not given a part to yet. It is asked about the first open wave alone, when another child has
//! given its part, and when the time is up that the rule has named.
//!
//! A rule whose run time is not known is asked in a [`Job`](crate::Job), as filters
//! that are offloaded are called (`offload`). Until it has answered it is asked nothing else; waves
//! that are complete meanwhile go on without it. One that does not answer within the network's
//! limit is given up: from then on every wave that it would be asked about fails.

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use sapwood_filter::{Arrivals, FilterError, Synchronisation};
use sapwood_link::Position;
use sapwood_packet::{Rank, RankSet, StreamId};

use crate::interface::Instant;

/// A rule, wherever it is.
pub(crate) struct Rule(pub(crate) Box<dyn Synchronisation>);

/// A rule of a stream, and what it was asked last.
#[derive(Debug)]
pub(crate) struct Decider {
    pub(crate) state: RuleState,
    /// Which wave, and how many children it still waited for.
    pub(crate) asked: Option<(Position, u32)>,
    /// When it wants to be asked again.
    pub(crate) due: Option<Instant>,
}

/// Where the rule is.
#[derive(Debug)]
pub(crate) enum RuleState {
    /// Here, to be asked in the loop.
    Here(Rule),
    /// Here, to be asked in a job.
    Offload(Rule),
    /// Here, and to be given out.
    Listed(Rule),
    /// Out.
    AtWork,
    /// Lost, and why.
    GivenUp(FilterError),
}

/// What a rule is asked: what has come of a wave.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) position: Position,
    pub(crate) waiting: u32,
    pub(crate) stream: StreamId,
    pub(crate) rank: Rank,
    pub(crate) is_root: bool,
    pub(crate) arrived: u32,
    pub(crate) contributors: RankSet,
    pub(crate) back_ends: u32,
    pub(crate) elapsed: Duration,
    pub(crate) now: Instant,
}

impl Decider {
    pub(crate) fn new(rule: Box<dyn Synchronisation>) -> Self {
        let state = match rule.is_offloaded() {
            true => RuleState::Offload(Rule(rule)),
            false => RuleState::Here(Rule(rule)),
        };
        Self { state, asked: None, due: None }
    }

    /// The rule, if it is here and must not be let go of in the loop.
    pub(crate) fn retire(&mut self) -> Option<Rule> {
        match core::mem::replace(&mut self.state, RuleState::AtWork) {
            RuleState::Offload(rule) | RuleState::Listed(rule) => Some(rule),
            other => {
                self.state = other;
                None
            }
        }
    }
}

impl Question {
    /// As a rule is shown it.
    pub(crate) fn arrivals(&self) -> Arrivals<'_> {
        Arrivals {
            stream: self.stream,
            wave: self.position.wave,
            rank: self.rank,
            is_root: self.is_root,
            arrived: self.arrived,
            expected: self.arrived + self.waiting,
            contributors: self.contributors.as_ref(),
            back_ends: self.back_ends,
            elapsed: self.elapsed,
        }
    }

    /// What is new as long as the rule has not been asked it.
    pub(crate) fn news(&self) -> (Position, u32) {
        (self.position, self.waiting)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rule")
    }
}
