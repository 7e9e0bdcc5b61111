//! One open wave: what its children have sent, folded or held.
//!
//! Packets are combined in the order of the children whatever the order in which they come, so that
//! sums of floating-point numbers are the same bits in every run. A packet whose turn it is is
//! folded at once; one that comes early is held.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::ops::Range;

use sapwood_filter::{FilterError, Fold};
use sapwood_link::Position;
use sapwood_packet::{Body, Chunk, Format, Header, PacketRef, RankSet, Slab};

use smallvec::SmallVec;

use crate::interface::Instant;
use crate::waves::slot::Slot;

/// A body that owns its memory: a part of the slab that its frame was read into.
#[derive(Debug)]
pub(crate) struct OwnedBody {
    pub(crate) slab: Slab,
    pub(crate) start: usize,
    pub(crate) length: usize,
}

impl OwnedBody {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.slab.as_bytes()[self.start..self.start + self.length]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.slab.as_mut_bytes()[self.start..self.start + self.length]
    }

    pub(crate) fn into_body(self) -> Body {
        Body::part_of(alloc::sync::Arc::new(self.slab), self.start, self.length)
    }
}

/// A packet that has just come up from a child.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    /// The packet; its body is here unless it owns its memory.
    pub(crate) packet: PacketRef<'a>,
    pub(crate) owned: Option<OwnedBody>,
    /// Length of its frame, which its sender's credit was charged with.
    pub(crate) charge: u32,
}

impl Arrived<'_> {
    pub(crate) fn body(&self) -> &[u8] {
        self.owned.as_ref().map_or(self.packet.body, OwnedBody::bytes)
    }
}

/// Where the body of a held packet lies.
#[derive(Debug)]
enum HeldBody {
    Arena(Range<usize>),
    Owned(OwnedBody),
}

/// Bodies of a wave's packets, in their order.
pub(crate) type Bodies = SmallVec<[Option<Body>; 4]>;

/// A packet that waits for its wave.
#[derive(Debug)]
struct Held {
    slot: u16,
    header: Header,
    format: Format,
    contributors: RankSet,
    destinations: RankSet,
    body: HeldBody,
}

/// The values of a packet that came before its turn to be folded.
#[derive(Debug)]
struct Early {
    slot: u16,
    body: HeldBody,
}

/// How much of what was held back is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldFold {
    /// As far as the order of the children allows.
    InOrder,
    /// All of it: no child sends more.
    Everything,
}

/// What has been folded so far.
#[derive(Debug)]
enum Accumulator {
    Empty,
    /// In the wave's own memory.
    Inside,
    /// In the memory of the first large packet.
    Owned(OwnedBody),
}

/// One wave, or one chunk of it.
#[derive(Debug)]
pub(crate) struct OpenWave {
    pub(crate) position: Position,
    /// Set when this is a chunk: length of the whole body.
    pub(crate) total: Option<u64>,
    /// How many waves follow this one in a run that is folded as one; their values lie in order.
    pub(crate) more: u32,
    /// Children that have neither sent nor been given up.
    pub(crate) waiting: u32,
    pub(crate) deadline: Option<Instant>,
    /// When it was opened.
    pub(crate) begun: Instant,
    pub(crate) fault: Option<FilterError>,
    /// Whether it is a part of a wave that has gone on.
    pub(crate) is_late_part: bool,
    /// Header of the first packet: its tag is the result's.
    pub(crate) header: Header,
    pub(crate) format: Format,
    pub(crate) contributors: RankSet,
    /// What to grant to which child once the wave has gone on.
    pub(crate) charges: SmallVec<[(u16, u32); 4]>,
    /// All slots before this one are folded.
    folded: usize,
    accumulator: Accumulator,
    inside: Slab,
    held: Vec<Held>,
    early: Vec<Early>,
    arena: Slab,
    /// Memory of large packets that have been folded, to be given back.
    pub(crate) used: Vec<Slab>,
}

impl Default for OpenWave {
    fn default() -> Self {
        Self {
            position: Position::default(),
            total: None,
            more: 0,
            waiting: 0,
            deadline: None,
            begun: Instant::default(),
            fault: None,
            is_late_part: false,
            header: Header::default(),
            format: Format::empty(),
            contributors: RankSet::new(),
            charges: SmallVec::new(),
            folded: 0,
            accumulator: Accumulator::Empty,
            inside: Slab::default(),
            held: Vec::new(),
            early: Vec::new(),
            arena: Slab::default(),
            used: Vec::new(),
        }
    }
}

