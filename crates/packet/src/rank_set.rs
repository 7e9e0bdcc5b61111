//! Sets of ranks, held as sorted inclusive ranges: the contributors of a packet, the members of a
//! communicator.
//!
//! A whole subtree is one range in an ordinary tree, so a set of a million back-ends is 8 bytes.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use smallvec::SmallVec;

use crate::{PacketError, Rank};

/// First and last rank of a range, both in it.
pub type RankRange = [Rank; 2];

/// A set of ranks: sorted ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankSet {
    ranges: SmallVec<[RankRange; 2]>,
}

impl RankSet {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The ranks from `first` to `last`, both in it; empty when `first > last`.
    #[must_use]
    pub fn range(first: Rank, last: Rank) -> Self {
        let mut set = Self::new();
        set.insert_range(first, last);
        set
    }

    /// Lends it.
    #[must_use]
    #[inline]
    pub fn as_ref(&self) -> RankSetRef<'_> {
        RankSetRef { ranges: &self.ranges }
    }

    /// Removes all ranks, keeping the memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Adds one rank.
    pub fn insert(&mut self, rank: Rank) {
        self.insert_range(rank, rank);
    }

    /// Adds the ranks from `first` to `last`. Appending in order costs O(1), else O(ranges).
    pub fn insert_range(&mut self, first: Rank, last: Rank) {
        if first > last {
            return;
        }
        match self.ranges.last_mut() {
            None => self.ranges.push([first, last]),
            Some(end) if end[1] < Rank::MAX && first > end[1] + 1 => {
                self.ranges.push([first, last])
            }
            Some(end) if first >= end[0] => end[1] = end[1].max(last),
            Some(_) => self.insert_inside(first, last),
        }
    }

    fn insert_inside(&mut self, first: Rank, last: Rank) {
        let touches_from = self.ranges.partition_point(|range| range[1] < first.saturating_sub(1));
        let touches_to = self.ranges.partition_point(|range| range[0] <= last.saturating_add(1));
        if touches_from >= touches_to {
            self.ranges.insert(touches_from, [first, last]);
            return;
        }
        let merged =
            [first.min(self.ranges[touches_from][0]), last.max(self.ranges[touches_to - 1][1])];
        self.ranges[touches_from] = merged;
        self.ranges.drain(touches_from + 1..touches_to);
    }

    /// Adds all ranks of another set.
    #[inline]
    pub fn union_with(&mut self, other: RankSetRef<'_>) {
        for range in other.ranges {
            self.insert_range(range[0], range[1]);
        }
    }

    /// Removes all ranks of another set.
    pub fn subtract(&mut self, other: RankSetRef<'_>) {
        if other.is_empty() || self.is_empty() {
            return;
        }
        let mut left = SmallVec::new();
        let mut cuts = other.ranges.iter().peekable();
        for &[mut first, last] in &self.ranges {
            let mut whole = true;
            while let Some(&&[cut_first, cut_last]) = cuts.peek() {
                if cut_last < first {
                    cuts.next();
                    continue;
                }
                if cut_first > last {
                    break;
                }
                if cut_first > first {
                    left.push([first, cut_first - 1]);
                }
                if cut_last >= last {
                    whole = false;
                    break;
                }
                first = cut_last + 1;
                cuts.next();
            }
            if whole {
                left.push([first, last]);
            }
        }
        self.ranges = left;
    }

    /// Keeps only the ranks that another set has too.
    pub fn intersect_with(&mut self, other: RankSetRef<'_>) {
        let mut outside = self.clone();
        outside.subtract(other);
        self.subtract(outside.as_ref());
    }

    /// What this set has and the other has not.
    #[must_use]
    pub fn difference(&self, other: RankSetRef<'_>) -> Self {
        let mut set = self.clone();
        set.subtract(other);
        set
    }

    /// How many ranks there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.as_ref().len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a rank is in it; O(log ranges).
    #[must_use]
    pub fn contains(&self, rank: Rank) -> bool {
        self.as_ref().contains(rank)
    }

    /// All ranks in order.
    pub fn iter(&self) -> impl Iterator<Item = Rank> + '_ {
        self.ranges.iter().flat_map(|range| range[0]..=range[1])
    }
}

impl FromIterator<Rank> for RankSet {
    fn from_iter<I: IntoIterator<Item = Rank>>(ranks: I) -> Self {
        let mut set = Self::new();
        for rank in ranks {
            set.insert(rank);
        }
        set
    }
}

impl fmt::Display for RankSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

impl FromStr for RankSet {
    type Err = PacketError;

    fn from_str(text: &str) -> Result<Self, PacketError> {
        let wrong = || PacketError::RankSet { text: text.to_string() };
        let mut set = Self::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first = first.trim().parse().map_err(|_| wrong())?;
            let last = last.trim().parse().map_err(|_| wrong())?;
            if first > last {
                return Err(wrong());
            }
            set.insert_range(first, last);
        }
        Ok(set)
    }
}

/// A rank set lent from a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankSetRef<'a> {
    ranges: &'a [RankRange],
}

