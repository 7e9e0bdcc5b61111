//! Everything that is known when a program has ended, and the files that it is left in.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sapwood_profile::{ActivityKind, Condition, RankRows, RankState, Round};

use crate::standstill::{Standstills, told};
use crate::table::loss_lines;
use crate::text::{Grid, Paint, Side, printable};
use crate::{LiveTable, Missing, ReportError, atomic, load, quantity};

/// Lines of `report.txt` are no longer than this where it can be helped.
const REPORT_COLUMNS: usize = 120;

/// The longest times without a returned call that are written out.
const STANDSTILLS_SHOWN: usize = 5;

/// Whether a rank did this when it was last seen, and did not end in order.
fn is_left(kind: &ActivityKind) -> bool {
    kind.condition == Condition::Lost || kind.is_long && kind.function.is_some()
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
    /// How many rounds came while the program ran.
    pub rounds: u64,
    /// For how long it was watched.
    pub elapsed: Duration,
    /// The last round.
    pub round: Round,
    /// Times at which no MPI call returned.
    pub standstills: Standstills,
    /// Why ranks are missing from it, as far as it is known.
    pub missing: Vec<Missing>,
    /// The profiles of the ranks themselves; empty when they were not gathered.
    pub rows: RankRows,
}

impl Report {
    /// Leaves the report's files in a folder, which is made if need be, and names them. Each file
    /// is there as a whole or not at all.
    ///
    /// # Errors
    /// [`ReportError`], naming the file; those before it are then there.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
        let failed = |source| ReportError::Folder { folder: folder.to_path_buf(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let mut files = Vec::new();
        for (name, content) in [("report.txt", self.text()), ("profile.json", self.json())] {
            let file = folder.join(name);
            atomic::write(&file, content.as_bytes())?;
            files.push(file);
        }
        #[cfg(feature = "parquet")]
        {
            let file = folder.join("ranks.parquet");
            let content = crate::parquet_rows::encode(&self.rows)
                .map_err(|reason| ReportError::Rows { file: file.clone(), reason })?;
            atomic::write(&file, &content)?;
            files.push(file);
        }
        Ok(files)
    }

    /// The report for a reader: the content of `report.txt`, without colour.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.facts();
        text.push_str("\nTime by class, inclusive; a region holds what is called in it\n\n");
        text.push_str(&self.classes().render(REPORT_COLUMNS, Paint::new(false)));
        text.push_str("\nTime by event, inclusive\n\n");
        let table = LiveTable {
            round: &self.round,
            elapsed: self.elapsed,
            missing: &self.missing,
            rows_max: usize::MAX,
        };
        text.push_str(&table.body(REPORT_COLUMNS, Paint::new(false)));
        text
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
        if self.tree.nodes > 0 {
            fact("tree", &format!("{}, {} processes", self.tree.topology, self.tree.nodes));
        }
        let seconds = self.elapsed.as_secs_f64();
        fact("watched", &format!("{seconds:.1} s, {} rounds", quantity::whole(self.rounds.into())));
        fact("ranks", &format!("{} of {}", round.covered().len(), round.world_size()));
        for state in [RankState::Running, RankState::Finalized, RankState::Exited, RankState::Lost]
        {
            let ranks = round.ranks_in(state);
            if !ranks.is_empty() {
                fact("", &format!("{ranks} {state}"));
            }
        }
        for (at, line) in round.load().map(load::lines).unwrap_or_default().iter().enumerate() {
            fact(if at == 0 { "time" } else { "" }, line);
        }
        let losses = loss_lines(round, &self.missing);
        fact("losses", losses.first().map_or("none", String::as_str));
        losses.iter().skip(1).for_each(|line| fact("", line));
        for (at, line) in self.standstill_lines().iter().enumerate() {
            fact(if at == 0 { "waits" } else { "" }, line);
        }
        let left = round.activities().iter().filter(|(kind, _)| is_left(kind));
        for (at, (kind, statistics)) in left.enumerate() {
            let line = told(&(kind.clone(), statistics.clone()));
            fact(if at == 0 { "at end" } else { "" }, &line);
        }
        text
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
            lines.push(format!("and {more} more times"));
        }
        lines
    }

    #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
    fn classes(&self) -> Grid {
        let mut grid = Grid::new(14);
        grid.column("class", Side::Left);
        for name in ["events", "calls", "all ranks", "mean of ranks", "bytes"] {
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
            grid.row(cells.to_vec(), false);
        }
        grid
    }
}
