//! Shapes: what a tree looks like before its nodes have hosts and ranks.
//!
//! Owns the families of shapes, their limits and their expansion into a list of parents. It does
//! not read text (see `spec`) and does not number anything (see `ranks`). A [`Shape`] that
//! exists keeps all limits, so nothing that is built from it can fail on size.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

use crate::error::Error;
use crate::limits::{DEPTH_MAX, FAN_OUT_MAX, NODES_MAX};

/// The shape of a tree: how many children each node has.
///
/// A shape is usually read from text; `Display` writes it back in its shortest form.
///
/// | text | shape |
/// |---|---|
/// | `8` | the front-end with 8 back-ends |
/// | `4^3` | fan-out 4 on each of three levels: 64 back-ends |
/// | `8x8x4` | fan-outs level by level: 256 back-ends |
/// | `2x4^2` | both mixed, the same as `2x4x4` |
/// | `b:4^3`, `b:8x8x4` | the same, as MRNet's topology generator writes it |
/// | `k:2@16` | k-nomial tree, k = 2, 16 nodes in all |
/// | `g:2:3,1:4x2` | generic, a list of fan-outs per level |
/// | `p:1.5@16` | postal tree, latency 1.5, 16 back-ends |
/// | `4x4+8` | 4x4 without back-ends, each leaf accepts 8 that attach by themselves |
/// | `+8` | the front-end alone, which accepts 8 |
///
/// **k-nomial.** The front-end is the first member. In each round every member, in the order in
/// which the members joined, gains K-1 new children, until there are N nodes, the front-end
/// included. Nodes without children are back-ends, all others communication processes, as in
/// MRNet. `k:2@16` is the binomial tree over 16 processes with 8 back-ends.
///
/// **generic.** Levels are divided by `:`, items by `,`. The first level is one fan-out, the
/// front-end's. Each further level lists the fan-outs of the nodes of the level before from left
/// to right; `KxN` stands for K nodes with N children each. A fan-out of 0, and every node beyond
/// the end of its list, is a back-end. `g:2:3,1:4x2` therefore has two communication processes
/// below the front-end, with 3 and 1 children, and each of those four has 2 back-ends.
///
/// **postal.** The tree that has started N back-ends soonest if each is on a host of its own, a
/// host is reached L units of time after another has begun to reach it, with at most two decimals,
/// and no host begins more than once a unit: the optimal broadcast of the postal model (Bar-Noy and
/// Kipnis, Designing broadcasting algorithms in the postal model for message-passing systems, 1994,
/// section 3). The front-end reaches hosts, and each that is reached reaches others: a
/// communication process there has the host's own back-end as its first child, then those that it
/// reaches, the first of which have the largest subtrees. `p:1@N` is a binomial tree over hosts;
/// with a latency of N the tree is flat.
///
/// ```
/// use sapwood_topology::Shape;
///
/// let shape: Shape = "b:4x4x4".parse()?;
/// assert_eq!(shape.to_string(), "4^3");
/// assert_eq!((shape.node_count(), shape.back_end_count(), shape.depth()), (85, 64, 3));
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    pub(crate) family: Family,
    pub(crate) attach: Option<u32>,
    size: Size,
}

/// The families of shapes, without the suffix for attaching back-ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Family {
    /// One fan-out per level. Empty is the front-end alone, which only attaching makes a tree.
    Levels(Vec<u32>),
    /// K-nomial tree with `nodes` nodes in all.
    Knomial { factor: u32, nodes: u32 },
    /// Per level the runs `(parents, fan-out)` from left to right.
    Generic(Vec<Vec<(u32, u32)>>),
    /// Postal tree with this many back-ends; the latency in hundredths of the time between two
    /// sends.
    Postal { latency: u32, back_ends: u32 },
}

/// The time between two sends of a postal tree, in the parts that latencies are counted in.
pub(crate) const UNIT: u32 = 100;

/// A latency of a postal tree, written with as few decimals as it has.
pub(crate) struct Hundredths(pub(crate) u32);

impl fmt::Display for Hundredths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / UNIT, self.0 % UNIT);
        match rest {
            0 => write!(f, "{whole}"),
            _ if rest % 10 == 0 => write!(f, "{whole}.{}", rest / 10),
            _ => write!(f, "{whole}.{rest:02}"),
        }
    }
}