impl OpenWave {
    /// The larger one of its two memories, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.arena.capacity().max(self.inside.capacity())
    }

    /// Drops its packets; its memory stays.
    pub(crate) fn clear(&mut self) {
        self.take_owned();
        self.held.clear();
        self.early.clear();
    }

    pub(crate) fn reset(&mut self, position: Position, waiting: u32) {
        self.position = position;
        self.total = None;
        self.more = 0;
        self.waiting = waiting;
        self.deadline = None;
        self.fault = None;
        self.is_late_part = false;
        self.header = Header::default();
        self.contributors.clear();
        self.charges.clear();
        self.folded = 0;
        self.accumulator = Accumulator::Empty;
        self.inside.clear();
        self.held.clear();
        self.early.clear();
        self.arena.clear();
    }

    /// Whether it holds any value.
    pub(crate) fn has_values(&self) -> bool {
        !self.held.is_empty()
            || !self.early.is_empty()
            || !matches!(self.accumulator, Accumulator::Empty)
    }

    /// The place behind the last of its waves.
    #[inline]
    pub(crate) fn until(&self) -> Position {
        Position::start_of(self.position.wave + u64::from(self.more) + 1)
    }

    /// The packet's chunk, if this is a chunk of one.
    pub(crate) fn chunk(&self) -> Option<Chunk> {
        self.total.map(|total| Chunk { offset: self.position.offset, total })
    }

    /// The folded value, once everything held has been folded.
    pub(crate) fn folded_bytes(&self) -> Option<&[u8]> {
        match &self.accumulator {
            Accumulator::Empty => None,
            Accumulator::Inside => Some(self.inside.as_bytes()),
            Accumulator::Owned(body) => Some(body.bytes()),
        }
    }

    /// Takes the folded value out when it owns its memory.
    pub(crate) fn take_owned(&mut self) -> Option<OwnedBody> {
        match core::mem::replace(&mut self.accumulator, Accumulator::Empty) {
            Accumulator::Owned(body) => Some(body),
            other => {
                self.accumulator = other;
                None
            }
        }
    }

    /// Takes out the bodies of the held packets that own their memory, in the same order as
    /// [`OpenWave::packets`], which shows those packets without values from here on.
    pub(crate) fn take_bodies(&mut self) -> Bodies {
        let take = |held: &mut Held| match core::mem::replace(&mut held.body, HeldBody::Arena(0..0))
        {
            HeldBody::Owned(owned) => Some(owned.into_body()),
            inside @ HeldBody::Arena(_) => {
                held.body = inside;
                None
            }
        };
        self.held.iter_mut().map(take).collect()
    }

    /// The held packets in the order of their children.
    pub(crate) fn packets(&self) -> impl Iterator<Item = PacketRef<'_>> {
        self.held.iter().map(|held| PacketRef {
            header: held.header,
            format: held.format.as_ref(),
            contributors: held.contributors.as_ref(),
            destinations: held.destinations.as_ref(),
            chunk: self.chunk(),
            more_waves: 0,
            body: match &held.body {
                HeldBody::Arena(range) => &self.arena.as_bytes()[range.clone()],
                HeldBody::Owned(body) => body.bytes(),
            },
        })
    }

    /// Bytes of the frames that it was made of.
    pub(crate) fn charged_bytes(&self) -> usize {
        self.charges.iter().map(|&(_, bytes)| bytes as usize).sum()
    }

    /// Takes a packet in.
    #[inline]
    pub(crate) fn add(
        &mut self,
        slot: usize,
        packet: &PacketRef<'_>,
        owned: Option<OwnedBody>,
        charge: u32,
        fold: Option<&dyn Fold>,
    ) {
        if !self.has_values() {
            self.header = packet.header;
        }
        // Also of a packet that does not fit: its credit is granted with the wave's.
        self.charges.push((slot as u16, charge));
        self.contributors.union_with(packet.contributors);
        let Some(fold) = fold else { return self.hold(slot, packet, owned) };
        if !self.has_values() {
            // The first fault is the one that is told.
            self.fault = self.fault.take().or_else(|| fold.check(packet.format).err());
            self.format.copy_from(packet.format);
        } else if packet.format != self.format.as_ref() {
            self.fault = Some(FilterError::Mixed {
                name: fold.name(),
                first: self.format.to_string(),
                other: packet.format.to_string(),
            });
        }
        // A slot before the fold position may still deliver a late packet, or may be a slot that
        // another one has replaced: it is folded now.
        if slot <= self.folded {
            self.fold_one(fold, packet.body, owned);
        } else {
            let body = self.keep(packet.body, owned);
            // Held in the order of the slots, in which they are folded.
            let at = self.early.partition_point(|other| usize::from(other.slot) <= slot);
            self.early.insert(at, Early { slot: slot as u16, body });
        }
    }

    /// The values of some packet that is here, whichever.
    #[inline]
    pub(crate) fn any_bytes(&self) -> Option<&[u8]> {
        match self.early.first().map(|early| &early.body) {
            Some(HeldBody::Arena(range)) => Some(&self.arena.as_bytes()[range.clone()]),
            Some(HeldBody::Owned(body)) => Some(body.bytes()),
            None => self.folded_bytes(),
        }
    }

    /// Removes the packets of a child that can no longer send the rest of its wave.
    pub(crate) fn remove_packets_of(&mut self, slot: usize) {
        // Contributors of other children stay, also those that came with a void packet.
        let Self { held, contributors, .. } = self;
        held.retain(|held| {
            let is_other = usize::from(held.slot) != slot;
            if !is_other {
                contributors.subtract(held.contributors.as_ref());
            }
            is_other
        });
    }

    /// Cuts a run behind its first waves and gives the rest, which takes over what is to be
    /// granted.
    pub(crate) fn split_off(&mut self, waves: usize) -> Self {
        let whole = self.more as usize + 1;
        let mut rest = Self {
            position: Position::start_of(self.position.wave + waves as u64),
            more: self.more - waves as u32,
            waiting: self.waiting,
            deadline: self.deadline,
            begun: self.begun,
            fault: self.fault.clone(),
            header: self.header,
            format: self.format.clone(),
            contributors: self.contributors.clone(),
            charges: core::mem::take(&mut self.charges),
            folded: self.folded,
            ..Self::default()
        };
        self.more = waves as u32 - 1;
        if matches!(self.accumulator, Accumulator::Inside) {
            // The values of a run lie one behind the other with one stride, so that a cut between
            // waves is a cut between bytes.
            let cut = self.inside.len() / whole * waves;
            rest.inside.extend(&self.inside.as_bytes()[cut..]);
            rest.accumulator = Accumulator::Inside;
            self.inside.set_length(cut);
        }
        for early in &mut self.early {
            if let HeldBody::Arena(range) = &mut early.body {
                let cut = range.start + range.len() / whole * waves;
                let body = rest.keep(&self.arena.as_bytes()[cut..range.end], None);
                rest.early.push(Early { slot: early.slot, body });
                range.end = cut;
            }
        }
        rest
    }

    /// A child has sent the last of what it has for this wave, and it was the child's turn.
    #[inline]
    pub(crate) fn next_turn(&mut self, slot: usize) {
        if self.folded == slot {
            self.folded += 1;
        }
    }

    /// Whether packets came before their turn.
    #[inline]
    pub(crate) fn holds_any(&self) -> bool {
        !self.early.is_empty()
    }

    /// Keeps the bytes of a packet that has to wait.
    fn keep(&mut self, body: &[u8], owned: Option<OwnedBody>) -> HeldBody {
        match owned {
            Some(owned) => HeldBody::Owned(owned),
            None => {
                let start = self.arena.len();
                self.arena.extend(body);
                HeldBody::Arena(start..start + body.len())
            }
        }
    }

    fn hold(&mut self, slot: usize, packet: &PacketRef<'_>, owned: Option<OwnedBody>) {
        let body = self.keep(packet.body, owned);
        let slot = slot as u16;
        let held = Held {
            slot,
            header: packet.header,
            format: packet.format.to_format(),
            contributors: packet.contributors.to_set(),
            destinations: packet.destinations.to_set(),
            body,
        };
        let at = self.held.partition_point(|other| other.slot <= slot);
        self.held.insert(at, held);
    }

    #[inline]
    fn fold_one(&mut self, fold: &dyn Fold, body: &[u8], owned: Option<OwnedBody>) {
        match (&self.accumulator, owned) {
            (Accumulator::Empty, Some(owned)) => self.accumulator = Accumulator::Owned(owned),
            (Accumulator::Empty, None) => {
                self.inside.extend(body);
                self.accumulator = Accumulator::Inside;
            }
            (_, None) => self.fold_into(fold, body),
            (_, Some(owned)) => {
                self.fold_into(fold, owned.bytes());
                self.used.push(owned.slab);
            }
        }
    }

    #[inline]
    fn fold_into(&mut self, fold: &dyn Fold, other: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        let accumulator = match &mut self.accumulator {
            Accumulator::Empty => return,
            Accumulator::Inside => self.inside.as_mut_bytes(),
            Accumulator::Owned(body) => body.bytes_mut(),
        };
        let format = self.format.as_ref();
        let result = if self.more > 0 {
            let stride = accumulator.len() / (self.more as usize + 1);
            fold.fold_run(format, stride, accumulator, other)
        } else if self.total.is_some() {
            fold.fold_chunk(format, self.position.offset, accumulator, other)
        } else {
            fold.fold(format, accumulator, other)
        };
        if let Err(error) = result {
            self.fault = Some(error);
        }
    }

    /// Folds what was held back.
    #[inline]
    pub(crate) fn fold_held(&mut self, fold: &dyn Fold, slots: &[Slot], extent: HeldFold) {
        let mut early = core::mem::take(&mut self.early);
        let mut done = 0;
        while let Some(slot) = slots.get(self.folded) {
            let next = early.get_mut(done).filter(|next| usize::from(next.slot) == self.folded);
            if let Some(next) = next {
                done += 1;
                match core::mem::replace(&mut next.body, HeldBody::Arena(0..0)) {
                    HeldBody::Owned(owned) => self.fold_one(fold, &[], Some(owned)),
                    HeldBody::Arena(range) => {
                        // Taken out for the call, which borrows the wave as a whole.
                        let arena = core::mem::take(&mut self.arena);
                        self.fold_one(fold, &arena.as_bytes()[range], None);
                        self.arena = arena;
                    }
                }
                continue;
            }
            // This child may still send. What stands behind it waits, or the order of additions,
            // and with it the last bits of a floating-point sum, would differ from run to run.
            if extent == HeldFold::InOrder && slot.next <= self.position {
                break;
            }
            self.folded += 1;
        }
        early.drain(..done);
        self.early = early;
    }
}
