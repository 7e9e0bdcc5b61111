//! `sapwood mpi`: watches an unmodified MPI program through a tree.
//!
//! The command stands between the user and `mpirun`: `job` checks the command line before anything
//! starts, `collection` opens the tree, whose back-ends are this program once more (`leaf`),
//! `watch` starts the program and asks for rounds until it has ended. The program keeps its own
//! standard streams, its signals and its exit code; whatever becomes of the tree, it runs on.
//!
//! What the ranks count is the shim's (`bindings/mpi`), what a round is `sapwood-profile`'s, what
//! is shown of it `sapwood-report`'s.

pub mod analysis;
mod attach;
mod attached_pages;
mod collected;
mod collection;
mod command_line;
mod condition;
pub mod control;
mod control_command;
mod desk;
mod effort;
mod events_folder;
mod file_use;
mod folder;
mod forward;
mod freeze;
mod freezes;
mod freezing;
mod guidance;
mod hardware;
mod host_time;
mod in_world;
mod iterations;
mod job;
mod kept;
mod last_files;
mod late_ranks;
mod launcher;
mod launcher_end;
pub mod leaf;
pub(crate) mod leaves;
pub(crate) mod linkage;
mod live;
mod lock_waits;
mod marks;
mod open_files;
mod outputs;
mod pace;
mod page;
mod past;
mod placement;
mod places;
mod preload;
mod presence;
mod proc_stat;
mod processes;
mod rank_control;
mod rank_reports;
mod recording;
mod replay;
mod running_exports;
mod scope;
mod scopes;
mod screen;
pub mod shim;
mod signs;
mod stack_reader;
mod stacks;
mod standing;
mod started;
mod stopped_launcher;
mod symbols;
mod tables;
mod tallies;
mod tcp_links;
mod thread_use;
mod told_signals;
mod tool_rank;
mod tree_start;
mod usage;
mod verdicts;
mod waits;
mod watch;
mod whereabouts;
mod why;
mod wrappers;

use std::ffi::OsString;
use std::io::Write as _;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ArgGroup;
use sapwood_command_line::arguments::listening_address;
use sapwood_command_line::colour::ColourOption;
use sapwood_export::{Format, openmetrics};
use sapwood_profile::{Function, FunctionId};
use sapwood_report::{PausedTracing, Report, RoundRecord, Tree, printable};

use self::collected::Collected;
use self::collection::Collection;
use self::control::channel::ControlQueue;
use self::control::{ControlChannel, FreezeOrder};
use self::in_world::{InWorld, ToolRanks};
use self::job::Job;
pub use self::linkage::Abi;
use self::outputs::Outputs;
use self::page::{PageArguments, RunPage};
use self::past::Past;
use self::placement::{Placement, Reaching};
use self::screen::Screen;
use self::standing::Deadline;
use self::watch::{End, Views, watch, watch_later};
use sapwood_command_line::exit::{Failure, complain};

pub use self::control::{FREEZE_MAX, FREEZE_MIN};
pub use self::effort::WaitsEffort;
pub use self::freezing::{FreezeWishes, freeze, freeze_of_running};
pub use self::kept::{freeze_of_files, why_of_files};
pub use self::scope::NamedScope;
pub use self::scopes::{scope, scopes_of_running};
pub use self::stack_reader::stack_reader_program;
pub use self::why::{WhyNews, WhyWishes, why, why_of_running};

/// The shortest time between two rounds.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// The longest time between two rounds.
const INTERVAL_MAX: Duration = Duration::from_secs(3600);
/// The shortest time between two readings of call stacks, each of which stops the ranks.
const STACKS_INTERVAL_MIN: Duration = Duration::from_millis(200);
/// Bytes of randomness in the name of a run's leaves, so that two runs never meet.
const NAME_BYTES: usize = 8;

/// The commands below `sapwood mpi` that have a parser of their own, since what follows `mpi` may
/// be any program: for manual pages and completions.
#[must_use]
pub fn further_commands() -> [clap::Command; 2] {
    [attach::command_line().name("attach"), control_command::command_line().name("control")]
}

