//! Where to listen or connect, as text and as a type.
//!
//! Three forms: `unix:@name` (abstract: leaves no file), `unix:/path` and `tcp:host:port`. A value
//! of [`Address`] is always well formed; whether a process listens there is not checked.
//!
//! A machine with several networks is named by all of its addresses, `tcp:10.0.0.7,192.0.2.7:4000`:
//! a connection attempt tries them side by side.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use crate::{Error, Result};

/// The longest abstract name, in bytes: `sockaddr_un` holds 108 with the leading zero.
const ABSTRACT_NAME_BYTES_MAX: usize = 107;
/// The longest path, in bytes: `sockaddr_un` holds 108 with the closing zero.
const PATH_BYTES_MAX: usize = 107;
/// The longest host name, in bytes (RFC 1035, section 2.3.4).
const HOST_BYTES_MAX: usize = 253;

/// Where a process listens.
///
/// ```
/// use sapwood_transport::Address;
/// let address: Address = "tcp:[::1]:4000".parse().unwrap();
/// assert_eq!(address.to_string(), "tcp:[::1]:4000");
/// assert!("tcp:localhost".parse::<Address>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(Form);

/// The three forms; private so that none can be built malformed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Form {
    Abstract(String),
    Path(PathBuf),
    Tcp { host: String, port: u16 },
}

impl Address {
    /// A new abstract Unix address with 128 random bits in its name.
    ///
    /// # Errors
    /// [`Error::Io`] if the system has no randomness to give.
    pub fn local_abstract() -> Result<Self> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).map_err(|cause| {
            Error::io("draw a random socket name", std::io::Error::other(cause.to_string()))
        })?;
        let mut name = String::from("sapwood-");
        for byte in random {
            name.push_str(&format!("{byte:02x}"));
        }
        Ok(Self(Form::Abstract(name)))
    }

    /// One port at several addresses of a machine, the most likely one first. Those that the text
    /// of an address has no room for are left out.
    ///
    /// ```
    /// use sapwood_transport::Address;
    /// let [one, other] = ["10.0.0.7", "::1"].map(|text| text.parse().unwrap());
    /// let address = Address::at_each(&[one, other], 4000);
    /// assert_eq!(address.to_string(), "tcp:[10.0.0.7,::1]:4000");
    /// assert_eq!(address.resolve().unwrap().len(), 2);
    /// ```
    #[must_use]
    pub fn at_each(addresses: &[IpAddr], port: u16) -> Self {
        let mut host = String::new();
        for address in addresses.iter().map(ToString::to_string) {
            if host.len() + 1 + address.len() > HOST_BYTES_MAX {
                break;
            }
            if !host.is_empty() {
                host.push(',');
            }
            host.push_str(&address);
        }
        Self(Form::Tcp { host, port })
    }

    /// Whether both ends are on one machine by construction: a Unix socket of either form.
    #[must_use]
    pub fn is_unix(&self) -> bool {
        !matches!(self.0, Form::Tcp { .. })
    }

    /// The TCP port, if this is a TCP address.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match self.0 {
            Form::Tcp { port, .. } => Some(port),
            _ => None,
        }
    }

    /// The host text of a TCP address, without brackets: one host, or several between commas.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        match &self.0 {
            Form::Tcp { host, .. } => Some(host),
            _ => None,
        }
    }

    /// Every socket address of a TCP address's hosts, in the resolver's order without repeats;
    /// none for Unix addresses.
    ///
    /// Numeric hosts never ask the resolver. For names the resolver's own time-outs apply.
    ///
    /// # Errors
    /// [`Error::UnresolvableHost`] if none of the names has an address.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>> {
        let Form::Tcp { host, port } = &self.0 else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let mut cause = None;
        for host in host.split(',') {
            match resolve_one(host, *port) {
                Ok(addresses) => {
                    for address in addresses {
                        if !found.contains(&address) {
                            found.push(address);
                        }
                    }
                }
                // A list names one host on several networks, of which this host may know one: an
                // error counts only if no name has an address.
                Err(error) => cause = Some(error),
            }
        }
        if found.is_empty() {
            let cause = cause.unwrap_or_else(|| std::io::Error::other("the name has no address"));
            return Err(Error::UnresolvableHost { host: host.clone(), cause });
        }
        Ok(found)
    }

    pub(crate) fn form(&self) -> &Form {
        &self.0
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        // `SocketAddrV6` prints its scope (`fe80::1%2`), which link-local addresses need.
        let host = match address {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
            other => other.ip().to_string(),
        };
        Self(Form::Tcp { host, port: address.port() })
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = |problem| Error::InvalidAddress { text: text.to_owned(), problem };
        if let Some(rest) = text.strip_prefix("unix:") {
            parse_unix(rest).map(Self).map_err(invalid)
        } else if let Some(rest) = text.strip_prefix("tcp:") {
            parse_tcp(rest).map(Self).map_err(invalid)
        } else {
            Err(invalid("it begins with neither unix: nor tcp:"))
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Abstract(name) => write!(f, "unix:@{name}"),
            Form::Path(path) => write!(f, "unix:{}", path.display()),
            Form::Tcp { host, port } if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Form::Tcp { host, port } => write!(f, "tcp:{host}:{port}"),
        }
    }
}

