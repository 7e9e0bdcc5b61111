//! Links between real nodes in one process: bounded pipes in memory, from which nodes read and into
//! which they write as they would with sockets.
//!
//! This crate decides nothing. The caller owns the nodes and the clock, and chooses which link
//! moves next, how many bytes, and what breaks: the stories of `sapwood-node` choose by a seed, the
//! fuzz targets by their input, and the simulator by virtual time. The first two use a whole
//! [`Network`]; the simulator has wires of its own, whose bytes are late, made of the same [`Pipe`]
//! and moved by the same [`receive`] and [`gather`].

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod network;
mod pipe;
mod transfer;

pub use network::{Network, SIDES, Side};
pub use pipe::{Pipe, Speed, Time};
pub use transfer::{gather, receive, transfer_buffer};
