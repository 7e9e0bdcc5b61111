//! What members tell each other. Encoded with postcard, in the order of this file: a new variant or
//! field is added at the end. A receiver checks the length of each list before it reads it.

mod bounds;
mod codec;
mod frame;
mod greeting;

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::RankSet;
use serde::{Deserialize, Serialize};

pub use codec::{decode, encode, encoded_bytes};
pub use frame::{FRAME_PREFIX_BYTES, Frame, Inbox, encode_frame, frame_of};
pub use greeting::{GREETING_BYTES_MAX, GROUP_VERSION, Greeting, GroupId};
pub use sapwood_wire::Ranges;

use crate::error::{Reason, Refusal};
use crate::identity::{CastId, FoldId, MemberId, Time};
use crate::limits::{
    ADDRESS_BYTES_MAX, DISTANCES_MAX, LABELS_MAX, MEMBERS_MAX, PAPER_TREES_MAX, REASONS_MAX,
    SEGMENTS_MAX, STRIPES_MAX, TRANSFERS_MAX, VALUE_BYTES_MAX,
};
use crate::measure::Costs;
use crate::operations::{Element, Operation};
use crate::payload::Payload;
use crate::trees::TreeKind;
pub(crate) use bounds::at_most;
use bounds::short;

/// What is known of a member's life. A later variant overrules an earlier one of one incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Life {
    /// It takes part.
    Alive,
    /// It crashed, hung or was cut off.
    Dead,
    /// It left on purpose.
    Left,
}

/// One member, as all know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The member.
    pub id: MemberId,
    /// Where it can be dialled.
    #[serde(deserialize_with = "short::<_, ADDRESS_BYTES_MAX>")]
    pub address: String,
    /// The virtual nodes that it carries.
    pub names: Ranges,
    /// The cluster that its operator gave; used by `static` and `list` only.
    pub site: u32,
    /// Raised by the member itself, to overrule what others say of it.
    pub incarnation: u32,
    /// Whether it takes part.
    pub life: Life,
    /// How long ago it was seen to be gone, in milliseconds; 0 while it takes part.
    pub gone_ms: u32,
    /// Of two members that claim one virtual node the one with the higher epoch carries it: each
    /// hand-over raises the receiver's above the giver's.
    pub epoch: u32,
}

impl Record {
    /// What a member that takes part says of itself at first; its address is still to be told.
    #[must_use]
    pub fn new(id: MemberId, names: &RankSet) -> Self {
        Self {
            id,
            address: String::new(),
            names: names.into(),
            site: 0,
            incarnation: 0,
            life: Life::Alive,
            gone_ms: 0,
            epoch: 0,
        }
    }
}

/// The inferred clusters and the distances between them; the newest version counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Counted up by the author; of two of one version the smaller author's counts.
    pub version: u64,
    /// The member that computed it.
    pub author: MemberId,
    /// Each label, which is its smallest member, with the virtual nodes of its members.
    #[serde(deserialize_with = "at_most::<_, _, LABELS_MAX>")]
    pub labels: Vec<(MemberId, Ranges)>,
    /// Round trips between the labels at two indexes, in nanoseconds; within one if they are equal.
    #[serde(deserialize_with = "at_most::<_, _, DISTANCES_MAX>")]
    pub distances: Vec<(u16, u16, Time)>,
    /// What messages and bytes cost, as far as long transfers have shown it.
    pub costs: Costs,
}

/// The position of a subtree in a tree that the root has laid out: members in pre-order, each with
/// the count of those below it. Empty where each member splits its set by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route(
    /// The members and the counts below them.
    #[serde(deserialize_with = "at_most::<_, _, MEMBERS_MAX>")]
    pub Vec<(MemberId, u32)>,
);

impl Route {
    /// Whether it is the pre-order of trees: each member once, and each subtree inside of its
    /// parent's.
    pub(crate) fn is_pre_order(&self) -> bool {
        let mut ends = Vec::from([self.0.len()]);
        let mut seen = BTreeSet::new();
        self.0.iter().enumerate().all(|(at, &(member, below))| {
            while ends.len() > 1 && ends.last().is_some_and(|&end| end <= at) {
                ends.pop();
            }
            let end = (at + 1).saturating_add(below as usize);
            let is_inside = ends.last().is_some_and(|&outer| end <= outer);
            ends.push(end);
            is_inside && seen.insert(member)
        })
    }
}