/// The arguments of `sapwood mpi`.
#[derive(Clone, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    group = ArgGroup::new("serves").args(["listen", "export"]).multiple(true),
    after_help = "Two more commands take other options, which their --help lists:\n  \
                  sapwood mpi attach   Watch a job that runs already\n  \
                  sapwood mpi control  Change what a running 'sapwood mpi' measures"
)]
pub struct Arguments {
    #[command(subcommand)]
    past: Option<Past>,
    /// MPI ranks per leaf, the process of the tree that reads their counts [default: 4; 64 if the
    /// ranks run on other hosts].
    #[arg(long, value_name = "N")]
    ranks_per_leaf: Option<NonZeroU32>,
    /// Maximum number of children of each process of the tree.
    #[arg(long, alias = "fanout", value_name = "F", default_value_t = 8, conflicts_with = "topology",
          value_parser = clap::value_parser!(u16).range(2..))]
    fan_out: u16,
    /// Shape of the tree, such as 8 or 2x4; the ranks are divided among its leaves.
    #[arg(long, value_name = "SPEC")]
    topology: Option<sapwood::Shape>,
    /// Time between two rounds, in each of which all ranks' counts are read, such as 1s or 500ms.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Time between two readings of all ranks' call stacks, such as 10s; none by default.
    #[arg(long, value_name = "TIME", value_parser = stacks_interval)]
    stacks: Option<Duration>,
    /// Write profile.json, report.txt, rounds.ndjson and ranks.parquet to this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also write these formats of other tools to that folder: see 'sapwood mpi export --help'.
    #[arg(long, value_name = "FORMATS", requires = "out", value_delimiter = ',',
          value_parser = Format::named)]
    export: Vec<Format>,
    /// Serve the last round as OpenMetrics at ADDRESS:PORT, or at PORT of the loopback interface;
    /// 0 chooses a free port.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listening_address)]
    listen: Option<SocketAddr>,
    /// Maximum number of series that --listen serves, or that --export openmetrics writes.
    #[arg(long, value_name = "N", default_value_t = openmetrics::SERIES_DEFAULT,
          requires = "serves",
          value_parser = clap::value_parser!(u32).range(i64::from(openmetrics::SERIES_MIN)..=10_000_000))]
    series_max: u32,
    /// Number of MPI ranks for which the tree is planned; by default that of the launcher's command
    /// line.
    #[arg(long, short = 'n', alias = "np", value_name = "N")]
    ranks: Option<NonZeroU32>,
    /// Use the last N ranks of the job as processes of the tree, which are then started by the
    /// job's own launcher; on several hosts, such as 1/host, the last N of each host.
    #[arg(long, value_name = "N[/host]", conflicts_with = "topology",
          value_parser = ToolRanks::read)]
    in_world: Option<ToolRanks>,
    /// MPI of the program, if it cannot be detected.
    #[arg(long, value_name = "ABI")]
    mpi: Option<Abi>,
    /// Count every N-th call of a function as the end of an iteration, such as 100:MPI_Allreduce.
    #[arg(long, value_name = "N:FUNCTION", value_parser = every)]
    every: Option<Every>,
    /// Print no table, neither while the program runs nor at its end.
    #[arg(short, long, conflicts_with = "live")]
    quiet: bool,
    /// Print no table while the program runs.
    #[arg(long, conflicts_with = "live")]
    no_live: bool,
    /// Show a view that scrolls and sorts, on the terminal; print plain tables if standard error is
    /// not a terminal.
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    colour: ColourOption,
    #[command(flatten)]
    page: PageArguments,
    /// Write profile.json to this file, or to /dev/fd/N; standard output is the program's.
    #[arg(long, value_name = "FILE", value_parser = json_file)]
    json: Option<PathBuf>,
    #[command(flatten)]
    reaching: Reaching,
    #[command(flatten)]
    extras: tallies::Extras,
    /// Measure how long ranks wait in each call, and for which ranks.
    #[arg(long)]
    waits: bool,
    #[command(flatten)]
    effort: WaitsEffort,
    /// Have ranks record their calls in files of this folder on their hosts, which are left when
    /// they are killed; 'sapwood trace why --from DIR' reads them.
    #[arg(long, value_name = "DIR")]
    events_folder: Option<PathBuf>,
    #[command(flatten)]
    analysis: analysis::Arguments,
    /// Name the ranks that are the reason when others have waited in one call for this time, such
    /// as 10s; 'never' or 0 for not at all.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = Deadline::read)]
    deadline: Deadline,
    /// When a call is long; none for the time between two rounds.
    #[arg(skip)]
    long: Option<Duration>,
    /// What is to be frozen by the first trigger; none for nothing.
    #[arg(skip)]
    freeze: Option<FreezeOrder>,
    /// Whether ranks note hops of bypassed reductions.
    #[arg(skip)]
    hops: bool,
    /// What is to be gathered of the events; none for nothing.
    #[arg(skip)]
    scopes: Vec<NamedScope>,
    /// The command that starts the program, such as: mpirun -np 8 lmp -in in.melt; or 'attach',
    /// for a job that runs already: see 'sapwood mpi attach --help'.
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Arguments {
    /// Whether ranks record their events from the start.
    fn records(&self) -> bool {
        self.waits || !self.scopes.is_empty() || self.kept_folder().is_some()
    }

    /// Whether ranks note hops of bypassed reductions, by the option of `trace why` or by the
    /// variable.
    fn notes_hops(&self) -> bool {
        self.hops || std::env::var_os(waits::HOPS_VARIABLE).is_some_and(|word| word == "1")
    }

    /// The folder in which ranks keep their files, by the option or the variable.
    fn kept_folder(&self) -> Option<PathBuf> {
        // Ranks that run already keep their files where they were told to.
        if self.command.first().is_some_and(|word| *word == attach::ATTACH) {
            return None;
        }
        let variable =
            || std::env::var_os(events_folder::VARIABLE).filter(|folder| !folder.is_empty());
        self.events_folder.clone().or_else(|| variable().map(PathBuf::from))
    }

    /// What reading which ranks wait for which may cost; none where that is not wanted: scopes
    /// alone read what they select.
    fn waits_effort(&self) -> Option<WaitsEffort> {
        (self.waits || self.scopes.is_empty()).then_some(self.effort)
    }

    /// Whether rounds are shown while the program runs.
    fn shows_rounds(&self) -> bool {
        !self.quiet && !self.no_live
    }
}

