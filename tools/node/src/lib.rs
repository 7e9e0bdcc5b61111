//! The program `sapwood-node`, for those who need one with further filters: [`node::run`] with a
//! registry of their own.

pub mod node;
