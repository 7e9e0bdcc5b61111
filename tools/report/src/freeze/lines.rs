//! A window as a table.

use std::collections::BTreeSet;

use sapwood_packet::RankSet;

use super::{Freeze, FreezePlace};
use crate::mixed_calls::{MixedCalls, wrong_lines};
use crate::quantity;
use crate::text::{Grid, Side, cut_in_the_middle, ranks_text};

/// Rows that are told, at most.
const ROWS_MAX: usize = 24;
/// Characters of a name, at most.
const NAME_MAX: usize = 34;
/// Characters of a set of ranks, at most.
const RANKS_MAX: usize = 14;
/// Ranks that were waited for at one place, at most.
const LAST_MAX: usize = 3;
/// Calls in progress that are told, at most.
const OPEN_MAX: usize = 8;

const COLUMNS: [(&str, Side); 8] = [
    ("communicator", Side::Left),
    ("function", Side::Left),
    ("calls", Side::Right),
    ("ranks", Side::Left),
    ("spread", Side::Right),
    ("longest", Side::Right),
    ("lost", Side::Right),
    ("waited for", Side::Left),
];

impl Freeze {
    /// Lines for people: a head, a row for each place, calls in progress, and what is missing.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let [found, losses] = [self.found(), self.losses()];
        [found, self.table(), self.open(), losses].concat()
    }

    /// The same without the calls, for people who have these in a file.
    #[must_use]
    pub fn summary(&self) -> Vec<String> {
        [self.found(), self.losses()].concat()
    }

    /// The window, how ranks ended, and what is known to be wrong.
    fn found(&self) -> Vec<String> {
        let mut lines = vec![self.head(), self.window()];
        lines.extend(self.ended.deaths.iter().cloned());
        if !self.statement.is_empty() {
            lines.push(self.statement.clone());
        }
        lines.extend(wrong_lines(self.mixed.iter().map(|one| &*one.text)));
        lines.extend(wrong_lines(self.amounts.iter().map(|one| &*one.text)));
        lines
    }

    fn losses(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.unknown.iter().map(|what| format!("missing: {what}")).collect();
        if self.dropped() == 0 {
            lines.push("dropped: no call of the window was overwritten".to_owned());
        }
        lines
    }

    /// What was frozen, when and why.
    #[must_use]
    pub fn head(&self) -> String {
        let (elapsed, ranks) = (self.elapsed_s, quantity::counted(self.ranks.into(), "ranks"));
        format!("{}: {ranks}, frozen {} after {elapsed:.1} s", self.program, self.reason.text())
    }

    /// How long the window is, and what it holds.
    #[must_use]
    pub fn window(&self) -> String {
        // The program may have begun within the window.
        let length = self.end_ns.saturating_sub(self.begin_ns) as f64;
        let length = if self.elapsed_s > 0.0 { length.min(self.elapsed_s * 1e9) } else { length };
        let counted = |number: usize, things| quantity::counted(number as u128, things);
        let threads: usize = self.processes.iter().map(|process| process.threads.len()).sum();
        let ranks: RankSet = self.processes.iter().map(|process| process.rank).collect();
        if ranks.is_empty() {
            return "none of the chosen ranks was read".to_owned();
        }
        let of_all = match ranks.len() < self.ranks.into() {
            true => format!(" of {}, {ranks}, and all figures are of these", self.ranks),
            false => String::new(),
        };
        format!(
            "the last {}: {} of {} of {}{of_all}; {}",
            quantity::time(length),
            counted(self.events.len(), "calls"),
            counted(threads, "threads"),
            counted(self.processes.len(), "ranks"),
            self.clock_text()
        )
    }

    /// How exact the times are, in a sentence.
    #[must_use]
    pub fn clock_text(&self) -> String {
        match self.clocks {
            0 | 1 => "one clock, times exact to one another".to_owned(),
            clocks => format!(
                "{clocks} clocks, times off by at most {}",
                quantity::time(self.clock_error_ns as f64)
            ),
        }
    }

    fn table(&self) -> Vec<String> {
        let mut grid = Grid::new(0);
        for (name, side) in COLUMNS {
            grid.column(name, side);
        }
        for place in self.places.iter().take(ROWS_MAX) {
            grid.row(self.row(place));
        }
        let mut lines = grid.lines();
        if self.places.len() > ROWS_MAX {
            lines.push(format!("and {} more functions", self.places.len() - ROWS_MAX));
        }
        lines
    }

    fn row(&self, place: &FreezePlace) -> Vec<String> {
        let name = place.communicator.and_then(|at| self.communicators.get(at));
        let time = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| quantity::time(ns as f64));
        let mut last: Vec<String> = place
            .last
            .iter()
            .take(LAST_MAX)
            .map(|one| format!("rank {} ({} of {})", one.rank, one.times, place.whole))
            .collect();
        if place.last.len() > LAST_MAX {
            last.push("...".to_owned());
        }
        if !place.absent.is_empty() {
            let absent = cut_in_the_middle(&ranks_text(&place.absent), NAME_MAX);
            last.insert(0, format!("{absent} still"));
        }
        vec![
            cut_in_the_middle(name.map_or("-", |one| &one.name), NAME_MAX),
            place.function.clone(),
            quantity::whole(place.calls.into()),
            cut_in_the_middle(&place.ranks, RANKS_MAX),
            time(place.spread_mean_ns),
            time(place.spread_max_ns),
            match place.wait_ns == 0 && place.open > 0 {
                true => "-".to_owned(),
                false => quantity::time(place.wait_ns as f64),
            },
            if last.is_empty() { "-".to_owned() } else { last.join(", ") },
        ]
    }

    /// A call that has not returned, of which it is not known that a rank is absent.
    fn open_call(&self, at: usize) -> String {
        let event = &self.events[at];
        let mut text = format!("waiting: rank {} in {}", event.rank, event.function);
        if let Some(number) = event.sequence {
            text.push_str(&format!(" number {number}"));
        }
        let on = self.communicator_of(event);
        if !on.is_empty() {
            text.push_str(&format!(" on {on}"));
        }
        if let Some(peer) = event.peer {
            let side = if event.kind == "collective" { "root" } else { "its rank" };
            text.push_str(&format!(" with {side} {peer}"));
        }
        if let Some(tag) = event.tag {
            text.push_str(&format!(" tag {tag}"));
        }
        text.push_str(&for_so_long(event.end_ns - event.begin_ns));
        if let Some(unlike) = self.unlike(at) {
            text.push_str(&format!("; {unlike} called another function or root there"));
        }
        if event.kind == "collective" && self.processes.len() < self.ranks as usize {
            text.push_str("; the ranks for which it waits are unknown, as not all ranks were read");
        }
        text
    }

    /// The ranks that called another thing than this call in the same collective, where that is
    /// reported as wrong.
    fn unlike(&self, at: usize) -> Option<String> {
        let event = &self.events[at];
        let name = self.communicator_of(event);
        let is_told = |one: &MixedCalls| {
            Some(one.number) == event.sequence && one.communicator.as_str() == name
        };
        if !self.mixed.iter().any(is_told) {
            return None;
        }
        let one = self.collectives.iter().find(|one| one.arrivals.contains(&at))?;
        let others = one.arrivals.iter().map(|&other| &self.events[other]);
        let others = others.filter(|other| {
            (other.function.as_str(), other.peer) != (event.function.as_str(), event.peer)
        });
        let unlike: RankSet = others.map(|other| other.rank).collect();
        (!unlike.is_empty()).then(|| ranks_text(&unlike.to_string()))
    }

    /// Calls that have not returned, those with absent members first.
    fn open(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for one in self.collectives.iter().filter(|one| !one.absent.is_empty()) {
            let open = one.arrivals.iter().map(|&at| &self.events[at]).filter(|one| one.is_open);
            let ranks: RankSet = open.clone().map(|event| event.rank).collect();
            let longest = open.map(|event| event.end_ns - event.begin_ns).max();
            let name = self.communicators.get(one.communicator).map_or("", |one| &one.name);
            lines.push(format!(
                "waiting: {} in {} number {} on {name} for {}{}",
                ranks_text(&ranks.to_string()),
                one.function,
                one.sequence,
                ranks_text(&one.absent),
                for_so_long(longest.unwrap_or(0))
            ));
        }
        let told: BTreeSet<usize> = self
            .collectives
            .iter()
            .filter(|one| !one.absent.is_empty())
            .flat_map(|one| one.arrivals.iter().copied())
            .collect();
        let open = self.events.iter().enumerate().filter(|(_, event)| event.is_open);
        let others: Vec<usize> = open.map(|(at, _)| at).filter(|at| !told.contains(at)).collect();
        let all = lines.len() + others.len();
        let room = OPEN_MAX.saturating_sub(lines.len());
        lines.extend(others.iter().take(room).map(|&at| self.open_call(at)));
        lines.truncate(OPEN_MAX);
        if all > OPEN_MAX {
            lines.push(format!("and {} more places where ranks wait", all - OPEN_MAX));
        }
        lines
    }
}

