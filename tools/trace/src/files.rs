//! The files that a user names for answers.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use sapwood_report::{is_descriptor, is_descriptor_name, write_named};

/// Whether a file can be written, before a program is started for what it is to hold. One that is
/// not there yet is made.
///
/// # Errors
/// One line that names it.
pub(crate) fn check(file: &Path) -> Result<(), String> {
    if file == Path::new("-") {
        return Ok(());
    }
    let kind = file.metadata().map(|metadata| metadata.file_type());
    // What it is opened for waits for its other side, and takes no signal meanwhile.
    if kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket()) && !is_descriptor_name(file) {
        let file = file.display();
        return Err(format!("'{file}' is a pipe; name a file, or /dev/fd/N for an open pipe"));
    }
    let opened = OpenOptions::new().append(true).create(true).open(file);
    opened.map(drop).map_err(|error| format!("cannot write '{}': {error}", file.display()))
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
