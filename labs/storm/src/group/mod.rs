//! `sapwood-storm group`: one group of real processes, linked by TCP, under random faults.
//!
//! Members broadcast and add without a pause, from many roots, while some are killed, stopped and
//! resumed, leave, and are replaced under the virtual nodes that have become free. Every answer of
//! every member meets an oracle that knows only what the storm did itself. docs/testbed.md says how
//! it is run.
//!
//! `storm` is the course of it, `member` a member (this program again) and `process` that member
//! from outside; `value` is what members contribute, `lives` the record of who was there when,
//! `oracle` the judge, `lie` what it must catch; `plan` the arguments, `report` what is printed.

mod lie;
mod lives;
mod member;
mod oracle;
mod plan;
mod process;
mod report;
mod storm;
mod value;

use std::process::ExitCode;

use sapwood_command_line::exit::{Failure, OWN_FAILURE, print};

pub use member::{GROUP_MEMBER, group_member};
pub use plan::GroupArguments;

/// Raises a storm over a group and prints what it has shown. Fails if anything went against the
/// rules.
pub fn run(arguments: &GroupArguments) -> Result<ExitCode, Failure> {
    let plan = plan::GroupPlan::new(arguments)?;
    let report = storm::GroupStorm::new(&plan)?.rage()?;
    print(&if plan.is_json { report.to_json(&plan) } else { report.to_text(&plan) })?;
    Ok(match report.violations.len() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(OWN_FAILURE),
    })
}
