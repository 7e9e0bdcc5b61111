//! The peer of a connection, and whether a local peer is permitted.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use crate::{Error, Result};

/// The other end of a connection, for messages to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A process of this machine over a Unix socket.
    Local(PeerCredentials),
    /// A TCP end.
    Tcp(SocketAddr),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(who) => write!(f, "local process {} of user {}", who.process, who.user),
            Self::Tcp(address) => write!(f, "tcp peer {address}"),
        }
    }
}

/// What the kernel knows of a Unix socket's other end (`SO_PEERCRED`). It cannot be forged by an
/// ordinary user; it is that of the moment of `connect`, `listen` or `socketpair`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Process id, or 0 if that process is in a foreign process namespace.
    pub process: i32,
    /// Effective user id.
    pub user: u32,
}

impl PeerCredentials {
    /// Reads the credentials of a connected Unix socket's other end.
    ///
    /// # Errors
    /// [`Error::Io`] if `socket` is no Unix socket.
    pub fn of(socket: impl AsFd) -> Result<Self> {
        let found = rustix::net::sockopt::socket_peercred(socket)
            .map_err(|cause| Error::io("read a socket's peer credentials", cause))?;
        let process = rustix::process::Pid::as_raw(Some(found.pid));
        Ok(Self { process, user: found.uid.as_raw() })
    }

    /// Whether a process of user `own_user` serves such a peer: the same user, or root.
    #[must_use]
    pub fn are_allowed_by(self, own_user: u32) -> bool {
        self.user == own_user || self.user == 0
    }

    /// Reads and checks in one step, against this process's effective user.
    ///
    /// # Errors
    /// [`Error::ForeignUser`] if the peer may not be served; [`Error::Io`] as in [`Self::of`].
    pub fn check(socket: impl AsFd) -> Result<Self> {
        let found = Self::of(socket)?;
        if found.are_allowed_by(rustix::process::geteuid().as_raw()) {
            Ok(found)
        } else {
            Err(Error::ForeignUser { uid: found.user })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_user_and_root_are_served() {
        let peer = |user| PeerCredentials { process: 1, user };
        assert!(peer(1000).are_allowed_by(1000));
        assert!(peer(0).are_allowed_by(1000));
        assert!(!peer(1001).are_allowed_by(1000));
        assert!(!peer(65534).are_allowed_by(0));
    }

    #[test]
    fn a_socket_pair_shows_this_process() {
        let (one, _two) = std::os::unix::net::UnixStream::pair().unwrap();
        let found = PeerCredentials::check(&one).unwrap();
        assert_eq!(found.process, std::process::id() as i32);
    }
}
