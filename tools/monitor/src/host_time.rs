//! The host's monotonic clock, by which ranks and leaf compare moments.

use sapwood_transport::monotonic_clock;

/// Now, in nanoseconds of `CLOCK_MONOTONIC`.
pub(crate) fn now_ns() -> u64 {
    u64::try_from(monotonic_clock()).unwrap_or(0)
}
