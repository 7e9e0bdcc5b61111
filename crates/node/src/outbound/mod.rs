//! Packets that leave: to the parent, to children, or to the application.

pub(crate) mod acknowledgement;
mod answer;
pub(crate) mod packets;
pub(crate) mod sending;
