//! A topology from the plan of its root, for a front-end that takes the place of another.

use alloc::vec;
use alloc::vec::Vec;

use crate::hosts::Placement;
use crate::ranks::{Layout, number};
use crate::subtree::Subtree;
use crate::tree::Topology;

impl Subtree {
    /// The topology whose root this plan is for; `None` for the plan of another node.
    ///
    /// ```
    /// use sapwood_topology::{Hosts, Topology};
    ///
    /// let topology = Topology::from_shape(&"2x3".parse()?, &Hosts::local());
    /// let plan = topology.subtree(topology.root().rank()).unwrap();
    /// assert_eq!(plan.to_topology(), Some(topology));
    /// # Ok::<(), sapwood_topology::Error>(())
    /// ```
    pub fn to_topology(&self) -> Option<Topology> {
        let nodes: Vec<_> = self.nodes().collect();
        // Nodes of one level come in pre-order from left to right.
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        order.sort_by_key(|&at| nodes[at].depth);
        let mut position = vec![0_u32; nodes.len()];
        for (at, &node) in order.iter().enumerate() {
            position[node] = u32::try_from(at).ok()?;
        }
        // The last node of each level that has been met is the parent of those behind it.
        let mut above: Vec<usize> = Vec::new();
        let mut parents = vec![0_usize; nodes.len()];
        for (at, node) in nodes.iter().enumerate() {
            above.truncate((node.depth - nodes[0].depth) as usize);
            parents[at] = above.last().copied().unwrap_or(0);
            above.push(at);
        }
        let hosts = self.hosts().to_vec();
        let mut placements = Vec::with_capacity(nodes.len());
        for &at in &order {
            let host = hosts.iter().position(|host| host == nodes[at].host)?;
            placements.push(Placement { host: u32::try_from(host).ok()?, index: nodes[at].index });
        }
        let parents = order.iter().map(|&at| position[parents[at]]).collect();
        let topology =
            number(Layout { parents, placements, hosts, attaching: self.is_attaching() });
        (topology.subtree(topology.root().rank()).as_ref() == Some(self)).then_some(topology)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Hosts, Topology};

    #[test]
    fn every_shape_grows_again_from_the_plan_of_its_root() {
        for spec in ["1", "5", "2x3", "3x2x2", "1^4"] {
            let shape = spec.parse().expect("a shape");
            for topology in [
                Topology::from_shape(&shape, &Hosts::local()),
                Topology::attach(&shape, &Hosts::local()),
            ] {
                let root = topology.root().rank();
                let plan = topology.subtree(root).expect("a root has a plan");
                assert_eq!(plan.to_topology().as_ref(), Some(&topology), "{spec}");
                let other = topology.subtree(0).expect("there is a back-end");
                assert_eq!(other.to_topology(), None);
            }
        }
    }
}
