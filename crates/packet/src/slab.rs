//! Bytes in 8-aligned storage, so that any array in them can be read in place.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::mem::MaybeUninit;

use crate::padded;

/// Bytes from which it pays to append them without clearing their place first.
const DIRECT_BYTES: usize = 4 << 10;

/// Memory that must be left when a slab has been given more than as much, in bytes: what is small
/// is asked for without being prepared to be refused.
const HEADROOM_BYTES: usize = 4 << 20;

/// Memory for a packet that the system does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// How many bytes were asked for.
    pub bytes: usize,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of memory: {} bytes", self.bytes)
    }
}

impl core::error::Error for OutOfMemory {}

/// A growable run of bytes that starts at an 8-aligned address.
///
/// Memory once reached is kept and never cleared again, so that a slab taken from a pool costs
/// nothing.
#[derive(Clone, Default)]
pub struct Slab {
    words: Vec<u64>,
    length: usize,
}

impl Slab {
    /// An empty slab that can grow to `bytes` without moving.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { words: Vec::with_capacity(padded(bytes) / 8), length: 0 }
    }

    /// A slab of `bytes` bytes whose contents are whatever was there: zeros when the memory is new.
    #[must_use]
    pub fn of_length(bytes: usize) -> Self {
        let mut slab = Self::default();
        slab.set_length(bytes);
        slab
    }

    /// A copy of bytes.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut slab = Self::with_capacity(bytes.len());
        slab.extend(bytes);
        slab
    }

    /// A copy of bytes that may be many.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn try_copy_of(bytes: &[u8]) -> Result<Self, OutOfMemory> {
        let mut slab = Self::default();
        slab.try_reserve(bytes.len())?;
        slab.extend(bytes);
        Ok(slab)
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// How many bytes fit without asking for more memory.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.words.capacity() * 8
    }

    /// Sets the length; bytes that this uncovers hold whatever they held before.
    #[inline]
    pub fn set_length(&mut self, bytes: usize) {
        if bytes > self.words.len() * 8 {
            self.enlarge(bytes);
        }
        self.length = bytes;
    }

    #[cold]
    fn enlarge(&mut self, bytes: usize) {
        // Grown in steps, so that appending costs the same whatever the length.
        let words = (padded(bytes) / 8).max(self.words.capacity().min(2 * self.words.len()));
        self.words.resize(words, 0);
    }

    /// Forgets the contents, keeping the memory.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// The bytes.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.length]
    }

    /// The bytes, to be written.
    #[inline]
    pub fn as_mut_bytes(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.length]
    }

    /// Appends `bytes` bytes and lends them, to be written in full.
    #[inline]
    pub fn grow(&mut self, bytes: usize) -> &mut [u8] {
        let at = self.length;
        self.set_length(at + bytes);
        &mut bytemuck::cast_slice_mut(&mut self.words)[at..at + bytes]
    }

    /// Makes sure that this many more bytes, and their padding, can be appended without moving what
    /// is there. Where the system has no memory for them, or would have none left, nothing changes.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    #[inline]
    pub fn try_reserve(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        match self.length.checked_add(bytes) {
            Some(end) if end <= self.words.capacity() * 8 => Ok(()),
            end => self.try_enlarge(end, bytes),
        }
    }

    #[cold]
    fn try_enlarge(&mut self, end: Option<usize>, bytes: usize) -> Result<(), OutOfMemory> {
        let lacks = OutOfMemory { bytes };
        let more = end.ok_or(lacks)?.div_ceil(8).saturating_sub(self.words.len());
        // Data that arrives in small parts reserves room for further ones, if there is memory.
        if bytes < DIRECT_BYTES && self.words.try_reserve(more).is_ok() {
            return Ok(());
        }
        try_reserve(&mut self.words, more).map_err(|_| lacks)
    }

    /// The memory that was not written yet, so that the caller can advise the kernel how it will be
    /// used.
    pub fn untouched(&mut self) -> &mut [MaybeUninit<u64>] {
        self.words.spare_capacity_mut()
    }

    /// Appends bytes.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        if bytes.len() >= DIRECT_BYTES && self.extend_words(bytes) {
            return;
        }
        self.grow(bytes.len()).copy_from_slice(bytes);
    }

    /// Appends whole words to memory that has not been reached yet; whether it could.
    fn extend_words(&mut self, bytes: &[u8]) -> bool {
        let Ok(words) = bytemuck::try_cast_slice::<u8, u64>(bytes) else { return false };
        let is_at_end = self.length == self.words.len() * 8;
        if is_at_end {
            // Straight from the source: `grow` would write zeros first, a second pass over the
            // memory.
            self.words.extend_from_slice(words);
            self.length += bytes.len();
        }
        is_at_end
    }

    /// Appends a number, 8 bytes little-endian.
    pub fn extend_u64(&mut self, number: u64) {
        self.extend(&number.to_le_bytes());
    }

    /// Appends zeros up to the next multiple of 8.
    pub fn pad(&mut self) {
        let (at, end) = (self.length, padded(self.length));
        self.set_length(end);
        self.as_mut_bytes()[at..].fill(0);
    }
}

