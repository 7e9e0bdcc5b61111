//! Streams whose filters are offloaded: because their run time is not known
//! ([`Filter::is_offloaded`](sapwood_filter::Filter::is_offloaded)), or because they were measured
//! slow (`fairness`).
//!
//! The node lends such a stream's chain and its next waves to a [`Job`], and sends on what came of
//! them when it is given the job back. **To the children a wave that is lent has gone on**: what
//! still comes for it is late. **To the parent it has not**: its credit is not granted again, it is
//! not acknowledged, and whatever has to come behind it waits, such as the end of the stream.
//! Should this process die, the children send it again.
//!
//! States are handed over as elsewhere (`replica`); only the copies are made by jobs, and the
//! states of others taken over by them.
//!
//! A job that does not come back within the network's limit is given up: its waves, and all later
//! ones of the stream at this node, fail with that reason.
//!
//! Synchronisation rules that are offloaded are asked in jobs as well (`synchronisation`).

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use sapwood_filter::{Chain, Emitter, Filter, FilterError};
use sapwood_link::Position;
use sapwood_packet::{Packet, StreamId, Values};

use crate::interface::Instant;
use crate::interface::work::Work;
use crate::transform::fairness::SLOW;
use crate::transform::job::{Batch, Job};
use crate::transform::synchronisation::Rule;

/// How long filters may run for one wave, unless the front-end says otherwise.
pub const FILTER_LIMIT: Duration = Duration::from_secs(10);

/// Most waves or packets of one job.
pub(crate) const ITEMS_MAX: usize = 32;
/// A job is to take about this long: more would keep what is done from going on.
pub(crate) const JOB_TIME: Duration = Duration::from_millis(2);
/// Waves that slow filters have to be quick in before they come back into the loop; twice as many
/// each time.
pub(crate) const QUICK_WAVES: u64 = 1024;
/// Emitters that a stream keeps.
pub(crate) const SPARE_EMITTERS_MAX: usize = ITEMS_MAX;
/// How long the end of the network waits for packets that filters are at work on.
pub(crate) const END_WAIT: Duration = Duration::from_millis(500);

/// Where the filters of one direction are.
#[derive(Debug, Default)]
pub(crate) enum Phase {
    /// Here, with nothing to do.
    #[default]
    Idle,
    /// Here, and to be given out.
    Listed,
    /// Out.
    AtWork,
    /// Lost, and why.
    GivenUp(FilterError),
}

/// How many waves or packets the next job has at most.
#[derive(Debug)]
pub(crate) struct Stride(pub(crate) usize);

impl Default for Stride {
    fn default() -> Self {
        Self(1)
    }
}

impl Stride {
    /// The last job took this time.
    pub(crate) fn adapt(&mut self, time: Duration) {
        self.0 = match time {
            time if time <= JOB_TIME => (self.0 * 2).min(ITEMS_MAX),
            time if time > JOB_TIME * 2 => (self.0 / 2).max(1),
            _ => self.0,
        };
    }
}

/// The upward filters of a stream that are offloaded.
#[derive(Debug, Default)]
pub(crate) struct Offload {
    pub(crate) phase: Phase,
    pub(crate) stride: Stride,
    /// Waves in which slow filters have to be quick in a row before they come back into the loop;
    /// none for filters that never do.
    pub(crate) quick_waves_needed: Option<u64>,
    pub(crate) quick_waves: u64,
    /// States of other processes that are to be taken over.
    pub(crate) inherited: Vec<(usize, Values)>,
    /// Whether a copy of the states is to be handed over.
    pub(crate) wants_copy: bool,
    pub(crate) spare: Vec<Emitter>,
}

impl Offload {
    pub(crate) fn of_foreign_filters() -> Self {
        Self::default()
    }

