//! From frames to bytes: what waits to be written to one link, and in which order.
//!
//! Control messages have a queue of their own that goes first, at the next boundary between frames.
//! Small frames are packed together; a large body is not copied but named in the gather list.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sapwood_packet::{Body, PacketRef, RankSetRef, Slab, StreamId, Tag, ValuesRef, Wave};
use sapwood_wire::{
    Control, WireError, destinations_of, encode_control, encode_head, encode_packet, extend_run,
    may_run, run_key, run_waves_max,
};

use crate::inbox::Pool;
use crate::sequence::{FrameInfo, Position, SequenceSpace};
use crate::spares::shorten;

/// Most parts in one gather list; more are written in the next turn.
pub const GATHER_PARTS_MAX: usize = 64;

/// A body of this many bytes or more is not copied into the packed bytes.
pub const SHARED_BODY_BYTES: usize = 8 << 10;

/// Frames are packed into pieces of about this many bytes, so that control never waits for more.
const PACKED_BYTES: usize = 64 << 10;

/// Memory for control messages that is given back when none waits, in bytes.
const CONTROL_BYTES_IDLE: usize = 8 << 10;

/// A frame that is written somewhere already, ready to go to several links: a clone is cheap.
#[derive(Clone, Debug)]
pub struct EncodedFrame {
    head: Body,
    body: Option<Body>,
}

impl EncodedFrame {
    /// A frame that lies whole in one piece.
    pub fn whole(bytes: Body) -> Self {
        Self { head: bytes, body: None }
    }

    /// A frame whose body lies elsewhere.
    pub fn split(packet: &PacketRef<'_>, body: Body) -> Result<Self, WireError> {
        let mut head = Slab::default();
        encode_head(&mut head, packet)?;
        Ok(Self { head: Body::from(head), body: Some(body) })
    }

    /// The back-ends that the packet is for; empty for a packet to all.
    pub fn destinations(&self) -> RankSetRef<'_> {
        destinations_of(self.head.as_bytes())
    }

    /// The bytes that are not shared with other holders of the body.
    #[cfg(test)]
    pub fn head_bytes(&self) -> &[u8] {
        self.head.as_bytes()
    }

    /// Gives memory that is not shared any more back to the pool.
    pub fn give_back(self, pool: &mut Pool) {
        let Self { head, body } = self;
        if let Some(slab) = body.unwrap_or(head).into_slab() {
            pool.give(slab);
        }
    }

    /// Length in bytes.
    pub fn length(&self) -> usize {
        self.head.len() + self.body.as_ref().map_or(0, Body::len)
    }
}

#[derive(Debug)]
enum Piece {
    /// Whole frames, or the head of one whose body is the next piece.
    Packed { bytes: Slab, ends_frame: bool },
    /// The rest of a frame, or a whole one.
    Shared(Body),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Packed { bytes, .. } => bytes.as_bytes(),
            Self::Shared(body) => body.as_bytes(),
        }
    }
}

impl OpenRun {
    /// The wave that may come next, unless the run is as long as it may be.
    #[inline]
    fn next(&self) -> Option<Wave> {
        let next = self.wave + u64::from(self.waves);
        // Runs end at multiples of their longest length, which is a power of two. So all back-ends
        // cut theirs at the same waves, and a parent folds whole runs into one another.
        (next & u64::from(self.waves_max - 1) != 0).then_some(next)
    }

    /// Whether values are the next wave of the run and of its kind.
    #[inline]
    fn takes(&self, stream: StreamId, tag: Tag, wave: Wave, values: ValuesRef<'_>) -> bool {
        self.next() == Some(wave)
            && self.stream == stream
            && self.tag == tag
            && values.body().len() == self.stride
            && values.format().codes() == [self.directive]
            && run_key(values.format(), values.body()) == self.key
    }
}

