//! The parts that `profile.json` and the records of rounds have in common.
//!
//! Times are in nanoseconds unless a name ends in `_s`. Rank sets are text, as `0-3,7`.

use std::time::Duration;

use sapwood_packet::Rank;
use sapwood_profile::{
    ActivityKind, ActivityStatistics, ClassTotal, EventKey, EventStatistics, Load,
    MetricStatistics, RankState, Round, SizeClass, SizeHistogram,
};
use serde::{Deserialize, Serialize};

use super::EventWait;
use crate::{Missing, standstill};

/// How the covered ranks have spent their time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Time {
    /// Time since the ranks began to count.
    pub wall_ns: Metric,
    /// Of this, inside of MPI.
    pub mpi_ns: Metric,
    /// Of this, outside of MPI.
    pub compute_ns: Metric,
    /// Share of MPI in parts per million.
    pub mpi_ppm: Metric,
    /// The POP project's efficiencies; none where no rank has computed.
    pub efficiency: Option<Efficiency>,
}

impl Time {
    pub(crate) fn of(load: &Load) -> Self {
        let efficiency = load.efficiency().map(|efficiency| Efficiency {
            parallel: efficiency.parallel,
            load_balance: efficiency.load_balance,
            communication: efficiency.communication,
        });
        Self {
            wall_ns: Metric::of(&load.wall_ns),
            mpi_ns: Metric::of(&load.mpi_ns),
            compute_ns: Metric::of(&load.compute_ns),
            mpi_ppm: Metric::of(&load.mpi_ppm),
            efficiency,
        }
    }
}

/// Efficiencies, each from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Efficiency {
    /// Load balance times communication efficiency.
    pub parallel: f64,
    /// Mean computing time over the largest one.
    pub load_balance: f64,
    /// Largest computing time over the wall time.
    pub communication: f64,
}

/// What ranks do at the moment of a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// The MPI function; none outside of MPI.
    pub function: Option<String>,
    /// Name of the communicator; empty where none is known.
    pub communicator: String,
    /// Name of the innermost open region; empty where none is open.
    pub region: String,
    /// What the system says of the process.
    pub condition: String,
    /// Whether it lasts for longer than the interval.
    pub is_long: bool,
    /// The ranks.
    pub ranks: String,
    /// Ranks that they communicate with.
    pub peers: String,
    /// Whether a rank takes from any source.
    pub any_source: bool,
    /// The shortest time in it.
    pub shortest_s: f64,
    /// The longest time in it.
    pub longest_s: f64,
    /// The rank with the longest time.
    pub longest_rank: Rank,
}

impl Activity {
    pub(crate) fn of((kind, statistics): (&ActivityKind, &ActivityStatistics)) -> Self {
        Self {
            function: kind.function_name(),
            communicator: kind.communicator.clone(),
            region: kind.region.clone(),
            condition: kind.condition.name().to_owned(),
            is_long: kind.is_long,
            ranks: statistics.ranks.to_string(),
            peers: statistics.peers.to_string(),
            any_source: statistics.any_peer,
            shortest_s: seconds(statistics.shortest_ns),
            longest_s: seconds(statistics.longest_ns),
            longest_rank: statistics.longest_rank,
        }
    }
}

/// A time in which no MPI call returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// When the last rank began to wait, from the start of the program.
    pub began_s: f64,
    /// When it was last seen.
    pub seen_s: f64,
    /// The ranks that wait.
    pub waiting: Vec<Activity>,
    /// The ranks that do not come.
    pub absent: Vec<Activity>,
    /// Ranks that have ended, and so do not come.
    #[serde(default)]
    pub ended: String,
    /// Ranks of which nothing is known.
    pub unknown: String,
}

impl Episode {
    pub(crate) fn of(episode: &standstill::Episode) -> Self {
        let activities = |entries: &[standstill::Entry]| {
            entries.iter().map(|(kind, statistics)| Activity::of((kind, statistics))).collect()
        };
        Self {
            began_s: episode.began.as_secs_f64(),
            seen_s: episode.seen.as_secs_f64(),
            waiting: activities(&episode.standstill.waiting),
            absent: activities(&episode.standstill.absent),
            ended: episode.standstill.ended.to_string(),
            unknown: episode.standstill.unknown.to_string(),
        }
    }
}

/// How far the covered ranks are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct States {
    /// Ranks that run.
    pub running: String,
    /// Ranks that called `MPI_Finalize`.
    pub finalized: String,
    /// Ranks that ended in order without it.
    pub exited: String,
    /// Ranks that ended without a word.
    pub lost: String,
}

