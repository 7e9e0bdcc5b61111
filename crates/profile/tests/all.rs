//! The tests of this crate, in one program.

mod codec;
mod deltas;
mod harness;
mod parts;
mod tables;
mod trees;
