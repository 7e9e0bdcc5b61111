//! The tests of this crate, in one program.

mod frozen;
mod hop_scopes;
mod hops;
mod partial_waits;
mod scopes;
mod settling;
mod trees;
mod verdicts;
