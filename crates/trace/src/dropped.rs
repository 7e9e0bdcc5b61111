//! Which rings have lost events: a ring that is written faster than it is read has its oldest
//! records overwritten.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use sapwood_packet::Rank;

use crate::words::{halves, pair};

/// Words of a row of a packet: rank and thread; events.
pub(crate) const DROPPED_WORDS: usize = 2;

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
    pub fn merge(&mut self, other: &Self) {
        other.by_ring().for_each(|(ring, events)| self.add(ring, events));
    }

    /// Keeps at most as many rings, those that have lost most; of several that have lost as much,
    /// those of the lowest ranks. What the others have lost is in the sum over all of them, which
    /// is counted beside.
    pub(crate) fn bound(&mut self, most: usize) {
        if self.events.len() > most {
            self.events = self.most(most).into_iter().collect();
        }
    }

    /// A row of a packet.
    pub(crate) fn row(ring: RankRing, events: u64) -> [u64; DROPPED_WORDS] {
        [pair(ring.rank, ring.thread), events]
    }

    /// Reads the rows of a packet, of which there are at most as many. Each is of a ring of its own
    /// that has lost events; else there is nothing.
    pub(crate) fn decode(words: &[u64], most: usize) -> Option<Self> {
        let (rows, rest) = words.as_chunks::<DROPPED_WORDS>();
        if !rest.is_empty() || rows.len() > most {
            return None;
        }
        let mut read = Self::default();
        for &[ring, events] in rows {
            let (rank, thread) = halves(ring);
            let before = read.events.insert(RankRing { rank, thread }, events);
            if events == 0 || before.is_some() {
                return None;
            }
        }
        Some(read)
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
        dropped.merge(&other);
        assert_eq!(dropped.most(2), [(ring(2, 1), 8), (ring(0, 3), 5)]);
        assert_eq!((dropped.len(), dropped.most(9).len()), (3, 3));
    }

    #[test]
    fn rows_that_no_process_sends_are_refused() {
        let read = DroppedRings::decode(&[7, 1, 8, 2], 2).expect("two rings");
        let ring = |rank| RankRing { rank, thread: 0 };
        assert_eq!(read.most(9), [(ring(8), 2), (ring(7), 1)]);
        assert_eq!(DroppedRings::decode(&[7, 1, 8, 2], 1), None, "too many");
        assert_eq!(DroppedRings::decode(&[7, 1, 7, 1], 2), None, "one ring twice");
        assert_eq!(DroppedRings::decode(&[7, 0], 2), None, "it has lost nothing");
        assert_eq!(DroppedRings::decode(&[7], 2), None, "half of a row");
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
