//! Which ranks before `MPI_Init` the user was told of, each once.
//!
//! They are known by their processes: a job may run one program after another, whose ranks have the
//! same numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use sapwood_report::Uninitialised;

/// Lines for such ranks at one time, at most.
const LINES_MAX: usize = 8;

/// The process of a rank.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LaunchedProcess {
    rank: u32,
    host: String,
    pid: u32,
}

impl LaunchedProcess {
    fn of(one: &Uninitialised) -> Self {
        Self { rank: one.rank, host: one.host.clone(), pid: one.pid }
    }
}

/// What the user was told. It holds only what leaves still tell of, and is as bounded as that.
#[derive(Debug, Default)]
pub(crate) struct LateRanks {
    told: BTreeSet<LaunchedProcess>,
    /// Since when processes are known to have ended.
    dead_since: BTreeMap<LaunchedProcess, Instant>,
    /// Whether the user was told of those that are in `MPI_Init` now.
    are_inside_told: bool,
}

impl LateRanks {
    /// Lines for the user: ranks that have not called `MPI_Init` for this long.
    pub(crate) fn take_lines(
        &mut self,
        all: &[Uninitialised],
        deadline: Duration,
        now: Instant,
    ) -> Vec<String> {
        self.forget_others(all);
        let mut lines = Vec::new();
        for one in all.iter().filter(|one| !one.is_inside()) {
            let process = LaunchedProcess::of(one);
            let lasts = match one.is_dead() {
                true => {
                    let since = *self.dead_since.entry(process.clone()).or_insert(now);
                    now.saturating_duration_since(since)
                }
                false => Duration::try_from_secs_f64(one.for_s).unwrap_or_default(),
            };
            if lasts >= deadline && self.told.insert(process) {
                lines.push(one.line());
            }
        }
        let more = lines.len().saturating_sub(LINES_MAX);
        lines.truncate(LINES_MAX);
        match more {
            0 => {}
            1 => lines.push("1 more rank has not called MPI_Init".to_owned()),
            _ => lines.push(format!("{more} more ranks have not called MPI_Init")),
        }
        lines.extend(self.take_inside_line(all, deadline));
        lines
    }

    /// A line for the ranks that are in `MPI_Init`.
    fn take_inside_line(&mut self, all: &[Uninitialised], deadline: Duration) -> Option<String> {
        let inside = Uninitialised::inside(all);
        // Where none is there any more, those that come are of another program.
        self.are_inside_told &= inside.is_some();
        let is_long = inside.is_some_and(|inside| inside.longest_s >= deadline.as_secs_f64());
        let is_new = is_long && !self.are_inside_told;
        self.are_inside_told |= is_long;
        Uninitialised::inside_line(all).filter(|_| is_new)
    }

    /// Processes of which no leaf tells any more: their numbers may be given again.
    fn forget_others(&mut self, all: &[Uninitialised]) {
        let known: BTreeSet<LaunchedProcess> = all.iter().map(LaunchedProcess::of).collect();
        self.told.retain(|process| known.contains(process));
        self.dead_since.retain(|process, _| known.contains(process));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(10);

    fn one(pid: u32, condition: Option<&str>, for_s: f64) -> Uninitialised {
        let state = Uninitialised::state_of(condition);
        Uninitialised { rank: 1, pid, host: "a".to_owned(), state, for_s, ..Default::default() }
    }

    #[test]
    fn a_rank_of_a_second_program_that_dies_has_its_own_time_and_is_told() {
        let mut late = LateRanks::default();
        let begin = Instant::now();
        let mut count =
            |pid, at: Duration| late.take_lines(&[one(pid, None, 0.5)], DEADLINE, begin + at).len();
        assert_eq!(count(10, Duration::ZERO), 0);
        assert_eq!(count(10, DEADLINE), 1);
        assert_eq!(count(10, DEADLINE * 2), 0, "once");
        assert_eq!(count(11, DEADLINE * 3), 0, "it has died just now");
        assert_eq!(count(11, DEADLINE * 4), 1);
        // The number is that of an earlier process.
        assert_eq!(count(10, DEADLINE * 5), 0);
        assert_eq!(count(10, DEADLINE * 6), 1);
    }

    #[test]
    fn ranks_of_a_second_program_that_stay_in_mpi_init_are_told() {
        let mut late = LateRanks::default();
        let now = Instant::now();
        let inside = |for_s| Uninitialised { in_init_s: Some(for_s), ..one(10, Some(""), for_s) };
        let mut count = |all: &[Uninitialised]| late.take_lines(all, DEADLINE, now).len();
        assert_eq!([count(&[inside(9.0)]), count(&[inside(10.0)])], [0, 1]);
        assert_eq!(count(&[inside(11.0)]), 0, "once");
        assert_eq!([count(&[]), count(&[inside(9.0)]), count(&[inside(10.0)])], [0, 0, 1]);
    }

    #[test]
    fn many_ranks_are_few_lines() {
        let all = (0..20).map(|rank| Uninitialised { rank, ..one(7 + rank, Some(""), 60.0) });
        let all: Vec<Uninitialised> = all.collect();
        let lines = LateRanks::default().take_lines(&all, DEADLINE, Instant::now());
        assert_eq!(lines.len(), LINES_MAX + 1);
        assert_eq!(lines[LINES_MAX], "12 more ranks have not called MPI_Init");
    }
}
