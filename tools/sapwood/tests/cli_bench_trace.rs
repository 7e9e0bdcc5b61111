//! `sapwood bench trace --only culprit` where no program can be run: simulated ranks with each kind
//! of fault are analysed, and what was left out is named. bindings/mpi/tests/culprit_trials.py has
//! real programs.

use crate::cli::{assert_refused, run, text};
use sapwood_schema::assert_fits;
use serde_json::Value;

const CULPRIT: [&str; 4] = ["bench", "trace", "--only", "culprit"];
/// Programs that are not there.
const NONE: [&str; 6] = ["--mpicc", "true", "--python", "/no/python3", "--lammps", "/no/lmp"];

#[test]
fn what_is_not_installed_is_left_out_and_named() {
    let words = [&CULPRIT[..], &NONE, &["--trials", "1", "--json"]].concat();
    let output = run(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("bench-trace-1", &report);
    let culprit = &report["culprit"];
    let left_out = culprit["left_out"].as_array().unwrap();
    let left_out: Vec<_> = left_out.iter().map(|one| (&one["program"], &one["why"])).collect();
    assert_eq!(left_out.len(), 3, "{culprit}");
    for (program, why) in left_out {
        let file = if program == "lammps" { "/no/lmp" } else { "/no/python3" };
        assert!(why.as_str().unwrap().contains(file), "{program}: {why}");
    }
    assert_eq!(culprit["trials"], 0);
    let simulated = culprit["simulated"].as_array().unwrap();
    assert_eq!(simulated.len(), 9, "one row of each kind: {culprit}");
    for row in simulated {
        let counts = ["ranks", "trials", "right"].map(|name| row[name].as_u64().unwrap());
        assert_eq!(counts, [1_000, 1, 1], "{row}");
    }
}

#[test]
fn counts_and_names_that_make_no_sense_are_refused() {
    for (words, what) in [
        (["--ranks", "3"], "from 4 to 32"),
        (["--ranks", "33"], "from 4 to 32"),
        (["--trials", "0"], "--trials"),
        (["--kinds", "tired"], "slow_compute"),
        (["--programs", "hpcc"], "lammps"),
    ] {
        let words = [&CULPRIT[..], &words].concat();
        assert_refused(&run(&words), what, &words);
    }
}
