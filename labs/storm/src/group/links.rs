//! Breaking connections of a member from within its process, which needs no privileges: it resets
//! its own sockets under its group, as a router or a firewall between two hosts would.
//!
//! Owns [`Order`] and [`Cut`]. The group's code has no part in it and is not told: both ends see
//! `ECONNRESET`, and what was under way is lost.

use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{connect_unspec, getpeername};
use sapwood::Rank;

/// The first words of the lines for it.
const RESET: &str = "reset";
const CUT: &str = "cut";
const LEAVE: &str = "leave";
/// What addresses of members on TCP begin with.
const TCP: &str = "tcp:";
/// The open descriptors of this process.
const DESCRIPTORS: &str = "/proc/self/fd";

/// What a member is told to do to its links: some of them, or all when it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Break one of them, chosen by this number.
    Reset { choice: u64 },
    /// Break those that lead to where a member listens, also new ones, for this time.
    Cut { peer: SocketAddr, time: Duration },
    /// Leave; to the member that carries this virtual node, if one is named.
    Leave { heir: Option<Rank> },
}

impl Order {
    /// As a line of a member's input.
    pub(super) fn line(self) -> String {
        match self {
            Self::Reset { choice } => format!("{RESET} {choice}\n"),
            Self::Cut { peer, time } => format!("{CUT} {} {peer}\n", time.as_millis()),
            Self::Leave { heir: None } => format!("{LEAVE}\n"),
            Self::Leave { heir: Some(heir) } => format!("{LEAVE} {heir}\n"),
        }
    }

    /// Reads such a line.
    pub(super) fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        match words.next()? {
            RESET => Some(Self::Reset { choice: words.next()?.parse().ok()? }),
            CUT => {
                let time = Duration::from_millis(words.next()?.parse().ok()?);
                Some(Self::Cut { peer: words.next()?.parse().ok()?, time })
            }
            LEAVE => {
                let heir = words.next().map(str::parse).transpose().ok()?;
                Some(Self::Leave { heir })
            }
            _ => None,
        }
    }
}

/// Where a member listens, of its address.
pub(super) fn socket_address(address: &str) -> Option<SocketAddr> {
    address.strip_prefix(TCP)?.parse().ok()
}

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
    fn a_line_is_read_as_it_was_written() {
        let peer = socket_address("tcp:127.0.0.1:4711").unwrap();
        let orders = [
            Order::Reset { choice: u64::MAX },
            Order::Cut { peer, time: Duration::from_millis(30) },
            Order::Leave { heir: None },
            Order::Leave { heir: Some(3) },
        ];
        for order in orders {
            assert_eq!(Order::read(&order.line()), Some(order));
        }
        assert_eq!(Order::read("reset"), None);
        assert_eq!(Order::read("cut 3 nowhere"), None);
        assert_eq!(Order::read("leave x"), None, "it would leave to any");
        assert_eq!(socket_address("unix:/tmp/member"), None);
    }

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
