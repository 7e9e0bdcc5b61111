//! What a node tells the world.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet, StreamId};

use crate::{AttachPoint, Instant, LinkId};

/// One thing to do. Taken from [`crate::Node::poll_output`].
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes wait for this link: write what [`crate::Node::gather`] gives.
    Transmit(LinkId),
    /// Close this link once its bytes are written.
    Hangup(LinkId),
    /// The parent has said who this process is and which subtree it is to start.
    Planned {
        /// Its rank.
        rank: Rank,
        /// The subtree, as the topology encodes it; empty for a back-end.
        plan: Vec<u8>,
    },
    /// Something that the application may want to know.
    Event(Event),
    /// Call with [`crate::Input::Timeout`] at this time.
    Wake(Instant),
}

/// A change in the network.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The whole tree below has started as far as it will.
    Ready {
        /// The back-ends that are connected.
        back_ends: RankSet,
        /// Where further back-ends may attach.
        attach_points: Vec<AttachPoint>,
    },
    /// Back-ends have come after the start.
    Joined {
        /// Who.
        back_ends: RankSet,
    },
    /// A process could not be started.
    StartFailed {
        /// Its rank.
        rank: Rank,
        /// Its own words.
        text: String,
    },
    /// Back-ends are gone.
    Lost {
        /// The process whose link closed.
        rank: Rank,
        /// The back-ends behind it.
        back_ends: RankSet,
        /// What was seen.
        reason: String,
    },
    /// A downward filter failed here: its packet was dropped.
    FilterFailed {
        /// The stream.
        stream: StreamId,
        /// The filter's reason.
        reason: String,
    },
    /// A stream has opened (told to back-ends).
    StreamOpened {
        /// Its number.
        stream: StreamId,
    },
    /// A stream has closed (told to back-ends).
    StreamClosed {
        /// Its number.
        stream: StreamId,
    },
    /// The network has ended: on purpose, or because the parent is gone.
    Ended {
        /// Whether the front-end said so.
        on_purpose: bool,
        /// What was seen.
        reason: String,
    },
}
