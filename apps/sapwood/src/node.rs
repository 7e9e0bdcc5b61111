//! `sapwood node`: a communication process. Its parent starts it, or it joins a network by itself.
//!
//! `SIGTERM` asks it to leave: it passes on what it has, and those below it turn to others.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::exit::Failure;
use crate::{bench, top};

/// Arguments of `sapwood node`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Join the network of this attach file, which must take guests; leave on SIGTERM.
    #[arg(long, value_name = "ATTACH-FILE")]
    pub(crate) join: Option<PathBuf>,
}

/// Serves until the network ends or this process is asked to leave.
pub(crate) fn run(join: Option<&Path>) -> Result<ExitCode, Failure> {
    // Before signals are taken over, which a launch agent has no use for.
    if let Some(exit) = sapwood::run_launch_agent().map_err(|error| Failure::own(&error))? {
        return Ok(ExitCode::from(u8::try_from(exit.code()).unwrap_or(u8::MAX)));
    }
    let registry = sapwood_profile::register(sapwood::Registry::built_in());
    let registry = top::reduction::register(bench::register(registry));
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
