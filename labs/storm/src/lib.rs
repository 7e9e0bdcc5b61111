//! `sapwood-storm` and `sapwood-soak`: networks of real processes, under faults and under load.
//!
//! The storm kills, stops, cuts off and resets random processes of a network while four streams of
//! different filters run, and checks every answer. Dead communication processes are not replaced:
//! when few are left, the storm goes on with a fresh network. `group` does the like to a group of
//! members, which are replaced. The soak sends as much as it can and watches the memory of every
//! process. docs/testbed.md says how they are run.
//!
//! `front_end` is the course of one network in the storm, `back_end` its leaves, `contribution`
//! what they send, `ledger` the oracle, `faults` what is done to them (`chance` chooses), `members`
//! the processes from outside. `program` is the start of both programs.

mod back_end;
mod chance;
mod contribution;
mod faults;
mod front_end;
pub mod group;
mod ledger;
mod members;
mod plan;
mod program;
mod report;
pub mod soak;

use std::process::ExitCode;
use std::time::Instant;

use front_end::FrontEnd;
use plan::{Plan, Subject};
use report::Report;
use sapwood_command_line::exit::{Failure, OWN_FAILURE, print};
use sapwood_random::mix;

pub use back_end::{BACK_END, back_end};
pub use plan::Arguments;
pub use program::{ProgramRole, program};

/// Raises a storm and prints what it has shown. Fails if anything went against the rules.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(Subject::Group(arguments)) = &arguments.subject {
        return group::run(arguments);
    }
    let plan = Plan::new(arguments)?;
    let began = Instant::now();
    let until = began + plan.duration;
    let mut report = Report::default();
    while Instant::now() < until {
        // Each network has a seed of its own, so that a storm's length does not change its start.
        let seed = mix(plan.seed.wrapping_add(report.networks << 32));
        report.add(FrontEnd::open(&plan)?.weather(seed, until)?);
        if report.violations() > 0 {
            break;
        }
    }
    report.took = began.elapsed();
    print(&if plan.is_json { report.to_json(&plan) } else { report.to_table(&plan) })?;
    Ok(match report.violations() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(OWN_FAILURE),
    })
}
