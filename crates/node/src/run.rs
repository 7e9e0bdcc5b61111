//! Runs: the packets of several waves in a row that came in one frame and are folded as one.
//!
//! Runs are how many small waves cost little. They are an economy, never a rule: where anything but the
//! plain case happens (a child that is out of step, a wave with a deadline, another filter) a run is
//! undone, and its waves go their way one by one.

use alloc::boxed::Box;

use sapwood_filter::Filter;
use sapwood_packet::PacketRef;
use sapwood_wire::run_key;

use crate::Instant;
use crate::slot::{Place, Slot};
use crate::stream::{Stream, Way};
use crate::wave::{Arrived, OpenWave, WaveTable};

impl Stream {
    /// A run of a child goes to its waves: as one when it can, else wave by wave.
    #[inline]
    pub(crate) fn arrive_run(&mut self, slot: usize, arrived: &Arrived<'_>, now: Instant) {
        let body = arrived.body();
        let run = PacketRef { body, ..arrived.packet };
        if self.fold_run(slot, &run, arrived.charge) {
            return;
        }
        for index in 0..=run.more_waves {
            let packet = run.wave_of_run(index);
            let charge = if index == run.more_waves { arrived.charge } else { 0 };
            self.arrive(slot, Arrived { packet, owned: None, charge }, now);
        }
    }

    /// Takes a run as one, if it opens new waves or fits exactly on a run that is open.
    #[inline]
    fn fold_run(&mut self, slot: usize, run: &PacketRef<'_>, charge: u32) -> bool {
        let place = Place::start_of(run.header.wave);
        let until = Place::start_of(place.wave + u64::from(run.more_waves) + 1);
        let is_plain = self.way == Way::Fold
            && self.patience.is_none()
            && !self.is_immediate()
            && self.slots[slot].next == place
            && place.wave >= self.ended
            && place >= self.gone_until;
        let Some(fold) = self.up.as_fold().filter(|_| is_plain) else { return false };
        let hint = self.slots[slot].hint;
        let Some((index, wave)) = self.waves.run_at(place, until, &self.slots, hint) else {
            return false;
        };
        if wave.has_values() && !wave.fits(run) {
            return false;
        }
        wave.add(slot, run, None, charge, Some(fold));
        wave.waiting -= 1;
        self.slots[slot].next = until;
        self.slots[slot].hint = self.waves.number_of(index) + 1;
        let wave = self.waves.wave_mut(index);
        wave.next_turn(slot);
        if wave.holds_any() {
            wave.fold_held(fold, &self.slots, false);
        }
        true
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
    /// The open run that has exactly these waves, or a new one if none of them is open and every
    /// child is before them or behind them.
    #[inline]
    fn run_at(
        &mut self,
        place: Place,
        until: Place,
        slots: &[Slot],
        hint: u64,
    ) -> Option<(usize, &mut OpenWave)> {
        let index = self.position_of(hint);
        if let Some(wave) = self.open.get(index) {
            let is_same = wave.place == place && wave.until() == until && wave.total.is_none();
            return is_same.then(|| (index, self.wave_mut(index)));
        }
        let is_behind_all = self.open.back().is_none_or(|last| last.until() <= place);
        let is_between = |slot: &Slot| slot.next > place && slot.next < until;
        if !is_behind_all || slots.iter().any(is_between) {
            return None;
        }
        let (index, wave, _) = self.at(place, slots, hint);
        // A place lies before its run's end and at a whole wave, so the difference is a number of waves.
        wave.more = u32::try_from(until.wave - place.wave - 1).unwrap_or(0);
        self.runs += 1;
        Some((index, self.wave_mut(index)))
    }

    /// Undoes every run that has waves between two places.
    #[inline]
    pub(crate) fn undo_runs(&mut self, from: Place, until: Place) {
        if self.runs == 0 {
            return;
        }
        let mut index = self.open.partition_point(|wave| wave.until() <= from);
        while let Some(wave) = self.open.get(index)
            && wave.place < until
        {
            index += self.undo_run(index);
        }
    }

    /// Undoes the run that a place lies inside of, so that it becomes a boundary.
    #[inline]
    pub(crate) fn undo_run_at(&mut self, place: Place) {
        if self.runs == 0 {
            return;
        }
        let index = self.open.partition_point(|wave| wave.until() <= place);
        if self.open.get(index).is_some_and(|wave| wave.place < place) {
            self.undo_run(index);
        }
    }

    /// Puts single waves in the place of a run. Gives how many waves are at this position now.
    fn undo_run(&mut self, index: usize) -> usize {
        let waves = self.open[index].more as usize + 1;
        if waves == 1 {
            return 1;
        }
        self.runs -= 1;
        let Some(mut run) = self.open.remove(index) else { return 1 };
        for number in 0..waves {
            let single = run.single(number, waves);
            self.open.insert(index + number, Box::new(single));
        }
        waves
    }
}
