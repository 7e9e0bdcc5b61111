//! The columns of per-round rows, for Parquet and CSV: a row for each event in each round.
//!
//! A column is named by the path of the member in `rounds.ndjson` that it holds, so that
//! `calls.sum` is the member `sum` of the event's `calls`. docs/monitor-outputs.md describes each.

use sapwood_report::record::{Event, EventTotals, EventWait, Metric, RoundRecord};

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

type Get = Box<dyn Fn(&RoundRecord, &Event) -> Cell>;

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
        get: impl Fn(&RoundRecord, &Event) -> Cell + 'static,
    ) -> Self {
        Self { path: path.into(), kind, get: Box::new(get) }
    }

    /// The value in the row of an event.
    #[must_use]
    pub fn cell(&self, record: &RoundRecord, event: &Event) -> Cell {
        (self.get)(record, event)
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
    columns.extend(of_a_metric("calls", |event| &event.calls));
    columns.extend(of_a_metric("time_ns", |event| &event.time_ns));
    columns.extend(of_a_metric("bytes", |event| &event.bytes));
    let imbalance = |_: &RoundRecord, event: &Event| optional(event.imbalance);
    columns.push(Column::new("imbalance", Kind::OptionalNumber, imbalance));
    columns.extend(of_the_interval());
    columns.extend(of_the_wait());
    columns
}

fn of_the_round() -> [Column; 7] {
    [
        Column::new("number", Kind::Whole, |record, _| Cell::Whole(record.number)),
        Column::new("iteration", Kind::OptionalWhole, |record, _| {
            record.iteration.map_or(Cell::Null, Cell::Whole)
        }),
        Column::new("elapsed_s", Kind::Number, |record, _| Cell::Number(record.elapsed_s)),
        Column::new("world_size", Kind::Whole, |record, _| Cell::Whole(record.world_size.into())),
        Column::new("covered", Kind::Text, |record, _| Cell::Text(record.covered.clone())),
        Column::new("dropped", Kind::Whole, |record, _| Cell::Whole(record.dropped)),
        Column::new("unreadable", Kind::Whole, |record, _| Cell::Whole(record.unreadable)),
    ]
}

fn of_the_time() -> [Column; 4] {
    let efficiency = |get: fn(&sapwood_report::record::Efficiency) -> f64| {
        move |record: &RoundRecord, _: &Event| {
            let efficiency = record.time.as_ref().and_then(|time| time.efficiency.as_ref());
            optional(efficiency.map(get))
        }
    };
    [
        Column::new("time.mpi_ppm.mean", Kind::OptionalNumber, |record, _| {
            optional(record.time.as_ref().map(|time| time.mpi_ppm.mean))
        }),
        Column::new(
            "time.efficiency.parallel",
            Kind::OptionalNumber,
            efficiency(|efficiency| efficiency.parallel),
        ),
        Column::new(
            "time.efficiency.load_balance",
            Kind::OptionalNumber,
            efficiency(|efficiency| efficiency.load_balance),
        ),
        Column::new(
            "time.efficiency.communication",
            Kind::OptionalNumber,
            efficiency(|efficiency| efficiency.communication),
        ),
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
    let column = |member: &str, get: fn(&EventTotals) -> u128| {
        let path = format!("event_intervals.{member}");
        Column::new(path, Kind::OptionalWhole, move |record, event| {
            let totals = record.interval_of(event);
            totals.map_or(Cell::Null, |totals| Cell::Whole(in_64_bits(get(&totals))))
        })
    };
    [
        column("calls", |totals| totals.calls),
        column("time_ns", |totals| totals.time_ns),
        column("bytes", |totals| totals.bytes),
    ]
}

fn of_a_metric(name: &str, metric: fn(&Event) -> &Metric) -> [Column; 7] {
    let column = |member: &str, kind, get: fn(&Metric) -> Cell| {
        Column::new(format!("{name}.{member}"), kind, move |_, event| get(metric(event)))
    };
    [
        column("sum", Kind::Whole, |metric| Cell::Whole(in_64_bits(metric.sum))),
        column("mean", Kind::Number, |metric| Cell::Number(metric.mean)),
        column("standard_deviation", Kind::OptionalNumber, |metric| {
            optional(metric.standard_deviation)
        }),
        column("min", Kind::Whole, |metric| Cell::Whole(metric.min)),
        column("min_rank", Kind::Whole, |metric| Cell::Whole(metric.min_rank.into())),
        column("max", Kind::Whole, |metric| Cell::Whole(metric.max)),
        column("max_rank", Kind::Whole, |metric| Cell::Whole(metric.max_rank.into())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_a_member_of_a_record_and_is_documented() {
        let page = include_str!("../../../docs/monitor-outputs.md");
        for column in all() {
            let row = format!("| `{}` |", column.path);
            assert!(page.contains(&row), "{} is not described", column.path);
        }
    }
}
