//! All trees as a table for people, or as one JSON object.

use serde_json::{Value, json};

use super::Series;
use super::row::{Plan, Row};

/// The name of the JSON object's form.
const SCHEMA: &str = "sapwood.sim-scale/1";

/// The columns: two lines of name, and the width.
const COLUMNS: [(&str, &str, usize); 14] = [
    ("", "fan-out", 8),
    ("", "back-ends", 9),
    ("", "depth", 5),
    ("start-up", "ms", 9),
    ("a wave", "us", 10),
    ("of the", "model's", 7),
    ("pipelined", "waves/s", 9),
    ("of the", "model's", 7),
    ("front-end", "us a wave", 9),
    ("messages", "a wave", 8),
    ("a link's bytes", "start-up", 14),
    ("bytes a wave", "most/mean", 12),
    ("a process", "bytes", 9),
    ("real", "s", 6),
];

/// The model, and the names of the columns.
pub(super) fn head(plan: &Plan) -> String {
    let (loggp, start) = (plan.costs.loggp(), plan.costs.start());
    format!(
        "LogGP: latency {} us, overhead {} us, gap {} us, {} us a byte. A start: {} us at the \
         parent, {} us until the\nchild connects, {} us for a proof at either side, {} children at \
         a time. All times are the model's, but 'real'.\n\n{}{}",
        loggp.latency_us(),
        loggp.overhead_us(),
        loggp.gap_us(),
        loggp.gap_per_byte_us(),
        start.spawn_us,
        start.ready_us,
        start.proof_us,
        start.at_a_time,
        in_columns(COLUMNS.map(|(first, _, _)| first.to_string())),
        in_columns(COLUMNS.map(|(_, second, _)| second.to_string())),
    )
}

fn in_columns(cells: [String; COLUMNS.len()]) -> String {
    let cells = cells.iter().zip(COLUMNS);
    let cells: Vec<String> = cells.map(|(cell, (_, _, width))| format!("{cell:>width$}")).collect();
    format!("{}\n", cells.join(" ").trim_end())
}

/// One tree; a blank line before the next number of back-ends.
pub(super) fn line(row: &Row, last: Option<&Row>) -> String {
    let is_new = last.is_some_and(|last| {
        let kind = |row: &Row| matches!(row.series, Series::Depth(_));
        last.tree.back_ends() != row.tree.back_ends() || kind(last) != kind(row)
    });
    let blank = if is_new { "\n" } else { "" };
    let mark = if row.figures.is_none() { "*" } else { "" };
    let number = |value: Option<f64>, digits: usize| {
        value.map_or("-".to_string(), |value| format!("{value:.digits$}"))
    };
    let figures = row.figures.as_ref();
    let wave_bytes = figures.map(|figures| figures.wave_bytes);
    let cells = [
        format!("{}{mark}", row.series),
        row.tree.back_ends().to_string(),
        row.tree.depth().to_string(),
        number(row.start_us().map(|time| time / 1000.0), 1),
        number(row.wave_us(), 1),
        number(wave_ratio(row), 3),
        number(row.waves_per_s(), 0),
        number(rate_ratio(row), 3),
        number(row.front_end_us(), 1),
        number(figures.map(|figures| figures.wave_load.messages), 0),
        number(figures.map(|figures| figures.start_bytes.max), 0),
        wave_bytes.map_or("-".to_string(), |bytes| format!("{:.0}/{:.0}", bytes.max, bytes.mean)),
        number(row.memory_bytes, 0),
        number(figures.map(|_| row.real_s), 1),
    ];
    format!("{blank}{}", in_columns(cells))
}

/// What the marks mean.
pub(super) fn foot(rows: &[Row]) -> String {
    let mut text = String::new();
    if rows.iter().any(|row| row.figures.is_none()) {
        text.push_str("\n* computed by the model: no real node has that many children\n");
    }
    text
}

/// The simulated wave's time as a multiple of the closed form's.
fn wave_ratio(row: &Row) -> Option<f64> {
    Some(row.figures.as_ref()?.wave_us / row.predicted?.wave_us)
}

fn rate_ratio(row: &Row) -> Option<f64> {
    Some(row.figures.as_ref()?.waves_per_s / row.predicted?.waves_per_s)
}

/// Everything.
pub(super) fn json(plan: &Plan, rows: &[Row]) -> String {
    let (loggp, start) = (plan.costs.loggp(), plan.costs.start());
    let rows: Vec<Value> = rows.iter().map(as_json).collect();
    let report = json!({
        "schema": SCHEMA,
        "model": {
            "latency_us": loggp.latency_us(),
            "overhead_us": loggp.overhead_us(),
            "gap_us": loggp.gap_us(),
            "gap_per_byte_us": loggp.gap_per_byte_us(),
            "spawn_us": start.spawn_us,
            "ready_us": start.ready_us,
            "proof_us": start.proof_us,
            "at_a_time": start.at_a_time,
        },
        "recovery": plan.recovery.is_on,
        "waves": plan.waves,
        "trees": rows,
    });
    format!("{report}\n")
}

fn as_json(row: &Row) -> Value {
    let series = match row.series {
        Series::Flat => json!({ "flat": true }),
        Series::FanOut(fan_out) => json!({ "fan_out": fan_out }),
        Series::Depth(depth) => json!({ "depth": depth }),
    };
    json!({
        "series": series,
        "topology": row.tree.spec(),
        "back_ends": row.tree.back_ends(),
        "communication_processes": row.tree.communication_processes(),
        "processes": row.tree.processes(),
        "depth": row.tree.depth(),
        "fan_out_max": row.tree.fan_out_max(),
        "simulated": row.figures.as_ref().map(|figures| json!({
            "start_up_us": figures.start_us,
            "open_us": figures.open_us,
            "first_wave_us": figures.first_wave_us,
            "wave_us": figures.wave_us,
            "waves_per_s": figures.waves_per_s,
            "pipelined_waves": row.pipelined,
            "request_bytes": figures.request_bytes,
            "answer_bytes": figures.answer_bytes,
            "link_bytes": {
                "start_up_max": figures.start_bytes.max,
                "start_up_mean": figures.start_bytes.mean,
                "wave_max": figures.wave_bytes.max,
                "wave_mean": figures.wave_bytes.mean,
            },
            "front_end": {
                "start_up_busy_us": figures.start_load.busy_us,
                "start_up_messages": figures.start_load.messages,
                "wave_busy_us": figures.wave_load.busy_us,
                "wave_messages": figures.wave_load.messages,
            },
            "node_bytes": figures.node_bytes,
            "memory_bytes_per_process": row.memory_bytes,
            "events": figures.events,
            "real_s": row.real_s,
        })),
        "predicted": row.predicted.map(|predicted| json!({
            "wave_us": predicted.wave_us,
            "waves_per_s": predicted.waves_per_s,
            "front_end_wave_us": predicted.front_end_us,
            "front_end_start_up_us": predicted.front_end_start_us,
        })),
        "wave_ratio": wave_ratio(row),
        "rate_ratio": rate_ratio(row),
    })
}
