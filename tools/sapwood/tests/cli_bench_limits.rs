//! `sapwood bench scale`, `clocks` and `flood` with tiny counts: all figures are there and every
//! sum was right.

use crate::cli::{assert_refused, run, text};
use sapwood_schema::assert_fits;
use serde_json::Value;

fn measured(arguments: &[&str]) -> Value {
    let output = run(&[&["bench"], arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn assert_numbers(report: &Value, figures: &[&str]) {
    for figure in figures {
        assert!(report[figure].as_f64().is_some_and(f64::is_finite), "{figure} in {report}");
    }
}

#[test]
fn a_crowd_attaches_by_itself_and_answers_as_one() {
    let crowd = ["scale", "--only", "connect", "--topology", "3x20", "--per-process", "25"];
    let report = measured(&[&crowd[..], &["--waves", "10"]].concat());
    assert_fits("bench-scale-1", &report);
    assert_eq!(report["connected"], 60);
    assert_numbers(&report, &["bytes_per_endpoint", "first_wave_s", "waves_per_s", "connect_s"]);
    assert!(report.get("streams").is_none() && report.get("depth").is_none());
}

#[test]
fn streams_and_depths_are_counted() {
    let report = measured(&["scale", "--only", "streams,depth", "--streams", "20", "--depth", "2"]);
    assert_fits("bench-scale-1", &report);
    assert_eq!(report["streams"]["streams"], 20);
    assert_numbers(&report["streams"], &["open_ms", "waves_per_s", "bytes_per_stream"]);
    let trees = report["depth"]["trees"].as_array().unwrap();
    let topologies: Vec<_> = trees.iter().map(|tree| tree["topology"].as_str().unwrap()).collect();
    assert_eq!(topologies, ["1^1", "2^1", "1^2", "2^2"]);
    trees.iter().for_each(|tree| assert_numbers(tree, &["startup_ms", "round_trip_us"]));
}

#[test]
fn the_clocks_of_a_tree_are_measured_beside_the_direct_method() {
    let report = measured(&["clocks", "--topology", "2x2", "--samples", "3", "--runs", "2"]);
    assert_fits("bench-clocks-1", &report);
    for method in ["tree", "direct"] {
        assert_numbers(&report[method], &["error_us", "bound_us"]);
    }
    assert_eq!(
        (&report["tree"]["root_probes"], &report["direct"]["root_probes"]),
        (&6.into(), &12.into())
    );
}

#[test]
fn neighbours_of_bad_streams_are_measured_and_their_packets_accounted_for() {
    let cases = ["--only", "unread,unread_dropping,flood,large"];
    let tiny = ["--runs", "1", "--large-bytes", "1048576"];
    let report = measured(&[&["flood"], &cases[..], &tiny].concat());
    assert_fits("bench-flood-1", &report);
    assert_numbers(&report, &["neighbours_rate_ratio"]);
    for case in ["unread", "unread_dropping", "flood", "large"] {
        let case = &report["cases"][case];
        assert_numbers(case, &["rate_ratio", "round_trip_rate_ratio"]);
        assert_numbers(&case["peak_mib"], &["front_end", "communication", "neighbour"]);
    }
    // Senders that wait lose nothing.
    for case in ["unread", "flood"] {
        let case = &report["cases"][case];
        assert!(case["sent"].as_u64() > Some(0), "{report}");
        assert_eq!(case["sent"], case["received"], "{report}");
    }
    assert!(report["cases"]["large"]["large_waves"].as_u64() > Some(0));
}

#[test]
fn counts_that_make_no_sense_are_refused() {
    for (arguments, what) in [
        (&["scale", "--back-ends", "7"][..], "--topology"),
        (&["scale", "--depth", "0"], "--depth 0"),
        (&["scale", "--per-process", "1000000"], "--per-process"),
        (&["flood", "--large-bytes", "12"], "--large-bytes 12"),
        (&["flood", "--runs", "0"], "--runs"),
    ] {
        assert_refused(&run(&[&["bench"], arguments].concat()), what, arguments);
    }
}
