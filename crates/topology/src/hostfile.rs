//! Host files in all the usual spellings, and the variables in which Slurm lists hosts.
//!
//! Owns one tolerant reader. A line is one of
//!
//! ```text
//! node7                   a name                      node[01-16],login    a nodeset, with groups
//! node7 slots=4           Open MPI                    node7:4              Hydra, MPICH
//! node7                   PBS: repeated, once for each slot
//! # to the end of the line is a comment, and so is a line that begins with ;
//! ```
//!
//! Words of the form `key=value` that are not understood, such as `max_slots=8` or Hydra's
//! `binding=...`, are passed over. It opens no file.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::error::{Error, excerpt};
use crate::nodeset::{Groups, NODESET_NAMES_MAX, NodeSet};

/// Most slots of one host.
pub const SLOTS_MAX: u32 = 1 << 20;

/// A line of a list of hosts without its comment.
#[must_use]
pub fn uncommented(line: &str) -> &str {
    let line = line.split_once('#').map_or(line, |(before, _)| before);
    if line.trim_start().starts_with(';') { "" } else { line }
}

/// Hosts in the order of their first mention, with how many slots each has.
///
/// ```
/// use sapwood_topology::{HostList, NoGroups};
///
/// let list = HostList::from_file_text("a slots=2 # big\nb[1-2]:4\na\n", "hosts", &NoGroups)?;
/// let hosts: Vec<_> = list.hosts().map(|(name, slots)| (name, slots)).collect();
/// assert_eq!(hosts, [("a", 3), ("b1", 4), ("b2", 4)]);
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostList {
    hosts: Vec<(String, u32)>,
    places: BTreeMap<String, usize>,
}

impl HostList {
    /// Reads the text of a host file; `source` names it in errors.
    ///
    /// # Errors
    /// [`Error::HostFile`] with the line.
    pub fn from_file_text(text: &str, source: &str, groups: &dyn Groups) -> Result<Self, Error> {
        let mut list = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            list.read_line(line, groups).map_err(|problem| Error::HostFile {
                source: excerpt(source),
                line: number,
                text: excerpt(line.trim()),
                problem,
            })?;
        }
        Ok(list)
    }

    /// The hosts of a Slurm allocation: the list of nodes, and how many tasks each has in Slurm's
    /// compressed form, such as `2(x3),1`.
    ///
    /// # Errors
    /// [`Error::NodeSet`], [`Error::HostFile`] when the counts cannot be read or do not fit.
    pub fn from_slurm(nodes: &str, tasks_per_node: Option<&str>) -> Result<Self, Error> {
        let count = nodes.parse::<NodeSet>()?.len();
        let mut list = Self::default();
        let counts = match tasks_per_node {
            Some(counts) => slurm_counts(counts, count)?,
            None => vec![1; count],
        };
        // Slurm counts in the order in which its list has the terms.
        let mut names = Vec::with_capacity(count);
        for term in terms(nodes) {
            names.extend(term.parse::<NodeSet>()?.iter());
        }
        for (name, slots) in names.into_iter().zip(counts) {
            // Slurm's own counts are small, and a sum cannot be too large for one mention.
            let _ = list.add(name, slots);
        }
        Ok(list)
    }

    /// The hosts with their slots.
    pub fn hosts(&self) -> impl ExactSizeIterator<Item = (&str, u32)> {
        self.hosts.iter().map(|(name, slots)| (name.as_str(), *slots))
    }

    /// The hosts as a set of names.
    #[must_use]
    pub fn names(&self) -> NodeSet {
        self.hosts.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Whether no host was named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    fn read_line(&mut self, line: &str, groups: &dyn Groups) -> Result<(), String> {
        let line = uncommented(line).trim();
        if line.is_empty() {
            return Ok(());
        }
        let (mut slots, mut names) = (None, Vec::new());
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some(("slots" | "cpu" | "count", number)) => slots = Some(slots_of(number)?),
                Some((key, _)) if !key.is_empty() && !key.contains(['[', '@', ',']) => {}
                _ => names.push(word),
            }
        }
        if names.is_empty() {
            return Err("a host is missing before this".to_string());
        }
        for word in names {
            let (text, own) = split_slots(word)?;
            let set = NodeSet::parse(text, groups).map_err(|error| error.to_string())?;
            if set.is_empty() {
                return Err("this names no host".to_string());
            }
            for name in set.iter() {
                self.add(name, own.or(slots).unwrap_or(1))?;
            }
        }
        Ok(())
    }

    fn add(&mut self, name: String, slots: u32) -> Result<(), String> {
        if let Some(&place) = self.places.get(&name) {
            let sum = &mut self.hosts[place].1;
            *sum = sum.saturating_add(slots).min(SLOTS_MAX);
            return Ok(());
        }
        if self.hosts.len() == NODESET_NAMES_MAX {
            return Err("these are more than 4194304 hosts".to_string());
        }
        self.places.insert(name.clone(), self.hosts.len());
        self.hosts.push((name, slots));
        Ok(())
    }
}

