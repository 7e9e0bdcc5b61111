//! `sapwood bench monitor` with tiny counts: all figures are there and every round was right.

use crate::cli::{assert_refused, run, text};
use sapwood_schema::assert_fits;
use serde_json::Value;

fn measured(arguments: &[&str]) -> Value {
    let output = run(&[&["bench", "monitor"], arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn synthetic_ranks_go_round_after_round_and_are_reduced() {
    let tree = ["--only", "synthetic", "--synthetic-topology", "2x2", "--synthetic-ranks", "80"];
    let rounds = ["--synthetic-events", "20", "--synthetic-rounds", "2"];
    let report = measured(&[&tree[..], &rounds].concat());
    assert_fits("bench-monitor-1", &report);
    assert_eq!(report["synthetic"]["ranks"], 80);
    let reduction = report["reduction"].as_array().unwrap();
    let schemes: Vec<_> = reduction.iter().map(|one| one["scheme"].as_str().unwrap()).collect();
    assert_eq!(schemes, ["all", "depth:1", "mpi"]);
    assert_eq!(reduction[0]["classes"], 4, "as many as there are roles");
    assert!(report.get("offload").is_none());
}

#[test]
fn an_offload_is_measured_reduced_and_not() {
    let points = ["--offload-ranks", "4,8", "--offload-events", "20", "--offload-fan-outs", "2"];
    let counts = ["--only", "offload", "--offload-iterations", "2", "--offload-pairs", "1"];
    let report = measured(&[&points[..], &counts].concat());
    assert_fits("bench-monitor-1", &report);
    let ranks: Vec<_> =
        report["offload"].as_array().unwrap().iter().map(|one| &one["ranks"]).collect();
    assert_eq!(ranks, [4, 8]);
    assert!(report.get("synthetic").is_none());
}

#[test]
fn counts_that_make_no_sense_are_refused() {
    for (words, what) in [
        (["--offload-ranks", "3"], "powers of two"),
        (["--synthetic-ranks", "0"], "--synthetic-ranks"),
    ] {
        let only = ["bench", "monitor", "--only", "offload"];
        let words = [&only[..], &words].concat();
        assert_refused(&run(&words), what, &words);
    }
}
