//! The live table: one line per event, the ones that took most time first.

use std::cmp::Reverse;
use std::fmt::Write;
use std::time::Duration;

use sapwood_packet::Rank;
use sapwood_profile::{
    ACTIVITY_KINDS_MAX, ActivityKind, ActivityStatistics, Class, EVENTS_MAX, EventKey,
    EventStatistics, Figure, RankState, Round,
};
use sapwood_trace::Findings;

use crate::Missing;
use crate::loss::losses;
use crate::record::Waits;
use crate::standstill::{Standstill, told};
use crate::text::{Grid, Paint, Side, printable, ranks_text, wrapped};
use crate::{load, quantity};

/// The event's name is cut to make a table fit, but not below this number of columns.
const EVENT_COLUMNS_MIN: usize = 14;
/// The function that is counted at its entry, and has no time as long as it has not returned.
const UNTIMED: &str = "MPI_Finalize";
/// An event of less than this share of the ranks' time is trivial, unless it is a region.
const TRIVIAL: f64 = 0.001;
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
    /// The round before, for what is new in this one.
    pub before: Option<&'a Round>,
    /// Which ranks waited for which, if that was asked for.
    pub waits: Option<&'a Findings>,
}

impl LiveTable<'_> {
    /// The table as lines of at most `width` columns, each with its end of line; with escape
    /// sequences for bold and colour only when `colour` is set.
    ///
    /// A table that is too wide gives up columns before it gives up events: `mean size`,
    /// `deviation`, `ranks`, then the others from the right, but never the event and its calls.
    /// Lines above the table go on in the next line.
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
        let trivial = self.trivial_ns();
        let is_trivial = |(key, statistics): &&(EventKey, EventStatistics)| {
            key.class() != Class::Region && statistics.time_ns.sum() < trivial
        };
        let (folded, events): (Vec<_>, Vec<_>) = events.into_iter().partition(is_trivial);
        let shown = &events[..events.len().min(self.rows_max)];
        let mut text = self.grid(shown).render(width, paint);
        if shown.len() < events.len() {
            let more = events.len() - shown.len();
            let plural = if more == 1 { "" } else { "s" };
            let _ = writeln!(text, "and {more} more event{plural}");
        }
        let mut notes = Vec::new();
        if !folded.is_empty() {
            notes.push(self.folded_line(&folded));
        }
        if self.round.has_left_out() {
            let limit = quantity::whole(EVENTS_MAX as u128);
            notes.push(format!("more than {limit} kinds of events: the last ones are left out"));
        }
        for line in notes.iter().flat_map(|note| wrapped(note, width)) {
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Below this time of all ranks together an event is trivial; 0 where no time is known.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn trivial_ns(&self) -> u128 {
        let wall = self.round.load().map_or(0.0, |load| load.wall_ns.sum() as f64);
        (wall * TRIVIAL) as u128
    }

    /// One line for all trivial events.
    #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
    fn folded_line(&self, folded: &[&(EventKey, EventStatistics)]) -> String {
        let sum =
            |of: fn(&EventStatistics) -> u128| folded.iter().map(|(_, one)| of(one)).sum::<u128>();
        let ranks = self.round.covered().len().max(1) as f64;
        let calls = sum(|one| one.count.sum());
        let plural = |many: bool| if many { "s" } else { "" };
        format!(
            "and {} event{} of less than 0.1 % of the time each: {} call{}, {} per rank",
            folded.len(),
            plural(folded.len() > 1),
            quantity::whole(calls),
            plural(calls != 1),
            quantity::time(sum(|one| one.time_ns.sum()) as f64 / ranks),
        )
    }

    /// Calls that ranks are inside for long: in red if nothing moves any more.
    fn waits(&self, width: usize, paint: Paint) -> Vec<String> {
        if let Some(standstill) = Standstill::of(self.round) {
            let lines = standstill.lines();
            let lines = lines.iter().flat_map(|line| wrapped(line, width));
            return lines.map(|line| paint.red(line)).collect();
        }
        if self.round.activities().is_cut() {
            let limit = quantity::whole(ACTIVITY_KINDS_MAX as u128);
            let note = format!("more than {limit} kinds of calls: which ranks wait is not known");
            return wrapped(&note, width).map(str::to_owned).collect();
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

    /// The ranks for which the others wait.
    fn culprits(&self) -> Option<String> {
        let found = self.waits?;
        Some(Waits::of(found, self.round.world_size(), self.elapsed).line())
    }

    /// The lines above the table: the ranks in it, and those that are not.
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
        let mut load =
            round.load().map(|load| load::lines(load, round.figures())).unwrap_or_default();
        load.extend(round.interval().and_then(load::interval_line));
        facts.extend(load.iter().flat_map(|line| wrapped(line, width)).map(str::to_owned));
        let losses = loss_lines(round, self.missing);
        let losses = losses.iter().flat_map(|line| wrapped(line, width));
        let losses: Vec<String> = losses.map(|line| paint.red(line)).collect();
        let culprits = self.culprits();
        let culprits = culprits.iter().flat_map(|line| wrapped(line, width)).map(str::to_owned);
        [facts, losses, culprits.collect(), self.waits(width, paint)].concat().join("\n") + "\n"
    }
}

/// One line for each kind of loss.
pub(crate) fn loss_lines(round: &Round, missing: &[Missing]) -> Vec<String> {
    let mut lines = Vec::new();
    for missing in losses(round, missing) {
        lines.push(format!(
            "missing {}: {}",
            ranks_text(&missing.ranks.to_string()),
            printable(&missing.reason)
        ));
    }
    let lost = round.ranks_in(RankState::Lost);
    if !lost.is_empty() {
        lines.push(format!(
            "lost {}: ended without MPI_Finalize or exit; their last counts are shown",
            ranks_text(&lost.to_string())
        ));
    }
    lines.extend(exited_lines(round));
    if round.unwatched() > 0 {
        let (count, verb) =
            (round.unwatched(), if round.unwatched() == 1 { " is" } else { "es are" });
        lines.push(format!(
            "{count} more process{verb} not watched: started by MPI_Comm_spawn, or of a second program"
        ));
    }
    if !round.taken().is_empty() {
        let ranks = round.taken();
        lines.push(format!(
            "ranks {ranks}: another tool intercepts MPI functions before the shim; their calls are not counted"
        ));
    }
    if round.dropped() > 0 {
        let dropped = quantity::whole(round.dropped().into());
        lines.push(format!(
            "events not counted: {dropped}; a table was full, or a region ended that had not begun"
        ));
    }
    if let Some(untracked) = round.figures().get(&Figure::UntrackedRequests) {
        let untracked = quantity::whole(untracked.sum());
        lines.push(format!(
            "requests whose bytes are not counted: {untracked}; no room, or freed before they completed"
        ));
    }
    if let Some(names) = round.figures().get(&Figure::NamesLeftOut) {
        let names = quantity::whole(names.sum());
        lines.push(format!(
            "names of communicators, windows and files left out: {names}; names of others in use took all \
             the room"
        ));
    }
    if round.unreadable() > 0 {
        let unreadable = quantity::whole(round.unreadable().into());
        lines.push(format!("slots not read: {unreadable}; the program overwrote its table"));
    }
    lines
}

/// Ranks that exited without `MPI_Finalize`, apart from those of which that is not known: another
/// tool may have taken the call.
fn exited_lines(round: &Round) -> Vec<String> {
    let exited = round.ranks_in(RankState::Exited);
    let known = exited.difference(round.taken().as_ref());
    let unknown = exited.difference(known.as_ref());
    let told = [
        (known, "exited without MPI_Finalize"),
        (unknown, "exited; a call of MPI_Finalize may have been intercepted by another tool"),
    ];
    let told = told.iter().filter(|(ranks, _)| !ranks.is_empty());
    told.map(|(ranks, how)| format!("{}: {how}", ranks_text(&ranks.to_string()))).collect()
}

impl LiveTable<'_> {
    fn grid(&self, events: &[&(EventKey, EventStatistics)]) -> Grid {
        let mut grid = Grid::new(EVENT_COLUMNS_MIN);
        grid.column("event", Side::Left);
        grid.column("calls", Side::Right);
        if self.before.is_some() {
            grid.column("new", Side::Right);
        }
        grid.column("time per rank, mean", Side::Right);
        if self.before.is_some() {
            grid.column("new time", Side::Right);
        }
        for name in ["deviation", "min@rank", "max@rank", "imbalance", "ranks", "mean size"] {
            grid.column(name, Side::Right);
        }
        grid.give_up(&[
            "mean size",
            "deviation",
            "ranks",
            "imbalance",
            "max@rank",
            "min@rank",
            "new time",
            "new",
            "time per rank, mean",
        ]);
        for event in events {
            let imbalance = event.1.time_ns.imbalance();
            let is_marked = imbalance.is_some_and(|value| value >= IMBALANCE_MARKED);
            match is_marked {
                true => grid.marked_row(self.cells(event)),
                false => grid.row(self.cells(event)),
            }
        }
        grid
    }

    fn cells(&self, (key, statistics): &(EventKey, EventStatistics)) -> Vec<String> {
        let time = &statistics.time_ns;
        let none = || "-".to_string();
        let is_timed = key.name() != UNTIMED || time.sum() > 0;
        let timed = |text: String| if is_timed { text } else { none() };
        let (new_calls, new_time) = self.news(key, statistics);
        let mut cells = vec![printable(&key.to_string()), quantity::whole(statistics.count.sum())];
        cells.extend(self.before.map(|_| new_calls));
        cells.push(timed(quantity::time(time.mean())));
        cells.extend(self.before.map(|_| timed(new_time)));
        cells.extend([
            timed(time.standard_deviation().map_or_else(none, quantity::time)),
            timed(at_rank(time.min(), time.min_rank())),
            timed(at_rank(time.max(), time.max_rank())),
            quantity::percent(time.imbalance()),
            statistics.ranks().to_string(),
            self.mean_size(key, statistics),
        ]);
        cells
    }

    /// Calls, and time per rank, since the round before; dashes where that covers other ranks.
    #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
    fn news(&self, key: &EventKey, statistics: &EventStatistics) -> (String, String) {
        let comparable = self.before.filter(|before| before.covered() == self.round.covered());
        let Some(before) = comparable else { return ("-".to_string(), "-".to_string()) };
        let (calls, time_ns) =
            before.event(key).map_or((0, 0), |old| (old.count.sum(), old.time_ns.sum()));
        let new = statistics.time_ns.sum().saturating_sub(time_ns) as f64;
        let calls = quantity::whole(statistics.count.sum().saturating_sub(calls));
        (format!("+{calls}"), format!("+{}", quantity::time(new / f64::from(statistics.ranks()))))
    }

    /// The mean size of the messages of an event.
    #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
    fn mean_size(&self, key: &EventKey, statistics: &EventStatistics) -> String {
        let sizes = self.round.sizes(key).filter(|sizes| sizes.messages() > 0);
        sizes.map_or_else(
            || "-".to_string(),
            |sizes| quantity::bytes(statistics.bytes.sum() as f64 / sizes.messages() as f64),
        )
    }
}

