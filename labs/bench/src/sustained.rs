//! Very many synthetic ranks in rounds: whether the tree sustains one in a second, and how fast it
//! goes when nothing waits.
//!
//! Every round has the statistics of all events, a three-phase and a one-phase histogram of every
//! event, classes by three schemes, outliers and the values of the heat map, through real processes
//! and the filters of `sapwood-profile`. The counts are compared with what the ranks must have.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use sapwood::{Network, Program, Registry, Shape, Stream, Values, WaveRule};
use sapwood_floor::process;
use sapwood_monitor::analysis::{Head, HistogramWish, Inquiry, Selection, Wishes};
use sapwood_profile::{PROFILE_STATISTICS, Round, register};
use serde_json::json;

use super::facts::{Bar, Facts, look};
use super::plan::Transport;
use super::processes::descendants;
use super::profile_leaf::{PROFILE_LEAF, ROUND};
use super::progress::Progress;
use super::synthetic::{events_max, profile};
use super::tree::{builder, own_program};
use sapwood_command_line::exit::Failure;

/// Longest wait for a round.
const DEADLINE: Duration = Duration::from_secs(120);
/// Time between two rounds.
const INTERVAL: Duration = Duration::from_secs(1);
/// What is to be sustained; the first and the last round are not whole intervals.
const ROUNDS_PER_S: Bar = Bar::Least(0.95);
/// A turn of the loop while a round is awaited.
const TURN: Duration = Duration::from_millis(20);
/// Bins of each histogram.
const BINS: u32 = 20;
const SCHEMES: [&str; 3] = ["all", "mpi", "depth:1"];

/// The command line.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// Synthetic ranks in rounds of a second.
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    synthetic_ranks: u32,
    /// Events of each of them.
    #[arg(long, value_name = "N", default_value_t = 150,
          value_parser = clap::value_parser!(u32).range(1..=256))]
    synthetic_events: u32,
    /// Their tree; the ranks are dealt out to its leaves.
    #[arg(long, value_name = "SHAPE", default_value = "8x4")]
    synthetic_topology: Shape,
    /// Rounds of a second, and as many one right after another.
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u16).range(1..=3600))]
    synthetic_rounds: u16,
}

/// The tree with its streams.
struct Scene {
    rounds: Stream,
    inquiry: Inquiry,
    network: Network,
    processes: BTreeSet<u32>,
    ranks: u32,
    events: u32,
    /// What is known of the events before the first round comes.
    round: Round,
    /// The last number of a round.
    number: u64,
}

/// Measures.
pub(super) fn measure(
    arguments: &Arguments,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let (ranks, events) = (arguments.synthetic_ranks, arguments.synthetic_events);
    if events > events_max() {
        return Err(Failure::usage(format!("--synthetic-events: at most {}", events_max())));
    }
    progress.say("synthetic ranks", 0, 1);
    let mut scene = Scene::open(arguments)?;
    let whole = arguments.synthetic_rounds;
    let paced = scene.run(whole, Some(INTERVAL), progress)?;
    let unpaced = scene.run(whole, None, progress)?;
    scene.check()?;
    let result = scene.inquiry.result();
    let shape = &arguments.synthetic_topology;
    facts.heading(&format!("{ranks} synthetic ranks, {events} events each, tree {shape}"));
    facts.setting("synthetic.ranks", ranks);
    facts.setting("synthetic.events", events);
    facts.setting("synthetic.topology", shape.to_string());
    let sustained = look("rounds, one asked for in a second", "1/s", 3);
    facts.number("synthetic.rounds_per_s", sustained, paced.rounds_per_s, Some(ROUNDS_PER_S));
    let slowest = look("  the slowest, from question to last section", "ms", 0);
    facts.number("synthetic.slowest_ms", slowest, paced.slowest.as_secs_f64() * 1e3, None);
    let cpu = look("  CPU of all processes, per round", "ms", 0);
    facts.number("synthetic.cpu_ms_per_round", cpu, paced.cpu_ms_per_round, None);
    let skipped = look("  analyses skipped", "", 0);
    #[allow(clippy::cast_precision_loss, reason = "few")]
    facts.number("synthetic.skipped", skipped, scene.inquiry.skipped as f64, Some(Bar::Most(0.0)));
    let most = look("rounds, each asked for after the other", "1/s", 2);
    facts.number("synthetic.rounds_per_s_most", most, unpaced.rounds_per_s, None);
    facts.heading("reduction by rank classes, over all rounds");
    let mut reduction = Vec::new();
    for section in &result.classifications {
        let (scheme, factor) = (&section.scheme, section.cumulated_factor);
        facts.heading(&format!(
            "  scheme {scheme:<10} {:>4} classes, factor {factor:.1}",
            section.classes.len()
        ));
        let classes = section.classes.len();
        reduction.push(json!({ "scheme": scheme, "factor": factor, "classes": classes }));
    }
    facts.setting("reduction", reduction);
    scene.close()
}

/// What a run of rounds has shown.
struct Pace {
    rounds_per_s: f64,
    slowest: Duration,
    cpu_ms_per_round: f64,
}

