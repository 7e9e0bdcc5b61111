//! What one stream sends over a connection that may be replaced: what waits for credit, what has
//! been sent and is held until it is acknowledged, and what is sent again over the next connection.
//!
//! There are two sequence spaces. Packets **in the order of waves** are acknowledged by position.
//! **Single** packets are outside of that order (late parts, and everything on streams whose waves
//! wait for no member); they are numbered from 1 and acknowledged by number.

use sapwood_packet::PacketRef;
use sapwood_wire::limits::KEPT_BYTES;

use crate::gate::Gate;
use crate::inbox::Pool;
use crate::outbox::{EncodedFrame, EndedRun, Outbox};
use crate::retransmit::RetransmitBuffer;
use crate::sequence::END;
use crate::sequence::{FrameInfo, Position, SequenceSpace, has_reached};

/// What a sender does while more than [`KEPT_BYTES`] are unacknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It begins no wave.
    Wait,
    /// It forgets the oldest, which are lost if the connection is.
    Lose,
}

/// The sending end of one stream: a [`Gate`] and the retransmit buffers behind it.
#[derive(Debug)]
pub struct Sender {
    gate: Gate,
    /// Whether frames are retained until they are acknowledged.
    retransmits: bool,
    when_full: WhenFull,
    waves: RetransmitBuffer,
    singles: RetransmitBuffer,
    /// Everything before it is safe.
    pub acknowledged: Position,
    /// All single packets up to this one are safe.
    pub acknowledged_single: u32,
    last_single: u32,
}

impl Sender {
    /// A sender with a whole window of credit in bytes, which begins at a position.
    pub fn new(window: u32, first: Position, when_full: WhenFull) -> Self {
        Self {
            gate: Gate::new(window),
            retransmits: false,
            when_full,
            waves: RetransmitBuffer::default(),
            singles: RetransmitBuffer::default(),
            acknowledged: first,
            acknowledged_single: 0,
            last_single: 0,
        }
    }

    /// Retains what is sent from now on until it is acknowledged.
    pub fn enable_retransmission(&mut self) {
        self.retransmits = true;
    }

