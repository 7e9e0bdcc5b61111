//! A shape laid over hosts: one back-end on each, and a rule for where communication processes run.

use alloc::vec;
use alloc::vec::Vec;

use crate::error::Error;
use crate::hosts::{HostName, Hosts, Placement};
use crate::nodeset::NodeSet;
use crate::ranks::{Layout, back_ends_of, number};
use crate::shape::Shape;
use crate::tree::Topology;

/// Most hosts that one process of [`Topology::on_nodes`] reaches.
const FAN_OUT: u32 = 32;

impl Topology {
    /// One back-end on each host of a nodeset such as `node[01-16]`, below a front-end on this
    /// machine: as [`Topology::on_hosts`] where there is a shape, else as
    /// [`Topology::over_hosts`] with a fan-out of 32.
    ///
    /// # Errors
    ///
    /// As those two, and for what is no nodeset, or an empty one. Groups are not known here.
    pub fn on_nodes(nodes: &str, shape: Option<&Shape>) -> Result<Self, Error> {
        let hosts = Hosts::try_from(&nodes.parse::<NodeSet>()?)?;
        match shape {
            Some(shape) => Self::on_hosts(shape, &hosts, None),
            None => Self::over_hosts(&hosts, FAN_OUT),
        }
    }

    /// A shape whose back-ends run on these hosts, one on each in order, below a front-end on this
    /// machine. Communication processes run on the hosts of `communication`, in turns; without any,
    /// each on the host of the first back-end below it, so that a host is reached once.
    ///
    /// ```
    /// use sapwood_topology::{Hosts, Topology};
    ///
    /// let hosts: Hosts = "a,b,c,d".parse()?;
    /// let beside = Topology::on_hosts(&"2x2".parse()?, &hosts, None)?;
    /// assert_eq!(beside.parent(3).unwrap().host().as_str(), "c");
    /// let apart = Topology::on_hosts(&"2x2".parse()?, &hosts, Some(&"x,y".parse()?))?;
    /// assert_eq!(apart.parent(3).unwrap().host().as_str(), "y");
    /// # Ok::<(), sapwood_topology::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BackEndHosts`] for a shape that has not exactly as many back-ends as there are
    /// hosts, or whose back-ends attach.
    pub fn on_hosts(
        shape: &Shape,
        hosts: &Hosts,
        communication: Option<&Hosts>,
    ) -> Result<Self, Error> {
        let names = hosts.names();
        let (back_ends, attaches) = (shape.back_end_count(), shape.attach_per_leaf().is_some());
        if attaches || back_ends as usize != names.len() {
            let shape = alloc::format!("{shape}");
            return Err(Error::BackEndHosts { shape, back_ends, hosts: names.len() });
        }
        let parents = shape.parents();
        let mut table = vec![HostName::local()];
        table.extend_from_slice(names);
        let others = communication.map_or(&[][..], Hosts::names);
        table.extend_from_slice(others);
        let mut placed = vec![0_u32; table.len()];
        let mut turn = 0;
        let mut place = |node: usize, first: u32, is_leaf: bool| {
            let host = match (node, is_leaf || others.is_empty()) {
                (0, _) => 0,
                (_, true) => first as usize + 1,
                (_, false) => {
                    turn += 1;
                    1 + names.len() + (turn - 1) % others.len()
                }
            };
            let index = placed[host];
            placed[host] += 1;
            Placement { host: host as u32, index }
        };
        let nodes = back_ends_of(&parents);
        let nodes = nodes.into_iter().enumerate();
        let placements: Vec<Placement> =
            nodes.map(|(node, (first, is_leaf))| place(node, first, is_leaf)).collect();
        Ok(number(Layout { parents, placements, hosts: table, attaching: false }))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::tree::Role;

    fn hosts(letter: char, count: u32) -> Hosts {
        let names = (0..count).map(|n| alloc::format!("{letter}{n}").parse().unwrap());
        Hosts::new(names.collect()).unwrap()
    }

    #[test]
    fn every_back_end_has_its_host_and_every_host_is_reached_once() {
        for spec in ["7", "3x3", "2^4", "k:2@32", "g:3:1x4,2x2"] {
            let shape: Shape = spec.parse().unwrap();
            let hosts = hosts('n', shape.back_end_count());
            let tree = Topology::on_hosts(&shape, &hosts, None).unwrap();
            let mut reached = 0;
            for node in tree.nodes() {
                if node.role() == Role::BackEnd {
                    assert_eq!(node.host().as_str(), alloc::format!("n{}", node.rank()));
                }
                let parent = node.parent().and_then(|parent| tree.node(parent));
                reached += u32::from(parent.is_some_and(|parent| parent.host() != node.host()));
            }
            assert_eq!(reached, shape.back_end_count(), "{spec}");
        }
    }

    #[test]
    fn dedicated_hosts_take_turns_and_have_no_back_end() {
        let tree =
            Topology::on_hosts(&"4x2".parse().unwrap(), &hosts('n', 8), Some(&hosts('c', 3)));
        let tree = tree.unwrap();
        let hosts = tree.nodes().filter(|node| node.role() == Role::Comm);
        let hosts: Vec<_> = hosts.map(|node| node.host().to_string()).collect();
        assert_eq!(hosts, ["c0", "c1", "c2", "c0"]);
        assert_eq!(tree.root().host(), &HostName::local());
    }

    #[test]
    fn hosts_and_back_ends_have_to_agree() {
        for spec in ["2x2", "3+1"] {
            let error = Topology::on_hosts(&spec.parse().unwrap(), &hosts('n', 3), None);
            assert!(matches!(error, Err(Error::BackEndHosts { .. })), "{spec}");
        }
    }

    #[test]
    fn a_nodeset_is_enough() {
        let drawn = |topology: Topology| topology.draw();
        let tree = Topology::on_nodes("n[1-40]", None).unwrap();
        assert_eq!((tree.back_end_count(), tree.depth()), (40, 2));
        let tree = Topology::on_nodes("n[1-4]", Some(&"2x2".parse().unwrap())).unwrap();
        let hosts: Hosts = "n1,n2,n3,n4".parse().unwrap();
        let same = Topology::on_hosts(&"2x2".parse().unwrap(), &hosts, None).unwrap();
        assert_eq!(drawn(tree), drawn(same));
        assert_eq!(Topology::on_nodes("", None), Err(Error::NoHosts));
        for wrong in ["n[1-", "n[3-1]", "@web"] {
            assert!(Topology::on_nodes(wrong, None).is_err(), "{wrong}");
        }
    }
}
