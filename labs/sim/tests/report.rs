//! What `sapwood-sim` prints for programs.

#[path = "../../../crates/launch/tests/surroundings/mod.rs"]
mod surroundings;

use sapwood_schema::assert_fits;
use serde_json::Value;
use surroundings::clean_command;

fn report(arguments: &[&str]) -> Value {
    let mut command = clean_command(env!("CARGO_BIN_EXE_sapwood-sim"));
    let output = command.args(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_report_of_runs_is_as_its_schema_says() {
    let report = report(&["--seeds", "3"]);
    assert_fits("sim-1", &report);
    assert_eq!((&report["schedules"], &report["violations"]), (&3.into(), &0.into()));
}

#[test]
fn a_report_of_growth_is_as_its_schema_says() {
    let trees = ["--back-ends", "10", "--fan-outs", "2,flat", "--depths", "2"];
    let report = report(&[&["scale"], &trees[..], &["--depth-back-ends", "20"]].concat());
    assert_fits("sim-scale-1", &report);
    assert_eq!(report["trees"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_tree_that_is_only_computed_is_as_the_schema_says() {
    let report = report(&["scale", "--back-ends", "100000", "--fan-outs", "flat", "--depths", "0"]);
    assert_fits("sim-scale-1", &report);
    assert_eq!(report["trees"][0]["simulated"], Value::Null);
}
