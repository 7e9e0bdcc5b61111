//! What every child needs to connect to its parent.

use std::os::fd::BorrowedFd;

use sapwood_transport::{Address, Encryption, Key};

/// The part of the plan that is common to all children.
pub(crate) struct Invitation<'a> {
    /// Where their parent takes connections.
    pub(crate) listen_address: &'a Address,
    pub(crate) key: &'a Key,
    pub(crate) encryption: Encryption,
    /// The read end of the liveness pipe, for them to inherit.
    pub(crate) liveness_end: Option<BorrowedFd<'a>>,
}
