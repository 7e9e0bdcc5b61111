//! A group as JSON, and the trees of its collectives.

use std::collections::BTreeMap;

use sapwood::group_status::{ChangeKind, Status, TreeStatus};
use sapwood::{MemberId, PartCount};
use serde_json::{Value, json};

use super::{label, labels, reason, word};

/// The form of a group's status.
const STATUS: &str = "sapwood.group-status/1";
/// The form of its trees.
const TREE: &str = "sapwood.group-tree/1";

/// A group; with `trees` if those of all roots were asked for.
pub(super) fn to_json(status: &Status, trees: Option<&[TreeStatus]>) -> Value {
    let labels = labels(status);
    let members: Vec<Value> = status
        .members
        .iter()
        .map(|member| {
            json!({
                "names": label(&labels, &member.id),
                "address": member.address,
                "site": member.site,
                "life": word(member.life),
                "cluster": member.cluster,
            })
        })
        .collect();
    // Clusters without members stay: others are named by their index.
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
    let mut group = json!({
        "schema": STATUS,
        "space": status.space,
        "members": members,
        "clusters": clusters,
        "round_trips": distances,
        "table": status.table,
        "probes": status.probes,
        "held": status.held,
        "reductions": {
            "expected": parts_json(&status.reductions.expected),
            "unexpected": parts_json(&status.reductions.unexpected),
            "grace_waits": status.reductions.grace_waits,
            "grace_met": status.reductions.grace_met,
        },
        "changes": changes,
        "tree": tree_json(&status.tree, &labels),
    });
    if let Some(trees) = trees {
        group["trees"] = trees.iter().map(|tree| tree_json(tree, &labels)).collect();
    }
    group
}

fn parts_json(count: &PartCount) -> Value {
    json!({
        "parts": count.parts,
        "bytes": count.bytes,
        "copied_parts": count.copied_parts,
        "copied_bytes": count.copied_bytes,
    })
}

/// The tree of one root, or of all.
pub(super) fn explained(status: &Status, trees: Option<&[TreeStatus]>) -> Value {
    let labels = labels(status);
    let mut explained = match trees {
        Some(trees) => {
            let trees = trees.iter().map(|tree| tree_json(tree, &labels));
            json!({ "trees": trees.collect::<Vec<Value>>() })
        }
        None => tree_json(&status.tree, &labels),
    };
    explained["schema"] = TREE.into();
    explained
}

fn tree_json(tree: &TreeStatus, labels: &BTreeMap<MemberId, String>) -> Value {
    let steps: Vec<Value> = tree
        .steps
        .iter()
        .map(|step| {
            json!({
                "stripe": step.stripe,
                "child": label(labels, &step.child),
                "parent": label(labels, &step.parent),
                "place": step.place,
                "depth": step.depth,
                "arrival_seconds": step.arrival as f64 / 1e9,
                "why": reason(&step.why),
            })
        })
        .collect();
    let choice = tree
        .choice
        .as_ref()
        .map(|choice| json!({ "stripes": choice.stripes, "why": choice.to_string() }));
    json!({
        "kind": tree.kind.to_string(),
        "root": tree.root,
        "bytes": tree.bytes,
        "choice": choice,
        "steps": steps,
    })
}
