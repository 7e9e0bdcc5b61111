//! Round trips and streamed waves of Sapwood and of the floor, in turn.
//!
//! Owns the interleaving. All trees stand at once, idle but for the one that is measured, and take
//! turns: A B, B A, A B. A ratio is taken within each pair of neighbours in time and only then
//! condensed, so that what else the machine does changes both or shows in the spread.

use sapwood_floor::statistics::{Spread, ratio};
use sapwood_floor::{Floor, Place, Transport as FloorTransport};

use super::explain::costs::{Explanation, explain};
use super::explain::{Cast, Kind, pages};
use super::floor_failure::of_floor;
use super::plan::{Experiment, Plan, RUN_TARGET, Repetition, Transport};
use super::processes::is_communication_process;
use super::progress::Progress;
use super::report::{Figure, Section};
use super::tree::{Pipelined, Tree, TreePlan};
use sapwood_command_line::exit::Failure;

/// Rounds before the counted ones of a run: caches and windows are as they will be.
pub(super) const WARMUP_ROUNDS: usize = 5;

/// Rounds of the run that finds how many fit into the target time.
const CALIBRATION_ROUNDS: usize = 20;

/// Waves of the first run that finds how many fit into the target time.
const CALIBRATION_WAVES: u64 = 64;

/// Fewest and most of either in one run, however long they take.
const ROUNDS: (f64, f64) = (20.0, 20_000.0);
const WAVES: (f64, f64) = (32.0, 4_000_000.0);

/// The floor, and Sapwood's trees, behind one face.
pub(super) trait Contender {
    /// Median round trip, microseconds.
    fn round_trip(&mut self, bytes: usize, rounds: usize) -> Result<f64, Failure>;
    fn pipelined(&mut self, bytes: usize, waves: u64) -> Result<Pipelined, Failure>;
    /// Its processes but for this one.
    fn cast(&self) -> Cast;
}

impl Contender for Floor {
    fn round_trip(&mut self, bytes: usize, rounds: usize) -> Result<f64, Failure> {
        Ok(Floor::round_trip(self, bytes, rounds, WARMUP_ROUNDS).map_err(of_floor)?.median_us())
    }

    fn pipelined(&mut self, bytes: usize, waves: u64) -> Result<Pipelined, Failure> {
        let run = Floor::pipelined(self, bytes, waves).map_err(of_floor)?;
        Ok(Pipelined { waves_per_s: run.waves_per_s, cpu_us_per_wave: run.cpu_us_per_wave })
    }

    fn cast(&self) -> Cast {
        let kind = |place| match place {
            Place::Inner => Kind::Communication,
            Place::Leaf => Kind::BackEnd,
        };
        Cast(Floor::processes(self).map(|(pid, place)| (pid, kind(place))).collect())
    }
}

impl Contender for Tree {
    fn round_trip(&mut self, bytes: usize, rounds: usize) -> Result<f64, Failure> {
        Tree::round_trip(self, bytes, rounds, WARMUP_ROUNDS)
    }

    fn pipelined(&mut self, bytes: usize, waves: u64) -> Result<Pipelined, Failure> {
        Tree::pipelined(self, bytes, waves)
    }

    fn cast(&self) -> Cast {
        let kind = |pid| match is_communication_process(pid) {
            true => Kind::Communication,
            false => Kind::BackEnd,
        };
        Cast(self.processes().iter().map(|&pid| (pid, kind(pid))).collect())
    }
}

/// What was measured on trees that stand beside each other.
pub(super) struct Measured {
    /// The main figures.
    pub(super) sections: Vec<Section>,
    /// Those of encrypted links, if wanted.
    pub(super) encrypted: Vec<Section>,
    pub(super) explanation: Option<Explanation>,
}

/// Measures what the plan asks for.
pub(super) fn measure(plan: &Plan, progress: &mut Progress) -> Result<Measured, Failure> {
    let transport = match plan.tree.transport {
        // The floor has no shared memory: what it saves is to be seen.
        Transport::Unix | Transport::Shm => FloorTransport::Unix,
        Transport::Tcp => FloorTransport::Tcp,
    };
    // The calling thread is on its core already, and what it starts inherits that.
    let floor = Floor::start(plan.tree.shape.fan_outs(), transport, None).map_err(of_floor)?;
    let main = Tree::open(&plan.tree)?;
    let mut contenders: Vec<Box<dyn Contender>> = vec![Box::new(floor), Box::new(main)];
    if plan.also_encrypted {
        let encrypted = TreePlan { is_encrypted: true, ..plan.tree.clone() };
        contenders.push(Box::new(Tree::open(&encrypted)?));
    }
    let mut sections: Vec<Vec<Section>> = vec![Vec::new(); contenders.len()];
    if plan.wants(Experiment::RoundTrip) {
        let runs = round_trips(&plan.repetition(), &mut contenders, progress)?;
        for (which, runs_of_tree) in runs.iter().enumerate().skip(1) {
            sections[which].push(round_trip_section(runs_of_tree, &runs[0])?);
        }
    }
    if plan.wants(Experiment::Pipelined) {
        let runs = streams(&plan.repetition(), &mut contenders, progress)?;
        for (which, runs_of_tree) in runs.iter().enumerate().skip(1) {
            sections[which].push(pipelined_section(runs_of_tree, &runs[0])?);
        }
    }
    let [floor, tree, ..] = &mut contenders[..] else { unreachable!("both stand") };
    let (floor, tree) = (floor.as_mut(), tree.as_mut());
    if plan.wants(Experiment::Pages) {
        sections[1].push(pages::measure(plan, [floor, tree], progress)?);
    }
    let explanation = plan.explains.then(|| explain(plan, [floor, tree])).transpose()?;
    let mut sections = sections.into_iter().skip(1);
    Ok(Measured {
        sections: sections.next().unwrap_or_default(),
        encrypted: sections.next().unwrap_or_default(),
        explanation,
    })
}