impl Scene {
    fn open(arguments: &Arguments) -> Result<Self, Failure> {
        let (ranks, events) = (arguments.synthetic_ranks, arguments.synthetic_events);
        let shape = &arguments.synthetic_topology;
        let per_leaf = ranks.div_ceil(shape.back_end_count());
        let mut leaf = Program::new(own_program()?).argument(PROFILE_LEAF);
        for number in [ranks, per_leaf, events] {
            leaf = leaf.argument(number.to_string());
        }
        let before = descendants()?;
        let builder = builder(shape, Transport::Unix)?.registry(register(Registry::built_in()));
        let network = builder.back_end(leaf).open()?;
        let everyone = network.everyone();
        let rounds = network.stream(&everyone).up(PROFILE_STATISTICS);
        let rounds = rounds.wave(WaveRule::All).open()?;
        // A rank that computes inside of its domain, and one of each other role.
        let mut round = Round::new(ranks);
        let one = profile(7.min(ranks - 1), ranks, events, 0);
        round.add(&one).map_err(|error| Failure::own(&error))?;
        let names = one.events.keys().map(|event| event.name().into_owned());
        let wishes: Result<Vec<HistogramWish>, String> =
            names.map(|name| HistogramWish::read(&format!("{name}:time_ns,bins={BINS}"))).collect();
        let wishes = Wishes {
            selection: Selection::of(wishes.map_err(Failure::usage)?),
            schemes: SCHEMES.map(str::to_owned).to_vec(),
            outliers: 3,
        };
        let inquiry = Inquiry::open(&network, wishes)?;
        let processes = descendants()?.difference(&before).copied().collect();
        Ok(Self { rounds, inquiry, network, processes, ranks, events, round, number: 0 })
    }

    /// Asks for rounds, at once one after another or at intervals, and waits until each is whole.
    fn run(
        &mut self,
        count: u16,
        interval: Option<Duration>,
        progress: &mut Progress,
    ) -> Result<Pace, Failure> {
        // The first finds cold memory.
        self.one()?;
        let (begin, cpu) = (Instant::now(), self.cpu_ms()?);
        let mut slowest = Duration::ZERO;
        for number in 0..count {
            progress.say("rounds", number.into(), count.into());
            slowest = slowest.max(self.one()?);
            if let Some(interval) = interval {
                let next = begin + interval * (u32::from(number) + 1);
                while let Some(left) = next.checked_duration_since(Instant::now()) {
                    self.network.turn(left.max(Duration::from_millis(1)))?;
                }
            }
        }
        let seconds = begin.elapsed().as_secs_f64();
        let count = f64::from(count);
        let cpu_ms_per_round = (self.cpu_ms()? - cpu) / count;
        Ok(Pace { rounds_per_s: count / seconds, slowest, cpu_ms_per_round })
    }

    /// One round with its analysis.
    fn one(&mut self) -> Result<Duration, Failure> {
        let begin = Instant::now();
        // The first wave has number 0, the first moment number 1.
        let question = Values::new().scalar(self.number + 1).scalar(self.number);
        self.rounds.broadcast(ROUND, question)?;
        self.number += 1;
        let head = Head { world_size: self.ranks, round: self.number, long_ns: u64::MAX };
        self.inquiry.begin(head, &self.round);
        let mut has_round = false;
        while !has_round || self.inquiry.is_waiting() {
            if begin.elapsed() > DEADLINE {
                return Err(Failure::own(&format!("round {} never came", self.number)));
            }
            self.network.turn(TURN)?;
            self.inquiry.take();
            if let Some(answer) = self.rounds.try_recv()? {
                let round = Round::decode(answer.value()?).map_err(|error| Failure::own(&error))?;
                if round.covered().len() != u64::from(self.ranks) {
                    return Err(Failure::own(&format!("ranks {} are missing", round.missing())));
                }
                has_round = true;
            }
        }
        Ok(begin.elapsed())
    }

    /// Compares the last histograms with what the ranks must have.
    fn check(&self) -> Result<(), Failure> {
        let result = self.inquiry.result();
        let wrong = |what: &str| Err(Failure::own(&format!("{what}: the figures are void")));
        if !result.missing.is_empty() || result.round != Some(self.number) {
            return wrong(&format!("the last round is not whole: {:?}", result.missing));
        }
        let exact: Vec<_> =
            result.histograms.iter().filter(|one| one.method == "three-phase").collect();
        if exact.len() != self.events as usize {
            return wrong(&format!("{} histograms, not {}", exact.len(), self.events));
        }
        let Some(last) = exact.last() else { return Ok(()) };
        let mut expected = vec![0_u64; BINS as usize];
        for rank in 0..self.ranks {
            let profile = profile(rank, self.ranks, self.events, self.number);
            let mut events = profile.events.iter();
            let Some((_, counters)) = events.find(|(event, _)| event.name() == last.event) else {
                continue;
            };
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole")]
            let (low, high) = (last.bins.low as u64, last.bins.high as u64);
            let place = (counters.time_ns - low) * u64::from(BINS) / (high - low).max(1);
            expected[usize::try_from(place).unwrap_or(usize::MAX).min(BINS as usize - 1)] += 1;
        }
        if expected != last.bins.counts {
            return wrong(&format!("the histogram of {} is {:?}", last.event, last.bins.counts));
        }
        Ok(())
    }

    /// CPU time so far of all processes of the tree, in milliseconds.
    fn cpu_ms(&self) -> Result<f64, Failure> {
        let mut sum = process::own_cpu_nanoseconds();
        for &pid in &self.processes {
            sum += process::cpu_nanoseconds(pid).map_err(|error| {
                Failure::own(&format!("cannot read the CPU time of process {pid}: {error}"))
            })?;
        }
        Ok(Duration::from_nanos(sum).as_secs_f64() * 1e3)
    }

    fn close(self) -> Result<(), Failure> {
        let Self { rounds, inquiry, network, .. } = self;
        drop((rounds, inquiry));
        Ok(network.close()?)
    }
}
