//! The network interfaces of this machine, and the choice among them.
//!
//! A tree over several hosts has to know by which of a machine's networks the others reach it. An
//! [`InterfaceRule`] says so for all hosts at once, in the forms that people know from other
//! tools: by name, by the beginning of a name, or by network.

use std::ffi::CStr;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::{Error, Result};

/// One address of one interface that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, such as `eth0`.
    pub name: String,
    /// The address.
    pub address: IpAddr,
}

/// Which addresses of a machine a process listens at.
///
/// A list between commas. Each part is an address, a network (`10.77.0.0/16`), the beginning of an
/// interface's name (`eth`), or a whole name behind `=` (`=eth0`). A `^` in front of the list turns
/// it round: all but these. Loopback addresses are chosen only where they are named.
///
/// ```
/// use sapwood_transport::InterfaceRule;
/// let rule: InterfaceRule = "^docker,10.0.0.0/8".parse().unwrap();
/// assert!(rule.allows("eth0", "192.0.2.7".parse().unwrap()));
/// assert!(!rule.allows("eth0", "10.1.2.3".parse().unwrap()));
/// assert!("10.0.0.0/33".parse::<InterfaceRule>().is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceRule {
    is_inverted: bool,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Whole(String),
    Beginning(String),
    Network(IpAddr, u32),
}

impl InterfaceRule {
    /// Whether it allows this address of this interface.
    #[must_use]
    pub fn allows(&self, name: &str, address: IpAddr) -> bool {
        let is_named = self.parts.iter().any(|part| part.matches(name, address));
        match self.is_inverted || self.parts.is_empty() {
            true => !is_named && !address.is_loopback(),
            false => is_named,
        }
    }

    /// The addresses of these interfaces that the rule allows, IPv4 first.
    #[must_use]
    pub fn choose(&self, interfaces: &[Interface]) -> Vec<IpAddr> {
        let allowed = |one: &&Interface| self.allows(&one.name, one.address);
        let mut chosen: Vec<IpAddr> =
            interfaces.iter().filter(allowed).map(|one| one.address).collect();
        chosen.sort_by_key(IpAddr::is_ipv6);
        chosen.dedup();
        chosen
    }

    /// Whether it says anything.
    #[must_use]
    pub fn is_given(&self) -> bool {
        !self.parts.is_empty()
    }
}

impl Part {
    fn matches(&self, name: &str, address: IpAddr) -> bool {
        match self {
            Self::Whole(whole) => name == whole,
            Self::Beginning(beginning) => name.starts_with(beginning.as_str()),
            Self::Network(network, bits) => is_within(address, *network, *bits),
        }
    }
}

fn is_within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            (u32::from(address) ^ u32::from(network)) & mask == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            (u128::from(address) ^ u128::from(network)) & mask == 0
        }
        _ => false,
    }
}

impl FromStr for InterfaceRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = |problem| Error::InvalidInterface { text: text.to_owned(), problem };
        let (is_inverted, list) = match text.strip_prefix('^') {
            Some(list) => (true, list),
            None => (false, text),
        };
        let parts = list.split(',').map(|part| parse_part(part.trim()).map_err(invalid));
        Ok(Self { is_inverted, parts: parts.collect::<Result<_>>()? })
    }
}

fn parse_part(text: &str) -> std::result::Result<Part, &'static str> {
    if let Some((network, bits)) = text.split_once('/') {
        let network: IpAddr = network.parse().map_err(|_| "before the / stands no address")?;
        let bits: u32 = bits.parse().map_err(|_| "behind the / stands no number")?;
        let longest = if network.is_ipv4() { 32 } else { 128 };
        return match bits <= longest {
            true => Ok(Part::Network(network, bits)),
            false => Err("the number behind the / is too large"),
        };
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(Part::Network(address, if address.is_ipv4() { 32 } else { 128 }));
    }
    let (name, is_whole) = text.strip_prefix('=').map_or((text, false), |name| (name, true));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:@".contains(&byte);
    match name.is_empty() || !name.bytes().all(is_name) {
        true => Err("a part is no name of an interface, no address and no network"),
        false if is_whole => Ok(Part::Whole(name.to_owned())),
        false => Ok(Part::Beginning(name.to_owned())),
    }
}

