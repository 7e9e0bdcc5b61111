//! Flow control of one stream over one connection: frames pass while the receiver has granted
//! credit, else they wait in order.

use alloc::collections::VecDeque;

use crate::outbox::{EncodedFrame, Outbox};
use crate::sequence::{FrameInfo, Position};
use crate::spares::shorten;

/// The credit of one stream on one connection in one direction, and the frames that wait for it.
#[derive(Debug)]
pub struct Gate {
    credit: i64,
    waiting: VecDeque<(EncodedFrame, FrameInfo)>,
    waiting_bytes: usize,
}

impl Gate {
    /// A gate with a whole window of credit, in bytes.
    pub fn new(window: u32) -> Self {
        Self { credit: i64::from(window), waiting: VecDeque::new(), waiting_bytes: 0 }
    }

    /// Whether a frame may pass now. One frame may overdraw the credit, so that a frame longer than
    /// the window passes too.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.credit > 0 && self.waiting.is_empty()
    }

    /// Whether a grant of `bytes` is more than the receiver can have dealt with.
    pub fn exceeds(&self, bytes: u32, window: u32) -> bool {
        self.credit.saturating_add(i64::from(bytes)) > i64::from(window)
    }

    /// A frame of `bytes` passes.
    #[inline]
    pub fn charge(&mut self, bytes: usize) {
        self.credit -= bytes as i64;
    }

    /// A frame waits.
    pub fn wait(&mut self, frame: EncodedFrame, info: FrameInfo) {
        self.waiting_bytes += frame.length();
        self.waiting.push_back((frame, info));
    }

    /// Drops the oldest packets until fewer than `bytes` wait; gives how many packets.
    pub fn make_room(&mut self, bytes: usize) -> u64 {
        let mut dropped = 0;
        while self.waiting_bytes >= bytes
            && let Some(packets) = self.drop_oldest()
        {
            dropped += packets;
        }
        dropped
    }

    /// Drops the oldest packet, or run of packets, that waits as a whole; gives how many those
    /// were. One of which a part has passed already, or is still to come, stays.
    fn drop_oldest(&mut self) -> Option<u64> {
        let whole = (0..self.waiting.len()).find_map(|first| {
            // Chunks of several origins may alternate: a packet is all chunks of one.
            let origin = self.waiting[first].1.origin;
            let is_end = |(_, part): &(EncodedFrame, FrameInfo)| part.ends && part.origin == origin;
            let last = self.waiting.range(first..).position(is_end)?;
            // The head of a packet that has begun to pass is gone: its rest must follow.
            self.waiting[first].1.begins.then_some((first, first + last, origin))
        });
        let (first, last, origin) = whole?;
        let packets = u64::from(self.waiting[first].1.more) + 1;
        let mut index = 0;
        let mut dropped = 0;
        self.waiting.retain(|(frame, part)| {
            let is_part = (first..=last).contains(&index) && part.origin == origin;
            index += 1;
            dropped += if is_part { frame.length() } else { 0 };
            !is_part
        });
        self.waiting_bytes -= dropped;
        Some(packets)
    }

    /// Removes waiting frames with this position; gives whether there were any.
    pub fn withdraw(&mut self, position: Position) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(_, info)| info.position != position);
        self.waiting_bytes = self.waiting.iter().map(|(frame, _)| frame.length()).sum();
        self.waiting.len() < before
    }

    /// Forgets what waits, since the receiver is gone.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.waiting_bytes = 0;
    }

    /// Gives back memory that is not needed any more.
    pub fn reclaim(&mut self) {
        shorten(&mut self.waiting);
    }

    /// Bytes that wait.
    #[inline]
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// The receiver has granted more.
    pub fn add(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(i64::from(bytes));
    }

    /// What may pass next; `None` when nothing may.
    pub fn next(&self) -> Option<&FrameInfo> {
        let (_, info) = self.waiting.front().filter(|_| self.credit > 0)?;
        Some(info)
    }

    /// Takes the frame that waits longest, whether there is credit or not.
    pub fn take(&mut self) -> Option<(EncodedFrame, FrameInfo)> {
        let (frame, info) = self.waiting.pop_front()?;
        self.waiting_bytes -= frame.length();
        Some((frame, info))
    }

    /// The receiver has granted more: what may pass now goes into the outbox.
    pub fn grant(&mut self, bytes: u32, outbox: &mut Outbox) {
        self.add(bytes);
        while self.next().is_some()
            && let Some((frame, _)) = self.take()
        {
            self.charge(frame.length());
            outbox.push_frame(&frame);
        }
    }

    /// Lets everything pass, for a link that is about to close.
    pub fn force(&mut self, outbox: &mut Outbox) {
        self.waiting_bytes = 0;
        for (frame, _) in self.waiting.drain(..) {
            outbox.push_frame(&frame);
        }
    }

    /// There is a new link with a whole window: these frames go before those that wait.
    pub fn restart(&mut self, window: u32, first: impl Iterator<Item = (EncodedFrame, FrameInfo)>) {
        let waiting = core::mem::take(&mut self.waiting);
        self.waiting = first.chain(waiting).collect();
        self.waiting_bytes = self.waiting.iter().map(|(frame, _)| frame.length()).sum();
        self.credit = i64::from(window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sapwood_packet::{Body, Slab};

    fn frame(bytes: usize) -> EncodedFrame {
        EncodedFrame::whole(Body::from(Slab::copy_of(&[7; 64][..bytes])))
    }

    #[test]
    fn a_run_that_is_dropped_counts_as_its_packets() {
        let mut gate = Gate::new(1);
        let single = FrameInfo { begins: true, ends: true, ..FrameInfo::default() };
        gate.wait(frame(40), FrameInfo { more: 2, ..single });
        gate.wait(frame(30), single);
        gate.wait(frame(20), single);
        assert_eq!(gate.make_room(91), 0, "there is room");
        assert_eq!(gate.make_room(90), 3, "the run of three makes room");
        assert_eq!(gate.waiting_bytes(), 50);
        assert_eq!(gate.make_room(1), 2);
        assert_eq!(gate.waiting_bytes(), 0);
    }
}
