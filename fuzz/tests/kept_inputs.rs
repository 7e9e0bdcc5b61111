//! The kept inputs of `fuzz/corpus`: every target takes all of its own.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sapwood_fuzz::targets::ALL;

/// An input takes milliseconds: one of a minute hangs.
const DEADLINE: &str = "-timeout=60";

#[test]
fn each_target_has_kept_inputs_and_each_folder_of_them_a_target() {
    let names: BTreeSet<&str> = ALL.iter().map(|target| target.name).collect();
    assert_eq!(names.len(), ALL.len(), "two targets have one name");
    let folders = entries(&corpus());
    let folders: BTreeSet<&str> =
        folders.iter().filter_map(|folder| folder.file_name()?.to_str()).collect();
    assert_eq!(folders, names, "folders of inputs, and targets");
    for name in names {
        assert!(!entries(&corpus().join(name)).is_empty(), "{name} has no kept input");
    }
}

#[test]
fn every_target_takes_its_kept_inputs() {
    let failures: Vec<String> = ALL.iter().flat_map(|target| failures(target.name)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What a target does not take of its inputs, with what it says. One program tries all of them;
/// where that fails, each is tried by itself, as a program that is ended by a signal names none.
fn failures(target: &str) -> Vec<String> {
    let folder = corpus().join(target);
    let files = entries(&folder);
    let all = replay(target, &folder);
    let wanted = format!("{target}: {} runs in ", files.len());
    if all.status.success() && String::from_utf8_lossy(&all.stdout).starts_with(&wanted) {
        return Vec::new();
    }
    let fails = |file: &PathBuf| {
        let one = replay(target, file);
        (!one.status.success()).then(|| told(target, file, &one))
    };
    let failures: Vec<String> = files.iter().filter_map(fails).collect();
    if failures.is_empty() { vec![told(target, &folder, &all)] } else { failures }
}

fn replay(target: &str, inputs: &Path) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_sapwood-fuzz"));
    program.arg(target).arg(inputs).args(["-runs=0", DEADLINE]);
    program.output().expect("the program starts")
}

fn told(target: &str, inputs: &Path, output: &Output) -> String {
    format!(
        "{target}: {}: {}\n{}{}",
        inputs.display(),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry can be read").path()).collect();
    paths.sort();
    paths
}
