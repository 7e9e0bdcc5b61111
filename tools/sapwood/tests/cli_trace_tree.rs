//! `sapwood trace tree` follows the waves of networks of other processes.

use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::cli::benchmark::{Running, ask};
use crate::cli::{assert_refused, json, text};
use rustix::process::{Pid, Signal, kill_process};
use sapwood_schema::assert_fits;
use serde_json::Value;

/// Far longer than anything here takes.
const HANG: Duration = Duration::from_secs(60);

/// How long a back-end is stopped, again and again: the delay that is to be found.
const STOP: Duration = Duration::from_millis(400);

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// The stream that most waves passed on.
fn busiest(report: &Value) -> &Value {
    let waves = |stream: &&Value| {
        list(&stream["arrivals"]).iter().map(|one| number(&one["waves"])).sum::<u64>()
    };
    list(&report["streams"]).iter().max_by_key(waves).expect("waves have passed")
}

/// What holds of every report: sums are no more than what they are sums of.
fn assert_consistent(report: &Value) {
    assert_fits("trace-tree-1", report);
    for stream in list(&report["streams"]) {
        for parent in list(&stream["arrivals"]) {
            let waves = number(&parent["waves"]);
            let children = list(&parent["children"]);
            let last: u64 = children.iter().map(|child| number(&child["last"])).sum();
            assert!(last <= waves, "{parent}");
            for child in children {
                assert!(number(&child["waves"]) <= waves, "{parent}");
                assert!(number(&child["caused_most_ns"]) <= number(&child["caused_ns"]), "{child}");
                assert_eq!(
                    number(&child["last"]) == 0,
                    number(&child["caused_ns"]) == 0,
                    "{child}"
                );
            }
        }
        let explained = number(&stream["answers_explained"]);
        let answers = stream["elapsed"]["all"]["count"].as_u64().unwrap_or(0);
        assert!(explained <= answers, "{stream}");
        let waited = list(&stream["waited_for"]).iter().map(|one| number(&one["ns"])).sum::<u64>();
        let mean = stream["elapsed"]["all"]["mean_ns"].as_f64().unwrap_or(0.0);
        assert!(waited as f64 <= mean * answers as f64 * 1.001 + 1.0, "{stream}");
    }
}

/// Stops a process for a while again and again until a command has ended.
fn stop_until_end(pid: u32, mut command: Child) -> Output {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let begin = Instant::now();
    while command.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < HANG, "the command does not end");
        kill_process(pid, Signal::STOP).unwrap();
        sleep(STOP);
        kill_process(pid, Signal::CONT).unwrap();
        sleep(STOP / 6);
    }
    command.wait_with_output().unwrap()
}

