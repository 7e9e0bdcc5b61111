//! Which rings have lost events: a ring that is written faster than it is read has its oldest
//! records overwritten.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use sapwood_packet::Rank;

/// A ring of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RankRing {
    /// The rank.
    pub rank: Rank,
    /// The number of the thread that writes it, in the rank.
    pub thread: u32,
}

/// How many events were overwritten before they were read, by ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DroppedRings {
    events: BTreeMap<RankRing, u64>,
}

impl DroppedRings {
    /// Adds events of a ring.
    pub fn add(&mut self, ring: RankRing, events: u64) {
        if events > 0 {
            let sum = self.events.entry(ring).or_default();
            *sum = sum.saturating_add(events);
        }
    }

    /// Adds what was lost elsewhere.
    pub fn merge(&mut self, other: Self) {
        other.events.into_iter().for_each(|(ring, events)| self.add(ring, events));
    }

    /// Keeps at most as many rings. What the others have lost is in the sum over all of them, which
    /// is counted beside.
    pub(crate) fn bound(&mut self, most: usize) {
        while self.events.len() > most {
            self.events.pop_last();
        }
    }

    /// Takes a row of a packet; what was there of the same ring before.
    pub(crate) fn insert(&mut self, ring: RankRing, events: u64) -> Option<u64> {
        self.events.insert(ring, events)
    }

    /// How many each ring has lost.
    pub fn by_ring(&self) -> impl Iterator<Item = (RankRing, u64)> + '_ {
        self.events.iter().map(|(ring, events)| (*ring, *events))
    }

    /// The rings that have lost most, at most as many.
    #[must_use]
    pub fn most(&self, count: usize) -> Vec<(RankRing, u64)> {
        let mut rings: Vec<_> = self.by_ring().collect();
        rings.sort_by_key(|&(ring, events)| (Reverse(events), ring));
        rings.truncate(count);
        rings
    }

    /// How many rings have lost events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether none has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rings_that_have_lost_most_come_first() {
        let ring = |rank, thread| RankRing { rank, thread };
        let mut dropped = DroppedRings::default();
        dropped.add(ring(0, 0), 0);
        assert!(dropped.is_empty(), "it has lost nothing");
        dropped.add(ring(1, 0), 5);
        dropped.add(ring(2, 1), 4);
        let mut other = DroppedRings::default();
        other.add(ring(2, 1), 4);
        other.add(ring(0, 3), 5);
        dropped.merge(other);
        assert_eq!(dropped.most(2), [(ring(2, 1), 8), (ring(0, 3), 5)]);
        assert_eq!((dropped.len(), dropped.most(9).len()), (3, 3));
    }

    #[test]
    fn a_packet_has_no_more_rings_than_it_may() {
        let mut dropped = DroppedRings::default();
        (0..9).for_each(|rank| dropped.add(RankRing { rank, thread: 0 }, 1));
        dropped.bound(9);
        assert_eq!(dropped.len(), 9);
        dropped.bound(8);
        assert_eq!(dropped.len(), 8);
    }
}
