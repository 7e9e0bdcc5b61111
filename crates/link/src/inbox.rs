//! From bytes to frames: what has come of a frame that is not whole yet, and where the next bytes
//! of a large one are to be put.
//!
//! Small frames are read into the runtime's one shared buffer and handled where they lie; only the
//! cut-off tail is kept here. A large frame gets a slab of its own, into which the runtime reads
//! directly, so that its values are never copied.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem::MaybeUninit;

use sapwood_packet::{Body, OutOfMemory, Slab};
use sapwood_wire::{PREFIX_BYTES, WireError, frame_length};

use crate::spares::{Spares, shorten};

/// A frame of this many bytes or more is read into a slab of its own.
pub const LARGE_FRAME_BYTES: usize = 16 << 10;

/// Up to this many bytes that were read behind a large frame are copied; with more, the slab is
/// parsed as small frames.
const COPIED_TAIL_BYTES_MAX: usize = 4 << 10;

/// Slabs kept for the next large frames, in bytes.
const POOL_BYTES_MAX: usize = 8 << 20;

/// How many lent slabs one `take_used` checks for reuse.
const LENT_SLABS_CHECKED: usize = 8;

/// What has come of the frame at the front of a link.
#[derive(Debug, Default)]
pub struct Inbox {
    /// Begins with a frame's first byte; shorter than that frame.
    tail: Vec<u8>,
    /// A large frame being filled.
    large: Option<Filling>,
    /// Length of the last frame when it was large: the next is likely to be like it.
    expected: Option<usize>,
}

#[derive(Debug)]
struct Filling {
    slab: Slab,
    filled: usize,
}

/// What a slab that has been read into turned out to hold.
#[derive(Debug)]
pub enum Filled {
    /// Not whole yet.
    Partial,
    /// Exactly one frame.
    Frame(Slab),
    /// One frame, and the first bytes of what follows.
    FrameAndMore(Slab, Vec<u8>),
    /// Smaller frames, perhaps cut off at the end: handle them like any bytes.
    Bytes(Slab),
}

impl Inbox {
    /// Puts the tail of the last bytes in front of the buffer; gives its length.
    pub fn begin_read(&mut self, buffer: &mut [u8]) -> usize {
        let length = self.tail.len();
        buffer[..length].copy_from_slice(&self.tail);
        self.tail.clear();
        length
    }

    /// Bytes of a frame that has not come whole.
    pub fn bytes(&self) -> usize {
        self.tail.len() + self.large.as_ref().map_or(0, |large| large.filled)
    }

    /// Memory of its own for the next bytes, when the frame is large.
    pub fn lend(&mut self, pool: &mut Pool) -> Option<&mut [u8]> {
        if self.large.is_none() {
            // With a tail at hand the frame's own length is known soon; a guess would be copied
            // over.
            let length = self.expected.filter(|_| self.tail.is_empty())?;
            self.large = Some(Filling { slab: pool.take(length).ok()?, filled: 0 });
        }
        let large = self.large.as_mut()?;
        Some(&mut large.slab.as_mut_bytes()[large.filled..])
    }

    /// Keeps what is left of the bytes behind their last whole frame.
    pub fn keep(&mut self, rest: &[u8], pool: &mut Pool) -> Result<(), WireError> {
        match frame_length(rest)? {
            Some(length) if length >= LARGE_FRAME_BYTES => {
                // What has come is a small part: the rest is read to its place without a copy.
                let mut slab = pool.take(length)?;
                slab.as_mut_bytes()[..rest.len()].copy_from_slice(rest);
                self.large = Some(Filling { slab, filled: rest.len() });
            }
            _ => self.tail.extend_from_slice(rest),
        }
        Ok(())
    }

    /// Remembers a frame's length, so that memory can be lent for the next one.
    #[inline]
    pub fn note_length(&mut self, length: usize) {
        self.expected = (length >= LARGE_FRAME_BYTES).then_some(length);
    }

