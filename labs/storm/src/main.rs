//! `sapwood-storm`: networks under random faults; also its back-ends and communication processes,
//! so that one file is all that a host needs.

use std::process::ExitCode;

use sapwood_command_line::{arguments, exit};
use sapwood_node_program::node;
use sapwood_storm::{Arguments, BACK_END, back_end, run};

fn main() -> ExitCode {
    exit::guarded(|| {
        let first = std::env::args_os().nth(1);
        let result = match first.as_deref().and_then(|first| first.to_str()) {
            Some(BACK_END) => back_end(),
            Some("node") => node::run(node::registry()),
            _ => arguments::read::<Arguments>("sapwood-storm").and_then(|read| match read {
                Some(arguments) => run(&arguments),
                None => Ok(ExitCode::SUCCESS),
            }),
        };
        result.unwrap_or_else(|failure| failure.report())
    })
}
