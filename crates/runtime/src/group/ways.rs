//! By which ways a member is reached.
//!
//! Members of one host and one user share memory, as processes of a tree do. That begins at a Unix
//! socket, so a member that listens at a TCP address listens beside it at an abstract Unix address
//! whose name is the text of the other one. Both are seen by the same processes: those of one
//! network namespace. A member that dials another tries the Unix address first, which is refused at
//! once on any other host, and then the TCP address.

use sapwood_transport::{Address, Encryption, LinkTerms};

use super::dials::Way;

/// How links to members are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manners {
    /// Whether bytes are encrypted; by default over TCP.
    pub(super) encryption: Option<Encryption>,
    /// Whether members of this host may share memory.
    pub(super) shares_memory: bool,
}

impl Manners {
    /// The terms of links that are made at an address.
    pub(super) fn terms(self, address: &Address) -> LinkTerms {
        let encryption = self.encryption.unwrap_or(Encryption::default_for(address));
        LinkTerms { encryption, shares_memory: self.shares_memory }
    }

    /// The way for processes of the same host that lies beside a TCP address: none where all is to
    /// be encrypted, where memory is not to be shared, or where a name has no room for the address.
    pub(super) fn beside(self, address: &Address) -> Option<Way> {
        if address.is_unix() || !self.shares_memory || self.encryption == Some(Encryption::On) {
            return None;
        }
        let address: Address = format!("unix:@sapwood-group/{address}").parse().ok()?;
        Some(Way { terms: self.terms(&address), address })
    }

    /// All ways to a member that is dialled at an address, the first to be tried first.
    pub(super) fn ways(self, address: Address) -> Vec<Way> {
        let beside = self.beside(&address);
        beside.into_iter().chain([Way { terms: self.terms(&address), address }]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARING: Manners = Manners { encryption: None, shares_memory: true };

    fn ways(manners: Manners, address: &str) -> Vec<String> {
        let ways = manners.ways(address.parse().unwrap());
        ways.iter().map(|way| format!("{} {}", way.address, way.terms.encryption)).collect()
    }

    #[test]
    fn a_tcp_address_has_a_unix_address_beside_it_unless_all_is_encrypted() {
        let both = ["unix:@sapwood-group/tcp:10.0.0.1:4000 off", "tcp:10.0.0.1:4000 on"];
        assert_eq!(ways(SHARING, "tcp:10.0.0.1:4000"), both);
        let alone = Manners { shares_memory: false, ..SHARING };
        assert_eq!(ways(alone, "tcp:10.0.0.1:4000"), both[1..]);
        let encrypted = Manners { encryption: Some(Encryption::On), ..SHARING };
        assert_eq!(ways(encrypted, "tcp:10.0.0.1:4000"), both[1..]);
        let plain = Manners { encryption: Some(Encryption::Off), ..SHARING };
        assert_eq!(ways(plain, "tcp:[::1]:1").len(), 2);
        assert_eq!(ways(SHARING, "unix:/run/one"), ["unix:/run/one off"]);
    }

    #[test]
    fn an_address_that_is_too_long_for_a_name_has_nothing_beside_it() {
        let long = format!("tcp:[{}]:4000", ["fd00::1111:2222:3333:4444"; 5].join(","));
        assert_eq!(ways(SHARING, &long).len(), 1);
    }
}
