//! How long open waves wait.

use crate::interface::Instant;
use crate::waves::open_wave::OpenWave;
use crate::waves::table::WaveTable;
use core::time::Duration;
use sapwood_wire::WaitRule;

impl WaveTable {
    /// The wave at a position has just been opened, and may wait for this time, if not for ever.
    pub(crate) fn begin(&mut self, index: usize, now: Instant, patience: Option<Duration>) {
        self.open[index].begun = now;
        if let Some(patience) = patience {
            self.open[index].deadline = Some(now + patience);
            self.bound_deadline(index);
        }
    }

    /// Waves go on in order, so a wave must not hold back those behind it: its deadline is at most
    /// the earliest of theirs.
    fn bound_deadline(&mut self, index: usize) {
        let earliest = self.open.range(index..).filter_map(|wave| wave.deadline).min();
        self.open[index].deadline = earliest;
    }

    /// Whether the first wave may go on now.
    #[inline]
    pub(crate) fn is_ready(&self, now: Instant) -> bool {
        let is_complete = |wave: &OpenWave| {
            wave.waiting == 0 || wave.deadline.is_some_and(|deadline| deadline <= now)
        };
        !self.singles.is_empty() || self.open.front().is_some_and(|wave| is_complete(wave))
    }

    /// When the first wave's deadline passes.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.open.front().and_then(|wave| wave.deadline)
    }
}

/// A node near the back-ends gives up earlier than its parent, so that a partial result is there in
/// time at every level: each waits its share of the whole, by its height.
pub(crate) fn share(wait: WaitRule, height: u32, whole_height: u32) -> Option<Duration> {
    let WaitRule::Timeout { milliseconds } = wait else { return None };
    let whole = Duration::from_millis(u64::from(milliseconds));
    let share = whole.saturating_mul(height.max(1)) / whole_height.max(1);
    Some(share.min(whole))
}
