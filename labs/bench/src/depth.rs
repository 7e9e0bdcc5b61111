//! Trees of 1 to N levels: how long they take to start, and what a round trip costs.
//!
//! Owns two rows of trees: chains (`1x1x1`), in which each level adds one process to the way of a
//! packet, and full binary trees (`2^3`), in which it doubles their number. On a machine of few
//! cores the second says what the processes cost, and only the first what the depth costs.

use sapwood_floor::Shape;

use super::facts::{Facts, look};
use super::floor_failure::of_floor;
use super::plan::Transport;
use super::progress::Progress;
use super::tree::{Tree, TreePlan};
use sapwood_command_line::exit::Failure;

/// Most levels that are asked for; a binary tree of more has too many processes for one machine.
pub(super) const DEPTH_MAX: u32 = 11;

/// Bytes of an answer.
const BYTES: usize = 64;
/// Round trips of a tree, and those before that are not counted.
const ROUNDS: usize = 101;
const WARMUP_ROUNDS: usize = 10;

/// Measures both rows.
pub(super) fn measure(
    depth: u32,
    transport: Transport,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut rows = Vec::new();
    facts.heading("by depth: start-up, median round trip");
    for levels in 1..=depth as usize {
        for fan_out in [1, 2] {
            progress.say("depth", levels - 1, depth as usize);
            let shape = Shape::new(&vec![fan_out; levels]).map_err(of_floor)?;
            let plan = TreePlan { shape, transport, is_encrypted: false, recovery: None };
            let mut tree = Tree::open(&plan)?;
            let us = tree.round_trip(BYTES, ROUNDS, WARMUP_ROUNDS)?;
            let ms = tree.startup.as_secs_f64() * 1e3;
            tree.close()?;
            facts.heading(&format!("  {fan_out}^{levels:<38} {ms:>10.1} ms {us:>10.1} us"));
            rows.push(serde_json::json!({
                "topology": format!("{fan_out}^{levels}"),
                "depth": levels,
                "processes": plan.shape.processes(),
                "startup_ms": ms,
                "round_trip_us": us,
            }));
        }
    }
    let us_of = |topology: String| {
        let row = rows.iter().find(|row| row["topology"] == topology.as_str());
        row.and_then(|row| row["round_trip_us"].as_f64()).unwrap_or(0.0)
    };
    if depth > 1 {
        let added = us_of(format!("1^{depth}")) - us_of("1^1".to_string());
        facts.number(
            "depth.us_per_level",
            look("round trip, each further level of a chain", "us", 1),
            added / f64::from(depth - 1),
            None,
        );
    }
    facts.setting("depth.trees", rows);
    Ok(())
}
