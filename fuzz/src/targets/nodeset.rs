//! Any text as a nodeset with groups, as a host file, and as what Slurm says of an allocation.

use std::collections::BTreeSet;

use sapwood_topology::{Folding, Groups, HostList, NodeSet};

use crate::Target;

/// A nodeset in the first line, groups in the next (`name nodes`), then a host file.
pub const TARGET: Target = Target { name: "nodeset", run, repair: None };

/// Larger sets are not compared name by name: the text is what is tried.
const COMPARED_NAMES_MAX: usize = 2000;

/// Groups out of the input.
struct Named<'a>(Option<(&'a str, &'a str)>);

impl Groups for Named<'_> {
    fn members(&self, _source: Option<&str>, group: &str) -> Result<Option<String>, String> {
        Ok(self.0.filter(|(name, _)| *name == group).map(|(_, nodes)| nodes.to_string()))
    }

    fn all(&self, _source: Option<&str>) -> Result<Option<String>, String> {
        Ok(self.0.map(|(_, nodes)| nodes.to_string()))
    }

    fn names(&self, source: Option<&str>) -> Result<Option<Vec<String>>, String> {
        match source {
            Some("broken") => Err("broken".to_string()),
            _ => Ok(self.0.map(|(name, _)| vec![name.to_string()])),
        }
    }
}

fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().unwrap_or("");
    let (set, group, file) = (line(), line(), line());
    let groups = Named(group.split_once(' '));
    match NodeSet::parse(set, &groups) {
        Ok(set) => check(&set),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
    match HostList::from_file_text(file, "hosts", &groups) {
        Ok(list) => assert!(list.hosts().all(|(name, slots)| !name.is_empty() && slots > 0)),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
    if let Err(error) = HostList::from_slurm(set, Some(group)) {
        assert!(!error.to_string().is_empty());
    }
}

fn check(set: &NodeSet) {
    if set.len() > COMPARED_NAMES_MAX {
        return;
    }
    let names: BTreeSet<String> = set.iter().collect();
    assert_eq!(names.len(), set.len(), "{set}: a name stands twice");
    for folding in [
        Folding::default(),
        Folding { step_count_min: Some(3), axes: Vec::new() },
        Folding { step_count_min: None, axes: vec![-1] },
    ] {
        let text = set.fold(&folding);
        let again = text.parse::<NodeSet>();
        assert_eq!(again.as_ref(), Ok(set), "{text}");
    }
    let parts = set.split(3);
    assert_eq!(parts.iter().map(NodeSet::len).sum::<usize>(), set.len());
    let (first, rest) = (&parts[0], set.difference(&parts[0]));
    assert_eq!(&first.union(&rest), set);
    assert!(first.intersection(&rest).is_empty());
    assert_eq!(set.symmetric_difference(first), rest);
}
