//! The sans-IO state machine of one process in the tree, whatever its role.
//!
//! **Change the node once (an [`Input`], or a call of the application), then drain
//! [`Node::poll_output`] until it gives nothing; only then change it again.** The node does no I/O
//! and reads no clock: bytes and the time come in, bytes and decisions come out, and the same
//! inputs give the same outputs.
//!
//! A packet on its way up passes [`Inbox`](sapwood_link::Inbox) (bytes become frames), `inbound`
//! (which stream, which child), `wave` (held until its wave is complete), `transform` (the stream's
//! filters), and [`Outbox`](sapwood_link::Outbox) (frames become bytes). `docs/packet-path.md`
//! follows one.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod absence;
mod accounting;
mod acknowledgement;
mod adoption;
mod apart;
mod away;
mod control;
mod decision;
mod delivery;
mod departure;
mod error;
mod fairness;
mod file;
mod guard;
mod guard_above;
mod guests;
mod head;
mod inbound;
mod input;
mod job;
mod late;
mod link;
mod local;
mod membership;
mod mutation;
mod node;
mod orphan;
mod outbound;
mod output;
mod own;
mod pulse;
mod reclaim;
mod record;
mod recovery;
mod replica;
mod replies;
mod resumption;
mod run;
mod skew;
mod slot;
mod stream;
mod telemetry;
mod time;
mod transform;
mod visitor;
mod warrant;
mod wave;

pub use apart::FILTER_LIMIT;
pub use delivery::{Answer, Delivery, Missing};
pub use error::NodeError;
pub use guests::{GUEST_RANKS_BEGIN, GUEST_RANKS_PER_PROCESS};
pub use input::Input;
pub use job::Job;
pub use link::LinkId;
pub use local::{Direction, StreamSpec};
pub use membership::{AttachPoint, ChildPlan};
#[cfg(feature = "mutations")]
pub use mutation::Mutation;
pub use node::{Node, Role, Settings};
pub use output::{AffectedWaves, Event, Output};
pub use record::{LINK_COLUMNS, LinkRecord, NODE_COLUMNS, NodeRecord, Records, TELEMETRY};
pub use recovery::Recovery;
pub use sapwood_link::{GATHER_PARTS_MAX, MemoryAdvice};
pub use sapwood_wire::Policy;
pub use time::Instant;
