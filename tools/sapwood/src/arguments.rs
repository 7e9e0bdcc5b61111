//! The command line of `sapwood`.
//!
//! Owns the table of commands. Each command's own arguments stand in the crate of its tool, and so
//! does what it does.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use sapwood_command_line::arguments::explained_in;
use sapwood_command_line::exit::Failure;
use sapwood_hosts::{nodeset, persistent};
use sapwood_status::clocks;

use crate::{completions, external, habits, manual};

/// Ask every host of a cluster, or every process of a job, through a tree of processes that merges
/// the answers and names the missing.
#[derive(Parser)]
#[command(
    name = "sapwood",
    version = env!("SAPWOOD_VERSION"),
    propagate_version = true,
    after_help = "'sapwood NAME' for any other NAME runs the program 'sapwood-NAME' beside this \
                  one or on PATH, such as sapwood-node, sapwood-bench and sapwood-sim."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a command on every host of a set and merge equal outputs.
    Run(sapwood_run::Arguments),
    /// Copy files and folders to every host of a set, or from every host.
    Copy(sapwood_copy::Arguments),
    /// Show the load of every host of a set, or serve it as OpenMetrics.
    Top(sapwood_top::Arguments),
    /// Start a tree over hosts that stays up for later commands.
    Up(persistent::up::Arguments),
    /// The process behind 'sapwood up' that owns the tree.
    #[command(hide = true)]
    Daemon(persistent::up::Arguments),
    /// End a tree that 'sapwood up' has started.
    Down(persistent::down::Arguments),
    /// Expand, fold, count and combine sets of host names.
    Nodeset(nodeset::Arguments),
    /// Print, draw, measure or recommend the shape of a tree.
    Topology(sapwood_topology_tool::Arguments),
    /// Watch an MPI program through a tree.
    Mpi(sapwood_monitor::Arguments),
    /// Print why an MPI program is slow or stuck, and which ranks are the reason.
    Trace(sapwood_trace_tool::Arguments),
    /// Check whether this machine, or hosts, meet the needs of a tree.
    Doctor(sapwood_doctor::Arguments),
    /// Run collectives in a group of peers, without a front-end.
    Group(sapwood_group_tool::Arguments),
    /// Draw the tree of a running network with the state of each process.
    Status(sapwood_status::Arguments),
    /// Follow one wave through a running network, hop by hop.
    TraceWave(sapwood_status::TraceArguments),
    /// Measure the clock offsets between processes of a running network, and their drift.
    Clocks(clocks::Arguments),
    /// Print the script by which a shell completes this command.
    Completions(completions::Arguments),
    /// Write the manual pages of all commands, for 'make install'.
    #[command(hide = true)]
    Manual(manual::Arguments),
}

/// Reads the command line. `None` where help or the version was asked for, and printed. Does not
/// come back where the first word names a program beside this one.
///
/// # Errors
/// [`Failure`] for a command line that is wrong.
pub(crate) fn read() -> Result<Option<Command>, Failure> {
    let error = match Arguments::try_parse() {
        Ok(arguments) => return Ok(Some(arguments.command)),
        Err(error) => error,
    };
    if error.kind() == ErrorKind::InvalidSubcommand {
        external::run_instead()?;
    }
    let (definition, command) = meant(std::env::args_os().skip(1));
    match habits::told(&error, &command) {
        Some(line) => Err(Failure::usage(line)),
        None => explained_in(&error, &command, &definition),
    }
}

/// All commands, also those whose arguments another parser reads: for manual pages and completions.
pub(crate) fn all_commands() -> clap::Command {
    let further = sapwood_monitor::further_commands();
    Arguments::command().mut_subcommand("mpi", |mpi| mpi.subcommands(further))
}

/// The command whose help says what could be written, and how it is called: the first words that
/// name one.
fn meant(words: impl Iterator<Item = OsString>) -> (clap::Command, String) {
    let mut command = &Arguments::command();
    let mut path = command.get_name().to_owned();
    for word in words {
        let Some(below) = command.find_subcommand(&word) else { break };
        path = format!("{path} {}", below.get_name());
        command = below;
    }
    (command.clone(), path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_commands_is_sound() {
        Arguments::command().debug_assert();
        all_commands().debug_assert();
    }

    #[test]
    fn the_help_of_the_command_that_is_meant_is_named() {
        let named = |line: &str| meant(line.split_whitespace().map(OsString::from)).1;
        assert_eq!(named("mpi export --to nothing"), "sapwood mpi export");
        assert_eq!(named("mpi --interval 0 -- mpirun export"), "sapwood mpi");
        assert_eq!(named("--bad"), "sapwood");
        assert_eq!(named("run --bad mpi"), "sapwood run");
    }
}
