//! The project's checks, as code: `cargo xtask check` is the quick loop, `cargo xtask ci` is all.
//!
//! Owns the list of commands and of their steps. What a step looks for is in the module of its
//! name: [`alone`] for crates built by themselves, [`layers`], [`module_order`], [`method_order`]
//! and [`io_line`] for what may use what, [`tidy`] for the house style, [`packet_path`] for the
//! names in that page, [`fuzz`] and [`demo`] for the longer runs.

mod alone;
mod command;
mod demo;
mod files;
mod finding;
mod functions;
mod fuzz;
mod io_line;
mod layers;
mod limit_values;
mod method_order;
mod module_order;
mod packet_path;
mod source;
mod steps;
mod test_code;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use finding::Finding;
use steps::{Look, Step, look, program};

const USAGE: &str = "\
cargo xtask COMMAND

  check        format, layers, house style, lints, unit tests: the quick loop
  ci           check, then each crate alone, documentation, release build, conformance, simulated
               faults, a short storm and soak, tests of a scraper, of exports, of MPI programs, of MRNet's interface, of the
               Python package, of launchers, of the tools of examples, of the page and of the guide,
               fuzzing, a short demo
  layers       only: which crate may use which, and what may touch the world
  tidy         only: the house style
  packet-path  only: the names in docs/packet-path.md
  alone        only: every crate of crates/ built by itself
  fuzz         only: build the fuzz targets and run each for a short while
";

/// Steps of the short demo: enough for several rounds of the live table.
const DEMO_STEPS: u32 = 400;
/// Seeds of the simulator, each one run of a whole tree under faults of every class.
const SIM_SEEDS: u32 = 10_000;
/// And this many seeds that no run before has seen: the first follows from the commit.
const FRESH_SEEDS: u32 = 3_000;
/// The short storm and soak: time for some dozens of faults, and for memory to settle.
const STORM_SECONDS: u32 = 32;
const SOAK_SECONDS: u32 = 40;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = root();
    let steps = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["check"] => check_steps(),
        ["ci"] => ci_steps(),
        ["layers"] => vec![look("layers", layers_look)],
        ["tidy"] => vec![look("tidy", tidy_look)],
        ["packet-path"] => vec![look("packet path", packet_path_look)],
        ["alone"] => vec![look("crates alone", alone::look)],
        ["fuzz"] => vec![look("fuzz", fuzz::smoke)],
        [] | ["help" | "-h" | "--help"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("xtask: unknown command `{}`\n\n{USAGE}", arguments.join(" "));
            return ExitCode::from(2);
        }
    };
    if steps::run_all(&arguments[0], &root, &steps) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The quick looks first: a name in the wrong place is said before anything is compiled.
fn check_steps() -> Vec<Step> {
    vec![
        program("format", "cargo fmt --all --check", 2),
        look("layers", layers_look),
        look("tidy", tidy_look),
        look("packet path", packet_path_look),
        program("lints", "cargo clippy --workspace --all-targets -- -D warnings", 20),
        program("build of all targets", "cargo build --workspace --all-targets", 20),
        program("tests", "env SAPWOOD_TESTS_BUILT=1 cargo test --workspace", 20),
    ]
}

/// All of it. What is released is built once, as users get it, and the steps from there on run
/// that: library, program and wheel. Simulation, storm and soak run what is built for tests.
fn ci_steps() -> Vec<Step> {
    let mut steps = check_steps();
    steps.extend([
        look("crates alone", alone::look),
        program("documentation", "env RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps", 10),
        program("release build and MPI shims", "make instructions-program build shim", 30),
        program("library as released", "env SAPWOOD_TESTS_BUILT=1 make library-test", 5),
        program("instructions per message", instructions(), 5),
        program("clock calls", clock_calls(), 2),
        program("conformance", "python3 conformance/check.py", 2),
        program("simulated faults", simulation(), 5),
        program("simulated faults, fresh seeds", fresh_simulation(), 5),
        program("short storm", storm(), 5),
        program("short soak", soak(), 5),
        program("scraped by Prometheus", scrape(), 3),
        program("formats and their readers", exports(), 8),
        program("MPI tests", "env SAPWOOD_TESTS_BUILT=1 make test-mpi", 15),
        program("MRNet's interface", "make compat-test", 10),
        program("Python package", "make python-test", 15),
        program("launchers on hosts", launchers(), 10),
        program("MPI jobs on hosts", mpi_jobs(), 10),
        program("tools of examples", "env SAPWOOD_TESTS_BUILT=1 make examples-test", 10),
        program("page in a browser", "env SAPWOOD_TESTS_BUILT=1 make page-test", 15),
        program("guide", "make guide-test", 5),
        program("fuzz format", "cargo fmt --manifest-path fuzz/Cargo.toml --check", 2),
        look("fuzzing", fuzz::smoke),
        program("demo", format!("make demo DEMO_STEPS={DEMO_STEPS} DEMO_OUT={}", demo::FOLDER), 10),
        look("demo report", demo::look),
    ]);
    steps
}

