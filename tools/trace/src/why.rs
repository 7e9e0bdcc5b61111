//! `sapwood trace why`: of a program that it starts, of one that `sapwood mpi` watches, or of one
//! that has ended and has left files.
//!
//! Standard output is the program's. A verdict is printed on standard error as soon as ranks have
//! waited for the deadline, once per different verdict, and the whole answer at the end.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use sapwood_command_line::exit::{Failure, complain, complain_all, print};
use sapwood_command_line::times::time;
use sapwood_monitor::{WaitsEffort, WhyNews, WhyWishes};
use sapwood_report::why::{Stuck, Why};

use crate::files::{check, write};
use crate::starting::Starting;

/// The shortest and the longest deadline.
const DEADLINE_MIN: Duration = Duration::from_millis(500);
const DEADLINE_MAX: Duration = Duration::from_secs(3600);
/// The same of intervals.
const INTERVAL_MIN: Duration = Duration::from_millis(50);

/// Print why an MPI program is slow or stuck.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print why ranks wait once a call has lasted this long, such as 2s.
    #[arg(long, alias = "after", value_name = "TIME", default_value = "2s", value_parser = deadline)]
    deadline: Duration,
    /// Time between two samples of the ranks' calls.
    #[arg(long, value_name = "TIME", default_value = "250ms", requires = "command",
          value_parser = interval)]
    interval: Duration,
    /// Number of MPI ranks; by default that of the launcher's command line.
    #[arg(long, short = 'n', aliases = ["np", "processes"], value_name = "N", requires = "command")]
    ranks: Option<NonZeroU32>,
    #[command(flatten)]
    starting: Starting,
    #[command(flatten)]
    effort: WaitsEffort,
    /// Show the waits in a view on the terminal while the program runs: the ranks that arrived
    /// last and made others wait, and the calls in which time was lost.
    #[arg(long, requires = "command")]
    live: bool,
    /// Show the hops of reductions that libsapwood-bypass takes over: which child's part came last
    /// at each place of the tree, and how many came after the parent had returned.
    #[arg(long, requires = "command")]
    hops: bool,
    /// Write the answer as a JSON object to this file, or to standard output for '-'.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The run of 'sapwood mpi' to ask, such as mpi-4711; needed only if several run.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["command", "ranks", "topology"])]
    job: Option<String>,
    /// Read the files that ranks have left in this folder (--events-folder), without any process
    /// of the program.
    #[arg(long, value_name = "DIR",
          conflicts_with_all = ["command", "job", "ranks", "live", "mpi", "topology", "events_folder",
                                "deadline", "interval"])]
    from: Option<PathBuf>,
    /// The command that starts the program, such as: mpirun -np 8 lmp -in in.melt; of PyTorch:
    /// mpirun -np 4 python3 -m sapwood.torch train.py. Without a command, a running 'sapwood mpi'
    /// on this host is asked.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Answers, and ends as the program does.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    // Until the answer is written.
    let _checked = arguments.json.as_deref().map(check).transpose().map_err(Failure::usage)?;
    if let Some(folder) = &arguments.from {
        return tell_found(arguments, &sapwood_monitor::why_of_files(folder)?);
    }
    if arguments.command.is_empty() {
        let why = sapwood_monitor::why_of_running(arguments.job.as_deref(), arguments.deadline)?;
        return tell_found(arguments, &why);
    }
    let wishes = WhyWishes {
        interval: arguments.interval,
        deadline: arguments.deadline,
        ranks: arguments.ranks,
        effort: arguments.effort,
        is_live: arguments.live,
        has_hops: arguments.hops,
        command: arguments.command.clone(),
        ..arguments.starting.wishes()
    };
    let mut last = None;
    let (mut told_wrong, mut told_stacks) = (Vec::new(), Vec::new());
    let (code, why) = sapwood_monitor::why(&wishes, &mut |news| {
        let why = news.why();
        let stacks = why.stuck.as_ref().map(Stuck::stack_lines).unwrap_or_default();
        let stuck = match news {
            WhyNews::Verdict(why) => why.stuck.as_ref().map(Stuck::lines),
            WhyNews::Stacks(_) => (stacks != told_stacks).then(|| stacks.clone()),
        };
        if !stacks.is_empty() {
            told_stacks = stacks;
        }
        let wrong = why.wrong_lines();
        if wrong != told_wrong {
            complain_all(&wrong);
            told_wrong = wrong;
        }
        complain_all(&stuck.unwrap_or_default());
        last = Some(why.clone());
    })?;
    let why = why.or_else(|| last.map(ended_at_once));
    let Some(why) = why else { return Ok(code) };
    complain_all(&why.lines());
    complain_all(&why.hop_lines());
    if let Some(file) = &arguments.json
        && let Err(error) = write(file, json(&why).as_bytes())
    {
        complain(format_args!("cannot write '{}': {error}", file.display()));
    }
    Ok(code)
}

/// The verdict that was told last, of a program that was ended at once: nothing could be gathered
/// any more.
fn ended_at_once(mut last: Why) -> Why {
    last.has_ended = true;
    let known_s = last.elapsed_s;
    last.unknown.push(format!("everything after {known_s:.1} s, when the program was killed"));
    last
}

/// Of a program that was not started here: standard output is not the program's.
fn tell_found(arguments: &Arguments, why: &Why) -> Result<ExitCode, Failure> {
    match arguments.json.as_deref() {
        Some(file) if file == Path::new("-") => print(&json(why))?,
        Some(file) => {
            write(file, json(why).as_bytes()).map_err(|error| {
                Failure::own(&format!("cannot write '{}': {error}", file.display()))
            })?;
        }
        None => print(&([why.lines(), why.hop_lines()].concat().join("\n") + "\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn json(why: &Why) -> String {
    let text = serde_json::to_string_pretty(why);
    text.expect("numbers, text and lists of them are always JSON") + "\n"
}

pub(crate) fn deadline(text: &str) -> Result<Duration, String> {
    let deadline = time(text).ok();
    deadline.filter(|time| (DEADLINE_MIN..=DEADLINE_MAX).contains(time)).ok_or_else(|| {
        format!(
            "a time from {} ms to {} s is needed, such as 2s",
            DEADLINE_MIN.as_millis(),
            DEADLINE_MAX.as_secs()
        )
    })
}

pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    let interval = time(text).ok();
    interval.filter(|time| (INTERVAL_MIN..=DEADLINE_MAX).contains(time)).ok_or_else(|| {
        format!(
            "a time from {} ms to {} s is needed, such as 250ms",
            INTERVAL_MIN.as_millis(),
            DEADLINE_MAX.as_secs()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_limits() {
        assert_eq!(deadline("2s"), Ok(Duration::from_secs(2)));
        assert!(deadline("100ms").unwrap_err().contains("from 500 ms"));
        assert_eq!(interval("250ms"), Ok(Duration::from_millis(250)));
        assert!(interval("1ms").unwrap_err().contains("from 50 ms"));
    }
}
