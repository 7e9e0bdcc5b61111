//! `sapwood doctor`: what this machine has of what a tree needs, and what to do about the rest.
//!
//! Owns the command line, the verdicts and how they are printed. `machine` looks at the system,
//! `programs` at MPI and the shims, `trial` opens small trees. Each check gives one line: what was
//! looked at, what was found, and, unless it is fine, what to do. With `--hosts` it is `hosts` that
//! looks, at other machines.

pub mod hosts;
mod links;
mod machine;
mod programs;
mod trial;

use std::process::ExitCode;

use sapwood_topology::Shape;
use serde_json::{Value, json};

use sapwood_command_line::exit::{Failure, OWN_FAILURE, print};

/// What `sapwood doctor` is asked.
#[derive(clap::Args)]
pub struct Arguments {
    /// Check this machine's limits for a tree of this shape.
    #[arg(long, value_name = "SPEC", default_value = "8x8x8", conflicts_with = "hosts")]
    topology: Shape,
    /// Print one JSON object instead of lines.
    #[arg(long, conflicts_with = "dry_run")]
    json: bool,
    #[command(flatten)]
    of_hosts: hosts::Arguments,
}

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// As it should be.
    Fine,
    /// Something will not work, or not well.
    Warning,
    /// No tree will work.
    Failed,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// One line of the examination.
#[derive(Clone, Debug)]
struct Check {
    name: &'static str,
    verdict: Verdict,
    found: String,
    /// What to do; empty where all is fine.
    advice: String,
}

impl Check {
    fn fine(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Fine, found: found.into(), advice: String::new() }
    }

    fn warning(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Warning, found: found.into(), advice: advice.into() }
    }

    fn failed(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Failed, found: found.into(), advice: advice.into() }
    }

    fn line(&self) -> String {
        let arrow = if self.advice.is_empty() { "" } else { "; " };
        let Self { name, found, advice, .. } = self;
        format!("{:<8} {name:<18} {found}{arrow}{advice}\n", self.verdict.name())
    }

    fn to_json(&self) -> Value {
        json!({
            "check": self.name,
            "verdict": self.verdict.name(),
            "found": self.found,
            "advice": self.advice,
        })
    }
}

/// Looks at everything; fails if something failed.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(list) = &arguments.of_hosts.hosts {
        return hosts::run(&arguments.of_hosts, list, arguments.json);
    }
    let mut checks = machine::checks(&arguments.topology);
    checks.extend(programs::checks());
    checks.extend(trial::checks());
    checks.push(trial::cost_of_a_message());
    if arguments.json {
        let report = json!({
            "schema": "sapwood.doctor/1",
            "version": env!("CARGO_PKG_VERSION"),
            "checks": checks.iter().map(Check::to_json).collect::<Vec<_>>(),
        });
        print(&format!("{report}\n"))?;
    } else {
        print(&checks.iter().map(Check::line).collect::<String>())?;
    }
    let has_failed = checks.iter().any(|check| check.verdict == Verdict::Failed);
    Ok(if has_failed { ExitCode::from(OWN_FAILURE) } else { ExitCode::SUCCESS })
}
