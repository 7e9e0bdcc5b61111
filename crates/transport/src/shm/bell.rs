//! What wakes a process that waits for its rings: an event counter of the system.
//!
//! It is watched edge-triggered and never read, so that a wake-up is one system call of the peer
//! and one wait of this process. A byte on the socket in its place would cost both sides what a
//! short message over that socket costs, and nothing would be gained (`docs/bench-history.md`).

use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::EventfdFlags;
use rustix::fs::OFlags;

use crate::{Error, Result};

/// What the system calls such a descriptor.
const KIND: &str = "anon_inode:[eventfd]";

#[derive(Debug)]
pub(super) struct Bell {
    counter: OwnedFd,
}

impl Bell {
    pub(super) fn new() -> Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let counter = rustix::event::eventfd(0, flags)
            .map_err(|cause| Error::io("make a link's bell", cause))?;
        Ok(Self { counter })
    }

    /// Takes the bell that a peer has made, if it is one: writing to something else could block.
    pub(super) fn adopt(descriptor: OwnedFd) -> Result<Self> {
        let link = fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
        let is_counter = link.is_ok_and(|kind| kind.as_os_str() == KIND);
        let flags = rustix::fs::fcntl_getfl(&descriptor);
        if !is_counter || !flags.is_ok_and(|flags| flags.contains(OFlags::NONBLOCK)) {
            return Err(Error::InvalidTable { problem: "a link's bell is no event counter" });
        }
        Ok(Self { counter: descriptor })
    }

    pub(super) fn duplicate(&self) -> Result<OwnedFd> {
        self.counter.try_clone().map_err(|cause| Error::io("duplicate a link's bell", cause))
    }

    /// Wakes the other side, now or at its next wait.
    pub(super) fn ring(&self) {
        // A full counter is a wake-up that is still pending.
        let _ = rustix::io::write(&self.counter, &1_u64.to_ne_bytes());
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.counter.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_event_counter_that_does_not_block_is_taken() {
        let bell = Bell::new().unwrap();
        assert!(Bell::adopt(bell.duplicate().unwrap()).is_ok());
        let (reader, writer) = std::io::pipe().unwrap();
        assert!(Bell::adopt(reader.into()).is_err() && Bell::adopt(writer.into()).is_err());
        assert!(Bell::adopt(tempfile::tempfile().unwrap().into()).is_err());
        let blocking = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        assert!(Bell::adopt(blocking).is_err());
    }
}
