//! Folding: a set of names as the shortest text that is found in one go.
//!
//! Names of one pattern are tuples of numbers. Tuples that differ in one number only are joined
//! along that dimension, then the joined ones along the next, until nothing can be joined any more.
//! Each round sorts once per dimension, so that a hundred thousand names take a fraction of a
//! second however irregular they are.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::gathering::dimensions;
use super::index::{Distances, Index, longest_run, sort, write_ranges};
use super::parse::multiply;
use super::{NodeSet, PLACE};

/// Above this many names only one order of the dimensions is tried.
const BOTH_ORDERS_MAX: usize = 1 << 18;

/// How a set is folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folding {
    /// Write `0-98/2` where at least this many numbers have that distance; never if none.
    pub step_count_min: Option<usize>,
    /// Fold only along these numbers of a name: 1 is the first, -1 the last; all if empty.
    pub axes: Vec<i32>,
}

impl Folding {
    fn is_folded(&self, dimension: usize, dimensions: usize) -> bool {
        let from_front = dimension as i32 + 1;
        let from_back = dimension as i32 - dimensions as i32;
        self.axes.is_empty()
            || self.axes.iter().any(|&axis| axis == from_front || axis == from_back)
    }
}

impl NodeSet {
    /// The set as text, which is read as the same set.
    #[must_use]
    pub fn fold(&self, folding: &Folding) -> String {
        let mut text = String::new();
        for (pattern, numbers) in &self.patterns {
            let dimensions = dimensions(pattern);
            if dimensions == 0 {
                separate(&mut text);
                text.push_str(pattern);
                continue;
            }
            if dimensions == 1 && folding.is_folded(0, 1) {
                separate(&mut text);
                write_row(pattern, &[numbers], folding, &mut text);
                continue;
            }
            let rows = Rows::of(numbers, dimensions).joined(folding);
            for row in rows.ids.chunks_exact(dimensions) {
                separate(&mut text);
                let sets: Vec<&[Index]> = row.iter().map(|&id| rows.set(id)).collect();
                write_row(pattern, &sets, folding, &mut text);
            }
        }
        text
    }

    /// The contiguous parts of the set: in each, every number of a name runs through one range
    /// without a gap, as in `n[1-3]m[5-6]`. One at a time, since there may be as many as names.
    pub fn contiguous(&self, folding: &Folding) -> impl Iterator<Item = Self> {
        self.patterns.iter().flat_map(move |(pattern, numbers)| {
            let rows = Rows::folded(numbers, dimensions(pattern), folding);
            (0..rows.len())
                .flat_map(move |at| contiguous_parts(rows.row(at)))
                .map(move |numbers| Self { patterns: BTreeMap::from([(pattern.clone(), numbers)]) })
        })
    }
}

/// The parts of a product of sets in which each set is one range; of each part its tuples.
fn contiguous_parts(sets: Vec<Vec<Index>>) -> impl Iterator<Item = Vec<Index>> {
    let runs: Vec<Vec<Range<usize>>> = sets.iter().map(|set| contiguous_runs(set)).collect();
    let count: usize = runs.iter().map(Vec::len).product();
    (0..count).map(move |part| {
        let mut rest = part;
        let mut chosen = Vec::with_capacity(sets.len());
        for (set, runs) in sets.iter().zip(&runs).rev() {
            chosen.push(set[runs[rest % runs.len()].clone()].to_vec());
            rest /= runs.len();
        }
        chosen.reverse();
        let mut numbers = Vec::new();
        multiply(&chosen, &mut numbers);
        numbers
    })
}

/// Where sorted numbers lie that follow one another without a gap.
fn contiguous_runs(numbers: &[Index]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut start = 0;
    while start < numbers.len() {
        let (count, _) = longest_run(&numbers[start..], Distances::One);
        runs.push(start..start + count);
        start += count;
    }
    runs
}

fn separate(text: &mut String) {
    if !text.is_empty() {
        text.push(',');
    }
}

fn write_row(pattern: &str, sets: &[&[Index]], folding: &Folding, text: &mut String) {
    let mut sets = sets.iter();
    for character in pattern.chars() {
        match sets.as_slice().first() {
            Some(numbers) if character == PLACE => {
                sets.next();
                let is_one = numbers.len() == 1;
                text.push_str(if is_one { "" } else { "[" });
                write_ranges(numbers, folding.step_count_min, text);
                text.push_str(if is_one { "" } else { "]" });
            }
            _ => text.push(character),
        }
    }
}

