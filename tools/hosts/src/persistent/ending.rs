//! Why a tree has ended without `sapwood down`: its daemon has no terminal to say so.
//!
//! Owns [`Ending`] and the file of it in the folder of the control socket, mode 0600. The daemon
//! leaves it, or in the place of one that was killed the process that finds out. The first command
//! that names the tree, or would have used it, takes it away and tells it; so does the next tree of
//! that name.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use sapwood_command_line::exit::one_line;
use sapwood_topology::NodeSet;

/// How the files' names end, behind the name of the tree.
const ENDING: &str = "ended";

/// The longest file, in bytes. In a longer one the hosts would be no whole set.
const FILE_BYTES_MAX: usize = 1 << 20;

/// Why a tree has ended by itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) reason: String,
    /// Which commands it served, where that is known.
    pub(crate) served: Option<Served>,
}

/// Which commands a tree served.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// How the hosts were reached.
    pub(crate) reach: String,
    /// The hosts, folded.
    pub(crate) hosts: String,
}

impl Ending {
    /// Of a tree whose daemon could say nothing.
    pub(crate) fn of_killed() -> Self {
        Self { reason: "its daemon was killed or has crashed".to_string(), served: None }
    }

    /// Whether a command that reaches these hosts in this way would have used the tree, as far as
    /// is known.
    pub(crate) fn may_have_served(&self, reach: &str, hosts: &NodeSet) -> bool {
        let Some(served) = &self.served else { return true };
        let covers = |known: NodeSet| hosts.difference(&known).is_empty();
        served.reach == one_line(reach) && served.hosts.parse::<NodeSet>().is_ok_and(covers)
    }

    fn text(&self) -> String {
        let reason = format!("{}\n", one_line(&self.reason));
        let Some(Served { reach, hosts }) = &self.served else { return reason };
        let text = format!("{reason}{}\n{hosts}\n", one_line(reach));
        if text.len() <= FILE_BYTES_MAX { text } else { reason }
    }

    fn read(path: &Path) -> Option<Self> {
        let mut text = String::new();
        let file = fs::File::open(path).ok()?;
        file.take(FILE_BYTES_MAX as u64).read_to_string(&mut text).ok()?;
        let mut lines = text.lines().map(str::to_string);
        let reason = one_line(&lines.next()?);
        let served = match (lines.next(), lines.next()) {
            (Some(reach), Some(hosts)) => Some(Served { reach, hosts }),
            _ => None,
        };
        Some(Self { reason, served })
    }
}

fn path_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.{ENDING}"))
}

/// Leaves it, unless one is there, which is of the same tree. Where it cannot be written there is
/// no other place for it.
pub(crate) fn leave(folder: &Path, name: &str, ending: &Ending) {
    let path = path_of(folder, name);
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    if let Ok(mut file) = file
        && file.write_all(ending.text().as_bytes()).is_err()
    {
        // A part of the hosts could be taken for all of them.
        let _ = fs::remove_file(path);
    }
}

/// There is a tree of this name again.
pub(crate) fn forget(folder: &Path, name: &str) {
    let _ = fs::remove_file(path_of(folder, name));
}

/// A line for each tree that has ended and is meant, by their names. It is taken away, so that no
/// other command tells it again.
pub(crate) fn take(folder: &Path, is_meant: impl Fn(&str, &Ending) -> bool) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
    paths.sort();
    let told = |path: &PathBuf| {
        let name = path.file_stem()?.to_str()?;
        let ending = Ending::read(path).filter(|ending| is_meant(name, ending))?;
        // Of several commands at the same time, the one that removes it tells it.
        fs::remove_file(path).ok()?;
        Some(format!("tree '{name}' has ended: {}", ending.reason))
    };
    paths.iter().filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(reason: &str, hosts: &str) -> Ending {
        let served = Served { reach: "launcher ssh".to_string(), hosts: hosts.to_string() };
        Ending { reason: reason.to_string(), served: Some(served) }
    }

    #[test]
    fn a_reason_is_told_once_and_of_the_tree_that_is_meant() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &'static str| take(folder.path(), move |known, _| known == name);
        assert!(of("warm").is_empty());
        leave(folder.path(), "warm", &ending("no host is left\nof them all", "n[1-2]"));
        leave(folder.path(), "warm", &Ending::of_killed());
        leave(folder.path(), "other", &ending("cannot wait", "n1"));
        assert_eq!(of("warm"), ["tree 'warm' has ended: no host is left of them all"]);
        assert!(of("warm").is_empty(), "it was told");
        assert_eq!(of("other"), ["tree 'other' has ended: cannot wait"]);
        leave(folder.path(), "warm", &Ending::of_killed());
        forget(folder.path(), "warm");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_command_is_told_of_a_tree_that_had_its_hosts_in_the_same_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_of(folder.path(), "warm");
        let serves = |reach: &str, hosts: &str| {
            let left = Ending::read(&path).expect("it was left");
            left.may_have_served(reach, &hosts.parse().unwrap())
        };
        leave(folder.path(), "warm", &ending("cannot wait", "n[1-3]"));
        assert!(serves("launcher ssh", "n[1,3]"));
        assert!(!serves("launcher ssh", "n[3-4]"));
        assert!(!serves("launcher local", "n1"));
        // Of others it is not known which hosts they had.
        let many = "n".repeat(FILE_BYTES_MAX);
        for unknown in [Ending::of_killed(), ending("cannot wait", &many)] {
            forget(folder.path(), "warm");
            leave(folder.path(), "warm", &unknown);
            assert_eq!(Ending::read(&path).unwrap().reason, unknown.reason);
            assert!(serves("launcher local", "n9"));
        }
    }
}
