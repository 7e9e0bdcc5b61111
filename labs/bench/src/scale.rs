//! `sapwood bench scale`: how much one machine can hold.
//!
//! Owns the command line and the order of three experiments: very many back-ends (`connect`), very
//! many streams (`streams`), and very deep trees (`depth`). None of them is compared with the
//! floor, which has nothing of the kind; they are measured against bars of their own.

use std::time::Duration;

use super::facts::Facts;
use super::plan::Transport;
use super::progress::Progress;
use super::{connect, depth, streams};
use sapwood_command_line::exit::Failure;

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.bench-scale/1";

/// Longest wait for anything in these experiments.
pub(super) const DEADLINE: Duration = Duration::from_secs(120);

/// Communication processes between the front-end and the back-ends, unless a topology is named.
const COMMUNICATION_PROCESSES: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Experiment {
    Connect,
    Streams,
    Depth,
}

/// The command line.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Back-ends, all connected at once; many of them live in one process.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    back_ends: u32,
    /// Fan-out of each level of their tree, such as 100x100; ten communication processes unless
    /// given. Its leaves are the back-ends.
    #[arg(long, value_name = "SHAPE")]
    topology: Option<String>,
    /// Most back-ends in one process.
    #[arg(long, value_name = "N", default_value_t = 2_500)]
    per_process: u32,
    /// Waves over all back-ends.
    #[arg(long, value_name = "N", default_value_t = 50)]
    waves: u64,
    /// Shuffles the order in which back-ends attach; 0 for the order of their ranks.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// What links are made of.
    #[arg(long, value_name = "KIND", default_value = "unix")]
    transport: Transport,
    /// Streams that are open at once.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    streams: u32,
    /// Levels of the deepest tree.
    #[arg(long, value_name = "N", default_value_t = 10)]
    depth: u32,
    /// Only these experiments, separated by commas; all unless given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Experiment>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

/// Measures what is asked for.
pub(super) fn measure(arguments: &Arguments) -> Result<Facts, Failure> {
    let wants = |experiment| arguments.only.is_empty() || arguments.only.contains(&experiment);
    let plan = connect_plan(arguments)?;
    within("--streams", arguments.streams.into(), streams::STREAMS_MAX.into())?;
    within("--depth", arguments.depth.into(), depth::DEPTH_MAX.into())?;
    let mut facts = Facts::new(SCHEMA, format!("scale, links of {} sockets", plan.transport));
    facts.setting("transport", plan.transport.to_string());
    let mut progress = Progress::new();
    if wants(Experiment::Connect) {
        connect::measure(&plan, &mut facts, &mut progress)?;
    }
    if wants(Experiment::Streams) {
        let transport = arguments.transport;
        streams::measure(arguments.streams, transport, &mut facts, &mut progress)?;
    }
    if wants(Experiment::Depth) {
        depth::measure(arguments.depth, arguments.transport, &mut facts, &mut progress)?;
    }
    Ok(facts)
}

fn connect_plan(arguments: &Arguments) -> Result<connect::Plan, Failure> {
    let spec = match &arguments.topology {
        Some(spec) => spec.clone(),
        None if arguments.back_ends.is_multiple_of(COMMUNICATION_PROCESSES) => {
            format!("{COMMUNICATION_PROCESSES}x{}", arguments.back_ends / COMMUNICATION_PROCESSES)
        }
        None => {
            return Err(Failure::usage(format!(
                "--back-ends {}: give a multiple of {COMMUNICATION_PROCESSES}, or --topology",
                arguments.back_ends
            )));
        }
    };
    within("--per-process", arguments.per_process.into(), 1 << 20)?;
    within("--waves", arguments.waves, 1 << 20)?;
    let shape: sapwood::Shape = spec.parse().map_err(Failure::usage)?;
    Ok(connect::Plan {
        shape,
        spec,
        per_process: arguments.per_process,
        waves: arguments.waves,
        seed: arguments.seed,
        transport: arguments.transport,
    })
}

fn within(name: &str, value: u64, most: u64) -> Result<(), Failure> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(Failure::usage(format!("{name} {value}: give a number from 1 to {most}")))
}