/// Makes sure that this many more elements can be appended without moving what is there. Where the
/// system has no memory for them, or would have none left, nothing changes.
///
/// # Errors
/// [`OutOfMemory`].
pub fn try_reserve<T>(elements: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    let lacks = OutOfMemory { bytes: more.saturating_mul(size_of::<T>()) };
    let before = elements.capacity();
    elements.try_reserve_exact(more).map_err(|_| lacks)?;
    // The allocation of a large packet may succeed and leave nothing for small ones, whose
    // allocations cannot fail gracefully: then it is given back.
    if (elements.capacity() - before) * size_of::<T>() > HEADROOM_BYTES && !has_headroom() {
        elements.shrink_to(before);
        return Err(lacks);
    }
    Ok(())
}

/// Whether the system would give more memory.
fn has_headroom() -> bool {
    let mut room: Vec<u8> = Vec::new();
    // Seen from outside, so that the compiler does not leave the question out.
    core::hint::black_box(&mut room).try_reserve_exact(HEADROOM_BYTES).is_ok()
}

impl fmt::Debug for Slab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slab({} bytes)", self.length)
    }
}

/// Bytes of a packet's values, shared: a clone costs no copy, so that one packet goes to many
/// children.
#[derive(Clone, Default)]
pub struct Body {
    slab: Arc<Slab>,
    start: usize,
    length: usize,
}

impl Body {
    /// The part of a slab that holds values. `start` must be a multiple of 8.
    ///
    /// # Panics
    /// When the part lies outside the slab or is not aligned, which is a bug of the caller.
    #[must_use]
    pub fn part_of(slab: Arc<Slab>, start: usize, length: usize) -> Self {
        assert!(start.is_multiple_of(8), "a body starts at a multiple of 8");
        assert!(start + length <= slab.len(), "a body lies inside its slab");
        Self { slab, start, length }
    }

    /// The bytes.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.slab.as_bytes()[self.start..self.start + self.length]
    }

    /// A part of this body, sharing its memory. `start` must be a multiple of 8.
    #[must_use]
    pub fn part(&self, start: usize, length: usize) -> Self {
        assert!(start + length <= self.length, "a part lies inside its body");
        Self::part_of(Arc::clone(&self.slab), self.start + start, length)
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the slab if this is its only holder, so that a pool can use it again.
    #[must_use]
    pub fn into_slab(self) -> Option<Slab> {
        self.try_into_slab().ok()
    }

    /// As [`Body::into_slab`].
    ///
    /// # Errors
    /// The unchanged body, if the slab has other holders.
    pub fn try_into_slab(self) -> Result<Slab, Self> {
        let Self { slab, start, length } = self;
        Arc::try_unwrap(slab).map_err(|slab| Self { slab, start, length })
    }

    /// Whether others hold the slab too.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.slab) > 1
    }

    /// The capacity of the shared memory in bytes.
    #[must_use]
    pub fn slab_capacity(&self) -> usize {
        self.slab.capacity()
    }
}

impl From<Slab> for Body {
    fn from(slab: Slab) -> Self {
        let length = slab.len();
        Self { slab: Arc::new(slab), start: 0, length }
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Body {}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString as _;

    #[test]
    fn memory_that_is_not_there_is_refused_and_nothing_changes() {
        let mut slab = Slab::copy_of(b"eight by");
        let much = usize::MAX / 4;
        let lacks = slab.try_reserve(much).expect_err("no machine has so much");
        assert_eq!(lacks, OutOfMemory { bytes: much });
        assert_eq!(lacks.to_string(), std::format!("out of memory: {much} bytes"));
        assert!(slab.try_reserve(usize::MAX).is_err(), "a length that is none");
        assert_eq!(slab.as_bytes(), b"eight by");
        slab.try_reserve(HEADROOM_BYTES + 8).expect("this much is there");
        slab.extend(b" more");
        assert_eq!(slab.as_bytes(), b"eight by more");
        let mut numbers = std::vec![1_u32];
        assert_eq!(try_reserve(&mut numbers, much), Err(OutOfMemory { bytes: 4 * much }));
        assert_eq!(numbers, [1]);
    }
}
