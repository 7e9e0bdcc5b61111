//! `sapwood mpi attach`: watches a job that runs already, and that was started with the shim
//! preloaded but without `sapwood mpi`.
//!
//! The ranks of this host are found by their tables (`presence`); the leaves map these as they do
//! those that are handed to them, so that rounds and report are the same. The ranks notice nothing,
//! as tables are only read, until `sapwood mpi control` changes what they count; `attached_pages`
//! says whether it can. The report is written when all ranks have ended, or when the user ends this
//! command; the job runs on then.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood::RankSet;
use sapwood_command_line::exit::{Failure, complain};
use sapwood_hosts::signals::Signals;
use sapwood_launch::{Signal, has_ended};
use sapwood_profile::{MPICH_ABI, OPENMPI_ABI, STANDARD_ABI};
use sapwood_report::ranks_text;

use super::Arguments;
use super::attached_pages::AttachedPages;
use super::collection::Collection;
use super::control::ControlChannel;
use super::control::channel::ControlQueue;
use super::events_folder;
use super::job::Job;
use super::leaves::{Leaves, Wishes};
use super::linkage::Abi;
use super::outputs::Outputs;
use super::page::RunPage;
use super::presence::{Attachable, kept_table, processes};
use super::screen::Screen;
use super::stacks::StackWatch;
use super::standing::Deadline;
use super::watch::{End, QUIET_INTERVAL, Views};

/// The word after `sapwood mpi` that means this.
pub(crate) const ATTACH: &str = "attach";

/// Watch a running job that was started with the shim preloaded.
#[derive(clap::Parser)]
#[command(name = "sapwood mpi attach", bin_name = "sapwood mpi attach")]
struct AttachArguments {
    /// The launcher of the job, or one of its ranks, by process number.
    #[arg(value_name = "JOB", value_parser = clap::value_parser!(i32).range(1..))]
    job: Option<i32>,
    /// Watch the job of this rank, given by its process number.
    #[arg(long, value_name = "N", conflicts_with = "job",
          value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// Watch the job that runs this program.
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Time between two rounds.
    #[arg(long, value_name = "TIME", value_parser = super::interval)]
    interval: Option<Duration>,
    /// Time between two readings of all ranks' call stacks; none by default.
    #[arg(long, value_name = "TIME", value_parser = super::stacks_interval)]
    stacks: Option<Duration>,
    /// Name the ranks that are the reason when others have waited in one call for this time;
    /// 'never' or 0 for not at all [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = Deadline::read)]
    deadline: Option<Deadline>,
    /// Write profile.json, ranks.parquet and report.txt to this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write profile.json to this file.
    #[arg(long, value_name = "FILE", value_parser = super::json_file)]
    json: Option<PathBuf>,
    /// Print no table, neither while the program runs nor at its end.
    #[arg(short, long)]
    quiet: bool,
}

/// Ranks that belong together.
struct Found {
    ranks: BTreeMap<u32, Attachable>,
    /// What has started them.
    parent: i32,
}

/// What the loop looks at beside the tree.
struct Watching {
    signals: Signals,
    requests: ControlQueue,
    pages: AttachedPages,
    /// The ranks that have not ended.
    left: Vec<OwnedFd>,
}

/// Its command line.
pub(crate) fn command_line() -> clap::Command {
    <AttachArguments as clap::CommandFactory>::command()
}

