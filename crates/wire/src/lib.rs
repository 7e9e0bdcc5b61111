//! The only encoder and decoder: frames, control messages and the limits of both.
//!
//! A link carries [frames](frame): packets, chunks of large packets, and [`Control`] messages.
//! Every length is checked against a [limit](limits) before anything is allocated, and a frame that
//! is not exactly right is an error of the peer, never a panic here. `docs/wire.md` has the same
//! drawings.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bounds;
mod cause;
mod control;
mod error;
pub mod frame;
pub mod limits;
mod name;

pub use cause::Cause;
pub use control::{
    Claim, Control, FilterRequest, Policy, ProbeId, Ranges, RecoveryTerms, StreamRequest, WaitRule,
};
pub use error::WireError;
pub use frame::{
    Frame, PREFIX_BYTES, decode, destinations_of, encode_control, encode_head, encode_packet,
    extend_run, frame_length, is_control, may_run, run_key, run_waves_max,
};
pub use name::control_name;

/// Version of the wire format; peers must agree on it.
pub const WIRE_VERSION: u16 = 5;