/// The terms of a union.
fn terms(text: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    text.split(move |character| {
        is_inside = (is_inside || character == '[') && character != ']';
        character == ',' && !is_inside
    })
}

/// Parts `name:4`. A colon within a group's name is its source's.
fn split_slots(word: &str) -> Result<(&str, Option<u32>), String> {
    match word.rsplit_once(':') {
        Some((name, number)) if !name.contains(':') && !name.starts_with('@') => {
            Ok((name, Some(slots_of(number)?)))
        }
        _ => Ok((word, None)),
    }
}

fn slots_of(number: &str) -> Result<u32, String> {
    let slots = number.parse::<u32>().ok().filter(|slots| (1..=SLOTS_MAX).contains(slots));
    slots.ok_or_else(|| {
        alloc::format!("{:?} is no number of slots from 1 to {SLOTS_MAX}", excerpt(number))
    })
}

/// `2(x3),1` is 2, 2, 2, 1.
fn slurm_counts(text: &str, hosts: usize) -> Result<Vec<u32>, Error> {
    let fault = |part: &str, problem: String| Error::HostFile {
        source: "SLURM_TASKS_PER_NODE".to_string(),
        line: 1,
        text: excerpt(part),
        problem,
    };
    let mut counts = Vec::new();
    for part in text.split(',') {
        let (number, times) = match part.split_once("(x") {
            Some((number, times)) => (number, times.strip_suffix(')').unwrap_or("")),
            None => (part, "1"),
        };
        let slots = slots_of(number.trim()).map_err(|problem| fault(part, problem))?;
        let times = times.parse::<usize>().ok();
        let times = times.filter(|times| (1..=hosts.saturating_sub(counts.len())).contains(times));
        let times = times.ok_or_else(|| {
            fault(part, alloc::format!("this is not how often, or beyond the {hosts} hosts"))
        })?;
        counts.resize(counts.len() + times, slots);
    }
    if counts.len() != hosts {
        let problem = alloc::format!("these are counts for {} of {hosts} hosts", counts.len());
        return Err(fault(text, problem));
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoGroups;

    fn read(text: &str) -> Vec<(String, u32)> {
        let list = HostList::from_file_text(text, "hosts", &NoGroups);
        let list = list.unwrap_or_else(|error| panic!("{error}"));
        list.hosts().map(|(name, slots)| (name.to_string(), slots)).collect()
    }

    fn named(hosts: &[(&str, u32)]) -> Vec<(String, u32)> {
        hosts.iter().map(|&(name, slots)| (name.to_string(), slots)).collect()
    }

    #[test]
    fn every_dialect_is_read() {
        let text =
            "# first\nb\na slots=4 max_slots=8\n\nc:2\r\nd[1-2],e\n; last\nf:1 binding=0,1\n";
        let hosts = [("b", 1), ("a", 4), ("c", 2), ("d1", 1), ("d2", 1), ("e", 1), ("f", 1)];
        assert_eq!(read(text), named(&hosts));
        assert_eq!(read("n1\nn1\nn2\nn1\n"), named(&[("n1", 3), ("n2", 1)]));
        assert_eq!(read("n1 n2\tn3"), named(&[("n1", 1), ("n2", 1), ("n3", 1)]));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_quoted_with_its_number() {
        for (text, what) in [
            ("a\nb:x\n", "hosts line 2: \"b:x\": \"x\" is no number of slots"),
            ("a slots=0", "line 1: \"a slots=0\": \"0\" is no number of slots"),
            ("\n\nn[1-\n", "line 3: \"n[1-\": nodeset"),
            ("slots=4", "a host is missing"),
            ("@io", "there is no such group"),
        ] {
            let error = HostList::from_file_text(text, "hosts", &NoGroups).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
    }

    #[test]
    fn slurm_counts_tasks_in_few_words() {
        let list = HostList::from_slurm("n[1-4]", Some("2(x3),1")).unwrap();
        let hosts: Vec<_> = list.hosts().map(|(_, slots)| slots).collect();
        assert_eq!(hosts, [2, 2, 2, 1]);
        let list = HostList::from_slurm("z[1,3],a", Some("1(x2),7")).unwrap();
        assert_eq!(list.hosts().last(), Some(("a", 7)));
        for counts in ["2(x4),1", "2", "x", "2(x", "2(x0),1(x4)", "2(x99999999999)"] {
            let error = HostList::from_slurm("n[1-4]", Some(counts)).unwrap_err();
            assert!(error.to_string().starts_with("SLURM_TASKS_PER_NODE"), "{error}");
        }
        assert_eq!(HostList::from_slurm("a,b", None).unwrap().hosts().len(), 2);
    }
}
