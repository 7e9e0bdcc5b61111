//! What the kernel counts of this host's TCP connections, asked over `NETLINK_SOCK_DIAG`, which
//! needs no privilege: those of the network namespace in which this process is.
//!
//! The layouts are those of `linux/netlink.h`, `linux/inet_diag.h` and `linux/tcp.h`; addresses and
//! ports are in the order of the network, all other numbers in that of the machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use crate::{Error, Result};

/// Connections of a host that are looked at, at most.
const CONNECTIONS_MAX: usize = 1 << 16;
/// A piece of an answer; the kernel fills at most as much at once.
const PIECE_BYTES: usize = 32 << 10;
/// The kernel answers while it is asked; what does not come is not waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

const HEADER_BYTES: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// A request for all that there are.
const REQUEST_DUMP: u16 = 0x301;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const ESTABLISHED: u8 = 1;
/// The attribute with the `tcp_info`, and where attributes begin.
const INFO: u16 = 2;
const ATTRIBUTES_AT: usize = 72;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;

/// What the kernel counts of one end of a connection, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounters {
    /// Microseconds in which it had data that the other end had not acknowledged.
    pub busy_us: u64,
    /// Of these, those in which the other end had no room for more.
    pub window_us: u64,
    /// Bytes that the other end has acknowledged.
    pub acked_bytes: u64,
    /// Bytes that wait to be sent for the first time, at this moment.
    pub unsent_bytes: u32,
}

/// One end of an established connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSocketState {
    /// Its own address.
    pub local: SocketAddr,
    /// That of the other end.
    pub remote: SocketAddr,
    /// The socket, as the links in `/proc/PID/fd` name it.
    pub inode: u32,
    /// What is counted.
    pub counters: TcpCounters,
}

/// The established connections of which `is_wanted` wants the socket.
///
/// # Errors
/// [`Error::Io`] where the kernel may not be asked, or does not count what is needed, and of a host
/// with too many connections.
pub fn tcp_sockets(mut is_wanted: impl FnMut(u32) -> bool) -> Result<Vec<TcpSocketState>> {
    let failed = |cause: Errno| Error::io("ask for the counters of TCP connections", cause);
    let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
    let diagnosis = Some(netlink::SOCK_DIAG);
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, diagnosis);
    let socket = socket.map_err(failed)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIMEOUT)).map_err(failed)?;
    let mut found = Vec::new();
    let mut seen = 0;
    for family in [AF_INET, AF_INET6] {
        let asked = ask(&socket, family, &mut |message: &[u8]| {
            seen += 1;
            if seen > CONNECTIONS_MAX {
                return Err(Errno::TOOBIG);
            }
            let inode = number(message, 68).ok_or(Errno::PROTO)?;
            if is_wanted(inode) {
                found.push(state(message, inode).ok_or(Errno::OPNOTSUPP)?);
            }
            Ok(())
        });
        match asked {
            // A system without IPv6.
            Err(Errno::NOENT) if family == AF_INET6 => {}
            asked => asked.map_err(failed)?,
        }
    }
    Ok(found)
}

/// Whether [`tcp_sockets`] will fail in this way again: it may not ask, or the kernel does not
/// count.
#[must_use]
pub fn is_lasting_refusal(error: &Error) -> bool {
    let lasting = [
        Errno::PERM,
        Errno::ACCESS,
        Errno::NOENT,
        Errno::NOSYS,
        Errno::OPNOTSUPP,
        Errno::PROTONOSUPPORT,
        Errno::AFNOSUPPORT,
    ];
    let Error::Io { cause, .. } = error else { return false };
    Errno::from_io_error(cause).is_some_and(|cause| lasting.contains(&cause))
}

