//! The start of both programs: each is also the back-ends and communication processes of its
//! networks, so that one file is all that a host needs.

use std::process::ExitCode;

use clap::Parser;
use sapwood_command_line::exit::Failure;
use sapwood_command_line::{arguments, exit};
use sapwood_node_program::node;

/// Runs the command `name`, or the process of a network that the first argument names: a
/// communication process, or the back-end of that name.
pub fn program<T: Parser>(
    name: &str,
    run: fn(&T) -> Result<ExitCode, Failure>,
    (back_end_name, back_end): (&str, fn() -> Result<ExitCode, Failure>),
) -> ExitCode {
    exit::guarded(|| {
        let first = std::env::args_os().nth(1);
        let result = match first.as_deref().and_then(|first| first.to_str()) {
            Some(first) if first == back_end_name => back_end(),
            Some("node") => node::run(node::registry()),
            _ => arguments::read::<T>(name)
                .and_then(|read| read.map_or(Ok(ExitCode::SUCCESS), |arguments| run(&arguments))),
        };
        result.unwrap_or_else(|failure| failure.report())
    })
}
