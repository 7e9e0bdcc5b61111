//! The live table: one line per event, the ones that took most time first.

use std::cmp::Reverse;
use std::fmt::Write;
use std::time::Duration;

use sapwood_packet::Rank;
use sapwood_profile::{
    ActivityKind, ActivityStatistics, EventKey, EventStatistics, RankState, Round,
};

use crate::Missing;
use crate::loss::losses;
use crate::standstill::{Standstill, told};
use crate::text::{Grid, Paint, Side, printable, wrapped};
use crate::{load, quantity};

/// The event's name is cut to make a table fit, but not below this number of columns.
const EVENT_COLUMNS_MIN: usize = 14;
/// The function that is counted at its entry, since the table is closed before it returns.
const UNTIMED: &str = "MPI_Finalize";
/// Kinds of calls that last long and are shown while others go on.
const WAITS_SHOWN: usize = 3;
/// From this imbalance on a line is marked in colour.
const IMBALANCE_MARKED: f64 = 0.5;

/// A round, ready to be shown on a terminal.
///
/// Times are inclusive; mean, deviation and extremes are over the ranks that have the event, which
/// the column `ranks` counts. Imbalance is `max / mean - 1`.
#[derive(Clone, Copy, Debug)]
pub struct LiveTable<'a> {
    /// What is shown.
    pub round: &'a Round,
    /// For how long the program has been watched.
    pub elapsed: Duration,
    /// Why ranks are missing, as far as it is known.
    pub missing: &'a [Missing],
    /// How many events are shown at most.
    pub rows_max: usize,
}

impl LiveTable<'_> {
    /// The table as lines of at most `width` columns, each with its end of line; with escape
    /// sequences for bold and colour only when `colour` is set.
    ///
    /// A table that is too wide gives up columns before it gives up events: `deviation`, `ranks`,
    /// then the others from the right, but never the event and its calls. Lines above the table go
    /// on in the next line.
    #[must_use]
    pub fn render(&self, width: usize, colour: bool) -> String {
        let paint = Paint::new(colour);
        self.head(width, paint) + &self.body(width, paint)
    }

    /// The table without the lines above it.
    pub(crate) fn body(&self, width: usize, paint: Paint) -> String {
        let mut events: Vec<_> = self.round.events().iter().collect();
        // Stable: events of equal time stay sorted by key.
        events.sort_by_key(|(_, statistics)| Reverse(statistics.time_ns.sum()));
        let shown = &events[..events.len().min(self.rows_max)];
        let mut text = grid(shown).render(width, paint);
        if shown.len() < events.len() {
            let more = events.len() - shown.len();
            let plural = if more == 1 { "" } else { "s" };
            let _ = writeln!(text, "and {more} more event{plural}");
        }
        text
    }

    /// Who is inside what for long: in red if nothing moves any more.
    fn waits(&self, width: usize, paint: Paint) -> Vec<String> {
        if let Some(standstill) = Standstill::of(self.round) {
            let lines = standstill.lines();
            let lines = lines.iter().flat_map(|line| wrapped(line, width));
            return lines.map(|line| paint.red(line)).collect();
        }
        let mut long: Vec<_> = self.round.activities().iter().collect();
        long.retain(|(kind, _)| kind.is_long && kind.function.is_some());
        long.sort_by_key(|(_, statistics)| Reverse(statistics.longest_ns));
        let told = |(kind, statistics): &(&ActivityKind, &ActivityStatistics)| {
            told(&((*kind).clone(), (*statistics).clone()))
        };
        long.truncate(WAITS_SHOWN);
        let lines: Vec<String> = long.iter().map(told).collect();
        lines.iter().flat_map(|line| wrapped(line, width)).map(str::to_owned).collect()
    }

    /// The lines above the table: who is in it, who is not.
    fn head(&self, width: usize, paint: Paint) -> String {
        let round = self.round;
        let mut text = format!(
            "{:.1} s   {} of {} ranks",
            self.elapsed.as_secs_f64(),
            round.covered().len(),
            round.world_size()
        );
        let finalized = round.ranks_in(RankState::Finalized).len();
        if finalized > 0 {
            let _ = write!(text, "   {finalized} finalized");
        }
        let mut facts: Vec<String> = wrapped(&text, width).map(|line| paint.bold(line)).collect();
        let load = round.load().map(load::lines).unwrap_or_default();
        facts.extend(load.iter().flat_map(|line| wrapped(line, width)).map(str::to_owned));
        let losses = loss_lines(round, self.missing);
        let losses = losses.iter().flat_map(|line| wrapped(line, width));
        let losses: Vec<String> = losses.map(|line| paint.red(line)).collect();
        [facts, losses, self.waits(width, paint)].concat().join("\n") + "\n"
    }
}

/// One line for each kind of loss.
pub(crate) fn loss_lines(round: &Round, missing: &[Missing]) -> Vec<String> {
    let mut lines = Vec::new();
    for missing in losses(round, missing) {
        lines.push(format!("missing ranks {}: {}", missing.ranks, printable(&missing.reason)));
    }
    let lost = round.ranks_in(RankState::Lost);
    if !lost.is_empty() {
        lines.push(format!(
            "lost ranks {lost}: ended without MPI_Finalize or exit; their last counts are shown"
        ));
    }
    let exited = round.ranks_in(RankState::Exited);
    if !exited.is_empty() {
        lines.push(format!("ranks {exited}: exited without MPI_Finalize"));
    }
    if round.dropped() > 0 {
        let dropped = quantity::whole(round.dropped().into());
        lines.push(format!("events not counted: {dropped}; a table of events was full"));
    }
    if round.unreadable() > 0 {
        let unreadable = quantity::whole(round.unreadable().into());
        lines.push(format!("slots not read: {unreadable}; the program wrote over its table"));
    }
    lines
}

fn grid(events: &[&(EventKey, EventStatistics)]) -> Grid {
    let mut grid = Grid::new(EVENT_COLUMNS_MIN);
    grid.column("event", Side::Left);
    for name in ["calls", "mean", "deviation", "min@rank", "max@rank", "imbalance", "ranks"] {
        grid.column(name, Side::Right);
    }
    grid.give_up(&["deviation", "ranks", "imbalance", "max@rank", "min@rank", "mean"]);
    for (key, statistics) in events {
        let time = &statistics.time_ns;
        let imbalance = time.imbalance();
        let (event, calls) = (printable(&key.to_string()), quantity::whole(statistics.count.sum()));
        if key.name() == UNTIMED {
            let none = || "-".to_string();
            let ranks = statistics.ranks().to_string();
            let cells = [event, calls, none(), none(), none(), none(), none(), ranks];
            grid.row(cells.to_vec(), false);
            continue;
        }
        let cells = [
            event,
            calls,
            quantity::time(time.mean()),
            time.standard_deviation().map_or_else(|| "-".to_string(), quantity::time),
            at_rank(time.min(), time.min_rank()),
            at_rank(time.max(), time.max_rank()),
            quantity::percent(imbalance),
            statistics.ranks().to_string(),
        ];
        grid.row(cells.to_vec(), imbalance.is_some_and(|value| value >= IMBALANCE_MARKED));
    }
    grid
}

#[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
fn at_rank(ns: u64, rank: Rank) -> String {
    format!("{}@{rank}", quantity::time(ns as f64))
}
