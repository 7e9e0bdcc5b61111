//! The tests of this crate, in one program.

mod harness;
mod native;
mod wasm;
