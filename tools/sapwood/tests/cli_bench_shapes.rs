//! `sapwood bench shapes` with tiny counts: both trees are real processes, each sum was right, and
//! the verdict is what the ratios of the pairs say. Which tree is better is not looked at.

use crate::cli::benchmark::assert_leaves_no_process;
use crate::cli::{assert_refused, run, text};
use sapwood_schema::assert_fits;
use serde_json::Value;

const TINY: [&str; 8] = ["bench", "shapes", "--rounds", "5", "--waves", "40", "--bytes", "64"];

fn measured(further: &[&str]) -> Value {
    let output = run(&[&TINY[..], &["--json"], further].concat());
    assert!(output.status.success(), "{further:?}: {}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    let report = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("bench-shapes-1", &report);
    report
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// What holds of a section whatever the machine does.
fn assert_consistent(section: &Value, pairs: usize) {
    let side = |name: &str| {
        let spread = &section["spread"][name];
        assert_eq!(spread["runs"], pairs, "{section}");
        assert_eq!(spread["median"], section[name], "{section}");
        (number(&spread["min"]), number(&spread["max"]))
    };
    let ((before_min, before_max), (after_min, after_max)) = (side("before_us"), side("after_us"));
    assert!(before_min > 0.0 && after_min > 0.0, "{section}");
    let ratio = &section["ratio"];
    let each: Vec<f64> = ratio["each"].as_array().unwrap().iter().map(number).collect();
    assert_eq!(each.len(), pairs, "{section}");
    for one in &each {
        let (least, most) = (after_min / before_max, after_max / before_min);
        assert!((least * 0.999..=most * 1.001).contains(one), "{section}");
    }
    let [low, median, high] = ["low", "median", "high"].map(|name| number(&ratio[name]));
    assert!(low <= median && median <= high, "{section}");
    assert!(each.contains(&low) && each.contains(&high), "{section}");
    let expected = match (pairs < 6, high < 0.95, low > 1.05, low >= 0.95 && high <= 1.05) {
        (true, ..) => "not resolved",
        (_, true, ..) => "better",
        (_, _, true, _) => "worse",
        (.., true) => "alike",
        _ => "not resolved",
    };
    assert_eq!(section["verdict"], expected, "{section}");
}

#[test]
fn the_verdict_is_that_of_the_interval_of_the_pairs() {
    let report = measured(&["--before", "4", "--after", "2x2", "--runs", "7"]);
    assert_eq!((&report["before"], &report["after"]), (&"4".into(), &"2^2".into()));
    assert_eq!((&report["back_ends"], &report["pairs"]), (&4.into(), &7.into()));
    assert_eq!((&report["transport"], &report["bytes"]), (&"shm".into(), &64.into()));
    assert_consistent(&report["round_trip"], 7);
    assert_consistent(&report["streamed"], 7);
    assert!(number(&report["streamed"]["after_cpu_us"]) > 0.0, "{report}");
}

#[test]
fn shapes_of_each_kind_that_is_proposed_are_measured_and_few_pairs_decide_nothing() {
    for (before, after) in [("5", "g:2:3,2"), ("2^2", "k:2@8")] {
        let shapes = ["--before", before, "--after", after, "--runs", "2"];
        let only = ["--only", "round_trip", "--transport", "unix"];
        let report = measured(&[&shapes[..], &only].concat());
        assert_eq!((&report["before"], &report["after"]), (&before.into(), &after.into()));
        assert_consistent(&report["round_trip"], 2);
        assert_eq!(report["round_trip"]["verdict"], "not resolved");
        assert!(report.get("streamed").is_none(), "{report}");
    }
}

#[test]
fn the_table_has_both_trees_the_ratio_and_the_verdict() {
    let shapes = ["--before", "2", "--after", "1x2", "--runs", "2"];
    let output = run(&[&TINY[..], &shapes].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for line in [
        "the tree 1x2 in place of 2: 2 back-ends over shm, answers of 64 bytes",
        "a question and its answer",
        "a wave of many",
        "for the median of 2 pairs: not resolved",
        "fewer than 6 pairs decide nothing",
    ] {
        assert!(table.contains(line), "{line}: {table}");
    }
}

#[test]
fn trees_that_cannot_be_compared_are_refused() {
    for (arguments, what) in [
        (&["--before", "4", "--after", "2x3"][..], "--after 2x3: it has 6 back-ends, and 4 has 4"),
        (&["--before", "2+2", "--after", "4"], "attach by themselves"),
        (&["--before", "9999", "--after", "9999"], "4096 processes"),
        (&["--before", "4"], "--after"),
        (&["--before", "4x", "--after", "4"], "4x"),
        (&["--before", "4", "--after", "4", "--runs", "0"], "--runs 0"),
        (&["--before", "4", "--after", "4", "--bytes", "9"], "--bytes 9"),
        (&["--before", "4", "--after", "4", "--only", "startup"], "startup"),
    ] {
        assert_refused(&run(&[&["bench", "shapes"], arguments].concat()), what, arguments);
    }
}

#[test]
fn a_killed_comparison_leaves_nothing() {
    // Two back-ends, three processes of the other tree, and the benchmark itself.
    let shapes = ["shapes", "--before", "2", "--after", "1x2", "--runs", "1000"];
    assert_leaves_no_process(&shapes, 6);
}
