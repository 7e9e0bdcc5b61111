//! Filters that take long: other streams have their turn in between.
//!
//! A node is one thread, so that a filter keeps all streams waiting while it runs. It is let run
//! for a number of waves in one input, then others have their turn; and one that takes long is
//! moved out of the loop (`offload`). The clock is the runtime's, which says how long an input
//! took.

use core::time::Duration;

/// Most waves that go through filters in one input before others have their turn.
pub(crate) const WAVES_PER_INPUT: u32 = 32;
/// Filters that take this long for their waves of one input are slow. One that is slow twice in a
/// row is offloaded.
pub(crate) const SLOW: Duration = Duration::from_millis(1);
/// Filters that take this long are offloaded at once.
pub(crate) const VERY_SLOW: Duration = Duration::from_millis(5);

/// How a stream's upward filters have kept their time.
#[derive(Debug, Default)]
pub(crate) struct FilterTiming {
    /// Whether they took long the last time.
    pub(crate) is_slow: bool,
    /// How often they were moved out of the loop.
    pub(crate) moves: u32,
}