/// Trees over a few hosts of the test bed, where the machine lets us make some, from the interfaces
/// of the steps before, too.
fn launchers() -> String {
    let program = release_program();
    format!(
        "env TESTBED_HOSTS=8 testbed/tests/run --if-able {program} StartUp.test_fan_out_2 \
         StartUp.test_the_tree_is_chosen_by_what_was_measured LostHosts Ends Strangers Commands \
         WarmTree Hosts Languages Processors"
    )
}

/// MPI programs on five hosts of the test bed, with every launcher and every failure.
fn mpi_jobs() -> String {
    let program = release_program();
    format!("env TESTBED_HOSTS=5 testbed/tests/run --if-able {program} MpiJobs")
}

/// The counts of the release build beside those that are kept.
fn instructions() -> String {
    format!("{}-instructions --record labs/instructions/counts.json", release_program())
}

/// The released communication process reads its clock without entering the kernel.
fn clock_calls() -> String {
    format!("labs/bench/clock_calls.py {}-bench {}-node", test_program(), release_program())
}

/// Metrics of hosts as Debian's Prometheus takes them.
fn scrape() -> String {
    format!("testbed/tests/scrape {}", release_program())
}

/// What a watched program leaves, in every format, as its readers from PyPI see it.
fn exports() -> String {
    format!("testbed/tests/exports {}", release_program())
}

/// Real nodes on a virtual clock, in the build of the tests: its assertions look, too.
fn simulation() -> String {
    format!("{}-sim --seeds {SIM_SEEDS} --faults all", test_program())
}

/// A storm of the build of the tests.
fn storm() -> String {
    format!("testbed/storm {}-storm {STORM_SECONDS} --seed 1", test_program())
}

/// A soak of the build of the tests.
fn soak() -> String {
    format!("{}-soak --seconds {SOAK_SECONDS}", test_program())
}

/// The same with seeds of this commit's own, which its report names: the same commit repeats them.
fn fresh_simulation() -> String {
    let head = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output();
    let head = head.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let first = head.ok().and_then(|head| u64::from_str_radix(head.get(..12)?, 16).ok());
    let first = first.unwrap_or(1 << 40);
    format!("{}-sim --first {first} --seeds {FRESH_SEEDS} --faults all", test_program())
}

/// The command as it is released; what measures it lies beside it.
fn release_program() -> String {
    format!("{}/release/sapwood", target())
}

/// The command as the tests have it; all programs of the laboratory lie beside it.
fn test_program() -> String {
    format!("{}/debug/sapwood", target())
}

fn target() -> String {
    std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".into())
}

fn layers_look(root: &Path) -> Look {
    let mut findings = layers::check(root);
    let table = layers::load(root).map_err(|finding| vec![finding])?;
    let files = read(root)?;
    findings.extend(io_line::check(&table, &files));
    findings.extend(module_order::check(&table, &files));
    findings.extend(method_order::check(&table, &files));
    let crates = table.crates.len();
    answer(findings, format!("{crates} crates use only what they may"))
}

fn tidy_look(root: &Path) -> Look {
    let files = read(root)?;
    let report = tidy::check(&files);
    let line = format!(
        "{} files are tidy; {} source files are over 400 lines",
        files.len(),
        report.long_files
    );
    answer(report.findings, line)
}

fn packet_path_look(root: &Path) -> Look {
    answer(packet_path::check(&read(root)?), format!("every name in {} exists", packet_path::PAGE))
}

fn read(root: &Path) -> Result<Vec<files::File>, Vec<Finding>> {
    files::all(root)
        .map_err(|error| vec![Finding::new(root.display().to_string(), 0, error.to_string())])
}

fn answer(findings: Vec<Finding>, line: String) -> Look {
    if findings.is_empty() { Ok(line) } else { Err(findings) }
}

/// The repository's root: the folder above this package.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or_else(|| package.clone(), Path::to_path_buf)
}
