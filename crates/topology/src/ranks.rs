//! The numbering of a tree.
//!
//! MRNet's order of roles is kept: back-ends `0..N`, the front-end `N`, communication processes
//! `N+1..`. Within the roles the order follows the tree: back-ends from left to right, so that
//! the back-ends below any node are one range, and communication processes breadth first.

use alloc::vec;
use alloc::vec::Vec;

use crate::Rank;
use crate::hosts::{HostName, Placement};
use crate::tree::{NO_PARENT, Record, Topology};

/// A tree whose nodes have places but no ranks yet.
///
/// Node 0 is the front-end, `parents[i] < i` for every other node, and the children of one node
/// are in order. A layout keeps the limits of nodes, depth and fan-out.
pub(crate) struct Layout {
    pub parents: Vec<u32>,
    pub placements: Vec<Placement>,
    pub hosts: Vec<HostName>,
    /// Leaves are not started: their ranks wait for back-ends that attach.
    pub attaching: bool,
}

/// Gives every node its rank. Runs in time linear in the nodes, without recursion.
pub(crate) fn number(layout: Layout) -> Topology {
    let children = Children::of(&layout.parents);
    let (ranks, first_back_ends) = rank_nodes(&children);
    let node_count = layout.parents.len();

    let mut node_of = vec![0_u32; node_count];
    for (node, rank) in ranks.iter().enumerate() {
        node_of[*rank as usize] = node as u32;
    }
    let mut depths = vec![0_u32; node_count];
    for node in 1..node_count {
        depths[node] = depths[layout.parents[node] as usize] + 1;
    }
    let mut back_end_counts = vec![0_u32; node_count];
    for node in (1..node_count).rev() {
        back_end_counts[node] = back_end_counts[node].max(u32::from(children.is_leaf(node)));
        back_end_counts[layout.parents[node] as usize] += back_end_counts[node];
    }

    let mut hosts = HostTable::new(layout.hosts);
    let mut records = Vec::with_capacity(node_count);
    let mut child_ranks = Vec::with_capacity(node_count);
    for node in node_of.into_iter().map(|node| node as usize) {
        let own_children = children.of_node(node);
        let place = layout.placements[node];
        records.push(Record {
            host: hosts.use_host(place.host),
            index: place.index,
            parent: if node == 0 { NO_PARENT } else { ranks[layout.parents[node] as usize] },
            depth: depths[node],
            first_child: child_ranks.len() as u32,
            child_count: own_children.len() as u32,
            first_back_end: first_back_ends[node],
            back_end_count: back_end_counts[node],
        });
        child_ranks.extend(own_children.iter().map(|child| ranks[*child as usize]));
    }
    let front_end = ranks[0];
    Topology::from_records(hosts.used, records, child_ranks, front_end, layout.attaching)
}

/// For each node of a list of parents, the rank of the first back-end below it, or its own, and
/// whether it is a back-end.
pub(crate) fn back_ends_of(parents: &[u32]) -> Vec<(u32, bool)> {
    let children = Children::of(parents);
    let (_, first_back_ends) = rank_nodes(&children);
    let nodes = first_back_ends.into_iter().enumerate();
    nodes.map(|(node, first)| (first, children.is_leaf(node))).collect()
}

/// Children of every node in one list, with the start of each node's part.
struct Children {
    starts: Vec<u32>,
    list: Vec<u32>,
}

impl Children {
    fn of(parents: &[u32]) -> Self {
        let mut starts = vec![0_u32; parents.len() + 1];
        for parent in parents.iter().skip(1) {
            starts[*parent as usize + 1] += 1;
        }
        for node in 0..parents.len() {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut list = vec![0_u32; parents.len() - 1];
        for (node, parent) in parents.iter().enumerate().skip(1) {
            let slot = &mut next[*parent as usize];
            list[*slot as usize] = node as u32;
            *slot += 1;
        }
        Self { starts, list }
    }

    fn of_node(&self, node: usize) -> &[u32] {
        &self.list[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    fn is_leaf(&self, node: usize) -> bool {
        self.starts[node] == self.starts[node + 1]
    }
}

/// Ranks of all nodes, and for each node the number of back-ends to the left of its own.
fn rank_nodes(children: &Children) -> (Vec<Rank>, Vec<u32>) {
    let node_count = children.starts.len() - 1;
    let mut ranks = vec![0; node_count];
    let mut first_back_ends = vec![0; node_count];

    let mut next_rank = 0;
    let mut stack = vec![0_u32];
    while let Some(node) = stack.pop() {
        let node = node as usize;
        first_back_ends[node] = next_rank;
        if node != 0 && children.is_leaf(node) {
            ranks[node] = next_rank;
            next_rank += 1;
        }
        stack.extend(children.of_node(node).iter().rev());
    }

    // Breadth first over the inner nodes; the front-end is the first of them.
    let mut inner = vec![0_u32];
    let mut position = 0;
    while position < inner.len() {
        let node = inner[position] as usize;
        ranks[node] = next_rank;
        next_rank += 1;
        position += 1;
        let own = children.of_node(node).iter().copied();
        inner.extend(own.filter(|child| !children.is_leaf(*child as usize)));
    }
    (ranks, first_back_ends)
}

/// Keeps the host names that are in use, in the order of their first use by rank, so that equal
/// trees are equal in memory whatever list of hosts they came from.
struct HostTable {
    given: Vec<HostName>,
    positions: Vec<Option<u32>>,
    used: Vec<HostName>,
}

impl HostTable {
    fn new(given: Vec<HostName>) -> Self {
        Self { positions: vec![None; given.len()], given, used: Vec::new() }
    }

    fn use_host(&mut self, host: u32) -> u32 {
        let host = host as usize;
        if let Some(position) = self.positions[host] {
            return position;
        }
        let position = self.used.len() as u32;
        self.used.push(self.given[host].clone());
        self.positions[host] = Some(position);
        position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_between_two_subtrees_keeps_its_place_from_left_to_right() {
        // The front-end has children 1, 2, 3; 1 and 3 have two leaves each, 2 is a leaf.
        let children = Children::of(&[0, 0, 0, 0, 1, 1, 3, 3]);
        let (ranks, first) = rank_nodes(&children);
        assert_eq!(ranks, [5, 6, 2, 7, 0, 1, 3, 4]);
        assert_eq!(first, [0, 0, 2, 3, 0, 1, 3, 4]);
    }

    #[test]
    fn the_front_end_alone_is_rank_zero() {
        let (ranks, _) = rank_nodes(&Children::of(&[0]));
        assert_eq!(ranks, [0]);
    }
}
