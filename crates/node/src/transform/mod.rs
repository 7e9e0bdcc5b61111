//! Filters: what becomes of complete waves, in the node's own turn or offloaded to a thread.

pub(crate) mod back_end_filters;
pub(crate) mod chain;
pub(crate) mod emissions;
pub(crate) mod fairness;
pub(crate) mod job;
pub(crate) mod offload;
pub(crate) mod pending_replies;
pub(crate) mod route;
pub(crate) mod synchronisation;
