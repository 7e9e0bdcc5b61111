//! One child as a stream sees it: how far it has come upwards, and what may still go down to it.

use alloc::collections::VecDeque;

use sapwood_packet::{RankSet, Wave};

use crate::LinkId;
use crate::assembly::Assemblies;
use crate::outbox::{EncodedFrame, Outbox};

/// Where in a stream's upward sequence something belongs: the wave, and the offset within a packet
/// that is cut into chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) wave: Wave,
    pub(crate) offset: u64,
}

impl Place {
    pub(crate) const fn start_of(wave: Wave) -> Self {
        Self { wave, offset: 0 }
    }
}

/// A child that leads to members of the stream.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) link: LinkId,
    /// The stream's members behind it.
    pub(crate) members: RankSet,
    pub(crate) alive: bool,
    /// Everything before this place has come, or will never come.
    pub(crate) next: Place,
    /// Where in the open waves the next packet is likely to belong, counted from the stream's start.
    pub(crate) hint: u64,
    /// Bytes that have been dealt with and not been granted again.
    owed: u32,
    pub(crate) assemblies: Assemblies,
    /// Where what the stream sends down waits for this child's credit.
    pub(crate) down: Gate,
}

impl Slot {
    pub(crate) fn new(link: LinkId, members: RankSet, first: Wave, window: u32) -> Self {
        Self {
            link,
            members,
            alive: true,
            next: Place::start_of(first),
            hint: 0,
            owed: 0,
            assemblies: Assemblies::default(),
            down: Gate::new(window),
        }
    }

    /// So many bytes from this child have been dealt with; gives a grant when it is worth a message.
    #[inline]
    pub(crate) fn release(&mut self, bytes: u32, window: u32) -> Option<u32> {
        self.owed = self.owed.saturating_add(bytes);
        (self.owed >= window / 2).then(|| core::mem::take(&mut self.owed))
    }
}

/// A one-way door for the frames of one stream to one link: they pass while the receiver has granted
/// credit, else they wait in order.
#[derive(Debug)]
pub(crate) struct Gate {
    credit: i64,
    waiting: VecDeque<EncodedFrame>,
    waiting_bytes: usize,
}

impl Gate {
    pub(crate) fn new(window: u32) -> Self {
        Self { credit: i64::from(window), waiting: VecDeque::new(), waiting_bytes: 0 }
    }

    /// Whether a frame may pass now. One frame may overdraw the credit, so that a frame longer than
    /// the window passes too.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.credit > 0 && self.waiting.is_empty()
    }

    /// A frame of so many bytes passes.
    #[inline]
    pub(crate) fn pass(&mut self, bytes: usize) {
        self.credit -= bytes as i64;
    }

    /// A frame waits.
    pub(crate) fn wait(&mut self, frame: EncodedFrame) {
        self.waiting_bytes += frame.len();
        self.waiting.push_back(frame);
    }

    /// Drops the oldest waiting frame; whether there was one.
    pub(crate) fn drop_oldest(&mut self) -> bool {
        let dropped = self.waiting.pop_front();
        self.waiting_bytes -= dropped.as_ref().map_or(0, EncodedFrame::len);
        dropped.is_some()
    }

    /// Forgets what waits, since nobody is left to have it.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.waiting_bytes = 0;
    }

    /// Bytes that wait.
    #[inline]
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// The receiver has granted more: what may pass now goes into the outbox.
    pub(crate) fn grant(&mut self, bytes: u32, outbox: &mut Outbox) {
        self.credit = self.credit.saturating_add(i64::from(bytes));
        while self.credit > 0
            && let Some(frame) = self.waiting.pop_front()
        {
            self.waiting_bytes -= frame.len();
            self.pass(frame.len());
            outbox.push_frame(&frame);
        }
    }

    /// Lets everything pass, for a link that is about to close.
    pub(crate) fn force(&mut self, outbox: &mut Outbox) {
        self.waiting_bytes = 0;
        for frame in self.waiting.drain(..) {
            outbox.push_frame(&frame);
        }
    }
}