impl<'a> RankSetRef<'a> {
    /// Checks ranges that came from outside.
    ///
    /// # Errors
    /// [`PacketError::RankOrder`] when a range is reversed, or two overlap, touch or are out of
    /// order.
    #[inline]
    pub fn from_ranges(ranges: &'a [RankRange]) -> Result<Self, PacketError> {
        let forward = ranges.iter().all(|range| range[0] <= range[1]);
        let apart =
            ranges.windows(2).all(|pair| pair[0][1] < pair[1][0] && pair[1][0] - pair[0][1] > 1);
        if forward && apart { Ok(Self { ranges }) } else { Err(PacketError::RankOrder) }
    }

    /// The ranges in order.
    #[must_use]
    #[inline]
    pub fn ranges(self) -> &'a [RankRange] {
        self.ranges
    }

    /// How many ranks there are.
    #[must_use]
    #[inline]
    pub fn len(self) -> u64 {
        self.ranges.iter().map(|range| u64::from(range[1] - range[0]) + 1).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.ranges.is_empty()
    }

    /// The smallest rank.
    #[must_use]
    pub fn first(self) -> Option<Rank> {
        self.ranges.first().map(|range| range[0])
    }

    /// The largest rank.
    #[must_use]
    pub fn last(self) -> Option<Rank> {
        self.ranges.last().map(|range| range[1])
    }

    /// Whether a rank is in it; O(log ranges).
    #[must_use]
    pub fn contains(self, rank: Rank) -> bool {
        let at = self.ranges.partition_point(|range| range[1] < rank);
        self.ranges.get(at).is_some_and(|range| range[0] <= rank)
    }

    /// Whether all of its ranks are among those; without memory, O(ranges of both).
    #[must_use]
    #[inline]
    pub fn is_within(self, all: RankSetRef<'_>) -> bool {
        let [first, ..] = self.ranges else { return true };
        // Both are in order, and no range of theirs touches the next: each of these lies in one.
        let mut at = all.ranges.partition_point(|range| range[1] < first[0]);
        self.ranges.iter().all(|range| {
            while all.ranges.get(at).is_some_and(|theirs| theirs[1] < range[0]) {
                at += 1;
            }
            all.ranges.get(at).is_some_and(|theirs| theirs[0] <= range[0] && range[1] <= theirs[1])
        })
    }

    /// Whether the two sets have a rank in common; O(ranges of both).
    #[must_use]
    pub fn intersects(self, other: RankSetRef<'_>) -> bool {
        let (mut mine, mut theirs) = (0, 0);
        while let (Some(a), Some(b)) = (self.ranges.get(mine), other.ranges.get(theirs)) {
            if a[1] < b[0] {
                mine += 1;
            } else if b[1] < a[0] {
                theirs += 1;
            } else {
                return true;
            }
        }
        false
    }

    /// All ranks in order.
    pub fn iter(self) -> impl Iterator<Item = Rank> + 'a {
        self.ranges.iter().flat_map(|range| range[0]..=range[1])
    }

    /// A copy that owns its ranges.
    #[must_use]
    #[inline]
    pub fn to_set(self) -> RankSet {
        RankSet { ranges: SmallVec::from_slice(self.ranges) }
    }
}

impl fmt::Display for RankSetRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for [first, last] in self.ranges {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(&first.to_string());
            if first != last {
                text.push('-');
                text.push_str(&last.to_string());
            }
        }
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn ranks_in_any_order_become_sorted_ranges() {
        let set: RankSet = [7, 1, 0, 2, 9, 8, 1].into_iter().collect();
        assert_eq!(set.to_string(), "0-2,7-9");
        assert_eq!(set.len(), 6);
        assert!(set.contains(8) && !set.contains(3));
    }

    #[test]
    fn a_set_is_read_from_its_own_text() {
        assert_eq!("0-2,7".parse::<RankSet>().map(|set| set.len()), Ok(4));
        assert!("3-1".parse::<RankSet>().is_err());
        assert!("x".parse::<RankSet>().is_err());
    }

    #[test]
    fn the_highest_rank_does_not_overflow() {
        let mut set = RankSet::range(Rank::MAX, Rank::MAX);
        set.insert_range(Rank::MAX - 1, Rank::MAX);
        set.insert(0);
        assert_eq!(set.len(), 3);
    }

    #[test]
    fn a_set_is_within_another_when_nothing_is_left_without_that() {
        let sets = ["", "0", "3-5", "0-9", "0-2,4-6", "1,3,5,7", "4294967295", "2-3,8-9"];
        let sets: Vec<RankSet> = sets.iter().map(|text| text.parse().unwrap()).collect();
        for one in &sets {
            for other in &sets {
                let left = one.difference(other.as_ref());
                let is_within = one.as_ref().is_within(other.as_ref());
                assert_eq!(is_within, left.is_empty(), "'{one}' within '{other}'");
            }
        }
    }

    #[test]
    fn forged_ranges_are_refused() {
        for ranges in [&[[3, 1]][..], &[[0, 1], [2, 3]], &[[0, 5], [3, 9]], &[[4, 5], [0, 1]]] {
            assert_eq!(RankSetRef::from_ranges(ranges), Err(PacketError::RankOrder));
        }
    }
}
