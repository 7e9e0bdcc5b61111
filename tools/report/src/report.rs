//! Everything that is known when a program has ended, and the files that it is left in.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sapwood_profile::{ActivityKind, Condition, RankRows, RankState, Round};
use sapwood_trace::Findings;

use crate::loss::Outdated;
use crate::paused::PausedTracing;
use crate::quantity::date;
use crate::record::{Death, Settings, Stacks, Waits};
use crate::rounds_file::{ROUNDS_FILE, RoundsFacts};
use crate::standstill::{Standstills, told};
use crate::table::loss_lines;
use crate::text::{Grid, Paint, Side, printable};
use crate::why::{Stuck, passed_line};
use crate::{
    Analysis, FirstLost, HostRanks, Intervals, LiveTable, Missing, ReportError, Tallies, ToldToEnd,
    Uninitialised, atomic, hosts, load, messages, quantity,
};

/// Lines of `report.txt` are no longer than this where it can be helped.
const REPORT_COLUMNS: usize = 120;

/// The longest times without a returned call that are written out.
const STANDSTILLS_SHOWN: usize = 5;
/// Ways in which ranks ended that are shown.
const DEATHS_SHOWN: usize = 8;

/// Hosts that are named.
const HOSTS_SHOWN: usize = 8;

/// Whether a rank did this when it was last seen, and did not end in order.
fn is_left(kind: &ActivityKind) -> bool {
    kind.condition == Condition::Lost || kind.is_long && kind.function.is_some()
}

/// Hosts for a line, as many as it holds.
fn shown_hosts(hosts: &[String]) -> String {
    let mut line = hosts[..hosts.len().min(HOSTS_SHOWN)].join(" ");
    if hosts.len() > HOSTS_SHOWN {
        let _ = write!(line, " and {} more", hosts.len() - HOSTS_SHOWN);
    }
    line
}

/// What is in the file of rounds, and what is not.
fn rounds_line(facts: &RoundsFacts) -> String {
    let mut line = format!("rounds.ndjson has {} rounds", quantity::whole(facts.kept.into()));
    if facts.iterations > 0 {
        let _ = write!(line, " and {} iterations", quantity::whole(facts.iterations.into()));
    }
    if facts.stride > 1 {
        let _ = write!(
            line,
            ", every {} of them, to keep the file below {}",
            ordinal(facts.stride),
            quantity::bytes(facts.bytes_max as f64)
        );
    }
    if facts.lost > 0 {
        let _ = write!(line, "; {} could not be written", quantity::whole(facts.lost.into()));
    }
    line
}

/// Strides are powers of two.
fn ordinal(stride: u64) -> String {
    let ending = if stride % 10 == 2 { "nd" } else { "th" };
    format!("{stride}{ending}")
}

/// The tree through which the round came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Its specification or file.
    pub topology: String,
    /// How many processes it had, the front-end among them.
    pub nodes: u64,
}