fn resolve_one(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    Ok((host, port).to_socket_addrs()?.collect())
}

fn parse_unix(rest: &str) -> std::result::Result<Form, &'static str> {
    if rest.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("it holds a control character");
    }
    if let Some(name) = rest.strip_prefix('@') {
        return match name.len() {
            0 => Err("the abstract name after @ is empty"),
            1..=ABSTRACT_NAME_BYTES_MAX => Ok(Form::Abstract(name.to_owned())),
            _ => Err("the abstract name is longer than 107 bytes"),
        };
    }
    if !rest.starts_with('/') {
        return Err("after unix: comes @name or an absolute path");
    }
    if rest.len() > PATH_BYTES_MAX {
        return Err("the path is longer than 107 bytes");
    }
    Ok(Form::Path(PathBuf::from(rest)))
}

fn parse_tcp(rest: &str) -> std::result::Result<Form, &'static str> {
    let (host, port) = match rest.strip_prefix('[') {
        Some(bracketed) => {
            bracketed.split_once("]:").ok_or("after [ comes an address and ]:port")?
        }
        None => rest.rsplit_once(':').ok_or("the port is missing")?,
    };
    if host.split(',').any(str::is_empty) {
        return Err("the host is empty");
    }
    if host.len() > HOST_BYTES_MAX {
        return Err("the host is longer than 253 bytes");
    }
    // '%' names the interface of a link-local IPv6 address; ',' stands between several addresses of
    // one host.
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:%,".contains(&byte);
    if !host.bytes().all(allowed) {
        return Err("the host holds a character that no host name has");
    }
    if host.contains(':') && !rest.starts_with('[') {
        return Err("an IPv6 address needs brackets");
    }
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("the port is no number");
    }
    let port = port.parse().map_err(|_| "the port is not between 0 and 65535")?;
    Ok(Form::Tcp { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_prints_as_it_was_written() {
        for text in [
            "unix:@a",
            "unix:/run/x y",
            "tcp:node-7.example:0",
            "tcp:[fe80::1%2]:65535",
            "tcp:10.0.0.7,192.0.2.1:7",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_error_names_the_offending_text() {
        for text in [
            "",
            "udp:a:1",
            "unix:",
            "unix:@",
            "unix:run",
            "tcp:",
            "tcp:a",
            "tcp::1",
            "tcp:10.0.0.7,:1",
            "tcp:a:65536",
            "tcp:a:-1",
            "tcp:a:",
            "tcp:::1:7",
            "tcp:[::1:7",
            "tcp:a b:7",
            "tcp:[::1]7",
            "unix:@a\0b",
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
        assert!(format!("unix:/{}", "x".repeat(107)).parse::<Address>().is_err());
    }

    #[test]
    fn fresh_abstract_names_differ_and_parse() {
        let (one, two) = (Address::local_abstract().unwrap(), Address::local_abstract().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.to_string().parse::<Address>().unwrap(), one);
    }

    #[test]
    fn a_name_yields_all_its_addresses_and_a_wrong_one_an_error() {
        let found = "tcp:localhost:9".parse::<Address>().unwrap().resolve().unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 9));
        let error = "tcp:no-such-host.invalid:9".parse::<Address>().unwrap().resolve();
        assert!(error.unwrap_err().to_string().contains("no-such-host.invalid"));
    }
}