impl States {
    pub(crate) fn of(round: &Round) -> Self {
        let ranks = |state| round.ranks_in(state).to_string();
        Self {
            running: ranks(RankState::Running),
            finalized: ranks(RankState::Finalized),
            exited: ranks(RankState::Exited),
            lost: ranks(RankState::Lost),
        }
    }
}

/// Ranks that are missing for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// The ranks.
    pub ranks: String,
    /// Why.
    pub reason: String,
}

impl Loss {
    pub(crate) fn of(missing: Missing) -> Self {
        Self { ranks: missing.ranks.to_string(), reason: missing.reason }
    }
}

/// Totals of a function class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// The name.
    pub name: String,
    /// How many events are of this class.
    pub events: usize,
    /// Calls of all ranks.
    pub calls: u128,
    /// Inclusive time of all ranks.
    pub time_ns: u128,
    /// Bytes of all ranks.
    pub bytes: u128,
}

impl Class {
    pub(crate) fn of(total: ClassTotal) -> Self {
        Self {
            name: total.class.name().to_owned(),
            events: total.events,
            calls: total.count,
            time_ns: total.time_ns,
            bytes: total.bytes,
        }
    }
}

/// An event over the ranks that have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The name.
    pub name: String,
    /// Its function class.
    pub class: String,
    /// Size class of the communicator: `ceil(log2(size))`.
    pub communicator_size_class: Option<u8>,
    /// How many ranks have the event.
    pub ranks: u32,
    /// Calls that returned.
    pub calls: Metric,
    /// Inclusive time.
    pub time_ns: Metric,
    /// Bytes by the rules of `functions.table`.
    pub bytes: Metric,
    /// Largest time over the mean, less one.
    pub imbalance: Option<f64>,
    /// Calls that moved at least one byte; none for an event that moves none.
    #[serde(default)]
    pub messages: Option<u64>,
    /// Bytes over these.
    #[serde(default)]
    pub mean_bytes: Option<f64>,
    /// Calls by size class: 0 bytes, 1, 2, 3 to 4, 5 to 8, and so on; classes without calls at the
    /// end are left out.
    #[serde(default)]
    pub size_histogram: Option<Vec<u64>>,
    /// Time in it before another rank came; none where that is not known.
    #[serde(default)]
    pub wait_ns: Option<EventWait>,
}

impl Event {
    pub(crate) fn of((key, statistics): &(EventKey, EventStatistics)) -> Self {
        let size_class = key.size_class();
        Self {
            name: key.name().into_owned(),
            class: key.class().name().to_owned(),
            communicator_size_class: (size_class != SizeClass::NONE).then(|| size_class.code()),
            ranks: statistics.ranks(),
            calls: Metric::of(&statistics.count),
            time_ns: Metric::of(&statistics.time_ns),
            bytes: Metric::of(&statistics.bytes),
            imbalance: statistics.time_ns.imbalance(),
            messages: None,
            mean_bytes: None,
            size_histogram: None,
            wait_ns: None,
        }
    }

    /// The events of a round, with the sizes of what they moved.
    pub(crate) fn of_round(round: &Round) -> Vec<Self> {
        let of = |event: &(EventKey, EventStatistics)| Self::of(event).with(round.sizes(&event.0));
        round.events().iter().map(of).collect()
    }

    #[allow(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
    fn with(mut self, sizes: Option<&SizeHistogram>) -> Self {
        let Some(sizes) = sizes else { return self };
        let messages = sizes.messages();
        let last = sizes.calls().iter().rposition(|&calls| calls > 0).map_or(0, |last| last + 1);
        self.mean_bytes = (messages > 0).then(|| self.bytes.sum as f64 / messages as f64);
        self.messages = Some(messages);
        self.size_histogram = Some(sizes.calls()[..last].to_vec());
        self
    }
}

/// Statistics of one number over ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Sum over the ranks that have the event.
    pub sum: u128,
    /// Mean over these ranks.
    pub mean: f64,
    /// Standard deviation; none where it cannot be computed.
    pub standard_deviation: Option<f64>,
    /// Smallest value.
    pub min: u64,
    /// Lowest rank that has it.
    pub min_rank: Rank,
    /// Largest value.
    pub max: u64,
    /// Lowest rank that has it.
    pub max_rank: Rank,
}

impl Metric {
    pub(crate) fn of(statistics: &MetricStatistics) -> Self {
        Self {
            sum: statistics.sum(),
            mean: statistics.mean(),
            standard_deviation: statistics.standard_deviation(),
            min: statistics.min(),
            min_rank: statistics.min_rank(),
            max: statistics.max(),
            max_rank: statistics.max_rank(),
        }
    }
}

pub(crate) fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}
