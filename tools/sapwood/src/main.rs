//! The `sapwood` command: the program that people run.
//!
//! `arguments` is its command line, `completions` and `manual` what shells and `man` get of it;
//! `habits` knows options of other programs;
//! each tool is a crate of its own. A first word that names no
//! tool here names a program: `sapwood bench` runs `sapwood-bench` (`external`).

mod arguments;
mod completions;
mod external;
mod habits;
mod manual;

use std::process::ExitCode;

use sapwood_command_line::exit::{self, Failure};
use sapwood_command_line::log;
use sapwood_hosts::{nodeset, persistent};
use sapwood_status::clocks;

use crate::arguments::{Command, all_commands};

fn main() -> ExitCode {
    exit::guarded(|| command().unwrap_or_else(|failure| failure.report()))
}

fn command() -> Result<ExitCode, Failure> {
    log::start()?;
    match arguments::read()? {
        Some(Command::Run(arguments)) => sapwood_run::run(&arguments),
        Some(Command::Copy(arguments)) => sapwood_copy::run(&arguments),
        Some(Command::Top(arguments)) => sapwood_top::run(&arguments),
        Some(Command::Up(arguments)) => persistent::up::run(&arguments),
        Some(Command::Daemon(arguments)) => persistent::up::daemon(&arguments),
        Some(Command::Down(arguments)) => persistent::down::run(&arguments),
        Some(Command::Nodeset(arguments)) => nodeset::run(&arguments),
        Some(Command::Topology(arguments)) => sapwood_topology_tool::run(&arguments),
        Some(Command::Mpi(arguments)) => sapwood_monitor::run(&arguments),
        Some(Command::Doctor(arguments)) => sapwood_doctor::run(&arguments),
        Some(Command::Group(arguments)) => sapwood_group_tool::run(&arguments),
        Some(Command::Status(arguments)) => sapwood_status::run(&arguments),
        Some(Command::Trace(arguments)) => sapwood_trace_tool::run(&arguments),
        Some(Command::TraceWave(arguments)) => sapwood_status::trace(&arguments),
        Some(Command::Clocks(arguments)) => clocks::run(&arguments),
        Some(Command::Completions(arguments)) => completions::run(&arguments, all_commands()),
        Some(Command::Manual(arguments)) => manual::run(&arguments, &all_commands()),
        None => Ok(ExitCode::SUCCESS),
    }
}
