//! A run of a child goes to its waves: in as few pieces as it can.

use sapwood_filter::Filter;
use sapwood_link::Position;
use sapwood_packet::{Order, PacketRef};

use crate::interface::Instant;
use crate::streams::stream::Stream;
use crate::transform::route::Route;
use crate::waves::open_wave::{Arrived, HeldFold};

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
            packet.header.order = if is_last { run.header.order } else { Order::Wave };
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
        // Chunks or values of another form are there already: the waves are taken one by one, and
        // the misfit is told where a single packet's would be.
        if wave.total.is_some() || wave.has_values() && !wave.fits(&piece) {
            return 0;
        }
        let may_repeat = position.wave < self.resumed_until;
        // An orphan sends again what may have come over its old parent. Which waves of the run are
        // repetitions can differ, so each is judged by itself.
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
            wave.fold_held(fold, &self.slots, HeldFold::InOrder);
        }
        waves
    }
}
