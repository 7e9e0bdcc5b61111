//! The sans-IO state machine of one process in the tree, whatever its role.
//!
//! **Change the node once (an [`Input`], or a call of the application), then drain
//! [`Node::poll_output`] until it gives nothing; only then change it again.** The node does no I/O
//! and reads no clock: bytes and the time come in, bytes and decisions come out, and the same
//! inputs give the same outputs.
//!
//! A packet on its way up passes [`Inbox`](sapwood_link::Inbox) (bytes become frames), `inbound`
//! (which stream, which child), `waves` (held until its wave is complete), `emission` (through the
//! stream's filters), `outbound` and [`Outbox`](sapwood_link::Outbox) (frames become bytes).
//! `docs/packet-path.md` follows one. What each folder owns is in `docs/ARCHITECTURE.md`, and which
//! may use which in `xtask/layers.toml`.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod api;
mod emission;
mod inbound;
mod interface;
mod members;
mod node;
mod outbound;
mod recovery;
mod status;
mod streams;
mod transform;
mod turn;
mod waves;

pub use api::application::Application;
#[cfg(feature = "mutations")]
pub use interface::Mutation;
pub use interface::hop_waves::{
    ArrivalSums, ChildSums, HopWave, HopWaves, LastArrival, PartArrival, StreamSums,
};
pub use interface::hops::{
    HOP_EVENTS, HOP_EVENTS_MAX, HopEvent, HopForm, HopKind, HopQuestion, ProcessHops,
};
pub use interface::record::{
    LINK_COLUMNS, LinkRecord, NODE_COLUMNS, NodeRecord, Records, TELEMETRY,
};
pub use interface::{
    AffectedWaves, Answer, AttachPoint, ChildPlan, DYNAMIC_RANKS_BEGIN, DYNAMIC_RANKS_PER_PROCESS,
    Delivery, Direction, Event, Input, Instant, LinkId, Missing, NodeError, Output, Recovery, Role,
    Settings, StreamSpec,
};
pub use node::Node;
pub use sapwood_link::{GATHER_PARTS_MAX, MemoryAdvice};
pub use sapwood_wire::{Cause, Policy};
pub use transform::job::Job;
pub use transform::offload::FILTER_LIMIT;
