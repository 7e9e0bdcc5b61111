//! The way of operations through a group, as one member notes it: when its application called, when
//! parts and values came and went, and when the application had its answer.
//!
//! Nothing is noted until a question asks for it, and for as long as the question says: one test at
//! each message is what a group pays that is not traced. What is noted lies in a ring that
//! overwrites its oldest events; a reader learns how many it has missed. Readers keep their own
//! place in the ring, so that any number of them may read.
//!
//! Source: L. A. Bongo, O. J. Anshus, J. M. Bjorndalen, "Collective communication performance
//! analysis within the communication system", Euro-Par 2004.

mod event;
mod note;
mod ring;

pub use event::{GroupHop, GroupHopKind, GroupHopOperation};
pub(crate) use ring::HopRing;
pub use ring::{GROUP_HOPS_MAX, GroupHopCursor, GroupHopQuestion, MemberHops};
