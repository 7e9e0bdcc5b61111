//! A page of memory of a local program that both sides write: settings down, answers back.
//!
//! As with [`SharedTable`](crate::SharedTable), the program is not trusted to keep still, and the
//! page is mapped only if the kernel holds a seal that it never shrinks. Every access is one
//! aligned atomic load or store of 32 or 64 bits.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

use crate::mapping::check_seal;
use crate::{Error, Result};

/// The length of a control page, in bytes.
pub const CONTROL_PAGE_BYTES: usize = 4096;

/// A page that a local program and this process share. Offsets are in bytes.
#[derive(Debug)]
pub struct ControlPage {
    first: NonNull<u8>,
}

// SAFETY: The mapping belongs to this value alone and stays where it is until drop; all access is
// by atomic loads and stores, which any thread may do at any time.
unsafe impl Send for ControlPage {}

impl ControlPage {
    /// Maps a memory file. The descriptor is closed; the mapping stays.
    ///
    /// # Errors
    /// [`Error::InvalidTable`] if the file is shorter or is not sealed against shrinking.
    pub fn map(descriptor: OwnedFd) -> Result<Self> {
        let invalid = |problem| Error::InvalidTable { problem };
        check_seal(&descriptor)?;
        let found = rustix::fs::fstat(&descriptor)
            .map_err(|cause| Error::io("look at a control page", cause))?;
        if usize::try_from(found.st_size).unwrap_or(0) < CONTROL_PAGE_BYTES {
            return Err(invalid("its control page is shorter than a page"));
        }
        // SAFETY: A new mapping at an address of the kernel's choice touches no memory in use.
        // The file has at least as many bytes, and its seal keeps it so.
        let mapped = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                CONTROL_PAGE_BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &descriptor,
                0,
            )
        }
        .map_err(|cause| Error::io("map a control page", cause))?;
        Ok(Self { first: NonNull::new(mapped.cast()).ok_or(invalid("it was mapped nowhere"))? })
    }

    /// Loads 32 bits, ordered before every later load.
    #[must_use]
    pub fn load(&self, at: usize) -> u32 {
        self.word(at).load(Ordering::Acquire)
    }

    /// Stores 32 bits, ordered behind every earlier store.
    pub fn store(&self, at: usize, value: u32) {
        self.word(at).store(value, Ordering::Release);
    }

    /// Loads 64 bits, ordered before every later load.
    #[must_use]
    pub fn load_long(&self, at: usize) -> u64 {
        self.long(at).load(Ordering::Acquire)
    }

    /// Stores 64 bits, ordered behind every earlier store.
    pub fn store_long(&self, at: usize, value: u64) {
        self.long(at).store(value, Ordering::Release);
    }

    /// Stores text, cut and padded with NUL to `length` bytes, of which the last is NUL.
    pub fn store_text(&self, at: usize, length: usize, text: &str) {
        let bytes = text.as_bytes();
        for word in 0..length / 8 {
            let byte = |index: usize| match 8 * word + index {
                last if last + 1 >= length => 0,
                index => bytes.get(index).copied().unwrap_or(0),
            };
            self.store_long(at + 8 * word, u64::from_ne_bytes(std::array::from_fn(byte)));
        }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= CONTROL_PAGE_BYTES, "a word of the page");
        // SAFETY: The offset was checked: aligned and inside the mapping, which lives as long as
        // `self`. The other writer is another process, outside this program's memory model; an
        // atomic access is the one that it cannot tear.
        unsafe { self.first.add(at).cast::<AtomicU32>().as_ref() }
    }

    fn long(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= CONTROL_PAGE_BYTES, "a word of the page");
        // SAFETY: As above.
        unsafe { self.first.add(at).cast::<AtomicU64>().as_ref() }
    }
}

impl Drop for ControlPage {
    fn drop(&mut self) {
        // SAFETY: This value owns the mapping of this address and length and no reference into
        // it outlives the value. Failure is impossible for such a mapping, and harmless.
        let _ = unsafe { rustix::mm::munmap(self.first.as_ptr().cast(), CONTROL_PAGE_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use rustix::fs::{MemfdFlags, SealFlags};

    use super::*;

    fn memory(bytes: u64, seals: SealFlags) -> File {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(rustix::fs::memfd_create("control", flags).unwrap());
        file.set_len(bytes).unwrap();
        rustix::fs::fcntl_add_seals(&file, seals).unwrap();
        file
    }

    #[test]
    fn both_sides_see_what_the_other_writes() {
        let file = memory(4096, SealFlags::SHRINK);
        let page = ControlPage::map(file.try_clone().unwrap().into()).unwrap();
        file.write_all_at(&7_u32.to_ne_bytes(), 20).unwrap();
        assert_eq!(page.load(20), 7);
        page.store_long(64, 9);
        page.store_text(296, 24, "a name that is longer than it may be");
        let mut bytes = [0_u8; 24];
        file.read_exact_at(&mut bytes, 296).unwrap();
        assert_eq!(&bytes, b"a name that is longer t\0");
        file.read_exact_at(&mut bytes[..8], 64).unwrap();
        assert_eq!((page.load_long(64), bytes[0]), (9, 9));
    }

    #[test]
    fn a_page_that_is_short_or_could_shrink_is_refused() {
        assert!(ControlPage::map(memory(4095, SealFlags::SHRINK).into()).is_err());
        assert!(ControlPage::map(memory(4096, SealFlags::GROW).into()).is_err());
    }
}
