//! Runs: the packets of several waves in a row that came in one frame and are folded as one.
//!
//! Runs are how many small waves cost little. They are an economy, never a rule: where anything but
//! the plain case happens (a wave with a deadline, another filter, packets that differ) the waves
//! go their way one by one; children that are out of step only cut runs into shorter ones.

use alloc::boxed::Box;

use sapwood_filter::Filter;
use sapwood_link::Position;
use sapwood_packet::PacketRef;
use sapwood_wire::run_key;

use crate::interface::Instant;
use crate::streams::stream::{Route, Stream};
use crate::waves::slot::Slot;
use crate::waves::table::{Arrived, OpenWave, WaveTable};

impl Stream {
    /// A run of a child goes to its waves: as few pieces as it can, else wave by wave.
    #[inline]
    pub(crate) fn arrive_run(&mut self, slot: usize, arrived: &Arrived<'_>, now: Instant) {
        let run = PacketRef { body: arrived.body(), ..arrived.packet };
        let waves = run.more_waves + 1;
        let mut done = 0;
        while done < waves {
            let rest = run.part_of_run(done, waves - done);
            let taken = self.fold_run(slot, &rest, arrived.charge);
            if taken == 0 {
                break;
            }
            done += taken;
        }
        for index in done..waves {
            let mut packet = run.part_of_run(index, 1);
            let is_last = index + 1 == waves;
            // The whole run has one number: it is that of its last wave.
            packet.header.generation = if is_last { run.header.generation } else { 0 };
            let charge = if is_last { arrived.charge } else { 0 };
            self.arrive(slot, Arrived { packet, owned: None, charge }, now);
        }
    }

    /// Takes the first waves of a run as one piece: as many as are open as one run, or as are not
    /// open at all. Gives how many; 0 when this is not the plain case. The last piece brings the
    /// charge.
    #[inline]
    fn fold_run(&mut self, slot: usize, run: &PacketRef<'_>, charge: u32) -> u32 {
        let position = Position::start_of(run.header.wave);
        let is_plain = self.route == Route::Fold
            && !self.is_timed()
            && !self.is_immediate()
            && self.slots[slot].next == position
            && position.wave >= self.ended
            && position >= self.gone_until;
        let Some(fold) = self.up.as_fold().filter(|_| is_plain) else { return 0 };
        let end = Position::start_of(position.wave + u64::from(run.more_waves) + 1);
        let hint = self.slots[slot].hint;
        let index = self.waves.run_at(position, end, &self.slots, hint);
        let wave = self.waves.wave_mut(index);
        let until = wave.until();
        let waves = wave.more + 1;
        let piece = run.part_of_run(0, waves);
        if wave.total.is_some() || wave.has_values() && !wave.fits(&piece) {
            return 0;
        }
        let may_repeat = position.wave < self.resumed_until;
        if may_repeat && wave.contributors.as_ref().intersects(run.contributors) {
            return 0;
        }
        let charge = if until == end { charge } else { 0 };
        wave.add(slot, &piece, None, charge, Some(fold));
        wave.waiting -= 1;
        self.slots[slot].next = until;
        self.slots[slot].hint = self.waves.number_of(index) + 1;
        let wave = self.waves.wave_mut(index);
        wave.next_turn(slot);
        if wave.holds_any() {
            wave.fold_held(fold, &self.slots, false);
        }
        waves
    }
}

impl OpenWave {
    /// Whether a run has the same waves, format, length and count as what is here already.
    #[inline]
    fn fits(&self, run: &PacketRef<'_>) -> bool {
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
    fn run_at(&mut self, position: Position, end: Position, slots: &[Slot], hint: u64) -> usize {
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
        for next in slots.iter().map(|slot| slot.next).filter(|&next| next > position) {
            end = end.min(Position::start_of(next.wave.max(position.wave + 1)));
        }
        let (index, wave, _) = self.at(position, slots, hint);
        wave.more = u32::try_from(end.wave - position.wave - 1).unwrap_or(0);
        self.runs += usize::from(wave.more > 0);
        index
    }

    /// Cuts the run that a place lies inside of, so that the place becomes a boundary.
    #[inline]
    pub(crate) fn split_at(&mut self, position: Position) {
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
