//! A shared memory table of a local program, read while the program writes on.
//!
//! The program is not trusted to keep still: it may write at any moment and may try to pull the
//! memory from under us. So nothing here hands out a reference into the table: words are loaded
//! one by one, atomically; and a table is mapped only if the kernel holds a seal that it never
//! shrinks, since reading behind a shrunk end would raise `SIGBUS`. An ordinary file has no seals:
//! its words are read by system calls, which fail where it was cut.

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::fs::SealFlags;
use rustix::mm::{MapFlags, ProtFlags};

use crate::{Error, Result};

/// The largest table, in bytes: an event file whose rings are as large as can be asked for.
pub const TABLE_BYTES_MAX: usize = 64 << 20;

const WORD_BYTES: usize = size_of::<u64>();
/// Of an ordinary file, words that are read at once.
const READ_WORDS: usize = 512;

/// A read-only view of a table of 64-bit words that another process writes.
#[derive(Debug)]
pub struct SharedTable {
    memory: TableMemory,
    words: usize,
}

/// Where the words of a table are.
#[derive(Debug)]
enum TableMemory {
    /// In memory that never shrinks.
    Mapped(MappedWords),
    /// In a file that may be cut at any moment.
    File(File),
}

/// A mapping of this number of words.
#[derive(Debug)]
struct MappedWords {
    first: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: The mapping belongs to this value alone and stays where it is until drop; all access is
// by atomic loads, which any thread may do at any time.
unsafe impl Send for MappedWords {}
// SAFETY: As above; a shared reference permits nothing but atomic loads.
unsafe impl Sync for MappedWords {}

impl SharedTable {
    /// Maps the first `expected_bytes` of a memory file. The descriptor is closed; the mapping
    /// stays.
    ///
    /// # Errors
    /// [`Error::InvalidTable`] if the size is no positive multiple of 8 up to
    /// [`TABLE_BYTES_MAX`], the file is shorter, or it is not sealed against shrinking.
    pub fn map(descriptor: OwnedFd, expected_bytes: usize) -> Result<Self> {
        check_size(expected_bytes)?;
        check_seal(&descriptor)?;
        Self::map_sealed(&descriptor, expected_bytes)
    }

    /// Maps a memory file whose seal was looked at first: once it is there, the size read
    /// afterwards holds for ever.
    fn map_sealed(descriptor: &OwnedFd, expected_bytes: usize) -> Result<Self> {
        let found = rustix::fs::fstat(descriptor)
            .map_err(|cause| Error::io("look at a shared table", cause))?;
        if usize::try_from(found.st_size).unwrap_or(0) < expected_bytes {
            return Err(Error::InvalidTable { problem: "the memory is shorter than announced" });
        }
        // SAFETY: A new mapping at an address of the kernel's choice touches no memory in use.
        // The file has at least `expected_bytes`, and its seal keeps it so.
        let mapped = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                expected_bytes,
                ProtFlags::READ,
                MapFlags::SHARED,
                descriptor,
                0,
            )
        }
        .map_err(|cause| Error::io("map a shared table", cause))?;
        let nowhere = Error::InvalidTable { problem: "it was mapped nowhere" };
        let first = NonNull::new(mapped.cast()).ok_or(nowhere)?;
        let words = expected_bytes / WORD_BYTES;
        Ok(Self { memory: TableMemory::Mapped(MappedWords { first, words }), words })
    }

    /// As [`Self::map`], but an ordinary file is taken, too: it is not mapped, but read by a system
    /// call for each copy, so that one that is cut later gives errors.
    ///
    /// # Errors
    /// [`Error::InvalidTable`] as there, but for the seal of an ordinary file.
    pub fn open(descriptor: OwnedFd, expected_bytes: usize) -> Result<Self> {
        check_size(expected_bytes)?;
        if check_seal(&descriptor).is_ok() {
            return Self::map_sealed(&descriptor, expected_bytes);
        }
        let file = File::from(descriptor);
        let found =
            file.metadata().map_err(|cause| Error::io("look at the file of a table", cause))?;
        if !found.is_file() {
            return Err(Error::InvalidTable { problem: "it is no file" });
        }
        if usize::try_from(found.len()).unwrap_or(usize::MAX) < expected_bytes {
            return Err(Error::InvalidTable { problem: "the file is shorter than announced" });
        }
        Ok(Self { memory: TableMemory::File(file), words: expected_bytes / WORD_BYTES })
    }

    /// The table's length, in 64-bit words.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// Loads one word, ordered before every later load (acquire): for a sequence number that
    /// guards others. `None` behind the end, or where a file was cut.
    #[must_use]
    pub fn load_word(&self, index: usize) -> Option<u64> {
        if index >= self.words {
            return None;
        }
        match &self.memory {
            TableMemory::Mapped(mapped) => Some(mapped.word(index).load(Ordering::Acquire)),
            TableMemory::File(file) => {
                let mut bytes = [0; WORD_BYTES];
                read_at(file, index, &mut bytes).ok()?;
                fence(Ordering::Acquire);
                Some(u64::from_ne_bytes(bytes))
            }
        }
    }

    /// Copies words out, in their order. Each word is whole; the words need not be of one moment,
    /// since the program writes meanwhile. None is older than one before it, so that a word which
    /// the program writes before and after others tells whether these are of one moment.
    ///
    /// # Errors
    /// [`Error::InvalidTable`] if the range reaches behind the end, [`Error::Io`] if a file cannot
    /// be read there.
    pub fn copy_words(&self, range: Range<usize>) -> Result<Vec<u64>> {
        let mut copy = Vec::new();
        self.append_words(range, &mut copy)?;
        Ok(copy)
    }

    /// As [`Self::copy_words`], appended to memory that the caller uses again; nothing is appended
    /// where this fails.
    ///
    /// # Errors
    /// As [`Self::copy_words`].
    pub fn append_words(&self, range: Range<usize>, to: &mut Vec<u64>) -> Result<()> {
        if range.start > range.end || range.end > self.words {
            return Err(Error::InvalidTable { problem: "words behind its end were asked for" });
        }
        match &self.memory {
            TableMemory::Mapped(mapped) => {
                to.extend(range.map(|index| mapped.word(index).load(Ordering::Acquire)));
                Ok(())
            }
            TableMemory::File(file) => append_from(file, range, to),
        }
    }
}

