//! The liveness pipe of a tree: its processes end with the front-end even if no link reports the
//! end.
//!
//! In a tree that repairs itself no process ends with the one that has started it, so a process
//! that is busy, asleep or stopped could be left behind when the tree ends. Therefore the front-end
//! holds the only write end of a pipe, and every other process of the tree a read end, for which it
//! has asked the kernel for `SIGKILL` in the place of `SIGIO` (`F_SETSIG`, `O_ASYNC`). Nothing is
//! ever written. When the write end closes, because the front-end has closed it or has ended in any
//! way, the kernel kills all of them. In the other direction, the write end is hung up when all of
//! them have ended.
//!
//! The signal belongs to an open file and not to a descriptor, so each process opens the pipe for
//! itself, by way of the descriptor that it was handed.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Signal, getpid};
use sapwood_transport::take_inherited_descriptor;

use crate::LaunchError;

/// The variable by which a process learns which descriptor is its liveness pipe.
pub const LIVENESS_PIPE_VARIABLE: &str = "SAPWOOD_LIVENESS_PIPE";

/// `F_SETSIG` of Linux (`include/uapi/asm-generic/fcntl.h`), which the libc crate does not name.
pub(crate) const F_SETSIG: libc::c_int = 10;

/// The front-end's end of the liveness pipe. Dropping it kills all processes that hold it.
#[derive(Debug)]
pub struct LivenessPipe {
    writer: PipeWriter,
}

impl LivenessPipe {
    /// A new liveness pipe, and the end that is handed to the processes of the tree under
    /// [`LIVENESS_PIPE_VARIABLE`]. Drop that end once all are started.
    ///
    /// # Errors
    /// The system's, if no descriptor is free.
    pub fn new() -> io::Result<(Self, PipeReader)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self { writer }, reader))
    }

    /// Whether no process holds a read end any more.
    #[must_use]
    pub fn is_free(&self) -> bool {
        has_hung_up(self.as_fd(), PollFlags::OUT)
    }
}

/// A descriptor for the poll loop: hung up once no process holds a read end.
impl AsFd for LivenessPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.writer.as_fd()
    }
}

/// Has the kernel kill this process when the front-end ends, if the starter ordered it, and does
/// nothing otherwise. Returns the read end to hand to the processes that it starts in turn. It
/// stays open until this process ends.
///
/// # Errors
/// [`LaunchError::StarterGone`] if the front-end has ended: end as well.
pub fn hold_liveness_pipe() -> Result<Option<&'static OwnedFd>, LaunchError> {
    static HELD: OnceLock<OwnedFd> = OnceLock::new();
    if let Some(held) = HELD.get() {
        return Ok(Some(held));
    }
    let handed = std::env::var(LIVENESS_PIPE_VARIABLE).ok();
    let number = handed.as_deref().and_then(|text| text.strip_prefix("fd:")?.parse().ok());
    let Some(Ok(handed)) = number.map(take_inherited_descriptor) else { return Ok(None) };
    // Where the kernel does not do this, only links report the front-end's end.
    let held = tie(&handed).unwrap_or(handed);
    // After the request for the signal, so that no end is missed.
    if has_hung_up(held.as_fd(), PollFlags::IN) {
        return Err(LaunchError::StarterGone);
    }
    Ok(Some(HELD.get_or_init(|| held)))
}

/// Opens the pipe anew, to be killed when its write end closes.
fn tie(handed: &OwnedFd) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", handed.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let own = rustix::fs::open(path, flags, Mode::empty())?;
    control(own.as_fd(), libc::F_SETOWN, getpid().as_raw_nonzero().get())?;
    control(own.as_fd(), F_SETSIG, Signal::KILL.as_raw())?;
    fcntl_setfl(&own, fcntl_getfl(&own)? | OFlags::ASYNC)?;
    Ok(own)
}

/// Only a system call, which makes it safe between fork and exec.
pub(crate) fn control(
    descriptor: BorrowedFd<'_>,
    command: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: The descriptor is open for as long as it is borrowed. Both commands that this is
    // called with take one number and set something in the open file; they touch no memory.
    let result = unsafe { libc::fcntl(descriptor.as_raw_fd(), command, value) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether the other end of a pipe is closed.
fn has_hung_up(pipe: BorrowedFd<'_>, interest: PollFlags) -> bool {
    let mut watched = [PollFd::from_borrowed_fd(pipe, interest)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let ended = PollFlags::HUP | PollFlags::ERR;
    poll(&mut watched, Some(&at_once)).is_ok() && watched[0].revents().intersects(ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_liveness_pipe_is_free_when_its_last_holder_is_gone() {
        let (liveness_pipe, end) = LivenessPipe::new().unwrap();
        let other = end.try_clone().unwrap();
        drop(end);
        assert!(!liveness_pipe.is_free());
        drop(other);
        assert!(liveness_pipe.is_free());
    }

    #[test]
    fn who_is_not_tied_sees_the_end() {
        let (liveness_pipe, end) = LivenessPipe::new().unwrap();
        assert!(!has_hung_up(end.as_fd(), PollFlags::IN));
        drop(liveness_pipe);
        assert!(has_hung_up(end.as_fd(), PollFlags::IN));
    }
}
