//! Descriptors that are held back while processes are started.
//!
//! A process that its starter has no descriptor left to be linked to is of no use, and keeps others
//! from theirs: so each start leaves one for the link, and what cannot be linked is not started.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};

/// Descriptors that serve nothing but to be free again when this is dropped.
#[derive(Debug, Default)]
pub struct Reserve {
    held: Vec<OwnedFd>,
}

impl Reserve {
    /// Holds this number of descriptors back at once.
    ///
    /// # Errors
    /// The system's, if there are not as many.
    pub fn of(count: usize) -> io::Result<Self> {
        let mut reserve = Self::default();
        for _ in 0..count {
            reserve.hold_one()?;
        }
        Ok(reserve)
    }

    /// Holds one more back.
    pub(crate) fn hold_one(&mut self) -> io::Result<()> {
        self.held.push(eventfd(0, EventfdFlags::CLOEXEC)?);
        Ok(())
    }

    /// Needs the last one no more.
    pub(crate) fn free_one(&mut self) {
        self.held.pop();
    }
}
