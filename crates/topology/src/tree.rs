//! The finished tree: every node with its role, host, rank, parent and children.
//!
//! Owns [`Topology`] and its queries. `ranks` assigns ranks; text forms, pictures, statistics and
//! costs are in their own modules and only use what is public here.

use alloc::vec::Vec;
use core::fmt;
use core::iter::FusedIterator;

use crate::Rank;
use crate::error::Error;
use crate::hosts::{HostName, Hosts, Placement};
use crate::limits::{DEPTH_MAX, FAN_OUT_MAX, NODES_MAX};
use crate::ranks::{Layout, number};
use crate::shape::Shape;

/// Marks the front-end, which has no parent. No rank is that large.
pub(crate) const NO_PARENT: u32 = u32::MAX;

/// What a process does in the tree.
///
/// ```
/// use sapwood_topology::Role;
///
/// assert_eq!(Role::Comm.to_string(), "communication process");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The root: the tool's own process.
    FrontEnd,
    /// An inner node, which routes and filters: a communication process.
    Comm,
    /// A leaf beside the application.
    BackEnd,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FrontEnd => "front-end",
            Self::Comm => "communication process",
            Self::BackEnd => "back-end",
        })
    }
}

/// The planned tree of processes.
///
/// Ranks are dense: a tree of `n` nodes has ranks `0..n`. Back-ends are first, from left to
/// right, then the front-end, then the communication processes in breadth-first order. Every
/// query by rank answers `None` for a rank that the tree does not have.
///
/// ```
/// use sapwood_topology::{Hosts, Role, Topology};
///
/// let topology = Topology::from_shape(&"2x4".parse()?, &Hosts::local());
/// let parent = topology.parent(5).unwrap();
/// assert_eq!((parent.role(), parent.rank()), (Role::Comm, 10));
/// assert_eq!(topology.leaf_range(10), Some((4, 7)));
/// assert_eq!(topology.ancestors(5).map(|node| node.rank()).collect::<Vec<_>>(), [10, 8]);
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    hosts: Vec<HostName>,
    records: Vec<Record>,
    children: Vec<Rank>,
    front_end: Rank,
    attaching: bool,
}

/// One node as it is stored, at the position of its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub host: u32,
    pub index: u32,
    pub parent: Rank,
    pub depth: u32,
    pub first_child: u32,
    pub child_count: u32,
    pub first_back_end: Rank,
    pub back_end_count: u32,
}

impl Topology {
    /// Builds a shape and places its nodes round robin on the hosts, the front-end first.
    pub fn from_shape(shape: &Shape, hosts: &Hosts) -> Self {
        let is_attaching = shape.attach_per_leaf().is_some();
        build(shape, hosts, if is_attaching { Leaves::Attaching } else { Leaves::Started })
    }

    /// As [`Topology::from_shape`], but the shape's back-ends are not started by the tree: their
    /// ranks are reserved for back-ends that attach by themselves. `4x8` then is the front-end
    /// with 4 communication processes, each of which accepts 8 back-ends.
    pub fn attach(shape: &Shape, hosts: &Hosts) -> Self {
        build(shape, hosts, Leaves::Attaching)
    }

