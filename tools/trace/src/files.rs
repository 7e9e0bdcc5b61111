//! The files that a user names for answers.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use sapwood_report::{is_descriptor, is_descriptor_name, write_named};

/// A file that can be written. One that was made for that is removed again if nothing has been
/// written into it, such as when the program is refused.
#[derive(Debug, Default)]
pub(crate) struct CheckedFile {
    made: Option<PathBuf>,
}

impl CheckedFile {
    /// It stays, even if it is empty.
    pub(crate) fn keep(&mut self) {
        self.made = None;
    }
}

impl Drop for CheckedFile {
    fn drop(&mut self) {
        let Some(file) = &self.made else { return };
        let found = file.symlink_metadata();
        if found.is_ok_and(|found| found.is_file() && found.len() == 0) {
            // It does no harm if it stays.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Whether a file can be written, before a program is started for what it is to hold. One that is
/// not there yet is made.
///
/// # Errors
/// One line that names it.
pub(crate) fn check(file: &Path) -> Result<CheckedFile, String> {
    if file == Path::new("-") {
        return Ok(CheckedFile::default());
    }
    let kind = file.metadata().map(|metadata| metadata.file_type());
    // What it is opened for waits for its other side, and takes no signal meanwhile.
    if kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket()) && !is_descriptor_name(file) {
        let file = file.display();
        return Err(format!("'{file}' is a pipe; name a file, or /dev/fd/N for an open pipe"));
    }
    if OpenOptions::new().append(true).create_new(true).open(file).is_ok() {
        return Ok(CheckedFile { made: Some(file.to_path_buf()) });
    }
    // It is there, or a link leads to where it is to be.
    let opened = OpenOptions::new().append(true).create(true).open(file);
    opened.map_err(|error| format!("cannot write '{}': {error}", file.display()))?;
    Ok(CheckedFile::default())
}

/// Opens a file that a user has named for what comes bit by bit: what a descriptor of this process
/// leads to is appended to, any other one is emptied.
///
/// # Errors
/// One line that names it.
pub(crate) fn open(file: &Path) -> Result<File, String> {
    let is_own = is_descriptor(file);
    let opened = OpenOptions::new().write(true).append(is_own).truncate(!is_own).open(file);
    opened.map_err(|error| format!("cannot write '{}': {error}", file.display()))
}

/// Writes a file that a user has named; `-` is standard output.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if file == Path::new("-") {
        return std::io::stdout().lock().write_all(bytes);
    }
    write_named(file, bytes)
}

/// Whether two names lead to one file, once it is there.
pub(crate) fn are_same(one: &Path, other: &Path) -> bool {
    let place = |file: &Path| {
        let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((metadata.dev(), metadata.ino()))
    };
    one == other || place(one).is_some_and(|one| place(other) == Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_made_and_not_written_is_removed() {
        let name = format!("sapwood-checked-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        drop(check(&file).expect("a folder that can be written"));
        assert!(!file.exists(), "nothing was written");
        let checked = check(&file).expect("the same");
        write(&file, b"answer").expect("it can be written");
        drop(checked);
        assert_eq!(std::fs::read(&file).expect("it is there"), b"answer");
        std::fs::write(&file, b"").expect("it can be written");
        drop(check(&file).expect("it is there"));
        assert!(file.exists(), "it was there before");
        std::fs::remove_file(&file).expect("it is there");
        let mut checked = check(&file).expect("it can be made");
        checked.keep();
        drop(checked);
        assert!(file.exists(), "it is kept");
        std::fs::remove_file(&file).expect("it is there");
    }
}
