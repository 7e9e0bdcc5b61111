//! The files that a process of this host has open, as `/proc/PID/fd` lists them.

use std::fs;
use std::io;
use std::path::PathBuf;

/// A file that a process has open.
pub(crate) struct OpenFile {
    /// The path by which another process opens the same file, also one without a name.
    pub(crate) path: PathBuf,
    /// Its name, or what the kernel calls it, as `/memfd:NAME (deleted)` or `socket:[4711]`.
    pub(crate) name: PathBuf,
}

impl OpenFile {
    /// Whether its name begins so.
    pub(crate) fn is_called(&self, begin: &str) -> bool {
        self.name.to_string_lossy().starts_with(begin)
    }
}

/// Those of a process; one that it closes meanwhile may be left out.
///
/// # Errors
/// Where the process has ended, or may not be looked at.
pub(crate) fn open_files(process: i32) -> io::Result<impl Iterator<Item = OpenFile>> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd"))?.flatten();
    Ok(descriptors.filter_map(|descriptor| {
        let path = descriptor.path();
        let name = fs::read_link(&path).ok()?;
        Some(OpenFile { path, name })
    }))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    #[test]
    fn a_file_without_a_name_is_found_and_opened_again() {
        let own = std::process::id().cast_signed();
        let find = || {
            let mut all = open_files(own).expect("the own process");
            all.find(|file| file.is_called("/memfd:sapwood-open-files-test"))
        };
        assert!(find().is_none());
        let memory = memfd_create("sapwood-open-files-test", MemfdFlags::CLOEXEC);
        let mut memory = File::from(memory.expect("memory"));
        memory.write_all(b"known").expect("memory");
        let found = find().expect("it is open");
        assert_eq!(fs::read(found.path).expect("the same file"), b"known");
        assert!(open_files(i32::MAX).is_err(), "there is no such process");
    }
}
