//! `sapwood status` and `sapwood trace-wave`: how a running network of this user is.
//!
//! Owns their command lines and the choice of the network. `drawing` draws the tree, `timeline`
//! the way of a wave, `branches` is what both and `sapwood trace tree` draw trees by, `report`
//! writes JSON. What a status is, and how it is asked for, is the library's.

pub mod branches;
pub mod clocks;
mod drawing;
mod report;
mod timeline;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use sapwood::{Status, VisibleNetwork};

use self::drawing::Paint;
use sapwood_command_line::colour::ColourOption;
use sapwood_command_line::exit::{Failure, UNREACHED, print};
use sapwood_command_line::times::time;
use sapwood_hosts::persistent;

/// The shortest time between two pictures.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Which network, and how long to wait.
#[derive(clap::Args)]
pub struct Whom {
    /// Name of the network, such as that of a tree that 'sapwood up' has started; needed only if
    /// several run.
    #[arg(long, visible_alias = "tree", value_name = "NAME")]
    pub(crate) network: Option<String>,
    /// Time limit for the answers of processes, such as 500ms or 2s.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = wait)]
    pub timeout: Duration,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// What `sapwood status` is asked.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    whom: Whom,
    /// Repeat every second, or every TIME, until the network ends.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "1s",
          value_parser = interval)]
    watch: Option<Duration>,
    #[command(flatten)]
    colour: ColourOption,
}

/// What `sapwood trace-wave` is asked.
#[derive(clap::Args)]
pub struct TraceArguments {
    #[command(flatten)]
    whom: Whom,
    #[command(flatten)]
    colour: ColourOption,
}

/// Draws the tree, once or again and again.
///
/// # Errors
/// [`Failure`] when no network or more than one is there, or it does not answer.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut network = arguments.whom.find()?;
    let shown = show(&network, arguments, Turn::First)?;
    let Some(interval) = arguments.watch else { return Ok(shown) };
    loop {
        std::thread::sleep(interval);
        let shown = show(&network, arguments, Turn::Again);
        match VisibleNetwork::all()?.into_iter().find(|found| found.name == network.name) {
            None => return Ok(ExitCode::SUCCESS),
            Some(same) if same == network => {
                shown?;
            }
            // A tree that stays up was started anew, with hosts that have come back.
            Some(newer) => network = newer,
        }
    }
}

/// Follows one wave.
///
/// # Errors
/// As [`run`].
pub fn trace(arguments: &TraceArguments) -> Result<ExitCode, Failure> {
    let network = arguments.whom.find()?;
    let status = arguments.whom.ask(&network)?;
    print(&match arguments.whom.json {
        true => report::trace(&network, &status),
        false => timeline::draw(&network.name, &status, Paint::for_output(arguments.colour)),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a picture stands before this one.
#[derive(Clone, Copy)]
enum Turn {
    First,
    Again,
}

/// Shows it once, and gives the exit code: as for all commands that name missing hosts, it is
/// another one where back-ends are missing.
fn show(network: &VisibleNetwork, arguments: &Arguments, turn: Turn) -> Result<ExitCode, Failure> {
    let whom = &arguments.whom;
    let status = whom.ask(network)?;
    let (_, missing) = status.back_ends();
    let code = if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(UNREACHED) };
    if whom.json {
        print(&report::status(network, &status))?;
        return Ok(code);
    }
    let mut picture = drawing::draw(&network.name, &status, Paint::for_output(arguments.colour));
    picture += &persistent::condition(&network.name)?.unwrap_or_default();
    match (turn, std::io::stdout().is_terminal()) {
        // The same place on a terminal; elsewhere one picture after another.
        (Turn::Again, true) => print(&format!("\x1b[H\x1b[2J{picture}"))?,
        (Turn::Again, false) => print(&format!("\n{picture}"))?,
        (Turn::First, _) => print(&picture)?,
    }
    Ok(code)
}

impl Whom {
    /// The network of this name, or the only one.
    #[must_use]
    pub const fn named(network: Option<String>, timeout: Duration) -> Self {
        Self { network, timeout, json: false }
    }

    /// The network that is meant.
    ///
    /// # Errors
    /// [`Failure`] when no network or more than one is there.
    pub fn find(&self) -> Result<VisibleNetwork, Failure> {
        let mut running = VisibleNetwork::all()?;
        let names = || running.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        match &self.network {
            Some(name) => match running.iter().position(|one| one.name == *name) {
                Some(at) => Ok(running.swap_remove(at)),
                None if running.is_empty() => Err(self.none_runs()),
                None => Err(Failure::usage(format!(
                    "no visible network is called '{name}'; running: {}",
                    names()
                ))),
            },
            None if running.len() > 1 => Err(Failure::usage(format!(
                "several networks run: {}; choose one with --network",
                names()
            ))),
            None => running.pop().ok_or_else(|| self.none_runs()),
        }
    }

    /// Asks that network.
    pub(crate) fn ask(&self, network: &VisibleNetwork) -> Result<Status, Failure> {
        network.status(self.timeout).map_err(|error| unanswered(network, error))
    }

    /// With the reason where a standing tree has ended by itself.
    fn none_runs(&self) -> Failure {
        Failure::usage(format!(
            "no visible network of this user runs on this machine; 'sapwood up' starts one, \
             'sapwood mpi' and 'sapwood bench' make theirs visible, other programs do with \
             NetworkBuilder::visible{}",
            persistent::why_ended(self.network.as_deref())
        ))
    }
}

/// The failure of a question to a network: where no answer came, with the process that was to give
/// it.
#[must_use]
pub fn unanswered(network: &VisibleNetwork, error: sapwood::Error) -> Failure {
    match error {
        sapwood::Error::Timeout { .. } => Failure::timeout(format_args!(
            "{error}; that of network '{}' is process {}",
            network.name, network.pid
        )),
        error => error.into(),
    }
}

/// The time limit of an option `--timeout`.
///
/// # Errors
/// One line that says what it may be.
pub fn wait(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    let most = Duration::from_secs(60);
    if time.is_zero() || time > most {
        return Err("give a time from 1ms to 60s, such as 2s".to_string());
    }
    Ok(time)
}

fn interval(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    if time < INTERVAL_MIN {
        return Err("give a time of at least 100ms, such as 1s".to_string());
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_limits() {
        assert_eq!(wait("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(interval("2s"), Ok(Duration::from_secs(2)));
        assert!(wait("0ms").is_err() && wait("61s").is_err() && interval("50ms").is_err());
    }
}
