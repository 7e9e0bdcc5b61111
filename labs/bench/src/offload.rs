//! The offload of profiles, reduced and not: every rank dumps its profile and comes to a barrier,
//! and the iteration ends when the front-end has the statistics of all.
//!
//! Without reduction the tree passes every rank's rows on, and the front-end merges them. Reduced
//! and unreduced batches take turns in the same tree, so that what else the machine does concerns
//! both.

use std::time::{Duration, Instant};

use sapwood::{Network, Registry, Shape, Stream, WaveRule};
use sapwood_floor::statistics::{Spread, median};
use sapwood_profile::{PROFILE_STATISTICS, RankRows, Round, register};
use serde_json::{Value, json};

use super::back_end_process::{BackEndProcesses, raise_descriptor_limit};
use super::connect::Folder;
use super::facts::Facts;
use super::offload_leaf::{COST, DUMP, Dump};
use super::plan::Transport;
use super::progress::Progress;
use super::synthetic::events_max;
use super::tree::builder;
use sapwood_command_line::exit::Failure;

/// Longest wait for anything.
const DEADLINE: Duration = Duration::from_secs(120);
/// How often the back-ends' processes are looked at while they attach.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// Back-ends of one process.
const PER_PROCESS: u32 = 256;
/// One dump takes at most this, in microseconds.
const DUMP_US_MAX: f64 = 20.0;
/// From this number of ranks on a reduced offload is never slower.
const REDUCED_FROM: u32 = 64;

/// The command line.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// Ranks of the offload, powers of two.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [64, 128, 256, 512])]
    offload_ranks: Vec<u32>,
    /// Events of each rank.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [20, 50, 150])]
    offload_events: Vec<u32>,
    /// Fan-outs of its trees, powers of two.
    #[arg(long, value_name = "F", value_delimiter = ',', default_values_t = [2, 4, 8, 16])]
    offload_fan_outs: Vec<u32>,
    /// Iterations of one batch.
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    offload_iterations: u64,
    /// Pairs of a reduced and an unreduced batch.
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1001))]
    offload_pairs: u32,
}

/// One point of the curves.
struct Point {
    ranks: u32,
    events: u32,
    fan_out: u32,
    reduced_us: f64,
    unreduced_us: f64,
    dump_us: f64,
    /// Reduced over unreduced, pair by pair.
    ratio: Spread,
}

/// Measures all curves.
pub(super) fn measure(
    arguments: &Arguments,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let powers = arguments.offload_ranks.iter().chain(&arguments.offload_fan_outs);
    if let Some(number) = powers.copied().find(|&number| number < 2 || !number.is_power_of_two()) {
        return Err(Failure::usage(format!(
            "{number}: ranks and fan-outs are powers of two from 2"
        )));
    }
    if let Some(&events) = arguments.offload_events.iter().find(|&&one| one > events_max()) {
        return Err(Failure::usage(format!("--offload-events {events}: at most {}", events_max())));
    }
    raise_descriptor_limit()?;
    let mut points = Vec::new();
    for &fan_out in &arguments.offload_fan_outs {
        for &ranks in &arguments.offload_ranks {
            progress.say("offload", points.len(), points.len() + 1);
            let mut tree = OffloadTree::open(ranks, fan_out)?;
            for &events in &arguments.offload_events {
                points.push(tree.point(events, arguments)?);
            }
            tree.close()?;
        }
    }
    say(&points, arguments, facts);
    Ok(())
}

fn say(points: &[Point], arguments: &Arguments, facts: &mut Facts) {
    facts.heading("offload of all ranks, us per iteration: dump, barrier, statistics at the root");
    facts.heading("  events  fan-out  ranks    reduced  unreduced  ratio (low to high)   dump");
    let mut rows = Vec::new();
    for &events in &arguments.offload_events {
        for &fan_out in &arguments.offload_fan_outs {
            let of = |point: &&Point| point.events == events && point.fan_out == fan_out;
            let curve: Vec<&Point> = points.iter().filter(of).collect();
            for point in &curve {
                facts.heading(&line(point));
                rows.push(row(point));
            }
            let knee = |of: fn(&Point) -> f64| {
                let curve: Vec<(f64, f64)> =
                    curve.iter().map(|point| (f64::from(point.ranks), of(point))).collect();
                knee(&curve).map_or_else(|| "-".to_owned(), |ranks| format!("{ranks}"))
            };
            let (reduced, unreduced) =
                (knee(|point| point.reduced_us), knee(|point| point.unreduced_us));
            facts.heading(&format!("  knee: reduced {reduced} ranks, unreduced {unreduced} ranks"));
        }
    }
    let slower = points.iter().filter(|one| one.ranks >= REDUCED_FROM && one.ratio.median > 1.0);
    let slower = slower.count();
    let dump = points.iter().map(|point| point.dump_us).fold(0.0, f64::max);
    facts.heading(&format!(
        "  reduced slower than unreduced in {slower} of {} points; largest dump {dump:.1} us, at \
         most {DUMP_US_MAX}: {}",
        points.len(),
        if dump <= DUMP_US_MAX { "reached" } else { "missed" }
    ));
    facts.setting("offload", rows);
}

