//! The one processor of a process: when it is free, and its past load.

use super::costs::{Exact, Picoseconds};

/// When a process may do what, and how much it has done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Processor {
    /// From when on it has nothing to do.
    pub(super) free: Picoseconds,
    /// From when on the next message may leave.
    next_send: Picoseconds,
    /// From when on the next message may be taken.
    next_receive: Picoseconds,
    /// For how long it has been kept in all.
    pub(super) busy: Picoseconds,
    /// Messages sent and received.
    pub(super) messages: u32,
}

impl Processor {
    /// Takes a message that has arrived at `at`; it is dealt with when the processor is free
    /// again.
    pub(super) fn receive(&mut self, costs: &Exact, at: Picoseconds, bytes: usize) {
        let start = at.max(self.free).max(self.next_receive);
        self.next_receive = start + costs.interval(bytes);
        self.work(start, costs.overhead);
        self.messages += 1;
    }

    /// Sends a message as soon as it can; gives when it arrives.
    pub(super) fn send(&mut self, costs: &Exact, bytes: usize) -> Picoseconds {
        let start = self.free.max(self.next_send);
        self.next_send = start + costs.interval(bytes);
        self.work(start, costs.overhead);
        self.messages += 1;
        start + costs.overhead + costs.bytes(bytes) + costs.latency
    }

    /// Works for some time, from `start` or from when it is free.
    pub(super) fn work(&mut self, start: Picoseconds, duration: Picoseconds) {
        self.free = self.free.max(start) + duration;
        self.busy += duration;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::{Costs, StartCosts};
    use sapwood_topology::LogGp;

    fn exact() -> Exact {
        let loggp = LogGp::new(10.0, 2.0, 3.0, 0.5).unwrap();
        Costs::new(loggp, StartCosts::default()).unwrap().exact()
    }

    #[test]
    fn sends_are_a_gap_apart_and_the_last_byte_arrives() {
        let (costs, mut processor) = (exact(), Processor::default());
        // Overhead 2, four more bytes 2, latency 10; then gap 3 and four bytes 2.
        assert_eq!(processor.send(&costs, 5), 14_000_000);
        assert_eq!(processor.send(&costs, 5), 19_000_000);
        assert_eq!((processor.free, processor.busy), (7_000_000, 4_000_000));
    }

    #[test]
    fn a_message_that_comes_while_the_processor_works_waits() {
        let (costs, mut processor) = (exact(), Processor::default());
        processor.work(0, 9_000_000);
        processor.receive(&costs, 4_000_000, 1);
        assert_eq!(processor.free, 11_000_000);
        // The gap of 3 counts from the start of the receive before, at 9.
        processor.receive(&costs, 4_000_000, 1);
        assert_eq!((processor.free, processor.messages), (14_000_000, 2));
    }
}
