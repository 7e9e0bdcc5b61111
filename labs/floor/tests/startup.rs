//! The start-up experiment, and the command line around all of them.

use std::process::Output;
use std::time::Duration;

use crate::surroundings::clean_command;
use sapwood_floor::Error;
use sapwood_floor::startup::{self, CONNECT_ARGUMENT, StartupPlan};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sapwood-floor");

fn plan(processes: usize) -> StartupPlan {
    StartupPlan {
        program: PROGRAM.into(),
        arguments: vec![CONNECT_ARGUMENT.into()],
        processes,
        threads: 2,
        deadline: Duration::from_secs(20),
    }
}

fn run(arguments: &[&str]) -> Output {
    clean_command(PROGRAM).args(arguments).output().unwrap()
}

#[test]
fn every_started_process_connects_and_ends() {
    for processes in [1, 3, 40] {
        // An error if one of them does not connect, does not end by itself, or ends badly.
        let started = startup::run(&plan(processes)).unwrap();
        assert_eq!(started.processes, processes);
    }
}

#[test]
fn a_program_that_ends_without_connecting_is_named() {
    let plan = StartupPlan { program: "/bin/false".into(), ..plan(3) };
    let error = startup::run(&plan).unwrap_err();
    assert!(matches!(error, Error::NotConnected { .. }), "{error}");
    assert!(error.to_string().contains("/bin/false did not connect: ended with exit code 1"));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let plan = StartupPlan { program: "/nonexistent/floor".into(), ..plan(3) };
    assert!(matches!(startup::run(&plan), Err(Error::Spawn { .. })));
}

#[test]
fn a_program_that_waits_without_connecting_runs_into_the_deadline() {
    let plan = StartupPlan {
        program: "/bin/sh".into(),
        arguments: ["-c", "exec sleep 60"].map(Into::into).to_vec(),
        deadline: Duration::from_millis(200),
        ..plan(2)
    };
    let error = startup::run(&plan).unwrap_err();
    assert!(matches!(error, Error::DeadlinePassed { .. }), "{error}");
}

#[test]
fn no_process_or_too_many_are_refused() {
    assert!(matches!(startup::run(&plan(0)), Err(Error::Argument(_))));
    assert!(matches!(startup::run(&plan(1_000_000)), Err(Error::Argument(_))));
}

#[test]
fn the_command_prints_one_line_of_json_per_experiment() {
    let figures = [("round_trip", "median_us"), ("pipelined", "waves_per_s"), ("startup", "ms")];
    for (experiment, figure) in figures {
        let small = ["--topology", "2x2", "--runs", "2", "--rounds", "20", "--json", "--pin"];
        let output = run(&[&small[..], &["--experiment", experiment]].concat());
        assert!(output.status.success(), "{output:?}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        sapwood_schema::assert_fits("floor-1", &report);
        assert_eq!(report["experiment"], experiment);
        assert_eq!(report["processes"], 7);
        assert_eq!(report["figures"][figure]["runs"], 2);
        assert!(report["figures"][figure]["median"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_wrong_argument_gives_one_line_and_exit_code_2() {
    let wrong: [&[&str]; 7] = [
        &["--topology", "4x"],
        &["--topology"],
        &["--transport", "shm"],
        &["--bytes", "0"],
        &["--bytes", "9"],
        &["--experiment", "sleep"],
        &["--speed"],
    ];
    for arguments in wrong {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(output.stderr.iter().filter(|&&byte| byte == b'\n').count(), 1);
    }
}
