//! What a death, a lost link or a late packet costs, and how it is made good.

pub(crate) mod adoption;
pub(crate) mod orphan;
pub(crate) mod replay;
pub(crate) mod replica;
pub(crate) mod resumption;
pub(crate) mod switch;
