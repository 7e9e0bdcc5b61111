//! Runs named steps, all of them, in lanes beside each other as far as they fit, and lists at
//! the end what failed.
//!
//! A step either looks at the repository itself ([`Act::Look`]) or runs a program
//! ([`Act::Program`]), whose output goes into a file of its own ([`LOGS`]). Of a step that passes
//! one line is printed; of one that fails the last lines, its failed tests, and the command that
//! repeats each. A step whose product a failed step was to make is skipped.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::company::{Company, Takes};
use crate::failures::{Counts, FailedTest, Reading};
use crate::finding::Finding;
use crate::{command, environment};

/// A look's answer: a line for the reader, or what is wrong.
pub type Look = Result<String, Vec<Finding>>;

/// The folder of the logs, below the build's.
pub const LOGS: &str = "checks";
/// Lines of a failed step's output that are printed.
const LAST_LINES: usize = 40;

/// One named step.
pub struct Step {
    pub name: &'static str,
    pub act: Act,
    /// The steps without which this one cannot run.
    pub needs: &'static [&'static str],
    pub lane: Lane,
    pub takes: Takes,
}

/// The steps of a lane run one after another, beside those of the other lane that they fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    First,
    /// For builds that leave a processor idle while they link, and what has no MPI.
    Second,
    /// For what fills the gaps of the others, and what mostly waits, as programs on hosts do.
    Third,
}

/// What a step does.
pub enum Act {
    Look(fn(&Path) -> Look),
    Program { line: String, deadline: Duration, selection: Selection },
}

/// How one test of a step's program is chosen.
#[derive(Clone, Copy)]
pub enum Selection {
    /// It has no tests to choose from.
    None,
    /// `TESTS=name` follows a line that calls make.
    Variable,
    /// The same for node, which takes a regular expression: a dot replaces each sign that has a
    /// meaning in one, in make or in a shell.
    Pattern,
    /// This option and the name follow the line.
    Option(&'static str),
    /// The name takes the place of the line's words from this one on.
    Instead(&'static str),
}

impl Step {
    /// A step that looks at the repository.
    pub fn look(name: &'static str, look: fn(&Path) -> Look) -> Step {
        Step { name, act: Act::Look(look), needs: &[], lane: Lane::First, takes: Takes::Time }
    }

    /// A step that runs a program, given as words with a blank between them.
    pub fn program(name: &'static str, line: impl Into<String>, minutes: u64) -> Step {
        let deadline = Duration::from_secs(60 * minutes);
        let act = Act::Program { line: line.into(), deadline, selection: Selection::None };
        Step { name, act, needs: &[], lane: Lane::First, takes: Takes::Time }
    }

    /// The same after other steps.
    pub fn after(mut self, needs: &'static [&'static str]) -> Step {
        self.needs = needs;
        self
    }

    /// The same, in another lane than the first.
    pub fn in_lane(mut self, lane: Lane) -> Step {
        self.lane = lane;
        self
    }

    /// The same, which takes more of the machine than time.
    pub fn taking(mut self, takes: Takes) -> Step {
        self.takes = takes;
        self
    }

    /// The same, with tests that can be run one by one.
    pub fn with_tests(mut self, how: Selection) -> Step {
        if let Act::Program { selection, .. } = &mut self.act {
            *selection = how;
        }
        self
    }

    /// What runs one test of this step, if that can be chosen.
    pub fn line_of_test(&self, test: &str) -> Option<String> {
        let Act::Program { line, selection, .. } = &self.act else { return None };
        match selection {
            Selection::None => None,
            Selection::Variable => Some(format!("{line} TESTS={test}")),
            Selection::Pattern => Some(format!("{line} TESTS={}", pattern(test))),
            Selection::Option(option) => Some(format!("{line} {option} {test}")),
            Selection::Instead(word) => {
                let kept = line.split_once(word).map_or(line.as_str(), |(kept, _)| kept);
                Some(format!("{kept}{test}"))
            }
        }
    }
}

/// A regular expression for the name of a test, without any sign that a shell or make knows.
fn pattern(test: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_".contains(sign);
    test.chars().map(|sign| if is_plain(sign) { sign } else { '.' }).collect()
}

/// What came of one run of a step.
#[derive(Default)]
pub struct Outcome {
    pub passed: bool,
    pub took: Duration,
    /// Processor time of its program and of all below it; of a look, none is measured.
    pub processor: Duration,
    pub counts: Counts,
    pub failed: Vec<FailedTest>,
    /// What a reader needs of a failure: its remarkable lines or the last ones, or all findings.
    pub last: Vec<String>,
    /// Where the whole output is, if there is any.
    pub log: Option<PathBuf>,
}

/// What is said at the end of a run of steps.
struct Summary {
    lines: Vec<String>,
    all_passed: bool,
}

/// Runs the steps of each lane in order, and prints what came of them; true if all passed.
pub fn run_all(title: &str, root: &Path, steps: &[Step]) -> bool {
    let summary = run_lanes(title, root, steps);
    summary.lines.iter().for_each(|line| println!("{line}"));
    summary.all_passed
}

fn run_lanes(title: &str, root: &Path, steps: &[Step]) -> Summary {
    let began = Instant::now();
    let all = Board::new(steps);
    let board = &all;
    thread::scope(|scope| {
        for lane in [Lane::Second, Lane::Third] {
            scope.spawn(move || run_lane(title, root, board, lane));
        }
        run_lane(title, root, board, Lane::First);
    });
    summarise(title, steps, &all.outcomes(), began.elapsed())
}

fn run_lane(title: &str, root: &Path, board: &Board, lane: Lane) {
    let steps = board.steps;
    for (index, step) in steps.iter().enumerate().filter(|(_, step)| step.lane == lane) {
        let place = format!("{title} {}/{}: {}", index + 1, steps.len(), step.name);
        if let Some(need) = board.wait_for_needs(index) {
            println!("{place} is skipped: it needs '{need}'");
            board.settle(index, None);
            continue;
        }
        board.wait_for_company(index);
        println!("{place} ...");
        let outcome = perform(root, step, title);
        tell(step, &outcome);
        board.settle(index, Some(outcome));
    }
}

/// What has come of each step so far, for both lanes.
struct Board<'a> {
    steps: &'a [Step],
    state: Mutex<State>,
    has_changed: Condvar,
}

