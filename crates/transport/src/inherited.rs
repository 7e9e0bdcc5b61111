//! Taking over a descriptor that the parent process left open for this one.
//!
//! A process is told such a descriptor by its number, and turning a number into an owner is the
//! one thing about it that the compiler cannot check. It is done here and nowhere else.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use crate::{Error, Result};

/// Takes over descriptor `number`, marks it close-on-exec and answers its owner.
///
/// Call it at most once for a number, at start-up, for a number that the parent process named:
/// from then on this process closes it.
///
/// # Errors
/// [`Error::ApiMisuse`] for the standard streams (0, 1, 2); [`Error::Io`] if it is not open.
pub fn take_inherited_descriptor(number: RawFd) -> Result<OwnedFd> {
    if number < 3 {
        return Err(Error::ApiMisuse { rule: "an inherited descriptor has a number from 3 on" });
    }
    std::fs::symlink_metadata(format!("/proc/self/fd/{number}"))
        .map_err(|cause| Error::io(format!("take over descriptor {number}"), cause))?;
    // SAFETY: The descriptor is open, as just seen. That nobody else in this process owns it is
    // the caller's promise, as documented: the parent named it for this purpose, and it is taken
    // once, before other code of this process could have been given the same number.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::CLOEXEC)
        .map_err(|cause| Error::io(format!("mark descriptor {number} close-on-exec"), cause))?;
    Ok(descriptor)
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, IntoRawFd};

    use super::*;

    #[test]
    fn an_open_descriptor_is_taken_over_and_a_closed_one_refused() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let number = OwnedFd::from(reader).into_raw_fd();
        assert_eq!(take_inherited_descriptor(number).unwrap().as_raw_fd(), number);
        assert!(take_inherited_descriptor(1).is_err());
        let error = take_inherited_descriptor(1_000_000).unwrap_err();
        assert!(error.to_string().contains("1000000"));
    }
}
