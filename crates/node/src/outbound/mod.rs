//! Packets that leave: to the parent, to children, or to the application.

pub(crate) mod acknowledgement;
pub(crate) mod packets;
pub(crate) mod sending;
