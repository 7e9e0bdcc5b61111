//! `prefix-tree`: the call stacks of all back-ends as one tree, in which each node has the set of
//! ranks whose stacks contain it.
//!
//! A back-end sends a stack as one array of strings, the outermost frame first, or several stacks
//! as several arrays. Stacks that begin with the same frames share the nodes of those. (The tree of
//! Arnold, Ahn, de Supinski, Lee, Miller, Schulz, "Stack Trace Analysis for Large Scale Debugging",
//! IPDPS 2007, section 3.)
//!
//! The tree is bounded: of more nodes, those nearest to the root are kept (of one depth, those
//! whose path comes first when paths are compared frame by frame as bytes), and it says that it is
//! not complete. A stack then seems to end where the tree was cut. Nodes that are kept are exact,
//! and the tree is the same, bit for bit, in whatever order its parts were merged.
//!
//! Parameter: the most nodes, the root among them, an integer from 1 to 2^20, default 4096. The
//! encoded tree, at most 80 bytes, 20 for each node, 8 for every range of ranks and, once for each
//! different frame, 8 and its bytes; nodes are in order of depth, then of path, the root first:
//!
//! ```text
//! %ud    most nodes             %uc    1 if the tree is complete, else 0
//! %as    the names of frames, sorted
//! %aud   per node: its parent's place among the nodes; 0 for the root
//! %aud   per node: its name's place among the names; 0 for the root, which has none
//! %auld  per node: how many stacks pass through it
//! %aud   per node: how many ranges of ranks it has; 0 when they are its parent's
//! %aud   first and last rank of every range, node after node
//! ```

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use sapwood_packet::{
    Directive, ElementType, FormatRef, IntoValues, PacketRef, Rank, RankSet, RankSetRef, Shape,
    Values, ValuesRef,
};

use super::rank_sets::{RANGES_MAX, too_scattered, unite};
use super::{Sketch, array, failed, forged, is_same, parameter, scalar, unlike};
use crate::rank_columns::{EncodedSets, columns};
use crate::{Filter, FilterError, WaveRef};

const NAME: &str = "prefix-tree";

const NODES: u32 = 4096;
const NODES_BOUNDS: [u32; 2] = [1, 1 << 20];
const TAKES_PARAMETERS: &str = "one integer, the most nodes, from 1 to 1048576";
const LAYOUT: [Directive; 8] = [
    scalar(ElementType::Uint32),
    scalar(ElementType::Uint8),
    array(ElementType::String),
    array(ElementType::Uint32),
    array(ElementType::Uint32),
    array(ElementType::Uint64),
    array(ElementType::Uint32),
    array(ElementType::Uint32),
];

/// A node of the tree as a reader sees it.
#[derive(Clone, Copy, Debug)]
pub struct PrefixNode<'a> {
    /// How many nodes are above it, without the root: 0 for an outermost frame.
    pub depth: usize,
    /// The frame, as bytes.
    pub name: &'a [u8],
    /// The ranks whose stacks pass through it.
    pub ranks: &'a RankSet,
    /// How many stacks pass through it; more than ranks when a back-end sent several.
    pub stacks: u64,
    /// How many of those end in it, or in what was cut off below it.
    pub ending: u64,
}

#[derive(Clone, Debug)]
struct Node {
    parent: u32,
    name: u32,
    stacks: u64,
    ranks: RankSet,
}

/// The call stacks of many back-ends as one tree.
///
/// ```
/// use sapwood_filter::PrefixTree;
///
/// let mut tree = PrefixTree::new(100)?;
/// tree.add(["main", "solve", "wait"], 0);
/// tree.add(["main", "solve", "send"], 1);
/// tree.add(["main", "solve", "wait"], 2);
/// let text = "main: 0-2\n  solve: 0-2\n    send: 1\n    wait: 0,2\n";
/// assert_eq!(tree.to_string(), text);
/// # Ok::<(), sapwood_filter::FilterError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PrefixTree {
    nodes_max: u32,
    is_complete: bool,
    /// Frames by their numbers, and the numbers by frame.
    names: Vec<Arc<[u8]>>,
    numbers: BTreeMap<Arc<[u8]>, u32>,
    /// The root first; every other node comes after its parent.
    nodes: Vec<Node>,
    /// Nodes by parent and name.
    children: BTreeMap<(u32, u32), u32>,
}

