//! `sapwood trace`: says why an MPI program is slow or stuck, and which ranks are the reason; shows
//! the last calls of its ranks; gathers figures of their calls; and follows the waves of a running
//! network, of whose hops it gathers figures, too, as of those of a group.
//!
//! For all but the hops they start a program and watch it through the monitor's tree, or ask a
//! `sapwood mpi` that watches one already. What is asked of the ranks, and how an answer comes
//! about, is `sapwood-monitor`'s and `sapwood-trace`'s; what it looks like is `sapwood-report`'s
//! and `sapwood-export`'s.

mod files;
mod freeze;
mod group_scope;
mod hop_reading;
mod hop_scope;
mod hop_scope_text;
mod scope;
mod scope_keys;
mod scope_text;
mod starting;
mod tree;
mod why;

use std::process::ExitCode;

use sapwood_command_line::exit::Failure;

/// The arguments of `sapwood trace`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    question: Question,
}

#[derive(clap::Subcommand)]
enum Question {
    /// Print why a program is slow or stuck.
    Why(why::Arguments),
    /// Show the last MPI calls of a program's ranks: as a table, a time line or a trace.
    Freeze(freeze::Arguments),
    /// Gather figures of selected MPI calls while a program runs, or of hops of a running network
    /// or group.
    Scope(scope::Arguments),
    /// Follow the waves of a running network, and print for which processes and links its answers
    /// wait.
    Tree(tree::Arguments),
}

/// Answers the question.
///
/// # Errors
/// [`Failure`] of bad input, of the tree, or where no such job runs.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.question {
        Question::Why(arguments) => why::run(arguments),
        Question::Freeze(arguments) => freeze::run(arguments),
        Question::Scope(arguments) => scope::run(arguments),
        Question::Tree(arguments) => tree::run(arguments),
    }
}