/// What a transfer down a tree is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// The application gets it as it is.
    Broadcast,
    /// To one virtual node.
    Direct,
    /// The result of a reduction for all, with its contributors and the missing.
    Result {
        /// The reduction.
        fold: FoldId,
        /// The virtual nodes whose values it has.
        contributors: Ranges,
        /// Those that it lacks.
        missing: Missing,
    },
    /// No member gets a result of a reduction.
    Broken {
        /// The reduction.
        fold: FoldId,
        /// The virtual nodes of the member because of which it is so.
        names: Ranges,
        /// What it is about them.
        reason: Reason,
    },
}

/// Virtual nodes that are missing, with the reasons.
pub type Missing = Vec<(Ranges, Reason)>;

/// The head of a transfer down a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The transfer.
    pub cast: CastId,
    /// Which of its stripes this is.
    pub stripe: u8,
    /// How many stripes it has.
    pub stripes: u8,
    /// All earlier transfers of the same root with numbers below this are over.
    pub floor: u64,
    /// By which rule sets are split.
    pub tree: TreeKind,
    /// What it is for.
    pub purpose: Purpose,
    /// The length of the whole value, in bytes.
    pub bytes: u64,
    /// The length of a segment, in bytes.
    pub segment_bytes: u32,
    /// The caller's number, by which receivers tell transfers apart.
    pub tag: u64,
}

impl Head {
    /// How many segments the whole value has.
    pub(crate) fn segments(&self) -> u64 {
        self.bytes.div_ceil(u64::from(self.segment_bytes.max(1))).max(1)
    }

    /// The length of a segment, in bytes; nothing beyond the value's end.
    pub(crate) fn bytes_of(&self, index: u32) -> Option<u64> {
        let begin = u64::from(index) * u64::from(self.segment_bytes);
        (u64::from(index) < self.segments())
            .then(|| self.bytes.saturating_sub(begin).min(self.segment_bytes.into()))
    }

    /// Whether a value of this length may be divided like that.
    fn is_sound(&self) -> bool {
        self.bytes <= VALUE_BYTES_MAX
            && self.segment_bytes > 0
            && self.segments() <= SEGMENTS_MAX
            && self.stripe < self.stripes
            && self.stripes <= STRIPES_MAX
    }
}

/// The head of a part on its way up a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartHead {
    /// The reduction.
    pub fold: FoldId,
    /// Which segment of the value.
    pub segment: u32,
    /// How many segments there are.
    pub segments: u32,
    /// What is done with the values.
    pub operation: Operation,
    /// The type of their elements.
    pub element: Element,
    /// The length of the whole value, in bytes.
    pub bytes: u64,
    /// Whether it goes to the root past the tree.
    pub direct: bool,
}

impl PartHead {
    /// Whether a value of this length may have this segment.
    fn is_sound(&self) -> bool {
        self.bytes <= VALUE_BYTES_MAX
            && u64::from(self.segments) <= SEGMENTS_MAX
            && self.segment < self.segments
    }
}