impl PrefixTree {
    /// The tree of no stacks, which holds at most this many nodes including the root.
    ///
    /// # Errors
    /// [`FilterError::Parameters`] when the bound is not from 1 to 2^20.
    pub fn new(nodes_max: u32) -> Result<Self, FilterError> {
        if !(NODES_BOUNDS[0]..=NODES_BOUNDS[1]).contains(&nodes_max) {
            return Err(FilterError::Parameters { name: NAME, takes: TAKES_PARAMETERS });
        }
        let root = Node { parent: 0, name: 0, stacks: 0, ranks: RankSet::new() };
        Ok(Self {
            nodes_max,
            is_complete: true,
            names: Vec::new(),
            numbers: BTreeMap::new(),
            nodes: alloc::vec![root],
            children: BTreeMap::new(),
        })
    }

    /// Adds a stack of a back-end, the outermost frame first.
    pub fn add<S: AsRef<[u8]>>(&mut self, frames: impl IntoIterator<Item = S>, rank: Rank) {
        self.add_of(frames, RankSet::range(rank, rank).as_ref());
    }

    /// Takes in another tree of the same bound.
    ///
    /// # Errors
    /// [`FilterError::Failed`] when the other's bound differs, or the ranks of all nodes are
    /// scattered over more than 2^22 ranges.
    pub fn merge(&mut self, other: &Self) -> Result<(), FilterError> {
        if self.nodes_max != other.nodes_max {
            let what = format!("at most {} nodes for {}", other.nodes_max, self.nodes_max);
            return Err(unlike(NAME, &what));
        }
        self.is_complete &= other.is_complete;
        let mut places: Vec<u32> = Vec::with_capacity(other.nodes.len());
        for (index, node) in other.nodes.iter().enumerate() {
            let place = match index {
                0 => 0,
                _ => self.child(places[node.parent as usize], &other.names[node.name as usize]),
            };
            self.pass(place, node.ranks.as_ref(), node.stacks);
            places.push(place);
        }
        self.prune_if_large();
        self.check_ranges()
    }

