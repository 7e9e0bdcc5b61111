//! `sapwood bench recovery`: how soon a tree is whole again, and that no wave is lost or doubled.
//!
//! Owns the command line, the series of faults and what is said of them. A series kills, or stops,
//! one inner process after another under a flow of sums at full rate; `stricken` has the tree that
//! this is done to, `oracle` the account of its waves, and `overhead` what all this costs while
//! nothing fails.

use std::time::Duration;

use sapwood_floor::statistics::Spread;
use sapwood_random::Random;

use super::facts::{Bar, Facts, look};
use super::failing_tree::{FailingTree, Fault, Terms};
use super::oracle::Fates;
use super::overhead;
use super::plan::Transport;
use super::progress::Progress;
use sapwood_command_line::exit::Failure;

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.bench-recovery/1";

/// Whole again after a closed connection, in milliseconds.
const AFTER_KILL_MS: f64 = 50.0;
/// How much longer it may be after a silence than the silence that is allowed.
const AFTER_SILENCE_MS: f64 = 50.0;

const STRIKES_MAX: usize = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Experiment {
    Kill,
    Stop,
    Overhead,
}

/// The command line.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Inner processes that are killed, one after another.
    #[arg(long, value_name = "N", default_value_t = 200)]
    kills: usize,
    /// Inner processes that are stopped and, once the tree is whole again, resumed.
    #[arg(long, value_name = "N", default_value_t = 20)]
    stops: usize,
    /// Fan-out of each level: at least two, and at most 2040 back-ends.
    #[arg(long, value_name = "SHAPE", default_value = "4x4x4")]
    topology: String,
    /// Silence limit in milliseconds: a stopped process counts as gone after it.
    #[arg(long, value_name = "MS", default_value_t = 300)]
    silence_ms: u64,
    /// Draws which process fails.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// What links are made of.
    #[arg(long, value_name = "KIND", default_value = "unix")]
    transport: Transport,
    /// Pairs of a tree with recovery and one without.
    #[arg(long, value_name = "N", default_value_t = 81)]
    runs: usize,
    /// Only these experiments, separated by commas; all unless given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Experiment>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

/// Measures what is asked for.
pub(super) fn measure(arguments: &Arguments) -> Result<Facts, Failure> {
    for (name, value) in
        [("--kills", arguments.kills), ("--stops", arguments.stops), ("--runs", arguments.runs)]
    {
        if value == 0 || value > STRIKES_MAX {
            let range = format!("give a number from 1 to {STRIKES_MAX}");
            return Err(Failure::usage(format!("{name} {value}: {range}")));
        }
    }
    let shape: sapwood::Shape = arguments.topology.parse().map_err(Failure::usage)?;
    if shape.depth() < 2 {
        return Err(Failure::usage(format!("{}: has no inner process", arguments.topology)));
    }
    let title = format!("recovery of {}, links of {}", arguments.topology, arguments.transport);
    let mut facts = Facts::new(SCHEMA, title);
    facts.setting("topology", arguments.topology.as_str());
    facts.setting("transport", arguments.transport.to_string());
    facts.setting("seed", arguments.seed);
    let wants = |experiment| arguments.only.is_empty() || arguments.only.contains(&experiment);
    let mut progress = Progress::new();
    let mut series = Series {
        terms: Terms { shape, transport: arguments.transport, silence: None },
        random: Random::new(arguments.seed),
        progress: &mut progress,
    };
    if wants(Experiment::Kill) {
        facts.heading("an inner process is killed under load");
        let repairs = series.run(Fault::Kill, arguments.kills)?;
        repairs.say("", "kills", AFTER_KILL_MS, &mut facts);
    }
    if wants(Experiment::Stop) {
        facts.heading("an inner process falls silent under load, and is resumed later");
        facts.setting("stops.silence_ms", arguments.silence_ms);
        series.terms.silence = Some(Duration::from_millis(arguments.silence_ms));
        let repairs = series.run(Fault::Stop, arguments.stops)?;
        let bar = arguments.silence_ms as f64 + AFTER_SILENCE_MS;
        repairs.say("stops.", "stops", bar, &mut facts);
    }
    if wants(Experiment::Overhead) {
        overhead::measure(arguments.runs, arguments.transport, &mut facts, &mut progress)?;
    }
    Ok(facts)
}

/// One fault after another, on as many trees as it takes.
struct Series<'a> {
    terms: Terms,
    random: Random,
    progress: &'a mut Progress,
}

impl Series<'_> {
    fn run(&mut self, fault: Fault, faults: usize) -> Result<Repairs, Failure> {
        let mut repairs = Repairs::default();
        let mut tree: Option<FailingTree> = None;
        for number in 0..faults {
            self.progress.say(fault.name(), number, faults);
            // Half of its inner processes are enough for a tree: what is left of it grows flat.
            if let Some(worn) = tree.take_if(|tree| tree.is_half_gone()) {
                repairs.take(worn)?;
            }
            let standing = match &mut tree {
                Some(tree) => tree,
                None => {
                    repairs.networks += 1;
                    tree.insert(FailingTree::open(&self.terms)?)
                }
            };
            let repair = standing.inject(fault, &mut self.random)?;
            repairs.whole_again_ms.push(repair.whole_again.as_secs_f64() * 1e3);
            repairs.longest_gap_ms.push(repair.longest_gap.as_secs_f64() * 1e3);
        }
        if let Some(tree) = tree {
            repairs.take(tree)?;
        }
        Ok(repairs)
    }
}

/// What a series has shown.
#[derive(Default)]
struct Repairs {
    whole_again_ms: Vec<f64>,
    longest_gap_ms: Vec<f64>,
    networks: usize,
    false_losses: u64,
    fates: Fates,
}

impl Repairs {
    fn take(&mut self, tree: FailingTree) -> Result<(), Failure> {
        self.false_losses += tree.false_losses;
        self.fates.add(tree.close()?);
        Ok(())
    }

    fn say(&self, section: &str, what: &str, bar_ms: f64, facts: &mut Facts) {
        let counts = [
            (what, "strikes", self.whole_again_ms.len() as u64, None),
            ("waves_lost", "waves lost", self.fates.lost, ZERO),
            ("waves_doubled", "waves doubled", self.fates.doubled, ZERO),
            ("waves_wrong", "answers that say what is not so", self.fates.wrong, ZERO),
            ("false_losses", "living back-ends said to be lost", self.false_losses, ZERO),
            ("waves", "waves in which all were once", self.fates.whole, None),
            ("networks", "networks", self.networks as u64, None),
        ];
        for (figure, label, count, bar) in counts {
            let path = format!("{section}{figure}");
            facts.number(&path, look(label, "", 0), count as f64, bar);
        }
        for (figure, label, samples, bar) in [
            ("whole_again_ms", "next wave of all", &self.whole_again_ms, Some(Bar::Most(bar_ms))),
            ("longest_gap_ms", "longest time without an answer", &self.longest_gap_ms, None),
        ] {
            let Some(Spread { min, median, max, .. }) = Spread::of(samples) else { continue };
            for (end, value, bar) in
                [("median", median, bar), ("max", max, bar), ("min", min, None)]
            {
                let path = format!("{section}{figure}.{end}");
                facts.number(&path, look(label, end_unit(end), 1), value, bar);
            }
        }
    }
}

const ZERO: Option<Bar> = Some(Bar::Most(0.0));

/// The unit, with which end of the spread it is.
fn end_unit(end: &str) -> &'static str {
    match end {
        "median" => "ms",
        "max" => "ms max",
        _ => "ms min",
    }
}
