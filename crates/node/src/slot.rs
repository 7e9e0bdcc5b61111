//! One child as a stream sees it: how far it has come upwards, and what may still go down to it.

use alloc::collections::VecDeque;

use sapwood_packet::{Chunk, PacketRef, Rank, RankSet, Wave};

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
    /// Where in the open waves the next packet is likely to belong, counted from the stream's
    /// start.
    pub(crate) hint: u64,
    /// Bytes that have been dealt with and not been granted again; below 0 while more was granted
    /// than has been dealt with.
    owed: i64,
    /// Bytes of chunks that were granted again so that the rest of their wave could come.
    granted_early: u32,
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
            granted_early: 0,
            assemblies: Assemblies::default(),
            down: Gate::new(window),
        }
    }

    /// So many bytes from this child have been dealt with; gives a grant when it is worth a
    /// message.
    #[inline]
    pub(crate) fn release(&mut self, bytes: u32, window: u32) -> Option<u32> {
        self.owed += i64::from(bytes);
        if self.owed < i64::from(window / 2) {
            return None;
        }
        let grant = u32::try_from(self.owed).unwrap_or(u32::MAX);
        self.owed -= i64::from(grant);
        Some(grant)
    }

    /// A chunk has come of a packet that is needed whole: its credit returns at once.
    pub(crate) fn grant_early(&mut self, bytes: u32) {
        self.granted_early = self.granted_early.saturating_add(bytes);
    }

    /// A wave has come whole: what was granted for it early is taken back until it has gone on.
    /// Gives those bytes.
    pub(crate) fn take_back(&mut self) -> u32 {
        let early = core::mem::take(&mut self.granted_early);
        self.owed -= i64::from(early);
        early
    }
}

/// A frame that waits, and which part of its packet it is.
#[derive(Debug)]
struct Waiting {
    frame: EncodedFrame,
    origin: Rank,
    begins: bool,
    ends: bool,
}

/// Whether a frame begins its packet, and whether it ends it.
pub(crate) fn bounds_of(packet: &PacketRef<'_>) -> (bool, bool) {
    let end = |chunk: Chunk| chunk.offset + packet.body.len() as u64 >= chunk.total;
    packet.chunk.map_or((true, true), |chunk| (chunk.offset == 0, end(chunk)))
}

/// A one-way door for the frames of one stream to one link: they pass while the receiver has
/// granted credit, else they wait in order.
#[derive(Debug)]
pub(crate) struct Gate {
    credit: i64,
    waiting: VecDeque<Waiting>,
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

    /// The frame of a packet waits.
    pub(crate) fn wait(&mut self, frame: EncodedFrame, packet: &PacketRef<'_>) {
        self.waiting_bytes += frame.len();
        let (begins, ends) = bounds_of(packet);
        self.waiting.push_back(Waiting { frame, origin: packet.header.origin, begins, ends });
    }

    /// Drops the oldest packet that waits as a whole; whether there was one. One of which a part
    /// has passed already, or is still to come, stays.
    pub(crate) fn drop_oldest(&mut self) -> bool {
        let whole = (0..self.waiting.len()).find_map(|first| {
            let origin = self.waiting[first].origin;
            let is_end = |part: &Waiting| part.ends && part.origin == origin;
            let last = self.waiting.range(first..).position(is_end)?;
            self.waiting[first].begins.then_some((first, first + last, origin))
        });
        let Some((first, last, origin)) = whole else { return false };
        let mut index = 0;
        let mut dropped = 0;
        self.waiting.retain(|part| {
            let is_part = (first..=last).contains(&index) && part.origin == origin;
            index += 1;
            dropped += if is_part { part.frame.len() } else { 0 };
            !is_part
        });
        self.waiting_bytes -= dropped;
        true
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
            && let Some(Waiting { frame, .. }) = self.waiting.pop_front()
        {
            self.waiting_bytes -= frame.len();
            self.pass(frame.len());
            outbox.push_frame(&frame);
        }
    }

    /// Lets everything pass, for a link that is about to close.
    pub(crate) fn force(&mut self, outbox: &mut Outbox) {
        self.waiting_bytes = 0;
        for waiting in self.waiting.drain(..) {
            outbox.push_frame(&waiting.frame);
        }
    }
}
