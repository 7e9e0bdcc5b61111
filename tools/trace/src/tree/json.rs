//! The way of waves through a tree as JSON: schema `trace-tree-1`.

use sapwood::{ArrivalSums, ChildSums, HopForm, Rank, Role, StreamId};
use sapwood_hosts::absence::{by_cause, nameless};
use sapwood_trace::{Blame, EdgeFigures, Figure, ScopeStatistics, StreamFigures};
use serde_json::{Value, json};

use crate::hop_reading::End;
use crate::tree::following::Followed;
use crate::tree::hot_spots::{self, HotSpots};

/// The report.
pub(crate) fn report(followed: &Followed) -> String {
    let losses = followed.trace.losses();
    let processes: Vec<Value> = followed
        .status
        .nodes
        .iter()
        .map(|node| {
            json!({
                "rank": node.rank,
                "role": match node.role {
                    Role::FrontEnd => "front-end",
                    Role::Comm => "communication-process",
                    Role::BackEnd => "back-end",
                },
                "parent": node.parent,
                "host": node.record.as_ref().map(|record| &record.host),
                "answered": node.record.is_some(),
            })
        })
        .collect();
    let streams = followed.trace.streams().iter();
    let missing = by_cause(&followed.status.missing, nameless);
    let missing =
        missing.iter().map(|(ranks, cause)| json!({ "ranks": ranks.to_string(), "reason": cause }));
    let report = json!({
        "schema": "sapwood.trace-tree/1",
        "network": followed.network,
        "form": if followed.form == HopForm::Sums { "sums" } else { "events" },
        "seconds": followed.took.as_secs_f64(),
        "readings": followed.readings,
        "events": {
            "noted": losses.noted,
            "overwritten": losses.overwritten,
            "unread": losses.unread,
        },
        "processes_refused": losses.refused,
        "waves_unfinished": losses.unfinished,
        "sessions_lapsed": losses.lapsed,
        "end": match &followed.end {
            End::Over => "over".to_owned(),
            End::Signal(signal) => format!("signal {}", signal.as_raw()),
            End::NoAnswer(why) => why.clone(),
        },
        "missing": missing.collect::<Vec<Value>>(),
        "processes": processes,
        "streams": streams.map(|(&id, figures)| stream(id, figures, followed)).collect::<Vec<Value>>(),
    });
    format!("{report}\n")
}

fn stream(id: StreamId, figures: &StreamFigures, followed: &Followed) -> Value {
    let mut parents = Vec::new();
    for (&rank, sums) in &figures.arrivals {
        parents.push(parent(rank, sums));
    }
    let blame = figures.blame().into_iter().map(|one| {
        let (kind, rank) = kind_and_rank(one.blame);
        json!({ "kind": kind, "rank": rank, "ns": one.ns, "answers": one.answers })
    });
    let path_ends = figures.path_ends.iter();
    let edges = figures.edges.iter().map(|(&child, one)| edge(child, one));
    let processes = figures.processes.iter().map(|(&rank, one)| {
        json!({
            "rank": rank,
            "passing": figure(&one.passing),
            "spread": figure(&one.spread),
            "own": figure(&one.own),
        })
    });
    json!({
        "stream": id,
        "elapsed": figure(&figures.elapsed),
        "answers_explained": figures.explained,
        "waited_for": blame.collect::<Vec<Value>>(),
        "hot_spots": hot_spots::find(figures, &followed.status).map(|found| spots(&found)),
        "path_ends": path_ends
            .map(|(rank, count)| json!({ "rank": rank, "waves": count }))
            .collect::<Vec<Value>>(),
        "arrivals": parents,
        "links": edges.collect::<Vec<Value>>(),
        "processes": processes.collect::<Vec<Value>>(),
    })
}

fn kind_and_rank(blame: Blame) -> (&'static str, Rank) {
    match blame {
        Blame::BackEnd(rank) => ("back-end", rank),
        Blame::Process(rank) => ("process", rank),
        Blame::Link(rank) => ("link", rank),
    }
}

fn spots(found: &HotSpots) -> Value {
    let [back_ends, links, processes] = found.shares;
    let spots = found.spots.iter().map(|spot| {
        let (kind, rank) = kind_and_rank(spot.blame);
        json!({ "kind": kind, "rank": rank, "share": spot.share, "times_of_others": spot.times })
    });
    json!({
        "shares": { "back_ends": back_ends, "links": links, "processes": processes },
        "spots": spots.collect::<Vec<Value>>(),
        "model": found.model.map(|model| {
            json!({ "latency_us": model.latency_us(), "overhead_us": model.overhead_us() })
        }),
        "proposal": found.proposal.as_ref().map(|proposal| {
            json!({
                "topology": proposal.shape.to_string(),
                "present": proposal.present.to_string(),
                "predicted_us": proposal.predicted_us,
                "present_us": proposal.present_us,
            })
        }),
    })
}

fn parent(rank: Rank, sums: &ArrivalSums) -> Value {
    let streams = sums.streams();
    let sum =
        |of: fn(&sapwood::StreamSums) -> u64| streams.iter().map(of).fold(0, u64::saturating_add);
    json!({
        "parent": rank,
        "waves": sum(|one| one.waves),
        "partial": sum(|one| one.partial),
        "spread_ns": sum(|one| one.spread),
        "passing_ns": sum(|one| one.passing),
        "passing_most_ns": streams.iter().map(|one| one.passing_most).max().unwrap_or(0),
        "children": sums.children().iter().map(child).collect::<Vec<Value>>(),
    })
}

fn child(sums: &ChildSums) -> Value {
    json!({
        "rank": sums.child,
        "waves": sums.waves,
        "last": sums.last,
        "together": sums.together,
        "late": sums.late,
        "waited_ns": sums.waited,
        "caused_ns": sums.caused,
        "caused_most_ns": sums.caused_most,
    })
}

fn edge(child: Rank, edge: &EdgeFigures) -> Value {
    json!({
        "child": child,
        "parent": edge.parent,
        "clock_error_ns": edge.clock_error,
        "undecided": edge.up.undecided.saturating_add(edge.down.undecided),
        "up": figure(&edge.up.figure),
        "down": figure(&edge.down.figure),
        "two_way": figure(&edge.two_way),
        "arrival_wait": figure(&edge.arrival_wait),
        "departure_wait": figure(&edge.departure_wait),
    })
}

/// Null without a value.
fn figure(figure: &Figure) -> Value {
    if figure.all.count == 0 {
        return Value::Null;
    }
    let all = &figure.all;
    json!({
        "all": statistics(all, all.quantile(500)),
        "p90_ns": all.quantile(900),
        "p99_ns": all.quantile(990),
        "recent": statistics(&figure.recent(), figure.recent_median().unwrap_or_default()),
    })
}

fn statistics(one: &ScopeStatistics, median: u64) -> Value {
    json!({
        "count": one.count,
        "mean_ns": one.mean(),
        "min_ns": one.least,
        "max_ns": one.most,
        "deviation_ns": one.variance().sqrt(),
        "median_ns": median,
    })
}
