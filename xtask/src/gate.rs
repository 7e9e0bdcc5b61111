//! The steps of `cargo xtask check` and `cargo xtask ci`, in order.
//!
//! All of them run the same inputs on the same commit: seeds are fixed, and fuzz targets are given
//! kept inputs. What searches is in [`crate::hunt`].

use crate::steps::{Selection, Step};
use crate::{demo, looks, one_build, packages, target};

/// Steps of the short demo: enough for several rounds of the live table.
const DEMO_STEPS: u32 = 400;
/// Seeds of the simulator, each one run of a whole tree under faults of every class.
const SIM_SEEDS: u32 = 4_000;
/// The short storm and soak: time for some dozens of faults, and for memory to settle.
const STORM_SECONDS: u32 = 32;
const SOAK_SECONDS: u32 = 40;

const ROOM: &str = "disk space";
const TORCH_PROGRAMS: &str = "env SAPWOOD_TESTS_BUILT=1 make torch-test";
pub const BUILD: &str = "build of all targets";
const RELEASE: &str = "release build and MPI shims";
const MRNET: &str = "MRNet's interface";
const PYTHON: &str = "Python package";

/// The quick looks first: a name in the wrong place is said before anything is compiled.
pub fn check_steps() -> Vec<Step> {
    let mut steps = looks();
    steps.extend([
        Step::program("lints", "cargo clippy --workspace --all-targets -- -D warnings", 40),
        Step::program(BUILD, "cargo build --workspace --all-targets", 40).after(&[ROOM]),
        Step::program(
            "tests",
            "env SAPWOOD_TESTS_BUILT=1 cargo test --no-fail-fast --workspace",
            30,
        )
        .after(&[BUILD])
        .with_tests(Selection::Instead("--workspace")),
    ]);
    steps
}

/// What takes seconds: looks at the repository as it is.
pub fn looks() -> Vec<Step> {
    vec![
        Step::program("format", "cargo fmt --all --check", 2),
        Step::look(ROOM, looks::disk_space),
        Step::look("layers", looks::layers),
        Step::look("tidy", looks::tidy),
        Step::look("packet path", looks::packet_path),
        Step::look("packages", packages::look),
        Step::look("one build", one_build::look),
    ]
}

/// All of it. What is released is built once, as users get it, and the steps from there on run
/// that: library, program and wheel. Simulation, storm and soak run what is built for tests.
pub fn ci_steps() -> Vec<Step> {
    let mut steps = check_steps();
    steps.extend([
        // From here on beside the tests, which wait more than they compute.
        Step::program(RELEASE, "make instructions-program build shim", 40).after(&[BUILD]).beside(),
        Step::program("crates alone", "cargo xtask alone", 20).after(&[BUILD]).beside(),
        Step::program(
            "documentation",
            "env RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps",
            20,
        )
        .after(&[BUILD])
        .beside(),
    ]);
    steps.extend(engine_steps());
    steps.extend(interface_steps());
    steps
}

/// The engine as it is released, its formats, and runs under faults.
fn engine_steps() -> Vec<Step> {
    vec![
        Step::program("conformance", "python3 conformance/check.py", 2),
        Step::program("simulated faults", simulation(), 20).after(&[BUILD]),
        Step::program("short storm", storm(), 5).after(&[BUILD]),
        Step::program("short soak", soak(), 5).after(&[BUILD]),
        Step::program("guide", "make guide-test", 5),
        Step::program("commands in pages", commands_in_pages(), 2).after(&[BUILD]),
        Step::program("library as released", "env SAPWOOD_TESTS_BUILT=1 make library-test", 5)
            .after(&[BUILD, RELEASE]),
        Step::program("instructions per message", instructions(), 5).after(&[RELEASE]),
        Step::program("clock calls", clock_calls(), 2).after(&[BUILD, RELEASE]),
    ]
}

