//! The shape of a tree, by arithmetic.
//!
//! All back-ends are on the last level. The children of a level are shared out among its nodes
//! from left to right as evenly as their number allows, one more to the first ones. So a node's
//! parent and children follow from its number, and a tree of a million processes takes a few
//! words.
//!
//! A node's *number* counts breadth first from the front-end, which is 0; its *rank* is that of
//! the whole project: back-ends first, then the front-end, then communication processes breadth
//! first.
//! `sapwood_topology::Topology` describes any tree, with hosts, in a hundred bytes per process, up
//! to its own limits; this type exists for trees beyond them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::ops::Range;

use sapwood_packet::{Rank, RankSet};

use super::ScaleError;

/// Most processes in one study.
pub const PROCESSES_MAX: u32 = 4_000_000;

/// Most children of a node that is simulated: a real node counts them in 16 bits.
pub const CHILDREN_SIMULATED_MAX: u32 = 65_535;

/// A balanced tree.
///
/// ```
/// use sapwood_sim::scale::Tree;
///
/// let tree = Tree::with_fan_out(1000, 8)?;
/// assert_eq!((tree.depth(), tree.communication_processes()), (4, 2 + 16 + 125));
/// assert_eq!(tree.fan_out_max(), 8);
/// assert_eq!(Tree::with_depth(10_000, 2)?.communication_processes(), 100);
/// # Ok::<(), sapwood_sim::scale::ScaleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Nodes per level, the front-end's level first.
    widths: Vec<u32>,
    /// Number of the first node of each level.
    firsts: Vec<u32>,
}

impl Tree {
    /// The front-end with all back-ends below it.
    ///
    /// # Errors
    /// [`ScaleError::Shape`] for no back-end, [`ScaleError::Processes`].
    pub fn flat(back_ends: u32) -> Result<Self, ScaleError> {
        Self::of_widths(Vec::from([1, back_ends]), || format!("flat with {back_ends} back-ends"))
    }

    /// The tree of fewest levels in which no node has more than `fan_out` children.
    ///
    /// # Errors
    /// [`ScaleError::Shape`] for no back-end or a fan-out below 2, [`ScaleError::Processes`].
    pub fn with_fan_out(back_ends: u32, fan_out: u32) -> Result<Self, ScaleError> {
        let what = || format!("fan-out {fan_out} with {back_ends} back-ends");
        if fan_out < 2 || back_ends == 0 {
            return Err(ScaleError::Shape { what: what() });
        }
        let mut widths = Vec::from([back_ends]);
        let mut width = back_ends.div_ceil(fan_out);
        while width > 1 {
            widths.push(width);
            width = width.div_ceil(fan_out);
        }
        widths.push(1);
        widths.reverse();
        Self::of_widths(widths, what)
    }

    /// The tree of that many levels below the front-end whose widths grow by one factor.
    ///
    /// # Errors
    /// [`ScaleError::Shape`] for no back-end or no level, [`ScaleError::Processes`].
    pub fn with_depth(back_ends: u32, depth: u32) -> Result<Self, ScaleError> {
        let what = || format!("depth {depth} with {back_ends} back-ends");
        if !(1..=sapwood_topology::DEPTH_MAX).contains(&depth) {
            return Err(ScaleError::Shape { what: what() });
        }
        let width = |level: u32| {
            let share = f64::from(level) / f64::from(depth);
            libm::round(libm::pow(f64::from(back_ends), share)) as u32
        };
        Self::of_widths((0..=depth).map(width).collect(), what)
    }

    fn of_widths(widths: Vec<u32>, what: impl Fn() -> String) -> Result<Self, ScaleError> {
        if widths.contains(&0) {
            return Err(ScaleError::Shape { what: what() });
        }
        let count: u64 = widths.iter().copied().map(u64::from).sum();
        if count > u64::from(PROCESSES_MAX) {
            return Err(ScaleError::Processes { count });
        }
        let mut firsts = Vec::new();
        let mut first = 0;
        for width in &widths {
            firsts.push(first);
            first += width;
        }
        Ok(Self { widths, firsts })
    }

