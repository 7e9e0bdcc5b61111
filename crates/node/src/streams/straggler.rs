//! Packets from below that do not wait for a wave: on streams that do not wait, parts of waves
//! that have gone on, and what comes a second time from a child that had another parent.
//!
//! Nothing is counted twice here, and nothing is lost: what is repeated is known by its wave and
//! its contributors, whatever way it came.

use alloc::collections::VecDeque;

use sapwood_filter::Filter;
use sapwood_link::{Position, has_reached, shorten};
use sapwood_packet::{RankSet, Wave};

use crate::interface::Instant;
use crate::interface::Mutation;
use crate::streams::stream::Stream;
use crate::transform::route::Route;
use crate::waves::open_wave::Arrived;
use crate::waves::slot::Until;
use crate::waves::table::Entry;

/// A part of a wave that came when its wave had gone on: it becomes a single packet here, and the
/// children that sent it in its wave must keep it until that one is safe, wherever in this process
/// it is meanwhile, and over whatever link it comes again. That holds for parts that were late
/// further down already, too: the sender may come to this process when the one between is gone.
#[derive(Debug)]
struct Straggler {
    wave: Wave,
    ranks: RankSet,
}

/// The parts of one stream's waves that have become late at this node, until they are safe.
#[derive(Debug, Default)]
pub(crate) struct Stragglers {
    /// Those that have gone on, with the number of the single packet that each has become.
    gone: VecDeque<(Straggler, u32)>,
    /// Those that wait to go on, in order.
    waiting: VecDeque<Straggler>,
}

impl Stragglers {
    /// The first part of that wave goes on as the single packet of that number.
    pub(crate) fn note_gone(&mut self, wave: Wave, single: u32) {
        let at = self.waiting.iter().position(|part| part.wave == wave);
        if let Some(part) = at.and_then(|at| self.waiting.remove(at)) {
            self.gone.push_back((part, single));
        }
    }

    /// The first wave of which a part of these back-ends is not safe, when single packets up to a
    /// number are.
    pub(crate) fn first_of(&mut self, members: &RankSet, single: u32) -> Option<Wave> {
        // Single packets become safe in the order of their numbers.
        while self.gone.front().is_some_and(|&(_, own)| has_reached(single, own)) {
            self.gone.pop_front();
        }
        let parts = self.gone.iter().map(|(part, _)| part).chain(&self.waiting);
        let are_theirs = |part: &&Straggler| part.ranks.as_ref().intersects(members.as_ref());
        parts.filter(are_theirs).map(|part| part.wave).min()
    }

    /// Gives back memory that is not needed any more.
    pub(crate) fn reclaim(&mut self) {
        shorten(&mut self.gone);
        shorten(&mut self.waiting);
    }
}

impl Stream {
    /// A packet that goes on by itself.
    fn queue_single(&mut self, slot: usize, arrived: Arrived<'_>) {
        // Its number is acknowledged in its turn, also where it is a duplicate.
        self.slots[slot].expect_single(arrived.packet.header.order.single_number());
        self.waves.add_single(slot, arrived);
    }

    /// The same of a part of a wave that has gone on.
    fn queue_late_part(&mut self, slot: usize, arrived: Arrived<'_>) {
        self.slots[slot].expect_single(arrived.packet.header.order.single_number());
        if self.keeps && !self.breaks(Mutation::LoseLateParts) {
            let ranks = arrived.packet.contributors.to_set();
            let wave = arrived.packet.header.wave;
            self.stragglers.waiting.push_back(Straggler { wave, ranks });
        }
        self.waves.add_late_part(slot, arrived);
    }

    /// A packet of a stream that does not wait: each goes on by itself.
    pub(crate) fn arrive_unordered(
        &mut self,
        slot: usize,
        arrived: Arrived<'_>,
        position: Position,
    ) {
        // Without recovery nothing is sent twice.
        if !self.keeps {
            return self.queue_single(slot, arrived);
        }
        let behind = behind(&arrived, position);
        let ranks = arrived.packet.contributors;
        let is_blind = self.breaks(Mutation::RepeatSingles);
        let seen = &mut self.seen;
        let is_repeated = !is_blind
            && !ranks.is_empty()
            && ranks.iter().all(|rank| seen.get(&rank).is_some_and(|&until| position < until));
        if is_repeated {
            return self.repeat(slot, arrived);
        }
        for rank in ranks.iter() {
            seen.insert(rank, behind);
        }
        self.queue_single(slot, arrived);
    }

    /// A packet whose wave has gone on.
    pub(crate) fn arrive_straggler(
        &mut self,
        slot: usize,
        mut arrived: Arrived<'_>,
        position: Position,
    ) {
        // A packet that was late further down may overtake what the child sends of this wave
        // itself.
        let is_own = !arrived.packet.header.late;
        let is_late = self.is_late(&arrived, position);
        let until = self.behind_straggler(&arrived, position, is_late).filter(|_| is_own);
        if !is_late || arrived.packet.chunk.is_some() || arrived.packet.header.void {
            let is_loss = is_late && !arrived.packet.header.void;
            // A chunk of a packet whose other chunks have gone cannot be delivered.
            self.dropped += u64::from(is_loss);
            self.repeat(slot, arrived);
        } else {
            arrived.packet.header.late = true;
            self.queue_late_part(slot, arrived);
        }
        if let Some(until) = until {
            self.advance(slot, until);
        }
    }