/// What a shape amounts to, attaching back-ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    nodes: u32,
    leaves: u32,
    depth: u32,
}

impl Shape {
    /// The front-end with `back_ends` back-ends and nothing between.
    ///
    /// # Errors
    ///
    /// [`Error::SpecZero`] or [`Error::FanOutTooLarge`].
    pub fn flat(back_ends: u32) -> Result<Self, Error> {
        Self::levels(&[back_ends])
    }

    /// Fan-out `fan_out` on each of `depth` levels.
    ///
    /// # Errors
    ///
    /// As [`Shape::levels`].
    pub fn balanced(fan_out: u32, depth: u32) -> Result<Self, Error> {
        if depth > DEPTH_MAX {
            return Err(Error::TooDeep { what: alloc::format!("{fan_out}^{depth}") });
        }
        Self::levels(&vec![fan_out; depth as usize])
    }

    /// One fan-out per level, the front-end's first.
    ///
    /// # Errors
    ///
    /// [`Error::SpecEmpty`] without a level, [`Error::SpecZero`] for a zero, and the limits of
    /// nodes, levels and fan-out.
    pub fn levels(fan_outs: &[u32]) -> Result<Self, Error> {
        if fan_outs.is_empty() {
            return Err(Error::SpecEmpty);
        }
        Self::new(Family::Levels(fan_outs.to_vec()), None, None)
    }

    /// The k-nomial tree of `nodes` nodes in all; see the type's description.
    ///
    /// # Errors
    ///
    /// [`Error::SpecPart`] if `factor` or `nodes` is below 2, and the limits.
    pub fn knomial(factor: u32, nodes: u32) -> Result<Self, Error> {
        Self::new(Family::Knomial { factor, nodes }, None, None)
    }

    /// The postal tree with that many back-ends; `latency` is in hundredths of the time after which
    /// a host reaches the next one; see the type's description.
    ///
    /// ```
    /// use sapwood_topology::Shape;
    ///
    /// // The front-end reaches three hosts, the first of which reaches the fourth.
    /// let shape = Shape::postal(150, 4)?;
    /// assert_eq!(shape.to_string(), "p:1.5@4");
    /// assert_eq!((shape.fan_out(), shape.depth(), shape.node_count()), (3, 2, 6));
    /// # Ok::<(), sapwood_topology::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::SpecPart`] for a latency below 1, [`Error::SpecZero`] for no back-ends, and the
    /// limits.
    pub fn postal(latency: u32, back_ends: u32) -> Result<Self, Error> {
        Self::new(Family::Postal { latency, back_ends }, None, None)
    }

    /// Exactly that many back-ends on the last of the fewest levels on which no node has more than
    /// `fan_out_max` children; on each level the children are shared out as evenly as can be.
    ///
    /// ```
    /// use sapwood_topology::Shape;
    ///
    /// assert_eq!(Shape::even(64, 4)?.to_string(), "4^3");
    /// assert_eq!(Shape::even(18, 5)?.to_string(), "g:4:2x5,2x4");
    /// # Ok::<(), sapwood_topology::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::SpecZero`] for no back-ends or a fan-out of 0, [`Error::TooDeep`], and the limits
    /// of nodes and fan-out.
    pub fn even(back_ends: u32, fan_out_max: u32) -> Result<Self, Error> {
        if back_ends == 0 || fan_out_max == 0 {
            return Self::flat(0);
        }
        let mut widths = vec![back_ends];
        let mut width = back_ends;
        while width > fan_out_max {
            width = width.div_ceil(fan_out_max);
            if widths.len() == DEPTH_MAX as usize {
                let what = alloc::format!("{back_ends} back-ends with fan-out {fan_out_max}");
                return Err(Error::TooDeep { what });
            }
            widths.push(width);
        }
        widths.push(1);
        widths.reverse();
        if widths.windows(2).all(|pair| pair[1].is_multiple_of(pair[0])) {
            let fan_outs: Vec<u32> = widths.windows(2).map(|pair| pair[1] / pair[0]).collect();
            return Self::levels(&fan_outs);
        }
        let levels = widths.windows(2).map(|pair| {
            let (fewer, with_one_more) = (pair[1] / pair[0], pair[1] % pair[0]);
            let runs = [(with_one_more, fewer + 1), (pair[0] - with_one_more, fewer)];
            runs.into_iter().filter(|(parents, _)| *parents > 0).collect()
        });
        Self::new(Family::Generic(levels.collect()), None, None)
    }