impl fmt::Display for InterfaceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_inverted {
            f.write_str("^")?;
        }
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match part {
                Part::Whole(name) => write!(f, "={name}")?,
                Part::Beginning(name) => f.write_str(name)?,
                Part::Network(network, bits) => write!(f, "{network}/{bits}")?,
            }
        }
        Ok(())
    }
}

/// All addresses of this machine's interfaces that are up, link-local ones of IPv6 left out: they
/// mean nothing to another machine.
///
/// # Errors
/// [`Error::Io`] if the system does not tell.
pub fn interfaces() -> Result<Vec<Interface>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: The call writes a pointer to a list to `first`, or fails and writes nothing.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(Error::io("list the network's interfaces", io::Error::last_os_error()));
    }
    let mut found = Vec::new();
    let mut next = first;
    // SAFETY: The list is the system's own, each of its entries is valid until it is freed below,
    // and the last one's pointer is null.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        let is_up = entry.ifa_flags & libc::IFF_UP as libc::c_uint != 0;
        // SAFETY: An entry's address is null or points to an address of the family that it names.
        let address = unsafe { ip_of(entry.ifa_addr) };
        // SAFETY: An entry's name is a text that ends with a zero byte.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        if let (true, Some(address)) = (is_up, address) {
            found.push(Interface { name: name.to_string_lossy().into_owned(), address });
        }
    }
    // SAFETY: The list is the one that the system gave, and nothing of it is used any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// The address of a socket address of the internet; nothing for others.
///
/// # Safety
/// `address` is null, or points to a socket address as long as its family says.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: As the caller promises; every socket address begins with its family.
    let family = i32::from(unsafe { address.as_ref() }?.sa_family);
    match family {
        libc::AF_INET => {
            // SAFETY: The family says that it is one of these; the copy need not be aligned.
            let v4 = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(IpAddr::V4(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr))))
        }
        libc::AF_INET6 => {
            // SAFETY: As above.
            let v6 = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            let address = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            (!address.is_unicast_link_local()).then_some(IpAddr::V6(address))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_loopback_address_which_is_chosen_only_by_name() {
        let all = interfaces().unwrap();
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert!(all.iter().any(|one| one.address == loopback), "{all:?}");
        assert!(!InterfaceRule::default().choose(&all).contains(&loopback));
        let rule: InterfaceRule = "127.0.0.1".parse().unwrap();
        assert_eq!(rule.choose(&all), [loopback]);
    }

    #[test]
    fn a_rule_reads_as_it_was_written_and_a_wrong_one_is_quoted() {
        for text in ["eth", "^docker,=lo", "10.77.0.0/16,=ib0", "fe80::/10"] {
            assert_eq!(text.parse::<InterfaceRule>().unwrap().to_string(), text);
        }
        for text in ["", "^", "eth0,", "1.2.3.4/x", "::/129", "a b", "="] {
            let error = text.parse::<InterfaceRule>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn names_and_networks_are_told_apart() {
        let one = |text: &str, name: &str, address: &str| {
            text.parse::<InterfaceRule>().unwrap().allows(name, address.parse().unwrap())
        };
        assert!(one("eth", "eth1", "10.0.0.1") && !one("=eth", "eth1", "10.0.0.1"));
        assert!(
            one("10.77.0.0/16", "x", "10.77.255.254") && !one("10.77.0.0/16", "x", "10.78.0.1")
        );
        assert!(one("0.0.0.0/0", "x", "203.0.113.1") && !one("0.0.0.0/0", "x", "2001:db8::1"));
        assert!(one("2001:db8::/32", "x", "2001:db8:1::1"));
    }
}