    /// `bytes` bytes have been read into the lent memory.
    pub fn filled(&mut self, bytes: usize) -> Result<Filled, WireError> {
        let Some(mut large) = self.large.take() else {
            return Ok(Filled::Partial);
        };
        large.filled += bytes;
        let length = match large.filled {
            filled if filled < PREFIX_BYTES => None,
            _ => frame_length(large.slab.as_bytes())?,
        };
        let whole = large.filled == large.slab.len();
        match length {
            Some(length) if length == large.slab.len() && whole => Ok(Filled::Frame(large.slab)),
            Some(length) if length == large.slab.len() => {
                self.large = Some(large);
                Ok(Filled::Partial)
            }
            None => {
                self.large = Some(large);
                Ok(Filled::Partial)
            }
            // The guess was too short.
            Some(length) if length > large.slab.len() => {
                large.slab.try_reserve(length - large.slab.len())?;
                large.slab.set_length(length);
                self.large = Some(large);
                Ok(Filled::Partial)
            }
            // The guess was a little too long, as it is for the last chunk of a packet.
            Some(length)
                if length >= LARGE_FRAME_BYTES
                    && large.filled <= length + COPIED_TAIL_BYTES_MAX =>
            {
                if large.filled < length {
                    large.slab.set_length(length);
                    self.large = Some(large);
                    return Ok(Filled::Partial);
                }
                let more = large.slab.as_bytes()[length..large.filled].to_vec();
                large.slab.set_length(length);
                Ok(match more.is_empty() {
                    true => Filled::Frame(large.slab),
                    false => Filled::FrameAndMore(large.slab, more),
                })
            }
            // The guess was wrong: what lies here are other frames.
            Some(_) => {
                self.expected = None;
                large.slab.set_length(large.filled);
                Ok(Filled::Bytes(large.slab))
            }
        }
    }
}

/// Slabs that have done their work, or will have, and serve the next large frame.
#[derive(Debug, Default)]
pub struct Pool {
    slabs: Spares<Slab>,
    /// Slabs that frames still hold which wait to be written, or to be acknowledged. The oldest are
    /// free first, as a rule.
    lent: VecDeque<Body>,
    /// Bytes of both.
    bytes: usize,
    advice: Option<MemoryAdvice>,
}

/// Tells the system of memory that has not been touched yet and is about to be written.
pub type MemoryAdvice = fn(&mut [MaybeUninit<u64>]);

impl Pool {
    /// The receiver of notices of memory for packets of many megabytes.
    pub fn set_advice(&mut self, advice: MemoryAdvice) {
        self.advice = Some(advice);
    }

    /// Has the system told that `bytes` will be appended.
    pub fn advise(&self, slab: &mut Slab, bytes: usize) {
        if let Some(advice) = self.advice {
            let words = slab.untouched();
            let length = words.len().min(bytes / 8);
            advice(&mut words[..length]);
        }
    }

    /// A slab of that length; its contents are whatever they were.
    pub fn take(&mut self, length: usize) -> Result<Slab, OutOfMemory> {
        let mut slab = self.take_used(length).unwrap_or_default();
        slab.clear();
        slab.try_reserve(length)?;
        slab.set_length(length);
        Ok(slab)
    }

    /// A slab that is there and fits.
    pub fn take_used(&mut self, length: usize) -> Option<Slab> {
        let mut held = 0;
        for _ in 0..self.lent.len().min(LENT_SLABS_CHECKED) {
            // Those that are held keep their places: they are free before those behind them.
            if self.lent.get(held).is_none_or(Body::is_shared) {
                held += 1;
            } else if let Some(slab) = self.lent.remove(held).and_then(Body::into_slab) {
                self.slabs.push(slab);
            }
        }
        let slab = self.slabs.take(|slab| {
            slab.capacity() >= length && slab.capacity() < length.saturating_mul(2) + 4096
        })?;
        self.bytes -= slab.capacity();
        Some(slab)
    }

    /// Takes a slab back.
    pub fn give(&mut self, slab: Slab) {
        if self.has_room_for(slab.capacity()) {
            self.bytes += slab.capacity();
            self.slabs.push(slab);
        }
    }

    /// Takes a slab back as soon as its last other holder drops it.
    pub fn give_later(&mut self, body: &Body) {
        let capacity = body.slab_capacity();
        if self.has_room_for(capacity) {
            self.bytes += capacity;
            self.lent.push_back(body.clone());
        }
    }

    /// Gives back memory that is not needed any more.
    pub fn reclaim(&mut self) {
        for slab in self.slabs.reclaim() {
            self.bytes -= slab.capacity();
        }
        for _ in 0..self.lent.len() {
            let Some(body) = self.lent.pop_front() else { break };
            match body.try_into_slab() {
                // It is given back next time, if it is not used until then.
                Ok(slab) => self.slabs.push(slab),
                Err(body) => self.lent.push_back(body),
            }
        }
        shorten(&mut self.lent);
    }