#[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
fn at_rank(ns: u64, rank: Rank) -> String {
    format!("{}@{rank}", quantity::time(ns as f64))
}

#[cfg(test)]
mod tests {
    use sapwood_profile::RankProfile;

    use super::*;

    fn round_of_exited(taken: &[Rank]) -> Round {
        let mut round = Round::new(4);
        for rank in 0..4 {
            let mut profile = RankProfile::new(rank, 4);
            profile.state = RankState::Exited;
            profile.taken_functions = u32::from(taken.contains(&rank));
            round.add(&profile).expect("every rank once");
        }
        round
    }

    #[test]
    fn of_ranks_whose_calls_another_tool_takes_it_is_not_said_that_they_did_not_finalize() {
        let lines = loss_lines(&round_of_exited(&[]), &[]);
        assert_eq!(lines, ["ranks 0-3: exited without MPI_Finalize"]);
        let lines = loss_lines(&round_of_exited(&[1, 2]), &[]);
        assert_eq!(lines[0], "ranks 0,3: exited without MPI_Finalize");
        assert!(lines[1].starts_with("ranks 1-2: exited; a call of MPI_Finalize may"), "{lines:?}");
        assert!(lines[2].starts_with("ranks 1-2: another tool intercepts"), "{lines:?}");
        let lines = loss_lines(&round_of_exited(&[0, 1, 2, 3]), &[]);
        assert!(!lines.iter().any(|line| line.contains("without MPI_Finalize")), "{lines:?}");
    }
}