    /// The least fan-out with which `levels` levels hold `back_ends` back-ends.
    ///
    /// ```
    /// use sapwood_topology::Shape;
    ///
    /// assert_eq!([Shape::fan_out_for(64, 2), Shape::fan_out_for(65, 2)], [8, 9]);
    /// ```
    pub fn fan_out_for(back_ends: u32, levels: u32) -> u32 {
        let reaches = |base: &u32| {
            let power = u64::from(*base).checked_pow(levels);
            power.is_none_or(|power| power >= u64::from(back_ends))
        };
        let mut base = 1;
        while !reaches(&base) {
            base += 1;
        }
        base
    }

    /// A communication process below the front-end for each group of back-ends, with that many.
    ///
    /// # Errors
    ///
    /// [`Error::SpecEmpty`] without a group, [`Error::SpecZero`] for an empty one, and the limits
    /// of nodes and fan-out.
    pub fn grouped(groups: &[u32]) -> Result<Self, Error> {
        if groups.is_empty() {
            return Err(Error::SpecEmpty);
        }
        if groups.contains(&0) {
            return Self::flat(0);
        }
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for &group in groups {
            match runs.last_mut() {
                Some((parents, fan_out)) if *fan_out == group => *parents += 1,
                _ => runs.push((1, group)),
            }
        }
        let count = u32::try_from(groups.len()).unwrap_or(u32::MAX);
        Self::new(Family::Generic(vec![vec![(1, count)], runs]), None, None)
    }

    /// The same shape without back-ends of its own: each leaf becomes a communication process
    /// that accepts `per_leaf` back-ends, which attach by themselves.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyAttaching`] if the shape has such leaves, and the limits.
    pub fn accepting(self, per_leaf: u32) -> Result<Self, Error> {
        if self.attach.is_some() {
            return Err(Error::AlreadyAttaching);
        }
        Self::new(self.family, Some(per_leaf), None)
    }

    /// Nodes of every role, attaching back-ends included.
    pub fn node_count(&self) -> u32 {
        self.size.nodes
    }

    /// Back-ends, started or attaching.
    pub fn back_end_count(&self) -> u32 {
        self.size.leaves
    }

    /// The most children that a node has.
    pub fn fan_out(&self) -> u32 {
        let inner = match &self.family {
            Family::Levels(fan_outs) => fan_outs.iter().copied().max(),
            Family::Knomial { .. } | Family::Postal { .. } => Some(most_children(&self.parents())),
            Family::Generic(levels) => levels.iter().flatten().map(|(_, fan_out)| *fan_out).max(),
        };
        inner.unwrap_or(0).max(self.attach.unwrap_or(0))
    }

    /// Levels below the front-end.
    pub fn depth(&self) -> u32 {
        self.size.depth
    }

    /// How many back-ends attach to each leaf, if they do.
    pub fn attach_per_leaf(&self) -> Option<u32> {
        self.attach
    }

    /// Checks every limit. `spec` is the text the shape came from, for the error.
    pub(crate) fn new(
        family: Family,
        attach: Option<u32>,
        spec: Option<&str>,
    ) -> Result<Self, Error> {
        let nothing = Size { nodes: 1, leaves: 1, depth: 0 };
        let mut shape = Self { family, attach, size: nothing };
        let spec = spec.map_or_else(|| shape.to_string(), crate::error::excerpt);
        let mut size = match &shape.family {
            Family::Levels(fan_outs) => measure_levels(fan_outs, &spec)?,
            Family::Knomial { factor, nodes } => measure_knomial(*factor, *nodes, &spec)?,
            Family::Generic(levels) => measure_generic(levels, &spec)?,
            Family::Postal { latency, back_ends } => measure_postal(*latency, *back_ends, &spec)?,
        };
        if let Some(per_leaf) = attach {
            check_fan_out(per_leaf, &spec)?;
            size.leaves = width(size.leaves, per_leaf, &spec)?;
            size.nodes = sum(size.nodes, size.leaves, &spec)?;
            size.depth += 1;
        }
        if size.depth > DEPTH_MAX {
            return Err(Error::TooDeep { what: spec });
        }
        shape.size = size;
        Ok(shape)
    }

