//! `sapwood bench collectives` with few processes and turns: all figures are there, every value was
//! right, what is not installed is named, and nothing is left running.

use crate::cli::benchmark::assert_leaves_no_process;
use crate::cli::{assert_refused, code, run, text, write_program};
use sapwood_schema::assert_fits;
use serde_json::Value;

const FEW: [&str; 8] =
    ["bench", "collectives", "--processes", "3", "--bytes", "400K", "--turns", "1"];
const OWN: [&str; 3] = ["sapwood_shm", "sapwood_unix", "sapwood_tcp"];

/// Whether all contenders have measured in order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Right,
    Faulty,
}

fn report(arguments: &[&str], outcome: Outcome) -> Value {
    let is_right = outcome == Outcome::Right;
    let output = run(&[&FEW[..], arguments, &["--json"]].concat());
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(code(&output), Some(i32::from(!is_right)), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("bench-collectives-1", &report);
    assert_eq!(report["right"], is_right, "{report}");
    report
}

#[test]
fn every_contender_that_is_installed_has_a_time_in_each_case() {
    let report = report(&[], Outcome::Right);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "{report}");
    let others = ["openmpi", "gloo"].into_iter().filter(|name| report["missing"][name].is_null());
    let others: Vec<&str> = others.collect();
    for row in rows {
        for name in OWN.iter().chain(&others) {
            assert!(row["us"][name]["median"].as_f64() > Some(0.0), "{name}: {row}");
        }
        for (own, other) in OWN.iter().flat_map(|own| others.iter().map(move |other| (own, other)))
        {
            assert_eq!(row["ratios"][own][other]["turns"], 1, "{own}, {other}: {row}");
        }
    }
}

#[test]
fn what_is_not_installed_is_named_and_the_others_are_measured() {
    let words = ["--mpicc", "/no/mpicc", "--mpirun", "/no/mpirun", "--only", "barrier"];
    let report = report(&words, Outcome::Right);
    let missing = |name: &str| report["missing"][name].as_str().unwrap_or_default().to_string();
    assert!(missing("openmpi").contains("/no/mpicc"), "{report}");
    assert!(missing("gloo").contains("/no/mpirun"), "{report}");
    assert!(report["rows"][0]["us"]["sapwood_unix"]["median"].as_f64() > Some(0.0), "{report}");
}

#[test]
fn a_contender_that_ends_early_is_a_fault_and_the_others_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let launcher = folder.path().join("mpirun");
    write_program(&launcher, "#!/bin/sh\necho\necho rank 1: a wrong value >&2\nexit 1\n");
    let launcher = launcher.to_str().unwrap();
    let words = ["--mpicc", "true", "--mpirun", launcher, "--only", "barrier"];
    let report = report(&words, Outcome::Faulty);
    let faults = report["faults"].to_string();
    assert!(faults.contains("openmpi with 3 processes"), "{report}");
    assert!(faults.contains("a wrong value"), "{report}");
    assert!(report["rows"][0]["us"]["openmpi"].is_null(), "{report}");
    assert!(report["rows"][0]["us"]["sapwood_tcp"]["median"].as_f64() > Some(0.0), "{report}");
}

#[test]
fn a_benchmark_that_is_killed_leaves_no_process() {
    // The benchmark, three groups, and what ranks there are.
    let turns = ["collectives", "--processes", "3", "--bytes", "8", "--turns", "1000"];
    assert_leaves_no_process(&turns, 10);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (arguments, what) in [
        (&["--processes", "1"][..], "--processes"),
        (&["--bytes", "12"], "multiple of 8"),
        (&["--bytes", "0"], "at least 8"),
        (&["--only", "gather"], "gather"),
        (&["--turns", "0"], "--turns"),
    ] {
        assert_refused(&run(&[&["bench", "collectives"], arguments].concat()), what, arguments);
    }
}
