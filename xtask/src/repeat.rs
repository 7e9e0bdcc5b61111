//! Runs one step, or one of its tests, again and again: luck shows by repetition.
//!
//! Each run has its number as the one that draws the order of tests, where the runner can: programs
//! of Python do (`bindings/mpi/tests/turns.py`, pytest). Those of Rust run beside each other, and
//! libtest draws no order in a stable toolchain.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::failures::Counts;
use crate::steps::{Act, Selection, Step, perform};

/// The title under which the logs of repeated runs lie.
const TITLE: &str = "repeat";
/// The number that draws the order of tests.
const ORDER_VARIABLE: &str = "SAPWOOD_TESTS_ORDER";
/// The step of tests that are no step.
const BY_PATTERN: &str = "tests by pattern";
/// How long one run of them may take.
const TEST_MINUTES: u64 = 30;

/// What is said of a run without any test, where some were chosen.
const NO_TEST: &str = "no test of this name ran: another step may have it (`cargo xtask steps`)";

/// What `cargo xtask repeat` is asked.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub times: u32,
    /// Busy loops beside each run.
    pub load: u32,
    /// A step's name or the beginning of one; else a pattern for `cargo test --workspace`.
    pub what: String,
    /// One test of the step.
    pub test: Option<String>,
}

impl Request {
    /// Reads `[--times N] [--load N] STEP [TEST]`.
    ///
    /// # Errors
    /// One line that says what is wrong with the words.
    pub fn read(words: &[&str]) -> Result<Request, String> {
        let mut request = Request { times: 20, load: 0, what: String::new(), test: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut number = |least: u32| -> Result<u32, String> {
                let text = words.next().ok_or(format!("{word} wants a number"))?;
                let number = text.parse().ok().filter(|number| *number >= least);
                number.ok_or(format!("{word} wants a number of at least {least}, not '{text}'"))
            };
            match *word {
                "--times" => request.times = number(1)?,
                "--load" => request.load = number(0)?,
                option if option.starts_with("--") => {
                    return Err(format!("no option is called {option}"));
                }
                word if request.what.is_empty() => word.clone_into(&mut request.what),
                word if request.test.is_none() => request.test = Some(word.to_owned()),
                word => return Err(format!("'{word}' is one word more than STEP and TEST")),
            }
        }
        if request.what.is_empty() {
            return Err("say which step or test to repeat".into());
        }
        Ok(request)
    }
}

/// Repeats it and prints what failed how many times; true if all runs passed.
///
/// # Errors
/// One line, where the step has no tests to choose from.
pub fn run(root: &Path, steps: Vec<Step>, request: &Request) -> Result<bool, String> {
    let mut step = chosen(steps, request)?;
    let line = match &step.act {
        Act::Program { line, .. } => Some(line.clone()),
        Act::Look(_) => None,
    };
    // What runs several programs passes though none of them has the test.
    let is_chosen = request.test.is_some() || step.name == BY_PATTERN;
    let load = Load::start(request.load);
    let mut failures: BTreeMap<String, u32> = BTreeMap::new();
    let mut failed_runs = 0;
    for run in 1..=request.times {
        if let (Act::Program { line, .. }, Some(plain)) = (&mut step.act, &line) {
            *line = in_order(plain, run);
        }
        let mut outcome = perform(root, &step, TITLE);
        if is_chosen && outcome.passed && outcome.counts == Counts::default() {
            outcome.passed = false;
            outcome.last = vec![NO_TEST.to_owned()];
        }
        let word = if outcome.passed { "ok" } else { "FAILED" };
        println!("run {run} of {}: {word} in {:.1} s", request.times, outcome.took.as_secs_f64());
        if outcome.passed {
            continue;
        }
        failed_runs += 1;
        outcome.last.iter().for_each(|line| println!("    | {line}"));
        if let Some(log) = &outcome.log {
            let kept = log.with_extension(format!("{run}.log"));
            let kept = std::fs::rename(log, &kept).map(|()| kept);
            println!("    log: {}", kept.unwrap_or_else(|_| log.clone()).display());
        }
        if outcome.failed.is_empty() {
            *failures.entry("without a test's name".into()).or_default() += 1;
        }
        for test in outcome.failed {
            *failures.entry(test.name).or_default() += 1;
        }
    }
    drop(load);
    println!(
        "{}: {failed_runs} of {} runs failed, {} busy loops beside",
        step.name, request.times, request.load
    );
    for (name, times) in failures {
        println!("  {times:4}  {name}");
    }
    Ok(failed_runs == 0)
}

