//! The limit on the size of files (`ulimit -f`), which holds for memory files as well.
//!
//! What goes beyond it raises `SIGXFSZ`, which ends a program that does not expect it. A library
//! sets no dispositions of signals, so it looks at the limit before it writes.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Whether this process may have a file of this size.
///
/// # Errors
/// `EFBIG`, as the write itself would give where the signal is ignored.
pub fn check_file_limit(bytes: u64) -> io::Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if bytes > limit => Err(Errno::FBIG.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_larger_than_the_limit() {
        assert!(check_file_limit(0).is_ok());
        if let Some(limit) = getrlimit(Resource::Fsize).current {
            assert!(check_file_limit(limit).is_ok());
            let error = check_file_limit(limit + 1).expect_err("it is beyond");
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        }
    }
}
