//! The steps of `cargo xtask check` and `cargo xtask ci`, in order.
//!
//! All of them run the same inputs on the same commit: seeds are fixed, and fuzz targets are given
//! kept inputs. What searches is in [`crate::hunt`].

use crate::company::Takes;
use crate::steps::{Lane, Selection, Step};
use crate::{demo, looks, one_build, packages, target};

/// Steps of the short demo: enough for several rounds of the live table.
const DEMO_STEPS: u32 = 400;
/// Seeds of the simulator, each one run of a whole tree under faults of every class.
const SIM_SEEDS: u32 = 2_000;
/// The short storm and soak: time for some dozens of faults, and for memory to settle.
const STORM_SECONDS: u32 = 32;
const SOAK_SECONDS: u32 = 40;

const ROOM: &str = "disk space";
/// The two turns of bindings/mpi/tests/turns.py.
const SHARED_MPI_TESTS: &str = "env SAPWOOD_TESTS_BUILT=1 make test-mpi TURN=shared";
const ALONE_MPI_TESTS: &str = "env SAPWOOD_TESTS_BUILT=1 make test-mpi TURN=alone";
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
        Step::program(RELEASE, "make instructions-program build shim", 40)
            .after(&[BUILD])
            .in_lane(Lane::Second),
        Step::program("crates alone", "cargo xtask alone", 20).after(&[BUILD]).in_lane(Lane::Third),
        Step::program(
            "documentation",
            "env RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps",
            20,
        )
        .after(&[BUILD])
        .in_lane(Lane::Third),
    ]);
    steps.extend(engine_steps());
    steps.extend(interface_steps());
    steps
}

/// The engine as it is released, its formats, and runs under faults.
fn engine_steps() -> Vec<Step> {
    vec![
        Step::program("conformance", "python3 conformance/check.py", 2),
        Step::program("environment variables", "python3 conformance/environment.py", 2),
        Step::program("versions in pages", "python3 conformance/versions.py", 2),
        Step::program("commands of README", "python3 packaging/readme.py", 2),
        Step::program("pictures of groups", "python3 docs/pictures/groups.py --check", 2),
        Step::program("picture of offloads", "python3 docs/pictures/offload.py --check", 2),
        Step::program("simulated faults", simulation(), 20).after(&[BUILD]),
        Step::program("short storm", storm(), 5).after(&[BUILD]).taking(Takes::Hosts),
        Step::program("short soak", soak(), 5).after(&[BUILD]),
        Step::program("guide", "make guide-test", 5),
        Step::program("commands in pages", commands_in_pages(), 2).after(&[BUILD]),
        Step::program("commands of the tour", commands_of_the_tour(), 2).after(&[BUILD]),
        Step::program("options in tests", options_in_tests(), 2).after(&[BUILD]),
        Step::program("library as released", "env SAPWOOD_TESTS_BUILT=1 make library-test", 5)
            .after(&[BUILD, RELEASE]),
        Step::program("version as released", version(), 2).after(&[RELEASE]),
        Step::program("instructions per message", instructions(), 5).after(&[RELEASE]),
        Step::program("clock calls", clock_calls(), 2).after(&[BUILD, RELEASE]),
        Step::program("benchmarks over hosts", benchmarks_over_hosts(), 2)
            .after(&[BUILD])
            .with_tests(Selection::Option("-k")),
    ]
}

/// What users run and link, with the programs of others. The MPI tests go two at a time, beside
/// what judges no time either. What needs the machine comes last.
fn interface_steps() -> Vec<Step> {
    let mut steps = second_lane();
    steps.extend(third_lane());
    steps.extend([
        Step::program("MPI tests", SHARED_MPI_TESTS, 50)
            .after(&[BUILD, RELEASE])
            .with_tests(Selection::Variable),
        Step::program("PyTorch programs", TORCH_PROGRAMS, 20)
            .after(&[BUILD, RELEASE])
            .with_tests(Selection::Variable),
        Step::program("demo", demo_run(), 10).after(&[RELEASE]),
        Step::look("demo report", demo::look).after(&["demo"]),
        // What is asked of the only job of a machine must find no job of another step.
        Step::program("commands shown in pages", shown_commands(), 15)
            .after(&[BUILD, RELEASE])
            .taking(Takes::Machine),
        Step::program("MPI tests that need the machine", ALONE_MPI_TESTS, 20)
            .after(&[BUILD, RELEASE])
            .taking(Takes::Machine)
            .with_tests(Selection::Variable),
        Step::program("group in emulated clusters", group_demo(), 6)
            .after(&[RELEASE])
            .taking(Takes::Machine),
        Step::program("groups measured", group_bench(), 6).after(&[BUILD]).taking(Takes::Machine),
    ]);
    steps
}

