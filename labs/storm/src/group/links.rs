//! Breaking connections of a member from within its process, which needs no privileges: it resets
//! its own sockets under its group, as a router or a firewall between two hosts would.
//!
//! Owns [`Cut`]. The group's code has no part in it and is not told: both ends see `ECONNRESET`,
//! and what was under way is lost.

use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{connect_unspec, getpeername};

/// The open descriptors of this process.
const DESCRIPTORS: &str = "/proc/self/fd";

/// Links to one member that are broken until a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    peer: SocketAddr,
    until: Instant,
    broken: usize,
}

impl Cut {
    /// Begins it.
    pub(super) fn new(peer: SocketAddr, time: Duration) -> Self {
        let mut cut = Self { peer, until: Instant::now() + time, broken: 0 };
        cut.keep();
        cut
    }

    /// Breaks what leads there now.
    pub(super) fn keep(&mut self) {
        let peer = self.peer;
        let there = connections().into_iter().filter(|connection| connection.peer == peer);
        self.broken += there.filter(Connection::reset).count();
    }

    /// Whether the time is over.
    pub(super) fn is_over(&self) -> bool {
        self.until <= Instant::now()
    }

    /// How many connections it has broken.
    pub(super) fn broken(&self) -> usize {
        self.broken
    }
}

/// Breaks one connection of this process; gives how many that were, since there may be none.
pub(super) fn reset_one(choice: u64) -> usize {
    let connections = connections();
    let at = choice.checked_rem(connections.len() as u64).unwrap_or(0) as usize;
    connections.get(at).map_or(0, |connection| usize::from(connection.reset()))
}

/// A connected socket of this process, by a descriptor of its own.
struct Connection {
    socket: OwnedFd,
    peer: SocketAddr,
}

impl Connection {
    /// That of a descriptor, by a duplicate of a number from `above` on.
    fn of(number: RawFd, above: RawFd) -> Option<Self> {
        if number < 0 {
            return None;
        }
        // SAFETY: the number is duplicated and not kept. If its owner has closed it meanwhile, that
        // fails, or gives another open file of this process, whose peer is looked at below.
        let lent = unsafe { BorrowedFd::borrow_raw(number) };
        let socket = fcntl_dupfd_cloexec(lent, above).ok()?;
        let peer = SocketAddr::try_from(getpeername(&socket).ok()??).ok()?;
        Some(Self { socket, peer })
    }

    /// Linux sends a reset for a socket that is to have no peer, and drops what waits in it.
    fn reset(&self) -> bool {
        connect_unspec(&self.socket).is_ok()
    }
}

fn connections() -> Vec<Connection> {
    let entries = std::fs::read_dir(DESCRIPTORS).into_iter().flatten().flatten();
    // All numbers first: duplicates would be listed as well. One of them is that of the folder,
    // which is closed by then, so that no duplicate may have it.
    let numbers: Vec<RawFd> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let above = numbers.iter().max().map_or(0, |most| most + 1);
    numbers.into_iter().filter_map(|number| Connection::of(number, above)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn both_ends_of_a_cut_link_see_a_reset_and_others_do_not() {
        let listeners = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let mut ends = listeners.each_ref().map(|listener| {
            let dialled = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (dialled, listener.accept().unwrap().0)
        });
        let cut = Cut::new(listeners[0].local_addr().unwrap(), Duration::ZERO);
        assert_eq!((cut.broken(), cut.is_over()), (1, true));
        let [(dialled, accepted), (other, of_other)] = &mut ends;
        for end in [dialled, accepted] {
            let seen = end.read(&mut [0]).map_err(|error| error.kind());
            assert_eq!(seen, Err(ErrorKind::ConnectionReset));
        }
        other.write_all(b"x").unwrap();
        let mut got = [0];
        of_other.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"x");
    }
}
