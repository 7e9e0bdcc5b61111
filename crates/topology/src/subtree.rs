//! The plan that one child receives: its own subtree and nothing else.
//!
//! A plan travels flat, one row per node in pre-order with the number of its children, so that
//! neither writing nor reading one recurses. It comes from a parent over a link, but a plan is
//! checked like any outside text: a [`Subtree`] that exists is one whole tree within the limits.

use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::Rank;
use crate::error::Error;
use crate::hosts::HostName;
use crate::limits::{DEPTH_MAX, FAN_OUT_MAX, NODES_MAX};
use crate::tree::{Role, Topology, role_of};

/// The plan that a process receives when it starts: its own position and the tree below it.
///
/// The serialised form is a table of host names and one row of four numbers per node; roles
/// follow from the ranks and are not sent. In `postcard` a node takes about 9 bytes.
///
/// ```
/// use sapwood_topology::{Hosts, Role, Topology};
///
/// let topology = Topology::from_shape(&"2x4".parse()?, &Hosts::local());
/// let plan = topology.subtree(10).unwrap();
/// assert_eq!((plan.rank(), plan.role()), (10, Role::Comm));
/// assert_eq!(plan.back_ends().collect::<Vec<_>>(), [4, 5, 6, 7]);
/// assert_eq!(plan.child_plans().len(), 4);
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts")]
pub struct Subtree {
    front_end: Rank,
    depth: u32,
    attaching: bool,
    hosts: Vec<HostName>,
    rows: Vec<Row>,
}

/// A plan as it arrives. Fields are in the order of [`Subtree`]'s.
#[derive(Deserialize)]
struct Parts {
    front_end: Rank,
    depth: u32,
    attaching: bool,
    hosts: Vec<HostName>,
    rows: Vec<Row>,
}

/// One node: rank, position of the host in the table, index on the host, number of children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    rank: Rank,
    host: u32,
    index: u32,
    children: u32,
}

/// A node of a plan.
///
/// ```
/// use sapwood_topology::{Hosts, Topology};
///
/// let topology = Topology::from_shape(&"3".parse()?, &Hosts::local());
/// let plan = topology.subtree(3).unwrap();
/// let last = plan.nodes().last().unwrap();
/// assert_eq!((last.rank, last.depth), (2, 1));
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedNode<'a> {
    /// Its rank.
    pub rank: Rank,
    /// Its role.
    pub role: Role,
    /// Its host.
    pub host: &'a HostName,
    /// Its index on that host.
    pub index: u32,
    /// Links between it and the front-end.
    pub depth: u32,
    /// Number of its children.
    pub child_count: u32,
    /// Whether it is a back-end that attaches by itself and must not be started.
    pub attaching: bool,
}

impl Topology {
    /// The plan for one node; `None` for an unknown rank. Takes time linear in the subtree.
    pub fn subtree(&self, rank: Rank) -> Option<Subtree> {
        let root = self.node(rank)?;
        let mut rows = Vec::new();
        let mut stack = vec![root];
        while let Some(node) = stack.pop() {
            let children = node.children();
            rows.push(Row {
                rank: node.rank(),
                host: node.host_position(),
                index: node.index(),
                children: children.len() as u32,
            });
            stack.extend(children.iter().rev().filter_map(|child| self.node(*child)));
        }
        let hosts = used_hosts(self.hosts(), &mut rows);
        let front_end = self.root().rank();
        let attaching = self.is_attaching();
        Some(Subtree { front_end, depth: root.depth(), attaching, hosts, rows })
    }
}

impl Subtree {
    /// Rank of the process that receives this plan.
    pub fn rank(&self) -> Rank {
        self.rows[0].rank
    }

    /// Role of that process.
    pub fn role(&self) -> Role {
        role_of(self.rank(), self.front_end)
    }

    /// Host of that process.
    pub fn host(&self) -> &HostName {
        &self.hosts[self.rows[0].host as usize]
    }

    /// Links between that process and the front-end.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Rank of the front-end, which also is the number of back-ends of the whole network.
    pub fn front_end(&self) -> Rank {
        self.front_end
    }

    /// Nodes of the plan, its own root included.
    pub fn node_count(&self) -> u32 {
        self.rows.len() as u32
    }

