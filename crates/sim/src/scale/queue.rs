//! Messages under way, in the order of arrival, and their memory.
//!
//! Nothing arrives earlier than what arrived last, so a radix heap serves (R. K. Ahuja,
//! K. Mehlhorn, J. B. Orlin, R. E. Tarjan, "Faster Algorithms for the Shortest Path Problem",
//! J. ACM 37, 1990, section 2, with one bucket per bit): events lie in buckets by the highest bit
//! in which their time differs from the present, and each moves to lower buckets a few times, in
//! long sequential sweeps. A million events under way cost much less so than in a binary heap.

use alloc::vec::Vec;

use sapwood_packet::Slab;

use super::costs::Picoseconds;

/// A message that has grown beyond this many bytes is not kept for the next one.
const SPARE_BYTES_MAX: usize = 4096;

/// One for the present, one for each bit of a time.
const BUCKETS: usize = Picoseconds::BITS as usize + 1;

/// Which message, while it is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageId(u32);

/// What arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The bytes of one write, on a link of the receiver's.
    Message { link: u32, message: MessageId },
    /// A process that was started runs its own code, and connects.
    Started,
    /// The first half of a proof of the key, from a child.
    Proof { link: u32 },
    /// The second half, from the parent.
    Proved,
    /// The time that a node asked to be woken at.
    Wake,
}

/// Something that arrives at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) at: Picoseconds,
    pub(super) to: u32,
    pub(super) arrival: Arrival,
}

/// All that is under way. What arrives at one time is taken in the order in which it was sent.
#[derive(Debug)]
pub(super) struct Queue {
    buckets: [Vec<Event>; BUCKETS],
    /// How many events of the first bucket have been taken.
    taken: usize,
    /// The time of the last event that was taken.
    present: Picoseconds,
    messages: Vec<Slab>,
    spare: Vec<MessageId>,
    /// How many events there have been.
    pub(super) count: u64,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            buckets: [const { Vec::new() }; BUCKETS],
            taken: 0,
            present: 0,
            messages: Vec::new(),
            spare: Vec::new(),
            count: 0,
        }
    }
}

impl Queue {
    /// Something will arrive, not before the present.
    pub(super) fn push(&mut self, at: Picoseconds, to: u32, arrival: Arrival) {
        self.count += 1;
        let at = at.max(self.present);
        self.buckets[self.bucket(at)].push(Event { at, to, arrival });
    }

    /// The next arrival.
    pub(super) fn pop(&mut self) -> Option<Event> {
        if self.taken == self.buckets[0].len() {
            self.buckets[0].clear();
            self.taken = 0;
            let first = self.buckets.iter().position(|bucket| !bucket.is_empty())?;
            let mut events = core::mem::take(&mut self.buckets[first]);
            self.present = events.iter().map(|event| event.at).min()?;
            // Events of one time stay in their order: they move together, first to last.
            for event in events.drain(..) {
                self.buckets[self.bucket(event.at)].push(event);
            }
            // Its memory serves the next events of that distance.
            self.buckets[first] = events;
        }
        let event = self.buckets[0][self.taken];
        self.taken += 1;
        Some(event)
    }

    /// Where events of a time lie, as seen from the present.
    fn bucket(&self, at: Picoseconds) -> usize {
        (Picoseconds::BITS - (at ^ self.present).leading_zeros()) as usize
    }

    /// Empty memory for a message.
    pub(super) fn message(&mut self) -> (MessageId, &mut Slab) {
        let id = self.spare.pop().unwrap_or_else(|| {
            self.messages.push(Slab::default());
            // As many as there are links at most, times the waves of a pipeline.
            MessageId(u32::try_from(self.messages.len() - 1).unwrap_or(u32::MAX))
        });
        (id, &mut self.messages[id.0 as usize])
    }

    /// Takes a message out, to lend it to a node.
    pub(super) fn take(&mut self, id: MessageId) -> Slab {
        core::mem::take(&mut self.messages[id.0 as usize])
    }

    /// Gives the memory of a message back.
    pub(super) fn give(&mut self, id: MessageId, mut slab: Slab) {
        if slab.capacity() <= SPARE_BYTES_MAX {
            slab.clear();
            self.messages[id.0 as usize] = slab;
        }
        self.spare.push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance;

    #[test]
    fn what_arrives_first_comes_first_and_at_one_time_in_order() {
        let mut chance = chance::of_seed(7);
        let mut queue = Queue::default();
        let (mut pushed, mut popped) = (Vec::new(), Vec::new());
        let mut now = 0;
        for number in 0..4000_u32 {
            // Few different times, so that many events share one.
            let at = now + chance.below(40) * 1000;
            queue.push(at, number, Arrival::Wake);
            pushed.push((at, number));
            if chance.below(2) == 0 {
                let event = queue.pop().unwrap();
                assert!(event.at >= now);
                now = event.at;
                popped.push((event.at, event.to));
            }
        }
        popped.extend(core::iter::from_fn(|| queue.pop()).map(|event| (event.at, event.to)));
        pushed.sort_unstable();
        assert_eq!(pushed, popped);
        assert_eq!((queue.count, queue.pop()), (4000, None));
    }
}
