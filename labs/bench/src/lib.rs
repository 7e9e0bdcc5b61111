//! `sapwood bench`: the tree beside its floor, in one run.
//!
//! Owns the command line of the benchmarks and the order of what is measured. `plan` is what the
//! arguments ask for; `tree` is Sapwood's tree and `leaf` its back-ends; `pairs`, `startup` and
//! `memory` measure; `report` prints. The floor itself is the crate `sapwood-floor`, and
//! docs/bench.md says how to read the figures.
//!
//! `bulk` (with `bulk_tree` and `bulk_leaf`) has a floor, too, and its figures are facts with a
//! bar.
//!
//! `shapes` compares two trees, with the turns of `pairs`.
//!
//! `bindings` compares round trips through the interfaces, each of which is an `asker`.
//!
//! `mrnet_style` measures what MRNet's authors did, with the same askers.
//!
//! `monitor` measures what the monitor's filters sustain: `sustained`, with synthetic ranks in
//! `profile_leaf`, and `offload`, with `offload_leaf`; and what it costs: `shim_cost` and
//! `perturbation`.
//!
//! `trace` measures the record of collectives and their analysis.
//!
//! `filter` measures calls of filters, beside a direct call of the same function.
//!
//! `group` measures collectives of groups by several trees, beside the simulator; `collectives`
//! those on one host, beside Open MPI and Gloo.
//!
//! Beside it stands what has no floor: `scale` (with `connect`, `streams` and `depth`, and
//! `back_end_process` for many back-ends in one process) and `flood` (with `disturbed_tree`,
//! `disturbance` and the `steady` stream of their neighbours) and `recovery` (with the
//! `failing_tree`, the `oracle` of its waves and the `overhead`), whose results `facts` prints.

mod asker;
mod back_end_process;
mod beside;
mod bindings;
mod bulk;
mod bulk_leaf;
mod bulk_tree;
mod clocks;
mod collectives;
mod connect;
mod depth;
mod disturbance;
mod disturbed_tree;
mod explain;
mod facts;
mod failing_tree;
mod filter;
mod flood;
mod floor_failure;
mod group;
mod leaf;
mod memory;
mod monitor;
mod mrnet_style;
mod offload;
mod offload_leaf;
mod oracle;
mod overhead;
mod pairs;
mod perturbation;
mod plan;
mod processes;
mod profile_leaf;
mod progress;
mod recovery;
mod report;
mod scale;
mod shapes;
mod shim_cost;
mod startup;
mod steady;
mod streams;
mod sustained;
pub mod synthetic;
mod trace;
mod tree;
mod withdrawal;

use std::ffi::OsString;
use std::process::ExitCode;

use sapwood_floor::process::Pinned;

use facts::Facts;
use plan::{Experiment, Plan};
use progress::Progress;
use report::Report;
use sapwood_command_line::exit::{Failure, print};

pub use back_end_process::BACK_ENDS;
pub use disturbance::register;
pub use group::{GROUP_MEMBER, member as group_member};
pub use leaf::{BACK_END, back_end};
pub use plan::Transport;
pub use processes::descendants;
pub use profile_leaf::{PROFILE_LEAF, run as profile_leaf};

