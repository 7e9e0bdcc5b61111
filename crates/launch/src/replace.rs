//! Another program in the place of this one.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Runs a program in the place of this one: with the same process number, standard streams and
/// environment. Comes back only when that fails, with the reason.
#[must_use]
pub fn replace_process(program: &Path, arguments: &[OsString]) -> io::Error {
    Command::new(program).args(arguments).exec()
}
