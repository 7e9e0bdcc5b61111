//! The start of both programs: each is also the back-ends and communication processes of its
//! networks, and the members of its groups, so that one file is all that a host needs.

use std::process::ExitCode;

use clap::Parser;
use sapwood_command_line::exit::Failure;
use sapwood_command_line::{arguments, exit};
use sapwood_node_program::node;

/// A process of a network or group that this program also is, by its first argument.
#[derive(Clone, Copy)]
pub struct ProgramRole {
    /// The argument.
    pub name: &'static str,
    /// Is such a process until its end.
    pub run: fn() -> Result<ExitCode, Failure>,
}

/// Runs the command `name`, or the process that the first argument names: a communication process,
/// or one of these roles.
pub fn program<T: Parser>(
    name: &str,
    run: fn(&T) -> Result<ExitCode, Failure>,
    roles: &'static [ProgramRole],
) -> ExitCode {
    exit::guarded(|| {
        let first = std::env::args_os().nth(1);
        let first = first.as_deref().and_then(|first| first.to_str());
        let role = roles.iter().find(|role| first == Some(role.name));
        let result = match (role, first) {
            (Some(role), _) => (role.run)(),
            (None, Some("node")) => node::run(node::registry()),
            _ => arguments::read::<T>(name)
                .and_then(|read| read.map_or(Ok(ExitCode::SUCCESS), |arguments| run(&arguments))),
        };
        result.unwrap_or_else(|failure| failure.report())
    })
}
