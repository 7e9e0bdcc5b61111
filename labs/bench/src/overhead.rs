//! What recovery costs while nothing fails: the same tree with it and without it, in turn.
//!
//! Owns the pairs and the one figure that judges them. Both trees are this very program and stand
//! at once on one core; only one works at a time. What is kept is memory, and on a core of its own
//! it stays in the cache; where many processes share a core, it does not. So there are two shapes:
//! the one that is judged has a process of each kind, whose kept frames fit into a core's cache
//! together, and the other has as many processes on a core as a crowded machine.

use sapwood::Recovery;
use sapwood_floor::Shape;
use sapwood_floor::process::Pinned;
use sapwood_floor::statistics::ratio;

use super::facts::{Bar, Facts, look};
use super::floor_failure::of_floor;
use super::pairs::{fitting_waves, turns};
use super::plan::Transport;
use super::progress::Progress;
use super::tree::{Tree, TreePlan};
use sapwood_command_line::exit::Failure;

/// Recovery may cost this much of throughput and of latency.
const OVERHEAD: Bar = Bar::Most(1.05);

/// The tree that is judged, and the one that crowds a core.
const FAN_OUTS: [usize; 2] = [1, 1];
const CROWDED: [usize; 2] = [4, 4];
/// Bytes of an answer.
const BYTES: usize = 64;
/// Round trips of a run, and those before that are not counted. Runs are short and many, so that
/// what else the machine does meets both trees alike, or few of the pairs.
const ROUNDS: usize = 250;
const WARMUP_ROUNDS: usize = 25;
/// What part of the usual time a run of streamed waves takes, for the same reason.
const RUN_PART: u64 = 5;

/// Measures both shapes, with recovery and without in turn.
pub(super) fn measure(
    runs: usize,
    transport: Transport,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let failed = |error| Failure::own(&format!("cannot stay on one core: {error}"));
    let _pinned = Pinned::to(Pinned::first_allowed().map_err(failed)?).map_err(failed)?;
    let mut pairs = Pairs { runs, transport, progress };
    facts.heading("what recovery costs when nothing fails, against the same tree without it");
    let worst = pairs.compare(&FAN_OUTS, "overhead", facts)?;
    let label = "the worse of round trip and throughput";
    facts.number("overhead_ratio", look(label, "", 3), worst, Some(OVERHEAD));
    facts.heading("the same with 21 processes on one core, which share its cache");
    let worst = pairs.compare(&CROWDED, "crowded_overhead", facts)?;
    facts.number("crowded_overhead_ratio", look(label, "", 3), worst, None);
    Ok(())
}

struct Pairs<'a> {
    runs: usize,
    transport: Transport,
    progress: &'a mut Progress,
}

impl Pairs<'_> {
    /// Tells what recovery costs in a tree of that shape; gives the worse of the two costs.
    fn compare(
        &mut self,
        fan_outs: &[usize],
        name: &str,
        facts: &mut Facts,
    ) -> Result<f64, Failure> {
        // All of them are costs: above one is worse.
        let [us, us_per_wave, cpu_us] = self.costs(fan_outs)?;
        let mut worst: f64 = 0.0;
        for (kind, label, samples) in [
            ("round_trip", "  round trip", us),
            ("throughput", "  throughput", us_per_wave),
            ("cpu", "  CPU per wave", cpu_us),
        ] {
            let spread = ratio(&samples[1], &samples[0]);
            let spread = spread.ok_or_else(|| Failure::own(&"nothing was measured"))?;
            facts.spread(&format!("{name}.{kind}_ratio"), look(label, "", 3), &spread, None);
            if kind != "cpu" {
                worst = worst.max(spread.median);
            }
        }
        Ok(worst)
    }

    /// Microseconds of a round trip, from one streamed wave to the next, and of processors for a
    /// wave: without recovery and with it, run by run.
    fn costs(&mut self, fan_outs: &[usize]) -> Result<[[Vec<f64>; 2]; 3], Failure> {
        let open = |recovery| {
            let (shape, transport) = (Shape::new(fan_outs).map_err(of_floor)?, self.transport);
            let recovery = Some(recovery);
            Tree::open(&TreePlan { shape, transport, is_encrypted: false, recovery })
        };
        let mut trees = [open(Recovery::off())?, open(Recovery::default())?];
        let waves = (fitting_waves(&mut trees[1], BYTES)? / RUN_PART).max(1);
        let mut costs = <[[Vec<f64>; 2]; 3]>::default();
        for run in 0..self.runs {
            self.progress.say("overhead", run, self.runs);
            for which in turns(run, trees.len()) {
                let us = trees[which].round_trip(BYTES, ROUNDS, WARMUP_ROUNDS)?;
                costs[0][which].push(us);
            }
            for which in turns(run, trees.len()) {
                let streamed = trees[which].pipelined(BYTES, waves)?;
                costs[1][which].push(1e6 / streamed.waves_per_s);
                costs[2][which].push(streamed.cpu_us_per_wave);
            }
        }
        for tree in trees {
            tree.close()?;
        }
        Ok(costs)
    }
}
