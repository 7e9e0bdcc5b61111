//! `sapwood bench monitor`: what the monitor sustains and costs.
//!
//! Owns the command line and the order of the experiments: very many synthetic ranks in rounds of
//! a second (`sustained`), the offload of profiles with and without reduction (`offload`), as in
//! figures 8 and 9 of "A framework for scalable, parallel performance monitoring" (2010), what the
//! shim adds to a call (`shim_cost`), and real programs with and without it (`perturbation`).

use super::facts::Facts;
use super::progress::Progress;
use super::{offload, perturbation, shim_cost, sustained};
use sapwood_command_line::exit::Failure;

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.bench-monitor/1";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Experiment {
    /// Very many synthetic ranks, one round in a second, and how much their classes reduce.
    Synthetic,
    /// One offload of all ranks, reduced and not, by ranks, events and fan-out.
    Offload,
    /// What the shim adds to a call.
    Shim,
    /// LAMMPS, HPCC and small reductions with and without the monitor. Takes more than an hour.
    Perturbation,
}

/// The command line.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Only these experiments, separated by commas; all unless given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Experiment>,
    #[command(flatten)]
    sustained: sustained::Arguments,
    #[command(flatten)]
    offload: offload::Arguments,
    #[command(flatten)]
    shim: shim_cost::Arguments,
    #[command(flatten)]
    perturbation: perturbation::Arguments,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

/// Measures what is asked for.
pub(super) fn measure(arguments: &Arguments) -> Result<Facts, Failure> {
    let wants = |experiment| arguments.only.is_empty() || arguments.only.contains(&experiment);
    let mut facts = Facts::new(SCHEMA, "the monitor, links of unix sockets".to_owned());
    let mut progress = Progress::new();
    if wants(Experiment::Synthetic) {
        sustained::measure(&arguments.sustained, &mut facts, &mut progress)?;
    }
    if wants(Experiment::Offload) {
        offload::measure(&arguments.offload, &mut facts, &mut progress)?;
    }
    if wants(Experiment::Shim) {
        shim_cost::measure(&arguments.shim, &mut facts, &mut progress)?;
    }
    if wants(Experiment::Perturbation) {
        perturbation::measure(
            &arguments.perturbation,
            &arguments.shim.mpicc,
            &mut facts,
            &mut progress,
        )?;
    }
    Ok(facts)
}
