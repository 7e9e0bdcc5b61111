//! The file with the address of a group's first member: a script that starts members names it to
//! all of them, and reads no output. A first member that was killed leaves its file behind.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sapwood::{Error, Group, GroupBuilder, GroupFailure};
use sapwood_command_line::exit::Failure;

/// How often it is looked whether the file is there, with the address of a member that listens.
const LOOK: Duration = Duration::from_millis(50);
/// More than any address has.
const BYTES_MAX: u64 = 64 << 10;

/// A file that was written; removed when dropped, unless another member has written to it.
pub(crate) struct AddressFile {
    path: PathBuf,
    address: String,
}

impl AddressFile {
    /// Removes the file of an earlier member, which no other one is to read any more.
    ///
    /// # Errors
    /// [`Failure`] where it cannot be removed.
    pub(crate) fn clear(path: &Path) -> Result<(), Failure> {
        // A link or a pipe stays until the address takes its place.
        if !std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
            return Ok(());
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Failure::usage(format!("cannot remove '{}': {error}", path.display())))
            }
            _ => Ok(()),
        }
    }

    /// Writes the file, which readers see as a whole or not at all.
    ///
    /// # Errors
    /// [`Failure`] where it cannot be written.
    pub(crate) fn write(path: &Path, address: String) -> Result<Self, Failure> {
        sapwood_report::write_whole(path, format!("{address}\n").as_bytes())
            .map_err(Failure::usage)?;
        Ok(Self { path: path.to_path_buf(), address })
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        if read(&self.path).is_ok_and(|address| address.is_some_and(|read| read == self.address)) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Joins the group of the member whose address is in a file. The file is waited for, and read again
/// while no process listens at the address in it: that is an earlier member's.
///
/// # Errors
/// [`Failure`] where it is not there in time, cannot be read, or the member does not take this one.
pub(crate) fn join(path: &Path, time: Duration, builder: &GroupBuilder) -> Result<Group, Failure> {
    let begun = Instant::now();
    loop {
        let failed = |error| Failure::usage(format!("cannot read '{}': {error}", path.display()));
        let failure = match read(path).map_err(failed)? {
            Some(address) => match builder.clone().join(&address) {
                Err(error) if is_unheard(&error) => Failure::from(error),
                outcome => return Ok(outcome?),
            },
            None => Failure::timeout(format!(
                "no member has written its address to '{}' within {time:?}",
                path.display()
            )),
        };
        if begun.elapsed() >= time {
            return Err(failure);
        }
        std::thread::sleep(LOOK.min(time));
    }
}

/// Whether no process listens at the address.
fn is_unheard(error: &Error) -> bool {
    matches!(error, Error::Group(GroupFailure::NotJoined { is_refused: true, .. }))
}

/// The address; none if the file is not there yet.
fn read(path: &Path) -> std::io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text)?;
    Ok(Some(text.trim().to_string()).filter(|text| !text.is_empty()))
}