fn line(point: &Point) -> String {
    let Point { events, fan_out, ranks, reduced_us, unreduced_us, dump_us, ratio } = point;
    let Spread { min, median, max, .. } = ratio;
    format!(
        "  {events:>6}  {fan_out:>7}  {ranks:>5}  {reduced_us:>9.0}  {unreduced_us:>9.0}  \
         {median:.2} ({min:.2} to {max:.2})  {dump_us:>5.1}"
    )
}

fn row(point: &Point) -> Value {
    json!({
        "ranks": point.ranks,
        "events": point.events,
        "fan_out": point.fan_out,
        "reduced_us": point.reduced_us,
        "unreduced_us": point.unreduced_us,
        "dump_us": point.dump_us,
        "ratio": point.ratio.median,
        "low": point.ratio.min,
        "high": point.ratio.max,
        "pairs": point.ratio.runs,
    })
}

/// Where a rising curve bends most: the place furthest below the line from its first to its last
/// point, on axes that both go from 0 to 1 (Satopaa, Albrecht, Irwin and Raghavan, "Finding a
/// kneedle in a haystack", 2011). Nothing for fewer than three points.
fn knee(curve: &[(f64, f64)]) -> Option<f64> {
    let (first, last) = (curve.first()?, curve.last()?);
    let (wide, high) = (last.0 - first.0, last.1 - first.1);
    let below =
        |&(place, value): &(f64, f64)| (place, (place - first.0) / wide - (value - first.1) / high);
    let inner = curve.get(1..curve.len() - 1)?.iter().map(below);
    inner.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(place, _)| place)
}

/// How the values of the ranks come to the front-end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueFlow {
    Reduced,
    Unreduced,
}

/// A tree with attached back-ends, and the streams over all of them.
struct OffloadTree {
    reduced: Stream,
    unreduced: Stream,
    barrier: Stream,
    network: Network,
    processes: BackEndProcesses,
    ranks: u32,
    fan_out: u32,
    iteration: u64,
}

/// Levels of at most this fan-out, the smallest at the top.
fn levels(ranks: u32, fan_out: u32) -> Vec<u32> {
    let (mut left, mut levels) = (ranks, Vec::new());
    while left > fan_out {
        levels.insert(0, fan_out);
        left /= fan_out;
    }
    levels.insert(0, left);
    levels
}

impl OffloadTree {
    fn open(ranks: u32, fan_out: u32) -> Result<Self, Failure> {
        let shape = Shape::levels(&levels(ranks, fan_out)).map_err(Failure::usage)?;
        let filters = register(Registry::built_in());
        let mut network = builder(&shape, Transport::Unix)?.registry(filters).open()?;
        let folder = Folder::create()?;
        let (attach, key) = (folder.path.join("attach"), folder.path.join("key"));
        network.write_attach_file(&attach, &key)?;
        let mut processes = BackEndProcesses::start(&attach, ranks, PER_PROCESS, 1)?;
        let until = Instant::now() + DEADLINE;
        while let Err(error) = network.wait_for_back_ends(ranks.into(), LOOK_INTERVAL) {
            processes.check()?;
            if Instant::now() > until || !matches!(error, sapwood::Error::Timeout { .. }) {
                return Err(error.into());
            }
        }
        let everyone = network.everyone();
        let stream = || network.stream(&everyone);
        Ok(Self {
            reduced: stream().up(PROFILE_STATISTICS).open()?,
            unreduced: stream().wave(WaveRule::Immediate).open()?,
            barrier: stream().up("sum").open()?,
            network,
            processes,
            ranks,
            fan_out,
            iteration: 0,
        })
    }

