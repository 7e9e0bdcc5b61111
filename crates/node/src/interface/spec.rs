//! What an application asks of a new stream.

use alloc::vec::Vec;

use sapwood_filter::{FilterSpec, WaveRule};
use sapwood_packet::RankSet;
use sapwood_wire::Policy;

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the front-end to back-ends.
    Down,
    /// From a back-end to the front-end.
    Up,
}

/// What a new stream is to be.
#[derive(Clone, Debug, Default)]
pub struct StreamSpec {
    /// Its back-ends.
    pub members: RankSet,
    /// Filters on the way up, in order; none passes every packet as it is.
    pub up: Vec<FilterSpec>,
    /// Filters on the way down, in order.
    pub down: Vec<FilterSpec>,
    /// When waves are complete.
    pub wave: WaveRule,
    /// A synchronisation rule that decides, besides `wave`, when a wave goes on.
    pub rule: Option<FilterSpec>,
    /// What a full window does.
    pub policy: Policy,
    /// Whether the filters run in its back-ends, too, on what each of them sends and receives: in
    /// those whose processes can make filters.
    pub at_back_ends: bool,
    /// Bytes under way per link and direction; `None` for `WINDOW_BYTES` of the wire.
    pub window_bytes: Option<u32>,
}
