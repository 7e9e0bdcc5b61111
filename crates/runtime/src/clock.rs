//! The clock that the node lives by.

use sapwood_node::{Instant, Node};
use sapwood_transport::{monotonic_clock, wall_clock};

/// The monotonic clock, as the node wants it. One read costs about 35 ns.
#[must_use]
pub fn clock() -> Instant {
    Instant(u64::try_from(monotonic_clock()).unwrap_or(0))
}

/// By how much the wall clock is ahead of [`clock`], in nanoseconds.
pub(crate) fn wall() -> i64 {
    wall_clock() - monotonic_clock()
}

/// Tells a node that notes events what time its application calls.
#[inline]
pub(crate) fn tell_time(node: &mut Node) -> &mut Node {
    if node.notes_hops() {
        node.set_time(clock());
    }
    node
}
