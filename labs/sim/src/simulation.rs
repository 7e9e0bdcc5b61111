//! `sapwood sim`: many simulated runs of the real nodes, or one of them told event by event.
//!
//! Owns the command line, the threads that share the seeds out, and what is printed. What a run is
//! and what it must keep is the crate `sapwood-sim`'s.

mod report;

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sapwood_sim::{Expect, Faults, Options, Outcome, Rule, Violation};

use crate::{group, scale};
use report::{Progress, Report};
use sapwood_command_line::exit::{Failure, print};

/// Some run broke a rule.
const VIOLATED: u8 = 1;

/// Trees of real nodes on a virtual clock, with faults and an oracle, or their cost
#[derive(clap::Parser)]
#[command(name = "sapwood-sim", version, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    study: Option<Study>,
    /// Number of seeds to run, each with one schedule of faults.
    #[arg(long, value_name = "N", conflicts_with = "seed")]
    seeds: Option<u64>,
    /// The first seed.
    #[arg(long, value_name = "S", default_value_t = 0, conflicts_with = "seed")]
    first: u64,
    /// Run only this seed.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Kinds of faults: all, none, or some of crash,stop,reset,partition,slow,join,deaf,lag.
    #[arg(long, value_name = "LIST", default_value = "all")]
    faults: Faults,
    /// Stop after this number of seconds, even if seeds are left.
    #[arg(long, value_name = "T")]
    seconds: Option<u64>,
    /// Print what happens in the run, one line per event; with --seed.
    #[arg(long, requires = "seed")]
    log: bool,
    /// Check only that losses are named, as for nodes without recovery.
    #[arg(long)]
    no_recovery: bool,
    /// Print one JSON object instead of text.
    #[arg(long, conflicts_with = "log")]
    json: bool,
}

/// What else is simulated.
#[derive(clap::Subcommand)]
enum Study {
    /// Show how a tree grows: up to a million back-ends without faults, against flat.
    Scale(scale::Arguments),
    /// Measure a group of peers on a modelled network, all trees beside each other.
    Group(group::Arguments),
}

/// How many seeds are run unless told otherwise.
const SEEDS: u64 = 1000;

/// Runs the seeds and says what came of them.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.study {
        Some(Study::Scale(study)) => return scale::run(study),
        Some(Study::Group(study)) => return group::run(study),
        None => {}
    }
    let (first, count) = match arguments.seed {
        Some(seed) => (seed, 1),
        None => (arguments.first, arguments.seeds.unwrap_or(SEEDS)),
    };
    if count == 0 || first.checked_add(count).is_none() {
        return Err(Failure::usage("--seeds must be at least 1 and end below 2^64"));
    }
    let usual = Options::default();
    let expect = if arguments.no_recovery { Expect::Losses } else { usual.expect };
    let options = Options { faults: arguments.faults, expect, log: arguments.log, ..usual };
    let limit = arguments.seconds.map(Duration::from_secs);
    let report = run_all(first, count, limit, &options);
    print(&if arguments.json { report.to_json() } else { report.to_text() })?;
    let is_clean = report.violated() == 0;
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::from(VIOLATED) })
}

/// Shares the seeds out to as many threads as there are cores.
fn run_all(first: u64, count: u64, limit: Option<Duration>, options: &Options) -> Report {
    let begin = Instant::now();
    let next = AtomicU64::new(first);
    let is_over = AtomicBool::new(false);
    let report = Mutex::new(Report::new(first, options));
    let progress = Progress::new(count);
    let workers = thread::available_parallelism().map_or(1, usize::from).min(count as usize);
    // A fault in a node's code is a finding of the run, not the end of the command.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count || is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let outcome = run_one(seed, options);
                    let mut report = report.lock().unwrap_or_else(|broken| broken.into_inner());
                    report.add(outcome);
                    progress.show(&report);
                    if limit.is_some_and(|limit| begin.elapsed() >= limit) {
                        is_over.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    panic::set_hook(hook);
    drop(progress);
    let mut report = report.into_inner().unwrap_or_else(|broken| broken.into_inner());
    report.seconds = begin.elapsed().as_secs_f64();
    report
}

fn run_one(seed: u64, options: &Options) -> Outcome {
    panic::catch_unwind(AssertUnwindSafe(|| sapwood_sim::run(seed, options))).unwrap_or_else(
        |payload| {
            let words = payload.downcast_ref::<&str>().copied().map(String::from);
            let words = words.or_else(|| payload.downcast_ref::<String>().cloned());
            let text = words.unwrap_or_else(|| String::from("no reason given"));
            let violation = Violation { rule: Rule::Panic, at: 0, text };
            Outcome { seed, violations: vec![violation], ..Outcome::default() }
        },
    )
}