/// What the second lane does after the release build.
fn second_lane() -> Vec<Step> {
    let steps = vec![
        Step::program("sets of names beside ClusterShell's", nodesets(), 5).after(&[RELEASE]),
        Step::program("scraped by Prometheus", scrape(), 3)
            .after(&[RELEASE])
            .with_tests(Selection::Option("-k")),
        Step::program(MRNET, "make compat-test", 20)
            .after(&[RELEASE])
            .with_tests(Selection::Variable),
        Step::program(PYTHON, "make python-test", 25).with_tests(Selection::Variable),
        Step::program("tools of examples", "env SAPWOOD_TESTS_BUILT=1 make examples-test", 20)
            .after(&[BUILD, RELEASE, PYTHON])
            .with_tests(Selection::Variable),
        Step::program("formats and their readers", exports(), 20)
            .after(&[RELEASE])
            .with_tests(Selection::Option("-k")),
        Step::program("page in a browser", "env SAPWOOD_TESTS_BUILT=1 make page-test", 20)
            .after(&[BUILD, RELEASE])
            .with_tests(Selection::Pattern),
    ];
    steps.into_iter().map(|step| step.in_lane(Lane::Second)).collect()
}

/// What is done on hosts, which waits more than it computes.
fn third_lane() -> Vec<Step> {
    let steps = vec![
        Step::program("MPI jobs on hosts", mpi_jobs(), 25)
            .after(&[RELEASE])
            .with_tests(Selection::Instead("MpiJobs Traces")),
        Step::program("launchers on hosts", launchers(), 25)
            .after(&[RELEASE, MRNET, PYTHON])
            .with_tests(Selection::Instead("StartUp")),
    ];
    let of_hosts = |step: Step| step.in_lane(Lane::Third).taking(Takes::Hosts);
    steps.into_iter().map(of_hosts).collect()
}

