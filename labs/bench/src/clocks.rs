//! `sapwood bench clocks`: how well a tree knows its clocks, beside a front-end that asks every
//! back-end itself.
//!
//! Owns the experiment. All processes run on this machine, whose clock is one: whatever is found
//! between two of them is the error. The direct method is a flat tree of as many back-ends, so that
//! both use the same probes, and only the direction of the question differs.

use std::time::Duration;

use sapwood::{Clocks, Role};
use sapwood_floor::statistics::Spread;

use super::facts::{Bar, Facts, look};
use super::plan::Transport;
use super::progress::Progress;
use super::tree::{builder, leaf_program};
use sapwood_command_line::exit::Failure;

const SCHEMA: &str = "sapwood.bench-clocks/1";

/// How long a wave of questions may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The command line.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The tree.
    #[arg(long, value_name = "SHAPE", default_value = "4x4x4")]
    topology: sapwood::Shape,
    /// Samples of every link, of the tree and of the direct method.
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    samples: u32,
    /// Pairs of runs.
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// What links are made of.
    #[arg(long, value_name = "KIND", default_value = "unix")]
    transport: Transport,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

/// What one run has found of the back-ends' clocks, in microseconds.
struct Found {
    error: f64,
    bound: f64,
    /// Samples that the front-end itself took part in.
    root_samples: f64,
}

/// Measures in pairs.
pub(super) fn measure(arguments: &Arguments) -> Result<Facts, Failure> {
    let back_ends = arguments.topology.back_end_count();
    let flat = sapwood::Shape::flat(back_ends).map_err(Failure::usage)?;
    let title = format!(
        "clocks of {back_ends} back-ends, {} samples of every link of {} sockets",
        arguments.samples, arguments.transport
    );
    let mut facts = Facts::new(SCHEMA, title);
    facts.setting("topology", arguments.topology.to_string());
    facts.setting("samples", arguments.samples);
    let mut progress = Progress::new();
    let (mut tree, mut direct) = (Vec::new(), Vec::new());
    for run in 0..arguments.runs {
        progress.say("clocks", run as usize, arguments.runs as usize);
        tree.push(find(&arguments.topology, arguments)?);
        direct.push(find(&flat, arguments)?);
    }
    let spread = |runs: &[Found], of: fn(&Found) -> f64| {
        let values: Vec<f64> = runs.iter().map(of).collect();
        Spread::of(&values).ok_or_else(|| Failure::own(&"nothing was measured"))
    };
    facts.heading("mean error over the back-ends");
    let error_us = look("through the tree", "us", 2);
    facts.spread("tree.error_us", error_us, &spread(&tree, |found| found.error)?, None);
    let error_us = look("each asked by the front-end", "us", 2);
    facts.spread("direct.error_us", error_us, &spread(&direct, |found| found.error)?, None);
    let pairs = tree.iter().zip(&direct);
    let ratios: Vec<f64> = pairs.map(|(tree, direct)| tree.error / direct.error).collect();
    let ratio = Spread::of(&ratios).ok_or_else(|| Failure::own(&"nothing was measured"))?;
    facts.spread("error_ratio", look("ratio", "", 3), &ratio, Some(Bar::Most(1.0)));
    facts.heading("bounds that are stated, mean over the back-ends");
    let bound_us = look("through the tree", "us", 2);
    facts.spread("tree.bound_us", bound_us, &spread(&tree, |found| found.bound)?, None);
    let bound_us = look("each asked by the front-end", "us", 2);
    facts.spread("direct.bound_us", bound_us, &spread(&direct, |found| found.bound)?, None);
    facts.heading("probes of the front-end");
    let probes = look("through the tree", "", 0);
    facts.number("tree.root_probes", probes, tree[0].root_samples, None);
    let probes = look("each asked by the front-end", "", 0);
    facts.number("direct.root_probes", probes, direct[0].root_samples, None);
    Ok(facts)
}

fn find(shape: &sapwood::Shape, arguments: &Arguments) -> Result<Found, Failure> {
    let mut network = builder(shape, arguments.transport)?.back_end(leaf_program()?).open()?;
    let clocks: Clocks = network.clocks(arguments.samples, TIMEOUT)?;
    let children = network.status(TIMEOUT)?.root().children.len();
    network.close()?;
    if !clocks.unknown.is_empty() {
        return Err(Failure::own(&format!("the clocks of {} are unknown", clocks.unknown)));
    }
    let leaves: Vec<_> = clocks.known.iter().filter(|clock| clock.role == Role::BackEnd).collect();
    if let Some(wrong) = leaves.iter().find(|clock| clock.ahead.unsigned_abs() > clock.error) {
        return Err(Failure::own(&format!("a bound does not hold: {wrong:?}")));
    }
    let mean = |values: &mut dyn Iterator<Item = u64>| {
        values.map(|value| value as f64 / 1e3).sum::<f64>() / leaves.len().max(1) as f64
    };
    Ok(Found {
        error: mean(&mut leaves.iter().map(|clock| clock.ahead.unsigned_abs())),
        bound: mean(&mut leaves.iter().map(|clock| clock.error)),
        root_samples: (children as u64 * u64::from(arguments.samples)) as f64,
    })
}
