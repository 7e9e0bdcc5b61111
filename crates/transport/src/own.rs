//! Links between processes of one user, through a socket in a folder that only this user can enter.
//!
//! No key is proved. The folder's mode says which users can connect, and the kernel says at both
//! ends which user did: [`Listener::accept`](crate::Listener::accept) hands out only sockets of
//! this user or root.

use rustix::io::Errno;
use rustix::net::AddressFamily;

use crate::{Address, Error, Incoming, Link, Peer, PeerCredentials, Result, socket};

impl Incoming {
    /// The plain link of a Unix socket whose peer is served for being this user. Only for a
    /// listener at a path in a folder of mode 0700.
    ///
    /// # Errors
    /// [`Error::ApiMisuse`] for a socket of TCP, whose peer has proved nothing.
    pub fn into_own_link(self) -> Result<Link> {
        match self.peer {
            Peer::Local(_) => Ok(Link::new(self.socket, self.peer, None)),
            Peer::Tcp(_) => Err(Error::ApiMisuse { rule: "a peer over TCP proves the key" }),
        }
    }
}

/// Connects to a Unix socket of this user's, or of root's, without a key. Never waits.
///
/// # Errors
/// [`Error::Refused`] if no process listens there, [`Error::ForeignUser`], [`Error::ApiMisuse`] for
/// an address of TCP, [`Error::Io`] also where the listener's queue is full.
pub fn connect_own(address: &Address) -> Result<Link> {
    let Some(place) = socket::unix_address(address)? else {
        return Err(Error::ApiMisuse { rule: "a peer over TCP proves the key" });
    };
    let failed = |cause: Errno| match cause {
        Errno::CONNREFUSED | Errno::NOENT => Error::Refused { address: address.clone() },
        cause => Error::io(format!("connect to {address}"), cause),
    };
    let socket = socket::stream(AddressFamily::UNIX).map_err(failed)?;
    rustix::net::connect(&socket, &place).map_err(failed)?;
    let peer = Peer::Local(PeerCredentials::check(&socket)?);
    Ok(Link::new(socket, peer, None))
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use super::*;
    use crate::{Accepted, Listener};

    #[test]
    fn a_user_meets_itself_in_its_own_folder() {
        let folder = tempfile::tempdir().unwrap();
        let address: Address =
            format!("unix:{}", folder.path().join("s").display()).parse().unwrap();
        assert!(matches!(connect_own(&address), Err(Error::Refused { .. })));
        let mut listener = Listener::bind(&address).unwrap();
        let mut here = connect_own(&address).unwrap();
        let Accepted::Incoming(incoming) = listener.accept().unwrap() else {
            panic!("no connection")
        };
        let mut there = incoming.into_own_link().unwrap();
        assert_eq!(here.write_vectored(&[IoSlice::new(b"word")]).unwrap(), 4);
        let mut buffer = [0; 8];
        assert_eq!(there.read(&mut buffer).unwrap(), 4);
    }

    #[test]
    fn no_peer_is_served_by_tcp_without_a_key() {
        let mut listener = Listener::bind(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.address().clone();
        assert!(matches!(connect_own(&address), Err(Error::ApiMisuse { .. })));
        let _caller = std::net::TcpStream::connect(("127.0.0.1", address.port().unwrap())).unwrap();
        let Accepted::Incoming(incoming) = listener.accept().unwrap() else {
            panic!("no connection")
        };
        assert!(matches!(incoming.into_own_link(), Err(Error::ApiMisuse { .. })));
    }
}
