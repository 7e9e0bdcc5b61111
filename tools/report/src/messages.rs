//! Tables for a reader of what moves: sizes of messages, and figures of the processes.

use sapwood_packet::Rank;
use sapwood_profile::{EventKey, EventStatistics, Figure, Round, SizeHistogram};

use crate::quantity;
use crate::text::{Grid, Paint, Side, printable};

/// Size classes that are told of an event, those with most messages first.
const CLASSES_SHOWN: usize = 4;
/// The longest names of MPI functions with the sizes of a communicator fit.
const EVENT_COLUMNS_MIN: usize = 36;
/// What the hardware counts, of which at least one is there where it is allowed.
const HARDWARE: [Figure; 3] = [Figure::Instructions, Figure::Cycles, Figure::CacheMisses];

/// The table of messages of each event that moves any; empty if none does.
#[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
pub(crate) fn sizes(round: &Round, width: usize) -> String {
    // The sizes give way before names become alike.
    let mut grid = Grid::new(EVENT_COLUMNS_MIN);
    grid.column("event", Side::Left);
    for name in ["messages", "bytes", "mean size"] {
        grid.column(name, Side::Right);
    }
    grid.column("sizes", Side::Left);
    let moved = |(key, statistics): &(EventKey, EventStatistics)| {
        let sizes = round.sizes(key).filter(|sizes| sizes.messages() > 0)?;
        Some((printable(&key.to_string()), statistics.bytes.sum(), *sizes))
    };
    let mut events: Vec<_> = round.events().iter().filter_map(moved).collect();
    events.sort_by_key(|(_, bytes, _)| std::cmp::Reverse(*bytes));
    for (event, bytes, sizes) in &events {
        let cells = [
            event.clone(),
            quantity::whole(sizes.messages().into()),
            quantity::bytes(*bytes as f64),
            quantity::bytes(*bytes as f64 / sizes.messages() as f64),
            classes(sizes),
        ];
        grid.row(cells.to_vec());
    }
    if events.is_empty() {
        return String::new();
    }
    grid.give_up(&["mean size", "bytes"]);
    format!("\nMessages by event: calls that moved bytes\n\n{}", grid.render(width, Paint::PLAIN))
}

/// The size classes with most messages and their shares.
#[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
fn classes(sizes: &SizeHistogram) -> String {
    let mut classes: Vec<_> = sizes.calls().iter().copied().enumerate().skip(1).collect();
    classes.retain(|&(_, calls)| calls > 0);
    classes.sort_by_key(|&(class, calls)| (std::cmp::Reverse(calls), class));
    let more = classes.len().saturating_sub(CLASSES_SHOWN);
    classes.truncate(CLASSES_SHOWN);
    let told = |&(class, calls): &(usize, u64)| {
        let range = match SizeHistogram::range(class) {
            (low, Some(high)) if low == high => format!("{low}"),
            (low, Some(high)) => format!("{low}-{high}"),
            (low, None) => format!("{low}-"),
        };
        let share = quantity::percent(Some(calls as f64 / sizes.messages() as f64));
        format!("{range} B: {share}")
    };
    let mut told: Vec<String> = classes.iter().map(told).collect();
    if more > 0 {
        told.push(format!("{more} more"));
    }
    told.join(", ")
}

/// The table of the processes' figures; empty if there are none.
pub(crate) fn processes(round: &Round, width: usize) -> String {
    let figures = round.figures();
    if figures.is_empty() {
        return String::new();
    }
    let mut grid = Grid::new(14);
    grid.column("of each rank's process", Side::Left);
    for name in ["mean of ranks", "min@rank", "max@rank", "ranks"] {
        grid.column(name, Side::Right);
    }
    for (&figure, statistics) in figures {
        let (title, unit) = told(figure);
        #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
        let at = |value: u64, rank: Rank| format!("{}@{rank}", unit(value as f64));
        let cells = [
            title.to_owned(),
            unit(statistics.mean()),
            at(statistics.min(), statistics.min_rank()),
            at(statistics.max(), statistics.max_rank()),
            statistics.ranks().to_string(),
        ];
        grid.row(cells.to_vec());
    }
    let mut text = format!("\nProcesses\n\n{}", grid.render(width, Paint::PLAIN));
    if HARDWARE.iter().all(|figure| !figures.contains_key(figure)) {
        text.push_str(
            "hardware counters: none; the machine has none or perf_event does not allow them\n",
        );
    }
    text
}

/// What a figure is called in a table, and how its numbers are shown.
fn told(figure: Figure) -> (&'static str, fn(f64) -> String) {
    let amount: fn(f64) -> String = |number| {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "never negative"
        )]
        let whole = number.round() as u128;
        quantity::whole(whole)
    };
    match figure {
        Figure::ResidentBytes => ("memory, resident", quantity::bytes),
        Figure::ResidentBytesMax => ("memory, most resident", quantity::bytes),
        Figure::MinorFaults => ("page faults, minor", amount),
        Figure::MajorFaults => ("page faults, major", amount),
        Figure::VoluntarySwitches => ("context switches, voluntary", amount),
        Figure::InvoluntarySwitches => ("context switches, involuntary", amount),
        Figure::CpuUserNs => ("processor time, user", quantity::time),
        Figure::CpuSystemNs => ("processor time, system", quantity::time),
        Figure::CpuPpm => {
            ("processor time over wall time", |ppm| quantity::percent(Some(ppm / 1e6)))
        }
        Figure::Cycles => ("cycles", amount),
        Figure::CacheMisses => ("cache misses", amount),
        Figure::Instructions => ("instructions", amount),
        Figure::SentBytes => ("messages, sent", quantity::bytes),
        Figure::ReceivedBytes => ("messages, received", quantity::bytes),
        Figure::UntrackedRequests => ("messages, requests not followed", amount),
        Figure::NamesLeftOut => ("names left out", amount),
        Figure::MpiThreads => ("threads that call MPI", amount),
        other => (other.name(), amount),
    }
}

#[cfg(test)]
mod tests {
    use sapwood_profile::{Counters, Function, RankProfile, SizeClass};

    use super::*;

    #[test]
    fn names_of_functions_remain_different_whatever_sizes_are_told() {
        let mut profile = RankProfile::new(0, 1);
        let name = Function::named("MPI_Reduce_scatter_block").expect("a function").id;
        for code in [7, 8] {
            let size_class = SizeClass::from_code(code).expect("a class");
            let event = EventKey::Function { id: name, size_class };
            let counters = Counters { count: 100, time_ns: 5, bytes: 1 << 40 };
            profile.events.insert(event.clone(), counters);
            let mut calls = [0; sapwood_profile::SIZE_CLASSES];
            calls[27..].fill(20);
            profile.sizes.insert(event, SizeHistogram::new(calls));
        }
        let mut round = Round::new(1);
        round.add(&profile).expect("a new rank");
        let text = sizes(&round, 120);
        assert!(text.contains("MPI_Reduce_scatter_block (65-128) "), "{text}");
        assert!(text.contains("MPI_Reduce_scatter_block (129-256) "), "{text}");
    }

    #[test]
    fn the_most_frequent_sizes_are_told() {
        let mut calls = [0; sapwood_profile::SIZE_CLASSES];
        (calls[0], calls[4], calls[5], calls[31]) = (9, 6, 3, 1);
        let told = classes(&SizeHistogram::new(calls));
        assert_eq!(told, "5-8 B: 60.0 %, 9-16 B: 30.0 %, 536870913- B: 10.0 %");
    }
}
