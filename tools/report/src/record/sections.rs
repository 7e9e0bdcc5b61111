//! The sections of a record that come from streams of their own.

use std::collections::BTreeMap;

use sapwood_packet::Rank;
use serde::{Deserialize, Serialize};

use super::{Event, Metric};
use crate::text::{agreeing, ranks_text};

/// A number of each rank, or of bins of neighbouring ranks where there are many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankValues {
    /// What the numbers are, such as `mpi_ppm`.
    pub metric: String,
    /// Ranks in each bin, from 1; the last bin may have fewer.
    pub ranks_per_bin: u32,
    /// The mean of each bin; none where no rank of it is covered.
    pub mean: Vec<Option<f64>>,
    /// The largest value in each bin.
    pub max: Vec<Option<f64>>,
}

/// Edges and counts of a histogram.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bins {
    /// The smallest value.
    pub low: f64,
    /// The largest value.
    pub high: f64,
    /// Ranks in each of the bins of equal width between the two; the last one holds `high`.
    pub counts: Vec<u64>,
}

/// The distribution of an event's metric over the ranks that have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Name of the event.
    pub event: String,
    /// Size class of its communicator.
    pub communicator_size_class: Option<u8>,
    /// `calls`, `time_ns` or `bytes`.
    pub metric: String,
    /// `three-phase`, exact, or `sketch`.
    pub method: String,
    /// The bins.
    pub bins: Bins,
    /// Ranks below `low`, which came late to the first of three phases.
    #[serde(default)]
    pub under: u64,
    /// Ranks above `high`.
    #[serde(default)]
    pub over: u64,
}

/// One class of a classification: ranks that agree in the chosen events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankClass {
    /// A number that stays the same from round to round.
    pub id: u64,
    /// Its ranks.
    pub ranks: String,
    /// How many ranks that are.
    pub size: u64,
    /// Names of the chosen events that its ranks have.
    pub names: Vec<String>,
    /// Its events over its ranks.
    pub events: Vec<Event>,
    /// Distributions over its ranks.
    #[serde(default)]
    pub histograms: Vec<Histogram>,
}

/// Ranks as classes by one scheme.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Classification {
    /// The scheme: `all`, `mpi`, `regex:EXPRESSION`, `depth:N` or a name of the user's.
    pub scheme: String,
    /// Bytes that the ranks' profiles would be over bytes of the classes, in this round.
    pub reduction_factor: f64,
    /// The same over all rounds.
    pub cumulated_factor: f64,
    /// The classes, the largest first.
    pub classes: Vec<RankClass>,
    /// Classes that were left out because there were too many.
    #[serde(default)]
    pub left_out: u64,
    /// Their ranks.
    #[serde(default)]
    pub left_out_ranks: String,
}

/// A rank, or a host, whose value deviates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outlier {
    /// Name of the event.
    pub event: String,
    /// Size class of its communicator.
    #[serde(default)]
    pub communicator_size_class: Option<u8>,
    /// `calls`, `time_ns` or `bytes`.
    pub metric: String,
    /// The rank; none where a host as a whole is meant.
    pub rank: Option<Rank>,
    /// Its host, if it is known.
    pub host: String,
    /// Its value.
    pub value: f64,
    /// The median over the ranks that have the event.
    pub median: f64,
    /// Distance from the median in robust standard deviations, with its sign.
    pub score: f64,
}

/// A frame of merged stacks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StackFrame {
    /// Function, and its file and line if these are known.
    pub name: String,
    /// The ranks that are below it.
    pub ranks: String,
    /// Samples, or threads, below it.
    pub count: u64,
    /// What it has called.
    pub children: Vec<StackFrame>,
}

/// Call stacks of ranks, merged into one prefix tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stacks {
    /// When they were taken, from the start of the program.
    pub elapsed_s: f64,
    /// The outermost frames.
    pub roots: Vec<StackFrame>,
    /// Ranks without a stack, and why.
    pub missing: Vec<super::Loss>,
    /// What else is known of ranks, such as that they were stopped before.
    #[serde(default)]
    pub notes: Vec<super::Loss>,
    /// For how long the ranks were stopped.
    #[serde(default)]
    pub stopped: Vec<Stopped>,
}

/// Ranks that were stopped for about the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stopped {
    /// The ranks.
    pub ranks: String,
    /// The time, rounded up to two figures, in microseconds.
    pub at_most_us: u64,
}

/// The end of a rank that did not end in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Death {
    /// The ranks that ended this way.
    pub ranks: String,
    /// When the first of them was seen to, from the start of the program.
    pub elapsed_s: f64,
    /// Whether it was the first death, which others may have followed. None is where a launcher has
    /// killed all together, where all ended as the job was told to, or where it is not known.
    pub is_first: bool,
    /// `signal 9`, `exit code 7`, `MPI_Abort(13)` or what else is known.
    pub cause: String,
    /// What the ranks were inside.
    #[serde(default)]
    pub inside: String,
    /// How they ended.
    #[serde(default)]
    pub manner: DeathManner,
}

/// How ranks ended that did not end in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeathManner {
    /// Of themselves, or because others did.
    #[default]
    Died,
    /// With an exit code of the program's, after `MPI_Finalize`.
    Returned,
    /// Killed all together by their launcher.
    KilledByLauncher,
    /// After a signal had told the job to end.
    AsTold,
}

