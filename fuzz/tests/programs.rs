//! The programs' command line: what is tried, written down and answered.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

// It has the functions that the instrumentation of this test calls.
use sapwood_fuzz as _;

fn format_program(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_format");
    Command::new(program).args(arguments).output().expect("the program starts")
}

/// A folder that is gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sapwood-fuzz-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_run_ends_after_its_number_of_inputs() {
    let folder = Folder::new("runs");
    fs::write(folder.0.join("seed"), "%d %alf").expect("a seed can be written");
    let output = format_program(&[&folder.0.to_string_lossy(), "-runs=300", "-seed=4"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.starts_with("format: 300 runs in "), "{text}");
}

#[test]
fn a_file_is_tried_once() {
    let folder = Folder::new("file");
    let file = folder.0.join("input");
    fs::write(&file, "%q").expect("an input can be written");
    let output = format_program(&[&file.to_string_lossy()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.starts_with("format: 1 runs in "), "{text}");
}

#[test]
fn a_bad_command_line_is_one_line_and_exit_code_2() {
    for arguments in [&["-runs=many"][..], &["-jobs=2"], &["no-such-folder"]] {
        let output = format_program(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{arguments:?}");
    }
}
