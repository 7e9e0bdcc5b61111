//! Where connections arrive.
//!
//! A [`Listener`] hands out [`Incoming`] sockets; it neither proves the key (that is
//! [`Handshake`](crate::Handshake)) nor waits (that is [`Poller`](crate::Poller)).

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags};

use crate::address::Form;
use crate::{Address, Error, Peer, PeerCredentials, Result, socket};

/// How many connections the kernel holds for us (it may hold fewer, `net.core.somaxconn`).
const BACKLOG: i32 = 1024;
/// The first and the longest pause after the process ran out of descriptors or memory.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_LONGEST: Duration = Duration::from_secs(1);
/// How many connections that died in the backlog are passed over in one call.
const STILLBORN_MAX: usize = 16;

/// A bound, listening, non-blocking socket.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    address: Address,
    file: Option<SocketFile>,
    pause: Duration,
}

/// What [`Listener::accept`] found.
#[derive(Debug)]
pub enum Accepted {
    /// A connection. It has proved nothing but, on a Unix socket, its user.
    Incoming(Incoming),
    /// No connection is waiting.
    Empty,
    /// A connection of a foreign user was closed unread. More may wait.
    ForeignUser(PeerCredentials),
    /// The process has no descriptor or memory left. The connections stay in the backlog: take
    /// the listener out of the poller, or it spins, and come back after this long.
    Pause(Duration),
}

/// An accepted socket whose peer has proved nothing yet.
#[derive(Debug)]
pub struct Incoming {
    pub(crate) socket: OwnedFd,
    pub(crate) peer: Peer,
}

impl Listener {
    /// Binds and listens. TCP listens on the given interface only; port 0 lets the kernel choose.
    ///
    /// # Errors
    /// [`Error::Io`] naming the address if it is taken or not ours to use, and
    /// [`Error::UnresolvableHost`].
    pub fn bind(address: &Address) -> Result<Self> {
        let failed = |cause: Errno| Error::io(format!("listen at {address}"), cause);
        let (socket, address, file) = match socket::unix_address(address)? {
            Some(unix) => {
                let socket = socket::stream(AddressFamily::UNIX).map_err(failed)?;
                rustix::net::bind(&socket, &unix).map_err(failed)?;
                (socket, address.clone(), SocketFile::claim(address)?)
            }
            None => {
                let (socket, bound) = bind_tcp(address)?;
                (socket, bound, None)
            }
        };
        rustix::net::listen(&socket, BACKLOG).map_err(failed)?;
        Ok(Self { socket, address, file, pause: PAUSE_FIRST })
    }

    /// Where this listens, with the port that the kernel chose.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether its socket's file is where it was bound, so that it can be found. `None` if that is
    /// not known: it has no file, or the file system does not answer.
    #[must_use]
    pub fn has_its_file(&self) -> Option<bool> {
        self.file.as_ref()?.is_there()
    }

    /// Takes the next connection, never blocking. Call it when the poller says readable; once a
    /// turn or until [`Accepted::Empty`], as the caller likes.
    ///
    /// # Errors
    /// [`Error::Io`] if the listener itself is broken.
    pub fn accept(&mut self) -> Result<Accepted> {
        for _ in 0..STILLBORN_MAX {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match rustix::net::accept_with(&self.socket, flags) {
                Ok(socket) => {
                    self.pause = PAUSE_FIRST;
                    if let Some(accepted) = self.admit(socket)? {
                        return Ok(accepted);
                    }
                }
                Err(Errno::WOULDBLOCK) => return Ok(Accepted::Empty),
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    let pause = self.pause;
                    self.pause = (pause * 2).min(PAUSE_LONGEST);
                    return Ok(Accepted::Pause(pause));
                }
                Err(cause) if is_of_one_connection(cause) => {}
                Err(cause) => {
                    return Err(Error::io(format!("accept at {}", self.address), cause));
                }
            }
        }
        Ok(Accepted::Empty)
    }

    /// Checks the peer's credentials; `None` if the connection was closed before that.
    fn admit(&self, socket: OwnedFd) -> Result<Option<Accepted>> {
        let peer = if self.address.is_unix() {
            let who = PeerCredentials::of(&socket)?;
            if !who.are_allowed_by(rustix::process::geteuid().as_raw()) {
                return Ok(Some(Accepted::ForeignUser(who)));
            }
            Peer::Local(who)
        } else {
            let Some(address) = tcp_peer(&socket) else { return Ok(None) };
            socket::send_at_once(&socket)?;
            Peer::Tcp(address)
        };
        Ok(Some(Accepted::Incoming(Incoming { socket, peer })))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            file.remove();
        }
    }
}

impl Incoming {
    /// The peer that connected.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.peer
    }
}