    /// All nodes but the root, each before those below it, those of one parent sorted by name.
    pub fn nodes(&self) -> impl Iterator<Item = PrefixNode<'_>> {
        let mut left: Vec<(usize, u32)> = Vec::new();
        let push = |left: &mut Vec<_>, depth: usize, of: u32| {
            left.extend(self.children_of(of).into_iter().rev().map(|child| (depth, child)));
        };
        push(&mut left, 0, 0);
        core::iter::from_fn(move || {
            let (depth, index) = left.pop()?;
            push(&mut left, depth + 1, index);
            let node = &self.nodes[index as usize];
            let ending = node.stacks.saturating_sub(self.stacks_below(index));
            let name = &self.names[node.name as usize];
            Some(PrefixNode { depth, name, ranks: &node.ranks, stacks: node.stacks, ending })
        })
    }

    /// The ranks that sent stacks.
    #[must_use]
    pub fn ranks(&self) -> &RankSet {
        &self.nodes[0].ranks
    }

    /// How many stacks there are.
    #[must_use]
    pub fn stacks(&self) -> u64 {
        self.nodes[0].stacks
    }

    /// Whether no node was left out for the bound.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Reads an encoded tree, of the filter or of [`IntoValues::into_values`].
    ///
    /// # Errors
    /// [`FilterError::Format`] when the format is another, [`FilterError::Values`] or
    /// [`FilterError::Failed`] when the values do not fit together.
    pub fn from_values(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        Self::read(values)
    }

    fn add_of<S: AsRef<[u8]>>(
        &mut self,
        frames: impl IntoIterator<Item = S>,
        ranks: RankSetRef<'_>,
    ) {
        let mut place = 0;
        self.pass(place, ranks, 1);
        for (depth, frame) in (1..).zip(frames) {
            // At least as many nodes as the bound precede it in any case.
            if depth >= self.nodes_max {
                self.is_complete = false;
                break;
            }
            place = self.child(place, frame.as_ref());
            self.pass(place, ranks, 1);
        }
        self.prune_if_large();
    }

    /// The child of that name, made if there is none.
    fn child(&mut self, parent: u32, name: &[u8]) -> u32 {
        let number = match self.numbers.get(name) {
            Some(&number) => number,
            None => {
                let (number, name) = (self.names.len() as u32, Arc::<[u8]>::from(name));
                self.names.push(name.clone());
                self.numbers.insert(name, number);
                number
            }
        };
        let next = self.nodes.len() as u32;
        let child = *self.children.entry((parent, number)).or_insert(next);
        if child == next {
            self.nodes.push(Node { parent, name: number, stacks: 0, ranks: RankSet::new() });
        }
        child
    }

    fn pass(&mut self, place: u32, ranks: RankSetRef<'_>, stacks: u64) {
        let node = &mut self.nodes[place as usize];
        node.stacks = node.stacks.saturating_add(stacks);
        unite(&mut node.ranks, ranks);
    }

    /// The children of a node, sorted by name.
    fn children_of(&self, parent: u32) -> Vec<u32> {
        let children = self.children.range((parent, 0)..=(parent, u32::MAX));
        let mut children: Vec<(&[u8], u32)> =
            children.map(|(&(_, name), &child)| (&self.names[name as usize][..], child)).collect();
        children.sort_unstable();
        children.into_iter().map(|(_, child)| child).collect()
    }

    fn stacks_below(&self, parent: u32) -> u64 {
        let children = self.children.range((parent, 0)..=(parent, u32::MAX));
        children.fold(0, |sum, (_, &child)| sum.saturating_add(self.nodes[child as usize].stacks))
    }

    /// The nodes that are kept, by depth, then by path.
    fn kept(&self) -> Vec<u32> {
        let mut order = alloc::vec![0];
        let mut next = 0;
        while next < order.len() && order.len() < self.nodes_max as usize {
            order.extend(self.children_of(order[next]));
            next += 1;
        }
        order.truncate(self.nodes_max as usize);
        order
    }

    /// Leaves out what is beyond the bound once that is half of all.
    fn prune_if_large(&mut self) {
        if self.nodes.len() <= 2 * self.nodes_max as usize {
            return;
        }
        let order = self.kept();
        let mut pruned = Self { nodes: Vec::new(), is_complete: false, ..self.emptied() };
        let mut places = alloc::vec![0_u32; self.nodes.len()];
        for (place, &index) in (0..).zip(&order) {
            let node = &mut self.nodes[index as usize];
            let ranks = core::mem::take(&mut node.ranks);
            let (parent, name, stacks) = (places[node.parent as usize], node.name, node.stacks);
            if place == 0 {
                pruned.nodes.push(Node { parent: 0, name: 0, stacks, ranks });
            } else {
                let child = pruned.child(parent, &self.names[name as usize]);
                let node = &mut pruned.nodes[child as usize];
                (node.ranks, node.stacks) = (ranks, stacks);
            }
            places[index as usize] = place;
        }
        *self = pruned;
    }

    /// The tree of no stacks with the same bound.
    fn emptied(&self) -> Self {
        Self {
            nodes_max: self.nodes_max,
            is_complete: true,
            names: Vec::new(),
            numbers: BTreeMap::new(),
            nodes: Vec::new(),
            children: BTreeMap::new(),
        }
    }

    fn check_ranges(&self) -> Result<(), FilterError> {
        let ranges: usize = self.nodes.iter().map(|node| node.ranks.as_ref().ranges().len()).sum();
        if ranges > RANGES_MAX { Err(too_scattered(NAME)) } else { Ok(()) }
    }
}

impl fmt::Display for PrefixTree {
    /// One line for each node, indented by its depth: its name and its ranks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in self.nodes() {
            let name = String::from_utf8_lossy(node.name);
            writeln!(f, "{:width$}{name}: {}", "", node.ranks, width = 2 * node.depth)?;
        }
        Ok(())
    }
}

