//! `profile.json`: the report for programs, as `docs/schema/profile-1.json` describes it.
//!
//! [`Profile`] is written by [`Report::json`] and read by exports and comparisons. Sums are exact
//! integers and may be wider than 64 bits. Rank sets are text, as `0-3,7`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::intervals::Interval;
use crate::loss::{Outdated, losses};
use crate::quantity::date;
use crate::record::{
    self, Activity, Class, Classification, Death, Episode, Event, Histogram, Loss, Metric, Outlier,
    RankValues, Settings, Stacks, States, Time, Waits,
};
use crate::rounds_file::RoundsFacts;
use crate::tallies::{Calls, Peers};
use crate::why::Stuck;
use crate::{FirstLost, HostRanks, Report, ToldToEnd, Uninitialised};

/// Which form a `profile.json` has. A member that is added leaves it as it is; one that changes its
/// meaning or goes away makes it `sapwood.profile/2`.
const SCHEMA: &str = "sapwood.profile/1";
/// A larger file is not read, in bytes.
const PROFILE_BYTES_MAX: u64 = 1 << 30;

impl Report {
    /// The report for programs: the content of `profile.json`.
    #[must_use]
    pub fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(&Profile::of(self))
            .expect("numbers, text and lists of them are always JSON");
        text.push('\n');
        text
    }
}

/// What is known of one run, reduced over its ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Profile {
    /// `sapwood.profile/1`.
    pub schema: String,
    /// File name of the program, without folder.
    pub program: String,
    /// The command that started it, word by word.
    pub command: Vec<String>,
    /// The MPI that the program is linked to.
    pub mpi: String,
    /// Ranks in `MPI_COMM_WORLD`.
    pub world_size: u32,
    /// How many of them are in the statistics.
    pub ranks_covered: u64,
    /// Which these are.
    pub covered: String,
    /// How far these are.
    pub states: States,
    /// The other ranks, and why.
    pub missing: Vec<Loss>,
    /// Of these, ranks that have not called `MPI_Init`, as far as their processes are known.
    #[serde(default)]
    pub uninitialised: Vec<Uninitialised>,
    /// Set where no round came after the program's end.
    #[serde(default)]
    pub outdated: Option<Outdated>,
    /// The tree.
    pub tree: TreeFacts,
    /// Rounds that came while the program ran.
    pub rounds: u64,
    /// For how long it was watched, in seconds.
    pub elapsed_s: f64,
    /// Totals of function classes.
    pub classes: Vec<Class>,
    /// Every event over all covered ranks.
    pub events: Vec<Event>,
    /// Counts that found no room in a rank's table.
    pub dropped: u64,
    /// Slots that could not be read.
    pub unreadable: u64,
    /// What ranks were inside when they were last seen.
    pub activities: Vec<Activity>,
    /// Times at which no MPI call returned.
    pub standstills: Vec<Episode>,
    /// How many more of these there were.
    pub standstills_left_out: u64,
    /// Why ranks waited by the verdict that held last; none where they were not found stuck.
    #[serde(default)]
    pub stuck: Option<Stuck>,
    /// Verdicts that held before, after which the ranks went on.
    #[serde(default)]
    pub passed: u64,
    /// How the time was spent.
    pub time: Option<Time>,
    /// When the program was started, as `2026-01-31T12:00:00Z`; empty if that is not known.
    #[serde(default)]
    pub started: String,
    /// Whether the program has ended; a report that is left while it runs says false.
    #[serde(default)]
    pub is_final: bool,
    /// Time between two rounds in seconds; 0 if it is not known.
    #[serde(default)]
    pub interval_s: f64,
    /// The program's hosts, if there are several.
    #[serde(default)]
    pub hosts: Vec<HostFacts>,
    /// Those that ended first of those that ended without a word.
    #[serde(default)]
    pub first_lost: Option<FirstFacts>,
    /// Ranks that did not end in order, as they were seen to.
    #[serde(default)]
    pub deaths: Vec<Death>,
    /// The signal by which the monitor was told to end the job; none if none came.
    #[serde(default)]
    pub told_to_end: Option<ToldToEnd>,
    /// Hosts of the ranks, as far as they are known.
    #[serde(default)]
    pub host_names: Vec<String>,
    /// The efficiencies of the intervals between rounds.
    #[serde(default)]
    pub intervals: Vec<Interval>,
    /// How many more of these there were.
    #[serde(default)]
    pub intervals_left_out: u64,
    /// Figures of the ranks' processes by name.
    #[serde(default)]
    pub figures: BTreeMap<String, Metric>,
    /// Processes that announced themselves and are not in the statistics.
    #[serde(default)]
    pub unwatched: u32,
    /// Ranks of which another tool takes MPI functions before the shim.
    #[serde(default)]
    pub taken: String,
    /// Whether there were more kinds of events than are kept.
    #[serde(default)]
    pub has_left_out: bool,
    /// Calls by the place that they were made from.
    #[serde(default)]
    pub call_sites: Option<Vec<Calls>>,
    /// Calls by communicator.
    #[serde(default)]
    pub communicators: Option<Vec<Calls>>,
    /// Messages from host to host.
    #[serde(default)]
    pub peers: Option<Peers>,
    /// Calls that found no tally.
    #[serde(default)]
    pub tallies_dropped: u64,
    /// Distributions over the ranks.
    #[serde(default)]
    pub histograms: Vec<Histogram>,
    /// How many more of these there were.
    #[serde(default)]
    pub histograms_left_out: u64,
    /// Events whose outliers were not looked for.
    #[serde(default)]
    pub measures_left_out: u64,
    /// Ranks as classes.
    #[serde(default)]
    pub classifications: Vec<Classification>,
    /// Ranks and hosts that deviate most.
    #[serde(default)]
    pub outliers: Vec<Outlier>,
    /// A number of each rank or bin of ranks.
    #[serde(default)]
    pub rank_values: Vec<RankValues>,
    /// Ranks that are missing from these, and why.
    #[serde(default)]
    pub analysis_missing: BTreeMap<String, String>,
    /// The version of Sapwood that wrote it.
    #[serde(default)]
    pub sapwood: String,
    /// What `rounds.ndjson` holds; none where there is no such file.
    #[serde(default)]
    pub rounds_file: Option<RoundsFacts>,
    /// The latest call stacks, those of a standstill before others.
    #[serde(default)]
    pub stacks: Option<Stacks>,
    /// Which ranks waited for which; none where that was not asked for.
    #[serde(default)]
    pub waits: Option<Waits>,
    /// The settings that the ranks obeyed at last, with the number of changes during the run; none
    /// where these are not known.
    #[serde(default)]
    pub settings: Option<Settings>,
}