    /// Whether so much memory is worth keeping. What others hold for long gives way.
    fn has_room_for(&mut self, capacity: usize) -> bool {
        if !(LARGE_FRAME_BYTES..=POOL_BYTES_MAX).contains(&capacity) {
            return false;
        }
        while self.bytes + capacity > POOL_BYTES_MAX {
            let Some(oldest) = self.lent.pop_front() else { return false };
            self.bytes -= oldest.slab_capacity();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sapwood_packet::{Header, PacketRef, Values};
    use sapwood_wire::encode_packet;

    /// A frame with an array of `count` bytes.
    fn frame(bytes: u8, count: usize) -> Slab {
        let values = Values::new().array(&std::vec![bytes; count]);
        let packet = PacketRef {
            header: Header::default(),
            format: values.as_ref().format(),
            body: values.as_ref().body(),
            ..PacketRef::default()
        };
        let mut frame = Slab::default();
        encode_packet(&mut frame, &packet).unwrap();
        frame
    }

    /// Puts as many of the bytes as there is room for into lent memory, and says what they are.
    fn fill(inbox: &mut Inbox, pool: &mut Pool, bytes: &mut &[u8]) -> Filled {
        let memory = inbox.lend(pool).unwrap();
        let length = memory.len().min(bytes.len());
        memory[..length].copy_from_slice(&bytes[..length]);
        *bytes = &bytes[length..];
        inbox.filled(length).unwrap()
    }

    #[test]
    fn a_frame_that_is_not_quite_as_long_as_the_last_one_stays_where_it_was_read() {
        let (short, long) = (frame(1, 20_000), frame(2, 21_000));
        let mut pool = Pool::default();
        let mut inbox = Inbox::default();
        inbox.note_length(short.len());
        let mut bytes = long.as_bytes();
        assert!(matches!(fill(&mut inbox, &mut pool, &mut bytes), Filled::Partial));
        match fill(&mut inbox, &mut pool, &mut bytes) {
            Filled::Frame(slab) => assert_eq!(slab.as_bytes(), long.as_bytes()),
            other => panic!("{other:?}"),
        }
        inbox.note_length(long.len());
        let stream = [short.as_bytes(), long.as_bytes()].concat();
        match fill(&mut inbox, &mut pool, &mut &stream[..]) {
            Filled::FrameAndMore(slab, more) => {
                assert_eq!(slab.as_bytes(), short.as_bytes());
                assert_eq!(more, long.as_bytes()[..long.len() - short.len()]);
            }
            other => panic!("{other:?}"),
        }
        let mut bytes = short.as_bytes();
        assert!(matches!(fill(&mut inbox, &mut pool, &mut &bytes[..100]), Filled::Partial));
        bytes = &bytes[100..];
        match fill(&mut inbox, &mut pool, &mut bytes) {
            Filled::Frame(slab) => assert_eq!(slab.as_bytes(), short.as_bytes()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn memory_serves_again_once_no_other_holder_is_left() {
        let mut pool = Pool::default();
        let body = Body::from(pool.take(LARGE_FRAME_BYTES).unwrap());
        let position = body.as_bytes().as_ptr();
        pool.give_later(&body);
        assert_ne!(
            pool.take(LARGE_FRAME_BYTES).unwrap().as_bytes().as_ptr(),
            position,
            "it is held"
        );
        drop(body);
        assert_eq!(pool.take(LARGE_FRAME_BYTES).unwrap().as_bytes().as_ptr(), position);
        assert_eq!(pool.bytes, 0);
    }

    #[test]
    fn what_is_held_for_long_gives_way() {
        let mut pool = Pool::default();
        let held: Vec<Body> = (0..8).map(|_| Body::from(Slab::of_length(1 << 20))).collect();
        for body in &held {
            pool.give_later(body);
            assert!(pool.bytes <= POOL_BYTES_MAX);
        }
        assert_eq!(pool.lent.len(), POOL_BYTES_MAX >> 20);
        pool.give_later(&Body::from(Slab::of_length(POOL_BYTES_MAX + 8)));
        assert!(pool.take_used(POOL_BYTES_MAX + 8).is_none(), "it is too long to be kept");
    }
}