/// Gives all connections of a family to `take`, as the kernel describes them.
fn ask(
    socket: &OwnedFd,
    family: u8,
    take: &mut dyn FnMut(&[u8]) -> std::result::Result<(), Errno>,
) -> std::result::Result<(), Errno> {
    rustix::net::send(socket, &request(family), SendFlags::empty())?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = match rustix::net::recv(socket, &mut piece[..], RecvFlags::empty()) {
            Ok((count, _)) => count,
            Err(Errno::INTR) => continue,
            Err(cause) => return Err(cause),
        };
        let mut rest = piece.get(..count).unwrap_or_default();
        if rest.is_empty() {
            return Err(Errno::PROTO);
        }
        while let Some(length) = number(rest, 0) {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let message = rest.get(HEADER_BYTES..length).ok_or(Errno::PROTO)?;
            match short(rest, 4) {
                Some(DONE) => return ended(message),
                Some(ERROR) => return Err(refusal(message)),
                Some(SOCK_DIAG_BY_FAMILY) => take(message)?,
                _ => {}
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

/// How an answer has ended: with a negative code if it is not whole.
fn ended(message: &[u8]) -> std::result::Result<(), Errno> {
    match number(message, 0) {
        Some(code) if code.cast_signed() < 0 => Err(refusal(message)),
        _ => Ok(()),
    }
}

/// Why the kernel does not answer; its code is negative.
fn refusal(message: &[u8]) -> Errno {
    let code = number(message, 0).map(|code| code.wrapping_neg().cast_signed());
    let code = code.filter(|code| (1..4096).contains(code));
    code.map_or(Errno::PROTO, Errno::from_raw_os_error)
}

/// Asks for all established TCP connections of a family, with the `tcp_info` of each.
fn request(family: u8) -> [u8; REQUEST_BYTES] {
    let mut request = [0; REQUEST_BYTES];
    let length = u32::try_from(REQUEST_BYTES).unwrap_or_default();
    request[..4].copy_from_slice(&length.to_ne_bytes());
    request[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    request[16..19].copy_from_slice(&[family, IPPROTO_TCP, 1 << (INFO - 1)]);
    request[20..24].copy_from_slice(&(1_u32 << ESTABLISHED).to_ne_bytes());
    request
}

/// An `inet_diag_msg` with its attributes.
fn state(message: &[u8], inode: u32) -> Option<TcpSocketState> {
    let family = *message.first()?;
    let address = |port_at: usize, at: usize| {
        let port = u16::from_be_bytes(*message.get(port_at..)?.first_chunk()?);
        let bytes = message.get(at..)?;
        let address = match family {
            AF_INET => IpAddr::from(Ipv4Addr::from(*bytes.first_chunk::<4>()?)),
            AF_INET6 => IpAddr::from(Ipv6Addr::from(*bytes.first_chunk::<16>()?)),
            _ => return None,
        };
        // Of a socket for both versions.
        Some(SocketAddr::new(address.to_canonical(), port))
    };
    let (local, remote) = (address(4, 8)?, address(6, 24)?);
    let mut rest = message.get(ATTRIBUTES_AT..)?;
    while let (Some(length), Some(kind)) = (short(rest, 0), short(rest, 2)) {
        let value = rest.get(4..usize::from(length))?;
        if kind == INFO {
            return Some(TcpSocketState { local, remote, inode, counters: counters(value)? });
        }
        rest = rest.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

/// What is needed of a `tcp_info`; none of a kernel that does not count it.
fn counters(info: &[u8]) -> Option<TcpCounters> {
    let long = |at: usize| Some(u64::from_ne_bytes(*info.get(at..)?.first_chunk()?));
    Some(TcpCounters {
        acked_bytes: long(120)?,
        unsent_bytes: number(info, 144)?,
        busy_us: long(168)?,
        window_us: long(176)?,
    })
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    /// A message on a connection with two attributes, of which the second is its `tcp_info`.
    fn message(family: u8, info_bytes: usize) -> Vec<u8> {
        let mut message = vec![0; ATTRIBUTES_AT];
        message[0] = family;
        message[4..8].copy_from_slice(&[0x12, 0x34, 0x00, 0x50]);
        let (local, remote) = match family {
            AF_INET => (vec![10, 0, 0, 1], vec![10, 0, 0, 2]),
            _ => {
                let mapped = |last| [&[0; 10][..], &[0xff, 0xff, 10, 0, 0, last]].concat();
                (mapped(1), mapped(2))
            }
        };
        message[8..8 + local.len()].copy_from_slice(&local);
        message[24..24 + remote.len()].copy_from_slice(&remote);
        message[68..72].copy_from_slice(&77_u32.to_ne_bytes());
        // Five bytes, and three that fill up.
        message.extend(5_u16.to_ne_bytes());
        message.extend(8_u16.to_ne_bytes());
        message.extend([1, 0, 0, 0]);
        let length = u16::try_from(4 + info_bytes).expect("a short attribute");
        message.extend(length.to_ne_bytes());
        message.extend(INFO.to_ne_bytes());
        let mut info = vec![0; 280];
        info[120..128].copy_from_slice(&5_000_u64.to_ne_bytes());
        info[144..148].copy_from_slice(&600_u32.to_ne_bytes());
        info[168..176].copy_from_slice(&70_u64.to_ne_bytes());
        info[176..184].copy_from_slice(&8_u64.to_ne_bytes());
        message.extend(&info[..info_bytes]);
        message
    }

    #[test]
    fn a_connection_is_read_behind_other_attributes() {
        let counters =
            TcpCounters { busy_us: 70, window_us: 8, acked_bytes: 5_000, unsent_bytes: 600 };
        let local = "10.0.0.1:4660".parse().expect("an address");
        let remote = "10.0.0.2:80".parse().expect("an address");
        let expected = Some(TcpSocketState { local, remote, inode: 77, counters });
        for family in [AF_INET, AF_INET6] {
            assert_eq!(state(&message(family, 280), 77), expected, "family {family}");
        }
    }

    #[test]
    fn what_a_kernel_does_not_count_or_cuts_is_not_made_up() {
        let whole = message(AF_INET, 280);
        assert_eq!(state(&message(AF_INET, 168), 77), None, "a kernel before 4.10");
        assert_eq!(state(&message(1, 280), 77), None, "another family");
        for length in 0..whole.len() {
            assert_eq!(state(&whole[..length], 77), None, "{length} bytes");
        }
    }

    #[test]
    fn an_answer_that_ends_with_a_code_is_not_whole() {
        let end = |code: i32| ended(&code.to_ne_bytes());
        assert_eq!([end(0), ended(&[])], [Ok(()); 2]);
        assert_eq!([end(-2), end(-12)], [Err(Errno::NOENT), Err(Errno::NOMEM)]);
    }

    #[test]
    fn only_what_lasts_is_a_lasting_refusal() {
        let lasts = |cause: Errno| is_lasting_refusal(&Error::io("ask", cause));
        assert!(lasts(Errno::PERM) && lasts(Errno::NOENT) && lasts(Errno::PROTONOSUPPORT));
        for passing in [Errno::AGAIN, Errno::NOBUFS, Errno::MFILE, Errno::TOOBIG] {
            assert!(!lasts(passing), "{passing}");
        }
    }

    #[test]
    fn both_ends_of_an_own_connection_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let mut one = TcpStream::connect(address).expect("a connection");
        let (mut other, _) = listener.accept().expect("its other end");
        one.write_all(b"x").expect("room for a byte");
        other.read_exact(&mut [0]).expect("that byte");
        let inode = |socket: &TcpStream| {
            let link = fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd()));
            let link = link.expect("an open socket").to_string_lossy().into_owned();
            let number = link.strip_prefix("socket:[").and_then(|link| link.strip_suffix(']'));
            number.and_then(|number| number.parse::<u32>().ok()).expect("a socket")
        };
        let (one, other) = (inode(&one), inode(&other));
        let found = match tcp_sockets(|inode| [one, other].contains(&inode)) {
            Ok(found) => found,
            // Where the kernel may not be asked, that is said.
            Err(error) => {
                assert!(is_lasting_refusal(&error), "{error}");
                return;
            }
        };
        let of = |inode| found.iter().find(|state| state.inode == inode).expect("it is open");
        assert_eq!(found.len(), 2);
        assert_eq!((of(one).local, of(one).remote), (of(other).remote, of(other).local));
        assert_eq!(of(one).remote, address);
    }
}
