//! Whether a host name means this machine.
//!
//! The kernel's own lists of addresses answer which of a host's are this machine's; no socket is
//! opened. Only the resolver of the system goes to the network, where it has to.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};

use crate::LaunchError;

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
    // The resolver's interface wants a port, which is not used.
    let addresses = (bare, 0)
        .to_socket_addrs()
        .map_err(|cause| LaunchError::UnresolvableHost { host: host.into(), cause })?;
    let own = own_addresses();
    Ok(addresses.map(|address| address.ip()).any(|ip| ip.is_loopback() || own.contains(&ip)))
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
pub fn is_own_name(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if host == "localhost" || host.ends_with(".localhost") {
        return true;
    }
    let own = own_host_name().to_ascii_lowercase();
    let short = own.split('.').next().unwrap_or_default();
    !host.is_empty() && (host == own || host == short)
}

/// The name that the kernel knows this machine by.
pub fn own_host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The addresses of this machine's interfaces, in its network namespace. A kernel without one of
/// the lists has no addresses of that kind.
fn own_addresses() -> BTreeSet<IpAddr> {
    let v4 = fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let v6 = fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    addresses_v4(&v4).map(IpAddr::V4).chain(addresses_v6(&v6).map(IpAddr::V6)).collect()
}

/// Reads the kernel's routing tree. A leaf is a line `|-- 10.0.0.7`, and one for an address of
/// this machine goes on with a line `/32 host LOCAL`.
fn addresses_v4(tree: &str) -> impl Iterator<Item = Ipv4Addr> + '_ {
    let mut leaf = None;
    tree.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse().ok();
            return None;
        }
        (line == "/32 host LOCAL").then_some(leaf).flatten()
    })
}

/// Reads the kernel's list of addresses, each line of which begins with 32 hexadecimal digits.
fn addresses_v6(list: &str) -> impl Iterator<Item = Ipv6Addr> + '_ {
    list.lines().filter_map(|line| {
        let digits = line.split_whitespace().next().filter(|digits| digits.len() == 32)?;
        u128::from_str_radix(digits, 16).ok().map(Ipv6Addr::from_bits)
    })
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
    fn the_kernels_lists_are_read() {
        let tree = "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.0.0.0\n        /24 link UNICAST\n     \
                    |-- 10.0.0.7\n        /32 host LOCAL\n     |-- 10.0.0.255\n        \
                    /32 link BROADCAST\n";
        assert_eq!(addresses_v4(tree).collect::<Vec<_>>(), [Ipv4Addr::new(10, 0, 0, 7)]);
        let list = "fe80000000000000000000000000abcd 02 40 20 80     eth0\njunk\n";
        let expected: Ipv6Addr = "fe80::abcd".parse().unwrap();
        assert_eq!(addresses_v6(list).collect::<Vec<_>>(), [expected]);
        assert!(own_addresses().contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }

    #[test]
    fn another_machine_and_no_machine_are_told_apart() {
        // Addresses for documentation (RFC 5737), which no interface has.
        for host in ["198.51.100.1", "203.0.113.1", "224.0.0.1", "255.255.255.255"] {
            let text = require_local(host).unwrap_err().to_string();
            assert!(
                text.starts_with(&format!("host '{host}' is another machine: this launcher")),
                "{text}"
            );
        }
        // A name that is reserved never to exist (RFC 6761, section 6.4).
        let text = require_local("node9.invalid").unwrap_err().to_string();
        assert!(text.starts_with("host 'node9.invalid' cannot be resolved: "), "{text}");
    }
}
