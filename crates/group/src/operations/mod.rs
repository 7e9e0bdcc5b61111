//! Transfers down a tree, reductions up a tree, and the calls of the application that are made of
//! them.

mod agreement;
mod call;
mod combine;
mod deliver;
mod finished;
mod fold;
mod lane;
mod open;
mod part;
mod repair;
mod result;

pub(crate) use call::Pending;
pub use combine::{Element, Operation, contributions};
pub(crate) use finished::Finished;
pub(crate) use fold::Fold;
pub(crate) use lane::Lane;
