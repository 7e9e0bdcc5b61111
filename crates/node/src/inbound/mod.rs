//! From bytes to frames, and from frames to control messages and packets.

pub(crate) mod control;
pub(crate) mod frames;
