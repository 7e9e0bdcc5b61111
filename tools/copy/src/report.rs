//! What is written when a copy has ended: lines about what went wrong, or one JSON object.

use std::time::Duration;

use sapwood::RankSet;
use serde_json::{Value, json};

use super::progress::bytes;
use super::protocol::{Complaints, State};
use super::results::Results;
use super::{Arguments, Direction};
use sapwood_command_line::exit::{Failure, complain, print};
use sapwood_hosts::absence;

/// What is told of a copy besides its hosts.
pub(super) struct Summary {
    /// What went wrong at the front-end's own end, and what was left out there.
    pub(super) own: Complaints,
    /// Files and bytes of data of what is pushed.
    pub(super) planned: Option<(u64, u64)>,
    /// Bytes of data that left their source: once, for however many hosts they were.
    pub(super) sent_bytes: u64,
    pub(super) time: Duration,
    pub(super) fan_out: u32,
    /// Whether a person is looking.
    pub(super) is_watched: bool,
}

/// Writes everything, and gives the exit code.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn write(
    results: &Results,
    arguments: &Arguments,
    summary: &Summary,
    code: u8,
) -> Result<(), Failure> {
    if arguments.json {
        return print(&format!("{}\n", object(results, arguments, summary, code)));
    }
    if !arguments.quiet {
        write_left_out(results, summary);
    }
    write_errors(results, summary);
    if summary.is_watched && code == 0 {
        let (files, data) = totals(results);
        let seconds = summary.time.as_secs_f64().max(1e-3);
        let whole = results.whole().len();
        complain(format_args!(
            "{whole} hosts, {files} files, {} in all, {seconds:.1} s, {}/s",
            bytes(data),
            bytes((data as f64 / seconds) as u64),
        ));
    }
    Ok(())
}

/// Files and bytes of data on all hosts together.
fn totals(results: &Results) -> (u64, u64) {
    let each = results.over();
    each.iter().filter_map(|rank| results.outcome(rank)).fold((0, 0), |sum, outcome| match outcome
        .state
    {
        State::Done { files, bytes } => (sum.0.saturating_add(files), sum.1.saturating_add(bytes)),
        State::Going(..) | State::Lacking => sum,
    })
}

/// A line about hosts.
fn write_line(results: &Results, ranks: &RankSet, text: &str) {
    let nodes = results.nodes(ranks);
    complain(format_args!("{nodes} ({}): {text}", nodes.len()));
}

/// One line for each thing that is no error and was not copied.
fn write_left_out(results: &Results, summary: &Summary) {
    for text in &summary.own.left_out {
        complain(text);
    }
    for (text, ranks) in results.left_out() {
        write_line(results, &ranks, &text);
    }
}

/// One line for each thing that went wrong, with the hosts on which it did.
fn write_errors(results: &Results, summary: &Summary) {
    for complaint in &summary.own.first {
        complain(format_args!("{}: {}", complaint.path, complaint.reason));
    }
    let told = summary.own.first.len() as u64;
    if summary.own.count > told {
        complain(format_args!("and {} more like these", summary.own.count - told));
    }
    let say = |ranks: &RankSet, text: &str| write_line(results, ranks, text);
    let (complaints, more) = results.complaints();
    for (complaint, ranks) in complaints {
        say(&ranks, &format!("{}: {}", complaint.path, complaint.reason));
    }
    for (count, ranks) in more {
        say(&ranks, &format!("and {count} more like these"));
    }
    for (ranks, reason) in results.missing() {
        complain(absence::line(&results.nodes(&ranks), &reason));
    }
    let running = results.running();
    if !running.is_empty() {
        say(
            &running,
            "interrupted before the copy was complete; run the same command again to continue",
        );
    }
}

fn object(results: &Results, arguments: &Arguments, summary: &Summary, code: u8) -> Value {
    let nodes = |ranks: &RankSet| {
        let nodes = results.nodes(ranks);
        json!({ "nodes": nodes.to_string(), "count": nodes.len() })
    };
    let with = |ranks: &RankSet, members: &[(&str, &str)]| {
        let mut part = nodes(ranks);
        for (name, value) in members {
            part[*name] = (*value).into();
        }
        part
    };
    let own = |complaint: &super::protocol::Complaint| json!({ "nodes": "", "count": 0, "path": complaint.path, "reason": complaint.reason });
    let (complaints, _) = results.complaints();
    let errors: Vec<Value> = summary
        .own
        .first
        .iter()
        .map(own)
        .chain(complaints.iter().map(|(complaint, ranks)| {
            with(ranks, &[("path", &complaint.path), ("reason", &complaint.reason)])
        }))
        .collect();
    let left_out: Vec<Value> = summary
        .own
        .left_out
        .iter()
        .map(|text| json!({ "nodes": "", "count": 0, "text": text }))
        .chain(results.left_out().iter().map(|(text, ranks)| with(ranks, &[("text", text)])))
        .collect();
    let missing: Vec<Value> = results
        .missing()
        .iter()
        .map(|(ranks, reason)| with(ranks, &[("reason", reason)]))
        .collect();
    let all: sapwood_topology::NodeSet = results.hosts.iter().cloned().collect();
    let (files, data) = totals(results);
    let direction = match arguments.direction() {
        Direction::Push => "push",
        Direction::Gather => "gather",
    };
    json!({
        "schema": "sapwood.copy/1",
        "direction": direction,
        "sources": arguments.sources().iter().map(|it| it.display().to_string()).collect::<Vec<_>>(),
        "destination": arguments.destination().display().to_string(),
        "nodes": all.to_string(),
        "count": results.hosts.len(),
        "fan_out": summary.fan_out,
        "exit_code": code,
        "planned": summary.planned.map(|(files, bytes)| json!({ "files": files, "bytes": bytes })),
        "files": files,
        "bytes": data,
        "sent_bytes": summary.sent_bytes,
        "seconds": summary.time.as_secs_f64(),
        "whole": nodes(&results.whole()),
        "failed": nodes(&results.failed()),
        "stopped": nodes(&results.running()),
        "missing": missing,
        "errors": errors,
        "left_out": left_out,
    })
}