/// What waits for one link.
#[derive(Debug, Default)]
pub struct Outbox {
    control: Slab,
    pieces: VecDeque<Piece>,
    /// How much of the first piece has been written.
    written: usize,
    /// Whether the first piece is the body of a frame whose head has been written.
    inside_frame: bool,
    /// How much of the control queue has been written.
    control_written: usize,
    /// Memory of the last piece, to be used again.
    spare: Option<Slab>,
    /// The frame at the very end, while waves may still be added to it.
    run: Option<OpenRun>,
    /// Whether runs are recorded when they have ended.
    records_runs: bool,
    /// Runs that have ended, until their streams know of them.
    ended_runs: Vec<EndedRun>,
    /// How many pieces have left.
    pieces_gone: u64,
    /// How many had when [`Outbox::reclaim`] looked last.
    pieces_looked_at: u64,
}

/// A run that nothing is added to any more.
#[derive(Clone, Copy, Debug)]
pub struct EndedRun {
    /// The stream that it belongs to.
    pub stream: StreamId,
    /// Its position and how it is acknowledged.
    pub info: FrameInfo,
    /// Where it lies: in which piece, counted from the first that there ever was.
    piece: u64,
    start: usize,
    length: usize,
}

/// A frame at the end of the packed bytes that the next wave may be added to.
#[derive(Clone, Copy, Debug)]
struct OpenRun {
    /// Where it begins in the last piece.
    start: usize,
    stream: StreamId,
    tag: Tag,
    /// Its first wave.
    wave: Wave,
    /// Its number, where it is outside of the order of waves.
    number: u32,
    directive: u8,
    /// Length of each wave's values.
    stride: usize,
    waves: u32,
    waves_max: u32,
    /// What all bodies of the run have in common.
    key: u64,
}

