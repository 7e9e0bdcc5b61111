//! The node's own notion of time: nanoseconds of a clock that the caller reads.

use core::ops::Add;
use core::time::Duration;

use sapwood_packet::nanoseconds;

/// A point on the caller's monotonic clock, in nanoseconds from any origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(pub u64);

impl Instant {
    /// Time from an earlier point to this one; zero when it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(nanoseconds(wait)))
    }
}
