//! What one turn of the node shares between all stages: time, links, memory and outputs.

pub(crate) mod clock_skew;
pub(crate) mod counted;
pub(crate) mod links;
