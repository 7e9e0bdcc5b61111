//! The `sapwood` command: one program for the communication processes and for people.
//!
//! What a tree starts by the hundred (`node`, and the back-ends of the benchmarks) is found before the
//! command line of people is looked at, so that such a process stays small.

mod bench;
mod exit;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::Failure;

/// A tree of processes that asks every process of a job, and says who is missing.
#[derive(Parser)]
#[command(name = "sapwood", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Be a communication process of a network; started by its parent, not by hand.
    Node,
    /// Measure this machine beside the floor of plain blocking processes.
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(code) = sapwood_floor::run_hidden(&arguments) {
        return code;
    }
    let result = match arguments.first().and_then(|first| first.to_str()) {
        Some("node") if arguments.len() == 1 => node(),
        Some(bench::BACK_END) => bench::back_end(),
        _ => run(Arguments::parse().command),
    };
    match result {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Node => node(),
        Command::Bench(arguments) => bench::run(arguments),
    }
}

/// A communication process.
fn node() -> Result<ExitCode, Failure> {
    sapwood::serve(sapwood::Registry::built_in()).map_err(|error| Failure::own(&error))?;
    Ok(ExitCode::SUCCESS)
}
