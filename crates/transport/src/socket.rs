//! Making sockets the one way this crate makes them: close-on-exec, non-blocking, no Nagle delay.

use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::address::Form;
use crate::{Address, Error, Result};

/// A new stream socket. Non-blocking.
pub(crate) fn stream(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(family, SocketType::STREAM, flags, None)
}

/// The kernel's form of a Unix address; `None` for TCP.
pub(crate) fn unix_address(address: &Address) -> Result<Option<SocketAddrUnix>> {
    let made = match address.form() {
        Form::Abstract(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
        Form::Path(path) => SocketAddrUnix::new(path.as_path()),
        Form::Tcp { .. } => return Ok(None),
    };
    made.map(Some).map_err(|cause| Error::io(format!("use the address {address}"), cause))
}

/// Has small writes leave at once.
pub(crate) fn send_at_once(socket: impl AsFd) -> Result<()> {
    rustix::net::sockopt::set_tcp_nodelay(socket, true)
        .map_err(|cause| Error::io("switch off a TCP socket's delay", cause))
}
