//! What a member notes.

use serde::{Deserialize, Serialize};

use crate::identity::{CastId, FoldId, MemberId, Request, Time};

/// The operation to which an event belongs. What carries the result of a reduction to all belongs
/// to the reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum GroupHopOperation {
    /// A value goes down a tree.
    Cast(CastId),
    /// Parts go up a tree.
    Fold(FoldId),
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum GroupHopKind {
    /// The application has called.
    Entered {
        /// The number of its call.
        request: Request,
        /// Whether it does not wait for the end (application bypass).
        leaves_early: bool,
    },
    /// A part of a reduction has come up from a member.
    Arrived(MemberId),
    /// A part went up to a member.
    SentUp(MemberId),
    /// A segment of a value went down to a member.
    SentDown(MemberId),
    /// A segment of a value came down from a member.
    CameDown(MemberId),
    /// The acknowledgement of a value has come from a member below.
    Acknowledged(MemberId),
    /// The acknowledgement went to the member above.
    SentAcknowledgement(MemberId),
    /// The whole value was handed to the application, which need not have called.
    Delivered,
    /// A call is answered: the application has its result, unless it left early.
    Exited {
        /// The number of the call.
        request: Request,
    },
}

/// One event. Times are of turns of the member: what came together is said to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupHop {
    /// When, in nanoseconds of the member's clock.
    pub time: Time,
    /// Of which operation; none of the end of a call, whose begin has the same request.
    pub operation: Option<GroupHopOperation>,
    /// What.
    pub kind: GroupHopKind,
}
