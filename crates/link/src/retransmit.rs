//! The retransmit buffer: frames that have been sent and may have to be sent again, until they are
//! acknowledged.
//!
//! A small frame is copied here as soon as it lies whole in the outbox, while it is still in the
//! processor's nearest cache: that costs less than to come back for it when it has left, or to
//! write it to the outbox in memory that stays, which has mostly gone out of the cache before its
//! turn comes again. A large body is shared with its other holders.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sapwood_packet::{Body, Slab};

use crate::inbox::Pool;
use crate::outbox::EncodedFrame;
use crate::sequence::{FrameInfo, Position};
use crate::spares::{Spares, shorten};

/// Copies of small frames lie in pieces of about this many bytes.
const PIECE_BYTES: usize = 64 << 10;

/// The first piece grows to this length as it needs, in bytes.
const FIRST_BYTES: usize = 8 << 10;

#[derive(Debug)]
enum Bytes {
    /// A copy: its length in the pieces, behind those of the entries before.
    Copied(u32),
    /// Boxed: most entries are small copies, and the enum should stay small.
    Shared(Box<EncodedFrame>),
}

#[derive(Debug)]
struct Entry {
    info: FrameInfo,
    bytes: Bytes,
}

/// Unacknowledged frames of one stream, in the order in which they were sent.
#[derive(Debug, Default)]
pub struct RetransmitBuffer {
    entries: VecDeque<Entry>,
    /// Frames one behind the other; each lies whole in one piece, and no piece is used up.
    pieces: VecDeque<Slab>,
    /// Where the first piece's first byte that is still needed is.
    start: usize,
    /// Memory for the next pieces.
    spares: Spares<Slab>,
    bytes: usize,
}

impl RetransmitBuffer {
    /// Bytes of all frames.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether all frames are acknowledged.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps a copy of a small frame.
    #[inline]
    pub fn push_copy(&mut self, info: FrameInfo, frame: &[u8]) {
        self.append(frame);
        self.bytes += frame.len();
        self.entries.push_back(Entry { info, bytes: Bytes::Copied(frame.len() as u32) });
    }

    /// Keeps a frame that is shared.
    pub fn push_shared(&mut self, info: FrameInfo, frame: EncodedFrame) {
        self.bytes += frame.length();
        self.entries.push_back(Entry { info, bytes: Bytes::Shared(Box::new(frame)) });
    }

    /// Copies the bytes of a frame behind those of the frames before.
    fn append(&mut self, frame: &[u8]) {
        let fits = |piece: &Slab| piece.len() + frame.len() <= PIECE_BYTES;
        if !self.pieces.back().is_some_and(fits) {
            let is_first = self.pieces.is_empty() && frame.len() < FIRST_BYTES;
            let piece = self.spares.pop().unwrap_or_else(|| match is_first {
                // Most streams never keep more than a few small frames.
                true => Slab::default(),
                false => Slab::with_capacity(PIECE_BYTES.max(frame.len())),
            });
            self.pieces.push_back(piece);
        }
        if let Some(piece) = self.pieces.back_mut() {
            piece.extend(frame);
        }
    }

    /// Forgets all frames in front that lie wholly before a position; their memory is used again.
    #[inline]
    pub fn forget_before(&mut self, position: Position, pool: &mut Pool) {
        while self.entries.front().is_some_and(|entry| entry.info.position < position) {
            self.forget_first(pool);
        }
    }

    /// Forgets the oldest frame.
    pub fn forget_first(&mut self, pool: &mut Pool) {
        let Some(entry) = self.entries.pop_front() else { return };
        match entry.bytes {
            Bytes::Copied(length) => {
                self.start += length as usize;
                self.bytes -= length as usize;
                self.free_used_piece();
            }
            Bytes::Shared(frame) => {
                self.bytes -= frame.length();
                frame.give_back(pool);
            }
        }
    }

    fn free_used_piece(&mut self) {
        let is_used = |first: &mut Slab| first.len() == self.start;
        if let Some(mut piece) = self.pieces.pop_front_if(is_used) {
            self.start = 0;
            piece.clear();
            if piece.capacity() <= 2 * PIECE_BYTES {
                self.spares.push(piece);
            }
        }
    }