    /// The parent of every node. Node 0 is the front-end; a parent always precedes its children
    /// and the children of one parent are in order, so one pass over the list sees a tree grow.
    pub(crate) fn parents(&self) -> Vec<u32> {
        let mut parents = Vec::with_capacity(self.size.nodes as usize);
        parents.push(0);
        match &self.family {
            Family::Levels(fan_outs) => {
                let levels: Vec<_> = fan_outs.iter().map(|f| vec![(u32::MAX, *f)]).collect();
                push_levels(&mut parents, &levels);
            }
            Family::Knomial { factor, nodes } => push_knomial(&mut parents, *factor, *nodes),
            Family::Generic(levels) => push_levels(&mut parents, levels),
            Family::Postal { latency, back_ends } => {
                push_postal(&mut parents, *latency, *back_ends);
            }
        }
        if let Some(per_leaf) = self.attach {
            for leaf in leaves(&parents) {
                parents.extend(core::iter::repeat_n(leaf, per_leaf as usize));
            }
        }
        parents
    }
}

/// The nodes of a list of parents that have no children, in order. Node 0 alone counts as one.
fn leaves(parents: &[u32]) -> Vec<u32> {
    let mut is_parent = vec![false; parents.len()];
    for parent in parents.iter().skip(1) {
        is_parent[*parent as usize] = true;
    }
    (0..parents.len() as u32).filter(|node| !is_parent[*node as usize]).collect()
}

/// Appends level after level. A run may be longer than its level: the level's width ends it.
fn push_levels(parents: &mut Vec<u32>, levels: &[Vec<(u32, u32)>]) {
    let mut level_start = 0_u32;
    for runs in levels {
        let level_end = parents.len() as u32;
        let mut parent = level_start;
        for (count, fan_out) in runs {
            let run_end = parent.saturating_add(*count).min(level_end);
            for node in parent..run_end {
                parents.extend(core::iter::repeat_n(node, *fan_out as usize));
            }
            parent = run_end;
        }
        level_start = level_end;
    }
}

fn push_knomial(parents: &mut Vec<u32>, factor: u32, nodes: u32) {
    while (parents.len() as u32) < nodes {
        let members = parents.len() as u32;
        for member in 0..members {
            let room = nodes - parents.len() as u32;
            let children = room.min(factor - 1);
            parents.extend(core::iter::repeat_n(member, children as usize));
        }
    }
}

fn push_postal(parents: &mut Vec<u32>, latency: u32, back_ends: u32) {
    // Hosts, the front-end's first: when each can have reached one more, and the hosts that it has
    // reached.
    let mut reached: Vec<Vec<u32>> = vec![Vec::new()];
    let mut next = BinaryHeap::from([Reverse((u64::from(latency), 0_u32))]);
    while (reached.len() as u64) <= u64::from(back_ends)
        && let Some(Reverse((time, host))) = next.pop()
    {
        let new = reached.len() as u32;
        reached[host as usize].push(new);
        reached.push(Vec::new());
        next.push(Reverse((time + u64::from(UNIT), host)));
        next.push(Reverse((time + u64::from(latency), new)));
    }
    // Hosts with a process that has children: the host, and the process.
    let mut callers = VecDeque::from([(0_u32, 0_u32)]);
    while let Some((host, process)) = callers.pop_front() {
        if host > 0 {
            parents.push(process);
        }
        for &other in &reached[host as usize] {
            if !reached[other as usize].is_empty() {
                callers.push_back((other, parents.len() as u32));
            }
            parents.push(process);
        }
    }
}

/// The most children of any node.
fn most_children(parents: &[u32]) -> u32 {
    let mut children = vec![0_u32; parents.len()];
    for parent in parents.iter().skip(1) {
        children[*parent as usize] += 1;
    }
    children.into_iter().max().unwrap_or(0)
}

