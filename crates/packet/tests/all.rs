//! The tests of this crate, in one program.

mod rank_sets;
mod values;
