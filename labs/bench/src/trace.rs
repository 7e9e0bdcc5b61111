//! `sapwood bench trace`: what the record of a collective costs, and the analysis of all of them.
//!
//! Owns the command line and the order of the experiments: one event beside a look at the clock
//! (`event_cost`), and the programs gsum and compute-gsum of "Collective communication performance
//! analysis within the communication system" (Bongo, Anshus, Bjorndalen, 2004) with the collectors
//! alone and with the tree that analyses all events: between MPI ranks (`gsum`), and over streams
//! of a tree (`streams`), whose monitors are those of `sapwood trace tree`. Beside the costs stands
//! what the analysis is good for: how often it names the rank that has a fault (`culprit`); and
//! what the monitor's process holds (`monitor_memory`).

mod culprit;
mod event_cost;
mod gsum;
mod monitor_memory;
mod rows;
mod streams;

use std::path::PathBuf;

use super::facts::Facts;
use super::progress::Progress;
use super::shim_cost;
use sapwood_command_line::exit::Failure;

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.bench-trace/1";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Experiment {
    /// One event beside a look at the clock, in a loop and alone.
    Event,
    /// Memory of the monitor's process on a host.
    Memory,
    /// Sums over all ranks one after another, without and with a sort between them.
    Gsum,
    /// The same over two streams of a tree.
    Streams,
    /// How often 'sapwood trace why' names the rank that has a fault.
    Culprit,
}

/// The command line.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Only these experiments, separated by commas; all unless given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Experiment>,
    /// Pairs of runs, each with and without what is measured.
    #[arg(long, value_name = "N", default_value_t = 15,
          value_parser = clap::value_parser!(u16).range(1..=1001))]
    pairs: u16,
    /// Sums of one run of gsum.
    #[arg(long, value_name = "N", default_value_t = 20_000,
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    iterations: u32,
    /// Ranks: 2 of gsum and 8 of the programs with faults unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    ranks: Option<u16>,
    /// The compiler of the MPI that is measured.
    #[arg(long, value_name = "PROGRAM", default_value = "mpicc")]
    mpicc: PathBuf,
    /// The launcher of that MPI.
    #[arg(long, value_name = "PROGRAM", default_value = "mpirun")]
    mpirun: PathBuf,
    /// Further words for the launcher of gsum, separated by blanks, such as hosts for its ranks.
    #[arg(long, value_name = "WORDS", default_value = "", allow_hyphen_values = true)]
    launch: String,
    /// What the rows of gsum call the place of its ranks.
    #[arg(long = "where", value_name = "TEXT", default_value = "one host")]
    place: String,
    /// The shim for that MPI; the one for Open MPI that `sapwood mpi` takes unless given.
    #[arg(long, value_name = "FILE")]
    shim: Option<PathBuf>,
    /// The tree of the streams.
    #[arg(long, value_name = "SHAPE", default_value = "2x2")]
    topology: sapwood::Shape,
    #[command(flatten)]
    culprit: culprit::Arguments,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

/// Measures what is asked for.
pub(super) fn measure(arguments: &Arguments) -> Result<Facts, Failure> {
    let wants = |experiment| arguments.only.is_empty() || arguments.only.contains(&experiment);
    // The last experiment would refuse what the others took minutes for.
    if wants(Experiment::Culprit) {
        culprit::ranks(arguments)?;
    }
    let mut facts = Facts::new(SCHEMA, "the trace of collectives, on this host".to_owned());
    let mut progress = Progress::new();
    facts.setting("compiler", arguments.mpicc.to_string_lossy());
    facts.setting("launcher", arguments.mpirun.to_string_lossy());
    // The streams need no shim.
    let shim = || shim_cost::shim(arguments.shim.as_deref());
    if wants(Experiment::Event) {
        event_cost::measure(arguments, &shim()?, &mut facts, &mut progress)?;
    }
    if wants(Experiment::Memory) {
        monitor_memory::measure(arguments, &mut facts, &mut progress)?;
    }
    if wants(Experiment::Gsum) {
        gsum::measure(arguments, &shim()?, &mut facts, &mut progress)?;
    }
    if wants(Experiment::Streams) {
        streams::measure(arguments, &mut facts, &mut progress)?;
    }
    if wants(Experiment::Culprit) {
        culprit::measure(arguments, &mut facts, &mut progress)?;
    }
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_as_its_schema_says() {
        let mut facts = Facts::new(SCHEMA, String::new());
        facts.setting("compiler", "mpicc");
        facts.setting("launcher", "mpirun");
        event_cost::tell(&event_cost::tests::runs(), &mut facts).expect("there are runs");
        let of_ranks = ["collectors", "analysis", "statistics", "waiting", "released"];
        for program in ["gsum", "compute_gsum"] {
            facts.setting(program, rows::tests::rows(&of_ranks));
            let of_streams = rows::tests::rows(&["collectors", "load_balance", "statistics"]);
            facts.setting(&format!("streams.{program}"), of_streams);
        }
        facts.setting("streams.topology", "2x2");
        culprit::tests::tell(&mut facts);
        let found = serde_json::from_str(&facts.to_json()).expect("it is JSON");
        sapwood_schema::assert_fits("bench-trace-1", &found);
    }
}