fn measure_levels(fan_outs: &[u32], spec: &str) -> Result<Size, Error> {
    if fan_outs.len() > DEPTH_MAX as usize {
        return Err(Error::TooDeep { what: spec.to_string() });
    }
    let mut size = Size { nodes: 1, leaves: 1, depth: fan_outs.len() as u32 };
    for fan_out in fan_outs {
        check_fan_out(*fan_out, spec)?;
        size.leaves = width(size.leaves, *fan_out, spec)?;
        size.nodes = sum(size.nodes, size.leaves, spec)?;
    }
    Ok(size)
}

fn measure_knomial(factor: u32, nodes: u32, spec: &str) -> Result<Size, Error> {
    for (number, expected) in
        [(factor, "a factor K of at least 2"), (nodes, "at least 2 nodes after \"@\"")]
    {
        if number < 2 {
            let spec = spec.to_string();
            return Err(Error::SpecPart { spec, part: number.to_string(), expected });
        }
    }
    if nodes > NODES_MAX {
        return Err(Error::TooManyNodes { what: spec.to_string() });
    }
    let mut parents = Vec::with_capacity(nodes as usize);
    parents.push(0);
    push_knomial(&mut parents, factor, nodes);
    measure_parents(&parents, spec)
}

fn measure_postal(latency: u32, back_ends: u32, spec: &str) -> Result<Size, Error> {
    if latency < UNIT {
        let part = alloc::format!("{}", Hundredths(latency));
        return Err(Error::SpecPart {
            spec: spec.to_string(),
            part,
            expected: "a latency of at least 1",
        });
    }
    if back_ends == 0 {
        return Err(zero(spec));
    }
    if back_ends > NODES_MAX / 2 {
        return Err(Error::TooManyNodes { what: spec.to_string() });
    }
    let mut parents = vec![0];
    push_postal(&mut parents, latency, back_ends);
    measure_parents(&parents, spec)
}

fn measure_parents(parents: &[u32], spec: &str) -> Result<Size, Error> {
    let fan_out = u64::from(most_children(parents));
    if fan_out > u64::from(FAN_OUT_MAX) {
        return Err(Error::FanOutTooLarge { what: spec.to_string(), fan_out });
    }
    let mut depths = vec![0_u32; parents.len()];
    for node in 1..parents.len() {
        depths[node] = depths[parents[node] as usize] + 1;
    }
    let depth = depths.into_iter().max().unwrap_or(0);
    Ok(Size { nodes: parents.len() as u32, leaves: leaves(parents).len() as u32, depth })
}

fn measure_generic(levels: &[Vec<(u32, u32)>], spec: &str) -> Result<Size, Error> {
    let mut level_width = 1;
    let mut size = Size { nodes: 1, leaves: 0, depth: 0 };
    for runs in levels {
        let listed: u64 = runs.iter().map(|(count, _)| u64::from(*count)).sum();
        if listed > u64::from(level_width) {
            return Err(Error::LevelTooLong {
                spec: spec.to_string(),
                level: size.depth + 1,
                listed,
                available: level_width,
            });
        }
        let mut next_width = 0;
        let mut with_children = 0;
        for (count, fan_out) in runs {
            if *fan_out == 0 {
                continue;
            }
            check_fan_out(*fan_out, spec)?;
            with_children += count;
            next_width = sum(next_width, width(*count, *fan_out, spec)?, spec)?;
        }
        if next_width == 0 {
            return Err(zero(spec));
        }
        size.leaves += level_width - with_children;
        size.nodes = sum(size.nodes, next_width, spec)?;
        size.depth += 1;
        level_width = next_width;
    }
    size.leaves += level_width;
    Ok(size)
}

fn zero(spec: &str) -> Error {
    Error::SpecZero { spec: spec.to_string(), part: String::from("0") }
}

fn check_fan_out(fan_out: u32, spec: &str) -> Result<(), Error> {
    match fan_out {
        0 => Err(zero(spec)),
        1..=FAN_OUT_MAX => Ok(()),
        _ => Err(Error::FanOutTooLarge { what: spec.to_string(), fan_out: u64::from(fan_out) }),
    }
}

