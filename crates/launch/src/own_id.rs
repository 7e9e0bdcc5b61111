//! The number of this process, without asking the system each time.
//!
//! Every call of a binding compares it, since a forked child must leave its parent's network alone,
//! and a system call each time would be a good part of such a call. The number is kept in a page
//! that the system wipes in a forked child, so that the child finds none there and asks anew.

use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// The whole page is wiped; the kernel rounds this up to one.
const PAGE_BYTES: usize = 4096;

/// This process's number.
///
/// A child that shares its parent's memory, as between `vfork` and `exec`, is given its parent's.
#[must_use]
#[inline]
pub fn own_process_id() -> u32 {
    static PAGE: OnceLock<Option<&'static AtomicU32>> = OnceLock::new();
    let Some(kept) = PAGE.get_or_init(wiped_in_children) else { return std::process::id() };
    match kept.load(Ordering::Relaxed) {
        0 => {
            let own = std::process::id();
            kept.store(own, Ordering::Relaxed);
            own
        }
        own => own,
    }
}

/// A number that is 0 in each forked child, for as long as this process lives; `None` where the
/// system does not do this.
fn wiped_in_children() -> Option<&'static AtomicU32> {
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping of its own, anywhere: nothing else is replaced.
    let page =
        unsafe { rustix::mm::mmap_anonymous(null_mut(), PAGE_BYTES, protection, flags) }.ok()?;
    // SAFETY: the whole of that mapping, to which no reference exists yet.
    let wipes = unsafe { rustix::mm::madvise(page, PAGE_BYTES, Advice::LinuxWipeOnFork) };
    if wipes.is_err() {
        // SAFETY: as above; no reference to it is made later.
        let _ = unsafe { rustix::mm::munmap(page, PAGE_BYTES) };
        return None;
    }
    let number = NonNull::new(page.cast::<AtomicU32>())?;
    // SAFETY: the mapping is never given back, its memory is zero, which is a number, and a page
    // is aligned as any number must be.
    Some(unsafe { number.as_ref() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_number_that_the_system_says() {
        for _ in 0..2 {
            assert_eq!(own_process_id(), std::process::id());
        }
    }
}
