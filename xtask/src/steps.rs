//! Runs named steps one after another, all of them, and lists at the end what has failed.
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
use std::time::{Duration, Instant};

use crate::failures::{Counts, FailedTest, Reading};
use crate::finding::Finding;
use crate::{command, environment};

/// A look's answer: a line for the reader, or what is wrong.
pub type Look = Result<String, Vec<Finding>>;

/// The folder of the logs, below the build's.
pub const LOGS: &str = "checks";
/// Lines of a failed step's output that are printed.
const LAST_LINES: usize = 60;

/// One named step.
pub struct Step {
    pub name: &'static str,
    pub act: Act,
    /// The steps without which this one cannot run.
    pub needs: &'static [&'static str],
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
    /// The name takes the place of the line's words from this one on.
    Instead(&'static str),
}

impl Step {
    /// A step that looks at the repository.
    pub fn look(name: &'static str, look: fn(&Path) -> Look) -> Step {
        Step { name, act: Act::Look(look), needs: &[] }
    }

    /// A step that runs a program, given as words with a blank between them.
    pub fn program(name: &'static str, line: impl Into<String>, minutes: u64) -> Step {
        let deadline = Duration::from_secs(60 * minutes);
        let act = Act::Program { line: line.into(), deadline, selection: Selection::None };
        Step { name, act, needs: &[] }
    }

    /// The same after other steps.
    pub fn after(mut self, needs: &'static [&'static str]) -> Step {
        self.needs = needs;
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
            Selection::Instead(word) => {
                let kept = line.split_once(word).map_or(line.as_str(), |(kept, _)| kept);
                Some(format!("{kept}{test}"))
            }
        }
    }
}

/// What came of one run of a step.
pub struct Outcome {
    pub passed: bool,
    pub took: Duration,
    pub counts: Counts,
    pub failed: Vec<FailedTest>,
    /// What a reader needs of a failure: the last lines of output, or all findings.
    pub last: Vec<String>,
    /// Where the whole output is, if there is any.
    pub log: Option<PathBuf>,
}

/// Runs the steps in order; true if all passed.
pub fn run_all(title: &str, root: &Path, steps: &[Step]) -> bool {
    let began = Instant::now();
    let mut outcomes: Vec<Option<Outcome>> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let missing = missing_need(step, &steps[..index], &outcomes);
        let place = format!("{}/{}", index + 1, steps.len());
        if let Some(need) = missing {
            println!("{title} {place}: {} is skipped: it needs '{need}'", step.name);
            outcomes.push(None);
            continue;
        }
        println!("{title} {place}: {} ...", step.name);
        let outcome = perform(root, step, title);
        tell(step, &outcome);
        outcomes.push(Some(outcome));
    }
    summarise(title, steps, &outcomes, began.elapsed())
}

/// A step among those before that this one needs and that has not passed.
fn missing_need(
    step: &Step,
    before: &[Step],
    outcomes: &[Option<Outcome>],
) -> Option<&'static str> {
    let has_passed = |need: &str| {
        let at = before.iter().position(|other| other.name == need);
        at.is_none_or(|at| outcomes[at].as_ref().is_some_and(|outcome| outcome.passed))
    };
    step.needs.iter().find(|need| !has_passed(need)).copied()
}

/// Says how a step has ended.
fn tell(step: &Step, outcome: &Outcome) {
    let seconds = outcome.took.as_secs_f64();
    if outcome.passed {
        let what = match outcome.counts.passed {
            0 => outcome.last.last().cloned().unwrap_or_default(),
            passed => format!("{passed} tests"),
        };
        println!("    ok in {seconds:.1} s  {what}");
        return;
    }
    for line in &outcome.last {
        println!("    | {line}");
    }
    println!("    FAILED after {seconds:.1} s: {}", step.name);
}

