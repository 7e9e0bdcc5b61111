//! `sapwood bench tree` with tiny counts: all figures are there, and nothing is left running.

use crate::cli::benchmark::assert_leaves_no_process;
use crate::cli::{run, text};
use sapwood_schema::assert_fits;
use serde_json::Value;

const TINY: [&str; 10] =
    ["bench", "tree", "--topology", "2x2", "--runs", "2", "--rounds", "5", "--waves", "40"];

fn measured(further: &[&str]) -> Value {
    let output = run(&[&TINY[..], &["--json"], further].concat());
    assert!(output.status.success(), "{further:?}: {}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    let report = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("bench-tree-1", &report);
    report
}

fn assert_section(report: &Value, section: &str, figures: &[&str]) {
    for figure in figures {
        let value = report[section][figure].as_f64();
        assert!(value.is_some_and(f64::is_finite), "{section}.{figure} in {report}");
        let spread = &report[section]["spread"][figure];
        for end in ["min", "median", "max", "runs"] {
            assert!(spread[end].is_number(), "{section}.spread.{figure}.{end} in {report}");
        }
        assert_eq!(spread["median"].as_f64(), value, "{section}.{figure}");
    }
}

const ROUND_TRIP: [&str; 3] = ["median_us", "ratio_to_floor", "floor_us"];
const PIPELINED: [&str; 4] =
    ["waves_per_s", "ratio_to_floor", "cpu_us_per_wave", "cpu_ratio_to_floor"];

#[test]
fn the_whole_report_has_every_figure_with_its_spread() {
    let report = measured(&["--pin"]);
    assert_eq!(report["topology"], "2x2");
    assert_eq!(report["transport"], "unix");
    assert_eq!(report["encryption"], "off");
    assert_eq!(report["bytes"], 64);
    assert_eq!(report["pinned"], true);
    assert_eq!(report["runs"], 2);
    assert_section(&report, "round_trip", &ROUND_TRIP);
    assert_section(&report, "pipelined", &PIPELINED);
    assert_section(&report, "startup", &["ms", "ratio_to_floor"]);
    assert_section(&report, "node", &["rss_bytes", "bytes_per_idle_link"]);
    let pages =
        ["communication_code", "communication_heap", "back_end_code", "floor_back_end_code"];
    assert_section(&report, "pages", &pages);
    assert!(report.get("encrypted").is_none() && report.get("explain").is_none());
}

#[test]
fn a_round_trip_is_explained_for_each_kind_of_process() {
    let report = measured(&["--only", "round_trip", "--explain"]);
    for contender in ["tree", "floor"] {
        for kind in ["communication_process", "back_end"] {
            let costs = &report["explain"][contender][kind];
            let waits = costs["waits"].as_f64().unwrap_or_default();
            assert!(waits > 0.0, "each waits for the others: {report}");
            // A process that answers reads at least once and writes at least once.
            let calls = costs["system_calls"].as_f64();
            assert!(calls.is_none_or(|calls| calls >= 1.9), "{contender} {kind}: {report}");
        }
    }
}

#[test]
fn tcp_is_measured_plain_with_the_encrypted_tree_beside_it() {
    let only = ["--transport", "tcp", "--only", "round_trip,pipelined"];
    let report = measured(&only);
    assert_eq!(report["encryption"], "off");
    for section in [&report, &report["encrypted"]] {
        assert_section(section, "round_trip", &ROUND_TRIP);
        assert_section(section, "pipelined", &PIPELINED);
    }
    assert!(report.get("startup").is_none() && report.get("node").is_none());
    let encrypted = measured(&[&only[..], &["--encryption", "on"]].concat());
    assert_eq!(encrypted["encryption"], "on");
    assert!(encrypted.get("encrypted").is_none());
}

#[test]
fn large_answers_are_summed_right() {
    let report = measured(&["--bytes", "65536", "--only", "round_trip,pipelined"]);
    assert_section(&report, "pipelined", &PIPELINED);
}

#[test]
fn the_table_names_every_experiment() {
    let output = run(&[&TINY[..], &["--only", "startup,round_trip"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for line in
        ["2x2 over unix, not encrypted, 64 bytes", "round trip", "start-up", "ratio to baseline"]
    {
        assert!(table.contains(line), "{line} in {table}");
    }
    assert!(!table.contains("pipelined"));
}

#[test]
fn a_killed_benchmark_leaves_nothing() {
    // The floor's six processes, Sapwood's six, and the benchmark itself.
    let tree = ["tree", "--topology", "2x2", "--runs", "1000", "--only", "round_trip"];
    assert_leaves_no_process(&tree, 13);
}