/// A host of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Its name.
    pub host: String,
    /// The ranks on it.
    pub ranks: String,
    /// Why it is not watched; none if it is.
    pub not_watched: Option<String>,
}

/// The tree through which the rounds came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeFacts {
    /// Its specification or file.
    pub topology: String,
    /// How many processes it had, the front-end among them.
    pub nodes: u64,
}

/// The ranks that ended first of those that ended without a word.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FirstFacts {
    /// These ranks.
    pub ranks: String,
    /// Their host.
    pub host: String,
    /// How long before any other, if that is known.
    pub seconds_before: Option<f64>,
}

impl FirstFacts {
    fn of(first: &FirstLost) -> Self {
        let seconds_before = first.before.map(|before| before.as_secs_f64());
        Self { ranks: first.ranks.to_string(), host: first.host.clone(), seconds_before }
    }
}

impl HostFacts {
    fn of(host: &HostRanks) -> Self {
        let ranks = host.ranks.to_string();
        Self { host: host.host.clone(), ranks, not_watched: host.reason.clone() }
    }
}

impl Profile {
    /// The document of a report.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let round = &report.round;
        let losses = losses(round, &report.missing).into_iter();
        let mut events = Event::of_round(round);
        if let Some(found) = &report.waits {
            record::fill_waits(&mut events, found);
        }
        Self {
            schema: SCHEMA.to_owned(),
            program: report.program.clone(),
            command: report.command.clone(),
            mpi: report.mpi.clone(),
            world_size: round.world_size(),
            ranks_covered: round.covered().len(),
            covered: round.covered().to_string(),
            states: States::of(round),
            missing: losses.map(Loss::of).collect(),
            uninitialised: report.uninitialised.clone(),
            outdated: report.outdated.clone(),
            tree: TreeFacts { topology: report.tree.topology.clone(), nodes: report.tree.nodes },
            hosts: report.hosts.iter().map(HostFacts::of).collect(),
            first_lost: report.first_lost.as_ref().map(FirstFacts::of),
            deaths: report.deaths.clone(),
            told_to_end: report.told_to_end.clone(),
            rounds: report.rounds,
            elapsed_s: report.elapsed.as_secs_f64(),
            classes: round.classes().into_iter().map(Class::of).collect(),
            events,
            dropped: round.dropped(),
            unreadable: round.unreadable(),
            activities: round.activities().iter().map(Activity::of).collect(),
            standstills: report.standstills.episodes.iter().map(Episode::of).collect(),
            standstills_left_out: report.standstills.more,
            stuck: report.stuck.clone(),
            passed: report.passed,
            time: round.load().map(Time::of),
            intervals: report.intervals.kept().to_vec(),
            intervals_left_out: report.intervals.left_out(),
            figures: record::figures(round),
            unwatched: round.unwatched(),
            taken: round.taken().to_string(),
            has_left_out: round.has_left_out(),
            call_sites: report.tallies.call_sites.clone(),
            communicators: report.tallies.communicators.clone(),
            peers: report.tallies.peers.clone(),
            tallies_dropped: report.tallies.dropped,
            histograms: report.analysis.histograms.clone(),
            histograms_left_out: report.analysis.histograms_left_out,
            measures_left_out: report.analysis.measures_left_out,
            classifications: report.analysis.classifications.clone(),
            outliers: report.analysis.outliers.clone(),
            rank_values: report.analysis.rank_values.clone(),
            analysis_missing: report.analysis.missing.clone(),
            started: report.started.map(date).unwrap_or_default(),
            is_final: report.is_final,
            interval_s: report.interval.as_secs_f64(),
            host_names: report.host_names(),
            sapwood: env!("CARGO_PKG_VERSION").to_owned(),
            rounds_file: report.rounds_file.clone(),
            stacks: report.stacks.clone(),
            waits: report.waits_section(),
            settings: report.settings.clone(),
        }
    }

    /// Reads a document.
    ///
    /// # Errors
    /// What is wrong, and where in the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let profile: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if profile.schema == SCHEMA {
            Ok(profile)
        } else {
            Err(format!("it is of the form '{}', not '{SCHEMA}'", profile.schema))
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// One line that names the file and says what is wrong with it.
    pub fn read(file: &Path) -> Result<Self, String> {
        let shown = file.display();
        let facts = std::fs::metadata(file).map_err(|error| format!("'{shown}': {error}"))?;
        if facts.len() > PROFILE_BYTES_MAX {
            return Err(format!("'{shown}' has more than {PROFILE_BYTES_MAX} bytes"));
        }
        let text = std::fs::read_to_string(file).map_err(|error| format!("'{shown}': {error}"))?;
        Self::parse(&text).map_err(|error| format!("'{shown}' is no profile.json: {error}"))
    }
}