/// The same line, whose tests run in the order that a number draws.
fn in_order(line: &str, number: u32) -> String {
    format!("env {ORDER_VARIABLE}={number} {line}")
}

fn chosen(steps: Vec<Step>, request: &Request) -> Result<Step, String> {
    let at = steps.iter().position(|step| step.name == request.what);
    let at = at.or_else(|| steps.iter().position(|step| step.name.starts_with(&request.what)));
    let Some(mut step) = at.and_then(|at| steps.into_iter().nth(at)) else {
        let words = request.test.as_deref().map_or(String::new(), |test| format!(" {test}"));
        let line = format!("cargo test --workspace {}{words}", request.what);
        return Ok(Step::program(BY_PATTERN, line, TEST_MINUTES)
            .with_tests(Selection::Instead("--workspace")));
    };
    if let Some(test) = &request.test {
        let chosen = step.line_of_test(test);
        let chosen = chosen.ok_or(format!("of '{}' no single test can be chosen", step.name))?;
        if let Act::Program { line, .. } = &mut step.act {
            *line = chosen;
        }
    }
    Ok(step)
}

/// Threads that keep processors busy until it is dropped.
struct Load {
    is_over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Load {
    fn start(threads: u32) -> Load {
        let is_over = Arc::new(AtomicBool::new(false));
        let spin = |is_over: Arc<AtomicBool>| {
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        let threads = (0..threads).map(|_| thread::spawn(spin(Arc::clone(&is_over)))).collect();
        Load { is_over, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read() {
        let read = Request::read(&["--times", "3", "--load", "4", "MPI tests", "test_x"]);
        let expected =
            Request { times: 3, load: 4, what: "MPI tests".into(), test: Some("test_x".into()) };
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn wrong_words_are_named() {
        for (words, part) in [
            (&["--times", "0", "x"][..], "at least 1"),
            (&["--times"], "wants a number"),
            (&["--often", "x"], "no option"),
            (&["a", "b", "c"], "'c' is one word more"),
            (&[], "say which"),
        ] {
            let why = Request::read(words).expect_err("the words are wrong");
            assert!(why.contains(part), "{words:?}: {why}");
        }
    }

    #[test]
    fn each_run_has_an_order_of_its_own() {
        let name = std::env::temp_dir().join(format!("sapwood-orders-{}", std::process::id()));
        std::fs::create_dir_all(&name).unwrap();
        let step = Step::program("sample of orders", format!("printenv {ORDER_VARIABLE}"), 1);
        let request = Request { times: 2, load: 0, what: "sample".into(), test: None };
        assert_eq!(run(&name, vec![step], &request), Ok(true));
        let log = name.join(crate::target()).join("checks/repeat/sample-of-orders.log");
        assert_eq!(std::fs::read_to_string(log).unwrap(), "2\n");
        std::fs::remove_dir_all(name).unwrap();
    }

    #[test]
    fn a_chosen_test_that_no_program_has_fails() {
        let folder = std::env::temp_dir().join(format!("sapwood-chosen-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let request = |test: Option<&str>| Request {
            times: 1,
            load: 0,
            what: "sample".into(),
            test: test.map(str::to_owned),
        };
        for (line, test, passes) in [
            ("echo 0 passed, 0 failed", Some("x"), false),
            ("echo NO TESTS RAN", Some("x"), false),
            ("echo 1 passed, 0 failed", Some("x"), true),
            ("echo 0 passed, 0 failed", None, true),
        ] {
            let step = Step::program("sample of choice", line, 1).with_tests(Selection::Variable);
            assert_eq!(run(&folder, vec![step], &request(test)), Ok(passes), "{line} {test:?}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn failed_runs_are_counted_and_a_step_is_found_by_its_beginning() {
        let step = || Step::program("sample of failure", "false", 1);
        let request = Request { times: 2, load: 1, what: "sample".into(), test: None };
        let folder = std::env::temp_dir().join(format!("sapwood-repeat-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(run(&folder, vec![step()], &request), Ok(false));
        std::fs::remove_dir_all(folder).unwrap();
        let request = Request { test: Some("x".into()), ..request };
        assert!(chosen(vec![step()], &request).is_err());
    }
}