    /// Gives back memory that is not needed any more.
    pub fn reclaim(&mut self) {
        drop(self.spares.reclaim());
        shorten(&mut self.entries);
        shorten(&mut self.pieces);
    }

    /// The position of the oldest frame.
    pub fn first(&self) -> Option<Position> {
        self.entries.front().map(|entry| entry.info.position)
    }

    /// The position of the newest frame.
    #[inline]
    pub fn last(&self) -> Option<Position> {
        self.entries.back().map(|entry| entry.info.position)
    }

    /// Copies of all frames that do not lie wholly before a position.
    pub fn frames_from(&self, position: Position) -> Vec<(EncodedFrame, FrameInfo)> {
        let mut frames = Vec::new();
        let mut pieces = self.pieces.iter();
        let (mut piece, mut at) = (pieces.next(), self.start);
        for Entry { info, bytes } in &self.entries {
            let is_wanted = info.position >= position;
            match bytes {
                Bytes::Copied(length) => {
                    if piece.is_some_and(|piece| piece.len() == at) {
                        (piece, at) = (pieces.next(), 0);
                    }
                    let start = at;
                    at += *length as usize;
                    if let (true, Some(piece)) = (is_wanted, piece) {
                        let copy = Slab::copy_of(&piece.as_bytes()[start..at]);
                        frames.push((EncodedFrame::whole(Body::from(copy)), *info));
                    }
                }
                Bytes::Shared(frame) if is_wanted => {
                    frames.push((EncodedFrame::clone(frame), *info));
                }
                Bytes::Shared(_) => {}
            }
        }
        frames
    }

    /// Takes all frames out, in order.
    pub fn take(&mut self) -> Vec<(EncodedFrame, FrameInfo)> {
        let frames = self.frames_from(Position::default());
        *self = Self::default();
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn frame(mark: u8) -> [u8; 16] {
        [mark; 16]
    }

    fn info(wave: u64) -> FrameInfo {
        FrameInfo { position: Position::start_of(wave), ..FrameInfo::default() }
    }

    fn marks(frames: &[(EncodedFrame, FrameInfo)]) -> Vec<u8> {
        frames.iter().map(|(frame, _)| frame.head_bytes()[0]).collect()
    }

    #[test]
    fn what_is_acknowledged_is_forgotten_and_the_rest_comes_out_in_order() {
        let mut buffer = RetransmitBuffer::default();
        for wave in 0..2000_u64 {
            buffer.push_copy(info(wave), &frame(wave as u8));
        }
        buffer.forget_before(Position::start_of(1990), &mut Pool::default());
        assert_eq!(buffer.bytes(), 10 * 16);
        let expected: Vec<u8> = (1990..2000_u64).map(|wave| wave as u8).collect();
        assert_eq!(marks(&buffer.take()), expected);
        assert!(buffer.is_empty());
        assert_eq!(buffer.bytes(), 0);
    }

    #[test]
    fn shared_and_copied_frames_keep_their_order() {
        let mut buffer = RetransmitBuffer::default();
        buffer.push_copy(info(0), &frame(0));
        buffer.push_shared(info(1), EncodedFrame::whole(Body::from(Slab::copy_of(&frame(1)))));
        buffer.push_copy(info(2), &frame(2));
        assert_eq!(marks(&buffer.frames_from(Position::start_of(0))), vec![0, 1, 2]);
        assert_eq!(marks(&buffer.frames_from(Position::start_of(1))), vec![1, 2]);
        buffer.forget_before(Position::start_of(2), &mut Pool::default());
        assert_eq!(marks(&buffer.frames_from(Position::start_of(0))), vec![2]);
    }

    #[test]
    fn what_is_acknowledged_is_forgotten_across_pieces() {
        let mut buffer = RetransmitBuffer::default();
        let mut pool = Pool::default();
        for wave in 0..40_u64 {
            buffer.push_copy(info(wave), &[wave as u8; 4096]);
            buffer.forget_before(Position::start_of(wave.saturating_sub(20)), &mut pool);
        }
        assert_eq!(buffer.bytes(), 21 * 4096);
        assert_eq!(marks(&buffer.take()), (19..40).collect::<Vec<u8>>());
    }
}
