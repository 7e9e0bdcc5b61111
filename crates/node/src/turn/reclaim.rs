//! Memory that is given back: what a burst has taken beyond what is needed afterwards.
//!
//! Queues and spare memory grow with the need, and stay as they are while packets pass. Every now
//! and then all of them are looked at: a queue that is much longer than what it holds is cut, and
//! memory that lay spare all the time since the last look goes. Nothing is counted for that on a
//! packet's way.

use core::time::Duration;

use sapwood_link::shorten;

use crate::turn::Turn;

/// How far looks are apart, at least. A process to which nothing happens, and which no neighbour
/// asks whether it is there, does not look.
const INTERVAL: Duration = Duration::from_millis(500);

impl Turn {
    /// Whether the last time was long enough ago to give memory back.
    #[inline]
    pub(crate) fn reclaims(&self) -> bool {
        self.now >= self.reclaim_due
    }

    /// Gives back what the turn itself holds and does not need.
    pub(crate) fn reclaim(&mut self) {
        self.reclaim_due = self.now + INTERVAL;
        self.pool.reclaim();
        shorten(&mut self.deliveries);
        self.links.open_links().for_each(|link| link.outbox.reclaim());
    }
}
