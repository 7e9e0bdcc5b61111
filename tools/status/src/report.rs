//! A network's status and the way of a wave as JSON: schemas in `docs/schema`.

use sapwood::{Health, NodeStatus, Role, Status, VisibleNetwork};
use sapwood_hosts::absence::{by_cause, nameless};
use serde_json::{Value, json};

use super::timeline::Way;

/// The status.
pub(super) fn status(network: &VisibleNetwork, status: &Status) -> String {
    let (there, missing) = status.back_ends();
    let reasons: Vec<Value> = by_cause(&status.missing, nameless)
        .iter()
        .map(|(ranks, cause)| json!({ "ranks": ranks.to_string(), "reason": cause }))
        .collect();
    let nodes: Vec<Value> = status.nodes.iter().map(node).collect();
    let report = json!({
        "schema": "sapwood.status/1",
        "network": network.name,
        "pid": network.pid,
        "took_us": micros(Some(status.took)),
        "health": name(status.root().health),
        "back_ends": {
            "answered": there.to_string(),
            "missing": missing.to_string(),
            "reasons": reasons,
        },
        "nodes": nodes,
    });
    format!("{report}\n")
}

fn node(node: &NodeStatus) -> Value {
    let mut value = json!({
        "rank": node.rank,
        "role": role(node.role),
        "parent": node.parent,
        "planned_parent": node.planned_parent,
        "planned_host": node.planned_host,
        "health": name(node.health),
        "why": node.why,
        "answered": node.record.is_some(),
        "round_trip_us": micros(node.round_trip()),
    });
    if let (Some(record), Some(members)) = (&node.record, value.as_object_mut()) {
        let rate = |count: fn(&sapwood::NodeRecord) -> u64| node.per_second(count);
        let more = json!({
            "host": record.host,
            "pid": record.pid,
            "back_ends": {
                "expected": record.expected,
                "connected": record.connected,
                "lost": record.lost,
                "awaited": record.awaited,
            },
            "streams": record.streams,
            "queued_bytes": record.queued_bytes,
            "window_bytes": record.window_bytes,
            "fill": f64::from(record.fill) / 1000.0,
            "kept_bytes": record.kept_bytes,
            "dropped": record.dropped,
            "interval_us": record.interval / 1000,
            "waves_per_s": rate(|record| record.waves),
            "packets_per_s": rate(|record| record.packets),
            "bytes_per_s": rate(|record| record.bytes),
            "orphans_adopted": record.adopted,
            "children_gone": record.gone,
        });
        if let Value::Object(more) = more {
            members.extend(more);
        }
    }
    value
}

/// The way of a wave.
pub(super) fn trace(network: &VisibleNetwork, status: &Status) -> String {
    let way = Way::of(status);
    let hops: Vec<Value> = status
        .nodes
        .iter()
        .map(|node| {
            json!({
                "rank": node.rank,
                "role": role(node.role),
                "parent": node.parent,
                "answered": node.record.is_some(),
                "request_us": micros(way.began.get(&node.rank).copied()),
                "inside_us": micros(node.held()),
                "at_parent_us": micros(node.arrived()),
                "round_trip_us": micros(node.round_trip()),
            })
        })
        .collect();
    let report = json!({
        "schema": "sapwood.trace-wave/1",
        "network": network.name,
        "took_us": micros(Some(status.took)),
        "slowest_path": way.slowest,
        "hops": hops,
    });
    format!("{report}\n")
}

fn micros(time: Option<std::time::Duration>) -> Option<f64> {
    time.map(|time| time.as_nanos() as f64 / 1e3)
}

fn role(role: Role) -> &'static str {
    match role {
        Role::FrontEnd => "front-end",
        Role::Comm => "communication-process",
        Role::BackEnd => "back-end",
    }
}

fn name(health: Health) -> &'static str {
    health.name()
}
