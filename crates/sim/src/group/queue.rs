//! What waits on each link of the model to leave its sender: bytes of segments and parts, which the
//! member may not pile up.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_group::limits::DRAINED_PART;

/// The sender and the receiver.
pub(super) type Pair = (usize, usize);

/// A message that leaves its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) pair: Pair,
    bytes: usize,
    /// Of the link when the message was given to it.
    age: u64,
}

/// More was given to a link than it may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overfull {
    /// The sender.
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// How many bytes waited before the one that was too many.
    pub queued_bytes: usize,
}

/// The queues of all links.
#[derive(Debug, Default)]
pub(super) struct Queues {
    links: BTreeMap<Pair, LinkQueue>,
    /// What cannot leave, since the receiver takes nothing.
    stalled: Vec<Departure>,
    pub(super) overfull: Vec<Overfull>,
    /// The most bytes that have waited on one link.
    pub(super) fullest: usize,
}

#[derive(Debug, Default)]
struct LinkQueue {
    queued_bytes: usize,
    /// What the member takes to wait: what it was told, and what it has sent since.
    told_bytes: usize,
    age: u64,
}

impl Queues {
    /// A message is given to a link that may hold `bound` bytes.
    pub(super) fn add(&mut self, pair: Pair, bytes: usize, bound: usize) -> Departure {
        let queue = self.links.entry(pair).or_default();
        if bytes > 0 && queue.queued_bytes >= bound {
            let queued_bytes = queue.queued_bytes;
            self.overfull.push(Overfull { from: pair.0, to: pair.1, queued_bytes });
        }
        queue.queued_bytes += bytes;
        queue.told_bytes += bytes;
        self.fullest = self.fullest.max(queue.queued_bytes);
        Departure { pair, bytes, age: queue.age }
    }

    /// A message has left. How many bytes wait still, if the member is to be told.
    pub(super) fn leave(&mut self, departure: Departure, bound: usize) -> Option<usize> {
        let queue = self.links.get_mut(&departure.pair)?;
        if queue.age != departure.age {
            return None;
        }
        queue.queued_bytes -= departure.bytes;
        if queue.told_bytes - queue.queued_bytes < bound.div_ceil(DRAINED_PART) {
            return None;
        }
        queue.told_bytes = queue.queued_bytes;
        Some(queue.queued_bytes)
    }

    pub(super) fn stall(&mut self, departure: Departure) {
        self.stalled.push(departure);
    }

    pub(super) fn take_stalled(&mut self) -> Vec<Departure> {
        core::mem::take(&mut self.stalled)
    }

    /// What has waited on a link is lost.
    pub(super) fn lose(&mut self, pair: Pair) {
        if let Some(queue) = self.links.get_mut(&pair) {
            *queue = LinkQueue { age: queue.age + 1, ..LinkQueue::default() };
        }
    }

    /// The process on a host has ended: what it wanted to send is lost, and what others wanted to
    /// send to it.
    pub(super) fn forget(&mut self, host: usize) {
        let pairs: Vec<Pair> = self.links.keys().copied().collect();
        pairs
            .into_iter()
            .filter(|pair| pair.0 == host || pair.1 == host)
            .for_each(|p| self.lose(p));
    }
}
