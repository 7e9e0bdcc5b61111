//! `sapwood bench shapes`: two trees over as many back-ends, by turns, and which of them is better.
//!
//! Owns the comparison and its verdict: it is what `sapwood trace tree` proposes, measured before
//! and after. Both trees are real processes on this machine and stand at once; how they take turns
//! is `pairs`'. A ratio is that of two neighbours in time, and the verdict is of the interval that
//! has the median of the ratios with 95 % confidence, not of the median.

use clap::ValueEnum;
use sapwood::Shape;
use sapwood_floor::TREE_PROCESSES_MAX;
use sapwood_floor::statistics::{MedianInterval, Spread, median_interval};
use serde_json::json;

use super::facts::{Facts, look};
use super::pairs::{Contender, round_trips, streams};
use super::plan::{Repetition, Transport};
use super::progress::Progress;
use super::tree::{Pipelined, Tree, builder};
use sapwood_command_line::exit::Failure;

const SCHEMA: &str = "sapwood.bench-shapes/1";

/// Two trees of one shape differ by as much: by where their memory lies, and which is the older.
const MARGIN: f64 = 0.05;

/// With fewer pairs not even the extremes have the median with 95 % confidence.
const PAIRS_MIN: usize = 6;

/// What passes through the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Traffic {
    /// A question and its answer, then the next.
    #[value(name = "round_trip")]
    RoundTrip,
    /// All waves that the back-ends send as fast as they may.
    Streamed,
}

/// The command line.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The present tree, in any notation of 'sapwood topology': 64, 8x8, k:2@16.
    #[arg(long, value_name = "SHAPE")]
    before: Shape,
    /// The tree in its place, with as many back-ends; 'sapwood trace tree' proposes one.
    #[arg(long, value_name = "SHAPE")]
    after: Shape,
    /// What links are made of.
    #[arg(long, value_name = "KIND", default_value = "shm")]
    transport: Transport,
    /// Payload of an answer in bytes, a multiple of 8: it consists of f64s.
    #[arg(long, value_name = "N", default_value_t = 64)]
    bytes: usize,
    /// Number of pairs of runs, one run of each tree.
    #[arg(long, value_name = "N", default_value_t = 15)]
    runs: usize,
    /// Only these, separated by commas; both unless given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Traffic>,
    /// Round trips of one run; as many as take about 0.3 s unless given.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Streamed waves of one run; as many as take about 0.3 s unless given.
    #[arg(long, value_name = "N")]
    waves: Option<u64>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

impl Arguments {
    fn wants(&self, traffic: Traffic) -> bool {
        self.only.is_empty() || self.only.contains(&traffic)
    }
}

/// Whether the second tree is better, by the ratios of its times to those of the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PairVerdict {
    Better,
    Worse,
    Alike,
    NotResolved,
}

impl PairVerdict {
    fn of(ratio: &MedianInterval) -> Self {
        let MedianInterval { low, high, samples, .. } = *ratio;
        let (least, most) = (1.0 - MARGIN, 1.0 + MARGIN);
        if samples < PAIRS_MIN {
            Self::NotResolved
        } else if high < least {
            Self::Better
        } else if low > most {
            Self::Worse
        } else if low >= least && high <= most {
            Self::Alike
        } else {
            Self::NotResolved
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Alike => "alike",
            Self::NotResolved => "not resolved",
        }
    }
}

/// What was measured of both trees, run by run.
struct Sides {
    before: Vec<f64>,
    after: Vec<f64>,
}

/// Measures both trees.
pub(super) fn measure(arguments: &Arguments) -> Result<Facts, Failure> {
    let Arguments { before, after, transport, bytes, runs, rounds, waves, .. } = arguments;
    let wanted = Repetition { bytes: *bytes, runs: *runs, rounds: *rounds, waves: *waves };
    wanted.check()?;
    check(before, after)?;
    let back_ends = before.back_end_count();
    let title = format!(
        "the tree {after} in place of {before}: {back_ends} back-ends over {transport}, answers of \
         {bytes} bytes"
    );
    let mut facts = Facts::new(SCHEMA, title);
    facts.setting("before", before.to_string());
    facts.setting("after", after.to_string());
    facts.setting("back_ends", back_ends);
    facts.setting("transport", transport.to_string());
    facts.setting("bytes", *bytes);
    facts.setting("pairs", *runs);
    let mut progress = Progress::new();
    let mut trees: Vec<Box<dyn Contender>> = Vec::new();
    for shape in [before, after] {
        trees.push(Box::new(Tree::start(shape, builder(shape, *transport)?)?));
    }
    if arguments.wants(Traffic::RoundTrip) {
        let runs = round_trips(&wanted, &mut trees, &mut progress)?;
        facts.heading("a question and its answer");
        compare("round_trip", &sides(&runs, |us| *us)?, &mut facts)?;
    }
    if arguments.wants(Traffic::Streamed) {
        let runs = streams(&wanted, &mut trees, &mut progress)?;
        let wave_us = |run: &Pipelined| 1e6 / run.waves_per_s;
        facts.heading("a wave of many");
        compare("streamed", &sides(&runs, wave_us)?, &mut facts)?;
        let cpu = sides(&runs, |run| run.cpu_us_per_wave)?;
        show("streamed", "cpu_us", ["before, CPU of all", "after, CPU of all"], &cpu, &mut facts)?;
    }
    if *runs < PAIRS_MIN {
        facts.heading(&format!("fewer than {PAIRS_MIN} pairs decide nothing: give --runs"));
    }
    Ok(facts)
}

