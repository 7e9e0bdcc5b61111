//! How many calls of an event moved how many bytes, in size classes of powers of two.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::{IndexedValues, Values};

use crate::{EventKey, ProfileError};

/// The number of size classes.
pub const SIZE_CLASSES: usize = 32;

/// Calls by the bytes that each moved. Class 0 is 0 bytes, 1 is 1 byte, 2 is 2, 3 is 3 to 4, and so
/// on by powers of two; the last one has all from 2^29 + 1 bytes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeHistogram {
    calls: [u64; SIZE_CLASSES],
}

/// The histograms of the events that move bytes.
pub(crate) type Sizes = BTreeMap<EventKey, SizeHistogram>;

impl SizeHistogram {
    /// Of the calls of each class.
    #[must_use]
    pub const fn new(calls: [u64; SIZE_CLASSES]) -> Self {
        Self { calls }
    }

    /// The calls of each class.
    #[must_use]
    pub const fn calls(&self) -> &[u64; SIZE_CLASSES] {
        &self.calls
    }

    /// Calls that moved at least one byte.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.calls[1..].iter().fold(0, |sum, &calls| sum.saturating_add(calls))
    }

    /// The smallest and the largest number of bytes in a class; the last one has no largest.
    #[must_use]
    pub const fn range(class: usize) -> (u64, Option<u64>) {
        match class {
            0 | 1 => (class as u64, Some(class as u64)),
            class if class + 1 < SIZE_CLASSES => ((1 << (class - 2)) + 1, Some(1 << (class - 1))),
            _ => ((1 << (SIZE_CLASSES - 3)) + 1, None),
        }
    }

    /// Takes in the calls of others.
    pub fn merge(&mut self, other: &Self) {
        for (mine, other) in self.calls.iter_mut().zip(other.calls) {
            *mine = mine.saturating_add(other);
        }
    }

    /// Bit `i` is set if class `i` has calls.
    pub(crate) fn mask(&self) -> u32 {
        let bit = |(class, &calls): (usize, &u64)| u32::from(calls != 0) << class;
        self.calls.iter().enumerate().map(bit).sum()
    }
}

pub(crate) fn merge(sizes: &mut Sizes, others: Sizes) {
    for (key, other) in others {
        sizes.entry(key).or_default().merge(&other);
    }
}

/// Adds to a packet, for each of these keys in turn, the classes that have calls, and the calls.
pub(crate) fn push<'a>(
    values: Values,
    sizes: &Sizes,
    keys: impl Iterator<Item = &'a EventKey>,
) -> Values {
    let none = SizeHistogram::default();
    let all: Vec<&SizeHistogram> = keys.map(|key| sizes.get(key).unwrap_or(&none)).collect();
    let masks: Vec<u32> = all.iter().map(|sizes| sizes.mask()).collect();
    let calls = all.iter().flat_map(|sizes| sizes.calls).filter(|&calls| calls != 0);
    values.array(&masks).array(&calls.collect::<Vec<u64>>())
}

/// Reads them from the value of this index on.
pub(crate) fn read<'a>(
    values: &IndexedValues<'_>,
    first: usize,
    keys: impl Iterator<Item = &'a EventKey>,
) -> Result<Sizes, ProfileError> {
    let wrong = || ProfileError::Contradiction { what: "sizes of messages" };
    let masks: &[u32] = values.array(first)?;
    let mut calls = values.array::<u64>(first + 1)?.iter();
    let mut sizes = Sizes::new();
    let mut keys = keys.peekable();
    for &mask in masks {
        let key = keys.next().ok_or_else(wrong)?;
        let mut histogram = SizeHistogram::default();
        for class in (0..SIZE_CLASSES).filter(|class| mask >> class & 1 == 1) {
            histogram.calls[class] =
                *calls.next().filter(|&&calls| calls != 0).ok_or_else(wrong)?;
        }
        if mask != 0 {
            sizes.insert(key.clone(), histogram);
        }
    }
    if keys.next().is_some() || calls.next().is_some() {
        return Err(wrong());
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_join_without_a_gap() {
        assert_eq!(SizeHistogram::range(0), (0, Some(0)));
        assert_eq!(SizeHistogram::range(3), (3, Some(4)));
        for class in 1..SIZE_CLASSES {
            let (_, before) = SizeHistogram::range(class - 1);
            assert_eq!(SizeHistogram::range(class).0, before.expect("only the last") + 1);
        }
        assert_eq!(SizeHistogram::range(31), ((1 << 29) + 1, None));
    }

    #[test]
    fn messages_are_the_calls_that_moved_bytes() {
        let mut calls = [0; SIZE_CLASSES];
        (calls[0], calls[4], calls[31]) = (7, 2, 1);
        let mut sizes = SizeHistogram::new(calls);
        sizes.merge(&sizes.clone());
        assert_eq!(sizes.messages(), 6);
        assert_eq!(sizes.mask(), 1 | 1 << 4 | 1 << 31);
    }
}
