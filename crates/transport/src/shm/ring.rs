//! A ring of bytes with one writer and one reader, which do not trust each other.
//!
//! Each end keeps its own position to itself and only tells it. What the other tells is loaded
//! once, and believed if it lies between its last value and what is possible: a position that
//! goes back, or too far, ends the link.
//!
//! No wake-up is lost: an end that is about to wait stores that it waits and then looks at the
//! other's position once more; the other stores its position and then looks whether this end waits.
//! A sequentially consistent fence stands between the two steps on both sides, so that at least one
//! of them sees the other's store.
//!
//! The writer begins at the start of the ring again whenever the reader has read everything: small
//! messages then use the same few cache lines and pages, instead of all of the ring in turn. It
//! stores the position of the ring's first byte before the next count of written bytes, and only
//! while the ring is empty; so a reader that has seen the count sees the base that belongs to it.

use std::io::IoSlice;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, fence};

use super::memory::{Control, RING_BYTES, Ring};

/// A writer that waits is woken when this many bytes can be written, and not for a few.
const ROOM_BYTES: u64 = CAPACITY / 2;
const CAPACITY: u64 = RING_BYTES as u64;
/// A ring through which fewer bytes have gone since the last look is quiet, such as one with
/// heartbeats only; and the pages behind fewer bytes are not worth a call.
const QUIET_BYTES: u64 = CAPACITY / 8;

/// Bytes from the start of the ring after which an empty ring begins anew.
const BEGIN_ANEW_BYTES: u64 = 2048;

/// Why the peer's positions are invalid.
pub(super) type Problem = &'static str;

/// The end that writes.
#[derive(Debug)]
pub(super) struct Producer {
    ring: Ring,
    written: u64,
    /// The position of the ring's first byte.
    base: u64,
    /// The reader's position, as it was last read.
    read: u64,
    /// How far the ring was written at the last look for pages to give back, and when they were
    /// given back.
    looked: u64,
    released: u64,
}

/// The end that reads.
#[derive(Debug)]
pub(super) struct Consumer {
    ring: Ring,
    read: u64,
    /// The writer's position, as it was last read.
    written: u64,
    /// The position of the ring's first byte, as it was read with that.
    base: u64,
}

impl Producer {
    pub(super) fn new(ring: Ring) -> Self {
        Self { ring, written: 0, base: 0, read: 0, looked: 0, released: 0 }
    }

    /// Writes what there is room for. If that is not all, the reader wakes this side later.
    ///
    /// It can be more than the ring holds, since the reader makes room meanwhile.
    #[inline]
    pub(super) fn write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize, Problem> {
        self.begin_anew()?;
        let mut done = 0;
        'slices: for slice in slices {
            let mut rest = &slice[..];
            while !rest.is_empty() {
                let room = self.room_for(rest.len())?;
                if room == 0 {
                    break 'slices;
                }
                let (now, later) = rest.split_at(rest.len().min(room));
                self.ring.put(self.written.wrapping_sub(self.base), now);
                self.written += now.len() as u64;
                done += now.len();
                rest = later;
            }
        }
        if done > 0 {
            self.control().writer.written.store(self.written, Release);
        }
        Ok(done)
    }

    /// Begins at the start of the ring again if that is worth it and nothing is unread.
    #[inline]
    fn begin_anew(&mut self) -> Result<(), Problem> {
        if self.written.wrapping_sub(self.base) % CAPACITY < BEGIN_ANEW_BYTES {
            return Ok(());
        }
        self.look()?;
        if self.read == self.written {
            self.base = self.written;
            // Before `written` is stored the next time, with release.
            self.control().writer.base.store(self.base, Relaxed);
        }
        Ok(())
    }

    /// How many bytes can be written; none only after the reader was notified that this side waits.
    #[inline]
    fn room_for(&mut self, wanted: usize) -> Result<usize, Problem> {
        let room = CAPACITY - (self.written - self.read);
        if room >= wanted as u64 {
            return Ok(bytes(room));
        }
        self.look()?;
        let room = CAPACITY - (self.written - self.read);
        if room > 0 {
            return Ok(bytes(room));
        }
        // The reader is to find what was written so far, since it frees what this side waits for.
        self.control().writer.written.store(self.written, Release);
        self.control().writer.waits.store(1, Relaxed);
        fence(SeqCst);
        self.look()?;
        Ok(bytes(CAPACITY - (self.written - self.read)))
    }

    /// Looks how far the reader is.
    #[inline]
    fn look(&mut self) -> Result<(), Problem> {
        let read = self.control().reader.read.load(Acquire);
        if read < self.read || read > self.written {
            return Err("the peer has read what was not written");
        }
        self.read = read;
        Ok(())
    }

    /// After a write: whether the reader waits, which it does no longer.
    #[inline]
    pub(super) fn must_wake_reader(&self) -> bool {
        fence(SeqCst);
        take_flag(&self.control().reader.waits)
    }

    /// Says that no byte follows.
    pub(super) fn close(&self) {
        self.control().writer.closed.store(1, Release);
    }

    /// Gives the pages back if the ring is empty and was hardly used since the last call; gives
    /// whether there are some to be given back later.
    pub(super) fn release_pages(&mut self) -> bool {
        if self.written - self.released < QUIET_BYTES {
            return false;
        }
        let is_busy = self.written - self.looked >= QUIET_BYTES;
        self.looked = self.written;
        if is_busy || self.look().is_err() || self.read != self.written {
            return true;
        }
        self.ring.release_pages();
        self.released = self.written;
        false
    }

    #[inline]
    fn control(&self) -> &Control {
        self.ring.control()
    }
}