fn width(parents: u32, fan_out: u32, spec: &str) -> Result<u32, Error> {
    parents
        .checked_mul(fan_out)
        .filter(|width| *width <= NODES_MAX)
        .ok_or_else(|| Error::TooManyNodes { what: spec.to_string() })
}

fn sum(nodes: u32, more: u32, spec: &str) -> Result<u32, Error> {
    nodes
        .checked_add(more)
        .filter(|sum| *sum <= NODES_MAX)
        .ok_or_else(|| Error::TooManyNodes { what: spec.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binomial_tree_gives_every_member_one_child_per_round() {
        let shape = Shape::knomial(2, 8).unwrap();
        assert_eq!(shape.parents(), [0, 0, 0, 1, 0, 1, 2, 3]);
        assert_eq!((shape.back_end_count(), shape.depth()), (4, 3));
    }

    #[test]
    fn a_last_round_may_be_partial() {
        let shape = Shape::knomial(3, 6).unwrap();
        assert_eq!(shape.parents(), [0, 0, 0, 0, 0, 1]);
        assert_eq!((shape.back_end_count(), shape.depth()), (4, 2));
    }

    #[test]
    fn a_host_that_a_postal_tree_has_reached_reaches_others() {
        // Times: 1.5, 2.5, 3 (the first one's), 3.5, 4 (the second's, and the first one's again).
        let parents = |back_ends| Shape::postal(150, back_ends).unwrap().parents();
        assert_eq!(parents(1), [0, 0]);
        assert_eq!(parents(2), [0, 0, 0]);
        assert_eq!(parents(3), [0, 0, 0, 1, 1]);
        assert_eq!(parents(4), [0, 0, 0, 0, 1, 1]);
        assert_eq!(parents(6), [0, 0, 0, 0, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn a_postal_tree_is_binomial_over_hosts_or_flat() {
        for back_ends in [1, 2, 15, 16, 100] {
            let flat = Shape::postal(100 * back_ends, back_ends).unwrap();
            assert_eq!(flat.parents(), Shape::flat(back_ends).unwrap().parents());
        }
        // Sixteen hosts after four units, the front-end's among them.
        let binomial = Shape::postal(100, 15).unwrap();
        let front_end = binomial.parents().iter().skip(1).filter(|parent| **parent == 0).count();
        assert_eq!((front_end, binomial.back_end_count(), binomial.depth()), (4, 15, 4));
        assert!(matches!(Shape::postal(99, 4), Err(Error::SpecPart { .. })));
        assert!(matches!(Shape::postal(100, 0), Err(Error::SpecZero { .. })));
        assert!(matches!(Shape::postal(100, NODES_MAX), Err(Error::TooManyNodes { .. })));
        let wide = Shape::postal(u32::MAX, FAN_OUT_MAX + 1);
        assert!(matches!(wide, Err(Error::FanOutTooLarge { .. })));
    }

    #[test]
    fn attaching_back_ends_hang_below_the_leaves() {
        let shape = Shape::flat(2).unwrap().accepting(3).unwrap();
        assert_eq!(shape.parents(), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        assert_eq!((shape.node_count(), shape.back_end_count(), shape.depth()), (9, 6, 2));
        assert_eq!(shape.accepting(1), Err(Error::AlreadyAttaching));
    }

    #[test]
    fn limits_hold_for_built_shapes_too() {
        assert!(matches!(Shape::flat(0), Err(Error::SpecZero { .. })));
        assert!(matches!(Shape::flat(FAN_OUT_MAX + 1), Err(Error::FanOutTooLarge { .. })));
        assert!(matches!(Shape::balanced(1, 65), Err(Error::TooDeep { .. })));
        assert!(matches!(Shape::balanced(2, 64), Err(Error::TooManyNodes { .. })));
        assert!(matches!(Shape::balanced(4, 0), Err(Error::SpecEmpty)));
        assert!(matches!(Shape::knomial(u32::MAX, NODES_MAX), Err(Error::FanOutTooLarge { .. })));
        assert!(matches!(Shape::knomial(1, 5), Err(Error::SpecPart { .. })));
        assert_eq!(Shape::balanced(1, 64).unwrap().node_count(), 65);
    }
}
