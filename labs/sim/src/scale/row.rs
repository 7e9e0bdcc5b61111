//! One tree: what was simulated of it, what the closed form says, and what it cost this machine.

use std::time::Instant;

use sapwood_floor::process::resident;
use sapwood_sim::scale::{
    CHILDREN_SIMULATED_MAX, Costs, Figures, Prediction, Recovery, Stage, Study, Tree,
};

use super::Series;
use sapwood_command_line::exit::Failure;

/// Packets that back-ends send in a pipeline, in all: it bounds a study's time and memory.
const PIPELINED_PACKETS: u32 = 2_000_000;

/// Waves of a pipeline, whatever the number of back-ends.
const PIPELINED_MIN: u32 = 4;
const PIPELINED_MAX: u32 = 256;

/// Bytes of a request or an answer of one number, where no tree has been simulated yet.
const PACKET_BYTES: u64 = 64;

/// Memory to ask for per process, in bytes: what one takes, messages under way, and some more.
const PROCESS_BYTES: u64 = 12 << 10;

/// Fewest processes whose memory stands out from this process's own.
const MEASURED_MIN: u32 = 1000;

/// What all trees have in common.
pub(super) struct Plan {
    pub(super) costs: Costs,
    pub(super) recovery: Recovery,
    pub(super) waves: u16,
}

/// One tree.
pub(super) struct Row {
    pub(super) series: Series,
    pub(super) tree: Tree,
    /// `None` where a real node cannot have that many children.
    pub(super) figures: Option<Figures>,
    pub(super) predicted: Option<Prediction>,
    /// Waves in the pipeline.
    pub(super) pipelined: u16,
    /// Resident memory per simulated process once waves have been answered, in bytes. `None` where
    /// there are too few, or memory of an earlier tree was used again.
    pub(super) memory_bytes: Option<f64>,
    /// How long the simulation took on this machine.
    pub(super) real_s: f64,
}

impl Row {
    /// From a request to its answer, simulated or else predicted.
    pub(super) fn wave_us(&self) -> Option<f64> {
        let simulated = self.figures.as_ref().map(|figures| figures.wave_us);
        simulated.or(self.predicted.map(|predicted| predicted.wave_us))
    }

    /// The front-end's processor time per wave.
    pub(super) fn front_end_us(&self) -> Option<f64> {
        let simulated = self.figures.as_ref().map(|figures| figures.wave_load.busy_us);
        simulated.or(self.predicted.map(|predicted| predicted.front_end_us))
    }

    /// Time of the start-up; predicted for flat trees only.
    pub(super) fn start_us(&self) -> Option<f64> {
        let simulated = self.figures.as_ref().map(|figures| figures.start_us);
        simulated.or(self.predicted.map(|predicted| predicted.front_end_start_us))
    }

    /// Waves a second in a pipeline.
    pub(super) fn waves_per_s(&self) -> Option<f64> {
        let simulated = self.figures.as_ref().map(|figures| figures.waves_per_s);
        simulated.or(self.predicted.map(|predicted| predicted.waves_per_s))
    }
}

/// Simulates a tree, or predicts it where it cannot be simulated.
pub(super) fn measure(
    plan: &Plan,
    series: Series,
    tree: Tree,
    earlier: &[Row],
) -> Result<Row, Failure> {
    let waves = PIPELINED_PACKETS / tree.back_ends().max(1);
    // Within 16 bits, as the bounds are.
    let pipelined = waves.clamp(PIPELINED_MIN, PIPELINED_MAX) as u16;
    let begun = Instant::now();
    if tree.fan_out_max() > CHILDREN_SIMULATED_MAX {
        let last = earlier.iter().rev().find_map(|row| row.figures.as_ref());
        let (down, up) = last.map_or((PACKET_BYTES, PACKET_BYTES), |figures| {
            (figures.request_bytes, figures.answer_bytes)
        });
        let predicted = Prediction::of(&tree, &plan.costs, down, up);
        let real_s = begun.elapsed().as_secs_f64();
        let (figures, memory_bytes) = (None, None);
        return Ok(Row { series, tree, figures, predicted, pipelined, memory_bytes, real_s });
    }
    let study = Study {
        tree: tree.clone(),
        costs: plan.costs,
        recovery: plan.recovery,
        waves: plan.waves,
        pipelined,
    };
    check_memory(&study.tree)?;
    // What a thread has allocated goes back to the system when it ends, so that the next tree is
    // measured from where this one began.
    let run = std::thread::scope(|scope| {
        let run = std::thread::Builder::new().spawn_scoped(scope, || simulate(&study));
        run.map(|run| run.join().unwrap_or_else(|fault| std::panic::resume_unwind(fault)))
    });
    let run = run.map_err(|error| Failure::own(&format!("cannot start a thread: {error}")))?;
    let (figures, memory_bytes) = run?;
    let real_s = begun.elapsed().as_secs_f64();
    let predicted = figures.predicted;
    let figures = Some(figures);
    Ok(Row { series, tree, figures, predicted, pipelined, memory_bytes, real_s })
}

/// Runs a study, and measures the memory of each process.
fn simulate(study: &Study) -> Result<(Figures, Option<f64>), Failure> {
    let (before, mut after) = (own_bytes()?, Ok(0));
    let figures = study.run(|stage| {
        if stage == Stage::Answered {
            after = own_bytes();
        }
    });
    let figures = figures
        .map_err(|error| Failure::own(&format!("simulating {}: {error}", study.tree.spec())))?;
    let processes = study.tree.processes();
    let bytes = after?.saturating_sub(before) as f64 / f64::from(processes);
    let is_told = processes >= MEASURED_MIN && bytes > figures.node_bytes as f64;
    Ok((figures, is_told.then_some(bytes)))
}

/// Refuses a tree that would take all of this machine's memory.
fn check_memory(tree: &Tree) -> Result<(), Failure> {
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return Ok(()) };
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let needed = u64::from(tree.processes()) * PROCESS_BYTES;
    match kib.map(|kib| kib * 1024) {
        Some(available) if available < needed => Err(Failure::usage(format!(
            "a tree of {} processes takes about {} MB of memory, and {} MB are left; ask for fewer \
             back-ends or larger fan-outs",
            tree.processes(),
            needed >> 20,
            available >> 20,
        ))),
        _ => Ok(()),
    }
}

/// Resident memory of this process.
fn own_bytes() -> Result<u64, Failure> {
    let resident = resident(std::process::id()).map_err(|error| {
        Failure::own(&format!("cannot read the memory of this process from /proc: {error}"))
    })?;
    Ok(resident.now_bytes)
}
