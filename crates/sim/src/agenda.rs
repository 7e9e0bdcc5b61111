//! The event queue, in the order of virtual time.

use alloc::collections::BinaryHeap;
use core::cmp::{Ordering, Reverse};

/// Virtual nanoseconds since the run began.
pub(crate) use sapwood_memory_network::Time;

/// Nanoseconds in a microsecond.
pub(crate) const MICROSECOND: Time = 1_000;
/// Nanoseconds in a millisecond.
pub(crate) const MILLISECOND: Time = 1_000_000;
/// Nanoseconds in a second.
pub(crate) const SECOND: Time = 1_000_000_000;

/// One thing that happens. Processes and wires are named by their numbers in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// A process has its turn.
    Turn(usize),
    /// Bytes, or the end, come out of a pipe: of this wire, written by the end of this number.
    Arrival { wire: usize, from: usize },
    /// A process that is to be started begins: this child of that process.
    Start { parent: usize, rank: u32 },
    /// A process stops waiting for the children that it has started.
    StartLimit(usize),
    /// A process asks another one for a connection.
    ConnectionRequest { dialer: usize, attempt: u64, target: usize },
    /// The answer to it is there: a wire, or none.
    Answer { dialer: usize, attempt: u64, wire: Option<usize>, is_refused: bool },
    /// The time limit of a connection attempt.
    DialLimit { dialer: usize, attempt: u64 },
    /// A fault of the run's plan strikes.
    Strike(usize),
    /// A fault ends.
    Mend(usize),
    /// A back-end attaches by itself.
    Join(usize),
    /// All processes run late from now on.
    Lag(usize),
}

#[derive(Debug)]
struct Entry {
    at: Time,
    number: u64,
    what: Happening,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// The event queue.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Reverse<Entry>>,
    next: u64,
}

impl Agenda {
    /// Adds an event; events of one time happen in the order in which they were added.
    pub(crate) fn put(&mut self, at: Time, what: Happening) {
        self.next += 1;
        self.heap.push(Reverse(Entry { at, number: self.next, what }));
    }

    /// When the next thing happens.
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes the next thing off the list.
    pub(crate) fn take(&mut self) -> Option<(Time, Happening)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_happen_in_order_of_time_and_then_of_noting() {
        let mut agenda = Agenda::default();
        agenda.put(5, Happening::Turn(1));
        agenda.put(3, Happening::Turn(2));
        agenda.put(5, Happening::Turn(3));
        assert_eq!(agenda.next_time(), Some(3));
        let order: std::vec::Vec<_> = core::iter::from_fn(|| agenda.take()).collect();
        let turns = [(3, Happening::Turn(2)), (5, Happening::Turn(1)), (5, Happening::Turn(3))];
        assert_eq!(order, turns);
    }
}
