//! Runs named steps one after another and stops at the first that fails.
//!
//! A step either looks at the repository itself ([`Act::Look`]) or runs a program
//! ([`Act::Program`]). The last lines say which steps passed, how long each took, and how many
//! tests they counted.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::command::{self, Counts};
use crate::finding::Finding;

/// A look's answer: a line for the reader, or what is wrong.
pub type Look = Result<String, Vec<Finding>>;

/// One named step.
pub struct Step {
    pub name: &'static str,
    pub act: Act,
}

/// What a step does.
pub enum Act {
    Look(fn(&Path) -> Look),
    Program { line: String, deadline: Duration },
}

/// A step that looks at the repository.
pub fn look(name: &'static str, look: fn(&Path) -> Look) -> Step {
    Step { name, act: Act::Look(look) }
}

/// A step that runs a program, given as words with a blank between them.
pub fn program(name: &'static str, line: impl Into<String>, minutes: u64) -> Step {
    let deadline = Duration::from_secs(60 * minutes);
    Step { name, act: Act::Program { line: line.into(), deadline } }
}

/// Runs the steps in order; true if all passed.
pub fn run_all(title: &str, root: &Path, steps: &[Step]) -> bool {
    let began = Instant::now();
    let mut counts = Counts::default();
    let mut told = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        println!("== {title} {}/{}: {}", index + 1, steps.len(), step.name);
        let started = Instant::now();
        let passed = perform(root, step, &mut counts);
        told.push((step.name, passed, started.elapsed()));
        if !passed {
            break;
        }
    }
    println!("\n{title}:");
    for (name, passed, took) in &told {
        let word = if *passed { "ok    " } else { "FAILED" };
        println!("  {word} {:7.1} s  {name}", took.as_secs_f64());
    }
    for step in &steps[told.len()..] {
        println!("  not run          {}", step.name);
    }
    let all = told.len() == steps.len() && told.iter().all(|(_, passed, _)| *passed);
    let word = if all { "passed" } else { "FAILED" };
    println!("{title} {word} in {:.1} s", began.elapsed().as_secs_f64());
    if counts != Counts::default() {
        println!("{} passed, {} failed", counts.passed, counts.failed);
    }
    all
}

fn perform(root: &Path, step: &Step, counts: &mut Counts) -> bool {
    match &step.act {
        Act::Look(look) => match look(root) {
            Ok(line) => {
                println!("{line}");
                true
            }
            Err(findings) => {
                for finding in &findings {
                    println!("{finding}");
                }
                println!("findings: {}", findings.len());
                false
            }
        },
        Act::Program { line, deadline } => match command::run(prepare(root, line), *deadline) {
            Ok(more) => {
                counts.add(more);
                more.failed == 0
            }
            Err((why, more)) => {
                counts.add(more);
                println!("{why}");
                false
            }
        },
    }
}

/// A program that inherits neither the outer make's flags nor its jobs.
fn prepare(root: &Path, line: &str) -> Command {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).current_dir(root);
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"] {
        command.env_remove(name);
    }
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

    #[test]
    fn steps_pass_together() {
        assert!(run_all(
            "sample",
            Path::new("."),
            &[look("one", right), program("two", "true", 1)]
        ));
    }

    #[test]
    fn the_first_failure_fails_all() {
        assert!(!run_all("sample", Path::new("."), &[look("one", wrong), look("two", right)]));
        assert!(!run_all("sample", Path::new("."), &[program("one", "false", 1)]));
    }

    #[test]
    fn a_count_of_failures_fails_even_a_successful_program() {
        assert!(!run_all(
            "sample",
            Path::new("."),
            &[program("one", "echo 1 passed, 1 failed", 1)]
        ));
    }
}
