//! The streams that are open at a node.

pub(crate) mod absentees;
mod arrival;
pub(crate) mod faults;
pub(crate) mod hops;
mod run;
pub(crate) mod straggler;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod telemetry_wave;
mod validation;
