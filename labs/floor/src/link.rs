//! One connection between a parent and a child, blocking.
//!
//! Owns how an edge's two sockets are made (a Unix stream socket pair, or a TCP connection over
//! loopback with NODELAY) and the two transfers of the floor: read exactly, write all. Does not
//! know packets.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::str::FromStr;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Kind of socket of every edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// AF_UNIX stream sockets.
    Unix,
    /// TCP over 127.0.0.1, with NODELAY at both ends.
    Tcp,
}

impl FromStr for Transport {
    type Err = Error;

    fn from_str(text: &str) -> Result<Transport, Error> {
        match text {
            "unix" => Ok(Transport::Unix),
            "tcp" => Ok(Transport::Tcp),
            _ => Err(Error::Argument("the transport is unix or tcp")),
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Transport::Unix => "unix",
            Transport::Tcp => "tcp",
        })
    }
}

/// One end of an edge. Closed on exec; the launcher lifts that in the one child that inherits it.
#[derive(Debug)]
pub(crate) struct Link {
    socket: OwnedFd,
}

impl Link {
    pub(crate) fn new(socket: OwnedFd) -> Link {
        Link { socket }
    }

    /// Bounds every later read and write. Set only at the root: if the root gives up, its sockets
    /// close and everything below ends, so the nodes need not pay for a timer on each read.
    pub(crate) fn limit_waits(&self, deadline: Duration) -> io::Result<()> {
        sockopt::set_socket_timeout(&self.socket, sockopt::Timeout::Recv, Some(deadline))?;
        sockopt::set_socket_timeout(&self.socket, sockopt::Timeout::Send, Some(deadline))?;
        Ok(())
    }

    /// Fills the whole buffer: one system call when the packet is there at once.
    pub(crate) fn read_exact(&self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match rustix::io::read(&self.socket, &mut *buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => buffer = &mut buffer[read..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads what is there, up to the length of the buffer; waits if there is nothing.
    pub(crate) fn read_some(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::io::read(&self.socket, &mut *buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => return Ok(read),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes the whole buffer: one system call when the socket takes it at once.
    pub(crate) fn write_all(&self, mut buffer: &[u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match rustix::io::write(&self.socket, buffer) {
                Ok(written) => buffer = &buffer[written..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Makes the edges of one tree.
pub(crate) enum Edges {
    Unix,
    Tcp(TcpListener),
}

impl Edges {
    pub(crate) fn open(transport: Transport) -> io::Result<Edges> {
        Ok(match transport {
            Transport::Unix => Edges::Unix,
            Transport::Tcp => Edges::Tcp(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?),
        })
    }

    /// A new edge: the parent's end and the child's.
    pub(crate) fn pair(&self) -> io::Result<(Link, Link)> {
        match self {
            Edges::Unix => {
                let (parent, child) = UnixStream::pair()?;
                Ok((Link::new(parent.into()), Link::new(child.into())))
            }
            Edges::Tcp(listener) => {
                let child = TcpStream::connect(listener.local_addr()?)?;
                let own = child.local_addr()?;
                // Another process of this machine may connect to the port as well. Ours is in the
                // queue already, so the loop ends.
                let parent = loop {
                    let (parent, peer) = listener.accept()?;
                    if peer == own {
                        break parent;
                    }
                };
                parent.set_nodelay(true)?;
                child.set_nodelay(true)?;
                Ok((Link::new(parent.into()), Link::new(child.into())))
            }
        }
    }
}
