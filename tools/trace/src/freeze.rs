//! `sapwood trace freeze`: of a program that it starts, of one that `sapwood mpi` watches, or of
//! one that has ended and has left files.
//!
//! Standard output is the program's. What was frozen is written to files as soon as it is there,
//! while the program goes on; without any file a table is printed.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use sapwood::RankSet;
use sapwood_command_line::exit::{Failure, complain, complain_all, print};
use sapwood_command_line::times::time;
use sapwood_export::freeze::{parquet, perfetto, svg};
use sapwood_monitor::{FREEZE_MAX, FREEZE_MIN, FreezeWishes, WhyWishes};
use sapwood_report::freeze::Freeze;

use crate::files::{CheckedFile, are_same, check, write};
use crate::starting::Starting;
use crate::why::{deadline, interval};

/// The shortest time by which a rank is late.
const LATE_MIN: Duration = Duration::from_micros(1);

/// Show the last calls of an MPI program's ranks, one by one.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Show the calls of this time before the last call that returned, such as 10s, and all
    /// calls since.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = last)]
    last: Duration,
    /// The ranks to show, such as 0-3,7; by default all.
    #[arg(long, value_name = "RANKS", value_parser = ranks)]
    ranks: Option<RankSet>,
    /// Write a trace for the Perfetto viewer to this file.
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// Write a row for each call to this file, in Parquet format.
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    /// Write a picture to this file: a time line, and the order in which ranks arrived at
    /// collectives.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the result as a JSON object to this file, or to standard output for '-'.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The run of 'sapwood mpi' to freeze, such as mpi-4711; needed only if several run.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["command", "processes", "deadline", "interval"])]
    job: Option<String>,
    /// Read the files that ranks of one host have left in this folder (--events-folder), without
    /// any process of the program.
    #[arg(long, value_name = "DIR",
          conflicts_with_all = ["command", "job", "processes", "mpi", "topology", "events_folder",
                                "deadline", "interval"])]
    from: Option<PathBuf>,
    /// Freeze the program as stuck when its ranks have waited in calls for this time, such as
    /// 2s.
    #[arg(long, value_name = "TIME", default_value = "2s", requires = "command",
          value_parser = deadline)]
    deadline: Duration,
    /// Also freeze the program when a rank arrives at a collective later than this, such as 500ms.
    #[arg(long, value_name = "TIME", value_parser = late, requires = "command")]
    late: Option<Duration>,
    /// Time between two samples of the ranks' calls.
    #[arg(long, value_name = "TIME", default_value = "250ms", requires = "command",
          value_parser = interval)]
    interval: Duration,
    /// Number of MPI ranks; by default that of the launcher's command line.
    #[arg(long, short = 'n', alias = "np", value_name = "N", requires = "command")]
    processes: Option<NonZeroU32>,
    #[command(flatten)]
    starting: Starting,
    /// The command that starts the program, such as: mpirun -np 8 lmp -in in.melt. The program is
    /// frozen once, when it is stuck, a rank is late (--late), it receives a signal to end, or it
    /// ends. Without a command, the job of a running 'sapwood mpi' on this host is frozen.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Freezes, and ends as the program does.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let wishes = FreezeWishes {
        last: arguments.last,
        ranks: arguments.ranks.clone().unwrap_or_default(),
        late: arguments.late,
    };
    // Until they are written.
    let checked: Result<Vec<CheckedFile>, String> =
        arguments.files().iter().map(|wanted| check(wanted.file)).collect();
    let _checked = checked.map_err(Failure::usage)?;
    if let Some(file) = arguments.file_named_twice() {
        let file = file.display();
        return Err(Failure::usage(format!("'{file}' is named for two outputs: name two files")));
    }
    if arguments.command.is_empty() {
        let freeze = match &arguments.from {
            Some(folder) => sapwood_monitor::freeze_of_files(folder, &wishes)?,
            None => sapwood_monitor::freeze_of_running(arguments.job.as_deref(), &wishes)?,
        };
        if arguments.files().is_empty() {
            print(&(freeze.lines().join("\n") + "\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        for file in arguments.files() {
            file.write(&freeze).map_err(|error| Failure::own(&error))?;
        }
        complain_all(&freeze.summary());
        return Ok(ExitCode::SUCCESS);
    }
    let watched = WhyWishes {
        interval: arguments.interval,
        deadline: arguments.deadline,
        ranks: arguments.processes,
        command: arguments.command.clone(),
        ..arguments.starting.wishes()
    };
    let mut tell = |freeze: &Freeze| arguments.leave(freeze);
    let (code, freeze) = sapwood_monitor::freeze(&watched, &wishes, &mut tell)?;
    if let Some(freeze) = freeze {
        arguments.leave(&freeze);
    }
    Ok(code)
}

/// Makes the bytes of a file.
type Encode = fn(&Freeze) -> Result<Vec<u8>, String>;

/// One file that was asked for.
struct Wanted<'a> {
    file: &'a Path,
    encode: Encode,
}

