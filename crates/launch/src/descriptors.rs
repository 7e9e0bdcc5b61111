//! Which descriptors a new process gets.
//!
//! The standard library and this project open everything close-on-exec, but the program around us,
//! or its starter, may not have. Each start looks for such stray descriptors, and the new process
//! closes them.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};

use crate::stderr::own_stderr;
use crate::{INHERITED_MAX, LaunchError, Order};

/// The lowest number beside the standard streams.
const FIRST_NUMBER: RawFd = 3;

/// Room for one look at the list of descriptors: about 80 of them. Longer lists take more looks.
const LISTING_BYTES: usize = 2048;

/// Duplicates of an order's descriptors for the new process, under the numbers that they will
/// have there. They are close-on-exec here, and closed when this is dropped.
pub(crate) struct Inheritance {
    duplicates: Vec<OwnedFd>,
    /// Our own standard error, if that is handed over.
    stderr: Option<OwnedFd>,
    /// The read end of the reaper of the new process's group.
    reaper: Option<OwnedFd>,
}

impl Inheritance {
    /// Duplicates all descriptors of an order.
    pub(crate) fn of(order: &Order<'_>) -> Result<Self, LaunchError> {
        if order.inherit.len() > INHERITED_MAX {
            return Err(LaunchError::ApiMisuse {
                rule: "a process inherits at most 16 descriptors beside its standard streams",
            });
        }
        let refused = |cause| LaunchError::Refused { program: order.program.clone(), cause };
        let duplicate = |descriptor: &BorrowedFd<'_>| {
            rustix::io::fcntl_dupfd_cloexec(descriptor, FIRST_NUMBER)
                .map_err(|cause| refused(cause.into()))
        };
        let duplicates = order
            .inherit
            .iter()
            .map(|(_, descriptor)| duplicate(descriptor))
            .collect::<Result<_, _>>()?;
        let stderr = if order.hand_stderr && !order.inherit_stderr {
            Some(own_stderr(FIRST_NUMBER).map_err(refused)?)
        } else {
            None
        };
        let reaper = order.group_reaper.map(|reaper| duplicate(&reaper.end())).transpose()?;
        Ok(Self { duplicates, stderr, reaper })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.duplicates.is_empty() && self.stderr.is_none() && self.reaper.is_none()
    }

    /// The read end of the reaper that is to hold the new process's group.
    pub(crate) fn reaper(&self) -> Option<&OwnedFd> {
        self.reaper.as_ref()
    }

    /// The number that our own standard error has in the new process, if it is handed over.
    pub(crate) fn stderr(&self) -> Option<RawFd> {
        self.stderr.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// What the variable of each descriptor is set to, in the order's order.
    pub(crate) fn values(&self) -> impl Iterator<Item = String> + '_ {
        self.duplicates.iter().map(|duplicate| format!("fd:{}", duplicate.as_raw_fd()))
    }

    pub(crate) fn numbers(&self) -> Vec<RawFd> {
        self.all().map(AsRawFd::as_raw_fd).collect()
    }

    fn all(&self) -> impl Iterator<Item = &OwnedFd> {
        self.duplicates.iter().chain(&self.stderr).chain(&self.reaper)
    }

    /// Lets every process that is started from here on inherit the duplicates, for a start
    /// without fork. Only where no other thread can start one.
    pub(crate) fn open_to_all(&self) -> io::Result<()> {
        for duplicate in self.all() {
            fcntl_setfd(duplicate, FdFlags::empty())?;
        }
        Ok(())
    }
}

/// The strays: descriptors that any process started here would inherit.
pub(crate) fn strays() -> io::Result<Vec<RawFd>> {
    let mut strays = Vec::new();
    for_each_number(|descriptor| {
        if !fcntl_getfd(descriptor)?.contains(FdFlags::CLOEXEC) {
            strays.push(descriptor.as_raw_fd());
        }
        Ok(())
    })?;
    Ok(strays)
}

/// Withholds strays from the processes that are started during its life.
///
/// For a process without other threads only: no thread can close, open or hand over a descriptor
/// meanwhile.
pub(crate) struct Withheld(Vec<RawFd>);

impl Withheld {
    pub(crate) fn new(strays: Vec<RawFd>) -> io::Result<Self> {
        let withheld = Self(strays);
        withheld.mark(FdFlags::CLOEXEC)?;
        Ok(withheld)
    }

    fn mark(&self, flags: FdFlags) -> io::Result<()> {
        for &number in &self.0 {
            fcntl_setfd(borrow(number), flags)?;
        }
        Ok(())
    }
}

impl Drop for Withheld {
    fn drop(&mut self) {
        // It worked a moment ago, and no other thread can have closed them.
        let _ = self.mark(FdFlags::empty());
    }
}

/// Makes sure, between fork and exec, that the new program gets the `inherited` descriptors and
/// no other beside its standard streams.
///
/// Only system calls and no allocation, as the place demands.
pub(crate) fn keep_only(inherited: &[RawFd]) -> io::Result<()> {
    for_each_number(|descriptor| {
        let kept = inherited.contains(&descriptor.as_raw_fd());
        fcntl_setfd(descriptor, if kept { FdFlags::empty() } else { FdFlags::CLOEXEC })
    })
}

/// Whether other threads run in this process, which could start a process at any moment.
pub(crate) fn has_other_threads() -> io::Result<bool> {
    // A folder has as many links as it has folders in it, and two.
    Ok(rustix::fs::stat("/proc/self/task")?.st_nlink > 3)
}

fn for_each_number(
    mut visit: impl FnMut(BorrowedFd<'_>) -> rustix::io::Result<()>,
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listing = rustix::fs::open("/proc/self/fd", flags, Mode::empty())?;
    let mut room = [MaybeUninit::uninit(); LISTING_BYTES];
    let mut entries = RawDir::new(listing.as_fd(), &mut room);
    while let Some(entry) = entries.next() {
        let Some(number) = parse_number(entry?.file_name().to_bytes()) else { continue };
        if number < FIRST_NUMBER {
            continue;
        }
        match visit(borrow(number)) {
            // Listed, and closed meanwhile: the listing's own number is one of these.
            Ok(()) | Err(Errno::BADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn borrow<'a>(number: RawFd) -> BorrowedFd<'a> {
    // SAFETY: The number was listed as open, is not -1, and is used only for fcntl on its
    // close-on-exec flag. Should another thread have closed it, fcntl says so and does nothing;
    // no ownership is taken.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Reads a decimal number without allocation; `.` and `..` are none.
fn parse_number(digits: &[u8]) -> Option<RawFd> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listing_holds_numbers_and_dots() {
        assert_eq!(parse_number(b"17"), Some(17));
        assert_eq!(parse_number(b"."), None);
        assert_eq!(parse_number(b".."), None);
    }

    #[test]
    fn a_listing_longer_than_one_look_is_seen_whole() {
        let pipes: Vec<_> = (0..100).map(|_| io::pipe().unwrap()).collect();
        let mut seen = Vec::new();
        for_each_number(|descriptor| {
            seen.push(descriptor.as_raw_fd());
            Ok(())
        })
        .unwrap();
        for (reader, writer) in &pipes {
            assert!(seen.contains(&reader.as_raw_fd()) && seen.contains(&writer.as_raw_fd()));
        }
    }
}