/// A message between two members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// A process asks to become a member.
    Join {
        /// The size of the name space that it expects.
        space: u32,
        /// Itself.
        record: Record,
    },
    /// It is one now.
    Welcome {
        /// All members, the new one included.
        #[serde(deserialize_with = "at_most::<_, _, MEMBERS_MAX>")]
        records: Vec<Record>,
        /// The inferred clusters.
        table: Table,
    },
    /// It cannot become or stay one.
    Refused {
        /// Why.
        refusal: Refusal,
    },
    /// News of members, to be told to those of these virtual nodes too.
    Update {
        /// The virtual nodes to be reached through the receiver.
        targets: Ranges,
        /// The members.
        #[serde(deserialize_with = "at_most::<_, _, MEMBERS_MAX>")]
        records: Vec<Record>,
    },
    /// Asks for a sign of life; its round trip is a measurement.
    Ping {
        /// Repeated in the answer.
        number: u64,
        /// Of the sender's view.
        digest: u64,
        /// The version of the sender's table.
        table: u64,
        /// Empty, or [`crate::limits::PROBE_BYTES`] to measure a bandwidth.
        padding: Payload,
    },
    /// Answers it.
    Pong {
        /// The number in the ping.
        number: u64,
        /// Of the sender's view.
        digest: u64,
        /// The version of the sender's table.
        table: u64,
    },
    /// Measured round trips, for the registrar.
    Report {
        /// The other members and the times in nanoseconds.
        #[serde(deserialize_with = "at_most::<_, _, LABELS_MAX>")]
        distances: Vec<(MemberId, Time)>,
    },
    /// The inferred clusters.
    Clusters {
        /// The virtual nodes to be reached through the receiver.
        targets: Ranges,
        /// The table.
        table: Table,
    },
    /// A transfer begins, or is taken over by another sender.
    Open {
        /// What it is.
        head: Head,
        /// The virtual nodes to be reached through the receiver.
        targets: Ranges,
        /// The tree below the receiver, if the root has laid it out.
        route: Route,
        /// Whether the receiver says first what it has already.
        ask: bool,
        /// Whether the receiver says at once that it has come, which measures the distance.
        receipt: bool,
        /// The first segment of this stripe, unless `ask` is set.
        data: Payload,
    },
    /// A later segment.
    Segment {
        /// The transfer.
        cast: CastId,
        /// The stripe.
        stripe: u8,
        /// The segment's index in the whole value.
        index: u32,
        /// Its bytes.
        data: Payload,
    },
    /// What of a transfer the sender has: the answer to `ask`.
    Have {
        /// The transfer.
        cast: CastId,
        /// The stripe.
        stripe: u8,
        /// The indexes of its segments.
        segments: Ranges,
    },
    /// The `Open` has come.
    Receipt {
        /// The transfer.
        cast: CastId,
        /// The stripe.
        stripe: u8,
    },
    /// These virtual nodes have the transfer.
    Done {
        /// The transfer.
        cast: CastId,
        /// The stripe.
        stripe: u8,
        /// Those that have it.
        names: Ranges,
        /// Those that cannot get it.
        #[serde(deserialize_with = "at_most::<_, _, REASONS_MAX>")]
        failed: Missing,
    },
    /// A part of a reduction.
    Part {
        /// What it is.
        head: PartHead,
        /// The virtual nodes whose values it has.
        names: Ranges,
        /// The value.
        data: Payload,
    },
    /// The root lacks these virtual nodes' values: send them past the tree.
    Pull {
        /// The reduction.
        fold: FoldId,
        /// The virtual nodes.
        names: Ranges,
        /// The segments that it lacks; all if empty.
        segments: Ranges,
    },
    /// The root has its answer; what was kept for it may be forgotten.
    Finished {
        /// The reductions.
        #[serde(deserialize_with = "at_most::<_, _, LABELS_MAX>")]
        folds: Vec<FoldId>,
        /// The virtual nodes to be reached through the receiver.
        targets: Ranges,
    },
    /// The receiver's values have another operation, type or count than the root's, or those of all
    /// members together are longer than a value may be.
    Mismatch {
        /// The reduction.
        fold: FoldId,
    },
    /// A probe of the rules of Saito, Taura and Chikayama, for the trees of all roots.
    Probe {
        /// Of which kind these trees are.
        kind: PaperKind,
        /// Repeated in the answer.
        number: u64,
        /// 1 or [`crate::limits::PROBE_BYTES`] bytes.
        padding: Payload,
    },
    /// Answers it, with the sender's state in all trees of that kind.
    ProbeReply {
        /// The kind.
        kind: PaperKind,
        /// The number in the probe.
        number: u64,
        /// The sender's position in the tree of each root.
        #[serde(deserialize_with = "at_most::<_, _, PAPER_TREES_MAX>")]
        positions: Vec<(MemberId, Position)>,
    },
    /// The sender becomes a child of the receiver, or its subtree has changed.
    Attach {
        /// The tree.
        tree: PaperTree,
        /// The virtual nodes that can be reached through the sender.
        names: Ranges,
    },
    /// The sender is no child of the receiver any longer.
    Detach {
        /// The tree.
        tree: PaperTree,
    },
    /// The sender's position in a tree, for its children.
    Above {
        /// The tree.
        tree: PaperTree,
        /// The position.
        position: Position,
    },
    /// What messages and bytes have cost in the transfers that came to the sender; for the
    /// registrar.
    Costs {
        /// The costs.
        costs: Costs,
    },
    /// The sender leaves, and would hand these virtual nodes over to the receiver.
    Offer {
        /// The virtual nodes.
        names: Ranges,
    },
    /// The sender would take these virtual nodes over from the receiver.
    Take {
        /// The virtual nodes.
        names: Ranges,
    },
    /// The answer to [`Message::Offer`] or [`Message::Take`] of a member that does not do so.
    Decline {
        /// The virtual nodes.
        names: Ranges,
    },
    /// The sender does not carry these virtual nodes any more: they are the receiver's.
    Give {
        /// What is handed over.
        gift: Gift,
    },
    /// Virtual nodes of the sender have no value in this reduction, and will not have one.
    Absent {
        /// The reduction.
        fold: FoldId,
        /// The virtual nodes.
        names: Ranges,
    },
    /// The answer to [`Message::Give`] of a member that leaves: it has not taken these virtual
    /// nodes and never will.
    Return {
        /// The virtual nodes.
        names: Ranges,
    },
    /// No member gets a result of this reduction: from a member to the root, which tells all by
    /// [`Purpose::Broken`], and from a root to the member that it hands its virtual nodes to.
    Broken {
        /// The reduction.
        fold: FoldId,
        /// The virtual nodes of the member because of which it is so.
        names: Ranges,
        /// What it is about them.
        reason: Reason,
    },
    /// The answer to [`Message::Offer`] of a member that can take nothing before another one
    /// carries what it has given: the sender of the offer is to ask again.
    Later {
        /// The virtual nodes.
        names: Ranges,
    },
}

