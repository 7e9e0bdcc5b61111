//! The memory of a link: a sealed file, mapped at both ends.
//!
//! ```text
//! 0         64 KiB         64 KiB + 256 KiB
//! | control | ring of the side that connected | ring of the side that listened |
//!
//! control, of each ring in turn:
//! 0            8            12           16             128      136           256
//! | written u64| waits u32 | closed u32 | base u64 ... | read u64 | waits u32 ... |
//!   of the ring's writer                                 of its reader
//! ```
//!
//! The numbers of each side have a cache line pair of their own. The file is sealed against
//! shrinking, growing and further seals before it is sent, and the other side looks at that: no
//! page of it can vanish, so touching it raises no `SIGBUS`. Its size is exact, which refuses files
//! of huge pages, of which the system may have none left. The pages come when they are first
//! touched.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::{Error, Result, check_file_limit};

/// The bytes under way in one direction of a link in shared memory.
pub const RING_BYTES: usize = 256 << 10;
/// The whole memory of such a link. No multiple of a huge page.
pub const SHARED_LINK_BYTES: usize = CONTROL_BYTES + 2 * RING_BYTES;

/// As many as the largest page in use, so that the rings begin with a page.
const CONTROL_BYTES: usize = 64 << 10;

/// What both ends of a ring tell each other.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Control {
    pub(super) writer: WriterSide,
    pub(super) reader: ReaderSide,
}

/// What only the writer stores; `waits` the reader clears.
#[repr(C, align(128))]
#[derive(Debug)]
pub(super) struct WriterSide {
    pub(super) written: AtomicU64,
    pub(super) waits: AtomicU32,
    pub(super) closed: AtomicU32,
    /// The position of the ring's first byte.
    pub(super) base: AtomicU64,
}

/// What only the reader stores; `waits` the writer clears.
#[repr(C, align(128))]
#[derive(Debug)]
pub(super) struct ReaderSide {
    pub(super) read: AtomicU64,
    pub(super) waits: AtomicU32,
}

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// The ends of a link in shared memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// That which connected, and made the memory.
    Maker,
    /// That which listened, and took it.
    Taker,
}

/// The mapped memory of one link.
#[derive(Debug)]
pub(super) struct Memory {
    start: NonNull<u8>,
}

/// One ring of a link's memory.
#[derive(Debug)]
pub(super) struct Ring {
    memory: Arc<Memory>,
    number: usize,
}

// SAFETY: The mapping belongs to this value alone and stays where it is until drop. Its numbers are
// accessed by atomic operations, its bytes by copies through raw pointers whose order these set.
unsafe impl Send for Memory {}
// SAFETY: As above; what a shared reference permits is safe for any thread, and the copies are
// unsafe functions.
unsafe impl Sync for Memory {}

impl Memory {
    /// Makes a new one; the file is to be sent to the peer.
    pub(super) fn create() -> Result<(Self, OwnedFd)> {
        let file = Self::file().map_err(|cause| Error::io("make a link's memory", cause))?;
        Ok((Self::map(&file)?, file))
    }

    fn file() -> io::Result<OwnedFd> {
        check_file_limit(SHARED_LINK_BYTES as u64)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("sapwood-link", flags)?;
        rustix::fs::ftruncate(&file, SHARED_LINK_BYTES as u64)?;
        rustix::fs::fcntl_add_seals(&file, SEALS)?;
        Ok(file)
    }

    /// Maps what a peer has made. The file is closed; the mapping stays.
    ///
    /// # Errors
    /// [`Error::InvalidTable`] if a seal is missing or the size is another one.
    pub(super) fn adopt(file: OwnedFd) -> Result<Self> {
        let invalid = |problem| Error::InvalidTable { problem };
        // The seals are looked at first: once they are there, the size read afterwards holds.
        match rustix::fs::fcntl_get_seals(&file) {
            Ok(seals) if seals.contains(SEALS) => {}
            Ok(_) => return Err(invalid("a link's memory is not sealed")),
            Err(_) => return Err(invalid("a link's memory is no memory file")),
        }
        let found = rustix::fs::fstat(&file)
            .map_err(|cause| Error::io("look at a link's memory", cause))?;
        if usize::try_from(found.st_size) != Ok(SHARED_LINK_BYTES) {
            return Err(invalid("a link's memory has another size"));
        }
        Self::map(&file)
    }

    fn map(file: &OwnedFd) -> Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: A new mapping at an address of the kernel's choice touches no memory in use. The
        // file has this size, and its seals keep it so.
        let mapped = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                SHARED_LINK_BYTES,
                protection,
                MapFlags::SHARED,
                file,
                0,
            )
        }
        .map_err(|cause| Error::io("map a link's memory", cause))?;
        let problem = "a link's memory was mapped nowhere";
        let start = NonNull::new(mapped.cast()).ok_or(Error::InvalidTable { problem })?;
        Ok(Self { start })
    }

    /// The ring to which this side writes, and the one from which it reads.
    pub(super) fn into_rings(self, end: End) -> (Ring, Ring) {
        let (own, peers) = if end == End::Maker { (0, 1) } else { (1, 0) };
        let memory = Arc::new(self);
        (Ring { memory: Arc::clone(&memory), number: own }, Ring { memory, number: peers })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: This value owns the mapping of this address and length, and no ring outlives it.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), SHARED_LINK_BYTES) };
    }
}

