//! Packets that leave: to the parent, to children, or to the application.

pub(crate) mod packets;