struct State {
    slots: Vec<Slot>,
    company: Company,
}

enum Slot {
    Open,
    Skipped,
    Done(Outcome),
}

impl<'a> Board<'a> {
    fn new(steps: &'a [Step]) -> Board<'a> {
        let slots = steps.iter().map(|_| Slot::Open).collect();
        let state = Mutex::new(State { slots, company: Company::default() });
        Board { steps, state, has_changed: Condvar::new() }
    }

    /// Waits until all that a step needs is settled; gives what of it has not passed. What is not
    /// among the steps before it is taken as there: the step is run by itself.
    fn wait_for_needs(&self, index: usize) -> Option<&'static str> {
        let before = &self.steps[..index];
        let at = |need: &str| before.iter().position(|step| step.name == need);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for need in self.steps[index].needs {
            let Some(at) = at(need) else { continue };
            while matches!(state.slots[at], Slot::Open) {
                state = self.has_changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if !matches!(&state.slots[at], Slot::Done(outcome) if outcome.passed) {
                return Some(need);
            }
        }
        None
    }

    /// Waits until none runs that a step does not fit, and has it count as running. Others may
    /// begin meanwhile: what needs the machine comes when the other lanes have ended.
    fn wait_for_company(&self, index: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.company.begin(index, self.steps[index].takes) {
            state = self.has_changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn settle(&self, index: usize, outcome: Option<Outcome>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.slots[index] = outcome.map_or(Slot::Skipped, Slot::Done);
        state.company.end(index);
        self.has_changed.notify_all();
    }

    /// The outcome of each step; none of one that was skipped.
    fn outcomes(self) -> Vec<Option<Outcome>> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let outcome = |slot| match slot {
            Slot::Done(outcome) => Some(outcome),
            Slot::Open | Slot::Skipped => None,
        };
        state.slots.into_iter().map(outcome).collect()
    }
}

/// Says how a step has ended.
fn tell(step: &Step, outcome: &Outcome) {
    let seconds = outcome.took.as_secs_f64();
    let processor = outcome.processor.as_secs_f64();
    if outcome.passed {
        let what = match outcome.counts.passed {
            0 => outcome.last.last().cloned().unwrap_or_default(),
            passed => format!("{passed} tests"),
        };
        println!("    ok in {seconds:.1} s, processor {processor:.1} s: {}: {what}", step.name);
        return;
    }
    for line in &outcome.last {
        println!("    | {line}");
    }
    println!("    FAILED after {seconds:.1} s: {}", step.name);
}

/// The table, then each failed test with the command that repeats it.
fn summarise(title: &str, steps: &[Step], outcomes: &[Option<Outcome>], took: Duration) -> Summary {
    let mut counts = Counts::default();
    let mut processor = Duration::ZERO;
    let head = format!("{title}:");
    let mut lines = vec![String::new(), format!("{head:11}{:>7}  {:>9}", "took", "processor")];
    for (step, outcome) in steps.iter().zip(outcomes) {
        let Some(outcome) = outcome else {
            lines.push(format!("  skipped                      {}", step.name));
            continue;
        };
        counts.add(outcome.counts);
        processor += outcome.processor;
        let word = if outcome.passed { "ok    " } else { "FAILED" };
        let log = outcome.log.as_ref().filter(|_| !outcome.passed);
        let log = log.map_or(String::new(), |log| format!("  {}", log.display()));
        lines.push(format!(
            "  {word} {:7.1} s  {:7.1} s  {}{log}",
            outcome.took.as_secs_f64(),
            outcome.processor.as_secs_f64(),
            step.name
        ));
    }
    let all_passed =
        outcomes.iter().all(|outcome| outcome.as_ref().is_some_and(|outcome| outcome.passed));
    if !all_passed {
        lines.push("failed, and what repeats it:".to_owned());
        for (step, outcome) in steps.iter().zip(outcomes) {
            let failed = outcome.iter().filter(|outcome| !outcome.passed);
            lines.extend(failed.flat_map(|outcome| repeats(step, outcome)));
        }
    }
    let word = if all_passed { "passed" } else { "FAILED" };
    lines.push(format!(
        "{title} {word} in {:.1} s, processor {:.1} s",
        took.as_secs_f64(),
        processor.as_secs_f64()
    ));
    if counts != Counts::default() {
        lines.push(format!("{} passed, {} failed", counts.passed, counts.failed));
    }
    Summary { lines, all_passed }
}

/// Each failed test of a step, or the step itself, and below it what repeats it.
fn repeats(step: &Step, outcome: &Outcome) -> Vec<String> {
    if outcome.failed.is_empty() {
        return vec![format!("  {}", step.name), format!("      {}", line_of_step(step))];
    }
    let lines_of = |test: &FailedTest| {
        let line = line_of_failure(step, test);
        [format!("  {}: {}", step.name, test.name), format!("      {line}")]
    };
    outcome.failed.iter().flat_map(lines_of).collect()
}

/// What repeats a whole step, to be pasted into a shell.
fn line_of_step(step: &Step) -> String {
    format!("cargo xtask repeat --times 1 {}", quoted(step.name))
}

/// A word as a shell takes it, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What libtest prints behind the name of a test in documentation, and is none of it.
const ENDINGS_OF_NAMES: [&str; 3] = [" - compile", " - compile fail", " - should panic"];

/// What repeats a failed test, to be pasted into a shell.
fn line_of_failure(step: &Step, test: &FailedTest) -> String {
    if !test.package.is_empty() {
        // With the seed of the gate, which a property test may fail with alone. The name of a
        // test in documentation has blanks, and is all of it or nothing.
        let (variable, seed) = environment::PROPERTY_SEED;
        let trimmed = ENDINGS_OF_NAMES.iter().find_map(|ending| test.name.strip_suffix(*ending));
        let name = trimmed.unwrap_or(&test.name);
        let name = if name.contains(' ') { format!("-- '{name}'") } else { name.to_owned() };
        return format!("{variable}={seed} cargo test {} {name}", test.package).trim_end().into();
    }
    match step.line_of_test(&test.name) {
        Some(_) => format!("{} {}", line_of_step(step), quoted(&test.name)),
        None => line_of_step(step),
    }
}

/// Runs one step; `title` names the folder of its log.
pub fn perform(root: &Path, step: &Step, title: &str) -> Outcome {
    let started = Instant::now();
    let mut outcome = match &step.act {
        Act::Look(look) => look_at(root, *look),
        Act::Program { line, deadline, .. } => {
            execute(root, title, step.name, prepare(root, line), *deadline)
        }
    };
    outcome.took = started.elapsed();
    outcome
}

fn look_at(root: &Path, look: fn(&Path) -> Look) -> Outcome {
    let answer = look(root);
    let passed = answer.is_ok();
    let last = match answer {
        Ok(line) => vec![line],
        Err(findings) => findings.iter().map(Finding::to_string).collect(),
    };
    Outcome { passed, last, ..Outcome::default() }
}

fn execute(root: &Path, title: &str, name: &str, command: Command, deadline: Duration) -> Outcome {
    let (log, file) = match log(root, title, name) {
        Ok((path, file)) => (Some(path), Some(file)),
        Err(error) => {
            println!("    no log: {error}");
            (None, None)
        }
    };
    let mut file = file.map(BufWriter::new);
    let mut reading = Reading::default();
    let mut last: VecDeque<String> = VecDeque::new();
    let ran = command::measure(command, deadline, &mut |line| {
        reading.line(line);
        // A full disk spoils the log, not the step.
        let _ = file.as_mut().map(|file| writeln!(file, "{line}"));
        last.push_back(line.to_owned());
        if last.len() > LAST_LINES {
            last.pop_front();
        }
    });
    reading.finish();
    let counts = reading.counts;
    let passed = ran.result.is_ok() && counts.failed == 0;
    if !passed && !reading.remarkable.is_empty() {
        last = reading.remarkable.into();
    }
    last.extend(ran.result.err());
    let (processor, failed, last) = (ran.processor, reading.failed, last.into());
    Outcome { passed, processor, counts, failed, last, log, ..Outcome::default() }
}

/// The file for a step's output, made anew.
fn log(root: &Path, title: &str, name: &str) -> io::Result<(PathBuf, File)> {
    let folder = root.join(crate::target()).join(LOGS).join(title);
    fs::create_dir_all(&folder)?;
    let name: String =
        name.chars().map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '-' }).collect();
    let path = folder.join(format!("{}.log", name.to_lowercase()));
    let file = File::create(&path)?;
    Ok((path, file))
}