impl IntoValues for PrefixTree {
    fn append_to(self, values: Values) -> Values {
        let order = self.kept();
        let is_complete = self.is_complete && order.len() == self.nodes.len();
        let nodes = || order.iter().map(|&index| &self.nodes[index as usize]);
        // Names are numbered anew: sorted, and only those that are still there.
        let mut used = alloc::vec![false; self.names.len()];
        nodes().skip(1).for_each(|node| used[node.name as usize] = true);
        let mut numbers = alloc::vec![0_u32; self.names.len()];
        let mut names: Vec<&[u8]> = Vec::new();
        for (name, &number) in &self.numbers {
            if used[number as usize] {
                numbers[number as usize] = names.len() as u32;
                names.push(name);
            }
        }
        let mut places = alloc::vec![0_u32; self.nodes.len()];
        for (place, &index) in (0..).zip(&order) {
            places[index as usize] = place;
        }
        let parents: Vec<u32> = nodes().map(|node| places[node.parent as usize]).collect();
        let mut of_nodes: Vec<u32> = nodes().map(|node| numbers_of(&numbers, node)).collect();
        of_nodes[0] = 0;
        let stacks: Vec<u64> = nodes().map(|node| node.stacks).collect();
        let sets = order.iter().map(|&index| {
            let node = &self.nodes[index as usize];
            let is_parents = index != 0 && node.ranks == self.nodes[node.parent as usize].ranks;
            if is_parents { RankSetRef::default() } else { node.ranks.as_ref() }
        });
        let (sizes, ranges) = columns(sets);
        values
            .scalar(self.nodes_max)
            .scalar(u8::from(is_complete))
            .strings(&names)
            .array(&parents)
            .array(&of_nodes)
            .array(&stacks)
            .array(&sizes)
            .array(&ranges)
    }
}

fn numbers_of(numbers: &[u32], node: &Node) -> u32 {
    numbers.get(node.name as usize).copied().unwrap_or(0)
}

impl Sketch for PrefixTree {
    const NAME: &'static str = NAME;
    const TAKES: &'static str = "stacks, one array of strings each, or its own trees";
    type Parameters = u32;

    fn parameters(values: ValuesRef<'_>) -> Result<u32, FilterError> {
        let nodes = parameter::only_integer(values, NODES, NODES_BOUNDS);
        nodes.ok_or(FilterError::Parameters { name: NAME, takes: TAKES_PARAMETERS })
    }

    fn begin(nodes_max: &u32, _: &WaveRef<'_>) -> Self {
        Self::new(*nodes_max).expect("parameters have been checked")
    }

    fn is_layout(format: FormatRef<'_>) -> bool {
        is_same(format, &LAYOUT)
    }

    fn is_raw(format: FormatRef<'_>) -> bool {
        let is_stack = |directive: Directive| {
            directive.element == ElementType::String && directive.shape != Shape::Scalar
        };
        !format.is_empty() && format.directives().all(is_stack)
    }

    fn add_raw(&mut self, packet: &PacketRef<'_>) -> Result<(), FilterError> {
        let ranks = packet.contributors;
        if ranks.is_empty() {
            return Err(failed(NAME, "a packet has no contributors; use it on the way up"));
        }
        let mut body = packet.body;
        for code in packet.format.codes().chunks(1) {
            // Each stack is read from the rest of the values, so that none is skipped over twice.
            let Some(format) = FormatRef::from_codes(code) else { continue };
            let values = ValuesRef::new(format, body);
            let frames = values.strings(0)?;
            body = &body[values.encoded(0)?.1.len()..];
            let nodes = frames.len().min(self.nodes_max as usize) + 1;
            if ranks.ranges().len().saturating_mul(nodes) > RANGES_MAX {
                return Err(too_scattered(NAME));
            }
            self.add_of(frames, ranks);
        }
        self.check_ranges()
    }

    fn decode(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        let mut tree = Self::new(values.scalar(0)?)
            .map_err(|_| forged(NAME, "a bound that is out of range"))?;
        tree.is_complete = values.scalar::<u8>(1)? != 0;
        for (number, name) in (0..).zip(values.strings(2)?) {
            let name = Arc::<[u8]>::from(name);
            if tree.names.last().is_some_and(|last| *last >= name) {
                return Err(forged(NAME, "names that are not sorted"));
            }
            tree.names.push(name.clone());
            tree.numbers.insert(name, number);
        }
        let (parents, names) = (values.array::<u32>(3)?, values.array::<u32>(4)?);
        let stacks = values.array::<u64>(5)?;
        let count = parents.len();
        let is_bounded = (1..=tree.nodes_max as usize).contains(&count);
        if !is_bounded || names.len() != count || stacks.len() != count {
            return Err(forged(NAME, "no nodes, too many, or columns of different lengths"));
        }
        let mut sets = EncodedSets::read(values, 6, count, |what| forged(NAME, what))?;
        tree.nodes.clear();
        let mut ranges = 0;
        for (index, ((&parent, &name), &stacks)) in
            (0_u32..).zip(parents.iter().zip(names).zip(stacks))
        {
            let own = sets.next()?;
            let is_child = parent < index && (name as usize) < tree.names.len();
            if index > 0 && !is_child {
                return Err(forged(NAME, "a node without parent or name"));
            }
            let ranks = match tree.nodes.get(parent as usize) {
                Some(parent) if own.is_empty() => parent.ranks.as_ref(),
                _ => own,
            };
            ranges += ranks.ranges().len();
            if ranges > RANGES_MAX {
                return Err(too_scattered(NAME));
            }
            let ranks = ranks.to_set();
            tree.nodes.push(Node { parent, name, stacks, ranks });
            if index > 0 && tree.children.insert((parent, name), index).is_some() {
                return Err(forged(NAME, "a node twice"));
            }
        }
        (tree.nodes[0].parent, tree.nodes[0].name) = (0, 0);
        Ok(tree)
    }

