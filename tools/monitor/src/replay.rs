//! `sapwood mpi replay`: the rounds of a run that was kept, shown again.
//!
//! A run with `--out` leaves one record in each line of `rounds.ndjson`. They are read one after
//! the other, so that a file may be larger than memory; the page keeps what it has room for, as
//! while the program ran.

use std::path::PathBuf;
use std::process::ExitCode;

use sapwood_command_line::colour::ColourOption;
use sapwood_command_line::exit::{Failure, complain};
use sapwood_report::quantity::counted;
use sapwood_web::Program;

use super::live;
use super::page::{self, PageArguments};
use super::recording::Recording;

/// The arguments of `sapwood mpi replay`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ReplayArguments {
    /// The folder that --out named, or its file rounds.ndjson.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    page: PageArguments,
    /// Show the rounds in the terminal instead of in a browser.
    #[arg(long, conflicts_with_all = ["page", "page_listen"])]
    live: bool,
    #[command(flatten)]
    colour: ColourOption,
}

/// Shows a run again, until the user ends it.
///
/// # Errors
/// [`Failure`] that names the file and the line that cannot be read.
pub(crate) fn run(arguments: &ReplayArguments) -> Result<ExitCode, Failure> {
    let mut recording = Recording::open(&arguments.folder)?;
    let program = Program { command: recording.command(), is_replay: true };
    if arguments.live {
        return live::replay(&program.command, recording, arguments.colour);
    }
    // Before the page is there: a file without a round is no run.
    let first = recording.next().unwrap_or_else(|| Err(recording.is_empty()))?;
    let mut served = arguments.page.open(program, None)?;
    let (mut rounds, mut iterations) = (0_u64, 0_u64);
    for record in std::iter::once(Ok(first)).chain(recording) {
        let record = record?;
        *(if record.iteration.is_some() { &mut iterations } else { &mut rounds }) += 1;
        served.replay(record);
    }
    let iterations = match iterations {
        0 => String::new(),
        iterations => format!(" and {}", counted(iterations.into(), "iterations")),
    };
    // A browser that came before would lose what is read faster than a browser draws it.
    page::tell(&served, "these rounds");
    let rounds = counted(rounds.into(), "rounds");
    complain(format_args!("read: {rounds}{iterations}; Ctrl-C ends the page"));
    loop {
        std::thread::park();
    }
}
