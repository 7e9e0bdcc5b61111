//! The columns of per-round rows, for Parquet and CSV: a row for each event in each round.
//!
//! A column is named by the path of the member in `rounds.ndjson` that it holds, so that
//! `calls.sum` is the member `sum` of the event's `calls`. A number that is 0 because settings left
//! it out is null. docs/monitor-outputs.md describes each.

use sapwood_report::record::{
    Efficiency, Event, EventTotals, EventWait, LeftOut, Metric, RoundRecord,
};

use crate::event_names::in_64_bits;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Unsigned whole numbers of 64 bits.
    Whole,
    /// Numbers.
    Number,
    /// Numbers, or nothing.
    OptionalNumber,
    /// Unsigned whole numbers of 64 bits, or nothing.
    OptionalWhole,
    /// Unsigned whole numbers below 256, or nothing.
    OptionalByte,
    /// Text.
    Text,
    /// Whole numbers of 64 bits.
    Signed,
    /// Whole numbers of 64 bits, or nothing.
    OptionalSigned,
    /// Whether something is so.
    Flag,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A whole number.
    Whole(u64),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
    /// A whole number that may be negative.
    Signed(i64),
    /// Whether something is so.
    Flag(bool),
}

/// A round whose events are rows.
#[derive(Clone, Copy, Debug)]
pub struct ToldRound<'a> {
    record: &'a RoundRecord,
    /// What is not known of the ranks in it, which is read once for all of its cells.
    left_out: LeftOut<'a>,
}

impl<'a> ToldRound<'a> {
    /// Of a record.
    #[must_use]
    pub fn of(record: &'a RoundRecord) -> Self {
        Self { record, left_out: LeftOut::of(record) }
    }
}

