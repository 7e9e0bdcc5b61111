//! `sapwood stacks`: where the ranks of a running job are, as one tree of call stacks.
//!
//! Reads processes of this host itself (`--pid`, `--program`), or asks a running `sapwood mpi`,
//! whose leaves then have the processes of all hosts read by this program (`reader`). What is read
//! and how is the modules'; how stacks are merged and shown is `sapwood-report`'s.

mod module;
mod process;
#[cfg(feature = "python")]
mod python;
mod reader;
mod refusal;
mod running;
mod stop;
mod unwind;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use sapwood_command_line::exit::{self, Failure, OWN_FAILURE, complain, print};
use sapwood_command_line::{arguments, manual};
use sapwood_report::record::Stacks;
use sapwood_report::stacks::{self, MergedStacks, Wish};

use crate::reader::{READER, Reader};

/// The form of what `--json` prints.
const SCHEMA: &str = "sapwood.stacks/1";

/// Show where the ranks of a running job are: one tree of call stacks with sets of ranks.
#[derive(Parser)]
#[command(name = "sapwood-stacks", version)]
struct Arguments {
    /// A running 'sapwood mpi', by process number or name; needed only if several run.
    #[arg(value_name = "JOB", conflicts_with_all = ["pid", "program"])]
    job: Option<String>,
    /// Read the process with this number on this host (repeatable).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Vec<i32>,
    /// Read all of your processes on this host that run this program or script.
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    program: Option<String>,
    /// Read all threads, not only the main thread of each process.
    #[arg(long)]
    all_threads: bool,
    /// Print the tree as JSON.
    #[arg(long, conflicts_with = "folded")]
    json: bool,
    /// Print one line for each stack, in the folded format of flame-graph tools.
    #[arg(long)]
    folded: bool,
    /// Time limit for the answer of a running 'sapwood mpi'.
    #[arg(long, value_name = "TIME", default_value = "10s", conflicts_with_all = ["pid", "program"],
          value_parser = sapwood_command_line::times::time)]
    timeout: Duration,
    /// For tests: keep the processes stopped for this long.
    #[arg(long, value_name = "TIME", hide = true, default_value = "0s",
          value_parser = sapwood_command_line::times::time)]
    hold: Duration,
    /// For an installation: write the manual page into this folder, and do nothing else.
    #[arg(long, value_name = "FOLDER", hide = true)]
    manual: Option<PathBuf>,
}

fn main() -> ExitCode {
    exit::guarded(|| {
        if std::env::args_os().nth(1).is_some_and(|first| first == READER) {
            // A leaf that has gone needs no answer.
            let _ = reader::serve(Reader::default());
            return ExitCode::SUCCESS;
        }
        command().unwrap_or_else(|failure| failure.report())
    })
}

fn command() -> Result<ExitCode, Failure> {
    let Some(arguments) = arguments::read::<Arguments>("sapwood stacks")? else {
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(folder) = &arguments.manual {
        manual::write(&Arguments::command(), folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    let stacks = match here(&arguments)? {
        Some(processes) => read(&arguments, processes),
        None => running::ask(arguments.job.as_deref(), arguments.all_threads, arguments.timeout)?,
    };
    print(&if arguments.json {
        json(&stacks)
    } else if arguments.folded {
        stacks::folded(&stacks)
    } else {
        stacks::text(&stacks)
    })?;
    if arguments.folded {
        // Programs that draw see no more than the stacks.
        for loss in &stacks.missing {
            complain(format_args!("no stack of rank {}: {}", loss.ranks, loss.reason));
        }
    }
    if is_without_ranks(&stacks) {
        complain("no rank of the job has reached MPI_Init yet: ask again");
    }
    Ok(if stacks.roots.is_empty() { ExitCode::from(OWN_FAILURE) } else { ExitCode::SUCCESS })
}

/// Whether there was no rank that could be asked, as at the begin of a job.
fn is_without_ranks(stacks: &Stacks) -> bool {
    stacks.roots.is_empty() && stacks.missing.is_empty()
}

/// The processes of this host that were asked for; none where a running job is meant.
fn here(arguments: &Arguments) -> Result<Option<Vec<i32>>, Failure> {
    let Some(program) = &arguments.program else {
        return Ok((!arguments.pid.is_empty()).then(|| arguments.pid.clone()));
    };
    let user = rustix::process::geteuid().as_raw();
    let found = process::of_program(program, user);
    if found.is_empty() {
        return Err(Failure::usage(format!(
            "no process of yours on this host runs '{program}'; name one by --pid"
        )));
    }
    Ok(Some(found))
}

/// Reads processes of this host.
fn read(arguments: &Arguments, processes: Vec<i32>) -> Stacks {
    let ranks: Option<Vec<u32>> = processes.iter().map(|&pid| process::rank(pid)).collect();
    let mut sorted = ranks.clone().unwrap_or_default();
    sorted.sort_unstable();
    sorted.dedup();
    // Processes of no job, or of several, are numbered in the order of their ids.
    let ranks = ranks.filter(|ranks| ranks.len() == sorted.len());
    let ranks = ranks.unwrap_or_else(|| (0..).take(processes.len()).collect());
    let processes = ranks.into_iter().zip(processes).collect();
    let wish = Wish { processes, all_threads: arguments.all_threads };
    let mut reader = Reader::holding(arguments.hold);
    let mut merged = MergedStacks::default();
    reader.read(&wish).iter().for_each(|sample| merged.add(sample));
    merged.section(Duration::ZERO)
}

fn json(stacks: &Stacks) -> String {
    let document = serde_json::json!({ "schema": SCHEMA, "stacks": stacks });
    format!("{document:#}\n")
}
