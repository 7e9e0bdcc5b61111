//! The state machine of one member of a group: collectives between peers, any member as root, over
//! trees that measure the network themselves (after Saito, Taura and Chikayama, "Collective
//! operations for wide-area message passing systems using adaptive spanning trees").
//!
//! **Give the [`Member`] one [`Input`], then drain [`Member::poll_output`] until it gives
//! nothing.** It does no I/O and reads no clock; the same inputs give the same outputs. It talks
//! in whole [messages](message), which a link carries in order and without loss while it is up.
//!
//! Members carry *virtual nodes*, and messages are addressed to those. Each message that goes down
//! a tree names the virtual nodes that are to be reached through its receiver, which answers for
//! exactly these: members need not agree on which members the group has or on any tree for a
//! transfer to reach each virtual node once. `docs/groups-design.md` has the rules and what they
//! were measured to do.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod error;
mod hops;
mod identity;
pub mod limits;
pub mod measure;
mod member;
pub mod members;
pub mod message;
mod mutation;
pub mod operations;
mod payload;
mod random;
pub mod status;
pub mod trees;

pub use error::{GroupError, Reason, Refusal};
pub use hops::{
    GROUP_HOPS_MAX, GroupHop, GroupHopCursor, GroupHopKind, GroupHopOperation, GroupHopQuestion,
    MemberHops,
};
pub use identity::{CastId, FoldId, MILLISECOND, MemberId, Request, SECOND, Time};
pub use member::{Answer, Call, Config, Event, Input, Member, Output};
pub use message::{GroupId, Message};
#[cfg(feature = "mutations")]
pub use mutation::Mutation;
pub use operations::{
    Definition, Element, FoldFailed, GraceDelay, GraceKey, Operation, OperationId, PartCount,
    ReduceCounts,
};
pub use payload::Payload;
pub use trees::TreeKind;