/// For how long a call has been in progress, as far as that is known: of the last call of ranks
/// that have ended, only when it began.
fn for_so_long(ns: i64) -> String {
    if ns > 0 { format!(", for {}", quantity::time(ns as f64)) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use crate::freeze::tests::{freeze, frozen};

    #[test]
    fn of_calls_of_which_only_the_begin_is_known_it_is_not_told_how_long_they_last() {
        let mut all = frozen();
        all.events.iter_mut().filter(|event| event.is_open).for_each(|event| event.span = 0);
        let lines = freeze(all.clone()).lines();
        let waiting = |lines: Vec<String>| -> Vec<String> {
            lines.into_iter().filter(|line| line.starts_with("waiting: ")).collect()
        };
        let place = "in MPI_Allreduce number 4 on MPI_COMM_WORLD";
        assert_eq!(waiting(lines), [format!("waiting: ranks 0,2-3 {place} for rank 1")]);
        // With a member of which nothing is known, each is told by itself.
        all.seats.remove(&(7, 1));
        let lines = waiting(freeze(all).lines());
        assert_eq!(lines[0], format!("waiting: rank 0 {place}"));
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn a_window_is_told_as_a_table() {
        let lines = freeze(frozen()).lines();
        assert_eq!(
            lines,
            [
                "prog: 4 ranks, frozen when it was stuck after 31.0 s",
                "the last 22.4 s: 11 calls of 4 threads of 4 ranks; one clock, times exact to one another",
                "rank 1 has not entered MPI_Allreduce number 4",
                "communicator    function       calls  ranks  spread  longest    lost  waited for",
                "MPI_COMM_WORLD  MPI_Allreduce     11  0-3    500 ms   500 ms  33.0 s  rank 1 still, rank 1 (2 of 2)",
                "waiting: ranks 0,2-3 in MPI_Allreduce number 4 on MPI_COMM_WORLD for rank 1, for 10.0 s",
                "dropped: no call of the window was overwritten",
            ]
        );
    }
}
