//! What a stream sends up over the link to the parent: what waits for credit, what has gone and is
//! kept until it is acknowledged, and what goes again to a new parent.
//!
//! There are two lanes. Packets **in the order of waves** are acknowledged by place. **Single**
//! packets are outside of that order (late parts, and everything on streams that wait for nobody);
//! they are numbered from 1 and acknowledged by number.

use sapwood_packet::PacketRef;
use sapwood_wire::limits::KEPT_BYTES;

use crate::gate::Gate;
use crate::inbox::Pool;
use crate::kept::Kept;
use crate::lane::{Lane, Passage, Place, has_reached};
use crate::membership::END;
use crate::outbox::{EncodedFrame, EndedRun, Outbox};

/// The upward side of one stream at one node.
#[derive(Debug)]
pub(crate) struct Sender {
    gate: Gate,
    /// Whether frames are kept until they are acknowledged.
    keeps: bool,
    /// Whether more than [`KEPT_BYTES`] makes the sender wait, rather than the oldest be forgotten.
    waits: bool,
    waves: Kept,
    singles: Kept,
    /// Everything before it is safe.
    pub(crate) acknowledged: Place,
    /// All single packets up to this one are safe.
    pub(crate) acknowledged_single: u32,
    last_single: u32,
}

impl Sender {
    pub(crate) fn new(window: u32, first: Place, waits: bool) -> Self {
        Self {
            gate: Gate::new(window),
            keeps: false,
            waits,
            waves: Kept::default(),
            singles: Kept::default(),
            acknowledged: first,
            acknowledged_single: 0,
            last_single: 0,
        }
    }

    /// Keeps what is sent from now on.
    pub(crate) fn keep(&mut self) {
        self.keeps = true;
    }