/// What users run and link, with the programs of others. The MPI tests and those without MPI run
/// beside each other; no MPI program starts while hosts of the test bed come and go.
fn interface_steps() -> Vec<Step> {
    vec![
        Step::program("sets of names beside ClusterShell's", nodesets(), 5)
            .after(&[RELEASE])
            .beside(),
        Step::program("scraped by Prometheus", scrape(), 3).after(&[RELEASE]).beside(),
        Step::program(MRNET, "make compat-test", 10).after(&[RELEASE]).beside(),
        Step::program(PYTHON, "make python-test", 15).with_tests(Selection::Variable).beside(),
        Step::program("tools of examples", "env SAPWOOD_TESTS_BUILT=1 make examples-test", 10)
            .after(&[BUILD, RELEASE, PYTHON])
            .beside(),
        Step::program("formats and their readers", exports(), 8).after(&[RELEASE]),
        Step::program("MPI tests", "env SAPWOOD_TESTS_BUILT=1 make test-mpi", 40)
            .after(&[BUILD, RELEASE])
            .with_tests(Selection::Variable),
        Step::program("PyTorch programs", TORCH_PROGRAMS, 10).after(&[BUILD, RELEASE]),
        Step::program("launchers on hosts", launchers(), 10)
            .after(&[RELEASE, MRNET, PYTHON])
            .with_tests(Selection::Instead("StartUp")),
        Step::program("MPI jobs on hosts", mpi_jobs(), 10)
            .after(&[RELEASE])
            .with_tests(Selection::Instead("MpiJobs Traces")),
        Step::program("group in emulated clusters", group_demo(), 6).after(&[RELEASE]),
        Step::program("groups measured", group_bench(), 6).after(&[BUILD]),
        Step::program("page in a browser", "env SAPWOOD_TESTS_BUILT=1 make page-test", 15)
            .after(&[BUILD, RELEASE]),
        Step::program("demo", demo_run(), 10).after(&[RELEASE]),
        Step::look("demo report", demo::look).after(&["demo"]),
    ]
}

/// Trees over a few hosts of the test bed, where the machine lets us make some, from the interfaces
/// of the steps before, too.
fn launchers() -> String {
    let program = release_program();
    format!(
        "env TESTBED_HOSTS=8 testbed/tests/run --if-able {program} StartUp.test_fan_out_2 \
         StartUp.test_the_tree_is_chosen_by_what_was_measured LostHosts Ends Strangers Commands \
         WarmTree Hosts Languages Processors Owners"
    )
}

/// MPI programs on five hosts of the test bed, with every launcher and every failure, and traces of
/// them.
fn mpi_jobs() -> String {
    let program = release_program();
    format!("env TESTBED_HOSTS=5 testbed/tests/run --if-able {program} MpiJobs Traces")
}

/// Members of a group on hosts of three clusters.
fn group_demo() -> String {
    format!("testbed/tests/group-demo --if-able {}", release_program())
}

/// The benchmark of groups with few members.
fn group_bench() -> String {
    format!("testbed/tests/group-bench --if-able {}", test_program())
}

/// The counts of the release build beside those that are kept.
fn instructions() -> String {
    format!("{}-instructions --record labs/instructions/counts.json", release_program())
}

/// The released communication process reads its clock without entering the kernel.
fn clock_calls() -> String {
    format!("labs/bench/clock_calls.py {}-bench {}-node", test_program(), release_program())
}

/// Every command that a page shows, with its options.
fn commands_in_pages() -> String {
    format!("python3 conformance/pages.py {}", test_program())
}

/// Sets of names as ClusterShell's `nodeset` expands and folds them.
fn nodesets() -> String {
    format!("python3 conformance/nodeset.py {}", release_program())
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

fn demo_run() -> String {
    format!("make demo DEMO_STEPS={DEMO_STEPS} DEMO_OUT={}", demo::FOLDER)
}

/// The command as it is released; what measures it lies beside it.
fn release_program() -> String {
    format!("{}/release/sapwood", target())
}

/// The command as the tests have it; all programs of the laboratory lie beside it.
pub fn test_program() -> String {
    format!("{}/debug/sapwood", target())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_different_and_what_a_step_needs_comes_before_it() {
        let mut names = BTreeSet::new();
        for step in ci_steps() {
            assert!(step.needs.iter().all(|need| names.contains(need)), "{}", step.name);
            assert!(names.insert(step.name), "{} is there twice", step.name);
        }
    }
}