/// What is known of one run of a program.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The program's file name, without folder.
    pub program: String,
    /// The command that started it, word by word.
    pub command: Vec<String>,
    /// The MPI that it is linked to, as `Open MPI 4.1.4`.
    pub mpi: String,
    /// The tree.
    pub tree: Tree,
    /// The hosts of the program, if it ran on several.
    pub hosts: Vec<HostRanks>,
    /// The ranks of one of them that were lost before all others.
    pub first_lost: Option<FirstLost>,
    /// Ranks that did not end in order, the first apart from those that followed.
    pub deaths: Vec<Death>,
    /// The signal by which the monitor was told to end the job, if one came.
    pub told_to_end: Option<ToldToEnd>,
    /// How many rounds came while the program ran.
    pub rounds: u64,
    /// For how long it was watched.
    pub elapsed: Duration,
    /// The last round.
    pub round: Round,
    /// Times at which no MPI call returned.
    pub standstills: Standstills,
    /// The verdict that held last; none where ranks were not found stuck.
    pub stuck: Option<Stuck>,
    /// Verdicts that held before, after which the ranks went on.
    pub passed: u64,
    /// Call stacks: of the latest standstill if there was one, else the latest.
    pub stacks: Option<Stacks>,
    /// Why ranks are missing from it, as far as it is known.
    pub missing: Vec<Missing>,
    /// Ranks that have not called `MPI_Init`, as far as their processes are known.
    pub uninitialised: Vec<Uninitialised>,
    /// Why the round is not of the program's end, if it should be.
    pub outdated: Option<Outdated>,
    /// The profiles of the ranks themselves; empty when they were not gathered.
    pub rows: RankRows,
    /// The efficiencies of the intervals between rounds.
    pub intervals: Intervals,
    /// What was tallied beside events.
    pub tallies: Tallies,
    /// What further filters found at the end.
    pub analysis: Analysis,
    /// Which ranks waited for which, if that was asked for.
    pub waits: Option<Findings>,
    /// When the program was started.
    pub started: Option<SystemTime>,
    /// Time between two rounds; 0 if it is not known.
    pub interval: Duration,
    /// Whether the program has ended.
    pub is_final: bool,
    /// What the file of rounds holds, if there is one.
    pub rounds_file: Option<RoundsFacts>,
    /// The settings that the ranks obeyed at last.
    pub settings: Option<Settings>,
    /// The ranks that did not record their calls at last, where that is known.
    pub paused: Option<PausedTracing>,
    /// How many ranks of the job are the tool's and none of the program's.
    pub tool_ranks: u32,
}

/// What is said of tracing that was switched off where ranks have not told since when.
const PAUSED: &str = "tracing was paused at the end";

/// The names of the files that a run leaves in its folder.
pub const REPORT_FILES: [&str; 4] = ["report.txt", "profile.json", "ranks.parquet", ROUNDS_FILE];

