//! `caliper.json`: every event of every rank, in the split JSON of Caliper, which Hatchet reads.
//!
//! Nodes are named by `path`: `program`, and below it each event; rows refer to them by their
//! place. Calls made inside a region are below `program` as well: what is inside what is not
//! recorded. Other members are metadata of the run.

use std::collections::BTreeMap;

use sapwood_report::Profile;
use serde_json::{Value, json};

use crate::event_names::full_name;
use crate::rank_rows::RankRow;

/// The file's name.
pub(crate) const FILE: &str = "caliper.json";

pub(crate) fn text(rows: &[RankRow], profile: &Profile) -> String {
    let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
    for row in rows {
        let next = places.len() + 1;
        let name = full_name(&row.event, row.communicator_size_class);
        places.entry((name, row.class.clone())).or_insert(next);
    }
    let mut nodes = vec![json!({ "label": root(profile), "column": "path" }); places.len() + 1];
    for ((name, _), &place) in &places {
        nodes[place] = json!({ "label": name, "column": "path", "parent": 0 });
    }
    // Classes and hosts are labels, too.
    let mut labels: BTreeMap<&str, usize> = BTreeMap::new();
    nodes.push(json!({ "label": "program", "column": "event.class" }));
    labels.insert("program", nodes.len() - 1);
    for row in rows {
        for (column, label) in [("event.class", &row.class), ("host", &row.host)] {
            labels.entry(label).or_insert_with(|| {
                nodes.push(json!({ "label": label, "column": column }));
                nodes.len() - 1
            });
        }
    }
    let root_row = RankRow { class: "program".into(), ..rows.first().cloned().unwrap_or_default() };
    let root_row = RankRow { count: 0, time_ns: 0, bytes: 0, ..root_row };
    let label = |text: &str| labels.get(text).copied().unwrap_or_default();
    let values = |place: usize, row: &RankRow| {
        let seconds = row.time_ns as f64 / 1e9;
        let (class, host) = (label(&row.class), label(&row.host));
        json!([place, place, row.mpi_rank, seconds, row.count, row.bytes, class, host])
    };
    // The first row of each node stands at the node's own place: Hatchet looks there for its order.
    let mut first = vec![None; places.len() + 1];
    first[0] = Some(values(0, &root_row));
    let mut others = Vec::new();
    for row in rows {
        let name = full_name(&row.event, row.communicator_size_class);
        let place = places[&(name, row.class.clone())];
        match &mut first[place] {
            none @ None => *none = Some(values(place, row)),
            Some(_) => others.push(values(place, row)),
        }
    }
    let data: Vec<Value> = first.into_iter().flatten().chain(others).collect();
    let is_value = |is_value: bool| json!({ "is_value": is_value });
    let document = json!({
        "data": data,
        "columns": ["Node order", "path", "mpi.rank", "sum#time.duration", "calls", "bytes", "event.class", "host"],
        "column_metadata": [
            is_value(true), is_value(false), is_value(true), is_value(true), is_value(true), is_value(true),
            is_value(false), is_value(false),
        ],
        "nodes": nodes,
        "program": profile.program,
        "command": profile.command,
        "mpi": profile.mpi,
        "started": profile.started,
        "world_size": profile.world_size,
        "sapwood": profile.sapwood,
    });
    document.to_string() + "\n"
}

fn root(profile: &Profile) -> &str {
    if profile.program.is_empty() { "program" } else { &profile.program }
}
