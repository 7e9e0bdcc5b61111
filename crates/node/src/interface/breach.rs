//! What a peer may not say.

use alloc::string::String;
use core::fmt;

/// A peer said what its link may not say. It reads on from "broke the protocol: sent".
#[derive(Debug)]
pub(crate) struct Breach(pub(crate) String);

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broke the protocol: sent {}", self.0)
    }
}

/// Gives the breach of having sent something, and why that is one.
macro_rules! breach {
    ($($words:tt)*) => { Err(Breach(alloc::format!($($words)*))) };
}
pub(crate) use breach;