/// Virtual nodes that are handed over, with what their member has done for them: the receiver does
/// the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gift {
    /// The virtual nodes.
    pub names: Ranges,
    /// The giver's epoch.
    pub epoch: u32,
    /// Below which number the transfers of each root are over.
    #[serde(deserialize_with = "at_most::<_, _, MEMBERS_MAX>")]
    pub floors: Vec<(MemberId, u64)>,
    /// Transfers that the giver has delivered, and to which of the virtual nodes.
    #[serde(deserialize_with = "at_most::<_, _, TRANSFERS_MAX>")]
    pub delivered: Vec<(CastId, Ranges)>,
    /// Transfers that it has delivered in part: it gets the rest, or no member does.
    #[serde(deserialize_with = "at_most::<_, _, TRANSFERS_MAX>")]
    pub begun: Vec<(CastId, Ranges)>,
    /// Reductions to which it has given a value for some of the virtual nodes.
    #[serde(deserialize_with = "at_most::<_, _, TRANSFERS_MAX>")]
    pub folds: Vec<(FoldId, Ranges)>,
    /// Reductions with a root among the virtual nodes that have ended, or end at the giver.
    #[serde(deserialize_with = "at_most::<_, _, TRANSFERS_MAX>")]
    pub ended: Vec<FoldId>,
}

impl Message {
    /// How many bytes of a segment or part it carries, which wait until its link has credit; none
    /// of other messages.
    #[must_use]
    pub fn bulk_bytes(&self) -> usize {
        match self {
            Self::Segment { data, .. } | Self::Part { data, .. } => data.len(),
            _ => 0,
        }
    }
}

/// Which of the paper's rules a tree grows by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PaperKind {
    /// That for latency.
    Latency,
    /// That for bandwidth.
    Bandwidth,
}

/// Names a tree of the paper's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PaperTree {
    /// Its root.
    pub root: MemberId,
    /// Whether it is built for bandwidth instead of latency.
    pub bulk: bool,
}

impl PaperTree {
    /// The rule by which it grows.
    #[must_use]
    pub fn kind(self) -> PaperKind {
        if self.bulk { PaperKind::Bandwidth } else { PaperKind::Latency }
    }
}

/// A member's position in a tree of the paper's rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Its distance to the root in nanoseconds, the sum of the round trips along the tree; 0 at the
    /// root, and where it is not known.
    pub distance: Time,
    /// Its estimated bandwidth from the root, in bytes per second.
    pub bandwidth: u64,
    /// How many children it has.
    pub children: u32,
    /// Its ancestors, the parent first.
    #[serde(deserialize_with = "at_most::<_, _, MEMBERS_MAX>")]
    pub ancestors: Vec<MemberId>,
}
