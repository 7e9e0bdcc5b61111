//! Whether a daemon can still be found: its control socket lies in a folder that is removed when
//! its user logs out, and no command reaches it then.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Between two looks. A folder that is being replaced is there again at the second one.
pub(crate) const LOOK_PERIOD: Duration = Duration::from_secs(60);
/// After how many looks without it the socket is gone for good.
const LOOKS_MAX: u32 = 2;

/// Where a daemon is found.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    /// The device and the number of the socket's file.
    own: Found,
    looked_at: Instant,
    looks_without: u32,
}

impl Place {
    /// Of a socket that was just made.
    pub(crate) fn new(path: PathBuf, now: Instant) -> Self {
        Self { own: file_at(&path), path, looked_at: now, looks_without: 0 }
    }

    /// Whether the socket has been gone, or another's has been in its place, at several looks. It
    /// looks at most once in [`LOOK_PERIOD`].
    pub(crate) fn is_gone(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.looked_at) >= LOOK_PERIOD {
            self.looked_at = now;
            match file_at(&self.path) {
                // Nothing is known of a file system that does not answer, or of its own first look.
                Found::Unknown => {}
                _ if self.own == Found::Unknown => {}
                found if found == self.own => self.looks_without = 0,
                _ => self.looks_without += 1,
            }
        }
        self.looks_without >= LOOKS_MAX
    }

    /// The socket's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    File { device: u64, number: u64 },
    Nothing,
    Unknown,
}

fn file_at(path: &Path) -> Found {
    match std::fs::symlink_metadata(path) {
        Ok(found) => Found::File { device: found.dev(), number: found.ino() },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Found::Nothing,
        Err(_) => Found::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, Place, Instant) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("warm.tree");
        std::fs::write(&path, "").unwrap();
        let begin = Instant::now();
        (folder, Place::new(path, begin), begin)
    }

    #[test]
    fn a_socket_is_gone_when_two_looks_do_not_find_it() {
        let (folder, mut place, begin) = place();
        assert!(!place.is_gone(begin + LOOK_PERIOD));
        folder.close().unwrap();
        assert!(!place.is_gone(begin + LOOK_PERIOD * 3 / 2), "it has just looked");
        assert!(!place.is_gone(begin + LOOK_PERIOD * 2));
        assert!(!place.is_gone(begin + LOOK_PERIOD * 2), "one look");
        assert!(place.is_gone(begin + LOOK_PERIOD * 3));
    }

    #[test]
    fn a_socket_that_comes_back_is_not_gone_and_one_of_another_is() {
        let (_folder, mut place, begin) = place();
        let aside = place.path().with_extension("aside");
        std::fs::rename(place.path(), &aside).unwrap();
        assert!(!place.is_gone(begin + LOOK_PERIOD));
        std::fs::rename(&aside, place.path()).unwrap();
        assert!(!place.is_gone(begin + LOOK_PERIOD * 2));
        std::fs::rename(place.path(), &aside).unwrap();
        std::fs::write(place.path(), "").unwrap();
        assert!(!place.is_gone(begin + LOOK_PERIOD * 3));
        assert!(place.is_gone(begin + LOOK_PERIOD * 4));
    }
}
