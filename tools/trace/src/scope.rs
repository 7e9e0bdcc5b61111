//! `sapwood trace scope`: figures of the events that a program's ranks record, as scopes say.
//!
//! Of a program that it starts, or of one that `sapwood mpi` watches. Each gathering is a table, on
//! standard error where standard output is the program's, or a line of a file. Scopes over hops are
//! gathered of a running network (`hop_scope`) or of a group (`group_scope`) in the same form.

use std::ffi::OsString;
use std::io::Write;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use sapwood_command_line::exit::{Failure, by_signal, complain, complain_all, print};
use sapwood_command_line::times::time;
use sapwood_monitor::WhyWishes;
use sapwood_report::quantity;
use sapwood_report::scope::ScopeRecord;
use sapwood_status::{Whom, wait};

use crate::files::{CheckedFile, check, open};
use crate::group_scope::{self, NamedGroup};
use crate::hop_reading::End;
use crate::hop_scope::{HopScopeTimes, gather};
use crate::hop_scope_text::NamedHopScope;
use crate::scope_text::{SourcedScopes, scopes};
use crate::starting::Starting;

/// Between two looks at the program; scopes are gathered as often as they say.
const INTERVAL: Duration = Duration::from_secs(1);
/// What to do for ranks that do not record.
const RECORD: &str = "'sapwood mpi control --tracing on' has them do so";
/// Scopes need no verdict, by which calls are long.
const DEADLINE: Duration = Duration::from_secs(3600);

/// How long the hops of a network or group are followed if nothing else is said.
const HOPS_TIME: Duration = Duration::from_secs(5);

/// Gather figures of a program's MPI calls, or of the hops of a running network or group. A scope
/// selects the events, groups them, and sets how often they are gathered.
#[derive(clap::Args)]
#[command(after_help = "A scope is words KEY=VALUE, such as\n  \
    --scope 'functions=MPI_All* ranks=0-3 by=rank,function longer=1ms every=500ms'\n\
    or the name of one that is built in (statistics, compute), with words that change it:\n  \
    --scope 'statistics reduce=sums'\n\
    A scope with source=hops is of the streams of a running network:\n  \
    --network mpi-4711 --scope 'source=hops value=wait by=edge reduce=top=5'\n\
    A scope with source=group is of the operations of a group:\n  \
    --group tcp:10.0.0.1:4000 --key FILE --scope 'source=group value=wait by=edge'\n\
    Keys and files: docs/trace.md.")]
pub(crate) struct Arguments {
    /// A scope (repeatable); by default the built-in scope statistics.
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// A file of scopes, of TOML, or of JSON if its name ends with .json.
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Write each gathering as a line of JSON to this file, or to standard output for '-', and
    /// print no table.
    #[arg(long, value_name = "FILE")]
    ndjson: Option<PathBuf>,
    /// Check the scopes, and gather nothing.
    #[arg(long, conflicts_with_all = ["command", "ndjson", "job", "network", "group", "time"])]
    check: bool,
    /// Number of MPI ranks; by default that of the launcher's command line.
    #[arg(long, short = 'n', aliases = ["np", "ranks"], value_name = "N", requires = "command")]
    processes: Option<NonZeroU32>,
    #[command(flatten)]
    starting: Starting,
    /// The run of 'sapwood mpi' to ask, such as mpi-4711; needed only if several run.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["command", "processes", "topology"])]
    job: Option<String>,
    /// The network whose hops are read, for scopes with source=hops; needed only if several run.
    #[arg(long, visible_alias = "tree", value_name = "NAME",
          conflicts_with_all = ["command", "processes", "topology", "job"])]
    network: Option<String>,
    /// The address of any member of the group whose hops are read, for scopes with source=group.
    #[arg(long, value_name = "ADDRESS",
          conflicts_with_all = ["command", "processes", "topology", "job", "network"])]
    group: Option<String>,
    /// The file with the group's key. Without this option SAPWOOD_KEY names the file.
    #[arg(long, value_name = "FILE", requires = "group")]
    key: Option<PathBuf>,
    /// Do not encrypt links to members over TCP, if the group does not.
    #[arg(long, requires = "group")]
    plain: bool,
    /// Time limit for the answers of a network's processes, or for that of a member, such as 500ms
    /// or 2s.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = wait)]
    timeout: Duration,
    /// Gather figures of a running program for this time, as often as the scopes say; by default
    /// they are gathered once, and those of hops for 5s.
    #[arg(long = "for", value_name = "TIME", conflicts_with = "command", value_parser = time)]
    time: Option<Duration>,
    /// The command that starts the program, such as: mpirun -np 8 lmp -in in.melt. Without a
    /// command, the job of a running 'sapwood mpi' on this host is read.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Where records go.
struct Records {
    file: Option<(PathBuf, Box<dyn Write>)>,
    checked: CheckedFile,
    /// Whether standard output is not the program's.
    is_printed: bool,
    failure: Option<String>,
    /// Scopes of which a table was printed.
    told: Vec<String>,
}

impl Records {
    /// Whether a table is the last one of its scope and empty, behind others.
    fn is_told_again(&mut self, record: &ScopeRecord) -> bool {
        let is_known = self.told.contains(&record.scope);
        if !is_known {
            self.told.push(record.scope.clone());
        }
        is_known && record.is_last && record.events_read == 0 && record.events_dropped == 0
    }

    fn open(arguments: &Arguments) -> Result<Self, Failure> {
        let mut checked = CheckedFile::default();
        let file = match &arguments.ndjson {
            Some(path) => {
                checked = check(path).map_err(Failure::usage)?;
                let opened: Box<dyn Write> = match path == Path::new("-") {
                    true => Box::new(std::io::stdout()),
                    false => Box::new(open(path).map_err(Failure::usage)?),
                };
                Some((path.clone(), opened))
            }
            None => None,
        };
        let is_printed = arguments.command.is_empty();
        Ok(Self { file, checked, is_printed, failure: None, told: Vec::new() })
    }