/// Runs and watches a program; ends as it does.
///
/// # Errors
/// Before the program starts: [`Failure`] of bad input or of the tree.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(past) = &arguments.past {
        return past.run();
    }
    if arguments.command[0] == attach::ATTACH {
        return attach::run(arguments, &arguments.command);
    }
    if control_command::is_meant() {
        return control_command::run();
    }
    shim::check_transport().map_err(Failure::usage)?;
    arguments.reaching.check().map_err(Failure::usage)?;
    let mut job = Job::read(arguments)?;
    let mut outputs = Outputs::prepare(arguments)?;
    // Kept open, whether or not a thread asks through it.
    let (control, requests) = ControlChannel::open()?;
    let mut page = RunPage::open(&arguments.page, &arguments.command, Some(control.clone()))?;
    let screen = Screen::choose(arguments, &arguments.command);
    let views = Views { screen, outputs: &mut outputs, page: &mut page, listener: None };
    let observed = observe(&mut job, arguments, views, requests);
    if !matches!(observed, Ok((_, Some(_)))) {
        outputs.abandon();
    }
    let (end, collected) = observed?;
    let Some(collected) = collected else { return Ok(end.exit_code()) };
    conclude(&job, end.elapsed, collected, (&mut outputs, &mut page), arguments);
    page.end(&end.told());
    Ok(end.exit_code())
}

/// Leaves what is known at the end.
fn conclude(
    job: &Job,
    elapsed: Duration,
    collected: Collected,
    (outputs, page): (&mut Outputs, &mut RunPage),
    arguments: &Arguments,
) {
    if let Some(outdated) = &collected.outdated {
        complain(format_args!(
            "the tree did not answer at the end; the report shows the last complete round: {}",
            outdated.reason
        ));
    }
    for event in collected.never_found.iter().filter(|_| collected.outdated.is_none()) {
        let event = printable(event);
        complain(format_args!("--histogram {event}: no event of this name was counted"));
    }
    let mut record =
        RoundRecord::new(collected.rounds, elapsed, &collected.round, &collected.missing);
    record.deaths = collected.deaths.section();
    record.settings = collected.settings.clone();
    record.stacks = collected.stacks.clone();
    collected.analysis.fill(&mut record);
    if let Some(waits) = &collected.waits {
        record.add_waits(waits, collected.standing.as_ref(), elapsed);
    }
    page.publish(|| record.clone());
    let is_final = collected.has_ended;
    let report = Report { is_final, ..report(job, elapsed, collected, arguments.interval) };
    leave(&record, report, outputs, arguments);
}

/// Leaves the report where it was asked for. What cannot be written is said, and changes no exit
/// code: that is the program's.
fn leave(record: &RoundRecord, report: Report, outputs: &mut Outputs, arguments: &Arguments) {
    let report = outputs.finish(record, report);
    if !arguments.quiet {
        // A closed standard error leaves no place to say so.
        let _ = writeln!(std::io::stderr().lock(), "\n{}", report.text().trim_end());
    }
}

