//! Handing over standard error: a process that is to outlive its starter does not keep writing into
//! the pipe that the starter reads.
//!
//! At first a process writes into the pipe, so that its starter can tell why it failed. It is also
//! handed the starter's own standard error, and puts that in the pipe's place once it no longer
//! depends on the starter. From then on its writes do not fail when the starter ends, and the
//! starter sees the end of the pipe.
//!
//! ```text
//! SAPWOOD_STDERR=fd:N:DEVICE:INODE    N: the starter's standard error
//!                                     DEVICE, INODE: the pipe's, as fstat tells them
//! ```

use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags, fstat};
use rustix::io::Errno;
use sapwood_transport::take_inherited_descriptor;

/// The variable by which a process learns which descriptor is its starter's standard error.
pub const STDERR_VARIABLE: &str = "SAPWOOD_STDERR";

/// Puts the starter's standard error in the place of the pipe to the starter, if the starter
/// ordered it ([`Order::hand_stderr`](crate::Order::hand_stderr)). Does nothing if standard error
/// is another file by now. Answers whether it was done.
///
/// Call it once this process no longer needs its starter to tell others of its failure.
pub fn take_over_stderr() -> bool {
    let handed = std::env::var(STDERR_VARIABLE).ok();
    let Some(Handed { number, pipe }) = handed.as_deref().and_then(Handed::parse) else {
        return false;
    };
    // The number means something only where the pipe still is: a program that was started by this
    // one has the variable, too.
    if identity(rustix::stdio::stderr()) != Ok(pipe) {
        return false;
    }
    let Ok(descriptor) = take_inherited_descriptor(number) else { return false };
    rustix::stdio::dup2_stderr(&descriptor).is_ok()
}

/// A duplicate of this process's standard error for a new one; where it is closed, of a file that
/// takes everything.
pub(crate) fn own_stderr(first_number: RawFd) -> io::Result<OwnedFd> {
    match rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), first_number) {
        Ok(duplicate) => Ok(duplicate),
        Err(Errno::BADF) => {
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            let null = rustix::fs::open("/dev/null", flags, Mode::empty())?;
            Ok(rustix::io::fcntl_dupfd_cloexec(&null, first_number)?)
        }
        Err(cause) => Err(cause.into()),
    }
}

/// What the variable is set to.
pub(crate) fn variable(number: RawFd, pipe: impl AsFd) -> io::Result<String> {
    let (device, inode) = identity(pipe)?;
    Ok(format!("fd:{number}:{device}:{inode}"))
}

/// What the variable says.
#[derive(Debug, PartialEq, Eq)]
struct Handed {
    number: RawFd,
    pipe: (u64, u64),
}

impl Handed {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_prefix("fd:")?.splitn(3, ':');
        let number = words.next()?.parse().ok()?;
        let pipe = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { number, pipe })
    }
}

/// The identity of an open file.
fn identity(file: impl AsFd) -> rustix::io::Result<(u64, u64)> {
    let found = fstat(file)?;
    Ok((found.st_dev, found.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_read_as_it_is_written() {
        let (pipe, _writer) = io::pipe().unwrap();
        let text = variable(7, &pipe).unwrap();
        let expected = Handed { number: 7, pipe: identity(&pipe).unwrap() };
        assert_eq!(Handed::parse(&text), Some(expected));
        for damaged in ["", "7:1:2", "fd:7", "fd:7:1", "fd:x:1:2", "fd:7:1:2:3", "fd:7:-1:2"] {
            assert_eq!(Handed::parse(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn our_own_standard_error_is_handed_over_above_the_standard_streams() {
        let own = own_stderr(3).unwrap();
        assert_eq!(identity(&own), identity(rustix::stdio::stderr()));
        assert!(std::os::fd::AsRawFd::as_raw_fd(&own) >= 3);
    }
}
