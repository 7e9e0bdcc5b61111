//! What the closed form says of a tree: the cost model of `sapwood-topology`, and for flat trees
//! that are too wide for it, the same recursion over equal children.

use sapwood_topology::{FAN_OUT_MAX, Hosts, LogGp, NODES_MAX, Topology};

use super::{Costs, Tree};

/// The cost model's word on one tree, in the terms of `sapwood topology cost`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// A broadcast that all back-ends answer at once, microseconds.
    pub wave_us: f64,
    /// Waves a second when the back-ends never wait.
    pub waves_per_s: f64,
    /// Processor time of the front-end per broadcast and its answers, microseconds.
    pub front_end_us: f64,
    /// Processor time of the front-end for the start-up, microseconds: of a flat tree that is wide,
    /// nearly all of the start-up's time.
    pub front_end_start_us: f64,
}

impl Prediction {
    /// Predicts a tree for packets of these numbers of bytes, down and up. `None` for a tree that
    /// is beyond the limits of [`Topology`] and is not flat.
    #[must_use]
    pub fn of(tree: &Tree, costs: &Costs, bytes_down: u64, bytes_up: u64) -> Option<Self> {
        let model = costs.loggp();
        let children = tree.fan_out_max();
        let (wave_us, waves_per_s) = if tree.depth() == 1 && children > 1 {
            flat(children, model, bytes_down, bytes_up)
        } else if tree.processes() <= NODES_MAX && children <= FAN_OUT_MAX {
            let shape = tree.spec().parse().ok()?;
            let topology = Topology::from_shape(&shape, &Hosts::local());
            let wave_us = model.round_trip_us(&topology, bytes_down, bytes_up);
            (wave_us, model.waves_per_s(&topology, bytes_up))
        } else {
            return None;
        };
        let (links, start) = (f64::from(tree.front_end_children()), costs.start());
        // The proof's halves, hello and welcome; and what a child says when all below it stands.
        let messages = if tree.depth() == 1 { 4.0 } else { 5.0 };
        let per_child_us = start.spawn_us + start.proof_us + messages * model.overhead_us();
        Some(Self {
            wave_us,
            waves_per_s,
            front_end_us: 2.0 * model.overhead_us() * links,
            front_end_start_us: per_child_us * links,
        })
    }
}

/// Round trip and rate of a front-end with that many back-ends.
fn flat(children: u32, model: &LogGp, bytes_down: u64, bytes_up: u64) -> (f64, f64) {
    let bytes_us = |bytes: u64| bytes.saturating_sub(1) as f64 * model.gap_per_byte_us();
    let interval_us = |bytes| model.overhead_us().max(model.gap_us() + bytes_us(bytes));
    let flight_us = |bytes| model.overhead_us() + bytes_us(bytes) + model.latency_us();
    // The processor is free when the last question has left.
    let last_us = f64::from(children - 1) * interval_us(bytes_down);
    let mut next_us = last_us + model.overhead_us();
    let mut done_us = 0.0;
    for child in 0..children {
        let asked_us = f64::from(child) * interval_us(bytes_down);
        let answer_us =
            asked_us + flight_us(bytes_down) + model.overhead_us() + flight_us(bytes_up);
        let start_us = answer_us.max(next_us);
        done_us = start_us + model.overhead_us();
        next_us = start_us + interval_us(bytes_up);
    }
    let link_us = model.gap_us() + bytes_us(bytes_up);
    (done_us, 1e6 / (f64::from(children) * model.overhead_us().max(link_us)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::StartCosts;

    #[test]
    fn the_formula_for_flat_trees_is_that_of_all_trees() {
        let models = [(10.0, 2.0, 3.0, 0.5), (2.0, 1.5, 1.5, 0.0005), (1.0, 2.0, 0.0, 0.01)];
        for (latency, overhead, gap, per_byte) in models {
            let model = LogGp::new(latency, overhead, gap, per_byte).unwrap();
            for children in [1, 2, 100, 999] {
                let tree = Tree::flat(children).unwrap();
                let topology = Topology::from_shape(&tree.spec().parse().unwrap(), &Hosts::local());
                let (wave_us, waves_per_s) = flat(children, &model, 72, 100);
                let expected = model.round_trip_us(&topology, 72, 100);
                assert!((wave_us / expected - 1.0).abs() < 1e-9, "{wave_us} {expected}");
                assert!((waves_per_s / model.waves_per_s(&topology, 100) - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn a_flat_tree_beyond_all_limits_is_predicted_and_a_deep_one_is_not() {
        let costs = Costs::new(LogGp::LOCAL_SOCKETS, StartCosts::default()).unwrap();
        let flat = Tree::flat(1_000_000).unwrap();
        let predicted = Prediction::of(&flat, &costs, 72, 72).unwrap();
        assert_eq!(predicted.front_end_us, 3e6);
        assert!(predicted.wave_us > 3e6);
        let deep = Tree::with_fan_out(1_000_000, 2).unwrap();
        assert_eq!(Prediction::of(&deep, &costs, 72, 72), None);
    }
}
