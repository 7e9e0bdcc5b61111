//! A run in which one test of each runner fails, with programs in the place of the runners that
//! print what these print: what the end of the run says, and what the logs hold.

use super::*;

/// Lines that each program prints before its runner's.
const LINES_BEFORE: usize = 200;

const CARGO: &str = "\
     Running unittests src/lib.rs (target/debug/deps/sapwood_packet-1)

running 2 tests
test values::holds ... ok
test values::breaks ... FAILED

failures:

---- values::breaks stdout ----

thread 'values::breaks' (1) panicked at crates/packet/src/values.rs:7:9:
assertion `left == right` failed
  left: 1
 right: 2

failures:
    values::breaks

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed, to rerun pass `-p sapwood-packet --lib`
error: 1 target failed:
    `-p sapwood-packet --lib`
";

const UNITTEST: &str = "\
test_holds (__main__.Mpich.test_holds) ... ok
test_breaks (__main__.Mpich.test_breaks) ... FAIL

======================================================================
FAIL: test_breaks (__main__.Mpich.test_breaks)
----------------------------------------------------------------------
Traceback (most recent call last):
  File \"a.py\", line 3, in test_breaks
    self.assertEqual(1, 2)
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 2 tests in 0.001s

FAILED (failures=1)
";

const PYTEST: &str = "\
collected 2 items

tests/test_a.py .F                                                       [100%]

=================================== FAILURES ===================================
________________________________ test_breaks[4] ________________________________

>       assert 1 == 2
E       assert 1 == 2

tests/test_a.py:2: AssertionError
=========================== short test summary info ============================
FAILED tests/test_a.py::test_breaks[4] - assert 1 == 2
========================= 1 failed, 1 passed in 0.02s ==========================
";

const NODE: &str = "\
TAP version 13
# Subtest: a page shows the rank's name
not ok 1 - a page shows the rank's name
  ---
  duration_ms: 3.652953
  failureType: 'testCodeFailure'
  error: '1 == 2'
  ...
# Subtest: a page ends
ok 2 - a page ends
  ---
  duration_ms: 0.56011
  ...
1..2
# tests 2
# suites 0
# pass 1
# fail 1
# cancelled 0
# skipped 0
# todo 0
# duration_ms 412.617853
";

/// Output that names no test.
const OTHER: &str = "3 wrong\n";

/// The programs in the place of runners, and with which code these end.
const PROGRAMS: [(&str, &str, i32); 5] = [
    ("cargo", CARGO, 101),
    ("unittest", UNITTEST, 1),
    ("pytest", PYTEST, 1),
    ("node", NODE, 1),
    ("other", OTHER, 1),
];

/// Writes the programs into a folder.
fn write_programs(folder: &Path) {
    for (name, closing, code) in PROGRAMS {
        let script = format!("seq {LINES_BEFORE}\ncat <<'END'\n{closing}END\nexit {code}\n");
        fs::write(folder.join(name), script).unwrap();
    }
}

/// What a program has printed at its end.
fn whole_output(closing: &str) -> String {
    let before: String = (1..=LINES_BEFORE).map(|number| format!("{number}\n")).collect();
    before + closing
}

/// The words of a line with one blank between them, without times.
fn without_times(line: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for word in line.split_whitespace() {
        let is_unit = word == "s" || word == "s,";
        if is_unit && kept.last().is_some_and(|last| last.parse::<f64>().is_ok()) {
            kept.pop();
        } else {
            kept.push(word);
        }
    }
    kept.join(" ")
}

fn passes(_: &Path) -> Look {
    Ok("right".to_owned())
}

/// A step for each of the programs, and steps that pass before, between and behind them.
fn steps() -> Vec<Step> {
    vec![
        Step::look("first", passes),
        Step::program("tests", "sh cargo --workspace", 5)
            .with_tests(Selection::Instead("--workspace")),
        Step::program("MPI tests", "sh unittest", 5)
            .with_tests(Selection::Variable)
            .in_lane(Lane::Second),
        Step::look("between", passes),
        Step::program("Python package", "sh pytest", 5).with_tests(Selection::Variable),
        Step::program("page", "sh node", 5).with_tests(Selection::Pattern).in_lane(Lane::Second),
        Step::program("names beside ClusterShell's", "sh other", 5),
        Step::look("report of the page", passes).after(&["page"]),
        Step::look("last", passes).after(&["between"]),
    ]
}

#[test]
fn the_end_of_a_run_names_every_failed_test_with_what_repeats_it() {
    // Where the build has a folder of its own, runs of several processes have their logs in it.
    let title = format!("failing-runs-{}", std::process::id());
    let folder = std::env::temp_dir().join(format!("sapwood-{title}"));
    fs::create_dir_all(&folder).unwrap();
    write_programs(&folder);
    let logs = folder.join(crate::target()).join(LOGS).join(&title);
    let log = |name: &str| logs.join(format!("{name}.log"));

    let summary = run_lanes(&title, &folder, &steps());
    assert!(!summary.all_passed);
    assert!(!run_all(&title, &folder, &steps()));

    let failed = |name: &str, file: &str| format!("FAILED {name} {}", log(file).display());
    let plain = |line: &str| line.to_owned();
    let repeat = |words: &str| format!("cargo xtask repeat --times 1 {words}");
    let (variable, seed) = environment::PROPERTY_SEED;
    let expected = [
        plain(""),
        format!("{title}: took processor"),
        plain("ok first"),
        failed("tests", "tests"),
        failed("MPI tests", "mpi-tests"),
        plain("ok between"),
        failed("Python package", "python-package"),
        failed("page", "page"),
        failed("names beside ClusterShell's", "names-beside-clustershell-s"),
        plain("skipped report of the page"),
        plain("ok last"),
        plain("failed, and what repeats it:"),
        plain("tests: values::breaks"),
        format!("{variable}={seed} cargo test -p sapwood-packet --lib values::breaks"),
        plain("MPI tests: Mpich.test_breaks"),
        repeat("'MPI tests' 'Mpich.test_breaks'"),
        plain("Python package: test_breaks[4]"),
        repeat("'Python package' 'test_breaks[4]'"),
        plain("page: a page shows the rank's name"),
        repeat(r"'page' 'a page shows the rank'\''s name'"),
        plain("names beside ClusterShell's"),
        repeat(r"'names beside ClusterShell'\''s'"),
        format!("{title} FAILED in processor"),
        plain("4 passed, 4 failed"),
    ];
    let lines: Vec<_> = summary.lines.iter().map(|line| without_times(line)).collect();
    assert_eq!(lines, expected);

    let files = ["tests", "mpi-tests", "python-package", "page", "names-beside-clustershell-s"];
    for (file, (_, closing, _)) in files.into_iter().zip(PROGRAMS) {
        assert_eq!(fs::read_to_string(log(file)).unwrap(), whole_output(closing), "{file}");
    }
    fs::remove_dir_all(logs).unwrap();
    fs::remove_dir_all(folder).unwrap();
}
