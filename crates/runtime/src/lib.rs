//! One thread and one level-triggered loop that drive one node; the owner of the clock. Filters
//! that are slow or foreign run on threads of their own.
//!
//! The principal type is [`Driver`]: it lends bytes to the node and carries out what the node
//! decides, for the front-end and the back-end library as for a communication process ([`serve`]).
//! A turn of the loop waits, reads all links that are ready, and ends with one gathered write per
//! link that has something to say.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod answer_time;
mod attach;
mod attempt;
mod client_limit;
mod clock;
mod driver;
mod environment;
mod error;
mod failure;
mod group;
mod invitation;
mod journal;
mod links;
mod plan;
mod processes;
mod release;
mod remote;
mod serve;
mod spin;
mod token;
mod transport_kind;
mod visitor;
mod workers;

pub use attach::{Attachment, ParentLink, key_from_environment};
pub use clock::clock;
pub use driver::Driver;
pub use environment::{
    ENCRYPTION_VARIABLE, INTERFACE_VARIABLE, KEY_VARIABLE, LOG_FILE_VARIABLE, LOG_VARIABLE,
    PARENT_VARIABLE, RANK_VARIABLE,
};
pub use error::RuntimeError;
pub use group::{
    GroupDriver, GroupEvent, GroupOptions, GroupQuestion, TracedMember, ask_group, trace_member,
};
pub use plan::{BackEndProgram, JoinPlan, Plan, Reach, RemoteOptions, TreeOptions};
pub use serve::{join_until, serve, serve_until};
pub use transport_kind::TransportKind;
pub use visitor::Visitor;