impl Consumer {
    pub(super) fn new(ring: Ring) -> Self {
        Self { ring, read: 0, written: 0, base: 0 }
    }

    /// Copies out what is there, as far as the buffer holds it.
    #[inline]
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Problem> {
        if self.written - self.read < buffer.len() as u64 {
            let written = self.control().writer.written.load(Acquire);
            if written < self.written || written - self.read > CAPACITY {
                return Err("the peer has written what cannot be");
            }
            self.written = written;
            // Any base is as good as another for safety: what lies behind it is the ring.
            self.base = self.control().writer.base.load(Relaxed);
        }
        let count = buffer.len().min(bytes(self.written - self.read));
        if count > 0 {
            self.ring.get(self.read.wrapping_sub(self.base), &mut buffer[..count]);
            self.read += count as u64;
            self.control().reader.read.store(self.read, Release);
        }
        Ok(count)
    }

    /// After a read: whether the writer waits and has room enough, and so waits no longer.
    #[inline]
    pub(super) fn must_wake_writer(&self) -> bool {
        fence(SeqCst);
        let control = self.control();
        if control.writer.waits.load(Relaxed) == 0 {
            return false;
        }
        // A nonsensical position makes this side wake the peer too often, or fail at its next read.
        let unread = control.writer.written.load(Acquire).wrapping_sub(self.read);
        unread <= CAPACITY - ROOM_BYTES && take_flag(&control.writer.waits)
    }

    #[inline]
    pub(super) fn has_bytes(&self) -> bool {
        self.control().writer.written.load(Acquire) != self.read
    }

    /// Whether the writer has said that no byte follows.
    pub(super) fn is_closed(&self) -> bool {
        self.control().writer.closed.load(Acquire) != 0
    }

    /// Says that this side waits; true if it need not, since something is there.
    #[inline]
    pub(super) fn announce_wait(&self) -> bool {
        let waits = &self.control().reader.waits;
        waits.store(1, Relaxed);
        fence(SeqCst);
        let must_not = self.has_bytes() || self.is_closed();
        if must_not {
            waits.store(0, Relaxed);
        }
        must_not
    }

    /// Says that this side waits no longer.
    #[inline]
    pub(super) fn withdraw_wait(&self) {
        self.control().reader.waits.store(0, Relaxed);
    }

    #[inline]
    fn control(&self) -> &Control {
        self.ring.control()
    }
}

/// Takes the mark of an end that waits, so that it is woken once.
#[inline]
fn take_flag(flag: &AtomicU32) -> bool {
    flag.load(Relaxed) != 0 && flag.swap(0, Relaxed) != 0
}

/// A count of bytes that are in the ring, or that there is room for.
#[inline]
fn bytes(count: u64) -> usize {
    usize::try_from(count).unwrap_or(RING_BYTES).min(RING_BYTES)
}
