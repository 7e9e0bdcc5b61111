//! The file with the address of a group's first member: a script that starts members names it to
//! all of them, and reads no output. A first member that was killed leaves its file behind.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::draft::Draft;
use crate::error::file_error;
use crate::group::Occupant;
use crate::{Error, Group, GroupBuilder, GroupFailure, Result};

/// How often it is looked whether the file is there, with the address of a member that listens.
const LOOK: Duration = Duration::from_millis(50);

/// More than any address has.
const BYTES_MAX: u64 = 64 << 10;

/// The file of a group's first member. It is removed when this is dropped, unless another member
/// has written to it, or this is a forked child, whose parent is the member.
#[derive(Debug)]
pub struct AddressFile {
    path: PathBuf,
    address: String,
    process: u32,
}

impl AddressFile {
    /// Removes the file of an earlier member, which no other one is to read any more: for a first
    /// member that is about to create its group, as `builder` says.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] where a member answers at the address in it, of this group or
    /// another; [`ErrorKind::Other`] where one may live there that does not answer; the system's,
    /// where it cannot be removed.
    pub fn clear(path: &Path, builder: &GroupBuilder) -> io::Result<()> {
        // A link or a pipe stays until the address takes its place.
        if !is_regular(path) {
            return Ok(());
        }
        // What cannot be read names no member.
        if let Some(address) = read(path).ok().flatten() {
            match builder.occupant(&address) {
                Occupant::Absent => {}
                Occupant::Member => {
                    let reason = format!(
                        "the member at {address} lives: end it before, or name another file"
                    );
                    return Err(io::Error::new(ErrorKind::AlreadyExists, reason));
                }
                Occupant::Unknown { reason } => {
                    return Err(io::Error::other(format!(
                        "the member at {address} may live ({reason}): end it and remove the file, \
                         or name another file"
                    )));
                }
            }
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes the address of a member, which readers see as a whole or not at all.
    ///
    /// # Errors
    /// The system's, where it cannot be written.
    pub fn write(path: &Path, member: &Group) -> io::Result<Self> {
        let address = member.address();
        let draft = Draft::of(path);
        // Members on other hosts read it: what a file server refuses shows here.
        draft.fill(&format!("{address}\n"), 0o666)?.sync_all()?;
        draft.put_in_place()?;
        Ok(Self { path: path.to_path_buf(), address, process: std::process::id() })
    }

    /// Joins the group of the member whose address is in a file. For as long as `patience` says the
    /// file is waited for, and read again while no process listens at the address in it: that is an
    /// earlier member's. The wait ends early if `is_interrupted`, which is asked between two looks,
    /// says so.
    ///
    /// # Errors
    /// [`Error::NoAddress`] where the file is not there in time, [`Error::File`] where it cannot be
    /// read, [`Error::Interrupted`], and those of [`GroupBuilder::join`].
    pub fn join(
        path: &Path,
        builder: &GroupBuilder,
        patience: Duration,
        mut is_interrupted: impl FnMut() -> bool,
    ) -> Result<Group> {
        let begun = Instant::now();
        loop {
            let address = read(path).map_err(|error| file_error(path, error.to_string()))?;
            let failure = match address {
                Some(address) => match builder.clone().join(&address) {
                    Err(error) if is_unheard(&error) => error,
                    outcome => return outcome,
                },
                None => Error::NoAddress { path: path.to_path_buf(), waited: patience },
            };
            if begun.elapsed() >= patience {
                return Err(failure);
            }
            if is_interrupted() {
                return Err(Error::Interrupted { what: "address of a group" });
            }
            std::thread::sleep(LOOK.min(patience));
        }
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        if self.process != std::process::id() || !is_regular(&self.path) {
            return;
        }
        if read(&self.path).is_ok_and(|found| found.as_ref() == Some(&self.address)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether a name is that of a regular file itself: a link is none.
fn is_regular(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// Whether no process listens at the address.
fn is_unheard(error: &Error) -> bool {
    matches!(error, Error::Group(GroupFailure::NotJoined { is_refused: true, .. }))
}

/// The address; none if the file is not there yet.
fn read(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text)?;
    Ok(Some(text.trim().to_string()).filter(|text| !text.is_empty()))
}
