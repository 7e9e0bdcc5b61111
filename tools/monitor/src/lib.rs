//! `sapwood mpi`: watches an unmodified MPI program through a tree.
//!
//! The command stands between the user and `mpirun`: `job` checks the command line before anything
//! starts, `collection` opens the tree, whose back-ends are this program once more (`leaf`),
//! `watch` starts the program and asks for rounds until it has ended. The program keeps its own
//! standard streams, its signals and its exit code; whatever becomes of the tree, it runs on.
//!
//! What the ranks count is the shim's (`bindings/mpi`), what a round is `sapwood-profile`'s, what
//! is shown of it `sapwood-report`'s.

mod collection;
mod command_line;
mod condition;
mod folder;
mod job;
pub mod leaf;
pub(crate) mod leaves;
pub(crate) mod linkage;
mod screen;
pub mod shim;
mod tables;
mod watch;

use std::ffi::OsString;
use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use sapwood_report::{Report, Tree};

use self::collection::{Collected, Collection};
use self::folder::OutFolder;
use self::job::Job;
use self::linkage::Abi;
use self::screen::Screen;
use self::watch::{End, watch};
use sapwood_command_line::exit::Failure;

/// The shortest time between two rounds.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// The longest time between two rounds.
const INTERVAL_MAX: Duration = Duration::from_secs(3600);
/// Bytes of randomness in the name of a run's leaves, so that two runs never meet.
const NAME_BYTES: usize = 8;

/// The arguments of `sapwood mpi`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Ranks per leaf of the tree [default: 4].
    #[arg(long, value_name = "N")]
    ranks_per_leaf: Option<NonZeroU32>,
    /// The most children that a process of the tree has.
    #[arg(long, alias = "fanout", value_name = "F", default_value_t = 8, conflicts_with = "topology",
          value_parser = clap::value_parser!(u16).range(2..))]
    fan_out: u16,
    /// The tree, such as 8 or 2x4; its leaves share the ranks.
    #[arg(long, value_name = "SPEC")]
    topology: Option<sapwood::Shape>,
    /// Time between two rounds, such as 1s or 500ms.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Write profile.json, ranks.parquet and report.txt to this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of MPI ranks, by which the tree is planned; the program's own number counts.
    #[arg(long, short = 'n', alias = "np", value_name = "N")]
    ranks: Option<NonZeroU32>,
    /// MPI of the program, if it cannot be detected.
    #[arg(long, value_name = "ABI")]
    mpi: Option<Abi>,
    /// Show no table, neither while the program runs nor at its end.
    #[arg(long)]
    quiet: bool,
    /// Show no table while the program runs.
    #[arg(long, conflicts_with = "live")]
    no_live: bool,
    /// Show tables while the program runs even if standard error is no terminal.
    #[arg(long)]
    live: bool,
    /// Write profile.json to this file, or to /dev/fd/N; standard output is the program's.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The command that starts the program, such as: mpirun -np 8 lmp -in in.melt
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs and watches a program; ends as it does.
///
/// # Errors
/// Before the program starts: [`Failure`] of bad input or of the tree.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let job = Job::read(arguments)?;
    let folder = arguments.out.as_deref().map(OutFolder::prepare).transpose();
    let folder = folder.map_err(Failure::usage)?;
    let observed = observe(&job, arguments);
    if !matches!(observed, Ok((_, Some(_))))
        && let Some(folder) = &folder
    {
        folder.abandon();
    }
    let (end, collected) = observed?;
    let Some(collected) = collected else { return Ok(end.exit_code()) };
    leave(&report(&job, &end, collected), folder.as_ref(), arguments);
    Ok(end.exit_code())
}

/// Leaves the report where it was asked for. What cannot be written is said, and changes no exit
/// code: that is the program's.
fn leave(report: &Report, folder: Option<&OutFolder>, arguments: &Arguments) {
    if let Some(folder) = folder
        && let Err(error) = report.write(folder.path())
    {
        eprintln!("sapwood: {error}");
    }
    if let Some(file) = &arguments.json
        && let Err(error) = std::fs::write(file, report.json())
    {
        eprintln!("sapwood: cannot write '{}': {error}", file.display());
    }
    if !arguments.quiet {
        // A closed standard error leaves no place to say so.
        let _ = writeln!(std::io::stderr().lock(), "\n{}", report.text().trim_end());
    }
}

/// From the start of the tree to its end.
fn observe(job: &Job, arguments: &Arguments) -> Result<(End, Option<Collected>), Failure> {
    let base = base_name()?;
    let collection = Collection::open(job, &base, arguments.interval)?;
    let is_wanted = !arguments.quiet && !arguments.no_live;
    let screen = Screen::choose(is_wanted, arguments.live);
    watch(job, collection, &base, arguments, screen)
}

/// The name that this run's leaves have in common.
fn base_name() -> Result<String, Failure> {
    let mut bytes = [0_u8; NAME_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| Failure::own(&error))?;
    Ok(format!("sapwood-mpi-{:016x}", u64::from_le_bytes(bytes)))
}

fn report(job: &Job, end: &End, collected: Collected) -> Report {
    if !collected.is_last {
        eprintln!(
            "sapwood: the tree did not answer at the end; the report shows the last complete round"
        );
    }
    Report {
        program: job.program.clone(),
        command: job.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        mpi: job.mpi.clone(),
        tree: Tree {
            topology: job.leaves.spec(),
            nodes: job.leaves.topology().node_count().into(),
        },
        rounds: collected.rounds,
        standstills: collected.standstills,
        elapsed: end.elapsed,
        round: collected.round,
        missing: collected.missing,
        rows: collected.rows,
    }
}

/// A time between two rounds, such as `1s`, `0.5s` or `500ms`.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = sapwood_command_line::times::time(text).ok();
    interval.filter(|time| (INTERVAL_MIN..=INTERVAL_MAX).contains(time)).ok_or_else(|| {
        format!(
            "a time from {} ms to {} s is needed, such as 1s or 500ms",
            INTERVAL_MIN.as_millis(),
            INTERVAL_MAX.as_secs()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_a_unit_and_limits() {
        assert_eq!(interval("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(interval("0.5s"), Ok(Duration::from_millis(500)));
        assert_eq!(interval("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(interval("2"), Ok(Duration::from_secs(2)));
        assert_eq!(interval("1m"), Ok(Duration::from_secs(60)));
        for wrong in ["", "0s", "-1s", "nan", "inf", "1e300s", "2h", "9ms"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }
}