    /// Whether a packet may pass now.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.gate.is_open() && self.has_memory()
    }

    /// Whether a frame may pass now: memory is asked for at the beginning of a wave only, so that
    /// one that has begun can end. It is not safe before it is whole.
    #[inline]
    pub fn is_open_for(&self, packet: &PacketRef<'_>) -> bool {
        self.gate.is_open() && (self.has_memory() || self.has_begun(&FrameInfo::upward(packet)))
    }

    /// Whether a part of the same packet, or wave, is kept already.
    fn has_begun(&self, info: &FrameInfo) -> bool {
        let is_same_wave = |last: Position| last.wave == info.position.wave;
        !info.begins
            || info.space == SequenceSpace::Waves && self.waves.last().is_some_and(is_same_wave)
    }

    #[inline]
    fn has_memory(&self) -> bool {
        self.when_full == WhenFull::Lose || self.unacknowledged_bytes() < KEPT_BYTES
    }

    /// Bytes that have been sent and are not acknowledged.
    #[inline]
    pub fn unacknowledged_bytes(&self) -> usize {
        self.waves.bytes() + self.singles.bytes()
    }

    /// Bytes that wait for credit.
    pub fn waiting_bytes(&self) -> usize {
        self.gate.waiting_bytes()
    }

    /// Whether everything that was sent is safe.
    pub fn is_acknowledged(&self) -> bool {
        self.waves.is_empty() && self.singles.is_empty() && self.gate.waiting_bytes() == 0
    }

    /// The number of the next single packet.
    #[inline]
    pub fn number(&mut self) -> u32 {
        if !self.retransmits {
            return 0;
        }
        // 0 stands for none, also after the numbers have wrapped.
        self.last_single = self.last_single.wrapping_add(1).max(1);
        self.last_single
    }

    /// The number of the last single packet; 0 for none.
    pub fn last_single(&self) -> u32 {
        self.last_single
    }

    /// A run grows by `bytes`; it is recorded when it has ended.
    #[inline]
    pub fn charge(&mut self, bytes: usize) {
        self.gate.charge(bytes);
    }

    /// A frame has just been packed into the outbox, as its last `length` bytes.
    #[inline]
    pub fn packed(&mut self, info: FrameInfo, length: usize, outbox: &Outbox) {
        self.gate.charge(length);
        self.record_packed(info, length, outbox);
    }

    /// Retains the frame that has just been packed.
    #[inline]
    pub fn record_packed(&mut self, info: FrameInfo, length: usize, outbox: &Outbox) {
        if self.retransmits && info.space != SequenceSpace::Unsequenced {
            self.copy(info, outbox.last_packed(length));
        }
    }

    /// Retains a run that lies in the outbox.
    #[inline]
    pub fn record_run(&mut self, run: &EndedRun, bytes: &[u8]) {
        if self.retransmits {
            self.copy(run.info, bytes);
        }
    }

    #[inline]
    fn copy(&mut self, info: FrameInfo, frame: &[u8]) {
        if let Some(buffer) = self.space(info.space) {
            buffer.push_copy(info, frame);
        }
        self.bound();
    }

    fn space(&mut self, space: SequenceSpace) -> Option<&mut RetransmitBuffer> {
        match space {
            SequenceSpace::Waves => Some(&mut self.waves),
            SequenceSpace::Singles => Some(&mut self.singles),
            SequenceSpace::Unsequenced => None,
        }
    }

    /// Gives back memory that is not needed any more.
    pub fn reclaim(&mut self) {
        self.gate.reclaim();
        self.waves.reclaim();
        self.singles.reclaim();
    }

    /// Sends a frame, and retains it.
    pub fn send(&mut self, frame: EncodedFrame, info: FrameInfo, outbox: &mut Outbox) {
        // A frame longer than the credit left passes too: it may be longer than the window.
        self.gate.charge(frame.length());
        outbox.push_frame(&frame);
        if !self.retransmits {
            return;
        }
        if let Some(buffer) = self.space(info.space) {
            buffer.push_shared(info, frame);
        }
        self.bound();
    }

    /// A stream that must not wait forgets the oldest instead; should the connection be
    /// lost now, that part is lost.
    fn bound(&mut self) {
        while self.when_full == WhenFull::Lose && self.unacknowledged_bytes() > KEPT_BYTES {
            let space = if self.waves.is_empty() { &mut self.singles } else { &mut self.waves };
            space.forget_first(&mut Pool::default());
        }
    }

    /// A frame waits for credit.
    pub fn wait(&mut self, frame: EncodedFrame, info: FrameInfo) {
        self.gate.wait(frame, info);
    }

    /// Removes a waiting `Order::Last`, since members have come back; gives whether it was still
    /// waiting.
    pub fn withdraw_end(&mut self) -> bool {
        self.gate.withdraw(END)
    }

    /// Drops the oldest that waits until less than a window does; gives how many packets.
    pub fn make_room(&mut self, window: usize) -> u64 {
        self.gate.make_room(window)
    }

    /// Whether a grant of `bytes` is more than the receiver can have dealt with.
    pub fn exceeds(&self, bytes: u32, window: u32) -> bool {
        self.gate.exceeds(bytes, window)
    }

    /// The receiver has granted more, in bytes.
    pub fn grant(&mut self, bytes: u32, outbox: &mut Outbox) {
        self.gate.add(bytes);
        self.pump(outbox);
    }

    /// Lets pass what may pass now.
    pub fn pump(&mut self, outbox: &mut Outbox) {
        while let Some(info) = self.gate.next()
            && (self.has_memory() || self.has_begun(info))
            && let Some((frame, info)) = self.gate.take()
        {
            self.send(frame, info, outbox);
        }
    }

    /// Lets everything pass, for a link that is about to close.
    pub fn force(&mut self, outbox: &mut Outbox) {
        while let Some((frame, info)) = self.gate.take() {
            self.send(frame, info, outbox);
        }
    }

    /// What lies before a position, and single packets up to a number, are safe.
    pub fn acknowledge(&mut self, position: Position, single: u32, pool: &mut Pool) {
        self.acknowledged = self.acknowledged.max(position);
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

    /// Forgets everything that is retained (a rule broken on purpose).
    pub fn forget(&mut self) {
        self.waves = RetransmitBuffer::default();
        self.singles = RetransmitBuffer::default();
    }

    /// Forgets the first frame that is retained (a rule broken on purpose).
    pub fn forget_first(&mut self) {
        let space = if self.waves.is_empty() { &mut self.singles } else { &mut self.waves };
        space.forget_first(&mut Pool::default());
    }

    /// There is a new connection, with a whole window: what is not acknowledged goes first.
    pub fn restart(&mut self, window: u32) {
        let again = self.waves.take().into_iter().chain(self.singles.take());
        self.gate.restart(window, again);
    }
}
