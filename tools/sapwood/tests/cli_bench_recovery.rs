//! `sapwood bench recovery` with a few strikes: the account of the waves is there, and clean.

use crate::cli::{assert_refused, run, text};
use sapwood_schema::assert_fits;
use serde_json::Value;

fn measured(arguments: &[&str]) -> Value {
    let output = run(&[&["bench", "recovery", "--json"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    let report = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("bench-recovery-1", &report);
    report
}

#[test]
fn killed_processes_cost_no_wave() {
    let report = measured(&["--only", "kill", "--kills", "3", "--topology", "2x2x2"]);
    assert_eq!(report["kills"], 3);
    for figure in ["waves_lost", "waves_doubled", "waves_wrong"] {
        assert_eq!(report[figure], 0, "{figure} in {report}");
    }
    assert!(report["waves"].as_u64() > Some(0), "{report}");
    for end in ["median", "max"] {
        assert!(report["whole_again_ms"][end].is_number(), "{report}");
    }
}

#[test]
fn silent_processes_that_come_back_cost_no_wave() {
    let report = measured(&["--only", "stop", "--stops", "1", "--topology", "2x2x2"]);
    let stops = &report["stops"];
    assert_eq!(stops["stops"], 1, "{report}");
    for figure in ["waves_lost", "waves_doubled", "waves_wrong"] {
        assert_eq!(stops[figure], 0, "{figure} in {report}");
    }
}

#[test]
fn the_cost_of_recovery_is_one_figure_with_its_parts() {
    let report = measured(&["--only", "overhead", "--runs", "1"]);
    assert!(report["overhead_ratio"].as_f64().is_some_and(f64::is_finite), "{report}");
    for part in ["round_trip_ratio", "throughput_ratio", "cpu_ratio"] {
        assert!(report["overhead"][part].is_number(), "{part} in {report}");
        assert!(report["crowded_overhead"][part].is_number(), "{part} in {report}");
    }
}

#[test]
fn a_tree_without_inner_processes_is_refused() {
    for (arguments, what) in
        [(["--topology", "8"], "no inner process"), (["--kills", "0"], "--kills")]
    {
        let arguments = [&["bench", "recovery"][..], &arguments].concat();
        assert_refused(&run(&arguments), what, &arguments);
    }
}