impl MappedWords {
    /// The word at `index`, which callers have checked against `self.words`.
    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.words, "callers check the index");
        // SAFETY: The mapping holds `self.words` words from `first`, page- and so word-aligned,
        // and lives as long as `self`. Acquire loads of this size are allowed on
        // read-only memory. The writer is another process, outside this program's memory model;
        // an atomic access is the one that it cannot tear.
        unsafe { self.first.add(index).as_ref() }
    }
}

impl Drop for MappedWords {
    fn drop(&mut self) {
        // SAFETY: This value owns the mapping of this address and length and no reference into
        // it outlives the value. Failure is impossible for such a mapping, and harmless.
        let _ = unsafe { rustix::mm::munmap(self.first.as_ptr().cast(), self.words * WORD_BYTES) };
    }
}

/// Reads bytes of a file from a word on. The kernel copies aligned words, so that each is whole on
/// all processors that programs are watched on.
fn read_at(file: &File, word: usize, bytes: &mut [u8]) -> Result<()> {
    let offset = (word * WORD_BYTES) as u64;
    file.read_exact_at(bytes, offset).map_err(|cause| Error::io("read the file of a table", cause))
}

/// Appends words of a file; none of them where one cannot be read.
fn append_from(file: &File, range: Range<usize>, to: &mut Vec<u64>) -> Result<()> {
    let before = to.len();
    let mut piece = [0; READ_WORDS * WORD_BYTES];
    for begin in range.clone().step_by(READ_WORDS) {
        let count = READ_WORDS.min(range.end - begin);
        let bytes = &mut piece[..count * WORD_BYTES];
        if let Err(error) = read_at(file, begin, bytes) {
            to.truncate(before);
            return Err(error);
        }
        let (words, _) = bytes.as_chunks::<WORD_BYTES>();
        to.extend(words.iter().map(|word| u64::from_ne_bytes(*word)));
    }
    Ok(())
}

fn check_size(expected_bytes: usize) -> Result<()> {
    if expected_bytes == 0 || !expected_bytes.is_multiple_of(WORD_BYTES) {
        return Err(Error::InvalidTable { problem: "its size is no positive multiple of 8 bytes" });
    }
    if expected_bytes > TABLE_BYTES_MAX {
        return Err(Error::InvalidTable { problem: "it is larger than 64 MiB" });
    }
    Ok(())
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
    fn an_ordinary_file_is_read_and_one_that_is_cut_gives_errors() {
        let writer = tempfile::tempfile().unwrap();
        let bytes = 2 * READ_WORDS * WORD_BYTES;
        writer.set_len(bytes as u64).unwrap();
        let table = SharedTable::open(writer.try_clone().unwrap().into(), bytes).unwrap();
        writer.write_all_at(&77_u64.to_ne_bytes(), 16).unwrap();
        assert_eq!(table.load_word(2), Some(77));
        let copy = table.copy_words(1..table.words()).unwrap();
        assert_eq!((copy.len(), &copy[..3]), (2 * READ_WORDS - 1, &[0, 77, 0][..]));
        assert_eq!(table.load_word(table.words()), None);
        writer.set_len(64).unwrap();
        assert_eq!((table.load_word(2), table.load_word(8)), (Some(77), None));
        let mut kept = vec![5];
        assert!(table.append_words(0..9, &mut kept).is_err());
        assert_eq!(kept, [5]);
    }

    #[test]
    fn memory_is_mapped_if_it_is_sealed_and_what_is_no_file_is_refused() {
        let opened = |file: File, bytes| SharedTable::open(file.into(), bytes);
        let sealed = opened(memory(4096, SealFlags::SHRINK), 64).unwrap();
        assert!(matches!(sealed.memory, TableMemory::Mapped(_)));
        let unsealed = opened(memory(4096, SealFlags::GROW), 64).unwrap();
        assert!(matches!(unsealed.memory, TableMemory::File(_)));
        let short = opened(tempfile::tempfile().unwrap(), 64).unwrap_err();
        assert!(short.to_string().contains("shorter"), "{short}");
        let folder = opened(File::open("/").unwrap(), 64).unwrap_err();
        assert!(folder.to_string().contains("no file"), "{folder}");
        opened(tempfile::tempfile().unwrap(), 12).unwrap_err();
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