    /// All nodes in pre-order, the plan's own root first.
    pub fn nodes(&self) -> impl Iterator<Item = PlannedNode<'_>> {
        let mut open: Vec<u32> = Vec::new();
        self.rows.iter().map(move |row| {
            let node = self.planned(row, self.depth + open.len() as u32);
            step(&mut open, row.children);
            node
        })
    }

    /// The direct children from left to right.
    pub fn children(&self) -> impl Iterator<Item = PlannedNode<'_>> {
        let level = self.depth + 1;
        self.nodes().filter(move |node| node.depth == level)
    }

    /// Ranks of the back-ends of the plan in pre-order, attaching ones included.
    pub fn back_ends(&self) -> impl Iterator<Item = Rank> {
        let front_end = self.front_end;
        self.rows.iter().map(|row| row.rank).filter(move |rank| *rank < front_end)
    }

    /// The back-ends of the plan as sorted inclusive ranges.
    pub fn back_end_ranges(&self) -> Vec<(Rank, Rank)> {
        let mut ranks: Vec<_> = self.back_ends().collect();
        ranks.sort_unstable();
        let mut ranges: Vec<(Rank, Rank)> = Vec::new();
        for rank in ranks {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == rank => *last = rank,
                _ => ranges.push((rank, rank)),
            }
        }
        ranges
    }

    /// The table of hosts.
    pub(crate) fn hosts(&self) -> &[HostName] {
        &self.hosts
    }

    /// Whether back-ends attach by themselves.
    pub(crate) fn is_attaching(&self) -> bool {
        self.attaching
    }

    /// The plans to tell the children, from left to right. Takes time linear in the plan.
    pub fn child_plans(&self) -> Vec<Subtree> {
        let mut plans: Vec<Subtree> = Vec::with_capacity(self.rows[0].children as usize);
        let mut open = Vec::new();
        for row in &self.rows {
            match open.len() {
                0 => {}
                1 => plans.push(self.plan_below(*row)),
                _ => {
                    let plan = plans.last_mut().expect("a grandchild follows its parent");
                    plan.rows.push(*row);
                }
            }
            step(&mut open, row.children);
        }
        for plan in &mut plans {
            plan.hosts = used_hosts(&self.hosts, &mut plan.rows);
        }
        plans
    }

    /// The same plan with its root on another host.
    ///
    /// ```
    /// use sapwood_topology::{Hosts, Topology};
    ///
    /// let topology = Topology::from_shape(&"2x2".parse()?, &Hosts::local());
    /// let moved = topology.subtree(5).unwrap().on_host("node-7".parse()?);
    /// assert_eq!(moved.host().as_str(), "node-7");
    /// assert_eq!(moved.children().next().unwrap().host.as_str(), "localhost");
    /// # Ok::<(), sapwood_topology::Error>(())
    /// ```
    #[must_use]
    pub fn on_host(mut self, host: HostName) -> Subtree {
        self.hosts.push(host);
        self.rows[0].host = self.hosts.len() as u32 - 1;
        self.hosts = used_hosts(&self.hosts, &mut self.rows);
        self
    }

    /// The hosts that the plan names, in the order of their first use.
    pub fn host_names(&self) -> &[HostName] {
        &self.hosts
    }

    /// A plan that so far has only its root, with its hosts still those of this plan.
    fn plan_below(&self, root: Row) -> Subtree {
        Subtree {
            front_end: self.front_end,
            depth: self.depth + 1,
            attaching: self.attaching,
            hosts: Vec::new(),
            rows: vec![root],
        }
    }

    fn planned(&self, row: &Row, depth: u32) -> PlannedNode<'_> {
        let role = role_of(row.rank, self.front_end);
        PlannedNode {
            rank: row.rank,
            role,
            host: &self.hosts[row.host as usize],
            index: row.index,
            depth,
            child_count: row.children,
            attaching: self.attaching && role == Role::BackEnd,
        }
    }
}

/// Moves the list of open nodes past one row: `open` holds for each ancestor of the next row how
/// many of its children are still to come.
fn step(open: &mut Vec<u32>, children: u32) {
    if children > 0 {
        open.push(children);
        return;
    }
    while let Some(left) = open.last_mut() {
        *left -= 1;
        if *left > 0 {
            return;
        }
        open.pop();
    }
}

/// Keeps only the hosts that the rows use, in the order of their first use, and points the rows
/// at them.
fn used_hosts(hosts: &[HostName], rows: &mut [Row]) -> Vec<HostName> {
    let mut positions = alloc::collections::BTreeMap::new();
    let mut used = Vec::new();
    for row in rows {
        row.host = *positions.entry(row.host).or_insert_with(|| {
            used.push(hosts[row.host as usize].clone());
            used.len() as u32 - 1
        });
    }
    used
}

impl TryFrom<Parts> for Subtree {
    type Error = Error;

    fn try_from(parts: Parts) -> Result<Self, Error> {
        check(&parts).map_err(|problem| Error::Plan { problem })?;
        let Parts { front_end, depth, attaching, hosts, rows } = parts;
        Ok(Self { front_end, depth, attaching, hosts, rows })
    }
}

