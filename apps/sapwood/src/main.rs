//! The `sapwood` command: one program for the communication processes and for people.
//!
//! What a tree starts by the hundred (`node`, and the back-ends of the benchmarks) is found before
//! the command line of people is looked at, so that such a process stays small.

mod arguments;
mod bench;
mod clocks;
mod copy;
mod doctor;
mod exit;
mod hosts;
mod launching;
mod mpi;
mod node;
mod nodeset;
mod progress;
mod run;
mod scale;
mod sim;
mod status;
mod storm;
mod times;
mod top;
mod topology;
mod warm;
mod withdrawal;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::arguments::Command;
use crate::exit::Failure;

fn main() -> ExitCode {
    exit::guarded(|| {
        let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        if let Some(code) = sapwood_floor::run_hidden(&arguments) {
            return code;
        }
        let result = match arguments.first().and_then(|first| first.to_str()) {
            Some("node") if arguments.len() == 1 => node::run(None),
            Some(bench::BACK_END) => bench::back_end(),
            Some(doctor::hosts::BACK_END) => doctor::hosts::back_end(),
            Some(bench::CROWD) => bench::crowd(&arguments[1..]),
            Some(storm::BACK_END) => storm::back_end(),
            Some(storm::soak::BACK_END) => storm::soak::back_end(),
            Some(run::agent::AGENT) if arguments.len() == 1 => run::agent::run(),
            Some(top::agent::AGENT) if arguments.len() == 1 => top::agent::run(),
            Some(copy::agent::AGENT) if arguments.len() == 1 => copy::agent::run(),
            Some(mpi::leaf::LEAF) => mpi::leaf::run(&arguments[1..]),
            _ => command(),
        };
        result.unwrap_or_else(|failure| failure.report())
    })
}

/// A command of people's.
fn command() -> Result<ExitCode, Failure> {
    match arguments::read()? {
        Some(Command::Node(arguments)) => node::run(arguments.join.as_deref()),
        Some(Command::Topology(arguments)) => topology::run(&arguments),
        Some(Command::Run(arguments)) => run::run(&arguments),
        Some(Command::Copy(arguments)) => copy::run(&arguments),
        Some(Command::Top(arguments)) => top::run(&arguments),
        Some(Command::Up(arguments)) => warm::up::run(&arguments),
        Some(Command::Keep(arguments)) => warm::up::keep(&arguments),
        Some(Command::Down(arguments)) => warm::down::run(&arguments),
        Some(Command::Nodeset(arguments)) => nodeset::run(&arguments),
        Some(Command::Bench(arguments)) => bench::run(&arguments),
        Some(Command::Doctor(arguments)) => doctor::run(&arguments),
        Some(Command::Mpi(arguments)) => mpi::run(&arguments),
        Some(Command::Status(arguments)) => status::run(&arguments),
        Some(Command::TraceWave(arguments)) => status::trace(&arguments),
        Some(Command::Clocks(arguments)) => clocks::run(&arguments),
        Some(Command::Sim(arguments)) => sim::run(&arguments),
        Some(Command::Storm(arguments)) => storm::run(&arguments),
        Some(Command::Soak(arguments)) => storm::soak::run(&arguments),
        None => Ok(ExitCode::SUCCESS),
    }
}