    /// How far a child has come when it has sent this of a wave that has gone on, or has begun to.
    fn behind_straggler(
        &self,
        arrived: &Arrived<'_>,
        position: Position,
        is_late: bool,
    ) -> Option<Position> {
        let end = Position::start_of(position.wave + 1);
        let ends_wave = arrived.packet.header.ends_wave;
        if arrived.packet.chunk.is_none() {
            return ends_wave.then_some(end);
        }
        // Of a packet whose beginning came too late, the rest is of no use either. But what was
        // counted already, and comes again, has a rest that is still waited for.
        let is_useless = is_late || position.wave < self.ended;
        Some(if is_useless { end } else { behind(arrived, position) })
    }

    /// Whether a packet for a forwarded wave is from absent members, and so a straggler rather than
    /// a duplicate.
    fn is_late(&mut self, arrived: &Arrived<'_>, position: Position) -> bool {
        let ranks = arrived.packet.contributors;
        if ranks.is_empty() {
            return false;
        }
        if position.wave >= self.ended.max(self.waves.lent_until()) {
            // Earlier chunks of the packet have gone on.
            return !ranks.is_within(self.chunk_contributors.as_ref());
        }
        let was_absent = self.absences.take(position.wave, ranks);
        was_absent || self.breaks(Mutation::SkipOverlapCheck) || position.wave >= self.resumed_until
    }

    /// A part of a wave that is still open, from a child that has passed the wave: it was late
    /// further down, but is not here.
    pub(crate) fn arrive_beside(
        &mut self,
        slot: usize,
        mut arrived: Arrived<'_>,
        position: Position,
        now: Instant,
    ) {
        let header = arrived.packet.header;
        if self.is_repeated_in(&arrived, position) {
            return self.repeat(slot, arrived);
        }
        let is_cut = self.waves.open_at(position).is_some_and(|wave| wave.total.is_some());
        if header.void || is_cut || arrived.packet.chunk.is_some() {
            // It cannot be put to chunks that have begun without it.
            self.dropped += u64::from(!header.void);
            return self.repeat(slot, arrived);
        }
        if header.late {
            self.slots[slot].note_number(Until::Wave(position.wave), header.order.single_number());
        }
        // Here it is in time, and its wave's packet is not late for the parent either.
        arrived.packet.header.late = false;
        let fold = if self.route == Route::Fold { self.up.as_fold() } else { None };
        let hint = self.slots[slot].hint;
        let Entry { index, wave, is_new } = self.waves.at(position, &self.slots, hint);
        let Arrived { packet, owned, charge } = arrived;
        wave.add(slot, &packet, owned, charge, fold);
        if is_new {
            self.waves.begin(index, now, self.patience);
        }
    }

    /// Whether an open wave has what comes already.
    pub(crate) fn is_repeated_in(&mut self, arrived: &Arrived<'_>, position: Position) -> bool {
        self.waves.split_at(position);
        self.waves.split_at(Position::start_of(position.wave + 1));
        if self.breaks(Mutation::SkipOverlapCheck) {
            return false;
        }
        let finds_whole_only = self.breaks(Mutation::FindWholeOverlapsOnly);
        let Some(wave) = self.waves.open_at(position) else { return false };
        let ranks = arrived.packet.contributors;
        let has_met = match finds_whole_only {
            true => ranks.is_within(wave.contributors.as_ref()),
            false => wave.contributors.as_ref().intersects(ranks),
        };
        if ranks.is_empty() || !has_met {
            return false;
        }
        // A retransmitted packet's contributors are contained in the merged one's
        // (docs/decisions/0008). Otherwise contributors are lost, and counted as dropped.
        self.dropped += u64::from(!ranks.is_within(wave.contributors.as_ref()));
        true
    }

    /// Something that has been counted already, in the order of waves.
    pub(crate) fn pass_repeated(&mut self, slot: usize, arrived: Arrived<'_>, position: Position) {
        let until = match behind(&arrived, position) {
            behind if behind.wave > position.wave && !arrived.packet.header.ends_wave => position,
            behind => behind,
        };
        self.repeat(slot, arrived);
        self.advance(slot, until);
    }

    /// Discards a duplicate: queues it as void, so that its credit is granted and its number
    /// acknowledged in order.
    fn repeat(&mut self, slot: usize, mut arrived: Arrived<'_>) {
        arrived.packet.header.void = true;
        // So that it ends no wave, whose own packets may still come.
        arrived.packet.header.late = true;
        arrived.packet.chunk = None;
        self.queue_single(slot, arrived);
    }
}

/// The place behind a packet or chunk.
fn behind(arrived: &Arrived<'_>, position: Position) -> Position {
    let length = arrived.body().len() as u64;
    match arrived.packet.chunk {
        Some(chunk) if chunk.offset + length < chunk.total => {
            Position { wave: position.wave, offset: chunk.offset + length }
        }
        _ => Position::start_of(position.wave + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_part_is_held_while_it_waits_and_until_it_is_safe() {
        let mut parts = Stragglers::default();
        for (wave, rank) in [(5, 3), (6, 3), (6, 4)] {
            let ranks = RankSet::range(rank, rank);
            parts.waiting.push_back(Straggler { wave, ranks });
        }
        let (third, fourth) = (RankSet::range(3, 3), RankSet::range(4, 4));
        assert_eq!(parts.first_of(&third, 0), Some(5));
        assert_eq!(parts.first_of(&fourth, 0), Some(6));
        assert_eq!(parts.first_of(&RankSet::range(0, 2), 0), None);
        parts.note_gone(5, 1);
        assert_eq!(parts.first_of(&third, 0), Some(5), "it is on its way");
        assert_eq!(parts.first_of(&third, 1), Some(6), "it is safe");
        parts.note_gone(6, 2);
        assert_eq!(parts.first_of(&third, 2), None);
        assert_eq!(parts.first_of(&fourth, 2), Some(6));
    }
}