    /// How many back-ends it has.
    #[must_use]
    pub fn back_ends(&self) -> u32 {
        self.widths[self.widths.len() - 1]
    }

    /// How many processes it has, of any role.
    #[must_use]
    pub fn processes(&self) -> u32 {
        self.widths.iter().sum()
    }

    /// How many processes are neither the front-end nor back-ends.
    #[must_use]
    pub fn communication_processes(&self) -> u32 {
        self.processes() - self.back_ends() - 1
    }

    /// Levels below the front-end.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.widths.len() as u32 - 1
    }

    /// Children of the node that has most.
    #[must_use]
    pub fn fan_out_max(&self) -> u32 {
        self.widths.windows(2).map(|pair| pair[1].div_ceil(pair[0])).max().unwrap_or(0)
    }

    /// Children of the front-end.
    #[must_use]
    pub fn front_end_children(&self) -> u32 {
        self.widths[1]
    }

    /// The same tree in the notation of [`sapwood_topology::Shape`].
    #[must_use]
    pub fn spec(&self) -> String {
        if self.depth() == 1 {
            return format!("{}", self.back_ends());
        }
        let mut spec = format!("g:{}", self.widths[1]);
        for pair in self.widths[1..].windows(2) {
            let (parents, children) = (pair[0], pair[1]);
            let (fewer, with_one_more) = (children / parents, children % parents);
            // Writing to a string cannot fail.
            let _ = match with_one_more {
                0 => write!(spec, ":{parents}x{fewer}"),
                more => write!(spec, ":{more}x{},{}x{fewer}", fewer + 1, parents - more),
            };
        }
        spec
    }

    /// The level of a node; the front-end's is 0.
    pub(super) fn level(&self, number: u32) -> usize {
        self.firsts.partition_point(|first| *first <= number) - 1
    }

    /// Whether a node is a back-end.
    pub(super) fn is_back_end(&self, number: u32) -> bool {
        number >= self.firsts[self.firsts.len() - 1]
    }

    /// The rank of a node.
    pub(super) fn rank(&self, number: u32) -> Rank {
        match number {
            0 => self.back_ends(),
            _ if self.is_back_end(number) => number - self.firsts[self.firsts.len() - 1],
            _ => self.back_ends() + number,
        }
    }

    /// The parent of a node that is not the front-end.
    pub(super) fn parent(&self, number: u32) -> u32 {
        let level = self.level(number);
        let (parents, children) = (self.widths[level - 1], self.widths[level]);
        let (fewer, with_one_more) = (children / parents, children % parents);
        let position = number - self.firsts[level];
        let in_wide = with_one_more * (fewer + 1);
        let parent = match position < in_wide {
            true => position / (fewer + 1),
            false => with_one_more + (position - in_wide) / fewer,
        };
        self.firsts[level - 1] + parent
    }

    /// The children of a node, by number.
    pub(super) fn children(&self, number: u32) -> Range<u32> {
        let level = self.level(number);
        let position = number - self.firsts[level];
        let of = self.below(level, position..position + 1);
        match self.firsts.get(level + 1) {
            Some(first) => first + of.start..first + of.end,
            None => 0..0,
        }
    }

    /// The positions on the next level that belong to these positions of a level.
    fn below(&self, level: usize, positions: Range<u32>) -> Range<u32> {
        let Some(children) = self.widths.get(level + 1) else { return 0..0 };
        let (fewer, with_one_more) = (children / self.widths[level], children % self.widths[level]);
        let start = |position: u32| position * fewer + position.min(with_one_more);
        start(positions.start)..start(positions.end)
    }

    /// The back-ends below a node; itself, when it is one.
    pub(super) fn back_ends_below(&self, number: u32) -> RankSet {
        let (level, mut positions) = (self.level(number), self.position(number));
        for level in level..self.widths.len() - 1 {
            positions = self.below(level, positions);
        }
        RankSet::range(positions.start, positions.end - 1)
    }

    /// Levels from a node to its back-ends.
    pub(super) fn height(&self, number: u32) -> u32 {
        self.depth() - self.level(number) as u32
    }

    fn position(&self, number: u32) -> Range<u32> {
        let position = number - self.firsts[self.level(number)];
        position..position + 1
    }

    /// Length of the plan that a node is told by its parent, in bytes, as the real one is encoded
    /// (`sapwood_topology::Subtree` in postcard) when all processes are on one host: rank, host,
    /// index on the host and number of children of every node below.
    pub(super) fn plan_bytes(&self, number: u32) -> usize {
        let (first_level, mut positions) = (self.level(number), self.position(number));
        let mut bytes = PLAN_HEAD_BYTES;
        for level in first_level..self.widths.len() {
            let numbers = self.firsts[level] + positions.start..self.firsts[level] + positions.end;
            let ranks = self.rank(numbers.start)..self.rank(numbers.start) + numbers.len() as u32;
            // An index on the host is about as large as a number breadth first.
            bytes += varint_bytes(ranks) + varint_bytes(numbers.clone()) + 2 * numbers.len();
            positions = self.below(level, positions);
        }
        bytes
    }
}

