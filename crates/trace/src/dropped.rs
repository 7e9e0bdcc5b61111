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

    /// Keeps at most as many rings, those that have lost most; of several that have lost as much,
    /// those of the lowest ranks. What the others have lost is in the sum over all of them, which
    /// is counted beside.
    pub(crate) fn bound(&mut self, most: usize) {
        if self.events.len() > most {
            self.events = self.most(most).into_iter().collect();
        }
    }

    /// Takes a row of a packet, which has lost events; what was there of the same ring before.
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
    fn a_packet_keeps_the_rings_that_have_lost_most() {
        let ring = |rank| RankRing { rank, thread: 0 };
        let mut dropped = DroppedRings::default();
        for (rank, events) in [(0, 1), (1, 3), (2, 2), (3, 2), (4, 9)] {
            dropped.add(ring(rank), events);
        }
        let whole = dropped.clone();
        dropped.bound(5);
        assert_eq!(dropped, whole, "all have room");
        dropped.bound(3);
        let kept: Vec<_> = dropped.by_ring().collect();
        assert_eq!(kept, [(ring(1), 3), (ring(2), 2), (ring(4), 9)], "2 and 3 have lost as much");
        dropped.bound(0);
        assert!(dropped.is_empty());
    }
}
