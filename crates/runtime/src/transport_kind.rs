//! What the links of a tree are made of.
//!
//! A process takes connections as its plan says (`Driver::listen`, `Driver::listen_address`);
//! whether a link on one host is in shared memory its two ends agree on in their handshake
//! (`sapwood_transport::LinkTerms`).

use serde::{Deserialize, Serialize};

/// What the links of a tree are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransportKind {
    /// Shared memory within a host, as [`TransportKind::Shm`], and TCP between hosts.
    #[default]
    Automatic,
    /// Unix-domain sockets.
    Unix,
    /// TCP.
    Tcp,
    /// Shared memory between processes of one user, which begins with a Unix-domain socket and
    /// remains one where a process cannot share memory.
    Shm,
}