/// Checks a plan that came from outside, or names the rule that it breaks.
fn check(parts: &Parts) -> Result<(), &'static str> {
    if parts.rows.is_empty() {
        return Err("it has no node");
    }
    if parts.rows.len() > NODES_MAX as usize || parts.front_end >= NODES_MAX {
        return Err("it has too many nodes");
    }
    if parts.hosts.len() > parts.rows.len() {
        return Err("it names hosts that it does not use");
    }
    let mut open = Vec::new();
    for (position, row) in parts.rows.iter().enumerate() {
        if position > 0 && open.is_empty() {
            return Err("it has nodes after its end");
        }
        let depth = u64::from(parts.depth) + open.len() as u64;
        check_row(parts, row, depth)?;
        step(&mut open, row.children);
    }
    if !open.is_empty() {
        return Err("it ends before its last node");
    }
    let mut ranks: Vec<_> = parts.rows.iter().map(|row| row.rank).collect();
    ranks.sort_unstable();
    if ranks.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("two nodes have one rank");
    }
    Ok(())
}

fn check_row(parts: &Parts, row: &Row, depth: u64) -> Result<(), &'static str> {
    let role = role_of(row.rank, parts.front_end);
    if depth > u64::from(DEPTH_MAX) {
        return Err("it is too deep");
    }
    if row.children > FAN_OUT_MAX {
        return Err("a node has too many children");
    }
    if row.host as usize >= parts.hosts.len() {
        return Err("a node has a host that is not in the table");
    }
    if (role == Role::FrontEnd) != (depth == 0) {
        return Err("the front-end is not at the root");
    }
    if role == Role::BackEnd && row.children > 0 {
        return Err("a back-end has children");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hosts;

    fn tree(spec: &str) -> Topology {
        Topology::from_shape(&spec.parse().unwrap(), &"a,b,c".parse::<Hosts>().unwrap())
    }

    #[test]
    fn the_plans_for_the_children_are_the_subtrees_of_the_tree() {
        let topology = tree("k:3@60");
        let whole = topology.subtree(topology.root().rank()).unwrap();
        let plans = whole.child_plans();
        let children = topology.children(topology.root().rank());
        assert_eq!(plans.len(), children.len());
        for (plan, child) in plans.iter().zip(children) {
            assert_eq!(*plan, topology.subtree(*child).unwrap());
            assert_eq!(plan.back_end_ranges(), topology.back_end_ranges(*child));
        }
        let listed: Vec<_> = whole.children().map(|child| child.rank).collect();
        assert_eq!(listed, children);
    }

    #[test]
    fn every_node_of_a_plan_is_as_in_the_tree() {
        let topology = tree("g:3:2,0,3+2");
        let plan = topology.subtree(topology.root().rank()).unwrap();
        assert_eq!(plan.node_count(), topology.node_count());
        for planned in plan.nodes() {
            let node = topology.node(planned.rank).unwrap();
            assert_eq!((planned.role, planned.depth), (node.role(), node.depth()));
            assert_eq!((planned.host, planned.index), (node.host(), node.index()));
            assert_eq!(planned.attaching, node.is_attaching());
        }
    }

    #[test]
    fn ten_thousand_nodes_take_about_ten_bytes_each() {
        let topology = tree("10x10x100");
        let plan = topology.subtree(topology.root().rank()).unwrap();
        let bytes = postcard::to_allocvec(&plan).unwrap();
        assert!(bytes.len() <= 10 * plan.node_count() as usize, "{} bytes", bytes.len());
        assert_eq!(postcard::from_bytes::<Subtree>(&bytes), Ok(plan));
    }

    /// Rows of `(rank, children)` below a front-end of rank `front_end`.
    fn read(front_end: Rank, rows: &[(Rank, u32)]) -> Result<Subtree, Error> {
        let row = |(rank, children): &(Rank, u32)| Row {
            rank: *rank,
            host: 0,
            index: 0,
            children: *children,
        };
        let rows = rows.iter().map(row).collect();
        Parts { front_end, depth: 0, attaching: false, hosts: vec![HostName::local()], rows }
            .try_into()
    }

    #[test]
    fn a_plan_that_contradicts_itself_is_refused() {
        assert!(read(2, &[(2, 2), (0, 0), (1, 0)]).is_ok());
        for rows in [
            &[][..],
            &[(2, 2), (0, 0)],
            &[(2, 1), (0, 0), (1, 0)],
            &[(2, u32::MAX), (0, 0)],
            &[(2, 2), (0, 0), (0, 0)],
            &[(2, 1), (0, 1), (1, 0)],
            &[(3, 1), (2, 0)],
            &[(0, 0)],
        ] {
            assert!(matches!(read(2, rows), Err(Error::Plan { .. })), "{rows:?}");
        }
    }

    #[test]
    fn a_hostile_depth_is_an_error_and_no_recursion() {
        let mut rows: Vec<_> = (0..100_000).map(|below| (1 + below, 1)).collect();
        rows.push((0, 0));
        assert_eq!(read(1, &rows), Err(Error::Plan { problem: "it is too deep" }));
    }
}
