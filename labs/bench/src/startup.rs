//! Start-up of Sapwood's tree beside starting as many processes that connect once.
//!
//! The floor is `sapwood_floor::startup`: the same program, started as often as the tree has
//! processes below its root, each of which connects to one socket. Sapwood's time runs from before
//! the first start to the answer of the whole tree. Ending either is not in its time.

use sapwood_floor::startup::{StartupPlan, run};
use sapwood_floor::statistics::{Spread, ratio};

use super::floor_failure::of_floor;
use super::plan::Plan;
use super::progress::Progress;
use super::report::{Figure, Section};
use super::tree::Tree;
use sapwood_command_line::exit::Failure;

/// Starts both in turn.
pub(super) fn measure(plan: &Plan, progress: &mut Progress) -> Result<Section, Failure> {
    let floor_plan = StartupPlan::new(plan.tree.shape.processes() - 1).map_err(of_floor)?;
    let tree = || -> Result<f64, Failure> {
        let tree = Tree::open(&plan.tree)?;
        let ms = tree.startup.as_secs_f64() * 1e3;
        tree.close()?;
        Ok(ms)
    };
    let floor = || Ok::<_, Failure>(run(&floor_plan).map_err(of_floor)?.ms);
    let (mut tree_ms, mut floor_ms) = (Vec::new(), Vec::new());
    for pair in 0..plan.runs {
        progress.say("start-up", pair, plan.runs);
        if pair.is_multiple_of(2) {
            tree_ms.push(tree()?);
            floor_ms.push(floor()?);
        } else {
            floor_ms.push(floor()?);
            tree_ms.push(tree()?);
        }
    }
    Section::new(
        "startup",
        [
            Figure::new("ms", Spread::of(&tree_ms)),
            Figure::new("ratio_to_floor", ratio(&tree_ms, &floor_ms)),
            Figure::new("floor_ms", Spread::of(&floor_ms)),
        ],
    )
}
