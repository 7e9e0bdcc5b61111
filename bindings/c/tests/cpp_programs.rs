//! C++ programs against `bindings/cpp/include/sapwood.hpp`, in both languages that it promises,
//! without a warning, over real trees, and under the sanitizers.

#[allow(dead_code, reason = "each test needs a part of it")]
mod harness;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use harness::{FAULTS, built, compile_library, package, run, succeed};

/// Fan-outs of 1 and 2, and a front-end with 16 back-ends.
const TOPOLOGIES: [(&str, u32); 3] = [("1^3", 1), ("2^3", 8), ("16", 16)];

const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow"];

/// How a program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Build {
    Cpp17,
    Cpp20,
    Sanitized,
}

impl Build {
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Cpp17 => &["-std=c++17"],
            Self::Cpp20 => &["-std=c++20"],
            Self::Sanitized => {
                &["-std=c++20", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
            }
        }
    }
}

/// Where compiled programs lie. A second run of these tests would replace them: it waits.
struct Place {
    folder: PathBuf,
    _lock: File,
}

impl Place {
    /// The place, which is kept until this process ends.
    fn own() -> &'static Self {
        static PLACE: OnceLock<Place> = OnceLock::new();
        PLACE.get_or_init(|| {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cpp_programs");
            fs::create_dir_all(&folder).expect("a folder for programs");
            let lock = File::create(folder.join("lock")).expect("a file to lock");
            lock.lock().expect("the lock of the folder");
            Self { folder, _lock: lock }
        })
    }
}

fn cpp(path: &str) -> PathBuf {
    package("../cpp").join(path)
}

/// Compiles a source of `bindings/cpp/tests`.
fn compile(name: &str, build: Build) -> OsString {
    let program = Place::own().folder.join(format!("{name}-{build:?}"));
    let library = &built().folder;
    let mut compiler = Command::new("g++");
    // Of what a debugger would show, valgrind and the sanitizers tell lines alone.
    compiler.args(build.flags()).args(WARNINGS).args(["-O1", "-g1", "-pthread"]);
    compiler.arg("-I").arg(cpp("include")).arg("-I").arg(package("include"));
    compiler.arg(cpp("tests").join(format!("{name}.cpp")));
    compiler.arg("-L").arg(library).arg("-lsapwood");
    compiler.arg(format!("-Wl,-rpath,{}", library.display())).arg("-o").arg(&program);
    succeed(&mut compiler);
    program.into_os_string()
}

/// A program, which is compiled when the first test wants it: that takes longer than most runs.
fn compiled(name: &'static str, build: Build) -> OsString {
    type CompiledOnce = BTreeMap<(&'static str, Build), Arc<OnceLock<OsString>>>;
    static PROGRAMS: Mutex<CompiledOnce> = Mutex::new(CompiledOnce::new());
    let program = {
        let mut programs = PROGRAMS.lock().expect("no test panics while it looks");
        Arc::clone(programs.entry((name, build)).or_default())
    };
    // Others that want this program wait until it is there; those that want another one do not.
    program.get_or_init(|| compile(name, build)).clone()
}

/// Compiles several programs at the same time.
fn prepare(names: &[&'static str], build: Build) {
    thread::scope(|scope| {
        for &name in names {
            scope.spawn(move || compiled(name, build));
        }
    });
}

fn over_all_shapes(build: Build) {
    let (front_end, back_end) = (compiled("front_end", build), compiled("back_end", build));
    for (topology, back_ends) in TOPOLOGIES {
        let said = run(&[&front_end, OsStr::new(topology), &back_end]);
        assert_eq!(said, format!("{topology}: {back_ends} back-ends\n"));
    }
}

fn run_misuse(build: Build) {
    run(&[&compiled("misuse", build), &compiled("back_end", build)]);
}

fn run_sketches(build: Build) {
    let sketches = compiled("sketches", build);
    run(&[&sketches, &sketches]);
}

#[test]
fn values_of_every_type_go_both_ways_over_every_shape() {
    for build in [Build::Cpp17, Build::Cpp20] {
        prepare(&["front_end", "back_end"], build);
        over_all_shapes(build);
    }
}

#[test]
fn misuse_is_an_exception_and_changes_nothing() {
    run_misuse(Build::Cpp17);
}

#[test]
fn filters_and_rules_of_ones_own_are_found_and_shipped() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = |name| compiled(name, Build::Cpp17);
    let library = compile_library(&package("tests/programs/quorum.c"), folder.path());
    let faults = compile_library(&package(FAULTS), folder.path());
    let words =
        [&program("filters"), &program("back_end"), library.as_os_str(), faults.as_os_str()];
    run(&words);
}

#[test]
fn sketches_are_asked_for_what_they_know() {
    run_sketches(Build::Cpp17);
}

#[test]
fn the_sanitizers_find_nothing() {
    let build = Build::Sanitized;
    prepare(&["front_end", "back_end", "misuse", "sketches"], build);
    over_all_shapes(build);
    run_misuse(build);
    run_sketches(build);
}

/// Each back-end runs under valgrind, and writes what that finds into a file of its own.
#[test]
fn valgrind_finds_nothing_in_back_ends() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let found = folder.path().join("found");
    fs::create_dir(&found).expect("a folder for what is found");
    let program = |name| compiled(name, Build::Cpp17);
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