/// Products of sets of numbers; each row is one, a set per dimension, by the sets' numbers.
#[derive(Clone)]
struct Rows {
    dimensions: usize,
    ids: Vec<u32>,
    sets: Vec<Vec<Index>>,
    known: BTreeMap<Vec<Index>, u32>,
}

impl Rows {
    /// A row for each tuple.
    fn of(numbers: &[Index], dimensions: usize) -> Self {
        let mut different = numbers.to_vec();
        sort(&mut different);
        let place = |number: &Index| different.binary_search(number).unwrap_or(0) as u32;
        let ids = numbers.iter().map(place).collect();
        let sets = different.iter().map(|&number| vec![number]).collect();
        Self { dimensions, ids, sets, known: BTreeMap::new() }
    }

    /// The rows of all tuples of a pattern. Names without a number are one row.
    fn folded(numbers: &[Index], dimensions: usize, folding: &Folding) -> Self {
        if dimensions == 0 || dimensions == 1 && folding.is_folded(0, 1) {
            let (ids, sets) = (vec![0; dimensions], vec![numbers.to_vec()]);
            return Self { dimensions, ids, sets, known: BTreeMap::new() };
        }
        Self::of(numbers, dimensions).joined(folding)
    }

    fn len(&self) -> usize {
        self.ids.len().checked_div(self.dimensions).unwrap_or(1)
    }

    /// The sets of a row.
    fn row(&self, at: usize) -> Vec<Vec<Index>> {
        let ids = &self.ids[at * self.dimensions..][..self.dimensions];
        ids.iter().map(|&id| self.set(id).to_vec()).collect()
    }

    fn set(&self, id: u32) -> &[Index] {
        &self.sets[id as usize]
    }

    /// Joins rows along the dimensions that may be folded, in whichever order leaves fewer.
    fn joined(self, folding: &Folding) -> Self {
        let all = 0..self.dimensions;
        let mut order: Vec<usize> =
            all.filter(|&dimension| folding.is_folded(dimension, self.dimensions)).collect();
        let is_small = self.len() <= BOTH_ORDERS_MAX && order.len() > 1;
        let other = is_small.then(|| self.clone().join_all(&order));
        order.reverse();
        let mut best = self.join_all(&order);
        if let Some(other) = other.filter(|other| other.len() < best.len()) {
            best = other;
        }
        best.sort_rows();
        best
    }

    fn join_all(mut self, order: &[usize]) -> Self {
        loop {
            let before = self.len();
            for &dimension in order {
                self.join_along(dimension);
            }
            if self.len() == before || order.len() < 2 {
                return self;
            }
        }
    }

    /// Joins rows that are the same but for one dimension.
    fn join_along(&mut self, dimension: usize) {
        let dimensions = self.dimensions;
        let ids = core::mem::take(&mut self.ids);
        let mut rows: Vec<&[u32]> = ids.chunks_exact(dimensions).collect();
        rows.sort_unstable_by(|a, b| {
            let before = a[..dimension].cmp(&b[..dimension]);
            before.then_with(|| a[dimension + 1..].cmp(&b[dimension + 1..]))
        });
        let is_same = |a: &&[u32], b: &&[u32]| {
            a[..dimension] == b[..dimension] && a[dimension + 1..] == b[dimension + 1..]
        };
        let mut joined = Vec::with_capacity(ids.len());
        for group in rows.chunk_by(is_same) {
            let start = joined.len();
            joined.extend_from_slice(group[0]);
            if group.len() > 1 {
                joined[start + dimension] = self.union(group.iter().map(|row| row[dimension]));
            }
        }
        self.ids = joined;
    }

    /// The number of the set that has the numbers of all these.
    fn union(&mut self, ids: impl Iterator<Item = u32>) -> u32 {
        let mut numbers: Vec<Index> = ids.flat_map(|id| self.sets[id as usize].clone()).collect();
        sort(&mut numbers);
        if let Some(&id) = self.known.get(&numbers) {
            return id;
        }
        let id = self.sets.len() as u32;
        self.sets.push(numbers.clone());
        self.known.insert(numbers, id);
        id
    }

    /// In the order of the first name of each row.
    fn sort_rows(&mut self) {
        let ids = core::mem::take(&mut self.ids);
        let mut rows: Vec<&[u32]> = ids.chunks_exact(self.dimensions).collect();
        let first = |id: &u32| self.sets[*id as usize].first().copied();
        rows.sort_by(|a, b| a.iter().map(first).cmp(b.iter().map(first)));
        self.ids = rows.concat();
    }
}
