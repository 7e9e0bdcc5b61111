//! Memory of a communication process, and of each further idle link.
//!
//! Two trees of their own: 8x8, whose eight communication processes have eight children each, and
//! one communication process with 8 and with 72 children. Every tree has answered some waves before
//! it is looked at, and is idle then: what a link keeps once it has been used is in the figure.

use std::thread::sleep;
use std::time::Duration;

use sapwood_floor::Shape;
use sapwood_floor::process::resident;
use sapwood_floor::statistics::Spread;

use super::floor_failure::of_floor;
use super::plan::Plan;
use super::processes::{anonymous_bytes, is_communication_process};
use super::progress::Progress;
use super::report::{Figure, Section};
use super::tree::{Tree, TreePlan};
use sapwood_command_line::exit::Failure;

/// Children of a communication process in the figure for a node.
const CHILDREN: usize = 8;

/// Children of the wide process, and how many more these are than `CHILDREN`.
const CHILDREN_WIDE: usize = 72;
const FURTHER_LINKS: f64 = (CHILDREN_WIDE - CHILDREN) as f64;

/// Waves before a tree is looked at.
const ROUNDS: usize = 8;

/// What a tree gets to come to rest. A shorter one would show buffers that are about to be freed.
const REST: Duration = Duration::from_millis(50);

/// Most pairs of a narrow and a wide tree: memory differs little from start to start.
const RUNS_MAX: usize = 5;

/// Measures both.
pub(super) fn measure(plan: &Plan, progress: &mut Progress) -> Result<Section, Failure> {
    let mut resident_bytes = Vec::new();
    look_at(plan, &[CHILDREN, CHILDREN], |pid| {
        let resident = resident(pid).map_err(|error| {
            Failure::own(&format!("cannot read the memory of process {pid}: {error}"))
        })?;
        resident_bytes.push(resident.now_bytes as f64);
        Ok(())
    })?;
    let runs = plan.runs.min(RUNS_MAX);
    let mut link_bytes = Vec::new();
    for run in 0..runs {
        progress.say("memory", run, runs);
        let narrow = anonymous(plan, CHILDREN)?;
        let wide = anonymous(plan, CHILDREN_WIDE)?;
        link_bytes.push((wide - narrow) / FURTHER_LINKS);
    }
    Section::new(
        "node",
        [
            Figure::new("rss_bytes", Spread::of(&resident_bytes)),
            Figure::new("bytes_per_idle_link", Spread::of(&link_bytes)),
        ],
    )
}

/// Memory of the only communication process of a tree in which it has that many children.
fn anonymous(plan: &Plan, children: usize) -> Result<f64, Failure> {
    let mut bytes = 0.0;
    look_at(plan, &[1, children], |pid| {
        bytes = anonymous_bytes(pid)? as f64;
        Ok(())
    })?;
    Ok(bytes)
}

/// Opens a tree, lets it work and rest, and shows each of its communication processes.
fn look_at(
    plan: &Plan,
    fan_outs: &[usize],
    mut look: impl FnMut(u32) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut tree = Tree::open(&TreePlan {
        shape: Shape::new(fan_outs).map_err(of_floor)?,
        ..plan.tree.clone()
    })?;
    tree.round_trip(64, ROUNDS, 0)?;
    sleep(REST);
    for pid in tree.processes().iter().filter(|pid| is_communication_process(**pid)) {
        look(*pid)?;
    }
    tree.close()
}
