//! What a process tells of itself.

pub(crate) mod accounting;
pub(crate) mod telemetry;