/// Trees over a few hosts of the test bed, where the machine lets us make some, from the interfaces
/// of the steps before, too.
fn launchers() -> String {
    let program = release_program();
    format!(
        "env TESTBED_HOSTS=8 testbed/tests/run --if-able {program} StartUp.test_fan_out_2 \
         StartUp.test_the_tree_is_chosen_by_what_was_measured LostHosts Ends Strangers Commands \
         KilledFrontEnds WarmTree Hosts Languages Processors Owners Requirements"
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

/// The commit that the released command names.
fn version() -> String {
    format!("packaging/version {}", release_program())
}

/// The counts of the release build beside those that are kept.
fn instructions() -> String {
    format!("{}-instructions --record labs/instructions/counts.json", release_program())
}

/// The released communication process reads its clock without entering the kernel.
fn clock_calls() -> String {
    format!("labs/bench/clock_calls.py {}-bench {}-node", test_program(), release_program())
}

/// Benchmarks over hosts, with answers in the place of hosts: their figures, and the commands that
/// they run.
fn benchmarks_over_hosts() -> String {
    format!("labs/tests/hosts.py {}", test_program())
}

/// Every command that a page shows, with its options.
fn commands_in_pages() -> String {
    format!("python3 conformance/pages.py {}", test_program())
}

/// Every option of every command, which some test uses.
fn options_in_tests() -> String {
    format!("python3 conformance/options.py {}", test_program())
}

/// The commands of the guide's tour, which print what it shows.
fn commands_of_the_tour() -> String {
    format!("python3 conformance/tour.py {}", test_program())
}

/// The commands of the pages for users, with the shims of the release build.
fn shown_commands() -> String {
    let (program, target) = (test_program(), target());
    format!("python3 conformance/shown_commands.py {program} {target}/release/lib/sapwood")
}

/// Sets of names as ClusterShell expands and folds them, of the Python that Debian installs it for.
fn nodesets() -> String {
    format!("/usr/bin/python3 conformance/nodeset.py {}", release_program())
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
    format!("testbed/apart testbed/storm {}-storm {STORM_SECONDS} --seed 1", test_program())
}

/// A soak of the build of the tests.
fn soak() -> String {
    format!("{}-soak --seconds {SOAK_SECONDS}", test_program())
}

/// The demo, of programs that are there: those of `--profile demo` are of the same sources.
fn demo_run() -> String {
    format!("make demo DEMO_BUILD=release DEMO_STEPS={DEMO_STEPS} DEMO_OUT={}", demo::FOLDER)
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
    use std::time::Duration;

    use super::*;
    use crate::command;
    use crate::steps::{Act, prepare};

    /// How long make may take where it builds nothing.
    const MAKE_TIME_MAX: Duration = Duration::from_secs(120);

    /// The line of each step that runs a program.
    fn lines(steps: &[Step]) -> impl Iterator<Item = (&Step, &str)> {
        steps.iter().filter_map(|step| match &step.act {
            Act::Program { line, .. } => Some((step, line.as_str())),
            Act::Look(_) => None,
        })
    }

    #[test]
    fn names_are_different_and_what_a_step_needs_comes_before_it() {
        let mut names = BTreeSet::new();
        for step in ci_steps() {
            assert!(step.needs.iter().all(|need| names.contains(need)), "{}", step.name);
            assert!(names.insert(step.name), "{} is there twice", step.name);
        }
    }

    #[test]
    fn storms_have_a_fixed_seed_and_no_step_searches() {
        let steps = ci_steps();
        let mut storms = 0;
        for (step, line) in lines(&steps) {
            assert!(!line.contains("--search") && !line.contains("hunt"), "{}", step.name);
            if line.contains("-storm ") {
                assert!(line.contains(" --seed "), "{}", step.name);
                storms += 1;
            }
        }
        assert!(storms > 0);
    }

    #[test]
    fn storms_of_one_host_run_over_shared_memory_as_networks_do_by_themselves() {
        let script = std::fs::read_to_string(crate::root().join("testbed/storm")).unwrap();
        let (before, rest) = script.split_once("\non_this_host() {\n").unwrap();
        let (body, after) = rest.split_once("\n}\n").unwrap();
        let transports = body.split_once("for transport in ").unwrap().1;
        let (transports, run) = transports.split_once("; do\n").unwrap();
        let transports: BTreeSet<_> = transports.split(' ').collect();
        assert!(transports.contains("shm") && transports.contains("unix"), "{transports:?}");
        let run = run.lines().next().unwrap();
        assert!(run.contains("\"$program\" ") && run.contains(" --transport \"$transport\" "));
        // Where there are hosts, and where there are none.
        let calls = after.lines().filter(|line| line.trim_start().starts_with("on_this_host "));
        assert_eq!((calls.count(), before.contains("on_this_host")), (2, false));
    }

    #[test]
    fn every_program_of_conformance_is_run() {
        let steps = ci_steps();
        let folder = crate::root().join("conformance");
        let names = std::fs::read_dir(&folder).unwrap().filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".py").map(str::to_owned)
        });
        let (run, others): (Vec<String>, Vec<String>) = names.partition(|stem| {
            lines(&steps).any(|(_, line)| line.contains(&format!("conformance/{stem}.py")))
        });
        let is_part = |stem: &str| {
            run.iter().any(|program| {
                let text = std::fs::read_to_string(folder.join(format!("{program}.py"))).unwrap();
                text.lines().any(|line| {
                    let line = line.trim_start();
                    line.starts_with(&format!("import {stem}"))
                        || line.starts_with(&format!("from {stem}"))
                })
            })
        };
        for stem in &others {
            assert!(is_part(stem), "{stem}.py");
        }
    }

    #[test]
    fn what_makes_hosts_fits_no_other_step_that_does() {
        const HOSTS: [&str; 3] = ["TESTBED_HOSTS=", "testbed/tests/group-", "testbed/storm "];
        let steps = ci_steps();
        for word in HOSTS {
            assert!(lines(&steps).any(|(_, line)| line.contains(word)), "no step has '{word}'");
        }
        let makes_hosts = |line: &str| HOSTS.iter().any(|word| line.contains(word));
        for (step, _) in lines(&steps).filter(|(_, line)| makes_hosts(line)) {
            assert!(!step.takes.fits(Takes::Hosts), "{} beside hosts", step.name);
        }
    }

    #[test]
    fn each_turn_of_the_mpi_tests_has_a_step_and_one_of_them_the_machine() {
        let steps = ci_steps();
        let found: Vec<_> = lines(&steps)
            .filter_map(|(step, line)| Some((line.split_once("make test-mpi ")?.1, step.takes)))
            .collect();
        assert_eq!(found, [("TURN=shared", Takes::Time), ("TURN=alone", Takes::Machine)]);
        for (step, line) in lines(&steps).filter(|(_, line)| line.contains("make test-mpi")) {
            let repeated = step.line_of_test("Mpich.test_x");
            assert_eq!(repeated, Some(format!("{line} TESTS=Mpich.test_x")));
        }
    }

    #[test]
    fn of_each_step_whose_program_names_its_tests_one_can_be_chosen() {
        const PROGRAMS: [&str; 11] = [
            "cargo test --no-fail-fast",
            "make test-mpi",
            "make torch-test",
            "make compat-test",
            "make python-test",
            "make examples-test",
            "make page-test",
            "testbed/tests/run ",
            "testbed/tests/exports ",
            "testbed/tests/scrape ",
            "labs/tests/hosts.py ",
        ];
        let steps = ci_steps();
        for program in PROGRAMS {
            let mut of_program = lines(&steps).filter(|(_, line)| line.contains(program));
            let (step, _) = of_program.next().expect(program);
            assert!(step.line_of_test("Mpich.test_x").is_some(), "{}", step.name);
            assert!(of_program.all(|(step, _)| step.line_of_test("A.test_x").is_some()));
        }
    }

    /// What make would run for the line of a step. Lines that call make run even so, and one of
    /// them starts Python, for which `echo` stands.
    fn commands_of_make(line: &str) -> Vec<String> {
        let make = prepare(&crate::root(), &format!("{line} --dry-run PYTHON=echo"));
        let mut text = String::new();
        let ran = command::run(make, MAKE_TIME_MAX, &mut |line| text += &format!("{line}\n"));
        assert_eq!(ran, Ok(()), "{text}");
        text.replace("\\\n", " ").lines().map(str::to_owned).collect()
    }

    /// The demo of the gate is that of the release build.
    #[test]
    fn the_programs_of_the_demo_have_rules() {
        // In a folder where nothing is, so that each file needs its rule; a dry run makes none.
        let commands = commands_of_make("make quick-programs SHIMS=/nowhere");
        for part in ["cargo build --profile demo ", " -o /nowhere/libsapwood-mpi-"] {
            assert!(commands.iter().any(|command| command.contains(part)), "{part}");
        }
    }

    #[test]
    fn make_hands_the_chosen_test_on_to_what_runs_it() {
        const NAME: &str = "Kind.test_name";
        let is_program = |word: &&str| word.contains("tests/") && word.ends_with(".py");
        let steps = ci_steps();
        let mut goals = BTreeSet::new();
        for (step, line) in lines(&steps) {
            let chosen = format!("{line} TESTS={NAME}");
            if step.line_of_test(NAME).as_ref() != Some(&chosen) {
                continue;
            }
            let commands = commands_of_make(&chosen);
            assert!(commands.iter().any(|command| command.contains(NAME)), "{}", step.name);
            for command in commands {
                // Some run several programs.
                let programs = command.split(' ').filter(is_program).count();
                assert!(command.matches(NAME).count() >= programs, "{}: {command}", step.name);
            }
            assert!(!commands_of_make(line).iter().any(|command| command.contains(" -k ")));
            let words = line.split_once("make ").unwrap().1;
            goals.insert(words.split(' ').next().unwrap());
        }
        let expected = BTreeSet::from([
            "compat-test",
            "examples-test",
            "page-test",
            "python-test",
            "test-mpi",
            "torch-test",
        ]);
        assert_eq!(goals, expected);
    }

    #[test]
    fn of_two_programs_of_examples_one_may_have_no_chosen_test_but_not_both() {
        for (attach, tools, tests, expected) in [
            (0, 0, "", 0),
            (0, 5, "x", 0),
            (5, 0, "x", 0),
            (5, 5, "x", 2),
            (0, 5, "", 2),
            (1, 5, "x", 2),
            (0, 1, "", 2),
        ] {
            let mut make = prepare(&crate::root(), "make -C examples --assume-old=all check");
            make.arg(format!("attach_tests=(exit {attach})"));
            make.arg(format!("tools_tests=(exit {tools})")).arg(format!("TESTS={tests}"));
            let code = command::measure(make, MAKE_TIME_MAX, &mut |_| {}).code;
            assert_eq!(code, Some(expected), "{attach} {tools} {tests}");
        }
    }

    #[test]
    fn a_name_that_no_test_of_a_turn_of_the_mpi_tests_has_is_an_error() {
        let file = std::env::temp_dir().join(format!("sapwood-chosen-{}", std::process::id()));
        // The second stands for programs that have the test, the first for those that do not.
        let programs = ["true", "touch $(MPI_TESTS_CHOSEN); true"];
        for (of_turn, tests, expected) in [(0, "", 0), (0, "x", 2), (1, "x", 0), (1, "", 0)] {
            let mut make = prepare(&crate::root(), "make test-mpi TURN=shared --assume-old=shim");
            make.arg(format!("MPI_TESTS_CHOSEN={}", file.display()));
            make.arg("BUILD_MONITOR_TEST_PROGRAMS=true").arg(format!("TESTS={tests}"));
            make.arg(format!("MAKE={}", programs[of_turn]));
            let code = command::measure(make, MAKE_TIME_MAX, &mut |_| {}).code;
            assert_eq!(code, Some(expected), "{} {tests}", programs[of_turn]);
        }
        std::fs::remove_file(&file).expect("the last run has made it");
    }
}
