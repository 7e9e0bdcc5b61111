//! What a node tells the world.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet, StreamId, Wave};
use sapwood_wire::Cause;

use crate::interface::{AttachPoint, LinkId};

/// One thing to do. Taken from [`crate::Node::poll_output`].
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes wait for this link: write what [`crate::Node::gather`] gives.
    Transmit(LinkId),
    /// Close this link once its bytes are written.
    Hangup(LinkId),
    /// The parent is gone: connect to this address, prove the network's key, and say so with
    /// [`crate::Input::ParentUp`] or [`crate::Input::ConnectFailed`]. A further one takes the place
    /// of one that is still under way.
    Connect {
        /// The address of an ancestor.
        address: String,
    },
    /// The parent has said which rank this process has and which subtree it is to start.
    Planned {
        /// Its rank.
        rank: Rank,
        /// The subtree, as the topology encodes it; empty for a back-end.
        plan: Vec<u8>,
    },
    /// Something that the application may want to know.
    Event(Event),
}

/// Waves of a stream that a repair has held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AffectedWaves {
    /// The stream.
    pub stream: StreamId,
    /// The first such wave.
    pub first: Wave,
    /// The one behind the last.
    pub end: Wave,
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
        /// Their ranks.
        back_ends: RankSet,
    },
    /// There are further places where back-ends may attach (told to the front-end).
    Offered {
        /// The places.
        attach_points: Vec<AttachPoint>,
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
        /// The same for programs.
        cause: Cause,
    },
    /// A communication process is gone. Those below it look for a new parent; no back-end is lost
    /// yet.
    Broken {
        /// The process that is gone.
        rank: Rank,
        /// The back-ends below it.
        back_ends: RankSet,
        /// What was seen.
        reason: String,
        /// The same for programs.
        cause: Cause,
    },
    /// The place of a process that is gone has been taken.
    Repaired {
        /// The process that is gone.
        rank: Rank,
        /// The process that has taken its children.
        adopter: Rank,
        /// Those children.
        orphans: Vec<Rank>,
        /// The back-ends that came back with them.
        back_ends: RankSet,
        /// The waves that were held back until then, by stream.
        waves: Vec<AffectedWaves>,
    },
    /// This process has a new parent (told to the process itself).
    Reattached {
        /// The parent's rank.
        parent: Rank,
    },
    /// A downward filter failed here, and its packet was dropped; or the state of an upward filter
    /// cannot be handed over (told to the process itself and to the front-end).
    FilterFailed {
        /// The stream.
        stream: StreamId,
        /// The filter's reason.
        reason: String,
    },
    /// A process has seen something that costs no answer and that the user may want to know (told
    /// to the front-end).
    Notice {
        /// The process.
        rank: Rank,
        /// What, for display.
        text: String,
    },
    /// A visitor asks something; [`crate::Application::reply`] answers it (told to the front-end).
    Asked {
        /// The visitor's number.
        visitor: u64,
        /// What it asks.
        question: Vec<u8>,
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
