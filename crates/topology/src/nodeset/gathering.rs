//! Nodesets under construction: names come in any order and are sorted once at the end.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::index::{DIGITS_MAX, Index};
use super::{NODESET_NAMES_MAX, NodeSet, PLACE};

/// The names so far.
#[derive(Default)]
pub(super) struct Gathering {
    patterns: BTreeMap<String, Vec<Index>>,
    count: usize,
}

impl Gathering {
    pub(super) fn of(set: NodeSet) -> Self {
        let count = set.len();
        Self { patterns: set.patterns, count }
    }

    /// Adds the names of a pattern, one for each tuple of numbers. Says `false` where they were too
    /// many.
    pub(super) fn add(&mut self, pattern: &str, numbers: &[Index]) -> bool {
        let dimensions = dimensions(pattern);
        self.count += numbers.len().checked_div(dimensions).unwrap_or(1);
        match self.patterns.get_mut(pattern) {
            Some(there) => there.extend_from_slice(numbers),
            None => {
                self.patterns.insert(pattern.to_owned(), numbers.to_vec());
            }
        }
        // Names may be duplicates; removing them makes room.
        self.count <= 2 * NODESET_NAMES_MAX || {
            self.sort();
            self.count <= NODESET_NAMES_MAX
        }
    }

    /// Adds all names of a set.
    pub(super) fn add_set(&mut self, set: &NodeSet) -> bool {
        set.patterns.iter().all(|(pattern, numbers)| self.add(pattern, numbers))
    }

    /// The set; `None` if it is too large.
    pub(super) fn finish(mut self) -> Option<NodeSet> {
        self.sort();
        (self.count <= NODESET_NAMES_MAX).then_some(NodeSet { patterns: self.patterns })
    }

    fn sort(&mut self) {
        self.count = 0;
        for (pattern, numbers) in &mut self.patterns {
            let dimensions = dimensions(pattern);
            sort_tuples(numbers, dimensions);
            self.count += numbers.len().checked_div(dimensions).unwrap_or(1);
        }
    }
}

/// How many numbers the names of a pattern have.
pub(super) fn dimensions(pattern: &str) -> usize {
    pattern.bytes().filter(|&byte| byte == PLACE as u8).count()
}

/// Takes the numbers out of a name.
pub(super) fn take_apart(name: &str, pattern: &mut String, numbers: &mut Vec<Index>) {
    let mut rest = name;
    while let Some(start) = rest.bytes().position(|byte| byte.is_ascii_digit()) {
        let (text, from) = rest.split_at(start);
        let end = from.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(from.len());
        let (digits, behind) = from.split_at(end);
        pattern.push_str(text);
        match Index::parse(digits) {
            Some(number) if digits.len() <= DIGITS_MAX => {
                pattern.push(PLACE);
                numbers.push(number);
            }
            _ => pattern.push_str(digits),
        }
        rest = behind;
    }
    pattern.push_str(rest);
}

/// Sorts tuples of `dimensions` numbers and removes duplicates.
fn sort_tuples(numbers: &mut Vec<Index>, dimensions: usize) {
    if dimensions <= 1 {
        super::index::sort(numbers);
        return;
    }
    if numbers.chunks_exact(dimensions).is_sorted_by(|a, b| a < b) {
        return;
    }
    let mut tuples: Vec<&[Index]> = numbers.chunks_exact(dimensions).collect();
    tuples.sort_unstable();
    tuples.dedup();
    *numbers = tuples.concat();
}

/// Which names of two sets stay: those of the first only, of both, of the second only.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub(super) first: bool,
    pub(super) both: bool,
    pub(super) second: bool,
}

/// Merges sorted tuples.
pub(super) fn merge(a: &[Index], b: &[Index], dimensions: usize, kept: Kept) -> Vec<Index> {
    let mut merged = Vec::new();
    let mut keep = |tuple: &[Index], is_kept: bool| {
        if is_kept {
            merged.extend_from_slice(tuple);
        }
    };
    let (mut left, mut right) = (a.chunks_exact(dimensions), b.chunks_exact(dimensions));
    let (mut x, mut y) = (left.next(), right.next());
    loop {
        match (x, y) {
            (Some(one), Some(other)) => match one.cmp(other) {
                Ordering::Less => {
                    keep(one, kept.first);
                    x = left.next();
                }
                Ordering::Equal => {
                    keep(one, kept.both);
                    (x, y) = (left.next(), right.next());
                }
                Ordering::Greater => {
                    keep(other, kept.second);
                    y = right.next();
                }
            },
            (Some(one), None) => {
                keep(one, kept.first);
                x = left.next();
            }
            (None, Some(other)) => {
                keep(other, kept.second);
                y = right.next();
            }
            (None, None) => return merged,
        }
    }
}
