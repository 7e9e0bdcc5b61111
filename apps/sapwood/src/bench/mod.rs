//! `sapwood bench`: the tree beside its floor, in one run.
//!
//! Owns the command line of the benchmarks and the order of what is measured. `plan` is what the
//! arguments ask for; `tree` is Sapwood's tree and `leaf` its back-ends; `pairs`, `startup` and
//! `memory` measure; `report` prints. The floor itself is the crate `sapwood-floor`, and
//! docs/bench.md says how to read the figures.

mod leaf;
mod memory;
mod pairs;
mod plan;
mod processes;
mod progress;
mod report;
mod startup;
mod tree;

use std::process::ExitCode;

use sapwood_floor::process::Pinned;

use crate::exit::{Failure, print};
use plan::{Experiment, Plan};
use progress::Progress;
use report::Report;

pub(crate) use leaf::{BACK_END, back_end};
pub(crate) use plan::Transport;
pub(crate) use processes::descendants;
pub(crate) use tree::{Tree, TreePlan};

/// What `sapwood bench` is asked.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(clap::Subcommand)]
enum Subject {
    /// Round trips, streamed waves, start-up and memory of a tree on this machine.
    Tree(plan::Arguments),
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Subject::Tree(arguments) = &arguments.subject;
    let plan = Plan::new(arguments)?;
    let report = measure(&plan)?;
    print(&if arguments.json { report.to_json() } else { report.to_table() })?;
    Ok(ExitCode::SUCCESS)
}

fn measure(plan: &Plan) -> Result<Report, Failure> {
    let pinned = plan.cpu.map(Pinned::to).transpose();
    let _pinned = pinned.map_err(|error| {
        Failure::own(&format!("cannot stay on one core: {error}; measure without --pin"))
    })?;
    let mut progress = Progress::new();
    let mut report = Report::new(plan);
    if plan.wants(Experiment::RoundTrip) || plan.wants(Experiment::Pipelined) {
        let (sections, encrypted) = pairs::measure(plan, &mut progress)?;
        report.sections.extend(sections);
        report.encrypted = encrypted;
    }
    if plan.wants(Experiment::Startup) {
        report.sections.push(startup::measure(plan, &mut progress)?);
    }
    if plan.wants(Experiment::Node) {
        report.sections.push(memory::measure(plan, &mut progress)?);
    }
    Ok(report)
}
