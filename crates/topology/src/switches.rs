//! Which hosts are connected to one switch, as Slurm knows it: a first guess at the hosts to group
//! below one communication process.
//!
//! Reads what `scontrol show topology` prints and what `topology.conf` says, which differ only in
//! what is left out: `SwitchName=s0 Level=0 LinkSpeed=1 Nodes=node[00-03]`.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Error;
use crate::hosts::HostName;
use crate::nodeset::{NoGroups, NodeSet};

/// The switches that hosts hang at.
///
/// ```
/// use sapwood_topology::Switches;
///
/// let text = "SwitchName=s0 Nodes=n[0-2]\nSwitchName=s1 Nodes=n[3-5]\nSwitchName=s2
/// Switches=s[0-1]"; let switches = Switches::parse(text)?; let hosts = ["n1".parse()?,
/// "n2".parse()?, "n4".parse()?]; assert_eq!(switches.groups(&hosts), Some(vec![2, 1]));
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Switches {
    /// The switch of each host.
    of: BTreeMap<String, usize>,
}

impl Switches {
    /// Reads the lines of switches that have hosts; those that only have switches below them are
    /// passed over, and so are lines about other things.
    ///
    /// # Errors
    ///
    /// [`Error::NodeSet`] for a list of hosts that is none.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut of = BTreeMap::new();
        let mut count = 0;
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let field = |name: &str| {
                let words = line.split_whitespace().filter_map(|word| word.split_once('='));
                words.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|of| of.1)
            };
            let (Some(_), Some(nodes)) = (field("SwitchName"), field("Nodes")) else { continue };
            // A switch above others repeats their hosts in what `scontrol` prints.
            if nodes.is_empty() || field("Switches").is_some_and(|below| !below.is_empty()) {
                continue;
            }
            for name in NodeSet::parse(nodes, &NoGroups)?.iter() {
                of.entry(name).or_insert(count);
            }
            count += 1;
        }
        Ok(Self { of })
    }

    /// How many of these hosts, from left to right, hang at one switch after another; nothing if a
    /// host is not known, all hang at one, or those of a switch do not stand together.
    pub fn groups(&self, hosts: &[HostName]) -> Option<Vec<u32>> {
        let mut groups: Vec<(usize, u32)> = Vec::new();
        for host in hosts {
            let switch = *self.of.get(host.as_str())?;
            if let Some((_, count)) = groups.last_mut().filter(|(last, _)| *last == switch) {
                *count += 1;
            } else if groups.iter().any(|(seen, _)| *seen == switch) {
                return None;
            } else {
                groups.push((switch, 1));
            }
        }
        (groups.len() > 1).then(|| groups.into_iter().map(|(_, count)| count).collect())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn groups(text: &str, hosts: &str) -> Option<Vec<u32>> {
        let hosts = NodeSet::parse(hosts, &NoGroups).unwrap();
        let hosts: Vec<HostName> = hosts.iter().map(|host| host.parse().unwrap()).collect();
        Switches::parse(text).unwrap().groups(&hosts)
    }

    /// As Slurm 22.05 prints it.
    const PRINTED: &str = "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=node[00-03]\n\
        SwitchName=s1 Level=0 LinkSpeed=1 Nodes=node[04-07]\n\
        SwitchName=s2 Level=1 LinkSpeed=1 Nodes=node[00-07] Switches=s[0-1]\n";

    #[test]
    fn hosts_of_one_switch_are_one_group() {
        assert_eq!(groups(PRINTED, "node[00-07]"), Some(vec![4, 4]));
        assert_eq!(groups(PRINTED, "node[02-05]"), Some(vec![2, 2]));
        let file = "# a comment\nswitchname=a nodes=x[1-2] # more\nSwitchName=b Nodes=x3\n";
        assert_eq!(groups(file, "x[1-3]"), Some(vec![2, 1]));
    }

    #[test]
    fn what_groups_nothing_is_no_guess() {
        assert_eq!(groups(PRINTED, "node[00-03]"), None, "one switch");
        assert_eq!(groups(PRINTED, "node[00-08]"), None, "a host that hangs nowhere");
        assert_eq!(groups("SwitchName=a Nodes=x1,x3\nSwitchName=b Nodes=x2", "x[1-3]"), None);
        assert_eq!(groups("No topology information available", "x1"), None);
        assert!(Switches::parse("SwitchName=a Nodes=x[1-").is_err());
    }
}
