//! The program's command line: what is tried, written down and answered.

use std::fs;
use std::process::{Command, Output};

use sapwood_fuzz::coverage;
use sapwood_fuzz::targets::ALL;

fn fuzz(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_sapwood-fuzz");
    Command::new(program).args(arguments).output().expect("the program starts")
}

#[test]
fn a_run_ends_after_its_number_of_inputs() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    fs::write(folder.path().join("seed"), "%d %alf").expect("a seed can be written");
    let inputs = folder.path().to_string_lossy();
    let output = fuzz(&["format", &inputs, "-runs=300", "-seed=4"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.starts_with("format: 300 runs in "), "{text}");
}

#[test]
fn a_file_is_tried_once() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("input");
    fs::write(&file, "%q").expect("an input can be written");
    let output = fuzz(&["format", &file.to_string_lossy()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.starts_with("format: 1 runs in "), "{text}");
}

#[test]
fn the_list_names_every_target() {
    let output = fuzz(&["--list"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    assert!(text.lines().eq(ALL.iter().map(|target| target.name)), "{text}");
}

/// This test and the program are built alike.
#[test]
fn the_program_says_how_many_edges_it_has() {
    let output = fuzz(&["--edges"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let edges = text.trim().parse::<usize>().expect("a number");
    assert_eq!(edges == 0, coverage::edges() == 0, "{text}");
}

#[test]
fn a_bad_command_line_is_one_line_and_exit_code_2() {
    let wrong: [&[&str]; 5] = [
        &[],
        &["no-such-target"],
        &["format", "-runs=many"],
        &["format", "-jobs=2"],
        &["format", "no-such-folder"],
    ];
    for arguments in wrong {
        let output = fuzz(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{arguments:?}");
    }
}
