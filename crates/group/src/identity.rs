//! The names of members and of their requests, and the unit of time.

use serde::{Deserialize, Serialize};

/// A time or a span, in nanoseconds of the caller's monotonic clock.
pub type Time = u64;

/// One millisecond.
pub const MILLISECOND: Time = 1_000_000;
/// One second.
pub const SECOND: Time = 1_000 * MILLISECOND;

/// A member of a group. The runtime draws it at random, so that it differs from that of any other
/// member, earlier ones included.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct MemberId(pub u64);

/// The number of a request, chosen by the application.
pub type Request = u64;

/// A broadcast or other transfer down a tree: its root, and the root's count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CastId {
    /// The member at which it began.
    pub root: MemberId,
    /// Counted by that member from 1.
    pub number: u64,
}

/// A reduction or other transfer up a tree: the virtual node at its root, and a number on which
/// all callers agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FoldId {
    /// The virtual node that gets the result.
    pub root: u32,
    /// The same at all callers, and used once for each root.
    pub number: u64,
}
