//! The right to start a tree of one name, which one process of a user has at a time.
//!
//! Owns [`Claim`], a locked file in the folder of the control sockets: from before a host is logged
//! in to until the tree is found by its control socket. Whether the name is a good one, and what
//! becomes of two trees where no such file can be made, is left to their networks.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use sapwood_command_line::exit::Failure;

/// How the files' names end, behind the name of the tree.
const ENDING: &str = "starting";

/// The most that is read of the number of a process, in bytes.
const NUMBER_BYTES_MAX: u64 = 20;

/// How often a file is opened that others remove at the same moment.
const TRIES_MAX: u32 = 100;

/// The right to start a tree of one name. It ends when it is dropped, and with its process.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    /// Holds the lock.
    file: File,
}

impl Claim {
    /// Claims a name; nothing where no file of that name can be made or locked.
    ///
    /// # Errors
    /// [`Failure`] where another process is just starting a tree of that name.
    pub(crate) fn of(folder: &Path, name: &str) -> Result<Option<Self>, Failure> {
        if Path::new(name).file_name() != Some(OsStr::new(name)) {
            return Ok(None);
        }
        let path = folder.join(format!("{name}.{ENDING}"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        for _ in 0..TRIES_MAX {
            let Ok(mut file) = options.open(&path) else { return Ok(None) };
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, &path) => {
                    // For the line that another process says; it does without.
                    let _ = file.set_len(0);
                    let _ = write!(file, "{}", std::process::id());
                    return Ok(Some(Self { path, file }));
                }
                // Its owner has removed it meanwhile, and the next is another file.
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Err(held(name, file)),
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // While it is locked. Where its folder was emptied meanwhile, the path may be another's.
        if is_at(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether a file is the one that has this path.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(own), Ok(there)) = (file.metadata(), path.metadata()) else { return false };
    (own.dev(), own.ino()) == (there.dev(), there.ino())
}

fn held(name: &str, file: File) -> Failure {
    let mut number = String::new();
    let read = file.take(NUMBER_BYTES_MAX).read_to_string(&mut number);
    let by = match (read, number.parse::<u32>()) {
        (Ok(_), Ok(pid)) => format!(", by process {pid}"),
        // It has not written it yet.
        _ => String::new(),
    };
    Failure::usage(format!(
        "a tree '{name}' is just being started{by}; wait for it, or give this one another --network"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_claimed_once_at_a_time_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let claim = |name: &str| Claim::of(folder.path(), name);
        let first = claim("warm").unwrap().expect("no other process starts one");
        let said = format!("{:?}", claim("warm").expect_err("the name is claimed"));
        let own = format!("'warm' is just being started, by process {};", std::process::id());
        assert!(said.contains(&own), "{said}");
        assert!(claim("other").unwrap().is_some(), "each name is claimed by itself");
        drop(first);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(claim("warm").unwrap().is_some());
    }

    #[test]
    fn what_a_process_that_was_killed_has_left_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("warm.starting"), "4194305000").unwrap();
        assert!(Claim::of(folder.path(), "warm").unwrap().is_some());
    }

    #[test]
    fn what_is_no_name_of_a_file_is_left_to_the_network() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", "..", "../warm", "a/b", &"n".repeat(300)] {
            assert!(Claim::of(folder.path(), name).unwrap().is_none(), "{name}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
