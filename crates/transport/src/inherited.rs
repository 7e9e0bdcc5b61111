//! Taking over a descriptor that the parent process left open for this one.
//!
//! A process receives such a descriptor as a number, and turning a number into an owner is the
//! one thing about it that the compiler cannot check. It is done here and nowhere else, and only
//! for a descriptor that can have been inherited: one without close-on-exec.

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::{Error, Result};

/// Takes over descriptor `number`, marks it close-on-exec and answers its owner.
///
/// Call it once for a number that the parent process named, at start-up and before other code
/// opens descriptors without close-on-exec. A second call for the same number is refused.
///
/// # Errors
/// [`Error::ApiMisuse`] for the standard streams (0, 1, 2) and for a descriptor that is
/// close-on-exec and so was opened by this process; [`Error::Io`] if it is not open.
pub fn take_inherited_descriptor(number: RawFd) -> Result<OwnedFd> {
    if number < 3 {
        return Err(Error::ApiMisuse { rule: "an inherited descriptor has a number from 3 on" });
    }
    if is_close_on_exec(number)? {
        return Err(Error::ApiMisuse { rule: "a descriptor of this process is not inherited" });
    }
    // SAFETY: The descriptor is open, as just seen. It is not close-on-exec, unlike everything
    // that the standard library and this crate open and unlike those taken over before; so it
    // came from the parent process, which named it for this purpose, and has no owner here yet.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::CLOEXEC)
        .map_err(|cause| Error::io(format!("mark descriptor {number} close-on-exec"), cause))?;
    Ok(descriptor)
}

fn is_close_on_exec(number: RawFd) -> Result<bool> {
    // SAFETY: The number is not -1, and the borrow ends with this question about the descriptor's
    // flags, which harms no owner that it may have. If it is not open the kernel says so.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = rustix::io::fcntl_getfd(descriptor)
        .map_err(|cause| Error::io(format!("take over descriptor {number}"), cause))?;
    Ok(flags.contains(rustix::io::FdFlags::CLOEXEC))
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, IntoRawFd};

    use super::*;

    #[test]
    fn an_inherited_descriptor_is_taken_over_once_and_no_other() {
        let (reader, writer) = std::io::pipe().unwrap();
        assert!(take_inherited_descriptor(writer.as_raw_fd()).is_err(), "it is our own");
        rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::empty()).unwrap();
        let number = OwnedFd::from(reader).into_raw_fd();
        let taken = take_inherited_descriptor(number).unwrap();
        assert_eq!(taken.as_raw_fd(), number);
        assert!(take_inherited_descriptor(number).is_err(), "it has an owner now");
        assert!(take_inherited_descriptor(1).is_err());
        let error = take_inherited_descriptor(1_000_000).unwrap_err();
        assert!(error.to_string().contains("1000000"));
    }
}
