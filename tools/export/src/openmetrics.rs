//! The last round as OpenMetrics text, within a bound on the number of series.
//!
//! Events come in the order of their time over all ranks, each with all of its series or with none;
//! what has no room is counted. Only gauges are used, so that readers of Prometheus's older text
//! format take the same text.

use std::fmt::Write as _;

use sapwood_report::RoundRecord;
use sapwood_report::record::{Event, Metric};

use crate::event_names::{in_64_bits, sizes};

/// The file's name, as node_exporter's textfile collector wants it.
pub const FILE: &str = "sapwood.prom";
/// The content type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The bound on all series if nothing is said, and the least that makes sense.
pub const SERIES_DEFAULT: u32 = 2000;
/// See [`SERIES_DEFAULT`].
pub const SERIES_MIN: u32 = 32;
/// Series about the run as a whole, at most.
const OWN_SERIES_MAX: usize = 16;
/// Series of one event.
const EVENT_SERIES: usize = 16;

const PREFIX: &str = "sapwood_mpi_";

/// The text of the last round; before the first there is none.
#[must_use]
pub fn text(record: Option<&RoundRecord>, series_max: usize) -> String {
    let mut text = String::new();
    let empty = RoundRecord::default();
    own(&mut text, record.unwrap_or(&empty));
    let mut events: Vec<&Event> = record.iter().flat_map(|record| &record.events).collect();
    events.sort_by_key(|event| std::cmp::Reverse(event.time_ns.sum));
    let room = series_max.saturating_sub(OWN_SERIES_MAX) / EVENT_SERIES;
    let (shown, left_out) = events.split_at(events.len().min(room));
    families(&mut text, shown);
    let help = "Events without series here because of the bound on series";
    family(&mut text, "events_left_out", help, [("", left_out.len() as f64)]);
    text + "# EOF\n"
}

/// What is said of the run as a whole: at most [`OWN_SERIES_MAX`] series with the one at the end.
fn own(text: &mut String, record: &RoundRecord) {
    let states = &record.states;
    let count = |set: &str| rank_count(set) as f64;
    let missing: f64 = record.missing.iter().map(|loss| count(&loss.ranks)).sum();
    let ranks = [
        ("{state=\"running\"}", count(&states.running)),
        ("{state=\"finalized\"}", count(&states.finalized)),
        ("{state=\"exited\"}", count(&states.exited)),
        ("{state=\"lost\"}", count(&states.lost)),
        ("{state=\"missing\"}", missing),
    ];
    family(text, "ranks", "MPI ranks by state in the last round", ranks);
    let number = [("", record.number as f64)];
    family(text, "round_number", "Number of the last round, from 0", number);
    let help = "Time of the last round since the program's start";
    family(text, "elapsed_seconds", help, [("", record.elapsed_s)]);
    let help = "Counts that found no room in a rank's table";
    family(text, "dropped_counts", help, [("", record.dropped as f64)]);
    let Some(time) = &record.time else { return };
    let share = [
        ("{statistic=\"mean\"}", time.mpi_ppm.mean / 1e6),
        ("{statistic=\"min\"}", time.mpi_ppm.min as f64 / 1e6),
        ("{statistic=\"max\"}", time.mpi_ppm.max as f64 / 1e6),
    ];
    family(text, "time_ratio", "Share of MPI in the time of a rank", share);
    let Some(efficiency) = &time.efficiency else { return };
    let efficiency = [
        ("{kind=\"parallel\"}", efficiency.parallel),
        ("{kind=\"load_balance\"}", efficiency.load_balance),
        ("{kind=\"communication\"}", efficiency.communication),
    ];
    family(text, "efficiency_ratio", "Efficiencies as the POP project defines them", efficiency);
}

fn family<'a>(
    text: &mut String,
    name: &str,
    help: &str,
    samples: impl IntoIterator<Item = (&'a str, f64)>,
) {
    head(text, name, help);
    for (labels, value) in samples {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{PREFIX}{name}{labels} {}", number(value));
    }
}

fn head(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(text, "# TYPE {PREFIX}{name} gauge\n# HELP {PREFIX}{name} {help}");
}

type MetricOf = fn(&Event) -> &Metric;

/// Families of events: [`EVENT_SERIES`] series for each.
fn families(text: &mut String, events: &[&Event]) {
    if events.is_empty() {
        return;
    }
    head(text, "event_ranks", "Ranks that have the event");
    for event in events {
        let _ = writeln!(text, "{PREFIX}event_ranks{{{}}} {}", labels(event), event.ranks);
    }
    let metrics: [(&str, &str, MetricOf, f64); 3] = [
        (
            "event_calls",
            "Calls that returned, over the ranks that have the event",
            |e| &e.calls,
            1.0,
        ),
        ("event_time_seconds", "Inclusive time, over the ranks", |e| &e.time_ns, 1e-9),
        ("event_bytes", "Bytes, over the ranks that have the event", |e| &e.bytes, 1.0),
    ];
    for (name, help, metric, unit) in metrics {
        head(text, name, help);
        for event in events {
            let metric = metric(event);
            let statistics = [
                ("sum", in_64_bits(metric.sum) as f64),
                ("mean", metric.mean),
                ("deviation", metric.standard_deviation.unwrap_or(f64::NAN)),
                ("min", metric.min as f64),
                ("max", metric.max as f64),
            ];
            for (statistic, value) in statistics {
                let (labels, value) = (labels(event), number(value * unit));
                let _ =
                    writeln!(text, "{PREFIX}{name}{{{labels},statistic=\"{statistic}\"}} {value}");
            }
        }
    }
}

fn labels(event: &Event) -> String {
    format!(
        "event=\"{}\",class=\"{}\",communicator_size=\"{}\"",
        escaped(&event.name),
        escaped(&event.class),
        sizes(event.communicator_size_class)
    )
}

/// A text as it may stand in quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}

fn number(value: f64) -> String {
    match value {
        _ if value.is_nan() => "NaN".to_string(),
        f64::INFINITY => "+Inf".to_string(),
        f64::NEG_INFINITY => "-Inf".to_string(),
        // Not "-0".
        0.0 => "0".to_string(),
        _ => format!("{value}"),
    }
}

/// How many ranks a set such as `0-3,7` has.
pub(crate) fn rank_count(set: &str) -> u64 {
    let ranges = set.split(',').filter(|range| !range.is_empty());
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let numbers = first.trim().parse::<u64>().ok().zip(last.trim().parse::<u64>().ok());
        numbers.map_or(0, |(first, last)| last.saturating_sub(first) + 1)
    };
    ranges.map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_openmetrics_has_them() {
        let told = [-0.0, 0.0, 1.5, f64::NAN, f64::INFINITY].map(number);
        assert_eq!(told, ["0", "0", "1.5", "NaN", "+Inf"]);
    }

    #[test]
    fn a_set_of_ranks_is_counted() {
        for (set, count) in [("", 0), ("0", 1), ("0-3,7", 5), ("2,4-5", 3)] {
            assert_eq!(rank_count(set), count, "{set}");
        }
    }
}
