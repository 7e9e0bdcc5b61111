//! What a node counts of its own work, for telemetry.

use crate::interface::Instant;

/// What a node has counted since it began, and what of that it has told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) waves: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Orphans that have been taken in.
    pub(crate) adopted: u32,
    /// Children that are gone.
    pub(crate) gone: u32,
    /// When this was told last, or when the node had its first link.
    pub(crate) told_at: Option<Instant>,
    reported: [u64; 3],
}

impl Counted {
    /// Counting begins with the first link.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.told_at.get_or_insert(now);
    }

    /// A back-end has sent a packet.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.waves += 1;
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    /// What has come since the last call: waves, packets, bytes, nanoseconds.
    pub(crate) fn report(&mut self, now: Instant) -> [u64; 4] {
        let all = [self.waves, self.packets, self.bytes];
        let [waves, packets, bytes] = core::mem::replace(&mut self.reported, all);
        let interval = nanoseconds(now, self.told_at.replace(now).unwrap_or(now));
        [all[0] - waves, all[1] - packets, all[2] - bytes, interval]
    }
}

pub(crate) fn nanoseconds(now: Instant, earlier: Instant) -> u64 {
    now.0.saturating_sub(earlier.0)
}