    fn take(&mut self, record: &ScopeRecord) {
        let is_told_again = self.file.is_none() && self.is_told_again(record);
        match &mut self.file {
            Some((path, file)) => {
                if let Err(error) = file.write_all(line(record).as_bytes()) {
                    let failure = || format!("'{}' lacks lines: {error}", path.display());
                    self.failure.get_or_insert_with(failure);
                }
            }
            // What has not come since the table before would say nothing more.
            None if is_told_again => {}
            None if self.is_printed => {
                if let Err(failure) = print(&(record.lines().join("\n") + "\n")) {
                    self.failure.get_or_insert_with(|| failure.to_string());
                }
            }
            None => complain_all(&record.lines()),
        }
    }
}

/// Gathers, and ends as the program does.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let scopes = scopes(&arguments.file, &arguments.scope).map_err(Failure::usage)?;
    if arguments.check {
        return Ok(ExitCode::SUCCESS);
    }
    let scopes = match scopes {
        SourcedScopes::Hops(scopes) => return run_over_hops(arguments, &scopes),
        SourcedScopes::Group(scopes) => return run_over_group(arguments, &scopes),
        SourcedScopes::Calls(_) if arguments.group.is_some() => {
            return Err(Failure::usage(
                "--group is for scopes with source=group, and these are over MPI calls: add \
                 source=group to each scope, or name a job by --job",
            ));
        }
        SourcedScopes::Calls(_) if arguments.network.is_some() => {
            return Err(Failure::usage(
                "--network is for scopes with source=hops, and these are over MPI calls: add \
                 source=hops to each scope, or name a job by --job",
            ));
        }
        SourcedScopes::Calls(scopes) => scopes,
    };
    let mut records = Records::open(arguments)?;
    let mut silent = 0;
    let mut take = |record: &ScopeRecord| {
        silent = silent.max(record.silent_ranks);
        records.take(record);
    };
    if arguments.command.is_empty() {
        let job = arguments.job.as_deref();
        sapwood_monitor::scopes_of_running(job, &scopes, arguments.time, &mut take)?;
        records.checked.keep();
        if silent > 0 {
            let ranks = quantity::counted(silent.into(), "ranks");
            let do_so = if silent == 1 { "does not record its" } else { "do not record their" };
            complain(format_args!("{ranks} {do_so} calls; {RECORD}"));
        }
        return match records.failure {
            Some(failure) => Err(Failure::own(&failure)),
            None => Ok(ExitCode::SUCCESS),
        };
    }
    let wishes = WhyWishes {
        interval: INTERVAL,
        deadline: DEADLINE,
        ranks: arguments.processes,
        command: arguments.command.clone(),
        ..arguments.starting.wishes()
    };
    let code = sapwood_monitor::scope(&wishes, &scopes, &mut take)?;
    // It may have no line.
    records.checked.keep();
    if let Some(failure) = records.failure {
        complain(failure);
    }
    Ok(code)
}

/// Gathers scopes over the hops of a running network.
fn run_over_hops(arguments: &Arguments, scopes: &[NamedHopScope]) -> Result<ExitCode, Failure> {
    let is_of_program = arguments.job.is_some() || arguments.processes.is_some();
    if !arguments.command.is_empty() || is_of_program || arguments.group.is_some() {
        return Err(Failure::usage(
            "scopes with source=hops are of a running network, which --network names: leave out \
             the command, --job, --processes and --group",
        ));
    }
    let times = times_of_hops(arguments)?;
    let mut records = Records::open(arguments)?;
    let network = Whom::named(arguments.network.clone(), times.timeout).find()?;
    let end = gather(&network, scopes, &times, &mut |record| records.take(record))?;
    records.checked.keep();
    if let Some(failure) = records.failure {
        return Err(Failure::own(&failure));
    }
    match end {
        End::Over => Ok(ExitCode::SUCCESS),
        End::Signal(signal) => Ok(ExitCode::from(by_signal(signal))),
        End::NoAnswer(why) => {
            Err(Failure::own(&format!("{} was not followed to the end: {why}", network.name)))
        }
    }
}

/// Gathers scopes over the hops of a group.
fn run_over_group(arguments: &Arguments, scopes: &[NamedHopScope]) -> Result<ExitCode, Failure> {
    let Some(address) = arguments.group.clone() else {
        return Err(Failure::usage(
            "scopes with source=group are of a group: name the address of any member by --group",
        ));
    };
    let times = times_of_hops(arguments)?;
    let mut records = Records::open(arguments)?;
    let group = NamedGroup { address, key: arguments.key.clone(), is_plain: arguments.plain };
    let signal = group_scope::gather(group, scopes, &times, &mut |record| records.take(record))?;
    records.checked.keep();
    if let Some(failure) = records.failure {
        return Err(Failure::own(&failure));
    }
    Ok(signal.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(by_signal(signal))))
}

/// How long hops are followed, and how long answers may take.
fn times_of_hops(arguments: &Arguments) -> Result<HopScopeTimes, Failure> {
    let time = arguments.time.unwrap_or(HOPS_TIME);
    if time.is_zero() {
        return Err(Failure::usage("--for: give a time above 0, such as 5s"));
    }
    Ok(HopScopeTimes { time, timeout: arguments.timeout })
}

fn line(record: &ScopeRecord) -> String {
    let text = serde_json::to_string(record);
    text.expect("numbers, text and lists of them are always JSON") + "\n"
}