/// A program in the step's environment, which Ctrl-C ends: what a shell starts in the background
/// ignores it, and so would all below it, of which tests press it.
pub fn prepare(root: &Path, line: &str) -> Command {
    let mut command = Command::new("env");
    environment::clean(&mut command);
    command.arg("--default-signal=INT,QUIT").args(line.split(' ')).current_dir(root);
    command
}

#[cfg(test)]
mod failing_runs;

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(_: &Path) -> Look {
        Err(vec![Finding::new("a.rs", 1, "wrong")])
    }

    fn right(_: &Path) -> Look {
        Ok("right".into())
    }

    fn root() -> PathBuf {
        std::env::temp_dir()
    }

    fn runs(step: &Step) -> Outcome {
        let folder = root().join(format!("sapwood-steps-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let outcome = perform(&folder, step, "sample");
        fs::remove_dir_all(folder).unwrap();
        outcome
    }

    #[test]
    fn steps_pass_together() {
        assert!(run_all("sample", &root(), &[Step::look("one", right), Step::look("two", right)]));
    }

    #[test]
    fn one_failure_fails_all() {
        assert!(!run_all("sample", &root(), &[Step::look("one", wrong), Step::look("two", right)]));
        assert!(!run_all("sample", &root(), &[Step::look("one", right), Step::look("two", wrong)]));
    }

    #[test]
    fn a_step_is_skipped_only_if_what_it_needs_has_failed() {
        let needing = |name, needs| Step::look(name, right).after(needs);
        let steps = [
            Step::look("one", wrong).in_lane(Lane::Second),
            Step::look("two", right),
            needing("three", &["one"]),
            needing("four", &["two"]).in_lane(Lane::Third),
            needing("five", &["three"]),
            needing("six", &["not there"]),
        ];
        let board = Board::new(&steps);
        thread::scope(|scope| {
            for lane in [Lane::Second, Lane::Third] {
                let board = &board;
                scope.spawn(move || run_lane("sample", &root(), board, lane));
            }
            run_lane("sample", &root(), &board, Lane::First);
        });
        let passed: Vec<_> = board
            .outcomes()
            .iter()
            .map(|slot| slot.as_ref().map(|outcome| outcome.passed))
            .collect();
        assert_eq!(passed, [Some(false), Some(true), None, Some(true), None, Some(true)]);
    }

    #[test]
    fn what_needs_the_machine_runs_beside_nothing() {
        /// Steps that wait for each other.
        struct Meeting {
            running: u32,
            has_been: bool,
        }
        static MEETING: Mutex<Meeting> = Mutex::new(Meeting { running: 0, has_been: false });
        static HAS_BEEN: Condvar = Condvar::new();

        /// Runs until another step runs beside it, or for this time.
        fn meet(limit: Duration) -> Look {
            let mut meeting = MEETING.lock().unwrap();
            meeting.running += 1;
            if meeting.running > 1 {
                meeting.has_been = true;
                HAS_BEEN.notify_all();
            }
            let waited =
                HAS_BEEN.wait_timeout_while(meeting, limit, |meeting| !meeting.has_been).unwrap();
            let mut meeting = waited.0;
            meeting.running -= 1;
            right(Path::new(""))
        }

        fn meet_if_allowed(_: &Path) -> Look {
            meet(Duration::from_millis(300))
        }

        fn meet_surely(_: &Path) -> Look {
            meet(Duration::from_secs(60))
        }

        let have_met = |look: fn(&Path) -> Look, first: Takes, second: Takes| {
            MEETING.lock().unwrap().has_been = false;
            let steps = [
                Step::look("one", look).taking(first),
                Step::look("two", look).taking(second).in_lane(Lane::Second),
            ];
            assert!(run_all("sample", &root(), &steps));
            MEETING.lock().unwrap().has_been
        };
        assert!(have_met(meet_surely, Takes::Time, Takes::Time));
        assert!(!have_met(meet_if_allowed, Takes::Machine, Takes::Time));
        assert!(!have_met(meet_if_allowed, Takes::Time, Takes::Machine));
    }

    #[test]
    fn a_count_of_failures_fails_even_a_successful_program() {
        let outcome = runs(&Step::program("one", "echo 1 passed, 1 failed", 1));
        assert!(!outcome.passed);
        assert_eq!(outcome.counts, Counts { passed: 1, failed: 1 });
    }

    #[test]
    fn a_failed_test_comes_with_what_repeats_it() {
        let plain = Step::program("one", "make x", 1);
        let chosen = Step::program("two", "make x", 1).with_tests(Selection::Variable);
        let test = |name: &str, package: &str| FailedTest {
            name: name.to_owned(),
            package: package.to_owned(),
        };
        let seed = environment::PROPERTY_SEED.1;
        let cargo = |rest: &str| format!("PROPTEST_RNG_SEED={seed} cargo test {rest}");
        for (step, test, expected) in [
            (&plain, test("a::b", "-p x --lib"), cargo("-p x --lib a::b")),
            (&plain, test("", "-p x --test b"), cargo("-p x --test b")),
            (
                &plain,
                test("src/lib.rs - a (line 3)", "-p x --doc"),
                cargo("-p x --doc -- 'src/lib.rs - a (line 3)'"),
            ),
            (
                &plain,
                test("src/lib.rs - a (line 3) - compile", "-p x --doc"),
                cargo("-p x --doc -- 'src/lib.rs - a (line 3)'"),
            ),
            (
                &plain,
                test("src/lib.rs - a (line 3) - compile fail", "-p x --doc"),
                cargo("-p x --doc -- 'src/lib.rs - a (line 3)'"),
            ),
            (&plain, test("a::b - should panic", "-p x --lib"), cargo("-p x --lib a::b")),
            (&plain, test("A.test_b", ""), "cargo xtask repeat --times 1 'one'".to_owned()),
            (&chosen, test("A.test_b", ""), "cargo xtask repeat --times 1 'two' 'A.test_b'".into()),
            (&chosen, test("it's", ""), r"cargo xtask repeat --times 1 'two' 'it'\''s'".into()),
        ] {
            assert_eq!(line_of_failure(step, &test), expected);
        }
    }

    #[test]
    fn one_test_of_a_step_can_be_chosen() {
        let make = Step::program("one", "make test-mpi", 1).with_tests(Selection::Variable);
        assert_eq!(make.line_of_test("a").as_deref(), Some("make test-mpi TESTS=a"));
        let cargo = Step::program("two", "cargo test --workspace", 1)
            .with_tests(Selection::Instead("--workspace"));
        assert_eq!(cargo.line_of_test("-p x a").as_deref(), Some("cargo test -p x a"));
        let node = Step::program("three", "make page-test", 1).with_tests(Selection::Pattern);
        let chosen = node.line_of_test("4 ranks, it's `all_of-them`");
        assert_eq!(chosen.as_deref(), Some("make page-test TESTS=4.ranks..it.s..all_of-them."));
        let script =
            Step::program("four", "tests/exports x", 1).with_tests(Selection::Option("-k"));
        assert_eq!(script.line_of_test("A.test_b").as_deref(), Some("tests/exports x -k A.test_b"));
    }
}
