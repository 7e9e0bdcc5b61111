//! What `sapwood-storm` and `sapwood-soak` print for programs, after a second each.

#[path = "../../../crates/launch/tests/surroundings/mod.rs"]
mod surroundings;

use sapwood_schema::assert_fits;
use serde_json::Value;
use surroundings::clean_command;

fn report(program: &str, topology: &str) -> Value {
    let mut command = clean_command(program);
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
    let mut command = clean_command(env!("CARGO_BIN_EXE_sapwood-storm"));
    command.args(["group", "--json", "--seconds", seconds, "--seed", "1"]).args(options);
    let output = command.output().unwrap();
    let report = serde_json::from_slice(&output.stdout);
    (output.status.success(), report.unwrap_or_else(|error| panic!("{error}: {output:?}")))
}

const OPERATIONS: [&str; 11] = [
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
const FAULTS: [&str; 6] = ["kill", "stop", "leave", "leave-to", "reset", "cut"];

/// What a storm over a group has not tried.
fn untried(report: &Value) -> Vec<&'static str> {
    let is_none = |count: &Value| count.as_u64() <= Some(0);
    let collectives = &report["collectives"];
    let operations =
        OPERATIONS.into_iter().filter(|&name| is_none(&collectives[name]["operations"]));
    let faults = FAULTS.into_iter().filter(|&name| is_none(&report["faults"][name]));
    let others = ["complete", "links_broken"].into_iter().filter(|&name| is_none(&report[name]));
    operations.chain(faults).chain(others).collect()
}

// What chance and time find here is not the same in each run, so that the report may have
// violations: `make hunt` looks for these. Where there is other work, less is tried in the same
// time: a storm that had too little is followed by one that has enough.
#[test]
fn a_storm_over_a_group_tries_every_operation_and_fault_and_reports_them_by_its_schema() {
    let mut report = Value::Null;
    for seconds in ["12", "60", "240"] {
        (_, report) = group(seconds, &["-n", "6"]);
        assert_fits("group-storm-1", &report);
        if untried(&report).is_empty() {
            break;
        }
    }
    assert_eq!(untried(&report), Vec::<&str>::new(), "{report}");
}

#[test]
fn a_storm_whose_members_lie_fails() {
    let (mut is_success, mut report) = (true, Value::Null);
    // On a busy machine a short one may end before a lie has come.
    for seconds in ["3", "30", "120"] {
        (is_success, report) = group(seconds, &["-n", "4", "--lie"]);
        assert_fits("group-storm-1", &report);
        if report["wrong"].as_u64() > Some(0) {
            break;
        }
    }
    assert!(!is_success && report["wrong"].as_u64() > Some(0), "{report}");
}

// A second is too short to judge whether memory rises, so that the report may have violations.
#[test]
fn a_report_of_a_soak_is_as_its_schema_says() {
    let report = report(env!("CARGO_BIN_EXE_sapwood-soak"), "2x2");
    assert_fits("soak-1", &report);
    assert_eq!(report["processes"].as_array().map(Vec::len), Some(7));
}

/// Whether a program succeeds, and what it prints.
fn printed(program: &str, words: &[&str]) -> (bool, String) {
    let output = clean_command(program).args(words).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn a_storm_without_recovery_says_what_happens() {
    let program = env!("CARGO_BIN_EXE_sapwood-storm");
    let shape = ["--topology", "2x2", "--rate", "5", "--silence", "3000"];
    let rest = ["--faults", "kill", "--without-recovery", "--log"];
    let mut told = String::new();
    // In a short one no process may be killed yet: on a busy machine the start takes long.
    for seconds in ["1", "30", "120", "600"] {
        let words = [&["--seconds", seconds][..], &shape, &rest].concat();
        // So short a storm may have violations beside load.
        (_, told) = printed(program, &words);
        if told.contains(" Lost { ") {
            break;
        }
    }
    assert!(told.contains(" Ready { ") && told.contains(" Lost { "), "{told}");
    // An answer lacks no back-end before the storm has seen it lost.
    assert!(!told.contains("no back-end is lost"), "{told}");
    let (_, told) = printed(program, &["group", "--seconds", "1", "--rate", "3", "--log"]);
    assert!(told.contains("storm of 1 s over a group"), "{told}");
}

#[test]
fn options_of_storms_and_soaks_that_make_no_sense_are_refused() {
    let storm = env!("CARGO_BIN_EXE_sapwood-storm");
    let soak = env!("CARGO_BIN_EXE_sapwood-soak");
    let table: [(&str, &[&str], &str); 4] = [
        (storm, &["--rate", "0"], "--rate must be 1 to 10000"),
        (storm, &["--faults", "rain"], "--faults"),
        (storm, &["--silence", "long"], "--silence"),
        (soak, &["--transport", "pipe"], "--transport"),
    ];
    for (program, words, what) in table {
        let (is_right, told) = printed(program, words);
        assert!(!is_right && told.contains(what) && told.lines().count() == 1, "{words:?}: {told}");
    }
}