    /// Makes every leaf of this tree a communication process that accepts `per_leaf` attaching
    /// back-ends: MRNet's attach mode, in which a topology file names no back-end. A front-end
    /// alone accepts them itself. Ranks are given anew.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyAttaching`] if the leaves wait for back-ends already, [`Error::SpecZero`]
    /// for none per leaf, and the limits of nodes, levels and fan-out.
    pub fn without_back_ends(&self, per_leaf: u32) -> Result<Self, Error> {
        let what = || alloc::format!("{per_leaf} attaching back-ends on every leaf");
        if self.attaching {
            return Err(Error::AlreadyAttaching);
        }
        if per_leaf == 0 {
            return Err(Error::SpecZero { spec: what(), part: "0".into() });
        }
        if per_leaf > FAN_OUT_MAX {
            return Err(Error::FanOutTooLarge { what: what(), fan_out: u64::from(per_leaf) });
        }
        if self.depth() >= DEPTH_MAX {
            return Err(Error::TooDeep { what: what() });
        }
        let leaf_count = u64::from(self.back_end_count().max(1));
        let total = u64::from(self.node_count()) + leaf_count * u64::from(per_leaf);
        if total > u64::from(NODES_MAX) {
            return Err(Error::TooManyNodes { what: what() });
        }
        let order = self.breadth_first();
        let mut position = alloc::vec![0_u32; order.len()];
        let mut layout = Layout {
            parents: Vec::with_capacity(total as usize),
            placements: Vec::with_capacity(total as usize),
            hosts: self.hosts.clone(),
            attaching: true,
        };
        for (at, rank) in order.iter().enumerate() {
            let record = self.records[*rank as usize];
            position[*rank as usize] = at as u32;
            let parent = position.get(record.parent as usize).copied();
            layout.parents.push(parent.unwrap_or(0));
            layout.placements.push(Placement { host: record.host, index: record.index });
        }
        for (at, rank) in order.iter().enumerate() {
            if self.records[*rank as usize].child_count == 0 {
                layout.parents.extend(core::iter::repeat_n(at as u32, per_leaf as usize));
            }
        }
        place_attaching(&layout.parents, &mut layout.placements, self.hosts.len());
        Ok(number(layout))
    }

    /// Nodes of every role, attaching back-ends included.
    pub fn node_count(&self) -> u32 {
        self.records.len() as u32
    }

    /// Back-ends, started or attaching. It is also the rank of the front-end.
    pub fn back_end_count(&self) -> u32 {
        self.front_end
    }

    /// Processes that the tree starts, the front-end not counted: it is already there.
    pub fn started_count(&self) -> u32 {
        let attaching = if self.attaching { self.back_end_count() } else { 0 };
        self.node_count() - 1 - attaching
    }

    /// Whether the back-ends attach by themselves instead of being started by the tree.
    pub fn is_attaching(&self) -> bool {
        self.attaching
    }

    /// Levels below the front-end.
    pub fn depth(&self) -> u32 {
        self.records.iter().map(|record| record.depth).max().unwrap_or(0)
    }

    /// Names of the hosts in use, each once.
    pub fn hosts(&self) -> &[HostName] {
        &self.hosts
    }

    /// The front-end.
    pub fn root(&self) -> Node<'_> {
        Node { topology: self, rank: self.front_end }
    }

    /// The node with this rank.
    pub fn node(&self, rank: Rank) -> Option<Node<'_>> {
        (rank < self.node_count()).then_some(Node { topology: self, rank })
    }

    /// All nodes in the order of their ranks.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = Node<'_>> {
        (0..self.node_count()).map(|rank| Node { topology: self, rank })
    }

    /// Ranks of a node's children from left to right; empty for a back-end or an unknown rank.
    pub fn children(&self, rank: Rank) -> &[Rank] {
        self.node(rank).map_or(&[], |node| node.children())
    }

    /// The parent of a node; `None` for the front-end.
    pub fn parent(&self, rank: Rank) -> Option<Node<'_>> {
        self.node(self.node(rank)?.record().parent)
    }

    /// A node's parent, its parent's parent and so on, up to the front-end.
    pub fn ancestors(&self, rank: Rank) -> Ancestors<'_> {
        Ancestors { topology: self, next: self.parent(rank) }
    }

    /// Ranks of all back-ends.
    pub fn back_ends(&self) -> core::ops::Range<Rank> {
        0..self.front_end
    }

    /// First and last rank, both included, of the back-ends at or below a node. They are one
    /// range in every tree that this crate numbers. `None` if there are none.
    pub fn leaf_range(&self, rank: Rank) -> Option<(Rank, Rank)> {
        let record = self.node(rank)?.record();
        let last = record.back_end_count.checked_sub(1)?;
        Some((record.first_back_end, record.first_back_end + last))
    }

    /// The back-ends at or below a node as sorted inclusive ranges, the form in which packets
    /// carry rank sets.
    pub fn back_end_ranges(&self, rank: Rank) -> Vec<(Rank, Rank)> {
        self.leaf_range(rank).into_iter().collect()
    }

    /// Ranks of all nodes, level by level, each level from left to right.
    pub fn breadth_first(&self) -> Vec<Rank> {
        let mut order = Vec::with_capacity(self.records.len());
        order.push(self.front_end);
        let mut position = 0;
        while position < order.len() {
            order.extend_from_slice(self.children(order[position]));
            position += 1;
        }
        order
    }

    pub(crate) fn from_records(
        hosts: Vec<HostName>,
        records: Vec<Record>,
        children: Vec<Rank>,
        front_end: Rank,
        attaching: bool,
    ) -> Self {
        // A front-end alone has no leaf at which a back-end could attach.
        let attaching = attaching && front_end > 0;
        Self { hosts, records, children, front_end, attaching }
    }
}

