//! What goes into a member and what comes out.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::RankSet;

use crate::error::{GroupError, Reason, Refusal};
use crate::identity::{CastId, MemberId, Request, Time};
use crate::message::{Message, PaperTree, Purpose};
use crate::operations::{Definition, Element, GraceDelay, Operation, OperationId};
use crate::payload::Payload;
use crate::trees::TreeKind;

/// A collective operation that the application starts. Numbers of folds are the same at all
/// callers and differ from operation to operation.
#[derive(Clone, Debug)]
pub enum Call {
    /// A value for all, or for these virtual nodes.
    Broadcast {
        /// The receivers; all if none are named.
        targets: Option<RankSet>,
        /// The value.
        value: Payload,
        /// For the receivers, which get it with the value.
        tag: u64,
    },
    /// A value for one virtual node.
    Direct {
        /// The virtual node.
        to: u32,
        /// The value.
        value: Payload,
        /// For the receiver, which gets it with the value.
        tag: u64,
    },
    /// One value for each virtual node, as its part of the list.
    Scatter {
        /// The virtual nodes and their values.
        values: Vec<(u32, Payload)>,
        /// For the receivers, which get it with their values.
        tag: u64,
    },
    /// A part of a reduction, which the virtual node `root` gets, or all.
    Reduce {
        /// The virtual node that gets the result.
        root: u32,
        /// The number of the operation.
        number: u64,
        /// What is done with the values.
        operation: Operation,
        /// The type of their elements.
        element: Element,
        /// The caller's value.
        value: Payload,
        /// Whether all get the result.
        to_all: bool,
        /// Whether the caller does not wait for the end (application bypass): it is told by
        /// [`Event::MayLeave`] when it may go.
        leaves_early: bool,
    },
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The result, where the call gives one to this member.
    pub value: Option<Payload>,
    /// The virtual nodes that have taken part.
    pub contributors: RankSet,
    /// Those that have not, and why.
    pub missing: Vec<(RankSet, Reason)>,
}

/// What happens to a member from outside.
#[derive(Clone, Debug)]
pub enum Input {
    /// It is the first of a new group.
    Create,
    /// It joins by the address of any member.
    Join {
        /// The address.
        address: String,
    },
    /// It leaves.
    Leave,
    /// It leaves, and hands its virtual nodes over.
    LeaveTo {
        /// A virtual node of the member that gets them; that of the next member on the ring if none
        /// is named.
        heir: Option<u32>,
    },
    /// A link to a member is up; with the address if it was dialled by that alone.
    LinkUp {
        /// The member.
        member: MemberId,
        /// The address that was dialled.
        address: Option<String>,
    },
    /// The link to a member was closed.
    LinkDown {
        /// The member.
        member: MemberId,
    },
    /// Bytes of segments and parts have left on the link to a member. Given whenever what the
    /// member takes to wait there has fallen by an eighth of [`Config::link_bytes`](super::Config),
    /// after all outputs were carried out.
    Drained {
        /// The member.
        member: MemberId,
        /// How many of these bytes wait still: the sum of [`Message::bulk_bytes`].
        queued_bytes: usize,
    },
    /// A connection was refused or failed; what waits for the member goes on waiting while the view
    /// has it.
    ConnectFailed {
        /// The member, if one was meant.
        member: Option<MemberId>,
    },
    /// A message has come.
    Message {
        /// From this member.
        from: MemberId,
        /// The message.
        message: Message,
    },
    /// The time asked for has come.
    Wake,
    /// The application starts an operation.
    Call {
        /// Its number, for the answer.
        request: Request,
        /// By which tree.
        tree: TreeKind,
        /// The time by which there is an answer.
        deadline: Time,
        /// The operation.
        call: Call,
    },
    /// The member takes part in a tree of the paper's rules, which then probes.
    Track {
        /// The tree.
        tree: PaperTree,
    },
    /// The application defines an operation; the first definition of a name stays.
    Define {
        /// Of the name.
        operation: OperationId,
        /// What it does.
        definition: Definition,
    },
}

/// What a member wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Dial; what is sent to this member meanwhile waits.
    Connect {
        /// The member, unless only its address is known.
        member: Option<MemberId>,
        /// Its address.
        address: String,
    },
    /// Send on the link to a member.
    Send {
        /// The member.
        to: MemberId,
        /// The message.
        message: Message,
    },
    /// Give [`Input::Wake`] at this time; replaces an earlier one.
    Wake(Time),
    /// For the application.
    Event(Event),
}

/// What the application learns.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The member is one of the group.
    Joined,
    /// It is not, or no longer.
    Refused(Refusal),
    /// It has left, and nothing is kept.
    Ended,
    /// Another member takes part.
    MemberJoined(MemberId),
    /// A member is gone.
    MemberGone(MemberId, Reason),
    /// Virtual nodes have been handed over by this member or to it.
    NamesMoved {
        /// The virtual nodes.
        names: RankSet,
        /// The member that carried them.
        from: MemberId,
        /// The member that carries them now, unless it has died meanwhile.
        to: MemberId,
    },
    /// A part of a value for virtual nodes of this member.
    Delivery {
        /// The transfer.
        cast: CastId,
        /// What it is for.
        purpose: Purpose,
        /// The number that the caller gave.
        tag: u64,
        /// The virtual nodes.
        names: RankSet,
        /// Where the part begins, in bytes.
        offset: u64,
        /// The part.
        data: Payload,
        /// The length of the whole value, in bytes.
        bytes: u64,
    },
    /// The caller of a reduction that it leaves early may go. Given once, and not to a call that is
    /// answered before.
    MayLeave(Request),
    /// How long calls of a kind that leave early wait from now on, at most. Those of which nothing
    /// was told do not wait.
    GraceDelay(GraceDelay),
    /// A call is answered.
    Answered(Request, Answer),
    /// A call is refused.
    Failed(Request, GroupError),
}
