//! Which rank came when: a row for each rank and a column for each of the last collectives of one
//! kind, those for which ranks have waited longest.

use std::collections::BTreeMap;

use maud::{Markup, html};
use sapwood_report::freeze::{Freeze, FreezeCollective, FreezePlace};
use sapwood_report::quantity::time;

use super::{LEFT, MARGIN, Part, number};
use crate::event_names::visible;

/// Columns and rows, at most: the latest collectives, the lowest ranks.
const COLUMNS_MAX: usize = 40;
const ROWS_MAX: usize = 64;
/// A cell.
const WIDTH: f64 = 21.0;
const HEIGHT: f64 = 18.0;
const TOP: f64 = 62.0;
/// From one column whose number is written to the next.
const NUMBERED: usize = 5;

/// How a rank came to one collective.
struct Cell {
    place: usize,
    late_ns: u64,
    is_open: bool,
}

/// A collective as a column.
struct Column<'a> {
    one: &'a FreezeCollective,
    cells: BTreeMap<u32, Cell>,
    /// The rank for which others waited.
    last: Option<u32>,
}

pub(super) fn part(freeze: &Freeze) -> Part {
    let Some((place, columns)) = most_costly(freeze) else {
        return Part { markup: html! {}, height: 0.0 };
    };
    let members = place.communicator.and_then(|at| freeze.communicators.get(at));
    let members = members.map(|one| one.ranks.as_str()).unwrap_or_default();
    let looked: Vec<u32> = freeze.processes.iter().map(|process| process.rank).collect();
    let ranks: Vec<u32> = looked.into_iter().filter(|&rank| is_in(members, rank)).collect();
    let shown = &ranks[..ranks.len().min(ROWS_MAX)];
    let longest = columns.iter().flat_map(|column| column.cells.values());
    let longest = longest.map(|cell| cell.late_ns).max().unwrap_or(0).max(1);
    let bottom = TOP + shown.len() as f64 * HEIGHT;
    let name = members_name(freeze, place);
    let left_out = ranks.len() - shown.len();
    let beside = LEFT + columns.len() as f64 * WIDTH + 10.0;
    let markup = html! {
        text.heading x=(MARGIN) y="12" {
            "Order of arrival: the last " (columns.len()) " " (place.function) " on " (name)
        }
        text.faint x=(MARGIN) y="30" {
            "1 came first; the darker, the later after the first (darkest: " (time(longest as f64))
            "); framed: others waited for it; -: has not arrived while others wait"
        }
        text.faint.small x=(MARGIN) y=(TOP - 8.0) { "number" }
        text.faint.small x=(number(beside)) y=(TOP - 8.0) { "waited for; late on the mean" }
        @for (at, column) in columns.iter().enumerate().filter(|(at, _)| at % NUMBERED == 0) {
            text.faint.small x=(number(LEFT + (at as f64 + 0.5) * WIDTH)) y=(TOP - 8.0)
                text-anchor="middle" { (column.one.sequence) }
        }
        @for (row, &rank) in shown.iter().enumerate() {
            @let top = TOP + row as f64 * HEIGHT;
            text x=(MARGIN) y=(number(top + 13.0)) { "rank " (rank) }
            @for (at, column) in columns.iter().enumerate() {
                (cell(column, rank, LEFT + at as f64 * WIDTH, top, longest))
            }
            text.faint x=(number(beside)) y=(number(top + 13.0)) {
                (summary(&columns, rank))
            }
        }
        @if left_out > 0 {
            text.warn x=(LEFT) y=(number(bottom + 14.0)) { "not drawn: " (left_out) " higher ranks" }
        }
    };
    Part { markup, height: bottom + if left_out > 0 { 20.0 } else { 4.0 } }
}

/// The place with most waiting that has collectives, and the last of these.
fn most_costly(freeze: &Freeze) -> Option<(&FreezePlace, Vec<Column<'_>>)> {
    let place = freeze.places.iter().find(|place| place.instances > 0)?;
    let of_place = freeze.collectives.iter().filter(|one| {
        Some(one.communicator) == place.communicator && one.function == place.function
    });
    let mut latest: Vec<&FreezeCollective> = of_place.collect();
    latest.drain(..latest.len().saturating_sub(COLUMNS_MAX));
    Some((place, latest.into_iter().map(|one| column(freeze, one)).collect()))
}

