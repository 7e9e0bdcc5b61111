//! The command line of people: reading it, and one line for what is wrong with it.
//!
//! Owns the table of commands. Each command's own arguments stand in its own module, and so does
//! what it does. Processes that a tree starts never come here; see `main`.

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::exit::{Failure, one_line};
use crate::{
    bench, clocks, copy, doctor, mpi, node, nodeset, run, sim, status, storm, top, topology, warm,
};

/// A tree of processes that asks every process of a job, and says who is missing.
#[derive(Parser)]
#[command(name = "sapwood", version, propagate_version = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a command on every host of a set and fold what they answer.
    Run(run::Arguments),
    /// Copy files and folders to every host of a set, or back from each.
    Copy(copy::Arguments),
    /// Show what the hosts of a set are doing, or serve it as OpenMetrics.
    Top(top::Arguments),
    /// Start a tree over hosts that stays up, so that commands on them begin at once.
    Up(warm::up::Arguments),
    /// Be the keeper of a tree that 'sapwood up' starts.
    #[command(hide = true)]
    Keep(warm::up::Arguments),
    /// End a tree that 'sapwood up' has started.
    Down(warm::down::Arguments),
    /// Expand, fold, count and combine sets of host names.
    Nodeset(nodeset::Arguments),
    /// Print, draw, count or cost a tree.
    Topology(topology::Arguments),
    /// Measure this machine beside the floor of plain blocking processes.
    Bench(bench::Arguments),
    /// Watch an MPI program through a tree.
    Mpi(mpi::Arguments),
    /// Simulate trees in which processes die, stop and lose their links, and check every answer.
    Sim(sim::Arguments),
    /// Check what this machine has of what a tree needs.
    Doctor(doctor::Arguments),
    /// Run networks under random faults and check every answer.
    #[command(hide = true)]
    Storm(storm::Arguments),
    /// Run a network at full rate and watch its memory.
    #[command(hide = true)]
    Soak(storm::soak::Arguments),
    /// Draw the tree of a running network, and how each process of it is.
    Status(status::Arguments),
    /// Follow one wave through a running network, hop by hop.
    TraceWave(status::TraceArguments),
    /// Say how far the clocks of a running network's processes are ahead, and how they drift.
    Clocks(clocks::Arguments),
    /// Be a communication process of a network: one that its parent starts, or one that joins.
    Node(node::Arguments),
}

/// Reads the command line. `None` where help or the version was asked for, and printed.
pub(crate) fn read() -> Result<Option<Command>, Failure> {
    let error = match Arguments::try_parse() {
        Ok(arguments) => return Ok(Some(arguments.command)),
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            crate::exit::print(&error.render().to_string())?;
            Ok(None)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Failure::usage("a command is missing; see 'sapwood --help'"))
        }
        _ => Err(Failure::usage(in_one_line(&error.render().to_string()))),
    }
}

/// The reader of arguments explains a fault in several paragraphs: what is wrong, tips, the usage
/// and where help is. The first of these and the tips make one line.
fn in_one_line(explanation: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    for paragraph in explanation.split("\n\n").map(one_line) {
        let is_usage = paragraph.starts_with("Usage:") || paragraph.starts_with("For more");
        if !is_usage && !paragraph.is_empty() {
            parts.push(paragraph);
        }
    }
    let text = parts.join("; ");
    format!("{}; see 'sapwood --help'", text.strip_prefix("error: ").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_becomes_one_line_without_the_usage() {
        let explanation = "error: unrecognized subcommand 'bensh'\n\n  tip: a similar subcommand \
                           exists: 'bench'\n\nUsage: sapwood <COMMAND>\n\nFor more information, \
                           try '--help'.\n";
        let line = in_one_line(explanation);
        assert_eq!(
            line,
            "unrecognized subcommand 'bensh'; tip: a similar subcommand exists: 'bench'; \
             see 'sapwood --help'"
        );
    }

    #[test]
    fn the_table_of_commands_is_sound() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}
