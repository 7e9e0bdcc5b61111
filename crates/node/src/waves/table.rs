//! The open waves of a stream: which there are, and which children still have to send in them.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use sapwood_link::{Position, Spares, shorten};

use crate::interface::Instant;
use crate::waves::open_wave::{Arrived, OpenWave};
use crate::waves::slot::Slot;

/// Waves whose memory is kept for the next ones, per stream.
const SPARE_WAVES_MAX: usize = 2048;
/// A wave that has grown beyond this many bytes is not kept.
const SPARE_WAVE_BYTES_MAX: usize = 1024;

/// What a wave that goes on consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaveKind {
    /// The packets that children have sent in it.
    Gathered,
    /// A packet that is its own wave.
    Single,
}

impl WaveKind {
    #[inline]
    pub(crate) const fn is_single(self) -> bool {
        matches!(self, Self::Single)
    }
}

/// An open wave in its table.
pub(crate) struct Entry<'a> {
    pub(crate) index: usize,
    pub(crate) wave: &'a mut OpenWave,
    /// Whether it was opened just now.
    pub(crate) is_new: bool,
}

/// The waves of one stream that are open, in order of their place.
///
/// Waves are boxed, since they are moved more often than they are read.
#[allow(clippy::vec_box)]
#[derive(Debug, Default)]
pub(crate) struct WaveTable {
    pub(crate) open: VecDeque<Box<OpenWave>>,
    /// How many of them are runs.
    pub(crate) runs: usize,
    /// Packets that are waves of their own: late ones, and all of them where nothing is waited for.
    pub(crate) singles: VecDeque<Box<OpenWave>>,
    /// How many waves have left the front of `open` since the stream opened.
    gone: u64,
    /// Those of them, and singles, that filters are at work on elsewhere.
    lent: usize,
    lent_bytes: usize,
    /// The first wave behind all that were ever lent.
    lent_until: u64,
    spare: Spares<Box<OpenWave>>,
}

impl WaveTable {
    /// A packet that is its own wave.
    pub(crate) fn add_single(&mut self, slot: usize, arrived: Arrived<'_>) {
        let mut wave = self.spare.pop().unwrap_or_default();
        let position = Position {
            wave: arrived.packet.header.wave,
            offset: arrived.packet.chunk.map_or(0, |chunk| chunk.offset),
        };
        wave.reset(position, 0);
        wave.total = arrived.packet.chunk.map(|chunk| chunk.total);
        if arrived.packet.header.void {
            // Without a value, but its charge is granted again when it leaves, as that of any
            // packet.
            wave.header = arrived.packet.header;
            wave.charges.push((slot as u16, arrived.charge));
        } else {
            let Arrived { packet, owned, charge } = arrived;
            wave.add(slot, &packet, owned, charge, None);
        }
        self.singles.push_back(wave);
    }

    /// The same of a part of a wave that has gone on.
    pub(crate) fn add_late_part(&mut self, slot: usize, arrived: Arrived<'_>) {
        self.add_single(slot, arrived);
        if let Some(wave) = self.singles.back_mut() {
            wave.is_late_part = true;
        }
    }