/// One node of a [`Topology`].
///
/// ```
/// use sapwood_topology::{Hosts, Role, Topology};
///
/// let topology = Topology::from_shape(&"2x4".parse()?, &Hosts::local());
/// let node = topology.node(9).unwrap();
/// assert_eq!(node.role(), Role::Comm);
/// assert_eq!(node.children(), [0, 1, 2, 3]);
/// assert_eq!(node.name(), "localhost:1");
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    topology: &'a Topology,
    rank: Rank,
}

impl<'a> Node<'a> {
    /// Its rank.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Its role.
    pub fn role(&self) -> Role {
        role_of(self.rank, self.topology.front_end)
    }

    /// The host it is placed on. For an attaching back-end, the host of its parent: where it
    /// really will run is not known.
    pub fn host(&self) -> &'a HostName {
        &self.topology.hosts[self.record().host as usize]
    }

    /// Its index among the nodes of that host; a part of its name, not a port.
    pub fn index(&self) -> u32 {
        self.record().index
    }

    /// Its name in a topology file, `host:index`.
    pub fn name(&self) -> alloc::string::String {
        alloc::format!("{}:{}", self.host(), self.index())
    }

    /// Its parent's rank; `None` for the front-end.
    pub fn parent(&self) -> Option<Rank> {
        Some(self.record().parent).filter(|parent| *parent != NO_PARENT)
    }

    /// Ranks of its children from left to right.
    pub fn children(&self) -> &'a [Rank] {
        let record = self.record();
        let first = record.first_child as usize;
        &self.topology.children[first..first + record.child_count as usize]
    }

    /// Links between it and the front-end.
    pub fn depth(&self) -> u32 {
        self.record().depth
    }

    /// Back-ends at or below it.
    pub fn back_end_count(&self) -> u32 {
        self.record().back_end_count
    }

    /// Whether it is a back-end that attaches by itself.
    pub fn is_attaching(&self) -> bool {
        self.topology.attaching && self.role() == Role::BackEnd
    }

    pub(crate) fn host_position(&self) -> u32 {
        self.record().host
    }

    fn record(&self) -> &'a Record {
        &self.topology.records[self.rank as usize]
    }
}

/// The nodes above a node, nearest first; see [`Topology::ancestors`].
#[derive(Debug, Clone)]
pub struct Ancestors<'a> {
    topology: &'a Topology,
    next: Option<Node<'a>>,
}

impl<'a> Iterator for Ancestors<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        let node = self.next?;
        self.next = self.topology.parent(node.rank);
        Some(node)
    }
}

impl FusedIterator for Ancestors<'_> {}

/// The rank rule read backwards: a rank tells its role once the front-end's rank is known.
pub(crate) fn role_of(rank: Rank, front_end: Rank) -> Role {
    match rank.cmp(&front_end) {
        core::cmp::Ordering::Less => Role::BackEnd,
        core::cmp::Ordering::Equal => Role::FrontEnd,
        core::cmp::Ordering::Greater => Role::Comm,
    }
}

/// How the leaves of a tree come into it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// The tree starts them.
    Started,
    /// They attach by themselves.
    Attaching,
}

fn build(shape: &Shape, hosts: &Hosts, leaves: Leaves) -> Topology {
    let attaching = leaves == Leaves::Attaching;
    let parents = shape.parents();
    let mut started = alloc::vec![!attaching; parents.len()];
    started[0] = true;
    for parent in parents.iter().skip(1) {
        started[*parent as usize] = true;
    }
    let started_count = started.iter().filter(|started| **started).count() as u32;
    let mut places = hosts.place(started_count).into_iter();
    let mut placements: Vec<_> = started
        .iter()
        .map(|started| if *started { places.next() } else { None })
        .map(|place| place.unwrap_or(UNPLACED))
        .collect();
    place_attaching(&parents, &mut placements, hosts.names().len());
    number(Layout { parents, placements, hosts: hosts.names().to_vec(), attaching })
}

