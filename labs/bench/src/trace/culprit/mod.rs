//! How often `sapwood trace why` names the rank that has a fault, and how often it accuses one of
//! a program without a fault.
//!
//! Owns the order of the trials. `cases` has the programs and the kinds of faults, `watch` one run
//! of the command, `trial` its moments and its answer, `judgement` which rank an answer accuses,
//! `rows` what is told of all.

mod cases;
mod judgement;
mod rows;
mod simulated;
mod trial;
mod watch;

use std::path::PathBuf;

use clap::ValueEnum;
use sapwood_command_line::exit::Failure;

use super::super::connect::Folder;
use super::super::facts::{Facts, named};
use super::super::progress::Progress;
use super::super::tree::own_program;
use cases::{Case, Draw, FaultKind, Target, Targets};
use rows::{CleanRow, FaultRow, Found, LeftOut, SimulatedRow};
use simulated::SimulatedTrial;
use trial::{CulpritBench, TrialOutcome};

/// Ranks unless the command line says more, and how few and how many there may be.
const RANKS: u16 = 8;
const RANKS_MIN: u16 = 4;
const RANKS_MAX: u16 = 32;

/// The part of the command line that is of this experiment.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// Trials of each kind of fault in each program.
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    trials: u32,
    /// Runs of each program without a fault.
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(0..=10_000))]
    clean: u32,
    /// Number from which the rank and the moment of each fault are drawn.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Only these kinds of faults, separated by commas; all unless given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    kinds: Vec<FaultKind>,
    /// Only these programs, separated by commas; all unless given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    programs: Vec<Target>,
    /// Write what 'sapwood trace why' printed in each trial that was not right to this folder.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// The interpreter of the solver and of the training.
    #[arg(long, value_name = "PROGRAM", default_value = "/usr/bin/python3")]
    python: PathBuf,
    /// LAMMPS.
    #[arg(long, value_name = "PROGRAM", default_value = "lmp")]
    lammps: PathBuf,
}

/// The number of ranks.
///
/// # Errors
/// [`Failure`] where it is too small or too large for this experiment.
pub(super) fn ranks(arguments: &super::Arguments) -> Result<u16, Failure> {
    let ranks = arguments.ranks.unwrap_or(RANKS);
    if !(RANKS_MIN..=RANKS_MAX).contains(&ranks) {
        return Err(Failure::usage(format!(
            "--ranks {ranks}: the experiment 'culprit' needs from {RANKS_MIN} to {RANKS_MAX}; \
             --only leaves it out"
        )));
    }
    Ok(ranks)
}

/// Makes all trials.
pub(super) fn measure(
    arguments: &super::Arguments,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let ranks = ranks(arguments)?;
    let own = &arguments.culprit;
    let folder = Folder::create()?;
    let programs = Targets {
        mpirun: &arguments.mpirun,
        python: &own.python,
        lammps: &own.lammps,
        ranks,
        folder: &folder.path,
    };
    programs.write(&arguments.mpicc)?;
    let bench = CulpritBench { programs, sapwood: own_program()?.with_file_name("sapwood") };
    let mut found = Found { seed: own.seed, ranks, ..Found::default() };
    for &program in Target::value_variants() {
        if own.programs.is_empty() || own.programs.contains(&program) {
            of_program(&bench, program, own, &mut found, progress)?;
        }
    }
    for &kind in FaultKind::value_variants() {
        if own.kinds.is_empty() || own.kinds.contains(&kind) {
            found.simulated.push(simulated_row(kind, own)?);
        }
    }
    found.tell(facts);
    Ok(())
}

/// Trials of a kind in simulated ranks.
fn simulated_row(kind: FaultKind, own: &Arguments) -> Result<SimulatedRow, Failure> {
    let make = |number| SimulatedTrial::make(Some(kind), own.seed, number);
    Ok(SimulatedRow { kind, trials: (0..own.trials).map(make).collect::<Result<_, _>>()? })
}

fn of_program(
    bench: &CulpritBench<'_>,
    program: Target,
    own: &Arguments,
    found: &mut Found,
    progress: &mut Progress,
) -> Result<(), Failure> {
    if let Some(why) = bench.programs.lacks(program) {
        found.left_out.push(LeftOut { program, kind: None, why });
        return Ok(());
    }
    for &kind in FaultKind::value_variants() {
        if !own.kinds.is_empty() && !own.kinds.contains(&kind) {
            continue;
        }
        if let Some(why) = program.excludes(kind) {
            found.left_out.push(LeftOut { program, kind: Some(kind), why: why.to_owned() });
            continue;
        }
        let what = format!("{} {}", named(program), named(kind));
        let mut outcomes = Vec::new();
        for trial in 0..own.trials {
            progress.say(&what, trial as usize, own.trials as usize);
            let draw = Draw { seed: own.seed, ranks: bench.programs.ranks, trial };
            let outcome = bench.run(Case::faulty(program, kind, &draw))?;
            keep(own, &outcome, &format!("{what} {trial}"))?;
            outcomes.push(outcome);
        }
        found.rows.push(FaultRow { program, kind, outcomes });
    }
    let what = format!("{} without a fault", named(program));
    let mut outcomes = Vec::new();
    for run in 0..own.clean {
        progress.say(&what, run as usize, own.clean as usize);
        let outcome = bench.run(Case::clean(program, run))?;
        keep(own, &outcome, &format!("{what} {run}"))?;
        outcomes.push(outcome);
    }
    if own.clean > 0 {
        found.clean.push(CleanRow { program, outcomes });
    }
    Ok(())
}

/// Keeps what is not as it should be.
fn keep(own: &Arguments, outcome: &TrialOutcome, name: &str) -> Result<(), Failure> {
    let is_right = outcome.is_right() || outcome.is_quiet();
    match &own.keep {
        Some(folder) if !is_right => outcome.keep(folder, &name.replace(' ', "-")),
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Tells what all kinds of rows have.
    pub(in super::super) fn tell(facts: &mut Facts) {
        rows::tests::found().tell(facts);
    }
}
