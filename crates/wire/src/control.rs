//! Control messages: how the tree keeps itself up. Encoded with postcard, in the order of this
//! file: a new variant or field goes to the end and raises the wire version. Texts of reasons are
//! cut where they are written, and lists are counted before they are read.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::{PacketError, Rank, RankRange, RankSet, RankSetRef, StreamId, Wave};
use serde::{Deserialize, Serialize};

use crate::bounds::{at_most, text};
use crate::limits::{ATTACH_POINTS_MAX, FILTERS_MAX, RANGES_MAX};

/// A rank set in a control message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranges(#[serde(deserialize_with = "at_most::<_, _, RANGES_MAX>")] Vec<RankRange>);

impl Ranges {
    /// The set, once its order has been checked.
    ///
    /// # Errors
    /// [`PacketError::RankOrder`] when the peer forged it.
    pub fn to_set(&self) -> Result<RankSet, PacketError> {
        Ok(RankSetRef::from_ranges(&self.0)?.to_set())
    }
}

impl From<&RankSet> for Ranges {
    fn from(set: &RankSet) -> Self {
        Self(set.as_ref().ranges().to_vec())
    }
}

/// Who a process says it is when it connects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Claim {
    /// A process that the parent has started under this rank.
    Started {
        /// Its rank.
        rank: Rank,
    },
    /// A back-end that comes by itself, under a rank that the network has kept for it.
    Attached {
        /// Its rank, or none to take any free one of this parent's.
        rank: Option<Rank>,
    },
}

/// When the packets of a wave go through the stream's filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitRule {
    /// When all have come or are lost.
    All,
    /// As all, but no later than these milliseconds.
    Timeout {
        /// The wait at the front-end; nodes nearer to the back-ends wait less.
        milliseconds: u32,
    },
    /// At once.
    Immediate,
}

/// What happens when a stream's window is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    /// The sender waits.
    #[default]
    Block,
    /// The oldest waiting packet is dropped and counted.
    DropOldest,
}

/// A filter that a stream asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterRequest {
    /// Its name.
    pub name: String,
    /// Format of its parameters, one byte per directive.
    pub format: Vec<u8>,
    /// Its parameters, encoded as the values of a packet.
    pub parameters: Vec<u8>,
}

/// Everything that a node must know of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRequest {
    /// The stream's number.
    pub stream: StreamId,
    /// Its back-ends.
    pub members: Ranges,
    /// Filters on the way up, in order.
    #[serde(deserialize_with = "at_most::<_, _, FILTERS_MAX>")]
    pub up: Vec<FilterRequest>,
    /// Filters on the way down, in order.
    #[serde(deserialize_with = "at_most::<_, _, FILTERS_MAX>")]
    pub down: Vec<FilterRequest>,
    /// When waves are complete.
    pub wait: WaitRule,
    /// What a full window does.
    pub policy: Policy,
    /// Bytes under way per link and direction.
    pub window_bytes: u32,
    /// Levels from the front-end to the farthest back-end.
    pub height: u32,
    /// The first wave that the receiver takes part in.
    pub first_wave: Wave,
}

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Control {
    /// First message up a new link: who is there.
    Hello {
        /// The peer's wire version.
        version: u16,
        /// Who it is.
        claim: Claim,
        /// Its process id on its host, for people.
        pid: u32,
        /// Where it takes connections, if it does.
        address: Option<String>,
    },
    /// Answer to a hello: you are this rank, and this is your part of the tree.
    Welcome {
        /// The rank of the process that says so.
        parent: Rank,
        /// The receiver's rank.
        rank: Rank,
        /// How many back-ends the network has in all.
        back_ends: u32,
        /// The receiver's subtree, encoded by the topology; empty for a back-end.
        plan: Vec<u8>,
    },
    /// Answer to a hello: you are not wanted, and why. The link is closed after it.
    Refused {
        /// The reason.
        #[serde(with = "text")]
        reason: String,
    },
    /// Up: this subtree has started as far as it will; these back-ends are there.
    Reached {
        /// The back-ends that are connected.
        back_ends: Ranges,
        /// Where back-ends may attach: parent's rank, address, ranks kept.
        #[serde(deserialize_with = "at_most::<_, _, ATTACH_POINTS_MAX>")]
        attach_points: Vec<(Rank, String, Ranges)>,
    },
    /// Up: a process could not be started.
    Failed {
        /// Its rank.
        rank: Rank,
        /// Its own words.
        #[serde(with = "text")]
        text: String,
    },
    /// Up: back-ends are gone.
    Lost {
        /// The process whose link closed.
        rank: Rank,
        /// The back-ends that cannot be reached any more.
        back_ends: Ranges,
        /// What was seen.
        #[serde(with = "text")]
        reason: String,
    },
    /// Down: a stream opens.
    Open(StreamRequest),
    /// Down: a stream closes; comes behind its last packet.
    Close {
        /// The stream.
        stream: StreamId,
    },
    /// Up: a filter failed a wave.
    Fault {
        /// The stream.
        stream: StreamId,
        /// The wave.
        wave: Wave,
        /// The process where it happened.
        rank: Rank,
        /// The back-ends whose data is lost to this wave.
        back_ends: Ranges,
        /// The filter's reason.
        #[serde(with = "text")]
        reason: String,
    },
    /// Both ways: so many more bytes may be sent on a stream over this link.
    Credit {
        /// The stream.
        stream: StreamId,
        /// The bytes.
        bytes: u32,
    },
    /// Down: all waves of a stream below this one have arrived and need not be kept.
    Acknowledge {
        /// The stream.
        stream: StreamId,
        /// The first wave that is still open.
        wave: Wave,
    },
    /// Down: the network ends.
    Shutdown,
    /// Up: the sender leaves on purpose; its end of the link follows.
    Leaving,
    /// Are you there? Answered by an echo with the same number.
    Probe {
        /// Any number.
        number: u64,
    },
    /// Answer to a probe.
    Echo {
        /// The probe's number.
        number: u64,
    },
}
