//! A ring that keeps the newest of the events that a process notes while readers ask for them.
//!
//! Owns [`Ring`]. Events are numbered from 0 in the order in which they are noted, and each reader
//! remembers the number at which it goes on. A process never waits for a reader: an event that has
//! not been read is overwritten, and the numbers tell its reader how many it has lost.
//!
//! ```
//! use sapwood_ring::Ring;
//!
//! let mut ring = Ring::new(2);
//! for event in ["a", "b", "c"] {
//!     ring.note(event);
//! }
//! assert_eq!((ring.oldest(), ring.end()), (1, 3));
//! assert!(ring.range(0, 3).eq(&["b", "c"]));
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

use alloc::vec::Vec;

/// The newest events, up to a number.
#[derive(Debug)]
pub struct Ring<T> {
    events: Vec<T>,
    room: usize,
    end: u64,
}

impl<T> Ring<T> {
    /// A ring for this number of events, at least one. Memory is taken as events come.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self { events: Vec::new(), room: room.max(1), end: 0 }
    }

    /// Notes an event, over the oldest if the ring is full.
    pub fn note(&mut self, event: T) {
        let at = self.place(self.end);
        match self.events.get_mut(at) {
            Some(place) => *place = event,
            None => self.events.push(event),
        }
        self.end += 1;
    }

    /// The number of the oldest event that is kept, or of the next one in an empty ring.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.end - self.events.len() as u64
    }

    /// The number that the next event gets: how many have been noted.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The events that are kept of those with numbers from `from` to before `until`, the oldest
    /// first.
    pub fn range(&self, from: u64, until: u64) -> impl Iterator<Item = &T> {
        let kept = from.max(self.oldest())..until.min(self.end);
        kept.filter_map(|number| self.events.get(self.place(number)))
    }

    fn place(&self, number: u64) -> usize {
        // Less than the room, which is a usize.
        (number % self.room as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_without_room_keeps_one_event() {
        let mut ring = Ring::new(0);
        assert_eq!((ring.oldest(), ring.end(), ring.range(0, 9).count()), (0, 0, 0));
        ring.note('a');
        ring.note('b');
        assert_eq!((ring.oldest(), ring.end()), (1, 2));
        assert!(ring.range(0, u64::MAX).eq(&['b']));
    }

    #[test]
    fn any_range_gives_what_is_kept_of_it_in_order() {
        for room in 1..=5_u64 {
            for noted in 0..=12_u64 {
                let mut ring = Ring::new(room as usize);
                (0..noted).for_each(|number| ring.note(number));
                let oldest = noted.saturating_sub(room);
                assert_eq!((ring.oldest(), ring.end()), (oldest, noted));
                for from in 0..14 {
                    for until in 0..14 {
                        let kept = from.max(oldest)..until.min(noted);
                        assert!(ring.range(from, until).copied().eq(kept));
                    }
                }
            }
        }
    }
}