    /// Whether a packet may pass now.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.gate.is_open() && self.has_memory()
    }

    /// Whether a frame may pass now: memory is asked for at the beginning of a wave only, so that
    /// one that has begun can end. It is not safe before it is whole.
    #[inline]
    pub(crate) fn is_open_for(&self, packet: &PacketRef<'_>) -> bool {
        self.gate.is_open() && (self.has_memory() || self.has_begun(&Passage::upward(packet)))
    }

    /// Whether a part of the same packet, or wave, is kept already.
    fn has_begun(&self, passage: &Passage) -> bool {
        let is_same_wave = |last: Place| last.wave == passage.place.wave;
        !passage.begins
            || passage.lane == Lane::Waves && self.waves.last().is_some_and(is_same_wave)
    }

    #[inline]
    fn has_memory(&self) -> bool {
        !self.waits || self.kept_bytes() < KEPT_BYTES
    }

    #[inline]
    pub(crate) fn kept_bytes(&self) -> usize {
        self.waves.bytes() + self.singles.bytes()
    }

    pub(crate) fn waiting_bytes(&self) -> usize {
        self.gate.waiting_bytes()
    }

    /// Whether everything that was sent is safe.
    pub(crate) fn is_settled(&self) -> bool {
        self.waves.is_empty() && self.singles.is_empty() && self.gate.waiting_bytes() == 0
    }

    /// The number of the next single packet.
    #[inline]
    pub(crate) fn number(&mut self) -> u32 {
        if !self.keeps {
            return 0;
        }
        self.last_single = self.last_single.wrapping_add(1).max(1);
        self.last_single
    }

    /// The number of the last single packet; 0 for none.
    pub(crate) fn last_single(&self) -> u32 {
        self.last_single
    }

    /// A run grows by so many bytes; it is kept when it has ended.
    #[inline]
    pub(crate) fn pass(&mut self, bytes: usize) {
        self.gate.pass(bytes);
    }

    /// A frame has just been packed into the outbox, as its last so many bytes.
    #[inline]
    pub(crate) fn packed(&mut self, passage: Passage, length: usize, outbox: &Outbox) {
        self.gate.pass(length);
        self.keep_packed(passage, length, outbox);
    }

    /// Keeps the frame that has just been packed.
    #[inline]
    pub(crate) fn keep_packed(&mut self, passage: Passage, length: usize, outbox: &Outbox) {
        if self.keeps && passage.lane != Lane::Outside {
            self.copy(passage, outbox.last_packed(length));
        }
    }

    /// Keeps a run that lies in the outbox.
    #[inline]
    pub(crate) fn keep_run(&mut self, run: &EndedRun, bytes: &[u8]) {
        if self.keeps {
            self.copy(run.passage, bytes);
        }
    }

    #[inline]
    fn copy(&mut self, passage: Passage, frame: &[u8]) {
        if let Some(kept) = self.lane(passage.lane) {
            kept.copy(passage, frame);
        }
        self.bound();
    }

    fn lane(&mut self, lane: Lane) -> Option<&mut Kept> {
        match lane {
            Lane::Waves => Some(&mut self.waves),
            Lane::Singles => Some(&mut self.singles),
            Lane::Outside => None,
        }
    }

    /// Gives back memory that is not needed any more.
    pub(crate) fn reclaim(&mut self) {
        self.gate.reclaim();
        self.waves.reclaim();
        self.singles.reclaim();
    }

    /// Sends a frame, and keeps it.
    pub(crate) fn send(&mut self, frame: EncodedFrame, passage: Passage, outbox: &mut Outbox) {
        self.gate.pass(frame.len());
        outbox.push_frame(&frame);
        if !self.keeps {
            return;
        }
        if let Some(kept) = self.lane(passage.lane) {
            kept.share(passage, frame);
        }
        self.bound();
    }

    /// A stream that must not wait forgets the oldest instead; should the parent go now, that part
    /// is lost.
    fn bound(&mut self) {
        while !self.waits && self.kept_bytes() > KEPT_BYTES {
            let lane = if self.waves.is_empty() { &mut self.singles } else { &mut self.waves };
            lane.forget_first(&mut Pool::default());
        }
    }

    /// A frame waits for credit.
    pub(crate) fn wait(&mut self, frame: EncodedFrame, passage: Passage) {
        self.gate.wait(frame, passage);
    }

    /// The stream has members again: that it has none is not said, if it still waits. Gives whether
    /// it did.
    pub(crate) fn withdraw_end(&mut self) -> bool {
        self.gate.withdraw(END)
    }

    /// Drops the oldest that waits until less than a window does; gives how many packets.
    pub(crate) fn make_room(&mut self, window: usize) -> u64 {
        self.gate.make_room(window)
    }

    /// Whether a grant of so many bytes is more than the parent can have dealt with.
    pub(crate) fn exceeds(&self, bytes: u32, window: u32) -> bool {
        self.gate.exceeds(bytes, window)
    }

    /// The parent has granted more.
    pub(crate) fn grant(&mut self, bytes: u32, outbox: &mut Outbox) {
        self.gate.add(bytes);
        self.pump(outbox);
    }

    /// Lets pass what may pass now.
    pub(crate) fn pump(&mut self, outbox: &mut Outbox) {
        while let Some(passage) = self.gate.next()
            && (self.has_memory() || self.has_begun(passage))
            && let Some((frame, passage)) = self.gate.take()
        {
            self.send(frame, passage, outbox);
        }
    }

    /// Lets everything pass, for a link that is about to close.
    pub(crate) fn force(&mut self, outbox: &mut Outbox) {
        while let Some((frame, passage)) = self.gate.take() {
            self.send(frame, passage, outbox);
        }
    }

    /// What lies before a place, and single packets up to a number, are safe.
    pub(crate) fn acknowledge(&mut self, place: Place, single: u32, pool: &mut Pool) {
        self.acknowledged = self.acknowledged.max(place);
        self.waves.forget_before(self.acknowledged, pool);
        if has_reached(single, self.acknowledged_single) {
            self.acknowledged_single = single;
        }
        while let Some(first) = self.singles.first()
            && has_reached(self.acknowledged_single, first.wave as u32)
        {
            self.singles.forget_first(pool);
        }
    }

    /// Forgets everything that is kept (a rule broken on purpose).
    pub(crate) fn forget(&mut self) {
        self.waves = Kept::default();
        self.singles = Kept::default();
    }

    /// Forgets the first frame that is kept (a rule broken on purpose).
    pub(crate) fn forget_first(&mut self) {
        let lane = if self.waves.is_empty() { &mut self.singles } else { &mut self.waves };
        lane.forget_first(&mut Pool::default());
    }

    /// There is a new link to a parent, with a whole window: what is kept goes first.
    pub(crate) fn restart(&mut self, window: u32) {
        let again = self.waves.take().into_iter().chain(self.singles.take());
        self.gate.restart(window, again);
    }
}
