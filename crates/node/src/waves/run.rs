//! Runs: the packets of several waves in a row that came in one frame and are folded as one.
//!
//! Runs are how many small waves cost little. They are an economy, never a rule: where anything but
//! the plain case happens (a wave with a deadline, another filter, packets that differ) the waves
//! go their way one by one; children that are out of step only cut runs into shorter ones.

use alloc::boxed::Box;

use sapwood_link::Position;
use sapwood_packet::PacketRef;
use sapwood_wire::run_key;

use crate::waves::open_wave::OpenWave;
use crate::waves::slot::Slot;
use crate::waves::table::{Entry, WaveTable};

impl OpenWave {
    /// Whether a run has the same waves, format, length and count as what is here already.
    #[inline]
    pub(crate) fn fits(&self, run: &PacketRef<'_>) -> bool {
        let Some(first) = self.any_bytes() else { return false };
        self.more == run.more_waves
            && self.format.as_ref() == run.format
            && first.len() == run.body.len()
            && run_key(run.format, first) == run_key(run.format, run.body)
    }
}

impl WaveTable {
    /// The position of the open waves that begin at a place and end no later than `end`: a run that
    /// is open, cut if it is longer, or a new one as far as no wave is open and no child stands
    /// between.
    #[inline]
    pub(crate) fn run_at(
        &mut self,
        position: Position,
        end: Position,
        slots: &[Slot],
        hint: u64,
    ) -> usize {
        let hinted = self.position_of(hint);
        let is_there = |wave: &OpenWave| wave.position == position && wave.until() <= end;
        if self.open.get(hinted).is_some_and(|wave| is_there(wave)) {
            return hinted;
        }
        self.split_at(position);
        self.split_at(end);
        let mut end = end;
        if self.open.back().is_some_and(|last| last.position >= position) {
            let index = self.open.partition_point(|wave| wave.position < position);
            match self.open.get(index) {
                Some(wave) if wave.position == position => return index,
                Some(wave) => end = end.min(Position::start_of(wave.position.wave)),
                None => {}
            }
        }
        // A child whose next wave lies inside of the run counts for the waves behind that place
        // only, and an entry of the table has one count for all of its waves.
        for next in slots.iter().map(|slot| slot.next).filter(|&next| next > position) {
            end = end.min(Position::start_of(next.wave.max(position.wave + 1)));
        }
        let Entry { index, wave, .. } = self.at(position, slots, hint);
        wave.more = u32::try_from(end.wave - position.wave - 1).unwrap_or(0);
        self.runs += usize::from(wave.more > 0);
        index
    }

    /// Cuts the run that a place lies inside of, so that the place becomes a boundary.
    #[inline]
    pub(crate) fn split_at(&mut self, position: Position) {
        // Asked for every packet: where no run is open nothing can be cut.
        if self.runs == 0 {
            return;
        }
        let index = self.open.partition_point(|wave| wave.until() <= position);
        let Some(run) = self.open.get_mut(index).filter(|wave| wave.position < position) else {
            return;
        };
        if run.more == 0 {
            return;
        }
        let cut = (position.wave - run.position.wave) as usize;
        let second = run.split_off(cut);
        self.runs -= 1;
        self.runs += usize::from(run.more > 0) + usize::from(second.more > 0);
        self.open.insert(index + 1, Box::new(second));
    }
}