/// Prints the table, then each failed test with the command that repeats it.
fn summarise(title: &str, steps: &[Step], outcomes: &[Option<Outcome>], took: Duration) -> bool {
    let mut counts = Counts::default();
    println!("\n{title}:");
    for (step, outcome) in steps.iter().zip(outcomes) {
        let Some(outcome) = outcome else {
            println!("  skipped            {}", step.name);
            continue;
        };
        counts.add(outcome.counts);
        let word = if outcome.passed { "ok    " } else { "FAILED" };
        let log = outcome.log.as_ref().filter(|_| !outcome.passed);
        let log = log.map_or(String::new(), |log| format!("  {}", log.display()));
        println!("  {word} {:7.1} s  {}{log}", outcome.took.as_secs_f64(), step.name);
    }
    let all = outcomes.iter().all(|outcome| outcome.as_ref().is_some_and(|outcome| outcome.passed));
    if !all {
        println!("failed, and what repeats it:");
        for (step, outcome) in steps.iter().zip(outcomes) {
            outcome
                .iter()
                .filter(|outcome| !outcome.passed)
                .for_each(|outcome| repeats(step, outcome));
        }
    }
    let word = if all { "passed" } else { "FAILED" };
    println!("{title} {word} in {:.1} s", took.as_secs_f64());
    if counts != Counts::default() {
        println!("{} passed, {} failed", counts.passed, counts.failed);
    }
    all
}

fn repeats(step: &Step, outcome: &Outcome) {
    if outcome.failed.is_empty() {
        println!("  {}\n      cargo xtask repeat --times 1 '{}'", step.name, step.name);
    }
    for test in &outcome.failed {
        println!("  {}: {}", step.name, test.name);
        if !test.package.is_empty() {
            println!("      cargo test {} {}", test.package, test.name);
        } else if step.line_of_test(&test.name).is_some() {
            println!("      cargo xtask repeat --times 1 '{}' '{}'", step.name, test.name);
        } else {
            println!("      cargo xtask repeat --times 1 '{}'", step.name);
        }
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
    let counts = Counts::default();
    Outcome { passed, took: Duration::ZERO, counts, failed: Vec::new(), last, log: None }
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
    let mut last = VecDeque::new();
    let result = command::run(command, deadline, &mut |line| {
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
    let passed = result.is_ok() && counts.failed == 0;
    last.extend(result.err());
    Outcome { passed, took: Duration::ZERO, counts, failed: reading.failed, last: last.into(), log }
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

/// A program in the step's environment.
pub fn prepare(root: &Path, line: &str) -> Command {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    environment::clean(&mut command);
    command.args(words).current_dir(root);
    command
}

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
        let steps = [Step::look("one", wrong), Step::look("two", right)];
        let outcomes: Vec<_> =
            steps.iter().map(|step| Some(perform(&root(), step, "sample"))).collect();
        let needing = |needs| Step::look("three", right).after(needs);
        assert_eq!(missing_need(&needing(&["one"]), &steps, &outcomes), Some("one"));
        assert_eq!(missing_need(&needing(&["two"]), &steps, &outcomes), None);
        // A step that is run by itself has nothing before it.
        assert_eq!(missing_need(&needing(&["one"]), &[], &[]), None);
    }

    #[test]
    fn a_count_of_failures_fails_even_a_successful_program() {
        let outcome = runs(&Step::program("one", "echo 1 passed, 1 failed", 1));
        assert!(!outcome.passed);
        assert_eq!(outcome.counts, Counts { passed: 1, failed: 1 });
    }

    #[test]
    fn one_test_of_a_step_can_be_chosen() {
        let make = Step::program("one", "make test-mpi", 1).with_tests(Selection::Variable);
        assert_eq!(make.line_of_test("a").as_deref(), Some("make test-mpi TESTS=a"));
        let cargo = Step::program("two", "cargo test --workspace", 1)
            .with_tests(Selection::Instead("--workspace"));
        assert_eq!(cargo.line_of_test("-p x a").as_deref(), Some("cargo test -p x a"));
    }
}
