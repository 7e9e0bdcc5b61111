//! When links in shared memory give their pages back to the system.

use sapwood_transport::Link;

/// A link through which few bytes have gone for this long gives its pages back, before twice this
/// time is over; in nanoseconds.
const RELEASE_AFTER: u64 = 5_000_000_000;

/// The next time that the links of one process are asked for their pages.
#[derive(Debug, Default)]
pub(crate) struct PageRelease {
    at: Option<u64>,
}

impl PageRelease {
    /// Bytes have gone through a link.
    #[inline]
    pub(crate) fn note(&mut self, link: &Link, now: u64) {
        if self.at.is_none() && link.is_shared() {
            self.at = Some(now.saturating_add(RELEASE_AFTER));
        }
    }

    /// Has the links give back what they have not used, if the time has come.
    pub(crate) fn carry_out<'a>(&mut self, links: impl Iterator<Item = &'a mut Link>, now: u64) {
        if self.at.take_if(|at| *at <= now).is_none() {
            return;
        }
        let shared = links.filter(|link| link.is_shared());
        // Each is asked, also behind one that has pages left.
        let left = shared.map(|link| u32::from(link.release_buffers())).sum::<u32>();
        if left > 0 {
            self.at = Some(now.saturating_add(RELEASE_AFTER));
        }
    }

    /// When they are asked.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.at
    }
}