impl Death {
    /// A line for people for each of these, which are all of a program.
    #[must_use]
    pub fn sentences(deaths: &[Self]) -> Vec<String> {
        let has_first = deaths.iter().any(|death| death.is_first);
        let others = if deaths.len() > 1 { " with the others" } else { "" };
        let told = |(at, death): (usize, &Self)| {
            let seconds = death.elapsed_s;
            death.sentence(&match has_first {
                true if death.is_first => {
                    format!("{} first, {seconds:.3} s after the start", death.verb())
                }
                true => "followed".to_owned(),
                false if death.manner == DeathManner::KilledByLauncher => {
                    let were = agreeing(&death.ranks, "was", "were");
                    format!("{were} killed together{others}, {seconds:.3} s after the start")
                }
                false => {
                    let first = match at == 0 && death.manner != DeathManner::AsTold {
                        true => ", none is known to be the first",
                        false => "",
                    };
                    format!("{}, {seconds:.3} s after the start{first}", death.verb())
                }
            })
        };
        deaths.iter().enumerate().map(told).collect()
    }

    /// What its ranks did.
    fn verb(&self) -> &'static str {
        match self.manner {
            DeathManner::Returned | DeathManner::AsTold => "ended",
            DeathManner::Died | DeathManner::KilledByLauncher => "died",
        }
    }

    fn sentence(&self, how: &str) -> String {
        let inside = match self.inside.as_str() {
            "" => String::new(),
            inside => format!(", inside {inside}"),
        };
        format!("{} {how}: {}{inside}", ranks_text(&self.ranks), self.cause)
    }

    /// A line for each of them, and one for those beyond this number.
    #[must_use]
    pub fn lines(deaths: &[Self], most: usize) -> Vec<String> {
        let mut lines = Self::sentences(deaths);
        lines.truncate(most);
        if deaths.len() > most {
            lines.push(format!("{} more ends of other kinds", deaths.len() - most));
        }
        lines
    }
}

/// A process of the tree and what it carries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its number in the tree.
    pub id: u32,
    /// The number of its parent; none for the front-end.
    pub parent: Option<u32>,
    /// `front-end`, `communication` or `leaf`.
    pub role: String,
    /// Its host.
    pub host: String,
    /// MPI ranks that it serves, if it is a leaf.
    #[serde(default)]
    pub ranks: String,
    /// Numbers by name: `packets_per_s`, `bytes_per_s`, `resident_bytes`, `cpu`.
    #[serde(default)]
    pub load: BTreeMap<String, f64>,
    /// Whether it is lost.
    #[serde(default)]
    pub is_lost: bool,
}

/// The settings that the ranks obey.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Number of the change that made them, from 0.
    pub change: u64,
    /// Time between rounds in seconds; 0 if rounds do not go by time.
    pub interval_s: f64,
    /// Groups of metrics that are counted, by name.
    pub groups: Vec<String>,
    /// Groups that may be asked for.
    #[serde(default)]
    pub groups_known: Vec<String>,
    /// The ranks that obey; empty for all.
    #[serde(default)]
    pub ranks: String,
    /// Ranks that have taken them over already.
    #[serde(default)]
    pub obeyed: String,
    /// Whether ranks are told to record traces.
    #[serde(default)]
    pub tracing: bool,
    /// Time between two samples of stacks that ranks are told to take, in seconds; 0 for none.
    #[serde(default)]
    pub sampling_s: f64,
    /// Other numbers of the ranks, such as a metric over all of them.
    #[serde(default)]
    pub numbers: BTreeMap<String, Metric>,
}

impl Settings {
    /// Whether ranks leave out a number of the events of a function class: `calls`, `time` or
    /// `bytes`. One that is 0 then was not counted.
    pub(super) fn leaves_out(&self, class: &str, number: &str) -> bool {
        let is_off = |name: &str| {
            let has = |groups: &[String]| groups.iter().any(|group| group == name);
            has(&self.groups_known) && !has(&self.groups)
        };
        is_off(if class == "region" { "regions" } else { class }) || is_off(number)
    }

    /// A line for people, of settings that were changed while the program ran: the counts of such a
    /// run are not those of all of it.
    #[must_use]
    pub fn changed_line(&self) -> Option<String> {
        let has_left_out = !self.ranks.is_empty() || self.groups.len() < self.groups_known.len();
        let changed = match self.change {
            // Of a job that another process controls.
            0 if has_left_out => "changed by another 'sapwood mpi attach'".to_owned(),
            0 => return None,
            1 => "changed once while the program ran".to_owned(),
            times => format!("changed {times} times while the program ran"),
        };
        let groups = match self.groups.as_slice() {
            [] => "nothing".to_owned(),
            groups if groups.len() == self.groups_known.len() => "all groups".to_owned(),
            groups => groups.join(", "),
        };
        let named = |ranks: &str, none: &str| match ranks {
            "" => none.to_owned(),
            ranks => ranks_text(ranks),
        };
        let (chosen, obeyed) = (named(&self.ranks, "all ranks"), named(&self.obeyed, "no rank"));
        let rounds = match self.interval_s {
            0.0 => "no periodic rounds".to_owned(),
            seconds => format!("a round every {seconds} s"),
        };
        Some(format!(
            "{changed}, so that counts may lack what was left out: {groups} on {chosen}, {rounds}; \
             applied by {obeyed}"
        ))
    }
}