/// Refuses trees that cannot be compared, or not on one machine.
fn check(before: &Shape, after: &Shape) -> Result<(), Failure> {
    for (option, shape) in [("--before", before), ("--after", after)] {
        if shape.attach_per_leaf().is_some() {
            return Err(Failure::usage(format!(
                "{option} {shape}: back-ends that attach by themselves are not started here"
            )));
        }
        if shape.node_count() as usize > TREE_PROCESSES_MAX {
            return Err(Failure::usage(format!(
                "{option} {shape}: give a tree of at most {TREE_PROCESSES_MAX} processes"
            )));
        }
    }
    let (first, second) = (before.back_end_count(), after.back_end_count());
    if first == second {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--after {after}: it has {second} back-ends, and {before} has {first}"
    )))
}

/// A figure of each run of both trees.
fn sides<T>(runs: &[Vec<T>], figure: impl Fn(&T) -> f64) -> Result<Sides, Failure> {
    let mut runs = runs.iter().map(|runs| runs.iter().map(&figure).collect::<Vec<f64>>());
    match (runs.next(), runs.next()) {
        (Some(before), Some(after)) => Ok(Sides { before, after }),
        _ => Err(Failure::own(&"two trees were to be measured")),
    }
}

/// Adds a figure of both trees.
fn show(
    section: &str,
    figure: &str,
    labels: [&'static str; 2],
    sides: &Sides,
    facts: &mut Facts,
) -> Result<(), Failure> {
    let names = ["before", "after"].into_iter().zip(labels);
    for ((name, label), runs) in names.zip([&sides.before, &sides.after]) {
        let spread = Spread::of(runs).ok_or_else(|| nothing(section))?;
        facts.spread(&format!("{section}.{name}_{figure}"), look(label, "us", 1), &spread, None);
    }
    Ok(())
}

/// Adds the times of both trees, and what their ratios say.
fn compare(section: &str, times: &Sides, facts: &mut Facts) -> Result<(), Failure> {
    show(section, "us", ["before", "after"], times, facts)?;
    let pairs = times.after.iter().zip(&times.before);
    let ratios: Vec<f64> = pairs.map(|(after, before)| after / before).collect();
    let ratio = median_interval(&ratios).ok_or_else(|| nothing(section))?;
    let outcome = PairVerdict::of(&ratio).name();
    let MedianInterval { median, low, high, samples } = ratio;
    facts.heading(&format!(
        "  {:<44} {median:>14.3} {:<6} {low:.3} to {high:.3} for the median of {samples} pairs: \
         {outcome}",
        "after over before", ""
    ));
    let interval = json!({ "median": median, "low": low, "high": high, "each": ratios });
    facts.setting(&format!("{section}.ratio"), interval);
    facts.setting(&format!("{section}.verdict"), outcome);
    Ok(())
}

fn nothing(section: &str) -> Failure {
    Failure::own(&format!("{section}: nothing was measured"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(ratios: &[f64]) -> PairVerdict {
        PairVerdict::of(&median_interval(ratios).unwrap())
    }

    #[test]
    fn only_an_interval_that_lies_on_one_side_decides() {
        assert_eq!(outcome(&[0.5, 0.6, 0.7, 0.7, 0.8, 0.94]), PairVerdict::Better);
        assert_eq!(outcome(&[0.5, 0.6, 0.7, 0.7, 0.8, 0.96]), PairVerdict::NotResolved);
        assert_eq!(outcome(&[1.06, 1.2, 1.3, 1.3, 1.4, 9.0]), PairVerdict::Worse);
        assert_eq!(outcome(&[1.04, 1.2, 1.3, 1.3, 1.4, 9.0]), PairVerdict::NotResolved);
        assert_eq!(outcome(&[0.96, 0.98, 1.0, 1.0, 1.02, 1.04]), PairVerdict::Alike);
        assert_eq!(outcome(&[0.5, 0.98, 1.0, 1.0, 1.02, 2.0]), PairVerdict::NotResolved);
    }

    #[test]
    fn few_pairs_decide_nothing() {
        assert_eq!(outcome(&[0.1; PAIRS_MIN - 1]), PairVerdict::NotResolved);
        assert_eq!(outcome(&[0.1; PAIRS_MIN]), PairVerdict::Better);
    }

    #[test]
    fn trees_with_other_back_ends_are_not_compared() {
        let shape = |text: &str| text.parse::<Shape>().unwrap();
        let is_taken = |before, after| check(&shape(before), &shape(after)).is_ok();
        assert!(is_taken("64", "8x8") && is_taken("5", "g:2:1x3,1x2") && is_taken("4", "k:2@8"));
        assert!(!is_taken("64", "8x9"));
        assert!(!is_taken("2+4", "8") && !is_taken("8", "2+4"));
        assert!(!is_taken("4096", "64x64"));
    }
}
