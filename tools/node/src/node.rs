//! `sapwood node`: a communication process. Its parent starts it, or it joins a network by itself.
//!
//! `SIGTERM` asks it to leave: it passes on what it has, and those below it turn to others.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use sapwood::Registry;
use sapwood_command_line::arguments::explained;
use sapwood_command_line::exit::Failure;

/// A communication process of a tree: connects to its parent and starts its children.
#[derive(Parser)]
#[command(name = "sapwood-node", version)]
struct Arguments {
    /// Join the network of this attach file, which was opened with dynamic members; leave on
    /// SIGTERM.
    #[arg(long, value_name = "ATTACH-FILE")]
    join: Option<PathBuf>,
}

/// The command line of this program, for its manual page.
pub fn command_line() -> clap::Command {
    Arguments::command()
}

/// The filters that every communication process has.
pub fn registry() -> Registry {
    let registry = sapwood_trace::register(sapwood_profile::register(Registry::built_in()));
    sapwood_top::reduction::register(registry)
}

/// Is a communication process with these filters, as the command line asks: until the network ends
/// or this process is asked to leave. A tree starts its processes with the one argument `node`,
/// which a command line that is typed may omit.
///
/// # Errors
/// [`Failure`] for a wrong command line, or when the process cannot take part in its network.
pub fn run(registry: Registry) -> Result<ExitCode, Failure> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == "node") {
        words.remove(1);
    }
    // A tree starts hundreds: the parser is not even touched.
    if words.len() == 1 {
        return serve(registry, None);
    }
    match Arguments::try_parse_from(words) {
        Ok(arguments) => serve(registry, arguments.join.as_deref()),
        Err(error) => explained::<Arguments>(&error, "sapwood-node").map(|_| ExitCode::SUCCESS),
    }
}

fn serve(registry: Registry, join: Option<&Path>) -> Result<ExitCode, Failure> {
    // Before signals are taken over, which a launch agent has no use for.
    if let Some(exit) = sapwood::run_launch_agent().map_err(|error| Failure::own(&error))? {
        return Ok(ExitCode::from(u8::try_from(exit.code()).unwrap_or(u8::MAX)));
    }
    let (leave, writer) = std::io::pipe().map_err(|error| Failure::own(&error))?;
    let signal = signal_hook::consts::SIGTERM;
    signal_hook::low_level::pipe::register(signal, std::os::fd::OwnedFd::from(writer))
        .map_err(|error| Failure::own(&error))?;
    match join {
        Some(file) => {
            sapwood::join(file, &registry, leave).map_err(Failure::from)?;
        }
        None => sapwood::serve_until(registry, leave).map_err(|error| Failure::own(&error))?,
    }
    Ok(ExitCode::SUCCESS)
}
