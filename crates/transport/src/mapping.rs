//! A shared memory table of a local program, mapped for reading while the program writes on.
//!
//! The program is not trusted to keep still: it may write at any moment and may try to pull the
//! memory from under us. So nothing here hands out a reference into the table: words are loaded
//! one by one, atomically; and a table is mapped only if the kernel holds a seal that it never
//! shrinks, since reading behind a shrunk end would raise `SIGBUS`.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::SealFlags;
use rustix::mm::{MapFlags, ProtFlags};

use crate::{Error, Result};

/// The largest table, in bytes: an event file whose rings are as large as can be asked for.
pub const TABLE_BYTES_MAX: usize = 64 << 20;

const WORD_BYTES: usize = size_of::<u64>();

/// A read-only view of a table of 64-bit words that another process writes.
#[derive(Debug)]
pub struct SharedTable {
    first: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: The mapping belongs to this value alone and stays where it is until drop; all access is
// by atomic loads, which any thread may do at any time.
unsafe impl Send for SharedTable {}
// SAFETY: As above; a shared reference permits nothing but atomic loads.
unsafe impl Sync for SharedTable {}

impl SharedTable {
    /// Maps the first `expected_bytes` of a memory file. The descriptor is closed; the mapping
    /// stays.
    ///
    /// # Errors
    /// [`Error::InvalidTable`] if the size is no positive multiple of 8 up to
    /// [`TABLE_BYTES_MAX`], the file is shorter, or it is not sealed against shrinking.
    pub fn map(descriptor: OwnedFd, expected_bytes: usize) -> Result<Self> {
        let invalid = |problem| Error::InvalidTable { problem };
        if expected_bytes == 0 || !expected_bytes.is_multiple_of(WORD_BYTES) {
            return Err(invalid("its size is no positive multiple of 8 bytes"));
        }
        if expected_bytes > TABLE_BYTES_MAX {
            return Err(invalid("it is larger than 64 MiB"));
        }
        // The seal is looked at first: once it is there, the size read afterwards holds for ever.
        check_seal(&descriptor)?;
        let found = rustix::fs::fstat(&descriptor)
            .map_err(|cause| Error::io("look at a shared table", cause))?;
        if usize::try_from(found.st_size).unwrap_or(0) < expected_bytes {
            return Err(invalid("the memory is shorter than announced"));
        }
        // SAFETY: A new mapping at an address of the kernel's choice touches no memory in use.
        // The file has at least `expected_bytes`, and its seal keeps it so.
        let mapped = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                expected_bytes,
                ProtFlags::READ,
                MapFlags::SHARED,
                &descriptor,
                0,
            )
        }
        .map_err(|cause| Error::io("map a shared table", cause))?;
        let first = NonNull::new(mapped.cast()).ok_or(invalid("it was mapped nowhere"))?;
        Ok(Self { first, words: expected_bytes / WORD_BYTES })
    }

    /// The table's length, in 64-bit words.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// Loads one word, ordered before every later load (acquire): for a sequence number that
    /// guards others. `None` behind the end.
    #[must_use]
    pub fn load_word(&self, index: usize) -> Option<u64> {
        (index < self.words).then(|| self.word(index).load(Ordering::Acquire))
    }

    /// Copies words out. Each word is whole; the words need not be of one moment, since the
    /// program writes meanwhile.
    ///
    /// # Errors
    /// [`Error::InvalidTable`] if the range reaches behind the end.
    pub fn copy_words(&self, range: Range<usize>) -> Result<Vec<u64>> {
        let mut copy = Vec::new();
        self.append_words(range, &mut copy)?;
        Ok(copy)
    }

    /// As [`Self::copy_words`], appended to memory that the caller uses again.
    ///
    /// # Errors
    /// [`Error::InvalidTable`] if the range reaches behind the end.
    pub fn append_words(&self, range: Range<usize>, to: &mut Vec<u64>) -> Result<()> {
        if range.start > range.end || range.end > self.words {
            return Err(Error::InvalidTable { problem: "words behind its end were asked for" });
        }
        to.extend(range.map(|index| self.word(index).load(Ordering::Relaxed)));
        Ok(())
    }

    /// The word at `index`, which callers have checked against `self.words`.
    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.words, "callers check the index");
        // SAFETY: The mapping holds `self.words` words from `first`, page- and so word-aligned,
        // and lives as long as `self`. Relaxed and acquire loads of this size are allowed on
        // read-only memory. The writer is another process, outside this program's memory model;
        // an atomic access is the one that it cannot tear.
        unsafe { self.first.add(index).as_ref() }
    }
}

impl Drop for SharedTable {
    fn drop(&mut self) {
        // SAFETY: This value owns the mapping of this address and length and no reference into
        // it outlives the value. Failure is impossible for such a mapping, and harmless.
        let _ = unsafe { rustix::mm::munmap(self.first.as_ptr().cast(), self.words * WORD_BYTES) };
    }
}

/// Only memory files have seals, so this refuses ordinary files, pipes and sockets as well.
pub(crate) fn check_seal(descriptor: impl AsFd) -> Result<()> {
    match rustix::fs::fcntl_get_seals(descriptor) {
        Ok(seals) if seals.contains(SealFlags::SHRINK) => Ok(()),
        Ok(_) => Err(Error::InvalidTable { problem: "it is not sealed against shrinking" }),
        Err(_) => Err(Error::InvalidTable { problem: "it is no memory file" }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use rustix::fs::MemfdFlags;

    use super::*;

    fn memory(bytes: u64, seals: SealFlags) -> File {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(rustix::fs::memfd_create("table", flags).unwrap());
        file.set_len(bytes).unwrap();
        rustix::fs::fcntl_add_seals(&file, seals).unwrap();
        file
    }

    #[test]
    fn words_written_later_are_seen() {
        let writer = memory(4096, SealFlags::SHRINK);
        let table = SharedTable::map(writer.try_clone().unwrap().into(), 64).unwrap();
        assert_eq!(table.copy_words(0..8).unwrap(), [0; 8]);
        writer.write_all_at(&77_u64.to_ne_bytes(), 16).unwrap();
        assert_eq!(table.load_word(2), Some(77));
        assert_eq!(table.copy_words(1..4).unwrap(), [0, 77, 0]);
        assert!(writer.set_len(0).is_err(), "the seal holds");
        assert_eq!(table.load_word(8), None);
        assert!(table.copy_words(7..9).is_err());
        #[expect(clippy::reversed_empty_ranges)]
        let reversed = table.copy_words(4..3);
        assert!(reversed.is_err());
    }

    #[test]
    fn what_could_shrink_or_is_too_short_or_long_is_refused() {
        let refused = |file: File, bytes| SharedTable::map(file.into(), bytes).unwrap_err();
        let unsealed = refused(memory(4096, SealFlags::GROW), 64);
        assert!(unsealed.to_string().contains("shrinking"));
        assert!(refused(tempfile::tempfile().unwrap(), 64).to_string().contains("memory file"));
        assert!(refused(memory(63, SealFlags::SHRINK), 64).to_string().contains("shorter"));
        refused(memory(4096, SealFlags::SHRINK), 0);
        refused(memory(4096, SealFlags::SHRINK), 12);
        refused(memory(128 << 20, SealFlags::SHRINK), TABLE_BYTES_MAX + 8);
    }
}
