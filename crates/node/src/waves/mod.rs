//! The state of open waves: which child has sent, what it sent, and when a wave is complete.

pub(crate) mod absence;
pub(crate) mod deadline;
pub(crate) mod head;
pub(crate) mod open_wave;
pub(crate) mod permission;
pub(crate) mod replicas;
pub(crate) mod run;
pub(crate) mod slot;
pub(crate) mod table;
