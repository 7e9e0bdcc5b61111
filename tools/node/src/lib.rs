//! The program `sapwood-node`, for a program like it with further filters: [`node::run`] with
//! another registry.

pub mod node;
