//! `sapwood-sim`: simulated runs of the real nodes of a tree (`simulation`), how simulated trees
//! grow (`scale`), and figures of simulated groups (`group`).

mod group;
mod scale;
mod simulation;

use std::process::ExitCode;

use sapwood_command_line::{arguments, exit};

fn main() -> ExitCode {
    exit::guarded(|| {
        let read = arguments::read::<simulation::Arguments>("sapwood-sim");
        let result = read.and_then(|read| match read {
            Some(arguments) => simulation::run(&arguments),
            None => Ok(ExitCode::SUCCESS),
        });
        result.unwrap_or_else(|failure| failure.report())
    })
}
