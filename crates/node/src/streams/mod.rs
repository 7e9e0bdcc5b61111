//! The streams that are open at a node.

pub(crate) mod absentees;
pub(crate) mod asked;
pub(crate) mod faults;
mod run;
pub(crate) mod straggler;
pub(crate) mod stream;
pub(crate) mod table;
mod validation;
