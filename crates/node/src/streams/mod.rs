//! The streams that are open at a node.

pub(crate) mod reclaim;
pub(crate) mod stream;
pub(crate) mod table;