#[test]
fn the_back_end_that_stops_is_what_answers_wait_for_at_fan_outs_1_2_and_8() {
    for (shape, slow) in [("2x2x2", 5), ("8", 3), ("1x1", 0), ("4x2", 6)] {
        let folder = tempfile::tempdir().unwrap();
        let running = Running::start(folder.path(), shape);
        let status = json(&ask(folder.path(), &["status", "--json", "--timeout", "60s"]));
        let node = list(&status["nodes"]).iter().find(|node| node["rank"] == slow).unwrap();
        let command = crate::cli::command()
            .args(["trace", "tree", "--for", "4s", "--timeout", "10s", "--json"])
            .env("XDG_RUNTIME_DIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let report = json(&stop_until_end(number(&node["pid"]) as u32, command));
        drop(running);
        assert_consistent(&report);
        assert_eq!(number(&report["processes_refused"]), 0, "{shape}");
        let stream = busiest(&report);
        // The first thing that answers waited for is this back-end or the link to it: a packet that
        // comes to a stopped process is read when it runs again.
        let first = &list(&stream["waited_for"])[0];
        assert_eq!(number(&first["rank"]), slow, "{shape}: {first}");
        assert_ne!(first["kind"], "process", "{shape}: {first}");
        let children = || list(&stream["arrivals"]).iter().flat_map(|one| list(&one["children"]));
        let most = children().max_by_key(|child| number(&child["caused_ns"])).unwrap();
        if shape != "1x1" {
            let parents = list(&report["processes"]);
            let mut path = vec![slow];
            while let Some(above) = parents
                .iter()
                .find(|process| process["rank"] == *path.last().unwrap())
                .and_then(|process| process["parent"].as_u64())
            {
                path.push(above);
            }
            assert!(path.contains(&number(&most["rank"])), "{shape}: {most}, {path:?}");
        }
    }
}

#[test]
fn sums_that_processes_make_have_the_same_form() {
    let folder = tempfile::tempdir().unwrap();
    let _running = Running::start(folder.path(), "2x2");
    let arguments = ["trace", "tree", "--for", "1s", "--every", "100ms", "--sums", "--json"];
    let report = json(&ask(folder.path(), &arguments));
    assert_consistent(&report);
    assert_eq!(report["form"], "sums");
    let stream = busiest(&report);
    assert_eq!(list(&stream["arrivals"]).len(), 7, "front-end and all below it");
    assert!(stream["elapsed"].is_null() && list(&stream["links"]).is_empty());
}

#[test]
fn the_table_names_every_process_and_says_what_is_lacking() {
    let folder = tempfile::tempdir().unwrap();
    let _running = Running::start(folder.path(), "2x2");
    let picture = folder.path().join("tree.svg");
    let file = picture.to_str().unwrap();
    let arguments = ["trace", "tree", "--for", "300ms", "--room", "16", "--svg", file];
    let output = ask(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for line in ["front-end 4", "communication process 5", "back-end 0", "back-end 3"] {
        assert!(table.contains(line), "{line}: {table}");
    }
    assert!(table.contains("overwritten before they were read"), "{table}");
    assert!(table.contains("--room"), "{table}");
    let picture = std::fs::read_to_string(picture).unwrap();
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
    assert_eq!((picture.matches("<circle").count(), picture.matches("<line").count()), (7, 6));
    assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
}

/// Follows for a minute; signals are its own from here on, though it may not have begun to read.
fn followed_for_long(folder: &Path) -> Child {
    let command = crate::cli::command()
        .args(["trace", "tree", "--for", "60s", "--every", "50ms"])
        .env("XDG_RUNTIME_DIR", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", command.id());
    crate::cli::wait_until("it does not catch interrupts", || {
        let text = std::fs::read_to_string(&status).unwrap();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (Signal::INT.as_raw() - 1) != 0
    });
    command
}

#[test]
fn what_was_read_is_printed_at_an_interrupt() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), "2x2");
    let command = followed_for_long(folder.path());
    kill_process(Pid::from_child(&command), Signal::INT).unwrap();
    let output = command.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let head = format!("{}: ", running.name);
    assert!(text(&output.stdout).starts_with(&head), "{}", text(&output.stdout));
}

#[test]
fn what_was_read_is_printed_when_the_network_ends() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), "2x2");
    let head = format!("{}: ", running.name);
    let command = followed_for_long(folder.path());
    drop(running);
    let output = command.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", text(&output.stderr));
    let has_begun = text(&output.stderr).contains("was followed for");
    assert_eq!(text(&output.stdout).starts_with(&head), has_begun, "{}", text(&output.stderr));
}

#[test]
fn a_stream_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let _running = Running::start(folder.path(), "2");
    let output = ask(folder.path(), &["trace", "tree", "--for", "200ms", "--stream", "99"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("no wave of stream 99"), "{}", text(&output.stdout));
}

#[test]
fn wrong_words_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, what) in [
        (&["trace", "tree", "--for", "0s"][..], "--for"),
        (&["trace", "tree", "--every", "1ms"], "10ms"),
        (&["trace", "tree", "--room", "0"], "events"),
        (&["trace", "tree", "--room", "99999999"], "1048576"),
        (&["trace", "tree", "--stream", "x"], "number of a stream"),
        (&["trace", "tree", "--svg", "/no/such/folder/x"], "/no/such/folder/x"),
        (&["trace", "tree"], "no visible network"),
        (&["trace", "tree", "--network", "none"], "no visible network"),
    ] {
        assert_refused(&ask(folder.path(), arguments), what, arguments);
    }
}
