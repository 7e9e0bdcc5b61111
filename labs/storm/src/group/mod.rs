//! `sapwood-storm group`: one group of real processes, linked by TCP, under random faults.
//!
//! Members call all operations of a group without a pause, from many roots, while some are killed,
//! stopped and resumed, leave, with an heir or without one, and are replaced under the virtual
//! nodes that have become free; and links are broken between members that live. Every answer of
//! every member meets an oracle that knows only what the storm did itself. docs/testbed.md says how
//! it is run.
//!
//! `storm` is the course of it, `strike` what is done to members and `estate` what those leave that
//! have an heir. `member` is a member (this program again), with `calls`, `mail`, `order` and
//! `links`, and `process` that member from outside. `collective` has the operations and `value`
//! what members contribute to them; `lives` is the record of what was there when, `oracle` the
//! judge, `lie` what it must catch; `plan` has the arguments, `report` what is printed.

mod calls;
mod collective;
mod estate;
mod lie;
mod links;
mod lives;
mod mail;
mod member;
mod oracle;
mod order;
mod plan;
mod process;
mod report;
mod storm;
mod strike;
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
