//! `profile.json`: the report for programs, as `docs/schema/profile-1.json` describes it.
//!
//! Sums are exact integers and may be wider than 64 bits. Rank sets are text, as `0-3,7`.

use std::time::Duration;

use sapwood_packet::Rank;
use sapwood_profile::{
    ActivityKind, ActivityStatistics, ClassTotal, EventKey, EventStatistics, Load,
    MetricStatistics, RankState, Round, SizeClass,
};
use serde::Serialize;

use crate::loss::losses;
use crate::{Report, standstill};

/// Which form a `profile.json` has. A member that is added leaves it as it is; one that changes its
/// meaning or goes away makes it `sapwood.profile/2`.
const SCHEMA: &str = "sapwood.profile/1";

impl Report {
    /// The report for programs: the content of `profile.json`.
    #[must_use]
    pub fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(&Document::of(self))
            .expect("numbers, text and lists of them are always JSON");
        text.push('\n');
        text
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    program: &'a str,
    command: &'a [String],
    mpi: &'a str,
    world_size: u32,
    ranks_covered: u64,
    covered: String,
    states: States,
    missing: Vec<Loss>,
    tree: TreeFacts<'a>,
    rounds: u64,
    elapsed_s: f64,
    classes: Vec<Class>,
    events: Vec<Event>,
    dropped: u64,
    unreadable: u64,
    activities: Vec<Activity>,
    standstills: Vec<Episode>,
    standstills_left_out: u64,
    time: Option<Time>,
}

/// How the covered ranks have spent their time.
#[derive(Serialize)]
struct Time {
    wall_ns: Metric,
    mpi_ns: Metric,
    compute_ns: Metric,
    mpi_ppm: Metric,
    efficiency: Option<Efficiency>,
}

#[derive(Serialize)]
struct Efficiency {
    parallel: f64,
    load_balance: f64,
    communication: f64,
}

/// What ranks did at the last round.
#[derive(Serialize)]
struct Activity {
    function: Option<String>,
    communicator: String,
    region: String,
    condition: &'static str,
    is_long: bool,
    ranks: String,
    peers: String,
    any_source: bool,
    shortest_s: f64,
    longest_s: f64,
    longest_rank: Rank,
}

#[derive(Serialize)]
struct Episode {
    began_s: f64,
    seen_s: f64,
    waiting: Vec<Activity>,
    absent: Vec<Activity>,
    unknown: String,
}

#[derive(Serialize)]
struct States {
    running: String,
    finalized: String,
    exited: String,
    lost: String,
}

#[derive(Serialize)]
struct Loss {
    ranks: String,
    reason: String,
}

#[derive(Serialize)]
struct TreeFacts<'a> {
    topology: &'a str,
    nodes: u64,
}

#[derive(Serialize)]
struct Class {
    name: &'static str,
    events: usize,
    calls: u128,
    time_ns: u128,
    bytes: u128,
}

#[derive(Serialize)]
struct Event {
    name: String,
    class: &'static str,
    communicator_size_class: Option<u8>,
    ranks: u32,
    calls: Metric,
    time_ns: Metric,
    bytes: Metric,
    imbalance: Option<f64>,
}

#[derive(Serialize)]
struct Metric {
    sum: u128,
    mean: f64,
    standard_deviation: Option<f64>,
    min: u64,
    min_rank: Rank,
    max: u64,
    max_rank: Rank,
}

impl<'a> Document<'a> {
    fn of(report: &'a Report) -> Self {
        let round = &report.round;
        let losses = losses(round, &report.missing).into_iter();
        Self {
            schema: SCHEMA,
            program: &report.program,
            command: &report.command,
            mpi: &report.mpi,
            world_size: round.world_size(),
            ranks_covered: round.covered().len(),
            covered: round.covered().to_string(),
            states: States::of(round),
            missing: losses
                .map(|loss| Loss { ranks: loss.ranks.to_string(), reason: loss.reason })
                .collect(),
            tree: TreeFacts { topology: &report.tree.topology, nodes: report.tree.nodes },
            rounds: report.rounds,
            elapsed_s: report.elapsed.as_secs_f64(),
            classes: round.classes().into_iter().map(Class::of).collect(),
            events: round.events().iter().map(Event::of).collect(),
            dropped: round.dropped(),
            unreadable: round.unreadable(),
            activities: round.activities().iter().map(Activity::of).collect(),
            standstills: report.standstills.episodes.iter().map(Episode::of).collect(),
            standstills_left_out: report.standstills.more,
            time: round.load().map(Time::of),
        }
    }
}

impl States {
    fn of(round: &Round) -> Self {
        let ranks = |state| round.ranks_in(state).to_string();
        Self {
            running: ranks(RankState::Running),
            finalized: ranks(RankState::Finalized),
            exited: ranks(RankState::Exited),
            lost: ranks(RankState::Lost),
        }
    }
}

impl Time {
    fn of(load: &Load) -> Self {
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

impl Activity {
    fn of((kind, statistics): (&ActivityKind, &ActivityStatistics)) -> Self {
        Self {
            function: kind.function_name(),
            communicator: kind.communicator.clone(),
            region: kind.region.clone(),
            condition: kind.condition.name(),
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

impl Episode {
    fn of(episode: &standstill::Episode) -> Self {
        let activities = |entries: &[standstill::Entry]| {
            entries.iter().map(|(kind, statistics)| Activity::of((kind, statistics))).collect()
        };
        Self {
            began_s: episode.began.as_secs_f64(),
            seen_s: episode.seen.as_secs_f64(),
            waiting: activities(&episode.standstill.waiting),
            absent: activities(&episode.standstill.absent),
            unknown: episode.standstill.unknown.to_string(),
        }
    }
}

fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}

impl Class {
    fn of(total: ClassTotal) -> Self {
        Self {
            name: total.class.name(),
            events: total.events,
            calls: total.count,
            time_ns: total.time_ns,
            bytes: total.bytes,
        }
    }
}

impl Event {
    fn of((key, statistics): &(EventKey, EventStatistics)) -> Self {
        let size_class = key.size_class();
        Self {
            name: key.name().into_owned(),
            class: key.class().name(),
            communicator_size_class: (size_class != SizeClass::NONE).then(|| size_class.code()),
            ranks: statistics.ranks(),
            calls: Metric::of(&statistics.count),
            time_ns: Metric::of(&statistics.time_ns),
            bytes: Metric::of(&statistics.bytes),
            imbalance: statistics.time_ns.imbalance(),
        }
    }
}

impl Metric {
    fn of(statistics: &MetricStatistics) -> Self {
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