type Get = Box<dyn Fn(&ToldRound<'_>, &Event) -> Cell>;

/// One column.
pub struct Column {
    /// The path of the member, with a dot between names.
    pub path: String,
    /// What it holds.
    pub kind: Kind,
    get: Get,
}

impl Column {
    fn new(
        path: impl Into<String>,
        kind: Kind,
        get: impl Fn(&ToldRound<'_>, &Event) -> Cell + 'static,
    ) -> Self {
        Self { path: path.into(), kind, get: Box::new(get) }
    }

    /// The value in the row of an event.
    #[must_use]
    pub fn cell(&self, round: &ToldRound<'_>, event: &Event) -> Cell {
        (self.get)(round, event)
    }
}

fn optional(number: Option<f64>) -> Cell {
    number.map_or(Cell::Null, Cell::Number)
}

/// All columns, in their order.
#[must_use]
pub fn all() -> Vec<Column> {
    let mut columns: Vec<Column> = of_the_round().into();
    columns.extend(of_the_time());
    columns.extend([
        Column::new("name", Kind::Text, |_, event| Cell::Text(event.name.clone())),
        Column::new("class", Kind::Text, |_, event| Cell::Text(event.class.clone())),
        Column::new("communicator_size_class", Kind::OptionalByte, |_, event| {
            event.communicator_size_class.map_or(Cell::Null, |class| Cell::Whole(class.into()))
        }),
        Column::new("ranks", Kind::Whole, |_, event| Cell::Whole(event.ranks.into())),
    ]);
    columns.extend(of_a_metric("calls", "calls", |event| &event.calls));
    columns.extend(of_a_metric("time_ns", "time", |event| &event.time_ns));
    columns.extend(of_a_metric("bytes", "bytes", |event| &event.bytes));
    columns
        .push(Column::new("imbalance", Kind::OptionalNumber, |_, event| optional(event.imbalance)));
    columns.extend(of_the_interval());
    columns.extend(of_the_wait());
    columns
}

fn of_the_round() -> [Column; 7] {
    [
        Column::new("number", Kind::Whole, |round, _| Cell::Whole(round.record.number)),
        Column::new("iteration", Kind::OptionalWhole, |round, _| {
            round.record.iteration.map_or(Cell::Null, Cell::Whole)
        }),
        Column::new("elapsed_s", Kind::Number, |round, _| Cell::Number(round.record.elapsed_s)),
        Column::new("world_size", Kind::Whole, |round, _| {
            Cell::Whole(round.record.world_size.into())
        }),
        Column::new("covered", Kind::Text, |round, _| Cell::Text(round.record.covered.clone())),
        Column::new("dropped", Kind::Whole, |round, _| Cell::Whole(round.record.dropped)),
        Column::new("unreadable", Kind::Whole, |round, _| Cell::Whole(round.record.unreadable)),
    ]
}

fn of_the_time() -> [Column; 4] {
    let efficiency = |path: &str, get: fn(&Efficiency) -> f64| {
        Column::new(path, Kind::OptionalNumber, move |round, _| {
            let time = round.record.time.as_ref();
            optional(time.and_then(|time| time.efficiency.as_ref()).map(get))
        })
    };
    [
        Column::new("time.mpi_ppm.mean", Kind::OptionalNumber, |round, _| {
            optional(round.record.time.as_ref().map(|time| time.mpi_ppm.mean))
        }),
        efficiency("time.efficiency.parallel", |efficiency| efficiency.parallel),
        efficiency("time.efficiency.load_balance", |efficiency| efficiency.load_balance),
        efficiency("time.efficiency.communication", |efficiency| efficiency.communication),
    ]
}

#[allow(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
fn of_the_wait() -> [Column; 4] {
    let column = |member: &str, get: fn(&EventWait) -> f64| {
        Column::new(format!("wait_ns.{member}"), Kind::OptionalNumber, move |_, event| {
            optional(event.wait_ns.as_ref().map(get))
        })
    };
    [
        column("sum", |wait| wait.sum as f64),
        column("mean", |wait| wait.mean),
        column("max", |wait| wait.max as f64),
        column("max_rank", |wait| f64::from(wait.max_rank)),
    ]
}

fn of_the_interval() -> [Column; 3] {
    let column = |member: &str, group: &'static str, get: fn(&EventTotals) -> u128| {
        let path = format!("event_intervals.{member}");
        Column::new(path, Kind::OptionalWhole, move |round, event| {
            let told = round.record.interval_of(event).filter(|totals| {
                get(totals) > 0
                    || !(round.left_out.has(&event.class, group) || is_call_hidden(round, totals))
            });
            told.map_or(Cell::Null, |totals| Cell::Whole(in_64_bits(get(&totals))))
        })
    };
    [
        column("calls", "calls", |totals| totals.calls),
        column("time_ns", "time", |totals| totals.time_ns),
        column("bytes", "bytes", |totals| totals.bytes),
    ]
}

/// Whether no rank that counts has made a call, so that only those may have that are left out.
fn is_call_hidden(round: &ToldRound<'_>, new: &EventTotals) -> bool {
    new.calls == 0 && round.left_out.has_ranks()
}

fn of_a_metric(name: &str, group: &'static str, metric: fn(&Event) -> &Metric) -> [Column; 7] {
    let column = |member: &str, kind, get: fn(&Metric) -> Cell| {
        Column::new(format!("{name}.{member}"), kind, move |round, event| {
            let metric = metric(event);
            let is_told = metric.sum > 0 || !round.left_out.has(&event.class, group);
            if is_told { get(metric) } else { Cell::Null }
        })
    };
    [
        column("sum", Kind::OptionalWhole, |metric| Cell::Whole(in_64_bits(metric.sum))),
        column("mean", Kind::OptionalNumber, |metric| Cell::Number(metric.mean)),
        column("standard_deviation", Kind::OptionalNumber, |metric| {
            optional(metric.standard_deviation)
        }),
        column("min", Kind::OptionalWhole, |metric| Cell::Whole(metric.min)),
        column("min_rank", Kind::OptionalWhole, |metric| Cell::Whole(metric.min_rank.into())),
        column("max", Kind::OptionalWhole, |metric| Cell::Whole(metric.max)),
        column("max_rank", Kind::OptionalWhole, |metric| Cell::Whole(metric.max_rank.into())),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sapwood_profile::{Counters, EventKey, RankProfile, Round};
    use sapwood_report::record::Settings;

    use super::*;

    /// A region that was called, with neither time nor bytes.
    fn record(groups: &[&str]) -> RoundRecord {
        let mut rank = RankProfile::new(0, 1);
        let counters = Counters { count: 7, time_ns: 0, bytes: 0 };
        rank.events.insert(EventKey::Region("solve".into()), counters);
        let mut round = Round::new(1);
        round.add(&rank).expect("a new rank");
        let mut record = RoundRecord::new(1, Duration::from_secs(1), &round, &[]);
        let mut same = record.clone();
        let sums = same.note_event_intervals(None);
        record.note_event_intervals(Some(&sums));
        let known = ["collective", "regions", "calls", "time", "bytes"];
        let [groups_known, groups] =
            [&known[..], groups].map(|names| names.iter().map(|&name| name.to_owned()).collect());
        record.settings = Some(Settings { groups, groups_known, ..Settings::default() });
        record
    }

    #[test]
    fn a_number_that_settings_leave_out_is_null_and_one_that_is_0_is_not() {
        let told = |groups: &[&str], path: &str| {
            let record = record(groups);
            let column = all().into_iter().find(|column| column.path == path).expect("a column");
            column.cell(&ToldRound::of(&record), &record.events[0])
        };
        let all_groups = ["collective", "regions", "calls", "time", "bytes"];
        let without_time = ["collective", "regions", "calls", "bytes"];
        let without_regions = ["collective", "calls", "time", "bytes"];
        for path in ["time_ns.sum", "time_ns.max", "event_intervals.time_ns"] {
            assert_eq!(told(&all_groups, path), Cell::Whole(0), "{path}");
            assert_eq!(told(&without_time, path), Cell::Null, "{path}");
            assert_eq!(told(&without_regions, path), Cell::Null, "{path}");
        }
        assert_eq!(told(&without_time, "time_ns.mean"), Cell::Null);
        assert_eq!(told(&without_time, "bytes.sum"), Cell::Whole(0), "these are counted");
        // What was counted before stays; nothing has come since.
        assert_eq!(told(&without_regions, "calls.sum"), Cell::Whole(7));
        assert_eq!(told(&without_regions, "event_intervals.calls"), Cell::Null);
        assert_eq!(told(&without_time, "event_intervals.calls"), Cell::Whole(0));
    }

    #[test]
    fn a_number_of_ranks_that_settings_leave_out_is_null() {
        let told = |ranks: &str, path: &str| {
            let mut record = record(&["collective", "regions", "calls", "time", "bytes"]);
            record.covered = "0-3".to_owned();
            record.settings.as_mut().expect("settings").ranks = ranks.to_owned();
            let column = all().into_iter().find(|column| column.path == path).expect("a column");
            column.cell(&ToldRound::of(&record), &record.events[0])
        };
        for path in ["time_ns.sum", "event_intervals.calls", "event_intervals.bytes"] {
            for all_ranks in ["", "0-3", "0-7"] {
                assert_eq!(told(all_ranks, path), Cell::Whole(0), "{path}, {all_ranks}");
            }
            assert_eq!(told("4-7", path), Cell::Null, "{path}: none counts");
        }
        // Rank 0 has counted what it did; rank 1 may have called it since.
        assert_eq!(told("0", "time_ns.sum"), Cell::Whole(0));
        assert_eq!(told("0", "event_intervals.calls"), Cell::Null);
        assert_eq!(told("4-7", "calls.sum"), Cell::Whole(7), "what was counted before stays");
    }

    #[test]
    fn every_column_is_a_member_of_a_record_and_is_documented() {
        let page = include_str!("../../../docs/monitor-outputs.md");
        for column in all() {
            let row = format!("| `{}` |", column.path);
            assert!(page.contains(&row), "{} is not described", column.path);
        }
    }
}
