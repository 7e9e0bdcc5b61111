//! Control messages, which maintain the tree. Encoded with postcard, in the order of this file: a
//! new variant or field is added at the end and raises the wire version. A sender cuts the texts of
//! reasons, and a receiver checks the length of a list before it reads it.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::{
    DIRECTIVES_MAX, PacketError, Rank, RankRange, RankSet, RankSetRef, StreamId, Wave,
};
use serde::{Deserialize, Serialize};

use crate::bounds::{at_most, file_name, in_order, part, text};
use crate::cause::Cause;
use crate::limits::{
    AFFECTED_MAX, ANCESTORS_MAX, ATTACH_POINTS_MAX, FILES_MAX, FILTERS_MAX, ORPHANS_MAX,
    QUESTION_BYTES_MAX, REPLY_BYTES_MAX, STATE_BYTES_MAX,
};

/// A rank set in a control message; ranges out of order are refused by the decoder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranges(#[serde(deserialize_with = "in_order")] Vec<RankRange>);

impl Ranges {
    /// The set.
    ///
    /// # Errors
    /// [`PacketError::RankOrder`] for ranges that are no set, which the decoder never produces.
    pub fn to_set(&self) -> Result<RankSet, PacketError> {
        Ok(RankSetRef::from_ranges(&self.0)?.to_set())
    }

    /// The set, lent; empty for ranges that are no set, which the decoder never produces.
    #[must_use]
    pub fn as_set(&self) -> RankSetRef<'_> {
        RankSetRef::from_ranges(&self.0).unwrap_or_default()
    }
}

impl From<&RankSet> for Ranges {
    fn from(set: &RankSet) -> Self {
        Self(set.as_ref().ranges().to_vec())
    }
}

/// The identity that a process claims when it connects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Claim {
    /// A process that the parent has started under this rank.
    Started {
        /// Its rank.
        rank: Rank,
    },
    /// A back-end that attaches by itself, with a rank that the network has reserved for it.
    Attached {
        /// Its rank, or none to take any free one of this parent's.
        rank: Option<Rank>,
    },
    /// An orphan, which turns to an ancestor.
    Orphan {
        /// Its rank.
        rank: Rank,
        /// Its ancestors below the one that it turns to, nearest first.
        #[serde(deserialize_with = "at_most::<_, _, ANCESTORS_MAX>")]
        between: Vec<Rank>,
    },
    /// Not a member of the tree: another process of the same user that queries the front-end.
    Visitor,
    /// An unplanned communication process that joins by itself.
    Joining,
}

/// The terms of recovery, which are the same for all processes of a network. Times are in
/// milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryTerms {
    /// Whether orphans look for a new parent at all.
    pub is_on: bool,
    /// How long an orphaned communication process looks for one.
    pub orphan_limit: u32,
    /// How long an adopter holds waves back for orphans that have not come back.
    pub grace: u32,
    /// After this much silence a communication process counts as dead; 0 for never.
    pub silence: u32,
    /// How long the tree waits for a front-end to come back; 0 to end with it.
    pub front_end_wait: u32,
}

/// The wave rule: when the packets of a wave are given to the stream's filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitRule {
    /// When all parts have arrived or are lost.
    All,
    /// As all, but no later than these milliseconds.
    Timeout {
        /// The wait at the front-end. Nodes below wait their share, by their height: of two levels
        /// the lower one half of it.
        milliseconds: u32,
    },
    /// At once.
    Immediate,
}

/// The behaviour of senders when a stream's window is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    /// The sender waits.
    #[default]
    Block,
    /// The oldest waiting packet is dropped and counted.
    DropOldest,
}

/// A filter of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterRequest {
    /// Its name.
    pub name: String,
    /// Format of its parameters, one byte per directive.
    pub format: Vec<u8>,
    /// Its parameters, encoded as the values of a packet.
    pub parameters: Vec<u8>,
}

/// The parameters of a stream.
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
    /// The behaviour of senders when the window is used up.
    pub policy: Policy,
    /// Bytes under way per link and direction.
    pub window_bytes: u32,
    /// Levels from the front-end to the farthest back-end.
    pub height: u32,
    /// The first wave that the receiver takes part in.
    pub first_wave: Wave,
    /// The name of a synchronisation rule, which may forward an incomplete wave.
    pub rule: Option<FilterRequest>,
    /// Whether the filters run in its back-ends, too: in those that can make filters.
    pub at_back_ends: bool,
}

