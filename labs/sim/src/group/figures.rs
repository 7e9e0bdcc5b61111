//! The curves of the paper's figures 6 to 9, of simulated groups: a line of JSON for each tree.
//!
//! Each curve is measured in a group of its own, so that no tree waits for what another one has
//! left on the links, and none profits from costs that another one has shown.

use std::process::ExitCode;

use sapwood_command_line::exit::{Failure, print};
use sapwood_group::{Config, Time, TreeKind};
use sapwood_layout::Layout;
use sapwood_sim::group::{Network, TimedBroadcast, Trial, Turnover};
use serde_json::{Value, json};

use super::{
    CHURN_MEMBERS_MAX, KIB, LONG_MEMBERS_MAX, LONG_OVERHEAD_US, MIB, SUM_MEMBERS_MAX, SUM_SIZES,
    milliseconds, number, start,
};

/// The lengths of broadcasts, as in `sapwood bench group --only lengths`.
const LENGTHS: [usize; 7] = [32 * KIB, 128 * KIB, 512 * KIB, 2 * MIB, 8 * MIB, 32 * MIB, 64 * MIB];
/// Of the broadcasts under which members leave and return.
const CHURN_BYTES: usize = 4 * MIB;
/// All but `flat`, whose root sends 64 MiB for longer than a minute.
const LENGTH_TREES: [TreeKind; 6] = [
    TreeKind::Binomial,
    TreeKind::Static,
    TreeKind::List,
    TreeKind::PaperLatency,
    TreeKind::PaperBandwidth,
    TreeKind::Adaptive,
];
const CHURN_TREES: [TreeKind; 4] =
    [TreeKind::Static, TreeKind::List, TreeKind::PaperBandwidth, TreeKind::Adaptive];

/// A figure of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Figure {
    /// Figure 6: when each member has a broadcast of one byte.
    Members,
    /// Figure 7: the rate of broadcasts of 32 KiB to 64 MiB.
    Lengths,
    /// Figure 8: the time of sums of 8 bytes to 8 MiB.
    Sums,
    /// Figure 9: the rate of broadcasts over time while half of the members leave and return.
    Churn,
}

impl Figure {
    fn name(self) -> &'static str {
        match self {
            Self::Members => "members",
            Self::Lengths => "lengths",
            Self::Sums => "sums",
            Self::Churn => "churn",
        }
    }

    fn trees(self) -> &'static [TreeKind] {
        match self {
            Self::Members | Self::Sums => &TreeKind::ALL,
            Self::Lengths => &LENGTH_TREES,
            Self::Churn => &CHURN_TREES,
        }
    }

    /// The network, as the other figures of `sapwood sim group` have it.
    fn layout(self, layout: &Layout) -> Layout {
        let (members_max, overhead_us) = match self {
            Self::Members => (layout.hosts, layout.overhead_us),
            Self::Lengths => (layout.hosts, LONG_OVERHEAD_US),
            Self::Sums => (SUM_MEMBERS_MAX, layout.overhead_us),
            Self::Churn => (CHURN_MEMBERS_MAX, LONG_OVERHEAD_US),
        };
        Layout { hosts: layout.hosts.min(members_max), overhead_us, ..layout.clone() }
    }

    fn measure(self, trial: &mut Trial, tree: TreeKind, line: &mut Value) {
        match self {
            Self::Members => line["by_member_ms"] = by_member(trial, tree),
            Self::Lengths => line["lengths"] = lengths(trial, tree),
            Self::Sums => line["sums"] = sums(trial, tree),
            Self::Churn => churn(trial, tree, line),
        }
    }
}

/// Measures and prints figures of a scenario.
///
/// # Errors
/// [`Failure`] where the group is too large or does not come to rest.
pub(super) fn run(
    scenario: &str,
    layout: &Layout,
    seeds: u64,
    figures: &[Figure],
) -> Result<ExitCode, Failure> {
    if layout.hosts > LONG_MEMBERS_MAX {
        let text = format!("give at most {LONG_MEMBERS_MAX} members with --figures");
        return Err(Failure::usage(text));
    }
    for figure in figures {
        let layout = figure.layout(layout);
        for seed in 0..seeds {
            for tree in figure.trees() {
                let mut trial = start(Network::draw(&layout, seed), seed)?;
                if tree.is_paper() {
                    trial.grow(0, *tree);
                }
                let mut line = json!({
                    "schema": "sapwood.sim-group-figure/1",
                    "scenario": scenario,
                    "members": layout.hosts,
                    "seed": seed,
                    "figure": figure.name(),
                    "tree": tree.name(),
                });
                figure.measure(&mut trial, *tree, &mut line);
                print(&format!("{line}\n"))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The soonest member first; those that have no value last, as null.
fn by_member(trial: &mut Trial, tree: TreeKind) -> Value {
    let others = trial.world.network.hosts() - 1;
    let cast = trial.time_broadcast(0, tree, 1);
    let took: Vec<Option<Time>> =
        cast.map_or_else(|| vec![None; others], |cast| cast.took.into_iter().skip(1).collect());
    let mut times: Vec<f64> =
        took.into_iter().map(|time| time.map_or(f64::NAN, milliseconds)).collect();
    times.sort_by(f64::total_cmp);
    Value::from(times.into_iter().map(number).collect::<Vec<Value>>())
}

/// What comes after a length that did not reach all within a minute is not measured: the links
/// carry the rest of that one.
fn lengths(trial: &mut Trial, tree: TreeKind) -> Value {
    let rows = LENGTHS.into_iter().map_while(|bytes| {
        let time = trial.broadcast(0, tree, bytes)?;
        Some(json!({
            "bytes": bytes,
            "ms": number(milliseconds(time)),
            "mb_per_s": rate(bytes, time),
        }))
    });
    Value::from(rows.collect::<Vec<Value>>())
}

fn sums(trial: &mut Trial, tree: TreeKind) -> Value {
    let rows = SUM_SIZES.into_iter().map_while(|bytes| {
        let time = trial.reduce(0, tree, bytes)?;
        Some(json!({ "bytes": bytes, "ms": number(milliseconds(time)) }))
    });
    Value::from(rows.collect::<Vec<Value>>())
}

/// No broadcasts are listed where one of them has no answer within a minute.
fn churn(trial: &mut Trial, tree: TreeKind, line: &mut Value) {
    line["bytes"] = json!(CHURN_BYTES);
    line["over_time"] = json!([]);
    let Some(found) = Turnover::run(trial, tree, CHURN_BYTES, &Config::default()) else { return };
    let begin = found.broadcasts.first().map_or(0, |cast| cast.begin);
    let seconds = |time: Time| number(milliseconds(time - begin) / 1e3);
    let entry = |cast: &TimedBroadcast| {
        json!({
            "begin_s": seconds(cast.begin),
            "end_s": seconds(cast.end),
            "mb_per_s": rate(CHURN_BYTES, cast.end - cast.begin),
            "reached": reached(cast),
        })
    };
    line["over_time"] = Value::from(found.broadcasts.iter().map(entry).collect::<Vec<Value>>());
    line["moments"] = json!({ "leave_s": seconds(found.leave), "come_s": seconds(found.come) });
}

/// How many virtual nodes have it; the root has it by itself.
fn reached(cast: &TimedBroadcast) -> u64 {
    let receivers = &cast.answer.contributors;
    receivers.len() + u64::from(!receivers.contains(0))
}

/// In MB/s.
fn rate(bytes: usize, time: Time) -> Value {
    number(bytes as f64 / 1e6 / (milliseconds(time) / 1e3))
}
