//! The tests of this crate, in one program.

mod advice;
mod group_trials;
mod groups;
mod mutations;
mod runs;
