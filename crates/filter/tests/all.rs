//! The tests of this crate, in one program.

mod folds;
mod forgeries;
mod harness;
mod sketches;
mod states;
mod stories;
mod trees;
