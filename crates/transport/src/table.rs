//! Taking over memory files that local programs offer.
//!
//! A program connects to an abstract sequenced-packet socket and sends one packet: a hello of
//! [`TABLE_HELLO_BYTES`] bytes together with one descriptor, or with a second one for its control
//! page, or with a third one for its event file. What the hello means is the caller's matter. The
//! connection stays open: its end tells that the program has ended.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::{Error, PeerCredentials, Result};

/// The length of the hello, in bytes.
pub const TABLE_HELLO_BYTES: usize = 64;

/// How many connections the kernel holds for us.
const BACKLOG: i32 = 1024;
/// How many descriptors of one packet are looked at; the kernel itself closes any others.
const DESCRIPTORS_MAX: usize = 4;

/// The socket at which tables are offered. Non-blocking.
#[derive(Debug)]
pub struct TableListener {
    socket: OwnedFd,
}

/// What [`TableListener::accept`] found.
#[derive(Debug)]
pub enum TableAccepted {
    /// A local program of this user.
    Peer(TablePeer),
    /// No connection is waiting.
    Empty,
    /// A connection of a foreign user was closed unread. More may wait.
    ForeignUser(PeerCredentials),
    /// No descriptor or memory is left: take the listener out of the poller for a while.
    Exhausted,
}

/// A connected local program.
#[derive(Debug)]
pub struct TablePeer {
    socket: OwnedFd,
    credentials: PeerCredentials,
}

/// What a program sent.
#[derive(Debug)]
pub struct TableOffer {
    /// The program's description of its table.
    pub hello: [u8; TABLE_HELLO_BYTES],
    /// The memory file, or an ordinary one, unchecked:
    /// [`SharedTable::open`](crate::SharedTable::open) checks it.
    pub descriptor: OwnedFd,
    /// The memory file of its control page, unchecked, if it has one:
    /// [`ControlPage::map`](crate::ControlPage::map) checks it.
    pub control: Option<OwnedFd>,
    /// The same of its events, unchecked, if it has one:
    /// [`SharedTable::open`](crate::SharedTable::open) checks it.
    pub events: Option<OwnedFd>,
}

impl TableListener {
    /// Listens at an abstract name (without `@`).
    ///
    /// # Errors
    /// [`Error::Io`] naming it if the name is taken, empty or longer than 107 bytes.
    pub fn bind(name: &str) -> Result<Self> {
        let failed = |cause| Error::io(format!("listen for tables at @{name}"), cause);
        if name.is_empty() {
            // The kernel would choose a name that no other process learns.
            return Err(failed(Errno::INVAL));
        }
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(failed)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
                .map_err(failed)?;
        rustix::net::bind(&socket, &address).map_err(failed)?;
        rustix::net::listen(&socket, BACKLOG).map_err(failed)?;
        Ok(Self { socket })
    }

    /// Takes the next program, never blocking, and checks its user before it is read.
    ///
    /// # Errors
    /// [`Error::Io`] if the listener is broken.
    pub fn accept(&self) -> Result<TableAccepted> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = match rustix::net::accept_with(&self.socket, flags) {
            Ok(socket) => socket,
            Err(Errno::WOULDBLOCK | Errno::INTR | Errno::CONNABORTED) => {
                return Ok(TableAccepted::Empty);
            }
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                return Ok(TableAccepted::Exhausted);
            }
            Err(cause) => return Err(Error::io("accept a program's table", cause)),
        };
        let credentials = PeerCredentials::of(&socket)?;
        if !credentials.are_allowed_by(rustix::process::geteuid().as_raw()) {
            return Ok(TableAccepted::ForeignUser(credentials));
        }
        Ok(TableAccepted::Peer(TablePeer { socket, credentials }))
    }
}

impl AsFd for TableListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl TablePeer {
    /// Connects to a listener of this user at an abstract name and offers a memory file. The end of
    /// the connection ([`is_closed`](Self::is_closed)) tells when the listener is done with it.
    ///
    /// # Errors
    /// [`Error::Io`] if nothing listens there, or it is of another user.
    pub fn offer(
        name: &str,
        hello: &[u8; TABLE_HELLO_BYTES],
        descriptor: BorrowedFd<'_>,
    ) -> Result<Self> {
        let failed = |cause| Error::io(format!("offer a memory file at @{name}"), cause);
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(failed)?;
        let flags = SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
                .map_err(failed)?;
        rustix::net::connect(&socket, &address).map_err(failed)?;
        let credentials = PeerCredentials::of(&socket)?;
        if !credentials.are_allowed_by(rustix::process::geteuid().as_raw()) {
            return Err(failed(Errno::PERM));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor];
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let parts = [IoSlice::new(hello)];
        rustix::net::sendmsg(&socket, &parts, &mut control, SendFlags::NOSIGNAL).map_err(failed)?;
        Ok(Self { socket, credentials })
    }

    /// The program's process and user.
    #[must_use]
    pub fn credentials(&self) -> PeerCredentials {
        self.credentials
    }

    /// Receives the offer, never blocking; `None` if it has not come yet.
    ///
    /// # Errors
    /// [`Error::InvalidTable`] if the packet is not one hello with one to three descriptors (every
    /// descriptor that came with it is closed) or the program has closed; then drop this peer.
    pub fn receive(&mut self) -> Result<Option<TableOffer>> {
        let invalid = |problem| Err(Error::InvalidTable { problem });
        let mut hello = [0_u8; TABLE_HELLO_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = match rustix::net::recvmsg(
            &self.socket,
            &mut [IoSliceMut::new(&mut hello)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Ok(received) => received,
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(None),
            Err(cause) => return Err(Error::io("receive a program's table", cause)),
        };
        let mut descriptors = Vec::with_capacity(DESCRIPTORS_MAX);
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        if received.bytes == 0 && descriptors.is_empty() {
            return invalid("the program closed before it offered one");
        }
        if received.bytes != TABLE_HELLO_BYTES || received.flags.contains(ReturnFlags::TRUNC) {
            return invalid("its hello is not of 64 bytes");
        }
        if !(1..=3).contains(&descriptors.len()) || received.flags.contains(ReturnFlags::CTRUNC) {
            return invalid("its hello came with none or too many descriptors");
        }
        let mut descriptors = descriptors.into_iter();
        let first = descriptors.next();
        let (control, events) = (descriptors.next(), descriptors.next());
        Ok(first.map(|descriptor| TableOffer { hello, descriptor, control, events }))
    }

    /// Whether the program has ended or closed the connection, never blocking. Anything that it
    /// sends after its offer is thrown away, one packet a call.
    #[must_use]
    pub fn is_closed(&mut self) -> bool {
        let mut ignored = [0_u8; 1];
        match rustix::net::recv(&self.socket, &mut ignored, RecvFlags::DONTWAIT) {
            Ok((bytes, _)) => bytes == 0,
            Err(Errno::WOULDBLOCK | Errno::INTR) => false,
            Err(_) => true,
        }
    }
}

impl AsFd for TablePeer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
