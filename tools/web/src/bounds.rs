//! What of a round goes to browsers: no more than they can show, and a word on what was left out.

use std::cmp::Reverse;

use sapwood_report::RoundRecord;
use sapwood_report::record::{Event, Process};
use serde_json::{Value, json};

/// Events of a round, and of each class, that are shown at most: those with most time.
const EVENTS_MAX: usize = 1000;
/// Processes of the tree that are shown at most: those near the front-end.
const PROCESSES_MAX: usize = 2000;
/// Classes of a classification that are shown at most: the largest.
const CLASSES_MAX: usize = 64;
/// Events of each class that are shown at most.
const CLASS_EVENTS_MAX: usize = 100;
/// Other entries of a list that are shown at most.
const ENTRIES_MAX: usize = 1000;
/// Bytes of one round at most. Sections are left out of a larger one.
pub(crate) const ROUND_BYTES_MAX: usize = 4 << 20;

/// Makes a record fit, and gives it as JSON with what was left out of it, as numbers by name.
pub(crate) fn bounded(record: &mut RoundRecord, sequence: u64, published_ms: f64) -> String {
    let mut left_out = serde_json::Map::new();
    let mut note = |name: &str, count: usize| {
        if count > 0 {
            left_out.insert(name.to_owned(), Value::from(count));
        }
    };
    note("events", most_time(&mut record.events, EVENTS_MAX));
    note("processes", near_the_root(&mut record.tree));
    note("activities", cut(&mut record.activities, ENTRIES_MAX));
    note("histograms", cut(&mut record.histograms, ENTRIES_MAX));
    note("outliers", cut(&mut record.outliers, ENTRIES_MAX));
    note("deaths", cut(&mut record.deaths, ENTRIES_MAX));
    note("missing", cut(&mut record.missing, ENTRIES_MAX));
    for classification in &mut record.classifications {
        let more = cut(&mut classification.classes, CLASSES_MAX);
        classification.left_out += more as u64;
        for class in &mut classification.classes {
            note("class events", most_time(&mut class.events, CLASS_EVENTS_MAX));
            cut(&mut class.histograms, CLASS_EVENTS_MAX);
            cut(&mut class.names, ENTRIES_MAX);
        }
    }
    let mut line = record.line();
    for name in ["stacks", "tree", "classifications", "histograms", "rank values", "events"] {
        if line.len() <= ROUND_BYTES_MAX {
            break;
        }
        match name {
            "stacks" => record.stacks = None,
            "tree" => record.tree.clear(),
            "classifications" => record.classifications.clear(),
            "histograms" => record.histograms.clear(),
            "rank values" => record.rank_values.clear(),
            _ => record.events.truncate(EVENTS_MAX / 10),
        }
        left_out.insert(format!("{name}, too large"), Value::from(line.len()));
        line = record.line();
    }
    let left_out = json!(left_out);
    format!(
        r#"{{"sequence":{sequence},"published_ms":{published_ms},"left_out":{left_out},"record":{line}}}"#
    )
}

/// Shortens a list; gives by how much.
fn cut<T>(entries: &mut Vec<T>, most: usize) -> usize {
    let more = entries.len().saturating_sub(most);
    entries.truncate(most);
    more
}

fn most_time(events: &mut Vec<Event>, most: usize) -> usize {
    if events.len() > most {
        events.sort_by_key(|event| Reverse(event.time_ns.sum));
    }
    cut(events, most)
}

/// Leaves are left out first: the processes above them show where they were.
fn near_the_root(tree: &mut Vec<Process>) -> usize {
    if tree.len() > PROCESSES_MAX {
        tree.sort_by_key(|process| (process.role == "leaf", process.id));
    }
    cut(tree, PROCESSES_MAX)
}