impl AsFd for Incoming {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The TCP address of a connected socket's other end.
pub(crate) fn tcp_peer(socket: impl AsFd) -> Option<SocketAddr> {
    rustix::net::getpeername(socket).ok()??.try_into().ok()
}

/// The file of a path socket, which goes when its listener goes.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    process: u32,
}

impl SocketFile {
    /// Remembers the file just bound and closes it to other users, before any process can connect.
    fn claim(address: &Address) -> Result<Option<Self>> {
        let Form::Path(path) = address.form() else { return Ok(None) };
        let failed = |cause: std::io::Error| Error::io(format!("listen at {address}"), cause);
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(path, private).map_err(failed)?;
        let found = std::fs::symlink_metadata(path).map_err(failed)?;
        Ok(Some(Self {
            path: path.clone(),
            device: found.dev(),
            inode: found.ino(),
            process: std::process::id(),
        }))
    }

    /// Removes the file if it is still ours: a forked child's copy of the listener must not, and
    /// another process may have put its own socket there meanwhile.
    fn remove(&self) {
        if self.is_there() == Some(true) && self.process == std::process::id() {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Whether the path leads to this file, if that can be found out.
    fn is_there(&self) -> Option<bool> {
        match std::fs::symlink_metadata(&self.path) {
            Ok(found) => Some((found.dev(), found.ino()) == (self.device, self.inode)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(false),
            Err(_) => None,
        }
    }
}

/// Binds to the first of the host's addresses that is ours.
fn bind_tcp(address: &Address) -> Result<(OwnedFd, Address)> {
    let mut failure = None;
    for candidate in address.resolve()? {
        match bind_tcp_at(&candidate) {
            Ok((socket, bound)) => return Ok((socket, Address::from(bound))),
            Err(cause) => failure = Some(cause),
        }
    }
    let cause = failure.unwrap_or(Errno::ADDRNOTAVAIL);
    Err(Error::io(format!("listen at {address}"), cause))
}

fn bind_tcp_at(candidate: &SocketAddr) -> rustix::io::Result<(OwnedFd, SocketAddr)> {
    let family = if candidate.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket::stream(family)?;
    // On Linux this lets a port be used again while old connections linger, and no more.
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
    if candidate.is_ipv6() && candidate.ip().is_unspecified() {
        // All addresses means those of both families.
        rustix::net::sockopt::set_ipv6_v6only(&socket, false)?;
    }
    rustix::net::bind(&socket, candidate)?;
    let bound = rustix::net::getsockname(&socket)?.try_into()?;
    Ok((socket, bound))
}

/// Errors that `accept` passes on from a connection that died in the backlog (accept(2)).
fn is_of_one_connection(cause: Errno) -> bool {
    matches!(
        cause,
        Errno::INTR
            | Errno::CONNABORTED
            | Errno::PERM
            | Errno::PROTO
            | Errno::NETDOWN
            | Errno::NOPROTOOPT
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::HOSTUNREACH
            | Errno::OPNOTSUPP
            | Errno::NETUNREACH
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A path in a folder that is removed with the first, and its address.
    fn path_address() -> (tempfile::TempDir, PathBuf, Address) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let address = format!("unix:{}", path.display()).parse().unwrap();
        (folder, path, address)
    }

    #[test]
    fn a_path_socket_leaves_with_its_listener() {
        let (_folder, path, address) = path_address();
        let listener = Listener::bind(&address).unwrap();
        assert!(Listener::bind(&address).unwrap_err().to_string().contains("socket"));
        assert!(path.exists(), "a failed second listener does not take the first one's file");
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn a_listener_knows_whether_its_file_is_there() {
        let (folder, path, address) = path_address();
        let listener = Listener::bind(&address).unwrap();
        assert_eq!(listener.has_its_file(), Some(true));
        // The number of a file that is kept is given to no other.
        let aside = folder.path().join("aside");
        std::fs::rename(&path, &aside).unwrap();
        assert_eq!(listener.has_its_file(), Some(false));
        std::fs::write(&path, "").unwrap();
        assert_eq!(listener.has_its_file(), Some(false), "another's");
        std::fs::rename(&aside, &path).unwrap();
        assert_eq!(listener.has_its_file(), Some(true));
        let of_no_file = Listener::bind(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
        assert_eq!(of_no_file.has_its_file(), None);
    }

    #[test]
    fn the_kernel_chooses_a_port_and_the_listener_tells() {
        let mut listener = Listener::bind(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
        assert_ne!(listener.address().port(), Some(0));
        assert!(matches!(listener.accept().unwrap(), Accepted::Empty));
        let taken = Listener::bind(&listener.address().clone()).unwrap_err().to_string();
        assert!(taken.contains(&listener.address().to_string()), "{taken}");
    }
}
