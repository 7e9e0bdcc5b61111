//! A deterministic simulator: the real [`sapwood_node::Node`] of every process of a tree, on a
//! virtual clock, with links that are slow, cut and silent, and processes that crash and stop.
//!
//! A run is a seed. The seed draws everything: the shape of the tree, its streams, what they carry,
//! and which faults strike when. The same seed gives the same run on every machine. An oracle, which
//! knows what was sent and nothing of how nodes work, judges every answer and the state at the end.
//!
//! The crate has no clock, no thread and no randomness of its own; the `sapwood sim` command counts
//! real time and uses the cores.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod chance;
pub mod scale;

pub use chance::Chance;
