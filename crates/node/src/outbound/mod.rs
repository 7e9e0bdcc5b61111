//! Packets that leave: to the parent, to children, or to the application.

pub(crate) mod acknowledgement;
mod answer;
mod credit;
pub(crate) mod faults;
pub(crate) mod packets;
pub(crate) mod sending;