    /// One point of the curves.
    fn point(&mut self, events: u32, arguments: &Arguments) -> Result<Point, Failure> {
        let iterations = arguments.offload_iterations;
        // What is made at the first dump is not a part of it.
        self.batch(events, ValueFlow::Reduced, 2)?;
        self.batch(events, ValueFlow::Unreduced, 2)?;
        self.dump_us()?;
        let (mut reduced, mut unreduced, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let mut dumps = Vec::new();
        for pair in 0..arguments.offload_pairs {
            let mut one = 0.0;
            let mut other = 0.0;
            for turn in 0..2 {
                if (turn + pair) % 2 == 0 {
                    one = self.batch(events, ValueFlow::Reduced, iterations)?;
                    dumps.push(self.dump_us()?);
                } else {
                    other = self.batch(events, ValueFlow::Unreduced, iterations)?;
                    self.dump_us()?;
                }
            }
            reduced.push(one);
            unreduced.push(other);
            ratios.push(one / other);
        }
        let ratio = Spread::of(&ratios).ok_or_else(|| Failure::own(&"no pairs"))?;
        let middle = |samples: &[f64]| median(samples).unwrap_or_default();
        Ok(Point {
            ranks: self.ranks,
            events,
            fan_out: self.fan_out,
            reduced_us: middle(&reduced),
            unreduced_us: middle(&unreduced),
            dump_us: middle(&dumps),
            ratio,
        })
    }

    /// Iterations one after another; gives microseconds for each.
    fn batch(&mut self, events: u32, flow: ValueFlow, count: u64) -> Result<f64, Failure> {
        let begin = Instant::now();
        for _ in 0..count {
            self.iterate(events, flow)?;
        }
        #[allow(clippy::cast_precision_loss, reason = "few iterations")]
        let count = count as f64;
        Ok(begin.elapsed().as_secs_f64() * 1e6 / count)
    }

    fn iterate(&mut self, events: u32, flow: ValueFlow) -> Result<(), Failure> {
        let is_reduced = flow == ValueFlow::Reduced;
        let (iteration, ranks) = (self.iteration, self.ranks);
        let dump = Dump { iteration, ranks, events, is_reduced, barrier: self.barrier.id() };
        self.iteration += 1;
        let stream = if is_reduced { &mut self.reduced } else { &mut self.unreduced };
        stream.broadcast(DUMP, dump.values())?;
        let mut round = Round::new(ranks);
        while round.covered().len() < ranks.into() {
            let answer = stream.recv_timeout(DEADLINE)?;
            let wrong = |error| Failure::own(&error);
            if is_reduced {
                round = Round::decode(answer.value()?).map_err(wrong)?;
            } else {
                let rows = RankRows::decode(answer.value()?).map_err(wrong)?;
                for profile in rows.profiles() {
                    round.add(profile).map_err(wrong)?;
                }
            }
        }
        let passed = self.barrier.recv_timeout(DEADLINE)?.value()?.scalar::<u64>(0);
        let passed = passed.map_err(sapwood::Error::from)?;
        if passed == u64::from(ranks) {
            Ok(())
        } else {
            Err(Failure::own(&format!("{passed} of {ranks} ranks came to the barrier")))
        }
    }

    /// The median time of a dump in the last batch, mean over the ranks.
    fn dump_us(&mut self) -> Result<f64, Failure> {
        self.barrier.broadcast(COST, ())?;
        let answer = self.barrier.recv_timeout(DEADLINE)?;
        let sum = answer.value()?.scalar::<u64>(0).map_err(sapwood::Error::from)?;
        Ok(Duration::from_nanos(sum).as_secs_f64() * 1e6 / f64::from(self.ranks))
    }

    fn close(self) -> Result<(), Failure> {
        let Self { reduced, unreduced, barrier, network, mut processes, .. } = self;
        drop((reduced, unreduced, barrier));
        network.close()?;
        processes.wait_ended(DEADLINE);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_all_ranks_and_no_larger_fan_out() {
        for ranks in [64, 128, 256, 512] {
            for fan_out in [2, 4, 8, 16] {
                let levels = levels(ranks, fan_out);
                assert_eq!(levels.iter().product::<u32>(), ranks);
                assert!(levels.iter().all(|&level| level <= fan_out), "{levels:?}");
            }
        }
        assert_eq!(levels(512, 16), [2, 16, 16]);
    }

    #[test]
    fn the_knee_is_where_a_curve_begins_to_rise() {
        assert_eq!(knee(&[(64.0, 1.0), (128.0, 1.1), (256.0, 1.2), (512.0, 9.0)]), Some(256.0));
        assert_eq!(knee(&[(64.0, 1.0), (128.0, 2.0)]), None);
        assert_eq!(knee(&[]), None);
    }
}
