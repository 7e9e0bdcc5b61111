//! The tests of this package, in one program.

mod startup;
#[path = "../../../crates/launch/tests/surroundings/mod.rs"]
mod surroundings;
mod tree;
