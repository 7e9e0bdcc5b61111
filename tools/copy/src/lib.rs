//! `sapwood copy`: files and folders to every host of a set, and back into a folder for each host.
//!
//! Owns the command line and the order of things. `scan` finds out what there is, `manifest` is the
//! list of it, `source` reads and `receiver` writes, the latter through `store`, whose files are
//! `held`; `agent` is the process on each host, `conductor` the front-end with `push` or `gather`
//! as its own half, `protocol` what they say to each other, `blocks` how they know that they mean
//! the same. `plan` chooses the tree. docs/copy.md describes it for users.

pub mod agent;
mod blocks;
mod conductor;
mod gather;
mod held;
mod manifest;
mod plan;
mod progress;
mod protocol;
mod push;
mod receiver;
mod report;
mod results;
mod scan;
mod source;
mod store;
#[cfg(test)]
mod tests;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood::{Network, Recovery};

use self::conductor::{Conductor, Work};
use self::gather::Gather;
use self::progress::{Bar, bytes};
use self::protocol::{Order, Terms};
use self::push::Push;
use self::report::Summary;
use self::results::Results;
use self::scan::{Found, Scan};
use self::source::Source;
use sapwood_command_line::exit::{Failure, by_signal, print};
use sapwood_command_line::times::time;
use sapwood_hosts::deploy::{self, Opened, Targets};
use sapwood_hosts::measured::Measured;
use sapwood_hosts::selection::{Reach, Selection};
use sapwood_hosts::signals::Signals;
use sapwood_hosts::tree::Purpose;

/// How long the others wait for a host whose parent in the tree is gone: an agent that lives
/// finds another one much sooner.
const GRACE: Duration = Duration::from_secs(5);

/// Copies files and folders to hosts, or from them.
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 if every host has every file; 1 if something could not be \
                        copied; 255 if a host could not be reached or was lost, 128+n for signal \
                        n, 125 for a failure of Sapwood itself.")]
pub struct Arguments {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    reach: Reach,
    /// Copy files from the hosts: SOURCE of each host goes to DEST/HOST/.
    #[arg(long, visible_alias = "rcopy")]
    gather: bool,
    /// Give the copy the name DEST, even if a folder of that name exists.
    #[arg(short = 'T', long = "no-target-directory", conflicts_with = "gather")]
    exact: bool,
    /// Replace %h or %host, %n or %rank, %u or %user, and %% in the paths on the hosts.
    #[arg(long)]
    substitute: bool,
    /// Keep user and group IDs, and the set-user-ID and set-group-ID bits; requires root.
    #[arg(long)]
    owner: bool,
    /// Call fsync on each file before it is renamed into place.
    #[arg(long)]
    fsync: bool,
    /// Do not resume an earlier interrupted copy, and keep nothing if this one is interrupted.
    #[arg(long)]
    no_resume: bool,
    /// Do not encrypt the files on their way; others on the network can read and change them.
    #[arg(long)]
    no_encryption: bool,
    /// Treat a host as missing if it sends nothing for this time.
    #[arg(long, value_name = "SECONDS", value_parser = time, default_value = "30")]
    stall_timeout: Duration,
    /// Accept up to N missing hosts.
    #[arg(long, alias = "quorum", value_name = "N", default_value_t = 0)]
    missing_max: usize,
    /// Print one JSON object at the end.
    #[arg(long, conflicts_with_all = ["quiet", "dry_run"])]
    json: bool,
    /// Print errors only: neither progress nor what is skipped.
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Print the tree and what would be copied, and copy nothing.
    #[arg(long)]
    dry_run: bool,
    /// Files and folders to copy, then their destination.
    #[arg(required = true, num_args = 2.., value_names = ["SOURCE", "DEST"])]
    paths: Vec<PathBuf>,
}

/// Which way it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Push,
    Gather,
}

impl Arguments {
    fn direction(&self) -> Direction {
        if self.gather { Direction::Gather } else { Direction::Push }
    }

