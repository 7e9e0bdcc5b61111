//! C++ programs against `bindings/cpp/include/sapwood.hpp`, in both languages that it promises,
//! without a warning, over real trees, and under the sanitizers.

#[allow(dead_code, reason = "each test needs a part of it")]
mod harness;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{FAULTS, built, compile_library, package, run, succeed};

const STANDARDS: [&str; 2] = ["-std=c++17", "-std=c++20"];

/// Fan-outs of 1 and 2, and a front-end with 16 back-ends.
const TOPOLOGIES: [(&str, u32); 3] = [("1^3", 1), ("2^3", 8), ("16", 16)];

const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow"];

fn cpp(path: &str) -> PathBuf {
    package("../cpp").join(path)
}

/// Compiles a source of `bindings/cpp/tests`.
fn compile(name: &str, flags: &[&str], folder: &Path) -> OsString {
    let program = folder.join(name);
    let library = &built().folder;
    let mut compiler = Command::new("g++");
    compiler.args(flags).args(WARNINGS).args(["-O1", "-g", "-pthread"]);
    compiler.arg("-I").arg(cpp("include")).arg("-I").arg(package("include"));
    compiler.arg(cpp("tests").join(format!("{name}.cpp")));
    compiler.arg("-L").arg(library).arg("-lsapwood");
    compiler.arg(format!("-Wl,-rpath,{}", library.display())).arg("-o").arg(&program);
    succeed(&mut compiler);
    program.into_os_string()
}

fn over_all_shapes(front_end: &OsStr, back_end: &OsStr) {
    for (topology, back_ends) in TOPOLOGIES {
        let said = run(&[front_end, OsStr::new(topology), back_end]);
        assert_eq!(said, format!("{topology}: {back_ends} back-ends\n"));
    }
}

#[test]
fn values_of_every_type_go_both_ways_over_every_shape() {
    for standard in STANDARDS {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = |name| compile(name, &[standard], folder.path());
        over_all_shapes(&program("front_end"), &program("back_end"));
    }
}

#[test]
fn misuse_is_an_exception_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = |name| compile(name, &[STANDARDS[0]], folder.path());
    run(&[&program("misuse"), &program("back_end")]);
}

#[test]
fn filters_and_rules_of_ones_own_are_found_and_shipped() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = |name| compile(name, &[STANDARDS[0]], folder.path());
    let library = compile_library(&package("tests/programs/quorum.c"), folder.path());
    let faults = compile_library(&package(FAULTS), folder.path());
    let words =
        [&program("filters"), &program("back_end"), library.as_os_str(), faults.as_os_str()];
    run(&words);
}

#[test]
fn sketches_are_asked_for_what_they_know() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sketches = compile("sketches", &[STANDARDS[0]], folder.path());
    run(&[&sketches, &sketches]);
}

#[test]
fn the_sanitizers_find_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let flags = [STANDARDS[1], "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let program = |name| compile(name, &flags, folder.path());
    let back_end = program("back_end");
    over_all_shapes(&program("front_end"), &back_end);
    run(&[&program("misuse"), &back_end]);
    let sketches = program("sketches");
    run(&[&sketches, &sketches]);
}

/// Each back-end runs under valgrind, and writes what that finds into a file of its own.
#[test]
fn valgrind_finds_nothing_in_back_ends() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let found = folder.path().join("found");
    fs::create_dir(&found).expect("a folder for what is found");
    let program = |name| compile(name, &[STANDARDS[0]], folder.path());
    let log = OsString::from(format!("--log-file={}/%p", found.display()));
    let (front_end, back_end) = (program("front_end"), program("back_end"));
    let checks = ["--quiet", "--leak-check=full", "--show-leak-kinds=definite,possible"];
    let mut words = vec![front_end.as_os_str(), OsStr::new("2x2"), OsStr::new("valgrind")];
    words.extend(checks.iter().map(OsStr::new));
    words.extend([log.as_os_str(), back_end.as_os_str()]);
    run(&words);
    let logs: Vec<String> = fs::read_dir(&found)
        .expect("the folder is there")
        .map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("a log"))
        .collect();
    assert_eq!(logs.len(), 4, "each back-end runs under valgrind");
    assert!(logs.iter().all(String::is_empty), "{logs:?}");
}