/// Watches a running job until it ends or the user has seen enough. The words are those from
/// `attach` on; options before it are in `shared`.
///
/// # Errors
/// [`Failure`] when there is no such job, or the tree does not start.
pub(crate) fn run(shared: &Arguments, words: &[OsString]) -> Result<ExitCode, Failure> {
    use clap::Parser;
    let own = match AttachArguments::try_parse_from(words) {
        Ok(own) => own,
        Err(error) => {
            return sapwood_command_line::arguments::explained::<()>(&error, "sapwood mpi attach")
                .map(|_| ExitCode::SUCCESS);
        }
    };
    if shared.every.is_some() {
        return Err(Failure::usage(
            "--every is for a program that is started here; set SAPWOOD_MPI_EVERY for a job that \
             'attach' is to watch: see docs/environment.md",
        ));
    }
    if shared.events_folder.is_some() {
        return Err(Failure::usage(
            "--events-folder is for a program that is started here: this one has begun to record \
             in its memory",
        ));
    }
    if let Some(option) = started_only(shared) {
        return Err(Failure::usage(format!(
            "{option} is for a program that is started here, and has no effect on one that runs; \
             omit {option}"
        )));
    }
    let mut arguments = shared.clone();
    arguments.interval = own.interval.unwrap_or(shared.interval);
    arguments.stacks = own.stacks.or(shared.stacks);
    arguments.deadline = own.deadline.unwrap_or(shared.deadline);
    arguments.out = own.out.clone().or(arguments.out);
    arguments.json = own.json.clone().or(arguments.json);
    arguments.quiet |= own.quiet;
    let found = find(&own)?;
    let job = job_of(&found, &arguments)?;
    let mut outputs = Outputs::prepare(&arguments)?;
    // Kept open, whether or not a thread asks through it.
    let (control, requests) = ControlChannel::open()?;
    let mut page = RunPage::open(&arguments.page, &job.command, Some(control.clone()))?;
    let screen = Screen::choose(&arguments, &job.command);
    let views = Views { screen, outputs: &mut outputs, page: &mut page, listener: None };
    let observed = observe(&job, found, &arguments, views, requests);
    if observed.is_err() {
        outputs.abandon();
    }
    let (end, collected) = observed?;
    super::conclude(&job, end.elapsed, collected, (&mut outputs, &mut page), &arguments);
    page.end("the ranks have ended, or this command has");
    Ok(ExitCode::SUCCESS)
}

/// An option before `attach` that means nothing for ranks which run already, if there is one.
fn started_only(shared: &Arguments) -> Option<&'static str> {
    let options = [
        (shared.ranks.is_some(), "--ranks"),
        (shared.in_world.is_some(), "--in-world"),
        (shared.mpi.is_some(), "--mpi"),
        (!shared.reaching.hosts.is_empty(), "--hosts"),
    ];
    options.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
}

/// The job that is meant.
fn find(own: &AttachArguments) -> Result<Found, Failure> {
    let mut jobs: BTreeMap<(i32, u32), Found> = BTreeMap::new();
    for one in Attachable::all() {
        let parent = parent_of(one.process).unwrap_or(0);
        let job = jobs.entry((parent, one.world_size));
        let job = job.or_insert_with(|| Found { ranks: BTreeMap::new(), parent });
        job.ranks.insert(one.world_rank, one);
    }
    let is_meant = |found: &Found| {
        let has = |process: i32| {
            is_below(found.parent, process)
                || found.ranks.values().any(|rank| rank.process == process)
        };
        let runs = |name: &String| found.ranks.values().any(|rank| rank.program == *name);
        own.job.or(own.pid).is_none_or(has) && own.program.as_ref().is_none_or(runs)
    };
    let mut meant: Vec<Found> = jobs.into_values().filter(is_meant).collect();
    match meant.len() {
        0 => Err(Failure::usage(why_none(own))),
        1 => Ok(meant.remove(0)),
        _ => {
            let told = meant.iter().filter_map(|found| {
                let first = found.ranks.values().next()?;
                Some(format!("{} ({}, {} ranks)", found.parent, first.program, first.world_size))
            });
            let told = told.collect::<Vec<_>>().join(", ");
            Err(Failure::usage(format!("several jobs run: {told}; give the process number of one")))
        }
    }
}

/// Why no job was found. Ranks that keep their counts in a folder have no table in memory, by which
/// they would be found.
fn why_none(own: &AttachArguments) -> String {
    let is_meant = |process: i32| {
        let parent = || parent_of(process).unwrap_or(0);
        own.job.or(own.pid).is_none_or(|job| process == job || is_below(parent(), job))
    };
    let mut keeping = processes().filter(|&process| is_meant(process));
    let kept = keeping.find_map(|process| kept_table(process).map(|table| (process, table)));
    let Some((process, table)) = kept else {
        return "no such job runs on this host; a job to attach to is started with the shim of its \
                MPI in LD_PRELOAD: see docs/stacks.md"
            .to_owned();
    };
    let folder = table.parent().unwrap_or(&table).display();
    format!(
        "process {process} was started with {}, and so keeps its counts and calls in '{folder}', \
         where 'attach' does not read them; 'sapwood trace why --from {folder}' reads the calls; a \
         job to attach to is started without that variable",
        events_folder::VARIABLE
    )
}