    /// `moves` is how often they have been moved out of the loop, this time included.
    pub(crate) fn of_slow_filters(moves: u32) -> Self {
        let needed = QUICK_WAVES.checked_shl(moves - 1).unwrap_or(u64::MAX);
        Self { quick_waves_needed: Some(needed), ..Self::of_foreign_filters() }
    }

    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.phase, Phase::Listed | Phase::AtWork)
    }

    /// Some waves took this time.
    pub(crate) fn note_time(&mut self, waves: usize, time: Duration) {
        self.stride.adapt(time);
        let is_quick = time * 4 < SLOW * u32::try_from(waves).unwrap_or(u32::MAX);
        self.quick_waves = if is_quick { self.quick_waves + waves as u64 } else { 0 };
    }

    /// Whether slow filters have become quick.
    pub(crate) fn is_done(&self) -> bool {
        self.quick_waves_needed.is_some_and(|needed| self.quick_waves >= needed)
            && matches!(self.phase, Phase::Idle)
            && self.inherited.is_empty()
            && !self.wants_copy
    }
}

/// The downward filters of a stream that are offloaded, and the packets that wait for them.
#[derive(Debug, Default)]
pub(crate) struct DownOffload {
    pub(crate) phase: Phase,
    pub(crate) stride: Stride,
    pub(crate) waiting: VecDeque<Packet>,
    /// Bytes of those that wait, and of those at work.
    pub(crate) bytes: usize,
    /// The place of the first that is at work.
    pub(crate) first: Option<Position>,
    /// Whether the stream closes behind them.
    pub(crate) closes: bool,
    pub(crate) spare: Vec<Emitter>,
}

impl DownOffload {
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.phase, Phase::Listed | Phase::AtWork)
    }

    /// The place of the first packet that has not gone on.
    pub(crate) fn first(&self) -> Option<Position> {
        let waiting = || self.waiting.front().map(|packet| Position::of_downward(&packet.as_ref()));
        self.first.or_else(waiting)
    }
}

/// A job that is out.
#[derive(Debug)]
pub(crate) struct Lent {
    pub(crate) number: u64,
    pub(crate) stream: StreamId,
    pub(crate) work: Work,
    pub(crate) batch: Arc<Batch>,
    /// How far it had come when it was looked at last, and when it is given up unless it has come
    /// farther.
    pub(crate) steps: u64,
    pub(crate) until: Option<Instant>,
}

/// The filters and the rule of a stream that has ended.
#[derive(Debug)]
pub(crate) struct Retired {
    pub(crate) stream: StreamId,
    pub(crate) chain: Chain,
    pub(crate) rule: Option<Rule>,
}

/// The jobs of a node.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(crate) limit: Duration,
    pub(crate) last_number: u64,
    pub(crate) lent: Vec<Lent>,
    /// Filters and rules of streams that have ended. They are dropped where they have run.
    pub(crate) retired: Vec<Retired>,
    /// Why the network ends, once the packets at work have gone down.
    pub(crate) ends: Option<(Instant, String)>,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            limit: FILTER_LIMIT,
            last_number: 0,
            lent: Vec::new(),
            retired: Vec::new(),
            ends: None,
        }
    }
}

impl Jobs {
    /// When something has to be looked at.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let ends = self.ends.as_ref().map(|&(until, _)| until);
        self.lent.iter().filter_map(|lent| lent.until).chain(ends).min()
    }

    /// Whether the network is about to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.ends.is_some()
    }

    /// The number of the next job.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Remembers that a job is out.
    pub(crate) fn lend(&mut self, job: &Job, now: Instant) {
        self.lent.push(Lent {
            number: job.number,
            stream: job.stream,
            work: job.work,
            batch: Arc::clone(&job.batch),
            steps: 0,
            until: (!self.limit.is_zero()).then(|| now + self.limit),
        });
    }

    pub(crate) fn retire(&mut self, stream: StreamId, chain: Chain, rule: Option<Rule>) {
        if !chain.is_pass() || rule.is_some() {
            self.retired.push(Retired { stream, chain, rule });
        }
    }
}