/// From the start of the tree to its end.
fn observe(
    job: &mut Job,
    arguments: &Arguments,
    views: Views<'_>,
    requests: ControlQueue,
) -> Result<(End, Option<Collected>), Failure> {
    let base = base_name()?;
    if job.placement == Placement::Later || job.in_world.is_some() {
        return watch_later(job, &base, arguments, views, requests);
    }
    let collection = Collection::open(job, &base, arguments, None)?;
    watch(job, collection, &base, arguments, views, requests)
}

/// The name that this run's leaves have in common.
fn base_name() -> Result<String, Failure> {
    let mut bytes = [0_u8; NAME_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| Failure::own(&error))?;
    Ok(format!("sapwood-mpi-{:016x}", u64::from_le_bytes(bytes)))
}

/// What is known of the run by this time.
fn report(job: &Job, elapsed: Duration, collected: Collected, interval: Duration) -> Report {
    let stuck = collected.stuck();
    let standing = collected.standing.as_ref().filter(|_| collected.has_traced);
    let last = collected.has_ended.then_some(&collected.round);
    Report {
        told_to_end: collected.deaths.told(last),
        paused: standing.and_then(PausedTracing::of),
        program: collected.program,
        command: job.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        mpi: job.mpi.clone(),
        tree: Tree {
            topology: job.leaves.spec(),
            nodes: job.leaves.topology().map_or(0, |tree| tree.node_count().into()),
        },
        hosts: collected.hosts,
        first_lost: collected.first_lost,
        deaths: collected.deaths.section(),
        rounds: collected.rounds,
        standstills: collected.standstills,
        stuck,
        passed: collected.passed,
        stacks: collected.still_stacks.or(collected.stacks),
        elapsed,
        round: collected.round,
        missing: collected.missing,
        uninitialised: collected.uninitialised,
        outdated: collected.outdated,
        intervals: collected.intervals,
        tallies: collected.tallies.told(&collected.rows),
        rows: collected.rows,
        analysis: collected.analysis,
        waits: collected.waits,
        settings: collected.settings,
        tool_ranks: job.in_world.as_ref().map_or(0, InWorld::tools),
        interval,
        ..Report::default()
    }
}

/// Which calls are marks of iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Every {
    calls: NonZeroU32,
    function: FunctionId,
}

impl Every {
    /// As the shim reads it.
    fn variable(self) -> String {
        format!("{}:{}", self.calls, self.function)
    }
}

fn every(text: &str) -> Result<Every, String> {
    let wrong = || format!("'{text}' is not a number and a function, such as 100:MPI_Allreduce");
    let (calls, name) = text.split_once(':').ok_or_else(wrong)?;
    let calls = calls.parse().map_err(|_| wrong())?;
    let function = Function::named(name).ok_or_else(|| format!("MPI has no function '{name}'"))?;
    Ok(Every { calls, function: function.id })
}

/// A file for profile.json; `-` would mix it with the program's output.
pub(crate) fn json_file(text: &str) -> Result<PathBuf, String> {
    if text == "-" {
        return Err("standard output is the program's; name a file, or /dev/fd/N for one that is \
                    open"
            .to_owned());
    }
    Ok(PathBuf::from(text))
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

/// A time between two readings of call stacks, such as `10s`.
fn stacks_interval(text: &str) -> Result<Duration, String> {
    let interval = sapwood_command_line::times::time(text).ok();
    interval.filter(|time| (STACKS_INTERVAL_MIN..=INTERVAL_MAX).contains(time)).ok_or_else(|| {
        format!(
            "a time from {} ms to {} s is needed, such as 10s",
            STACKS_INTERVAL_MIN.as_millis(),
            INTERVAL_MAX.as_secs()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_are_counted_in_calls_of_a_function() {
        let all_reduce = every("100:MPI_Allreduce").expect("a function of MPI");
        let number = Function::named("MPI_Allreduce").expect("every MPI has it").id;
        assert_eq!(all_reduce.variable(), format!("100:{number}"));
        assert!(every("1:MPI_Dance").unwrap_err().contains("no function 'MPI_Dance'"));
        for wrong in ["100", "0:MPI_Barrier", "x:MPI_Barrier", ":"] {
            assert!(every(wrong).unwrap_err().contains("100:MPI_Allreduce"), "{wrong}");
        }
    }

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