/// Whether a process is another one, or was started by it.
fn is_below(process: i32, above: i32) -> bool {
    process == above || parent_of(process) == Some(above)
}

/// The parent of a process.
fn parent_of(process: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// The job as it would have been read from its command.
fn job_of(found: &Found, arguments: &Arguments) -> Result<Job, Failure> {
    let first = found.ranks.values().next().expect("a job has a rank");
    let wishes = Wishes {
        ranks_per_leaf: arguments.ranks_per_leaf.map(u32::from),
        fan_out: arguments.fan_out.into(),
        topology: arguments.topology.as_ref(),
        is_guess: false,
    };
    let abi = match first.abi {
        OPENMPI_ABI => Abi::OpenMpi,
        MPICH_ABI => Abi::Mpich,
        STANDARD_ABI => Abi::Standard,
        other => {
            return Err(Failure::own(&format_args!(
                "the ranks have the library of another release in them: it names the MPI by {other}"
            )));
        }
    };
    let command = fs::read(format!("/proc/{}/cmdline", found.parent)).unwrap_or_default();
    let words = command.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    let mut programs: Vec<&str> = found.ranks.values().map(|one| one.program.as_str()).collect();
    programs.dedup();
    let command = words.map(|word| String::from_utf8_lossy(word).into_owned().into()).collect();
    let leaves = Leaves::plan(first.world_size, &wishes).map_err(Failure::usage)?;
    let processes = found.ranks.values().map(|rank| rank.process.to_string());
    let processes = processes.collect::<Vec<_>>().join(",");
    let adopt = [leaves.ranks_per_leaf.to_string(), leaves.count.to_string(), processes];
    let mut job = Job::running(leaves, adopt);
    job.command = command;
    job.program = programs.join(", ");
    abi.name().clone_into(&mut job.mpi);
    job.ranks = Some(first.world_size);
    Ok(job)
}

/// A line for the user if not all ranks of a job were found on this host. Why is not known.
fn absent_line(world_size: u32, found: &RankSet) -> Option<String> {
    let absent = RankSet::range(0, world_size.checked_sub(1)?).difference(found.as_ref());
    let reasons = match absent.len() {
        0 => return None,
        1 => "it has ended, has not called MPI_Init, runs without the shim, or is on another host",
        _ => {
            "they have ended, have not called MPI_Init, run without the shim, or are on other hosts"
        }
    };
    Some(format!(
        "not found on this host: {} of {world_size}; {reasons}: 'attach' watches the ranks of its \
         own host only; start it on each host, or the job under 'sapwood mpi'",
        ranks_text(&absent.to_string())
    ))
}

/// From the start of the tree until all ranks have ended, or the user ends it.
fn observe(
    job: &Job,
    found: Found,
    arguments: &Arguments,
    mut views: Views<'_>,
    requests: ControlQueue,
) -> Result<(End, super::Collected), Failure> {
    let base = super::base_name()?;
    // Before there are leaves: these write pages as soon as the settings say so.
    let mut pages = AttachedPages::of(&found.ranks);
    let mut collection = Collection::open(job, &base, arguments, None)?;
    pages.follow(&mut collection.guidance.settings);
    collection.guidance.begin_late();
    let here: RankSet = found.ranks.keys().copied().collect();
    if let Some(line) = absent_line(job.ranks.unwrap_or(0), &here) {
        complain(line);
    }
    if let Some(line) = pages.switched_off_line() {
        complain(line);
    }
    if arguments.waits && !collection.guidance.settings.is_tracing {
        complain(
            "the ranks do not record their calls; waits are measured once 'sapwood mpi control \
             --tracing on' has them do so",
        );
    }
    let left = found.ranks.into_values().map(|rank| rank.pidfd).collect();
    let signals = Signals::take_all_over().map_err(|error| Failure::own(&error))?;
    let mut watching = Watching { signals, requests, pages, left };
    for descriptor in watching.signals.descriptors() {
        collection.watch(descriptor)?;
    }
    collection.watch(&watching.requests)?;
    for pidfd in &watching.left {
        // One that is not watched is looked at in each interval.
        let _ = collection.watch(pidfd.as_fd());
    }
    views.watch(&mut collection)?;
    let started = Instant::now();
    views.outputs.begin();
    let is_detached = until_end(job, &mut collection, &mut watching, arguments, &mut views)?;
    let elapsed = started.elapsed();
    views.close(&mut collection);
    for pidfd in &watching.left {
        let _ = collection.unwatch(pidfd.as_fd());
    }
    if is_detached && !arguments.quiet {
        complain("detached; the job runs on");
    }
    Ok((End::attached(elapsed), collection.finish_at(elapsed, (!is_detached).then_some(0))))
}

/// Whether the user has ended it before the job did.
fn until_end(
    job: &Job,
    collection: &mut Collection,
    watching: &mut Watching,
    arguments: &Arguments,
    views: &mut Views<'_>,
) -> Result<bool, Failure> {
    let mut stacks = StackWatch::new(arguments.stacks, collection);
    let started = Instant::now();
    let mut last = None;
    loop {
        let interval = collection.guidance.settings.interval;
        let pause = interval.unwrap_or(QUIET_INTERVAL);
        let next = last.map_or(started, |last: Instant| last + pause);
        let wait = stacks.wait(next.saturating_duration_since(Instant::now()));
        let wait = collection.wait_for_scopes(wait);
        collection.turn(wait)?;
        if watching.signals.take().into_iter().any(ends_watch) {
            return Ok(true);
        }
        views.outputs.serve();
        if views.screen.react() {
            views.close(collection);
        }
        let elapsed = started.elapsed();
        let (has_come, line) = collection.take(elapsed);
        if has_come {
            views.show(job, collection, elapsed, interval);
        }
        let is_verdict = views.tell_news(collection, elapsed);
        let places = stacks.step(collection, elapsed, line.is_some() || is_verdict).lines;
        for record in collection.take_iterations(elapsed) {
            views.outputs.append(&record);
        }
        collection.serve_requests(&mut watching.requests, elapsed);
        // The table in place has it already. That ranks do not come is said in quiet runs, too.
        let is_said = !views.screen.is_in_place();
        let unjudged = collection.result.standstills.take_unjudged();
        let places = places.into_iter().filter(|_| !arguments.quiet);
        for line in line.into_iter().chain(unjudged).chain(places).filter(|_| is_said) {
            complain(line);
        }
        drop_ended(&mut watching.left, collection);
        if watching.left.is_empty() {
            return Ok(false);
        }
        let now = Instant::now();
        if now >= next {
            watching.pages.follow(&mut collection.guidance.settings);
            match interval {
                Some(_) => collection.ask(elapsed),
                None => collection.guidance.ask(elapsed),
            }
            // A round that was slept through is not made up for.
            last = Some(if now > next + pause { now } else { next });
        }
    }
}

/// Whether the user ends the watch by a signal.
fn ends_watch(signal: Signal) -> bool {
    matches!(signal, Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT)
}

/// Forgets the ranks that have ended.
fn drop_ended(left: &mut Vec<OwnedFd>, collection: &mut Collection) {
    left.retain(|pidfd| {
        let is_over = has_ended(pidfd.as_fd());
        if is_over {
            let _ = collection.unwatch(pidfd.as_fd());
        }
        !is_over
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_are_not_found_on_this_host_are_named_with_what_may_be_the_reason() {
        let line = |size, here: &str| absent_line(size, &here.parse().expect("ranks"));
        assert_eq!(line(4, "0-3"), None);
        let told = line(4, "0,2").expect("two are absent");
        let begin = "not found on this host: ranks 1,3 of 4; they have ended, have not called \
                     MPI_Init, run without the shim, or are on other hosts: 'attach' ";
        assert!(told.starts_with(begin), "{told}");
        let told = line(4, "0-2").expect("one is absent");
        let begin = "not found on this host: rank 3 of 4; it has ended, has not called MPI_Init, ";
        assert!(told.starts_with(begin), "{told}");
    }
}
