//! Whether a host name means this machine.
//!
//! The one use of a socket in this crate is to ask the kernel which of a host's addresses are its
//! own. Nothing is sent over it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use crate::LaunchError;

/// A port to ask the kernel about routes with; any but 0 serves, since nothing is sent.
const ROUTE_PORT: u16 = 9;

/// Whether `host` means this machine: `localhost`, its own name, or a name or number of a
/// loopback address or of an address of one of its interfaces.
///
/// Asks the system's resolver for all other names and so **may block for seconds** when a name
/// server is slow: call it before the poll loop runs.
///
/// # Errors
/// [`LaunchError::UnresolvableHost`] if the resolver has no address for the name.
pub fn is_local(host: &str) -> Result<bool, LaunchError> {
    if is_own_name(host) {
        return Ok(true);
    }
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let addresses = (bare, ROUTE_PORT)
        .to_socket_addrs()
        .map_err(|cause| LaunchError::UnresolvableHost { host: host.into(), cause })?;
    Ok(addresses.into_iter().any(is_own_address))
}

/// Checks that `host` means this machine, as [`is_local`] does.
///
/// # Errors
/// [`LaunchError::HostOutOfReach`] for another machine, [`LaunchError::UnresolvableHost`] for
/// none.
pub fn require_local(host: &str) -> Result<(), LaunchError> {
    if is_local(host)? { Ok(()) } else { Err(LaunchError::HostOutOfReach { host: host.into() }) }
}

/// The names that need no resolver: those reserved for loopback (RFC 6761, section 6.3) and the
/// one that the kernel knows, with or without its domain.
fn is_own_name(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if host == "localhost" || host.ends_with(".localhost") {
        return true;
    }
    let kernel = rustix::system::uname();
    let own = kernel.nodename().to_string_lossy().to_ascii_lowercase();
    let short = own.split('.').next().unwrap_or_default();
    !host.is_empty() && (host == own || host == short)
}

/// Whether the kernel would deliver to itself what is sent to this address: only then does it
/// choose that same address as the source.
fn is_own_address(address: SocketAddr) -> bool {
    let ip = address.ip();
    if ip.is_loopback() {
        return true;
    }
    if ip.is_unspecified() || ip.is_multicast() {
        return false;
    }
    let any = match ip {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_its_names_and_numbers() {
        let kernel = rustix::system::uname();
        let own = kernel.nodename().to_str().unwrap();
        for host in ["localhost", "LocalHost.", "a.localhost", "127.0.0.1", "127.3.2.1", own] {
            assert!(is_local(host).unwrap(), "{host}");
        }
        assert!(is_local("::1").unwrap() && is_local("[::1]").unwrap());
    }

    #[test]
    fn another_machine_and_no_machine_are_told_apart() {
        // Addresses for documentation (RFC 5737), which no interface has.
        for host in ["192.0.2.17", "203.0.113.1", "224.0.0.1", "255.255.255.255"] {
            let text = require_local(host).unwrap_err().to_string();
            assert!(
                text.starts_with(&format!("host '{host}' is another machine: only local starts")),
                "{text}"
            );
        }
        // A name that is reserved never to exist (RFC 6761, section 6.4).
        let text = require_local("node9.invalid").unwrap_err().to_string();
        assert!(text.starts_with("host 'node9.invalid' cannot be resolved: "), "{text}");
    }
}