    fn sources(&self) -> &[PathBuf] {
        self.paths.split_last().map_or(&[], |(_, sources)| sources)
    }

    fn destination(&self) -> &Path {
        self.paths.last().map_or(Path::new(""), PathBuf::as_path)
    }

    fn terms(&self) -> Terms {
        let ends_in_slash = self.destination().as_os_str().as_bytes().ends_with(b"/");
        Terms {
            is_into: !self.exact && (self.sources().len() > 1 || ends_in_slash),
            is_exact: self.exact,
            keeps_owner: self.owner,
            syncs: self.fsync,
            is_anew: self.no_resume,
        }
    }
}

/// What the front-end needs for its half.
struct Task {
    names: Vec<Vec<u8>>,
    /// What is pushed.
    found: Option<Found>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let targets = Targets::of(arguments.selection.resolve()?)?;
    let task = prepare(arguments)?;
    let mut reach = arguments.reach.clone();
    if reach.tree.names_switches() {
        return Err(Failure::usage(
            "--switches: the tree of a copy is chosen by the amount of data; omit it, or give \
             --shape instead",
        ));
    }
    let data_bytes = task.found.as_ref().map_or(0, |found| found.manifest.data_bytes());
    let launch_method = reach.launching.launch_method();
    let fan_out = reach.tree.or_fan_out(|| {
        let links = Measured::for_hosts(&targets.set, launch_method);
        plan::fan_out_for(targets.count(), data_bytes, plan::Costs::of(&links))
    });
    let mut plan = deploy::plan(&targets, &reach, Purpose::Kept, agent::AGENT)?;
    plan.builder = plan.builder.recovery(Recovery { grace: GRACE, ..Recovery::default() });
    if arguments.no_encryption {
        plan.builder = plan.builder.encryption(false);
    }
    if arguments.dry_run {
        print(&format!("{}{}\n", plan.text(&targets)?, describe(arguments, &task)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let refused = |error| Failure::own(&format!("cannot handle signals: {error}"));
    let signals = Signals::take_over().map_err(refused)?;
    plan.launching.announce(&plan.builder);
    let (mut network, signals) = match deploy::open(plan.builder, signals)? {
        Opened::Tree(network, signals) => (*network, signals),
        Opened::Stopped(signal) => return Ok(deploy::stopped(signal)),
    };
    let code = conduct(arguments, task, fan_out, &mut network, targets, signals);
    let closed = network.close();
    let code = code?;
    closed?;
    Ok(ExitCode::from(code))
}

/// Finds out what is pushed, or checks what is gathered.
fn prepare(arguments: &Arguments) -> Result<Task, Failure> {
    let mut names = Vec::new();
    for source in arguments.sources() {
        let meant = match arguments.direction() {
            // The folder in which we are has a name, too.
            Direction::Push if source.file_name().is_none() => source.canonicalize().ok(),
            _ => Some(source.clone()),
        };
        let name = meant.as_deref().and_then(agent::name_of).ok_or_else(|| {
            Failure::usage(format!(
                "{}: cannot derive a name for the copy; give a path that ends in a name",
                source.display()
            ))
        })?;
        if names.contains(&name) {
            let name = String::from_utf8_lossy(&name).into_owned();
            return Err(Failure::usage(format!(
                "two sources have the name '{name}'; copy them separately"
            )));
        }
        names.push(name);
    }
    if arguments.direction() == Direction::Gather {
        return Ok(Task { names, found: None });
    }
    for source in arguments.sources() {
        std::fs::metadata(source).map_err(|error| {
            Failure::usage(format!("{}: {}", source.display(), scan::words(&error)))
        })?;
    }
    let mut scan = Scan::new(arguments.sources().to_vec());
    while scan.step() {}
    let found = scan.found;
    if found.manifest.entries().is_empty() {
        let why = found.complaints.first.first();
        let why = why.map(|why| format!("{}: {}", why.path, why.reason));
        let why = why.or_else(|| found.complaints.left_out.first().cloned());
        let why = why.unwrap_or_else(|| "there is nothing to copy".to_string());
        return Err(Failure::usage(why));
    }
    Ok(Task { names, found: Some(found) })
}

fn describe(arguments: &Arguments, task: &Task) -> String {
    let sources: Vec<String> =
        arguments.sources().iter().map(|source| source.display().to_string()).collect();
    let (sources, destination) = (sources.join(" "), arguments.destination().display());
    match &task.found {
        Some(found) => {
            let manifest = &found.manifest;
            let files = manifest.entries().iter().filter(|it| it.content().is_some()).count();
            let amount = bytes(manifest.data_bytes());
            format!("copy: {sources} to {destination}: {files} files, {amount}")
        }
        None => format!("gather: {sources} to {destination}/HOST/"),
    }
}

/// What the agents are told, but for the stream.
fn order(arguments: &Arguments, task: &Task, targets: &Targets) -> Order {
    let path = |path: &Path| path.as_os_str().as_bytes().to_vec();
    Order {
        gathers: arguments.gather,
        hosts: targets.set.to_string(),
        substitutes: arguments.substitute,
        sources: match arguments.gather {
            true => arguments.sources().iter().map(|source| path(source)).collect(),
            false => task.names.clone(),
        },
        destination: path(arguments.destination()),
        terms: arguments.terms(),
        data: 0,
    }
}

/// Copies in a network whose back-ends are agents, one for each name.
fn conduct(
    arguments: &Arguments,
    task: Task,
    fan_out: u32,
    network: &mut Network,
    targets: Targets,
    signals: Signals,
) -> Result<u8, Failure> {
    let begun = Instant::now();
    let names: Vec<String> = targets.set.iter().collect();
    let absent = targets.absent_from(network);
    let terms = arguments.terms();
    let order = order(arguments, &task, &targets);
    let bar = Bar::new(!arguments.quiet && !arguments.json);
    let planned = task.found.as_ref().map(|found| {
        let files = found.manifest.entries().iter().filter(|it| it.content().is_some()).count();
        (files as u64, found.manifest.data_bytes())
    });
    let mut summary = Summary {
        own: task.found.as_ref().map(|found| found.complaints.clone()).unwrap_or_default(),
        planned,
        sent_bytes: 0,
        time: Duration::ZERO,
        fan_out,
        is_watched: bar.is_shown(),
    };
    let mut results = Results::new(names.clone(), begun);
    for (ranks, reason) in &absent {
        results.lose(ranks, reason);
    }
    if results.is_complete() {
        let code = results.exit_code(arguments.missing_max, &summary.own);
        report::write(&results, arguments, &summary, code)?;
        return Ok(code);
    }
    let work = |data| match task.found {
        Some(found) => Work::Push(Box::new(Push::begin(Source::new(found), data))),
        None => {
            let destination = arguments.destination().to_path_buf();
            let (own, by_host) = (task.names, arguments.substitute);
            Work::Gather(Box::new(Gather::begin(data, names, own, destination, terms, by_host)))
        }
    };
    let stall_limit = arguments.stall_timeout;
    let mut conductor = Conductor::begin(network, order, results, signals, stall_limit, bar, work)?;
    let ended_by = conductor.run()?;
    match &conductor.work {
        Work::Push(push) => {
            summary.own = push.source.found.complaints.clone();
            (summary.sent_bytes, _) = push.source.said();
        }
        Work::Gather(gather) => summary.sent_bytes = gather.taken_bytes(),
    }
    summary.time = begun.elapsed();
    let results = conductor.into_results();
    let code = match ended_by {
        Some(signal) => by_signal(signal),
        None => results.exit_code(arguments.missing_max, &summary.own),
    };
    report::write(&results, arguments, &summary, code)?;
    Ok(code)
}