impl Ring {
    #[inline]
    pub(super) fn control(&self) -> &Control {
        // SAFETY: The control area holds two of these from the start of the mapping, which is
        // aligned to a page and lives as long as `self`. They consist of atomic numbers, for which
        // every bit pattern is valid, and which the peer may change at any time.
        unsafe { self.memory.start.cast::<Control>().add(self.number).as_ref() }
    }

    /// Copies bytes into the ring, from a position on and round its end.
    ///
    /// They are not more than fit, or the copy would overwrite its own beginning; no memory
    /// outside of the ring is touched in any case.
    #[inline]
    pub(super) fn put(&self, position: u64, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(RING_BYTES)];
        let at = offset(position);
        let (first, rest) = bytes.split_at(bytes.len().min(RING_BYTES - at));
        // SAFETY: `at + first.len()` and `rest.len()` are at most `RING_BYTES`, which the mapping
        // holds from `data()` on. The slice is this process's own memory. The peer may read or
        // write the same bytes meanwhile, out of this program's memory model; no reference to them
        // is made here or elsewhere, so that nothing is assumed of their values.
        unsafe {
            std::ptr::copy_nonoverlapping(first.as_ptr(), self.data().add(at), first.len());
            std::ptr::copy_nonoverlapping(rest.as_ptr(), self.data(), rest.len());
        }
    }

    /// Copies bytes out of the ring, from a position on and round its end.
    #[inline]
    pub(super) fn get(&self, position: u64, buffer: &mut [u8]) {
        let bytes = buffer.len().min(RING_BYTES);
        let buffer = &mut buffer[..bytes];
        let at = offset(position);
        let (first, rest) = buffer.split_at_mut(bytes.min(RING_BYTES - at));
        // SAFETY: As in `put`, with the buffer as this process's own memory. What the peer changes
        // meanwhile gives other bytes, and any bytes are valid.
        unsafe {
            std::ptr::copy_nonoverlapping(self.data().add(at), first.as_mut_ptr(), first.len());
            std::ptr::copy_nonoverlapping(self.data(), rest.as_mut_ptr(), rest.len());
        }
    }

    /// Gives the ring's pages back to the system; it reads as zeros then. Only for the writer, when
    /// every byte is read.
    pub(super) fn release_pages(&self) {
        // SAFETY: The range is the ring, within the mapping. Its bytes change, as they may at any
        // time by the peer.
        let _ = unsafe { rustix::mm::madvise(self.data().cast(), RING_BYTES, Advice::LinuxRemove) };
    }

    #[inline]
    fn data(&self) -> *mut u8 {
        self.memory.start.as_ptr().wrapping_add(CONTROL_BYTES + self.number * RING_BYTES)
    }
}

/// Where in the ring a position is.
#[inline]
#[allow(clippy::cast_possible_truncation)]
fn offset(position: u64) -> usize {
    const { assert!(RING_BYTES.is_power_of_two() && 2 * size_of::<Control>() <= CONTROL_BYTES) }
    position as usize & (RING_BYTES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: usize, seals: SealFlags) -> OwnedFd {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("link", flags).unwrap();
        rustix::fs::ftruncate(&file, bytes as u64).unwrap();
        rustix::fs::fcntl_add_seals(&file, seals).unwrap();
        file
    }

    #[test]
    fn only_a_sealed_file_of_the_exact_size_is_taken() {
        let refused = |file| Memory::adopt(file).unwrap_err().to_string();
        for missing in [SealFlags::SHRINK, SealFlags::GROW, SealFlags::SEAL] {
            let found = refused(file(SHARED_LINK_BYTES, SEALS.difference(missing)));
            assert!(found.contains("not sealed"), "{found}");
        }
        assert!(refused(file(SHARED_LINK_BYTES - 1, SEALS)).contains("size"));
        assert!(refused(file(2 << 20, SEALS)).contains("size"));
        assert!(refused(tempfile::tempfile().unwrap().into()).contains("no memory file"));
        assert!(Memory::adopt(file(SHARED_LINK_BYTES, SEALS)).is_ok());
        // A file that cannot be written to is no memory for a link, and costs only that.
        let unwritable = file(SHARED_LINK_BYTES, SEALS | SealFlags::WRITE);
        assert!(Memory::adopt(unwritable).is_err());
    }

    #[test]
    fn the_peer_cannot_truncate_the_file() {
        let (memory, file) = Memory::create().unwrap();
        for bytes in [0, 4096, SHARED_LINK_BYTES as u64 + 1] {
            assert!(rustix::fs::ftruncate(&file, bytes).is_err());
        }
        let (own, _peers) = memory.into_rings(End::Maker);
        own.put(RING_BYTES as u64 - 2, b"round");
        let mut buffer = [0; 5];
        own.get(RING_BYTES as u64 - 2, &mut buffer);
        assert_eq!(&buffer, b"round");
    }

    #[test]
    fn released_pages_are_the_systems_again() {
        let (memory, file) = Memory::create().unwrap();
        let (own, peers) = memory.into_rings(End::Maker);
        let blocks = || rustix::fs::fstat(&file).unwrap().st_blocks;
        own.put(0, &vec![1; RING_BYTES]);
        peers.put(0, b"kept");
        assert!(blocks() >= (RING_BYTES / 512) as i64);
        own.release_pages();
        assert!(blocks() < (RING_BYTES / 512) as i64);
        let mut kept = [0; 4];
        peers.get(0, &mut kept);
        assert_eq!(&kept, b"kept");
    }
}