    fn absorb(&mut self, other: Self) -> Result<(), FilterError> {
        if self.nodes_max == other.nodes_max && self.stacks() == 0 && self.is_complete {
            *self = other;
            return Ok(());
        }
        self.merge(&other)
    }
}

/// Makes the filter; its parameter is the most nodes.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    super::make::<PrefixTree>(parameters)
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    fn tree(nodes_max: u32, stacks: &[(&str, Rank)]) -> PrefixTree {
        let mut tree = PrefixTree::new(nodes_max).expect("a bound");
        stacks.iter().for_each(|(stack, rank)| tree.add(stack.split_whitespace(), *rank));
        tree
    }

    fn same(a: &PrefixTree, b: &PrefixTree) -> bool {
        a.clone().into_values().as_ref() == b.clone().into_values().as_ref()
    }

    #[test]
    fn threads_of_one_rank_are_counted_and_stacks_that_end_higher_up_too() {
        let tree = tree(100, &[("main work", 4), ("main work", 4), ("main", 4), ("", 5)]);
        assert_eq!((tree.stacks(), tree.ranks().to_string()), (4, "4-5".into()));
        let nodes: Vec<_> = tree.nodes().map(|node| (node.stacks, node.ending)).collect();
        assert_eq!(nodes, [(3, 1), (2, 2)]);
    }

    #[test]
    fn an_encoded_tree_is_read_back() {
        let first = tree(100, &[("main a b", 1), ("main c", 2), ("init", 0), ("main a b", 9)]);
        let values = first.clone().into_values();
        let second = PrefixTree::from_values(values.as_ref()).expect("its own values");
        assert_eq!(first.to_string(), second.to_string());
        assert!(same(&first, &second));
        // The root, "init", "main" and "a" have ranges of their own; "b" has those of "a".
        assert_eq!(values.as_ref().array::<u32>(6), Ok(&[2, 1, 2, 2, 1, 0][..]));
        assert!(PrefixTree::from_values(tree(9, &[]).into_values().as_ref()).is_ok());
    }

    #[test]
    fn a_full_tree_keeps_what_is_nearest_to_the_root_whatever_comes_first() {
        let stacks = [("m z y x w", 0), ("m a", 1), ("m b c d", 2), ("k", 3), ("m b", 4)];
        let whole = tree(5, &stacks);
        let mut turned = stacks;
        turned.reverse();
        assert!(same(&whole, &tree(5, &turned)));
        let read = PrefixTree::from_values(whole.into_values().as_ref()).expect("its own values");
        assert_eq!(read.to_string(), "k: 3\nm: 0-2,4\n  a: 1\n  b: 2,4\n");
        assert!(!read.is_complete());
        let mut merged = tree(5, &stacks[..2]);
        merged.merge(&tree(5, &stacks[2..])).expect("the same bound");
        assert!(same(&read, &merged));
    }

    #[test]
    fn ranks_that_would_not_fit_into_memory_are_refused() {
        let mut ranges: Vec<u32> = Vec::new();
        (0..RANGES_MAX as u32 / 2).for_each(|step| ranges.extend([3 * step, 3 * step]));
        let values = Values::new()
            .scalar(100_u32)
            .scalar(1_u8)
            .strings(&["a", "b"])
            .array(&[0_u32, 0, 0])
            .array(&[0_u32, 0, 1])
            .array(&[1_u64, 1, 1])
            .array(&[RANGES_MAX as u32 / 2, 0, 0])
            .array(&ranges);
        let error = PrefixTree::from_values(values.as_ref()).expect_err("too many");
        assert_eq!(error, too_scattered(NAME));
    }
}