/// A probe, as its sender knows it again in the echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProbeId {
    /// A heartbeat: whether the peer lives, and how long the round trip takes. With the time at
    /// which it was sent, in nanoseconds of the sender's clock.
    Heartbeat(u64),
    /// Whether the peer has read what was sent before it. With a number of the sender's.
    Barrier(u64),
}

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Control {
    /// First message up a new link: the identity of the sender.
    Hello {
        /// The peer's wire version.
        version: u16,
        /// Its identity.
        claim: Claim,
        /// Its process id on its host, for display.
        pid: u32,
        /// The address at which it takes connections, if it does.
        address: Option<String>,
    },
    /// Answer to a hello: accepts the receiver, with its rank and its part of the tree.
    Welcome {
        /// The rank of the sender.
        parent: Rank,
        /// The receiver's rank.
        rank: Rank,
        /// How many back-ends the network has in all.
        back_ends: u32,
        /// The receiver's subtree, encoded by the topology; empty for a back-end.
        plan: Vec<u8>,
        /// The receiver's ancestors, nearest first, and where they take connections.
        #[serde(deserialize_with = "at_most::<_, _, ANCESTORS_MAX>")]
        ancestors: Vec<(Rank, String)>,
        /// The terms of recovery.
        terms: RecoveryTerms,
        /// Whether the sender answers probes at any time, rather than when its application lets it.
        is_responsive: bool,
    },
    /// Answer to a hello: refuses the receiver. The link is closed after it.
    Refused {
        /// The reason.
        #[serde(with = "text")]
        reason: String,
    },
    /// Up: the start of this subtree is over; these back-ends are connected.
    Reached {
        /// The back-ends that are connected.
        back_ends: Ranges,
        /// The attach points: parent's rank, address, reserved ranks.
        #[serde(deserialize_with = "at_most::<_, _, ATTACH_POINTS_MAX>")]
        attach_points: Vec<(Rank, String, Ranges)>,
    },
    /// Up: a process could not be started.
    Failed {
        /// Its rank.
        rank: Rank,
        /// Its error text.
        #[serde(with = "text")]
        text: String,
    },
    /// Up: back-ends are lost.
    Lost {
        /// The process whose link closed.
        rank: Rank,
        /// The back-ends that cannot be reached any more.
        back_ends: Ranges,
        /// What was observed.
        #[serde(with = "text")]
        reason: String,
        /// The same for programs.
        cause: Cause,
    },
    /// Down: a stream opens.
    Open(StreamRequest),
    /// Down: a stream closes; follows its last packet.
    Close {
        /// The stream.
        stream: StreamId,
    },
    /// Up: a filter failed a wave, or could not be made.
    Fault {
        /// The stream.
        stream: StreamId,
        /// The wave; none for every wave of the stream.
        wave: Option<Wave>,
        /// The process in which the filter failed.
        rank: Rank,
        /// The back-ends whose data is lost to it.
        back_ends: Ranges,
        /// The filter's reason.
        #[serde(with = "text")]
        reason: String,
        /// The same for programs.
        cause: Cause,
    },
    /// Both ways: the peer may send this many more bytes on a stream over this link.
    Credit {
        /// The stream.
        stream: StreamId,
        /// The bytes.
        bytes: u32,
    },
    /// Acknowledges what was sent on a stream over this link before a position; it may leave the
    /// retransmit buffer: packets that went up have reached the front-end, packets that went down
    /// their back-ends.
    Acknowledge {
        /// The stream.
        stream: StreamId,
        /// The first wave (down: the first packet number) that is not safe as a whole.
        wave: Wave,
        /// How many bytes of its values are safe.
        offset: u64,
        /// The number of the last safe single packet, in the sequence space of packets that go up
        /// outside of the order of waves and have their number in the header; 0 for none, and in
        /// acknowledgements from below.
        singles: u64,
    },
    /// Down: the network ends.
    Shutdown,
    /// Up: the sender leaves on purpose; its end of the link follows.
    Leaving,
    /// Must be answered at once by an echo of the same probe.
    Probe {
        /// What the sender wants to know.
        probe: ProbeId,
    },
    /// Answer to a probe, or an unsolicited heartbeat of a process that receives no probes.
    Echo {
        /// The probe; none in an unsolicited heartbeat.
        probe: Option<ProbeId>,
        /// The time of the sender's clock, in nanoseconds since an origin of its own.
        clock: u64,
    },
    /// Up, from an orphan that has been welcomed: its subtree. Its open streams follow stream by
    /// stream, and then [`Control::Resumed`].
    Rejoin {
        /// The back-ends that are connected below it.
        back_ends: Ranges,
        /// All back-ends whose packets may be in its retransmit buffers, or that it waits for.
        covers: Ranges,
        /// The parents that it has left, and the processes of which it knows that others have left
        /// them: their retransmit buffers may hold packets that are retransmitted by another path.
        former: Ranges,
        /// Checksums of the files that it has, whole.
        #[serde(deserialize_with = "at_most::<_, _, FILES_MAX>")]
        files: Vec<[u8; 32]>,
    },
    /// Up, from an orphan: its positions on a stream.
    Resume {
        /// The stream.
        stream: StreamId,
        /// The first wave and byte that it retransmits.
        up: (Wave, u64),
        /// Everything that was sent down before this position has arrived.
        down: (Wave, u64),
    },
    /// Up, from an orphan: it has resumed all of its streams.
    Resumed,
    /// Down, to an orphan that has been welcomed: other processes have replaced its children, so
    /// that its retransmit buffers must not be used. It ends, and its children turn to their
    /// ancestors.
    Dissolve,
    /// Down: the receiver's ancestors have changed, or repairs were switched on or off.
    Ancestry {
        /// As in a welcome.
        #[serde(deserialize_with = "at_most::<_, _, ANCESTORS_MAX>")]
        ancestors: Vec<(Rank, String)>,
        /// Whether orphans look for a new parent, if the terms of the network allow it at all.
        repairs: bool,
    },
    /// Up: a communication process is lost, and its children look for a new parent.
    Broken {
        /// The lost process.
        rank: Rank,
        /// The back-ends that were connected below it.
        back_ends: Ranges,
        /// What was observed.
        #[serde(with = "text")]
        reason: String,
        /// The same for programs.
        cause: Cause,
    },
    /// Up: the position of a lost process has been taken.
    Repaired {
        /// The lost process.
        rank: Rank,
        /// The process that has taken its children.
        adopter: Rank,
        /// Those children.
        #[serde(deserialize_with = "at_most::<_, _, ORPHANS_MAX>")]
        orphans: Vec<Rank>,
        /// The back-ends that came back with them.
        back_ends: Ranges,
        /// Streams with the waves that were held back: the first, and the one after the last.
        #[serde(deserialize_with = "at_most::<_, _, AFFECTED_MAX>")]
        waves: Vec<(StreamId, Wave, Wave)>,
    },
    /// From a visitor to the front-end, after its hello; one at a time.
    Question {
        /// The query, in an encoding of the two.
        #[serde(deserialize_with = "at_most::<_, _, QUESTION_BYTES_MAX>")]
        bytes: Vec<u8>,
    },
    /// To a visitor: a part of the answer to its question.
    Reply {
        /// Whether it is the last part.
        is_last: bool,
        /// The part.
        #[serde(deserialize_with = "at_most::<_, _, REPLY_BYTES_MAX>")]
        bytes: Vec<u8>,
    },
    /// Up: the state of a filter of the sender after all waves before `wave`. It takes effect when
    /// the receiver has those waves, and replaces the earlier copy of that filter's state; when the
    /// sender is lost, the receiver's own filter absorbs it.
    State {
        /// The stream.
        stream: StreamId,
        /// The filter's index among the upward filters that do not pass every packet unchanged.
        filter: u32,
        /// The first wave that is not included.
        wave: Wave,
        /// The format of the values; no directives for an empty state.
        #[serde(deserialize_with = "at_most::<_, _, DIRECTIVES_MAX>")]
        format: Vec<u8>,
        /// The values, encoded as those of a packet.
        #[serde(deserialize_with = "at_most::<_, _, STATE_BYTES_MAX>")]
        values: Vec<u8>,
        /// The processes whose states the sender and its subtree have absorbed: if one of them
        /// comes back, its state is counted already.
        absorbed: Ranges,
    },
    /// Up: the retransmit buffers of these processes must not be used any more, since their
    /// children have been adopted elsewhere.
    Superseded {
        /// Their ranks.
        ranks: Ranges,
    },
    /// Down, to communication processes: a part of a file with filters. The parts of a file are
    /// sent in order, from offset 0 on; a part that the receiver has is a duplicate. Unlike other
    /// messages it is sent in the order of packets, as is an Open after it.
    File {
        /// The kind of the file, a colon, and its name: one for each checksum.
        #[serde(deserialize_with = "file_name")]
        name: String,
        /// Its checksum, which a process checks before it uses the file.
        digest: [u8; 32],
        /// Length of the whole file in bytes.
        total: u32,
        /// Where in the file the part begins.
        offset: u32,
        /// The part; not empty.
        #[serde(with = "part")]
        bytes: Vec<u8>,
    },
    /// Answer to the hello of an orphan: refers it to a living process between the sender and the
    /// orphan. The link is closed after it.
    Referred {
        /// The process, one of those that the orphan named.
        rank: Rank,
        /// The reason.
        #[serde(with = "text")]
        reason: String,
    },
    /// Up: a process has seen something that costs no answer and that its user may want to know.
    Notice {
        /// The process.
        rank: Rank,
        /// What it has seen, for display.
        #[serde(with = "text")]
        text: String,
    },
}
