//! The command line of `sapwood`.
//!
//! Owns the table of commands. Each command's own arguments stand in the crate of its tool, and so
//! does what it does.

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use sapwood_command_line::arguments::explained;
use sapwood_command_line::exit::Failure;
use sapwood_hosts::{nodeset, persistent};
use sapwood_status::clocks;

use crate::external;

/// A tree of processes that asks every process of a job, and says who is missing.
#[derive(Parser)]
#[command(
    name = "sapwood",
    version,
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
    /// Run a command on every host of a set and fold what they answer.
    Run(sapwood_run::Arguments),
    /// Copy files and folders to every host of a set, or back from each.
    Copy(sapwood_copy::Arguments),
    /// Show what the hosts of a set are doing, or serve it as OpenMetrics.
    Top(sapwood_top::Arguments),
    /// Start a tree over hosts that stays up, so that commands on them begin at once.
    Up(persistent::up::Arguments),
    /// The process behind 'sapwood up' that owns the tree.
    #[command(hide = true)]
    Daemon(persistent::up::Arguments),
    /// End a tree that 'sapwood up' has started.
    Down(persistent::down::Arguments),
    /// Expand, fold, count and combine sets of host names.
    Nodeset(nodeset::Arguments),
    /// Print, draw, count or cost a tree.
    Topology(sapwood_topology_tool::Arguments),
    /// Watch an MPI program through a tree.
    Mpi(sapwood_monitor::Arguments),
    /// Check what this machine has of what a tree needs.
    Doctor(sapwood_doctor::Arguments),
    /// Draw the tree of a running network, and how each process of it is.
    Status(sapwood_status::Arguments),
    /// Follow one wave through a running network, hop by hop.
    TraceWave(sapwood_status::TraceArguments),
    /// Say how far the clocks of a running network's processes are ahead, and how they drift.
    Clocks(clocks::Arguments),
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
    explained(&error, "sapwood")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_commands_is_sound() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}