    /// The open wave of a place, which is opened if need be.
    #[inline]
    pub(crate) fn at(&mut self, position: Position, slots: &[Slot], hint: u64) -> Entry<'_> {
        let hint = hint.saturating_sub(self.gone) as usize;
        // Most packets are of the wave that the hint names or of a new last one; only others are
        // searched for.
        let (index, is_new) = match self.open.get(hint) {
            Some(wave) if wave.position == position => (hint, false),
            _ if self.open.back().is_none_or(|wave| wave.position < position) => {
                (self.open.len(), true)
            }
            _ => {
                let index = self.open.partition_point(|wave| wave.position < position);
                (index, self.open.get(index).is_none_or(|wave| wave.position != position))
            }
        };
        if is_new {
            // A child that has sent beyond this position has skipped the wave.
            let expects = |slot: &&Slot| slot.next <= position;
            let waiting = slots.iter().filter(expects).count() as u32;
            let mut wave = self.spare.pop().unwrap_or_default();
            wave.reset(position, waiting);
            self.open.insert(index, wave);
        }
        Entry { index, wave: &mut self.open[index], is_new }
    }

    /// The index in `open` of the wave with this running number.
    #[inline]
    pub(crate) fn position_of(&self, hint: u64) -> usize {
        hint.saturating_sub(self.gone) as usize
    }

    /// An open wave by its position.
    #[inline]
    pub(crate) fn wave_mut(&mut self, index: usize) -> &mut OpenWave {
        &mut self.open[index]
    }

    /// The number of the open wave at a position, counted from the stream's start.
    #[inline]
    pub(crate) fn number_of(&self, index: usize) -> u64 {
        self.gone + index as u64
    }

    /// Whether no other open wave lies between the one at this position and `until`.
    #[inline]
    pub(crate) fn is_last_before(&self, index: usize, until: Position) -> bool {
        self.open.get(index + 1).is_none_or(|wave| wave.position >= until)
    }

    /// One more child is waited for, from a place on.
    pub(crate) fn wait_from(&mut self, position: Position) {
        for wave in self.open.iter_mut().filter(|wave| wave.position >= position) {
            wave.waiting += 1;
        }
    }

    /// The open wave at a position, if any.
    pub(crate) fn open_at(&mut self, position: Position) -> Option<&mut OpenWave> {
        let index = self.open.partition_point(|wave| wave.position < position);
        self.open.get_mut(index).filter(|wave| wave.position == position).map(|wave| &mut **wave)
    }

    /// The first place from this one on that is open in its wave; itself if there is none.
    pub(crate) fn first_open_of(&self, position: Position) -> Position {
        let index = self.open.partition_point(|wave| wave.position < position);
        let open = self.open.get(index).map(|wave| wave.position);
        open.filter(|open| open.wave == position.wave).unwrap_or(position)
    }

    /// Open waves from `from` to before `until` no longer wait for this child. Gives the running
    /// number of the first wave behind them.
    #[inline]
    pub(crate) fn stop_waiting_for(&mut self, from: Position, until: Position, hint: u64) -> u64 {
        let mut index = hint.saturating_sub(self.gone) as usize;
        let is_there = self.open.get(index).is_some_and(|wave| wave.position == from);
        if !is_there {
            index = self.open.partition_point(|wave| wave.position < from);
        }
        while let Some(wave) = self.open.get_mut(index)
            && wave.position < until
        {
            wave.waiting -= 1;
            index += 1;
        }
        self.gone + index as u64
    }

    /// Takes the first wave that may go on.
    #[inline]
    pub(crate) fn take_ready(&mut self, now: Instant) -> Option<(Box<OpenWave>, WaveKind)> {
        // Singles belong to waves that have gone already: they wait for none.
        if let Some(wave) = self.singles.pop_front() {
            return Some((wave, WaveKind::Single));
        }
        if !self.is_ready(now) {
            return None;
        }
        self.gone += 1;
        self.runs -= usize::from(self.open.front().is_some_and(|wave| wave.more > 0));
        self.open.pop_front().map(|wave| (wave, WaveKind::Gathered))
    }

    /// Counts a wave that a job works on: the table is not empty before `give_back`.
    pub(crate) fn lend(&mut self, wave: &OpenWave, kind: WaveKind) {
        self.lent += 1;
        self.lent_bytes += wave.charged_bytes();
        if !kind.is_single() {
            // Packets for lent waves are stragglers, though these have not ended yet.
            self.lent_until = wave.until().wave;
        }
    }

    /// All waves that were lent have gone on.
    pub(crate) fn give_back(&mut self) {
        (self.lent, self.lent_bytes) = (0, 0);
    }

    /// Whether waves are lent.
    pub(crate) fn has_lent(&self) -> bool {
        self.lent > 0
    }

    /// The first wave behind those that have ever been lent; 0 for none.
    pub(crate) fn lent_until(&self) -> u64 {
        self.lent_until
    }

    /// Gives the memory of a wave back.
    pub(crate) fn recycle(&mut self, mut wave: Box<OpenWave>) {
        if wave.capacity() <= SPARE_WAVE_BYTES_MAX && self.spare.count() < SPARE_WAVES_MAX {
            wave.clear();
            self.spare.push(wave);
        }
    }

    /// Gives back memory that is not needed any more.
    pub(crate) fn reclaim(&mut self) {
        drop(self.spare.reclaim());
        shorten(&mut self.open);
        shorten(&mut self.singles);
    }

    /// The first wave behind all that are open or lent.
    pub(crate) fn end(&self) -> u64 {
        self.open.back().map_or(0, |wave| wave.until().wave).max(self.lent_until)
    }

    /// Bytes of frames whose waves have not gone on.
    pub(crate) fn charged_bytes(&self) -> usize {
        let waves = self.open.iter().chain(&self.singles);
        waves.map(|wave| wave.charged_bytes()).sum::<usize>() + self.lent_bytes
    }

    /// Whether no wave is open or lent.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.singles.is_empty() && self.lent == 0
    }
}