/// Benchmarks of Sapwood on this machine, each beside a baseline of plain blocking processes
#[derive(clap::Parser)]
#[command(name = "sapwood-bench", version, propagate_version = true)]
pub struct Arguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(clap::Subcommand)]
enum Subject {
    /// Round trips, streamed waves, start-up and memory of a tree on this machine.
    Tree(plan::Arguments),
    /// Two trees with as many back-ends on this machine, by turns: which of them is better.
    Shapes(shapes::Arguments),
    /// Large trees on this machine: 10,000 back-ends, 1,000 streams, ten levels.
    Scale(scale::Arguments),
    /// Time to repair a tree after communication processes were killed or stopped.
    Recovery(recovery::Arguments),
    /// Large arrays to and from all back-ends, beside plain sockets.
    Bulk(bulk::Arguments),
    /// Round trips through C, MRNet's interface and Python, beside those of Rust.
    Bindings(bindings::Arguments),
    /// The measurements of MRNet's authors: start-up, latency and rate of sums, through its
    /// interface.
    MrnetStyle(mrnet_style::Arguments),
    /// Cost of a call of a filter: built in, from a shared object, in WebAssembly.
    Filter(filter::Arguments),
    /// Effect on other streams of a stream that is not read, floods, stalls or carries huge
    /// packets.
    Flood(flood::Arguments),
    /// Capacity and cost of the monitor: 10,000 synthetic ranks, offload with and without
    /// reduction, the shim, real programs.
    Monitor(monitor::Arguments),
    /// Cost of recording a collective, and of analysing all records.
    Trace(trace::Arguments),
    /// Accuracy of clock offsets that a tree measures, beside a front-end that asks each process
    /// itself.
    Clocks(clocks::Arguments),
    /// Collectives of real group members on an emulated network, by all trees, beside the
    /// simulator.
    Group(group::Arguments),
    /// Collectives of processes on this host: Sapwood's groups beside Open MPI and Gloo.
    Collectives(collectives::Arguments),
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let text = match &arguments.subject {
        Subject::Tree(arguments) => {
            let report = measure(&Plan::new(arguments)?)?;
            if arguments.json { report.to_json() } else { report.to_table() }
        }
        Subject::Shapes(arguments) => in_form(&shapes::measure(arguments)?, arguments.json),
        Subject::Bulk(arguments) => in_form(&bulk::measure(arguments)?, arguments.json),
        Subject::Bindings(arguments) => {
            let (facts, code) = bindings::measure(arguments)?;
            print(&in_form(&facts, arguments.json))?;
            return Ok(code);
        }
        Subject::MrnetStyle(arguments) => {
            let (facts, code) = mrnet_style::measure(arguments)?;
            print(&in_form(&facts, arguments.json))?;
            return Ok(code);
        }
        Subject::Group(arguments) => {
            let (facts, code) = group::measure(arguments)?;
            print(&in_form(&facts, arguments.json))?;
            return Ok(code);
        }
        Subject::Collectives(arguments) => {
            let (facts, code) = collectives::measure(arguments)?;
            print(&in_form(&facts, arguments.json))?;
            return Ok(code);
        }
        Subject::Monitor(arguments) => in_form(&monitor::measure(arguments)?, arguments.json),
        Subject::Trace(arguments) => in_form(&trace::measure(arguments)?, arguments.json),
        Subject::Filter(arguments) => in_form(&filter::measure(arguments)?, arguments.json),
        Subject::Clocks(arguments) => in_form(&clocks::measure(arguments)?, arguments.json),
        Subject::Flood(arguments) => in_form(&flood::measure(arguments)?, arguments.json),
        Subject::Recovery(arguments) => in_form(&recovery::measure(arguments)?, arguments.json),
        Subject::Scale(arguments) => in_form(&scale::measure(arguments)?, arguments.json),
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn in_form(facts: &Facts, is_json: bool) -> String {
    if is_json { facts.to_json() } else { facts.to_table() }
}

/// Serves many back-ends.
pub fn back_ends(arguments: &[OsString]) -> Result<ExitCode, Failure> {
    back_end_process::run(arguments)
}

fn measure(plan: &Plan) -> Result<Report, Failure> {
    let pinned = plan.cpu.map(Pinned::to).transpose();
    let _pinned = pinned.map_err(|error| {
        Failure::own(&format!("cannot stay on one core: {error}; measure without --pin"))
    })?;
    let mut progress = Progress::new();
    let mut report = Report::new(plan);
    let in_pairs = [Experiment::RoundTrip, Experiment::Pipelined, Experiment::Pages];
    if plan.explains || in_pairs.into_iter().any(|experiment| plan.wants(experiment)) {
        let measured = pairs::measure(plan, &mut progress)?;
        report.sections.extend(measured.sections);
        report.encrypted = measured.encrypted;
        report.explanation = measured.explanation;
    }
    if plan.wants(Experiment::Startup) {
        report.sections.push(startup::measure(plan, &mut progress)?);
    }
    if plan.wants(Experiment::Node) {
        report.sections.push(memory::measure(plan, &mut progress)?);
    }
    Ok(report)
}