impl Wanted<'_> {
    /// # Errors
    /// One line that names the file.
    fn write(&self, freeze: &Freeze) -> Result<(), String> {
        let written = (self.encode)(freeze)
            .and_then(|bytes| write(self.file, &bytes).map_err(|error| error.to_string()));
        written.map_err(|error| format!("cannot write '{}': {error}", self.file.display()))
    }
}

impl Arguments {
    fn files(&self) -> Vec<Wanted<'_>> {
        let all: [(&Option<PathBuf>, Encode); 4] = [
            (&self.perfetto, |freeze| Ok(perfetto::encode(freeze))),
            (&self.parquet, parquet::encode),
            (&self.svg, |freeze| Ok(svg::encode(freeze).into_bytes())),
            (&self.json, |freeze| Ok(freeze.json().into_bytes())),
        ];
        let wanted = all.into_iter().filter_map(|(file, encode)| Some((file.as_deref()?, encode)));
        wanted.map(|(file, encode)| Wanted { file, encode }).collect()
    }

    /// A file that two outputs would be written to, one over the other.
    fn file_named_twice(&self) -> Option<&Path> {
        let files: Vec<&Path> = self.files().iter().map(|wanted| wanted.file).collect();
        let is_again = |at: usize| files[..at].iter().any(|before| are_same(before, files[at]));
        // What is no file keeps nothing that the other one could write over.
        let is_file = |at: usize| files[at].metadata().map_or(true, |metadata| metadata.is_file());
        (0..files.len()).find(|&at| is_again(at) && is_file(at)).map(|at| files[at])
    }

    /// Of a program that was started here: what cannot be written is said, and changes no exit
    /// code, which is the program's.
    fn leave(&self, freeze: &Freeze) {
        let files = self.files();
        if files.is_empty() {
            return complain_all(&freeze.lines());
        }
        let mut written = Vec::new();
        for file in &files {
            match file.write(freeze) {
                Ok(()) if file.file == Path::new("-") => written.push("standard output".to_owned()),
                Ok(()) => written.push(format!("'{}'", file.file.display())),
                Err(error) => complain(error),
            }
        }
        let mut lines = freeze.summary();
        if !written.is_empty() {
            lines.push(format!("written: {}", written.join(", ")));
        }
        complain_all(&lines);
    }
}

fn last(text: &str) -> Result<Duration, String> {
    let last = time(text).ok();
    last.filter(|time| (FREEZE_MIN..=FREEZE_MAX).contains(time)).ok_or_else(|| {
        format!(
            "a time from {} ms to {} s is needed, such as 10s",
            FREEZE_MIN.as_millis(),
            FREEZE_MAX.as_secs()
        )
    })
}

fn late(text: &str) -> Result<Duration, String> {
    let late = time(text).ok();
    late.filter(|time| (LATE_MIN..=FREEZE_MAX).contains(time)).ok_or_else(|| {
        format!("a time from 1 us to {} s is needed, such as 500ms", FREEZE_MAX.as_secs())
    })
}

fn ranks(text: &str) -> Result<RankSet, String> {
    let ranks = text.parse::<RankSet>().ok().filter(|ranks| !ranks.is_empty());
    ranks.ok_or_else(|| "a set of ranks is needed, such as 0-3,7".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn two_outputs_are_two_files() {
        let twice = |words: &[&str]| {
            let words = std::iter::once("freeze").chain(words.iter().copied());
            let read =
                <Words as clap::Parser>::try_parse_from(words).expect("words that are known");
            read.arguments.file_named_twice().map(Path::to_path_buf)
        };
        assert_eq!(twice(&["--svg", "a", "--json", "b"]), None);
        assert_eq!(twice(&["--svg", "a", "--json", "a"]), Some(PathBuf::from("a")));
        assert_eq!(twice(&["--svg", "/dev/null", "--json", "/dev/null"]), None);
    }

    #[test]
    fn a_window_has_limits() {
        assert_eq!(last("10s"), Ok(Duration::from_secs(10)));
        assert!(last("0").unwrap_err().contains("from 1 ms to 3600 s"));
        assert_eq!(late("1ms"), Ok(Duration::from_millis(1)));
        assert!(late("0").unwrap_err().contains("from 1 us to 3600 s"));
        assert!(ranks("x").unwrap_err().contains("such as 0-3,7"));
        assert_eq!(ranks("0-3,7").map(|ranks| ranks.to_string()), Ok("0-3,7".to_owned()));
    }
}
