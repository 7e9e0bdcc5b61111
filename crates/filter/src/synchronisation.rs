//! User-defined synchronisation rules: when an incomplete wave is forwarded.
//!
//! A wave goes on as soon as every child has given its part or is known to be lost, whatever a rule
//! says, so that no rule can hold a network up. Before that a rule is asked with each packet that
//! comes, and again when the time is up that it has asked for.

use core::time::Duration;

use sapwood_packet::{Rank, RankSetRef, StreamId, Wave};

use crate::FilterError;

/// The parts of one wave that have arrived at one node.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals<'a> {
    /// The stream.
    pub stream: StreamId,
    /// The wave's number.
    pub wave: Wave,
    /// The node.
    pub rank: Rank,
    /// Whether that node is the front-end.
    pub is_root: bool,
    /// How many children have given their part; at least one has given something.
    pub arrived: u32,
    /// How many children the wave waits for in all, those that have arrived included.
    pub expected: u32,
    /// The back-ends whose data is there.
    pub contributors: RankSetRef<'a>,
    /// How many members of the stream are below the node, or were.
    pub back_ends: u32,
    /// The time since the first packet of the wave came.
    pub elapsed: Duration,
}

/// What becomes of the wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is forwarded as it is; later parts are stragglers.
    Go,
    /// It waits for the next packet.
    Wait,
    /// It waits for the next packet, but the rule is asked again when this time has passed.
    WaitFor(Duration),
}

/// A synchronisation rule. One instance serves one stream at one node.
pub trait Synchronisation: Send {
    /// Decides about a wave that is not complete.
    ///
    /// # Errors
    /// A [`FilterError`] fails the wave: it goes on without a value, and with the reason.
    fn decide(&mut self, arrivals: &Arrivals<'_>) -> Result<Verdict, FilterError>;

    /// Whether it must not be asked in the loop of its process, as
    /// [`Filter::is_offloaded`](crate::Filter::is_offloaded) is. It is asked on a thread of its own
    /// then, about what has come by the time that the thread begins; what has come since is asked
    /// about when it has answered. Asked once, when it has been made.
    fn is_offloaded(&self) -> bool {
        false
    }
}
