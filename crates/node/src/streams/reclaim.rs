//! Memory that is given back: what a burst has taken beyond what is needed afterwards.
//!
//! Queues and spare memory grow with the need, and stay as they are while packets pass. Every now
//! and then all of them are looked at: a queue that is much longer than what it holds is cut, and
//! memory that lay spare all the time since the last look goes. Nothing is counted for that on a
//! packet's way.

use core::time::Duration;

use sapwood_link::shorten;

use crate::node::Node;

/// How far looks are apart, at least. A process to which nothing happens, and which no neighbour
/// asks whether it is there, does not look.
const INTERVAL: Duration = Duration::from_millis(500);

impl Node {
    /// Gives memory back, if the last time was long enough ago.
    #[inline]
    pub(crate) fn reclaim_if_due(&mut self) {
        if self.turn.now >= self.reclaim_due {
            self.reclaim();
        }
    }

    #[cold]
    fn reclaim(&mut self) {
        self.reclaim_due = self.turn.now + INTERVAL;
        self.turn.pool.reclaim();
        shorten(&mut self.turn.deliveries);
        self.turn.links.open_links().for_each(|link| link.outbox.reclaim());
        for at in 0..self.streams.len() {
            self.streams.at(at).reclaim();
        }
        self.expire_absentees();
    }
}