/// Front-end, depth, whether back-ends attach, one host name, number of nodes.
const PLAN_HEAD_BYTES: usize = 20;

/// Bytes of these numbers together when each takes 7 bits a byte.
fn varint_bytes(numbers: Range<u32>) -> usize {
    let beyond = |least: u32| numbers.end.saturating_sub(numbers.start.max(least)) as usize;
    numbers.len() + beyond(1 << 7) + beyond(1 << 14) + beyond(1 << 21) + beyond(1 << 28)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sapwood_topology::{Hosts, Topology};

    fn trees() -> Vec<Tree> {
        let mut trees = Vec::new();
        for back_ends in [1, 2, 3, 7, 8, 9, 64, 65, 100, 1000] {
            trees.push(Tree::flat(back_ends).unwrap());
            trees.extend([2, 3, 8, 32].map(|k| Tree::with_fan_out(back_ends, k).unwrap()));
            trees.extend([1, 2, 3, 5, 10].map(|d| Tree::with_depth(back_ends, d).unwrap()));
        }
        trees
    }

    #[test]
    fn it_is_the_tree_that_its_notation_says() {
        for tree in trees() {
            let topology = Topology::from_shape(&tree.spec().parse().unwrap(), &Hosts::local());
            assert_eq!(topology.node_count(), tree.processes(), "{}", tree.spec());
            assert_eq!(topology.depth(), tree.depth());
            for number in 0..tree.processes() {
                let rank = tree.rank(number);
                let children: Vec<u32> = tree.children(number).map(|c| tree.rank(c)).collect();
                assert_eq!(topology.children(rank), children, "{} node {number}", tree.spec());
                for child in tree.children(number) {
                    assert_eq!(tree.parent(child), number);
                }
                assert_eq!(tree.is_back_end(number), children.is_empty());
                let below: RankSet = match children.is_empty() {
                    true => RankSet::range(rank, rank),
                    false => {
                        let ranges = topology.back_end_ranges(rank);
                        ranges.into_iter().flat_map(|(first, last)| first..=last).collect()
                    }
                };
                assert_eq!(tree.back_ends_below(number), below);
            }
        }
    }

    #[test]
    fn no_node_has_more_children_than_asked_and_no_level_is_wasted() {
        for (back_ends, fan_out, depth) in [(1000, 10, 3), (1001, 10, 4), (8, 8, 1), (1, 2, 1)] {
            let tree = Tree::with_fan_out(back_ends, fan_out).unwrap();
            assert!(tree.fan_out_max() <= fan_out);
            assert_eq!(tree.depth(), depth, "{}", tree.spec());
        }
    }

    #[test]
    fn trees_that_are_none_are_refused() {
        assert!(Tree::flat(0).is_err());
        assert!(Tree::with_fan_out(8, 1).is_err());
        assert!(Tree::with_depth(8, 0).is_err());
        assert!(matches!(
            Tree::flat(PROCESSES_MAX),
            Err(ScaleError::Processes { count }) if count == u64::from(PROCESSES_MAX) + 1
        ));
    }
}
