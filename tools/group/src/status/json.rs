//! A group as JSON, and the trees of its collectives.

use sapwood::group_status::{ChangeKind, Status, TreeStatus};
use serde_json::{Value, json};

use super::{label, labels, reason};

pub(super) fn to_json(status: &Status) -> Value {
    let labels = labels(status);
    let members: Vec<Value> = status
        .members
        .iter()
        .map(|member| {
            json!({
                "names": label(&labels, &member.id),
                "address": member.address,
                "site": member.site,
                "life": format!("{:?}", member.life).to_lowercase(),
                "cluster": member.cluster,
            })
        })
        .collect();
    let clusters: Vec<String> =
        status.clusters.iter().map(|entry| entry.1.as_set().to_set().to_string()).collect();
    let distances: Vec<Value> = status
        .distances
        .iter()
        .map(|(from, to, time)| json!({ "from": from, "to": to, "seconds": *time as f64 / 1e9 }))
        .collect();
    let changes: Vec<Value> = status
        .changes
        .iter()
        .map(|change| {
            let age = change.age as f64 / 1e9;
            match &change.what {
                ChangeKind::Joined(id) => json!({ "age": age, "joined": label(&labels, id) }),
                ChangeKind::Gone(id, why) => {
                    json!({ "age": age, "gone": label(&labels, id), "reason": why.to_string() })
                }
                ChangeKind::Clusters(version, count) => {
                    json!({ "age": age, "table": version, "clusters": count })
                }
            }
        })
        .collect();
    json!({
        "space": status.space,
        "members": members,
        "clusters": clusters,
        "round_trips": distances,
        "table": status.table,
        "probes": status.probes,
        "held": status.held,
        "changes": changes,
        "tree": tree_json(status),
    })
}

pub(super) fn tree_json(status: &Status) -> Value {
    let labels = labels(status);
    let steps: Vec<Value> = status
        .tree
        .steps
        .iter()
        .map(|step| {
            json!({
                "stripe": step.stripe,
                "child": label(&labels, &step.child),
                "parent": label(&labels, &step.parent),
                "place": step.place,
                "depth": step.depth,
                "arrival_seconds": step.arrival as f64 / 1e9,
                "why": reason(&step.why),
            })
        })
        .collect();
    let TreeStatus { kind, root, bytes, .. } = &status.tree;
    json!({ "kind": kind.to_string(), "root": root, "bytes": bytes, "steps": steps })
}
