//! Numbers about a tree: sizes, fan-outs, nodes per level.

use alloc::vec::Vec;

use crate::tree::{Role, Topology};

/// Size and regularity of a tree.
///
/// Fan-outs are taken over the nodes that have children, as MRNet does; all are zero for a
/// front-end alone.
///
/// ```
/// use sapwood_topology::{Hosts, Topology};
///
/// let topology = Topology::from_shape(&"g:2:1,3".parse()?, &Hosts::local());
/// let statistics = topology.statistics();
/// assert_eq!((statistics.nodes, statistics.depth), (7, 2));
/// assert_eq!((statistics.fan_out_min, statistics.fan_out_max), (1, 3));
/// assert_eq!(statistics.fan_out_mean, 2.0);
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// Nodes of every role.
    pub nodes: u32,
    /// Communication processes.
    pub communication_processes: u32,
    /// Back-ends, started or attaching.
    pub back_ends: u32,
    /// Levels below the front-end.
    pub depth: u32,
    /// Smallest fan-out.
    pub fan_out_min: u32,
    /// Largest fan-out.
    pub fan_out_max: u32,
    /// Mean fan-out.
    pub fan_out_mean: f64,
    /// Standard deviation of the fan-outs, taken as the whole population.
    pub fan_out_deviation: f64,
}

/// Nodes of each role on one level.
///
/// ```
/// use sapwood_topology::{Hosts, Topology};
///
/// let topology = Topology::from_shape(&"2x4".parse()?, &Hosts::local());
/// let levels = topology.count();
/// assert_eq!((levels[1].communication_processes, levels[2].back_ends), (2, 8));
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LevelCount {
    /// The level; 0 is the front-end's.
    pub level: u32,
    /// Front-ends: 1 on level 0, else 0.
    pub front_ends: u32,
    /// Communication processes.
    pub communication_processes: u32,
    /// Back-ends, started or attaching.
    pub back_ends: u32,
}

impl Topology {
    /// Size and regularity of the tree.
    pub fn statistics(&self) -> Statistics {
        let fan_outs: Vec<u32> = self
            .nodes()
            .map(|node| node.children().len() as u32)
            .filter(|fan_out| *fan_out > 0)
            .collect();
        let parents = fan_outs.len().max(1) as f64;
        let mean = fan_outs.iter().copied().map(f64::from).sum::<f64>() / parents;
        let squares = fan_outs.iter().map(|fan_out| f64::from(*fan_out) - mean);
        let variance = squares.map(|distance| distance * distance).sum::<f64>() / parents;
        Statistics {
            nodes: self.node_count(),
            communication_processes: self.node_count() - self.back_end_count() - 1,
            back_ends: self.back_end_count(),
            depth: self.depth(),
            fan_out_min: fan_outs.iter().copied().min().unwrap_or(0),
            fan_out_max: fan_outs.iter().copied().max().unwrap_or(0),
            fan_out_mean: mean,
            fan_out_deviation: libm::sqrt(variance),
        }
    }

    /// Nodes per level and role, the front-end's level first.
    pub fn count(&self) -> Vec<LevelCount> {
        let mut levels: Vec<_> =
            (0..=self.depth()).map(|level| LevelCount { level, ..LevelCount::default() }).collect();
        for node in self.nodes() {
            let level = &mut levels[node.depth() as usize];
            match node.role() {
                Role::FrontEnd => level.front_ends += 1,
                Role::Comm => level.communication_processes += 1,
                Role::BackEnd => level.back_ends += 1,
            }
        }
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hosts;

    #[test]
    fn a_balanced_tree_has_no_deviation() {
        let topology = Topology::from_shape(&"4^3".parse().unwrap(), &Hosts::local());
        let statistics = topology.statistics();
        assert_eq!((statistics.nodes, statistics.communication_processes), (85, 20));
        assert_eq!((statistics.fan_out_mean, statistics.fan_out_deviation), (4.0, 0.0));
    }

    #[test]
    fn deviation_is_that_of_the_population() {
        let topology = Topology::from_shape(&"g:2:1,3".parse().unwrap(), &Hosts::local());
        let expected = libm::sqrt(2.0 / 3.0);
        assert!((topology.statistics().fan_out_deviation - expected).abs() < 1e-12);
    }
}
