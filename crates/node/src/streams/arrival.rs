//! Packets and chunks of children on their way into waves: each goes to the wave of its number, in
//! its child's order, or beside that order if it is late or a repetition.

use sapwood_filter::Filter;
use sapwood_link::{END, Position};

use crate::interface::{Instant, Mutation};
use crate::streams::stream::Stream;
use crate::transform::route::Route;
use crate::waves::open_wave::{Arrived, HeldFold};
use crate::waves::table::Entry;

impl Stream {
    /// A packet or chunk of a child goes to its wave.
    #[inline]
    pub(crate) fn arrive(&mut self, slot: usize, arrived: Arrived<'_>, now: Instant) {
        let header = arrived.packet.header;
        let chunk = arrived.packet.chunk;
        if header.is_last() {
            return self.advance(slot, END);
        }
        let mut position =
            Position { wave: header.wave, offset: chunk.map_or(0, |chunk| chunk.offset) };
        let next = self.slots[slot].next;
        if header.void && position.wave == next.wave {
            // The child ends the wave in the middle of a packet: where an orphan has come to may
            // lie between two chunks.
            position = self.waves.first_open_of(next);
        }
        if self.is_immediate() {
            return self.arrive_unordered(slot, arrived, position);
        }
        if position.wave < self.ended || position < self.gone_until {
            return self.arrive_straggler(slot, arrived, position);
        }
        if header.late || position < next {
            return self.arrive_beside(slot, arrived, position, now);
        }
        if position.wave < self.resumed_until && self.is_repeated_in(&arrived, position) {
            return self.pass_repeated(slot, arrived, position);
        }
        self.arrive_in_order(slot, arrived, position, now);
    }

    /// A packet or chunk whose turn it is in its child's order.
    #[inline]
    fn arrive_in_order(
        &mut self,
        slot: usize,
        arrived: Arrived<'_>,
        position: Position,
        now: Instant,
    ) {
        let header = arrived.packet.header;
        let chunk = arrived.packet.chunk;
        // A single packet needs a wave of its own: a run is cut before and behind it.
        self.waves.split_at(position);
        self.waves.split_at(Position::start_of(position.wave + 1));
        let length = arrived.body().len() as u64;
        let total = chunk.map(|chunk| chunk.total);
        let fold = if self.route == Route::Fold { self.up.as_fold() } else { None };
        // Back-ends send in order: the packet nearly always belongs to the wave behind its child's
        // last.
        let hint = self.slots[slot].hint;
        let replaces = self.breaks(Mutation::ReplaceContributors);
        let Entry { index, wave, is_new } = self.waves.at(position, &self.slots, hint);
        if replaces {
            wave.contributors.clear();
        }
        if header.void {
            wave.charges.push((slot as u16, arrived.charge));
            wave.contributors.union_with(arrived.packet.contributors);
        } else {
            if !wave.has_values() {
                wave.total = total;
            }
            if wave.total == total {
                let Arrived { packet, owned, charge } = arrived;
                wave.add(slot, &packet, owned, charge, fold);
            } else {
                // It has sent, and is named with those that its packet does not fit to.
                wave.charges.push((slot as u16, arrived.charge));
                wave.contributors.union_with(arrived.packet.contributors);
                let name = fold.map_or("null", |fold| fold.name());
                wave.fault = Some(unequal_lengths(name, wave.total, total));
            }
        }
        if is_new {
            self.waves.begin(index, now, self.patience);
        }
        let until = match chunk {
            Some(chunk) if position.offset + length < chunk.total => {
                Position { wave: position.wave, offset: position.offset + length }
            }
            _ if header.ends_wave => Position::start_of(position.wave + 1),
            _ => return,
        };
        let is_fold = fold.is_some();
        // The usual case: exactly one wave ends here, so none is searched for.
        if self.slots[slot].next == position && self.waves.is_last_before(index, until) {
            let wave = self.waves.wave_mut(index);
            wave.waiting -= 1;
            self.slots[slot].next = until;
            self.slots[slot].hint = self.waves.number_of(index) + 1;
        } else {
            self.advance(slot, until);
        }
        if is_fold {
            let wave = self.waves.wave_mut(index);
            wave.next_turn(slot);
            if wave.holds_any()
                && let Some(fold) = self.up.as_fold()
            {
                wave.fold_held(fold, &self.slots, HeldFold::InOrder);
            }
        }
    }

    /// After a chunk was forwarded, opens the wave entry of the next chunk even if no child has
    /// sent it: that entry's deadline then ends the wave.
    pub(crate) fn begin_rest(&mut self, position: Position, now: Instant) {
        let hint = self.waves.number_of(0);
        let Entry { index, is_new, .. } = self.waves.at(position, &self.slots, hint);
        if is_new {
            self.waves.begin(index, now, self.patience);
        }
    }

    /// The child sends nothing more before the position `until`.
    #[inline]
    pub(crate) fn advance(&mut self, slot: usize, until: Position) {
        let from = self.slots[slot].next;
        if until <= from {
            return;
        }
        if until == END {
            self.slots[slot].next_before_end = from;
        }
        self.waves.split_at(until);
        let hint = self.slots[slot].hint;
        self.slots[slot].next = until;
        self.slots[slot].hint = self.waves.stop_waiting_for(from, until, hint);
    }
}

fn unequal_lengths(
    name: &'static str,
    first: Option<u64>,
    other: Option<u64>,
) -> sapwood_filter::FilterError {
    let text = |total: Option<u64>| {
        total.map_or_else(|| "a short packet".into(), |total| alloc::format!("{total} bytes"))
    };
    sapwood_filter::FilterError::Mixed { name, first: text(first), other: text(other) }
}
