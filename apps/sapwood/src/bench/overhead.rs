//! What recovery costs while nothing fails: the same tree with it and without it, in turn.
//!
//! Owns the pairs and the one figure that judges them. Both trees are this very program and stand
//! at once on one core; only one works at a time.

use sapwood::Recovery;
use sapwood_floor::Shape;
use sapwood_floor::process::Pinned;
use sapwood_floor::statistics::ratio;

use super::facts::{Bar, Facts, look};
use super::pairs::{fitting_waves, turns};
use super::plan::Transport;
use super::progress::Progress;
use super::tree::{Tree, TreePlan};
use crate::exit::Failure;

/// Recovery may cost this much of throughput and of latency.
const OVERHEAD: Bar = Bar::Most(1.05);

/// The tree.
const FAN_OUTS: [usize; 2] = [4, 4];
/// Bytes of an answer.
const BYTES: usize = 64;
/// Round trips of a run, and those before that are not counted. Runs are short and many, so that
/// what else the machine does meets both trees alike, or few of the pairs.
const ROUNDS: usize = 250;
const WARMUP_ROUNDS: usize = 25;
/// What part of the usual time a run of streamed waves takes, for the same reason.
const RUN_PART: u64 = 5;

/// Measures both trees in turn.
pub(super) fn measure(
    runs: usize,
    transport: Transport,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let failed = |error| Failure::own(&format!("cannot stay on one core: {error}"));
    let _pinned = Pinned::to(Pinned::first_allowed().map_err(failed)?).map_err(failed)?;
    let open = |recovery| {
        let shape = Shape::new(&FAN_OUTS)?;
        Tree::open(&TreePlan { shape, transport, is_encrypted: false, recovery: Some(recovery) })
    };
    let mut trees = [open(Recovery::off())?, open(Recovery::default())?];
    let waves = (fitting_waves(&mut trees[1], BYTES)? / RUN_PART).max(1);
    let (mut us, mut waves_per_s, mut cpu_us) = (pair(), pair(), pair());
    for run in 0..runs {
        progress.say("overhead", run, runs);
        for which in turns(run, trees.len()) {
            us[which].push(trees[which].round_trip(BYTES, ROUNDS, WARMUP_ROUNDS)?);
        }
        for which in turns(run, trees.len()) {
            let streamed = trees[which].pipelined(BYTES, waves)?;
            waves_per_s[which].push(streamed.waves_per_s);
            cpu_us[which].push(streamed.cpu_us_per_wave);
        }
    }
    for tree in trees {
        tree.close()?;
    }
    // All of them are costs: above one is worse.
    let ratios = [
        ("round_trip", "  round trip", ratio(&us[1], &us[0])),
        ("throughput", "  throughput", ratio(&waves_per_s[0], &waves_per_s[1])),
        ("cpu", "  CPU per wave", ratio(&cpu_us[1], &cpu_us[0])),
    ];
    facts.heading("what recovery costs when nothing fails, against the same tree without it");
    let mut worst: f64 = 0.0;
    for (name, label, spread) in ratios {
        let spread = spread.ok_or_else(|| Failure::own(&"nothing was measured"))?;
        facts.spread(&format!("overhead.{name}_ratio"), look(label, "", 3), &spread, None);
        if name != "cpu" {
            worst = worst.max(spread.median);
        }
    }
    let label = "the worse of round trip and throughput";
    facts.number("overhead_ratio", look(label, "", 3), worst, Some(OVERHEAD));
    Ok(())
}

fn pair() -> [Vec<f64>; 2] {
    [Vec::new(), Vec::new()]
}
