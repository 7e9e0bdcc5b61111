//! Host names and the placement of nodes on hosts.
//!
//! Owns the rule for a host name and the round-robin placement. It never resolves a name and
//! knows nothing of how many processors a host has.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, excerpt};
use crate::limits::HOST_NAME_BYTES_MAX;
use crate::nodeset::NodeSet;

/// A host name that keeps MRNet's rule: a letter or digit first, then letters, digits, `-`, `.`
/// or `_`, all ASCII, at most [`HOST_NAME_BYTES_MAX`] bytes.
///
/// ```
/// use sapwood_topology::HostName;
///
/// let host: HostName = "node-17.cluster".parse()?;
/// assert_eq!(host.as_str(), "node-17.cluster");
/// assert!("-node".parse::<HostName>().is_err());
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct HostName(String);

impl HostName {
    /// The name of the machine that a process runs on, as it calls itself: `localhost`.
    pub fn local() -> Self {
        Self(String::from("localhost"))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_valid(name: &str) -> bool {
        let bytes = name.as_bytes();
        bytes.len() <= HOST_NAME_BYTES_MAX
            && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(b))
    }
}

impl FromStr for HostName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        if Self::is_valid(name) {
            Ok(Self(name.to_string()))
        } else {
            Err(Error::HostName { name: excerpt(name) })
        }
    }
}

impl TryFrom<String> for HostName {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        if Self::is_valid(&name) { Ok(Self(name)) } else { name.parse() }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where one node runs: a host and an index that tells the nodes of that host apart.
///
/// The index is only part of a name, as in MRNet's topology files; it is not a port.
///
/// ```
/// use sapwood_topology::Hosts;
///
/// let second = &Hosts::local().place(2)[1];
/// assert_eq!((second.host, second.index), (0, 1)); // localhost:1
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// Position of the host in its list.
    pub host: u32,
    /// Index among the nodes on that host, from 0.
    pub index: u32,
}

/// A list of at least one host to place a tree on.
///
/// ```
/// use sapwood_topology::Hosts;
///
/// let hosts: Hosts = "alpha,beta".parse()?;
/// assert_eq!(hosts.names().len(), 2);
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    names: Vec<HostName>,
}

impl Hosts {
    /// Only this machine, as `localhost`.
    pub fn local() -> Self {
        Self { names: vec![HostName::local()] }
    }

    /// The given hosts in the given order. A host that is named twice takes two turns.
    ///
    /// # Errors
    ///
    /// [`Error::NoHosts`] for an empty list.
    pub fn new(names: Vec<HostName>) -> Result<Self, Error> {
        if names.is_empty() { Err(Error::NoHosts) } else { Ok(Self { names }) }
    }

    /// The names in order.
    pub fn names(&self) -> &[HostName] {
        &self.names
    }

    /// Places `count` nodes round robin: node 0, the front-end, on the first host, and so on.
    /// Each index counts the nodes that were placed on the same name before.
    pub fn place(&self, count: u32) -> Vec<Placement> {
        let mut first = BTreeMap::new();
        let mut first_of_name = Vec::with_capacity(self.names.len());
        for (position, name) in self.names.iter().enumerate() {
            first_of_name.push(*first.entry(name).or_insert(position));
        }
        let mut placed = vec![0_u32; self.names.len()];
        let mut placements = Vec::with_capacity(count as usize);
        for host in first_of_name.iter().cycle().take(count as usize) {
            placements.push(Placement { host: *host as u32, index: placed[*host] });
            placed[*host] += 1;
        }
        placements
    }
}

impl Default for Hosts {
    fn default() -> Self {
        Self::local()
    }
}

impl TryFrom<&NodeSet> for Hosts {
    type Error = Error;

    /// The hosts of a set, in its order.
    fn try_from(nodes: &NodeSet) -> Result<Self, Error> {
        Self::new(nodes.iter().map(|name| name.parse()).collect::<Result<_, _>>()?)
    }
}

impl FromStr for Hosts {
    type Err = Error;

    /// Reads names that are separated by commas or blanks.
    fn from_str(list: &str) -> Result<Self, Error> {
        let names = list
            .split(|c: char| c == ',' || c.is_ascii_whitespace())
            .filter(|name| !name.is_empty())
            .map(HostName::from_str)
            .collect::<Result<Vec<_>, _>>()?;
        Self::new(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(list: &str, count: u32) -> Vec<(u32, u32)> {
        let hosts: Hosts = list.parse().unwrap();
        hosts.place(count).iter().map(|p| (p.host, p.index)).collect()
    }

    #[test]
    fn nodes_take_turns_and_count_per_host() {
        assert_eq!(placed("a,b", 5), [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)]);
    }

    #[test]
    fn a_host_named_twice_takes_two_turns_but_keeps_one_count() {
        assert_eq!(placed("a b a", 4), [(0, 0), (1, 0), (0, 1), (0, 2)]);
    }

    #[test]
    fn bad_names_and_empty_lists_are_refused() {
        for name in ["", "-a", ".a", "a b", "ä", "a[0]", "a:1", &"a".repeat(256)] {
            assert!(name.parse::<HostName>().is_err(), "{name}");
        }
        assert_eq!(" , ".parse::<Hosts>(), Err(Error::NoHosts));
    }
}
