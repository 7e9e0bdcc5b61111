//! A tree over a list of hosts with one back-end on each, as launchers and `sapwood run` want it.
//!
//! Communication processes stand beside the first back-end below them, so that a host is reached
//! once: the first process started there starts the others of that host.

use alloc::vec;
use alloc::vec::Vec;

use crate::error::Error;
use crate::hosts::{HostName, Hosts, Placement};
use crate::limits::{DEPTH_MAX, FAN_OUT_MAX, NODES_MAX};
use crate::ranks::{Layout, number};
use crate::tree::Topology;

impl Topology {
    /// One back-end on each of these hosts, below a front-end on this machine. No process reaches
    /// more than `fan_out` other hosts; where there are more hosts than that, each of that many
    /// groups of nearly equal size has a communication process on its first host, and so on. A
    /// fan-out of 1 makes a chain, in which each host reaches the next; so does 0.
    ///
    /// Back-ends have the ranks of their hosts in the list. A host that is named twice has two.
    ///
    /// ```
    /// use sapwood_topology::{Hosts, Topology};
    ///
    /// let hosts: Hosts = "a,b,c,d".parse()?;
    /// let tree = Topology::over_hosts(&hosts, 2)?;
    /// assert_eq!((tree.back_end_count(), tree.depth()), (4, 2));
    /// assert_eq!(tree.node(2).unwrap().host().as_str(), "c");
    /// # Ok::<(), sapwood_topology::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::FanOutTooLarge`] for a fan-out beyond [`FAN_OUT_MAX`]; [`Error::TooDeep`],
    /// as for a chain of more than 64 hosts; [`Error::TooManyNodes`].
    pub fn over_hosts(hosts: &Hosts, fan_out: u32) -> Result<Self, Error> {
        if fan_out > FAN_OUT_MAX {
            let what = alloc::format!("a tree over {} hosts", hosts.names().len());
            return Err(Error::FanOutTooLarge { what, fan_out: fan_out.into() });
        }
        let names = hosts.names();
        if names.len() as u64 > u64::from(NODES_MAX / 2) {
            let what = alloc::format!("{} hosts", names.len());
            return Err(Error::TooManyNodes { what });
        }
        let mut table = vec![HostName::local()];
        table.extend_from_slice(names);
        let mut growth = Growth::new(table.len());
        growth.grow(0..names.len() as u32, fan_out.max(1))?;
        Ok(number(Layout {
            parents: growth.parents,
            placements: growth.placements,
            hosts: table,
            attaching: false,
        }))
    }
}

/// The tree as it grows level by level, so that every parent stands before its children.
struct Growth {
    parents: Vec<u32>,
    placements: Vec<Placement>,
    /// How many nodes each host of the table has.
    placed: Vec<u32>,
}

impl Growth {
    fn new(hosts: usize) -> Self {
        let mut growth =
            Self { parents: Vec::new(), placements: Vec::new(), placed: vec![0; hosts] };
        growth.put(0, 0);
        growth
    }

    /// A node below `parent` on a host of the table; its number.
    fn put(&mut self, parent: u32, host: u32) -> u32 {
        let index = self.placed[host as usize];
        self.placed[host as usize] += 1;
        self.parents.push(parent);
        self.placements.push(Placement { host, index });
        self.parents.len() as u32 - 1
    }

    /// Puts the hosts of a range of the list below the front-end.
    fn grow(&mut self, all: core::ops::Range<u32>, fan_out: u32) -> Result<(), Error> {
        // Each entry: a process, its depth, the hosts below it, and whether it is on the first.
        let mut level = vec![(0, 0, all, false)];
        while !level.is_empty() {
            let mut next = Vec::new();
            for (parent, depth, hosts, is_there) in level {
                if depth >= DEPTH_MAX {
                    let what = alloc::format!("a chain of hosts with fan-out {fan_out}");
                    return Err(Error::TooDeep { what });
                }
                for part in parts(hosts, fan_out, is_there) {
                    // Position 0 of the table is this machine.
                    let node = self.put(parent, part.start + 1);
                    if part.len() > 1 {
                        next.push((node, depth + 1, part, true));
                    }
                }
            }
            level = next;
        }
        Ok(())
    }
}

/// The parts of a range that the children of one process take: its own host, if it is on the first,
/// and at most `fan_out` others.
fn parts(hosts: core::ops::Range<u32>, fan_out: u32, is_there: bool) -> Vec<core::ops::Range<u32>> {
    let count = hosts.len() as u32;
    let others = if is_there { count - 1 } else { count };
    let mut parts = Vec::new();
    let mut start = hosts.start;
    if is_there {
        // Its own back-end.
        parts.push(start..start + 1);
        start += 1;
    }
    let groups = others.min(fan_out);
    for group in 0..groups {
        let length = others / groups + u32::from(group < others % groups);
        parts.push(start..start + length);
        start += length;
    }
    parts
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::tree::Role;

    fn tree(hosts: u32, fan_out: u32) -> Topology {
        let names = (0..hosts).map(|number| alloc::format!("n{number}").parse().unwrap());
        Topology::over_hosts(&Hosts::new(names.collect()).unwrap(), fan_out).unwrap()
    }

    #[test]
    fn each_host_has_one_back_end_and_is_reached_once() {
        for hosts in [1, 2, 3, 7, 16, 64, 100] {
            for fan_out in [2, 3, 8, 64] {
                let tree = tree(hosts, fan_out);
                assert_eq!(tree.back_end_count(), hosts);
                let mut reached = 0;
                for node in tree.nodes() {
                    let is_elsewhere = |child: &&u32| {
                        tree.node(**child).is_some_and(|child| child.host() != node.host())
                    };
                    let elsewhere = node.children().iter().filter(is_elsewhere).count() as u32;
                    assert!(elsewhere <= fan_out, "{hosts} hosts, fan-out {fan_out}");
                    reached += elsewhere;
                }
                assert_eq!(reached, hosts, "fan-out {fan_out}");
                for rank in tree.back_ends() {
                    let host = tree.node(rank).unwrap().host().to_string();
                    assert_eq!(host, alloc::format!("n{rank}"));
                }
            }
        }
    }

    #[test]
    fn a_fan_out_of_one_is_a_chain_and_a_large_one_is_flat() {
        assert_eq!((tree(5, 1).depth(), tree(5, 64).depth()), (5, 1));
        let flat = tree(64, 64);
        assert!(flat.nodes().all(|node| node.role() != Role::Comm));
        assert!(tree(64, 8).depth() <= 3);
    }

    #[test]
    fn what_no_tree_can_be_is_refused() {
        let hosts = Hosts::new((0..70).map(|n| alloc::format!("n{n}").parse().unwrap()).collect());
        let hosts = hosts.unwrap();
        assert!(matches!(Topology::over_hosts(&hosts, 1), Err(Error::TooDeep { .. })));
        let broad = Topology::over_hosts(&hosts, FAN_OUT_MAX + 1);
        assert!(matches!(broad, Err(Error::FanOutTooLarge { .. })));
    }
}