/// An attaching back-end before its parent's host is known.
const UNPLACED: Placement = Placement { host: u32::MAX, index: 0 };

/// Gives every attaching back-end a name of its own on its parent's host, after all others there.
fn place_attaching(parents: &[u32], placements: &mut Vec<Placement>, host_count: usize) {
    placements.resize(parents.len(), UNPLACED);
    let mut next_index = alloc::vec![0_u32; host_count];
    for place in placements.iter() {
        if let Some(next) = next_index.get_mut(place.host as usize) {
            *next = (*next).max(place.index.saturating_add(1));
        }
    }
    for node in 1..parents.len() {
        if placements[node] == UNPLACED {
            let host = placements[parents[node] as usize].host;
            let next = &mut next_index[host as usize];
            placements[node] = Placement { host, index: *next };
            *next = next.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(spec: &str) -> Topology {
        Topology::from_shape(&spec.parse().unwrap(), &Hosts::local())
    }

    #[test]
    fn back_ends_come_first_then_the_front_end_then_the_rest_breadth_first() {
        let topology = tree("2^3");
        assert_eq!(topology.root().rank(), 8);
        assert_eq!(topology.children(8), [9, 10]);
        assert_eq!(topology.children(9), [11, 12]);
        assert_eq!(topology.children(10), [13, 14]);
        assert_eq!(topology.children(13), [4, 5]);
        assert_eq!(topology.breadth_first()[..7], [8, 9, 10, 11, 12, 13, 14]);
    }

    #[test]
    fn a_node_answers_for_one_range_of_back_ends() {
        let topology = tree("g:3:2,0,3");
        assert_eq!(topology.back_end_ranges(topology.root().rank()), [(0, 5)]);
        assert_eq!(topology.children(6), [7, 2, 8]);
        assert_eq!(topology.leaf_range(8), Some((3, 5)));
        assert_eq!(topology.leaf_range(4), Some((4, 4)));
    }

    #[test]
    fn an_unknown_rank_is_no_node() {
        let topology = tree("4");
        assert!(topology.node(5).is_none() && topology.parent(u32::MAX).is_none());
        assert!(topology.children(99).is_empty() && topology.leaf_range(5).is_none());
        assert_eq!(topology.ancestors(99).count(), 0);
    }

    #[test]
    fn in_attach_mode_the_last_level_is_reserved_and_not_started() {
        let hosts: Hosts = "a,b".parse().unwrap();
        let attached = Topology::attach(&"2x4".parse().unwrap(), &hosts);
        assert_eq!(attached.started_count(), 2);
        assert_eq!(attached.back_end_count(), 8);
        let first = attached.node(0).unwrap();
        assert!(first.is_attaching());
        assert_eq!(first.host(), attached.parent(0).unwrap().host());
        assert_eq!(Topology::from_shape(&"2+4".parse().unwrap(), &hosts), attached);
    }

    #[test]
    fn a_tree_can_give_up_its_back_ends_for_attaching_ones() {
        let attached = tree("2").without_back_ends(4).unwrap();
        assert_eq!(attached, tree("2+4"));
        assert_eq!(attached.without_back_ends(1), Err(Error::AlreadyAttaching));
        assert!(tree("2").without_back_ends(0).is_err());
        assert!(tree("2").without_back_ends(u32::MAX).is_err());
        assert!(tree("1^64").without_back_ends(1).is_err());
        assert!(tree("65536").without_back_ends(65536).is_err());
    }

    #[test]
    fn names_are_unique_also_for_attaching_back_ends() {
        let hosts: Hosts = "a,b,c".parse().unwrap();
        let topology = Topology::from_shape(&"k:3@20+3".parse().unwrap(), &hosts);
        let mut names: Vec<_> = topology.nodes().map(|node| node.name()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), topology.node_count() as usize);
    }
}
