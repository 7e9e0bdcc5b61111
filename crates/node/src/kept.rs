//! Frames that have been sent and may have to be sent again, until they are acknowledged.
//!
//! Small frames lie one behind the other in one piece of memory; a large body is shared with
//! whoever else holds it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sapwood_packet::{Body, Slab};

use crate::lane::{Passage, Place};
use crate::outbox::EncodedFrame;

/// Memory for small frames that is given back when nothing is kept, in bytes.
const LOG_BYTES_IDLE: usize = 16 << 10;

#[derive(Debug)]
enum Bytes {
    /// So many bytes of the log, behind those of the entries before.
    Logged(u32),
    /// Apart, since most frames are logged and an entry is to be small.
    Shared(Box<EncodedFrame>),
}

#[derive(Debug)]
struct Entry {
    passage: Passage,
    bytes: Bytes,
}

/// Kept frames of one stream, in the order in which they were sent.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    entries: VecDeque<Entry>,
    log: Slab,
    /// Where the log's first kept byte is.
    start: usize,
    bytes: usize,
}

impl Kept {
    /// Bytes of all frames.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps a copy of a small frame.
    #[inline]
    pub(crate) fn log(&mut self, passage: Passage, frame: &[u8]) {
        self.log.extend(frame);
        self.bytes += frame.len();
        self.entries.push_back(Entry { passage, bytes: Bytes::Logged(frame.len() as u32) });
    }

    /// Keeps a frame that is shared.
    pub(crate) fn share(&mut self, passage: Passage, frame: EncodedFrame) {
        self.bytes += frame.len();
        self.entries.push_back(Entry { passage, bytes: Bytes::Shared(Box::new(frame)) });
    }

    /// Forgets all frames in front that lie wholly before a place.
    #[inline]
    pub(crate) fn forget_before(&mut self, place: Place) {
        while self.entries.front().is_some_and(|entry| entry.passage.place < place) {
            self.forget_first();
        }
    }

    /// Forgets the oldest frame.
    pub(crate) fn forget_first(&mut self) {
        let Some(entry) = self.entries.pop_front() else { return };
        match entry.bytes {
            Bytes::Logged(length) => {
                self.start += length as usize;
                self.bytes -= length as usize;
            }
            Bytes::Shared(frame) => self.bytes -= frame.len(),
        }
        self.tidy();
    }

    /// The place of the oldest frame.
    pub(crate) fn first(&self) -> Option<Place> {
        self.entries.front().map(|entry| entry.passage.place)
    }

    /// The place of the newest frame.
    #[inline]
    pub(crate) fn last(&self) -> Option<Place> {
        self.entries.back().map(|entry| entry.passage.place)
    }

    /// Moves the log to the front of its memory when half of that is of no use any more.
    fn tidy(&mut self) {
        if self.start == self.log.len() {
            self.start = 0;
            self.log.clear();
            if self.log.capacity() > LOG_BYTES_IDLE {
                self.log = Slab::default();
            }
        } else if self.start > LOG_BYTES_IDLE && self.start > self.log.len() / 2 {
            let length = self.log.len() - self.start;
            self.log.as_mut_bytes().copy_within(self.start.., 0);
            self.log.set_length(length);
            self.start = 0;
        }
    }

    /// Copies of all frames that do not lie wholly before a place.
    pub(crate) fn frames_from(&self, place: Place) -> Vec<(EncodedFrame, Passage)> {
        let mut frames = Vec::new();
        let mut at = self.start;
        for Entry { passage, bytes } in &self.entries {
            let start = at;
            if let Bytes::Logged(length) = bytes {
                at += *length as usize;
            }
            if passage.place < place {
                continue;
            }
            let frame = match bytes {
                Bytes::Logged(_) => {
                    EncodedFrame::whole(Body::from(Slab::copy_of(&self.log.as_bytes()[start..at])))
                }
                Bytes::Shared(frame) => EncodedFrame::clone(frame),
            };
            frames.push((frame, *passage));
        }
        frames
    }

    /// Takes all frames out, in order.
    pub(crate) fn take(&mut self) -> Vec<(EncodedFrame, Passage)> {
        let frames = self.frames_from(Place::default());
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

    fn passage(wave: u64) -> Passage {
        Passage { place: Place::start_of(wave), ..Passage::default() }
    }

    fn marks(frames: &[(EncodedFrame, Passage)]) -> Vec<u8> {
        frames.iter().map(|(frame, _)| frame.head_bytes()[0]).collect()
    }

    #[test]
    fn what_is_acknowledged_is_forgotten_and_the_rest_comes_out_in_order() {
        let mut kept = Kept::default();
        for wave in 0..2000_u64 {
            kept.log(passage(wave), &frame(wave as u8));
        }
        kept.forget_before(Place::start_of(1990));
        assert_eq!(kept.bytes(), 10 * 16);
        let expected: Vec<u8> = (1990..2000_u64).map(|wave| wave as u8).collect();
        assert_eq!(marks(&kept.take()), expected);
        assert!(kept.is_empty());
        assert_eq!(kept.bytes(), 0);
    }

    #[test]
    fn shared_and_copied_frames_keep_their_order() {
        let mut kept = Kept::default();
        kept.log(passage(0), &frame(0));
        kept.share(passage(1), EncodedFrame::whole(Body::from(Slab::copy_of(&frame(1)))));
        kept.log(passage(2), &frame(2));
        assert_eq!(marks(&kept.frames_from(Place::start_of(0))), vec![0, 1, 2]);
        assert_eq!(marks(&kept.frames_from(Place::start_of(1))), vec![1, 2]);
        kept.forget_before(Place::start_of(2));
        assert_eq!(marks(&kept.frames_from(Place::start_of(0))), vec![2]);
    }
}