/// Every contender's runs of round trips, in microseconds.
pub(super) fn round_trips(
    wanted: &Repetition,
    contenders: &mut [Box<dyn Contender>],
    progress: &mut Progress,
) -> Result<Vec<Vec<f64>>, Failure> {
    let mut slowest_us: f64 = 0.0;
    for contender in contenders.iter_mut() {
        let calibration = wanted.rounds.unwrap_or(CALIBRATION_ROUNDS).min(CALIBRATION_ROUNDS);
        slowest_us = slowest_us.max(contender.round_trip(wanted.bytes, calibration)?);
    }
    let fitting = (RUN_TARGET.as_secs_f64() * 1e6 / slowest_us.max(0.1)).clamp(ROUNDS.0, ROUNDS.1);
    let rounds = wanted.rounds.unwrap_or(fitting as usize);
    let mut runs = vec![Vec::with_capacity(wanted.runs); contenders.len()];
    for run in 0..wanted.runs {
        progress.say("round trips", run, wanted.runs);
        for which in turns(run, contenders.len()) {
            runs[which].push(contenders[which].round_trip(wanted.bytes, rounds)?);
        }
    }
    Ok(runs)
}

/// Every contender's runs of streamed waves.
pub(super) fn streams(
    wanted: &Repetition,
    contenders: &mut [Box<dyn Contender>],
    progress: &mut Progress,
) -> Result<Vec<Vec<Pipelined>>, Failure> {
    let mut waves = Vec::with_capacity(contenders.len());
    for contender in contenders.iter_mut() {
        waves.push(match wanted.waves {
            Some(waves) => waves,
            None => fitting_waves(contender.as_mut(), wanted.bytes)?,
        });
    }
    let mut runs = vec![Vec::with_capacity(wanted.runs); contenders.len()];
    for run in 0..wanted.runs {
        progress.say("streamed waves", run, wanted.runs);
        for which in turns(run, contenders.len()) {
            runs[which].push(contenders[which].pipelined(wanted.bytes, waves[which])?);
        }
    }
    Ok(runs)
}

/// How many waves take about the target time. Found in two steps, since the first waves of a stream
/// say little about the later ones.
pub(super) fn fitting_waves(contender: &mut dyn Contender, bytes: usize) -> Result<u64, Failure> {
    let mut waves = CALIBRATION_WAVES;
    for share in [0.25, 1.0] {
        let rate = contender.pipelined(bytes, waves)?.waves_per_s;
        waves = (rate * RUN_TARGET.as_secs_f64() * share).clamp(WAVES.0, WAVES.1) as u64;
    }
    Ok(waves)
}

/// Whose turn it is in a run: forwards and backwards in turn, so that none is always first.
pub(super) fn turns(run: usize, contenders: usize) -> impl Iterator<Item = usize> {
    let is_forward = run.is_multiple_of(2);
    (0..contenders).map(move |at| if is_forward { contenders - 1 - at } else { at })
}

fn round_trip_section(tree: &[f64], floor: &[f64]) -> Result<Section, Failure> {
    Section::new(
        "round_trip",
        [
            Figure::new("median_us", Spread::of(tree)),
            Figure::new("ratio_to_floor", ratio(tree, floor)),
            Figure::new("floor_us", Spread::of(floor)),
        ],
    )
}

fn pipelined_section(tree: &[Pipelined], floor: &[Pipelined]) -> Result<Section, Failure> {
    let rates = |runs: &[Pipelined]| runs.iter().map(|run| run.waves_per_s).collect::<Vec<_>>();
    let costs = |runs: &[Pipelined]| runs.iter().map(|run| run.cpu_us_per_wave).collect::<Vec<_>>();
    let (rate, floor_rate) = (rates(tree), rates(floor));
    let (cost, floor_cost) = (costs(tree), costs(floor));
    Section::new(
        "pipelined",
        [
            Figure::new("waves_per_s", Spread::of(&rate)),
            Figure::new("ratio_to_floor", ratio(&rate, &floor_rate)),
            Figure::new("floor_waves_per_s", Spread::of(&floor_rate)),
            Figure::new("cpu_us_per_wave", Spread::of(&cost)),
            Figure::new("cpu_ratio_to_floor", ratio(&cost, &floor_cost)),
            Figure::new("floor_cpu_us_per_wave", Spread::of(&floor_cost)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_always_first() {
        let turns = |run| turns(run, 2).collect::<Vec<_>>();
        assert_eq!([turns(0), turns(1), turns(2)], [[1, 0], [0, 1], [1, 0]]);
    }
}