impl Report {
    /// Leaves the report's files in a folder, which is made if need be, and names them. Each file
    /// is there as a whole or not at all.
    ///
    /// # Errors
    /// [`ReportError`], naming the file; those before it are then there.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
        #[cfg_attr(not(feature = "parquet"), allow(unused_mut))]
        let mut files = self.write_summary(folder)?;
        #[cfg(feature = "parquet")]
        {
            let file = folder.join("ranks.parquet");
            let content = crate::parquet_rows::encode(&self.rows, self.settings.as_ref())
                .map_err(|reason| ReportError::Rows { file: file.clone(), reason })?;
            atomic::write(&file, &content)?;
            files.push(file);
        }
        Ok(files)
    }

    /// Leaves the two files that do not grow with the number of ranks. While the program runs these
    /// replace those before them.
    ///
    /// # Errors
    /// As [`Report::write`]; a file that cannot be written stays as it was.
    pub fn write_summary(&self, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
        let failed = |source| ReportError::Folder { folder: folder.to_path_buf(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let mut files = Vec::new();
        for (name, content) in [("report.txt", self.text()), ("profile.json", self.json())] {
            let file = folder.join(name);
            atomic::write(&file, content.as_bytes())?;
            files.push(file);
        }
        Ok(files)
    }

    /// The hosts of the ranks whose profiles are here, each once, in the order of their ranks.
    #[must_use]
    pub fn host_names(&self) -> Vec<String> {
        let mut known = BTreeSet::new();
        let hosts = self.rows.profiles().iter().map(|profile| &profile.host);
        hosts.filter(|host| !host.is_empty() && known.insert(*host)).cloned().collect()
    }

    /// The report for a reader: the content of `report.txt`, without colour.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.facts();
        text.push_str("\nTime by class, inclusive; a region holds what is called in it\n\n");
        text.push_str(&self.classes().render(REPORT_COLUMNS, Paint::PLAIN));
        text.push_str("\nTime by event, inclusive\n\n");
        let table = LiveTable {
            round: &self.round,
            elapsed: self.elapsed,
            missing: &self.missing,
            rows_max: usize::MAX,
            before: None,
            waits: None,
        };
        text.push_str(&table.body(REPORT_COLUMNS, Paint::PLAIN));
        if let (Some(waits), Some(found)) = (self.waits_section(), &self.waits) {
            text.push_str(&waits.text(found, REPORT_COLUMNS));
        }
        text.push_str(&messages::sizes(&self.round, REPORT_COLUMNS));
        text.push_str(&messages::processes(&self.round, REPORT_COLUMNS));
        text.push_str(&self.tallies.text(REPORT_COLUMNS));
        text.push_str(&self.analysis.text(REPORT_COLUMNS));
        if let Some(stacks) = &self.stacks {
            let _ = writeln!(text, "\nCall stacks at {:.1} s\n", stacks.elapsed_s);
            text.push_str(&crate::stacks::text(stacks));
        }
        text
    }

    pub(crate) fn waits_section(&self) -> Option<Waits> {
        let found = self.waits.as_ref()?;
        Some(Waits::of(found, self.round.world_size(), self.elapsed))
    }

    /// The ranks for which the others waited, and whether that was still recorded at the end.
    fn culprit_line(&self) -> Option<String> {
        let Some(waits) = self.waits_section() else {
            let paused = self.paused.as_ref()?.at_end(self.elapsed);
            return Some(format!("no call was gathered; {paused}"));
        };
        let mut line = waits.line();
        let is_off = |settings: &Settings| settings.change > 0 && !settings.tracing;
        let paused = match &self.paused {
            Some(paused) => Some(paused.at_end(self.elapsed)),
            None if self.settings.as_ref().is_some_and(is_off) => Some(PAUSED.to_owned()),
            None => None,
        };
        line.extend(paused.iter().flat_map(|paused| ["; ", paused.as_str()]));
        Some(line)
    }

    /// What was watched, by what, and what was lost.
    fn facts(&self) -> String {
        let round = &self.round;
        let mut text = String::new();
        let mut fact = |name: &str, value: &str| {
            // What is not known is not shown as nothing.
            if !value.is_empty() {
                let _ = writeln!(text, "{name:<9} {}", printable(value));
            }
        };
        fact("program", &self.program);
        fact("command", &self.command.join(" "));
        fact("MPI", &self.mpi);
        fact("started", &self.started.map(date).unwrap_or_default());
        if self.tree.nodes > 0 {
            fact("tree", &format!("{}, {} processes", self.tree.topology, self.tree.nodes));
        }
        if self.hosts.is_empty() {
            fact("hosts", &shown_hosts(&self.host_names()));
        }
        for (at, line) in hosts::lines(&self.hosts).iter().enumerate() {
            fact(if at == 0 { "hosts" } else { "" }, line);
        }
        fact("watched", &self.watched_line());
        if !self.is_final {
            fact("", "the program had not ended when this was written");
        }
        fact("rounds", &self.rounds_file.as_ref().map(rounds_line).unwrap_or_default());
        fact("ranks", &format!("{} of {}", round.covered().len(), round.world_size()));
        for state in [RankState::Running, RankState::Finalized, RankState::Exited, RankState::Lost]
        {
            let ranks = round.ranks_in(state);
            if !ranks.is_empty() {
                fact("", &format!("{ranks} {state}"));
            }
        }
        fact("", &self.tool_ranks_line().unwrap_or_default());
        let ending = self.told_to_end.as_ref().map(ToldToEnd::lines).unwrap_or_default();
        for (at, line) in ending.iter().enumerate() {
            fact(if at == 0 { "ended" } else { "" }, line);
        }
        let changed = self.settings.as_ref().and_then(Settings::changed_line);
        fact("settings", &changed.or_else(|| self.pauses_line()).unwrap_or_default());
        let time = round.load().map(|load| load::lines(load, round.figures())).unwrap_or_default();
        for (at, line) in time.iter().chain(&self.intervals.line()).enumerate() {
            fact(if at == 0 { "time" } else { "" }, line);
        }
        let outdated = self.outdated.iter().map(Outdated::line);
        let losses: Vec<String> = outdated.chain(loss_lines(round, &self.missing)).collect();
        fact("losses", losses.first().map_or("none", String::as_str));
        losses.iter().skip(1).for_each(|line| fact("", line));
        fact("first", &self.first_lost.as_ref().map_or_else(String::new, FirstLost::line));
        for (at, line) in Death::lines(&self.deaths, DEATHS_SHOWN).iter().enumerate() {
            fact(if at == 0 { "deaths" } else { "" }, line);
        }
        for (at, line) in self.standstill_lines().iter().enumerate() {
            fact(if at == 0 { "waits" } else { "" }, line);
        }
        for (at, line) in self.stuck_lines().iter().enumerate() {
            fact(if at == 0 { "stuck" } else { "" }, line);
        }
        fact("culprit", &self.culprit_line().unwrap_or_default());
        let left = round.activities().iter().filter(|(kind, _)| is_left(kind));
        for (at, (kind, statistics)) in left.enumerate() {
            let line = told(&(kind.clone(), statistics.clone()));
            fact(if at == 0 { "at end" } else { "" }, &line);
        }
        text
    }

    /// For how long, and what a round is.
    fn watched_line(&self) -> String {
        let (seconds, count) = (self.elapsed.as_secs_f64(), quantity::whole(self.rounds.into()));
        let rounds = if self.rounds == 1 { "round" } else { "rounds" };
        format!("{seconds:.1} s, {count} {rounds}; each round collects the counts of all ranks")
    }

    /// That ranks of the job are in no count, where the tree is inside of it.
    fn tool_ranks_line(&self) -> Option<String> {
        let ranks = match self.tool_ranks {
            0 => return None,
            1 => "1 more rank of the job belongs to the tool (--in-world) and is".to_owned(),
            count => {
                format!("{count} more ranks of the job belong to the tool (--in-world) and are")
            }
        };
        Some(format!("{ranks} not counted"))
    }

    /// That ranks have counted for a part of their time only, though no setting was changed: such
    /// ranks have no division of time.
    fn pauses_line(&self) -> Option<String> {
        self.settings.as_ref()?;
        let covered = self.round.covered().len();
        let whole = self.round.load().map_or(0, |load| load.wall_ns.ranks());
        let partly = covered.saturating_sub(whole.into());
        (partly > 0).then(|| {
            format!(
                "{partly} of {covered} ranks switched counting off for a time (MPI_Pcontrol, or an \
                 earlier 'sapwood mpi attach'): calls made then are not counted, and MPI's share \
                 of the time is without these ranks"
            )
        })
    }

    /// A line for each time at which no MPI call returned, the longest first.
    fn standstill_lines(&self) -> Vec<String> {
        let mut episodes: Vec<_> = self.standstills.episodes.iter().collect();
        episodes.sort_by_key(|episode| std::cmp::Reverse(episode.seen - episode.began));
        let shown = episodes.len().min(STANDSTILLS_SHOWN);
        let mut lines = Vec::new();
        for episode in &episodes[..shown] {
            let (began, seen) = (episode.began.as_secs_f64(), episode.seen.as_secs_f64());
            lines.push(format!("no MPI call returned from {began:.1} s to {seen:.1} s"));
            lines.extend(episode.standstill.lines().into_iter().skip(1));
        }
        let more = (episodes.len() - shown) as u64 + self.standstills.more;
        if more > 0 {
            let times = if more == 1 { "time" } else { "times" };
            lines.push(format!("and {more} more {times}"));
        }
        lines.extend(self.standstills.unjudged_line());
        lines
    }

    /// Lines for the verdict that held last: why ranks wait, which ranks wait, where those are that
    /// are named; and for verdicts that have passed.
    fn stuck_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(stuck) = &self.stuck {
            lines.push(format!("seen at {:.1} s", stuck.seen_s));
            lines.extend(stuck.sentences());
            lines.extend(stuck.stack_sentences());
        }
        lines.extend(passed_line(self.passed));
        lines
    }

    #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
    fn classes(&self) -> Grid {
        let mut grid = Grid::new(14);
        grid.column("class", Side::Left);
        for name in ["events", "calls", "time, all ranks", "time per rank, mean", "bytes"] {
            grid.column(name, Side::Right);
        }
        let ranks = self.round.covered().len().max(1) as f64;
        for total in self.round.classes().into_iter().filter(|total| total.events > 0) {
            let cells = [
                total.class.to_string(),
                total.events.to_string(),
                quantity::whole(total.count),
                quantity::time(total.time_ns as f64),
                quantity::time(total.time_ns as f64 / ranks),
                quantity::bytes(total.bytes as f64),
            ];
            grid.row(cells.to_vec());
        }
        grid
    }
}
