//! Running the built command in a test, and what every refusal has in common.

#![allow(dead_code, reason = "each test file uses some of these")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_sapwood");

/// Runs the command without input.
pub fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Runs the command with this input.
pub fn run_with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(PROGRAM)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Bad input: exit code 2, nothing on standard output, and one line that says `what`.
pub fn assert_refused(output: &Output, what: &str, context: &[&str]) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{context:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{context:?}: {said}");
    assert!(said.starts_with("sapwood: ") && said.contains(what), "{context:?}: {said}");
    assert!(!said.contains("panicked") && !said.contains("fault in Sapwood"), "{said}");
    assert!(output.stdout.is_empty(), "{context:?}: {}", text(&output.stdout));
}
