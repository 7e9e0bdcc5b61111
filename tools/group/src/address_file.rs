//! The file with the address of a group's first member: a script that starts members names it to
//! all of them, and reads no output.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sapwood_command_line::exit::Failure;

/// How often it is looked whether the file is there.
const LOOK: Duration = Duration::from_millis(50);
/// More than any address has.
const BYTES_MAX: u64 = 64 << 10;

/// A file that was written; removed when dropped, unless another member has written to it.
pub(crate) struct AddressFile {
    path: PathBuf,
    address: String,
}

impl AddressFile {
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

/// The address in a file, which is waited for.
///
/// # Errors
/// [`Failure`] where it is not there in time, or cannot be read.
pub(crate) fn wait_for(path: &Path, time: Duration) -> Result<String, Failure> {
    let begun = Instant::now();
    loop {
        let failed = |error| Failure::usage(format!("cannot read '{}': {error}", path.display()));
        if let Some(address) = read(path).map_err(failed)? {
            return Ok(address);
        }
        if begun.elapsed() >= time {
            return Err(Failure::timeout(format!(
                "no member has written its address to '{}' within {time:?}",
                path.display()
            )));
        }
        std::thread::sleep(LOOK.min(time));
    }
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