fn column<'a>(freeze: &Freeze, one: &'a FreezeCollective) -> Column<'a> {
    let first = one.arrivals.first().map_or(0, |&at| freeze.events[at].begin_ns);
    let cell = |(place, &at): (usize, &usize)| {
        let event = &freeze.events[at];
        let late_ns = u64::try_from(event.begin_ns.saturating_sub(first)).unwrap_or(0);
        (event.rank, Cell { place: place + 1, late_ns, is_open: event.is_open })
    };
    let last = one.last.filter(|_| one.is_late).map(|at| freeze.events[at].rank);
    Column { one, cells: one.arrivals.iter().enumerate().map(cell).collect(), last }
}

fn members_name(freeze: &Freeze, place: &FreezePlace) -> String {
    let one = place.communicator.and_then(|at| freeze.communicators.get(at));
    one.map_or_else(String::new, |one| visible(&one.name))
}

/// Whether a rank is in a set such as `0-3,7`.
fn is_in(ranks: &str, rank: u32) -> bool {
    ranks.split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let bounds = (first.parse::<u32>(), last.parse::<u32>());
        matches!(bounds, (Ok(first), Ok(last)) if (first..=last).contains(&rank))
    })
}

fn cell(column: &Column<'_>, rank: u32, x: f64, y: f64, longest: u64) -> Markup {
    let middle = number(x + WIDTH / 2.0);
    let is_absent = is_in(&column.one.absent, rank);
    let Some(cell) = column.cells.get(&rank) else {
        let class = if is_absent { "absent" } else { "outside" };
        let opacity = if is_absent { "0.35" } else { "0.5" };
        return html! {
            rect class=(class) x=(number(x)) y=(number(y)) width=(WIDTH - 1.0) height=(HEIGHT - 1.0)
                fill-opacity=(opacity) {
                title { "number " (column.one.sequence) ", rank " (rank) ": "
                    @if is_absent { "has not arrived" } @else { "not in the window" } }
            }
            @if is_absent { text x=(middle) y=(number(y + 13.0)) text-anchor="middle" { "-" } }
        };
    };
    let share = cell.late_ns as f64 / longest as f64;
    let frame = column.last == Some(rank);
    html! {
        rect.late x=(number(x)) y=(number(y)) width=(WIDTH - 1.0) height=(HEIGHT - 1.0)
            fill-opacity=(format!("{:.2}", 0.06 + 0.64 * share)) {
            title {
                "number " (column.one.sequence) ", rank " (rank) ": "
                (time(cell.late_ns as f64)) " after the first"
                @if cell.is_open { ", waits" }
            }
        }
        @if frame {
            rect.waited-for x=(number(x + 0.5)) y=(number(y + 0.5)) width=(WIDTH - 2.0)
                height=(HEIGHT - 2.0) {}
        }
        text.small x=(middle) y=(number(y + 12.5)) text-anchor="middle" { (cell.place) }
    }
}

/// How often others waited for a rank, and how late it came on the mean.
fn summary(columns: &[Column<'_>], rank: u32) -> String {
    let last = columns.iter().filter(|column| column.last == Some(rank)).count();
    let whole = columns.iter().filter(|column| column.one.last.is_some());
    let late: Vec<u64> =
        whole.filter_map(|column| Some(column.cells.get(&rank)?.late_ns)).collect();
    if late.is_empty() {
        return String::new();
    }
    let mean = late.iter().sum::<u64>() as f64 / late.len() as f64;
    format!("{last} times of {}; {}", late.len(), time(mean.round()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::freeze::slices::tests::freeze;

    #[test]
    fn a_matrix_has_who_came_last_and_who_has_not_come() {
        let mut freeze = freeze();
        freeze.places = vec![FreezePlace {
            communicator: Some(0),
            function: "MPI_Allreduce".to_owned(),
            instances: 2,
            ..FreezePlace::default()
        }];
        let picture = part(&freeze).markup.into_string();
        assert!(picture.contains("number 7, rank 1: 800 ns after the first"), "{picture}");
        assert!(picture.contains("number 8, rank 1: has not arrived"), "{picture}");
        assert!(picture.contains("1 times of 1; 800 ns"), "{picture}");
        freeze.places[0].instances = 0;
        assert!(part(&freeze).height == 0.0);
    }

    #[test]
    fn a_rank_is_found_in_a_set() {
        assert!(is_in("0-3,7", 2) && is_in("0-3,7", 7) && !is_in("0-3,7", 5) && !is_in("", 0));
    }
}
