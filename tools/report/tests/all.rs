//! The tests of this crate, in one program.

mod files;
mod harness;
mod text;
