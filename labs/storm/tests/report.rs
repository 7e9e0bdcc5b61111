//! What `sapwood-storm` and `sapwood-soak` print for programs, after a second each.

use std::process::Command;

use sapwood_schema::assert_fits;
use serde_json::Value;

fn report(program: &str, topology: &str) -> Value {
    let mut command = Command::new(program);
    command.args(["--seconds", "1", "--topology", topology, "--json"]);
    let output = command.output().unwrap();
    let report = serde_json::from_slice(&output.stdout);
    report.unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_report_of_a_storm_is_as_its_schema_says() {
    let report = report(env!("CARGO_BIN_EXE_sapwood-storm"), "2x2");
    assert_fits("storm-1", &report);
    assert_eq!(report["violations"], 0, "{report}");
}

fn group(seconds: &str, options: &[&str]) -> (bool, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sapwood-storm"));
    command.args(["group", "--json", "--seconds", seconds, "--seed", "1"]).args(options);
    let output = command.output().unwrap();
    let report = serde_json::from_slice(&output.stdout);
    (output.status.success(), report.unwrap_or_else(|error| panic!("{error}: {output:?}")))
}

// What chance and time find here is not the same in each run, so that the report may have
// violations: `make hunt` looks for these.
#[test]
fn a_storm_over_a_group_tries_every_operation_and_fault_and_reports_them_by_its_schema() {
    let (_, report) = group("12", &["-n", "6"]);
    assert_fits("group-storm-1", &report);
    assert!(report["complete"].as_u64() > Some(0), "{report}");
    let operations = [
        "broadcast",
        "send",
        "scatter",
        "reduce",
        "reduce-defined",
        "gather",
        "allreduce",
        "allreduce-in-order",
        "allgather",
        "reduce-scatter",
        "all-to-all",
    ];
    for name in operations {
        assert!(report["collectives"][name]["operations"].as_u64() > Some(0), "{name}: {report}");
    }
    for name in ["kill", "stop", "leave", "leave-to", "reset", "cut"] {
        assert!(report["faults"][name].as_u64() > Some(0), "{name}: {report}");
    }
    assert!(report["links_broken"].as_u64() > Some(0), "{report}");
}

#[test]
fn a_storm_whose_members_lie_fails() {
    let (is_success, report) = group("3", &["-n", "4", "--lie"]);
    assert_fits("group-storm-1", &report);
    assert!(!is_success && report["wrong"].as_u64() > Some(0), "{report}");
}

// A second is too short to judge whether memory rises, so that the report may have violations.
#[test]
fn a_report_of_a_soak_is_as_its_schema_says() {
    let report = report(env!("CARGO_BIN_EXE_sapwood-soak"), "2x2");
    assert_fits("soak-1", &report);
    assert_eq!(report["processes"].as_array().map(Vec::len), Some(7));
}
