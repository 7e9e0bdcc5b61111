//! What upward filters answer downward: however much it is, it goes bit by bit.
//!
//! A filter may make any number of packets of one wave. Those that go on are counted by the credit
//! of the parent. Those that go back wait here, in the filter's own memory, while some child has a
//! window of them before it, and give way to other streams after a number of them. The next wave of
//! the stream waits for them.

use sapwood_filter::Emitter;
use sapwood_packet::Header;

/// Most replies that go down in one input before others have their turn.
pub(crate) const REPLIES_PER_INPUT: usize = 1024;

/// What a filter made of a wave, as far as it goes down.
#[derive(Debug)]
pub(crate) struct Replies {
    /// As every one of them has it, but for the tag.
    pub(crate) header: Header,
    pub(crate) made: Emitter,
    /// How many of what was made have been dealt with.
    pub(crate) done: usize,
}