impl Outbox {
    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.control.is_empty()
    }

    /// Bytes that wait, those of shared memory included.
    pub fn bytes(&self) -> usize {
        self.control.len() + self.pieces.iter().map(|piece| piece.bytes().len()).sum::<usize>()
    }

    /// Queues a control message in front of all packets.
    pub fn push_control(&mut self, control: &Control) -> Result<(), WireError> {
        encode_control(&mut self.control, control).map(drop)
    }

    /// Queues a packet, copying its values.
    #[inline]
    pub fn push_packet(&mut self, packet: &PacketRef<'_>) -> Result<usize, WireError> {
        encode_packet(self.packed(), packet)
    }

    /// Adds the values of a back-end's next wave to the run at the end, if it differs in nothing
    /// but the wave and the values. All packets of a back-end have the same origin and
    /// contributors. Gives by how much the bytes grew.
    #[inline]
    pub fn extend_run(
        &mut self,
        stream: StreamId,
        tag: Tag,
        wave: Wave,
        values: ValuesRef<'_>,
    ) -> Option<usize> {
        let run = self.run.as_mut().filter(|run| run.takes(stream, tag, wave, values))?;
        // The run is the last frame of these bytes: whatever is queued behind a run ends it.
        let Some(Piece::Packed { bytes, ends_frame: true }) = self.pieces.back_mut() else {
            return None;
        };
        let grown = extend_run(bytes, run.start, run.waves, values.body());
        run.waves += 1;
        Some(grown)
    }

    /// Queues a back-end's packet, which may be the first of a run. Gives by how much the bytes
    /// grew.
    #[inline]
    pub fn push_run(&mut self, packet: &PacketRef<'_>) -> Result<usize, WireError> {
        let waves_max = if may_run(packet.format) { run_waves_max(packet.body.len()) } else { 0 };
        let bytes = self.packed();
        let start = bytes.len();
        let length = encode_packet(bytes, packet)?;
        if let (2.., [directive]) = (waves_max, packet.format.codes()) {
            self.run = Some(OpenRun {
                start,
                stream: packet.header.stream,
                tag: packet.header.tag,
                wave: packet.header.wave,
                number: packet.header.order.single_number(),
                directive: *directive,
                stride: packet.body.len(),
                waves: 1,
                waves_max,
                key: run_key(packet.format, packet.body),
            });
        }
        Ok(length)
    }

    /// Whether the frame at the end is a run of this stream that more waves may be added to.
    #[inline]
    pub fn has_open_run(&self, stream: StreamId) -> bool {
        self.run.as_ref().is_some_and(|run| run.stream == stream && run.next().is_some())
    }

    /// Has ended runs recorded: each comes with [`Outbox::take_ended_runs`].
    pub fn record_runs(&mut self) {
        self.records_runs = true;
    }

    /// Gives the runs that have ended since the last time to `record`, each with its bytes. None of
    /// them may have left since.
    #[inline]
    pub fn take_ended_runs(&mut self, mut record: impl FnMut(&EndedRun, &[u8])) {
        let Self { ended_runs, pieces, pieces_gone, .. } = self;
        for run in ended_runs.drain(..) {
            let piece = run.piece.checked_sub(*pieces_gone).and_then(|at| pieces.get(at as usize));
            debug_assert!(piece.is_some(), "a run has left before it was kept");
            if let Some(piece) = piece {
                record(&run, &piece.bytes()[run.start..run.start + run.length]);
            }
        }
    }

    /// The same, of the runs of one stream; those of others stay.
    #[inline]
    pub fn take_ended_runs_of(
        &mut self,
        stream: StreamId,
        mut record: impl FnMut(&EndedRun, &[u8]),
    ) {
        let Self { ended_runs, pieces, pieces_gone, .. } = self;
        ended_runs.retain(|run| {
            if run.stream != stream {
                return true;
            }
            let piece = run.piece.checked_sub(*pieces_gone).and_then(|at| pieces.get(at as usize));
            debug_assert!(piece.is_some(), "a run has left before it was kept");
            if let Some(piece) = piece {
                record(run, &piece.bytes()[run.start..run.start + run.length]);
            }
            false
        });
    }

    /// The last `length` bytes, which have just been packed.
    #[inline]
    pub fn last_packed(&self, length: usize) -> &[u8] {
        let bytes = self.pieces.back().map_or(&[][..], Piece::bytes);
        &bytes[bytes.len().saturating_sub(length)..]
    }

    /// Gives back memory that is not needed any more.
    pub fn reclaim(&mut self) {
        shorten(&mut self.pieces);
        if self.control.is_empty() && self.control.capacity() > CONTROL_BYTES_IDLE {
            self.control = Slab::default();
        }
        if self.ended_runs.is_empty() {
            self.ended_runs = Vec::new();
        }
        if core::mem::replace(&mut self.pieces_looked_at, self.pieces_gone) == self.pieces_gone {
            // Nothing has left since the last look, so that the spare was of no use in that time.
            self.spare = None;
        }
    }

    /// Takes memory back for the next piece.
    fn give_spare(&mut self, mut spare: Slab) {
        // A piece grows beyond its length by the frame that fills it. One long frame must not keep
        // its memory for the short ones that follow.
        if spare.capacity() <= 2 * PACKED_BYTES {
            spare.clear();
            self.spare = Some(spare);
        }
    }

    /// Whether the last frame is a run that is still open.
    pub fn is_run_open(&self) -> bool {
        self.run.is_some()
    }

    /// Ends the run at the end, if there is one.
    #[inline]
    pub fn end_run(&mut self) {
        let Some(run) = self.run.take() else { return };
        if !self.records_runs {
            return;
        }
        let Some(Piece::Packed { bytes, .. }) = self.pieces.back() else { return };
        let length = bytes.len() - run.start;
        let (space, position) = match run.number {
            0 => (SequenceSpace::Waves, Position::start_of(run.wave + u64::from(run.waves) - 1)),
            number => (SequenceSpace::Singles, Position::start_of(number.into())),
        };
        let more = run.waves - 1;
        let info = FrameInfo {
            space,
            position,
            behind: position,
            origin: 0,
            begins: true,
            ends: true,
            more,
        };
        let piece = self.pieces_gone + self.pieces.len() as u64 - 1;
        let (stream, start) = (run.stream, run.start);
        self.ended_runs.push(EndedRun { stream, info, piece, start, length });
    }

    /// Queues the bytes of one whole frame.
    #[inline]
    pub fn push_bytes(&mut self, frame: &[u8]) {
        self.packed().extend(frame);
    }

    /// Queues a frame that is written already.
    pub fn push_frame(&mut self, frame: &EncodedFrame) {
        // The head of a body that follows is always packed, so that the two are known as one frame.
        if frame.head.len() < SHARED_BODY_BYTES || frame.body.is_some() {
            self.packed().extend(frame.head.as_bytes());
        } else {
            self.end_run();
            self.pieces.push_back(Piece::Shared(frame.head.clone()));
        }
        if let Some(body) = &frame.body {
            self.push_body(body.clone());
        }
    }

    fn push_body(&mut self, body: Body) {
        if body.is_empty() {
            // Nothing would ever be written of it, and the outbox never be empty.
            return;
        }
        self.end_run();
        if let Some(Piece::Packed { ends_frame, .. }) = self.pieces.back_mut() {
            *ends_frame = false;
        }
        self.pieces.push_back(Piece::Shared(body));
    }

    /// The packed bytes at the end of the queue.
    #[inline]
    fn packed(&mut self) -> &mut Slab {
        // A piece that is being written goes before waiting control messages; what is queued after
        // them must not.
        let overtakes =
            !self.control.is_empty() && self.pieces.len() <= self.pieces_before_control();
        self.end_run();
        let room = matches!(self.pieces.back(), Some(Piece::Packed { bytes, ends_frame: true })
            if bytes.len() < PACKED_BYTES && !overtakes);
        if !room {
            let bytes = self.spare.take().unwrap_or_default();
            self.pieces.push_back(Piece::Packed { bytes, ends_frame: true });
        }
        match self.pieces.back_mut() {
            Some(Piece::Packed { bytes, .. }) => bytes,
            _ => unreachable!("a packed piece was put there just now"),
        }
    }

    /// How many pieces must be written before control may go: a frame that has been begun is ended.
    fn pieces_before_control(&self) -> usize {
        if self.control_written > 0 {
            return 0;
        }
        match self.pieces.front() {
            Some(_) if self.inside_frame => 1,
            Some(Piece::Packed { ends_frame: false, .. }) if self.written > 0 => 2,
            Some(_) if self.written > 0 => 1,
            _ => 0,
        }
    }

    /// Gives the parts to write next, in order, to `each`, until it returns `false`.
    pub fn gather<'a>(&'a self, mut each: impl FnMut(&'a [u8]) -> bool) {
        let first = self.pieces_before_control();
        let mut skip = self.written;
        for (index, piece) in self.pieces.iter().enumerate() {
            let control = index == first && !self.control.is_empty();
            if control && !each(&self.control.as_bytes()[self.control_written..]) {
                return;
            }
            let bytes = &piece.bytes()[skip..];
            skip = 0;
            if !each(bytes) {
                return;
            }
        }
        if self.pieces.len() <= first && !self.control.is_empty() {
            each(&self.control.as_bytes()[self.control_written..]);
        }
    }

    /// `bytes` of what [`Outbox::gather`] gave have been written.
    pub fn transmitted(&mut self, mut bytes: usize, pool: &mut Pool) {
        self.end_run();
        while bytes > 0 {
            if self.pieces_before_control() == 0 && !self.control.is_empty() {
                let part = bytes.min(self.control.len() - self.control_written);
                self.control_written += part;
                bytes -= part;
                if self.control_written == self.control.len() {
                    self.control.clear();
                    self.control_written = 0;
                }
                continue;
            }
            let Some(piece) = self.pieces.front() else { return };
            let part = bytes.min(piece.bytes().len() - self.written);
            self.written += part;
            bytes -= part;
            if self.written == piece.bytes().len() {
                self.written = 0;
                self.finish_piece(pool);
            }
        }
    }

    fn finish_piece(&mut self, pool: &mut Pool) {
        let piece = self.pieces.pop_front();
        self.pieces_gone += 1;
        self.inside_frame = matches!(piece, Some(Piece::Packed { ends_frame: false, .. }));
        match piece {
            Some(Piece::Packed { bytes, .. }) => self.give_spare(bytes),
            Some(Piece::Shared(body)) => {
                if let Some(slab) = body.into_slab() {
                    pool.give(slab);
                }
            }
            None => {}
        }
    }
}
