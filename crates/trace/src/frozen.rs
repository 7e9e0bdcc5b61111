//! The last events of ranks, as they were when a job was frozen.
//!
//! A leaf copies what its ranks' rings hold of the last seconds, and adds the calls that have not
//! returned, which are in no ring ([`Frozen`]). On the way up these are put side by side; nothing
//! is matched or summed. What a ring has overwritten, and events beyond a packet's limit, are
//! counted at the ring that they are missing from. `frozen_codec` draws the packet.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::Rank;

use crate::event::{Event, EventKind};
use crate::instance::Pattern;
use crate::standing::Presence;

/// Events of one rank that a leaf sends, at most; the newest.
pub const RANK_EVENTS_MAX: usize = 1 << 14;
/// Events of one packet, at most; the newest.
pub const FROZEN_EVENTS_MAX: usize = 1 << 18;

/// One call, with its times in the common clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrozenEvent {
    /// The rank in `MPI_COMM_WORLD`.
    pub rank: Rank,
    /// The number of its ring, which is that of the thread that called.
    pub thread: u8,
    /// The function.
    pub function: u32,
    /// What it is; none of a call in progress of a kind that no ring has.
    pub kind: Option<EventKind>,
    /// Which ranks wait for which in it, if it is a collective.
    pub pattern: Pattern,
    /// Whether it had not returned.
    pub is_open: bool,
    /// The identity of its communicator; 0 if it is not known.
    pub communicator: u64,
    /// Of a collective on its communicator, or of a message in its channel, from 1; 0 if it is not
    /// known.
    pub sequence: u32,
    /// The root of a collective or the other side of a message; negative for none.
    pub peer: i32,
    /// The tag of a message; of a collective what its record has in that place.
    pub tag: i32,
    /// Receives that the same call has completed; 0 for one of which nothing is claimed.
    pub members: u8,
    /// Its begin, in nanoseconds of the common clock.
    pub begin: i64,
    /// Nanoseconds until its return, or until it was last seen in it.
    pub span: u64,
}

impl FrozenEvent {
    /// Its return, or when it was last seen in it.
    #[must_use]
    pub const fn end(&self) -> i64 {
        self.begin.saturating_add_unsigned(self.span)
    }

    /// Whether it is a collective, or a part of one.
    #[must_use]
    pub const fn is_collective(&self) -> bool {
        matches!(
            self.kind,
            Some(
                EventKind::Collective
                    | EventKind::CollectiveStarted
                    | EventKind::CollectiveCompleted
            )
        )
    }

    /// How many bytes its process gave, as [`Event::amount`] says. Of a call that has not returned
    /// that is not known.
    #[must_use]
    pub fn amount(&self) -> Option<u32> {
        let Self { function, members, sequence, peer, tag, .. } = *self;
        let kind = self.kind.filter(|_| !self.is_open)?;
        let (time, span, space) = (0, self.span, 0);
        Event { time, span, function, space, kind, members, sequence, peer, tag }.amount()
    }
}

/// One rank at the moment of the freeze.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrozenRank {
    /// What had become of its process.
    pub presence: Presence,
    /// Whether it recorded its calls.
    pub is_recording: bool,
    /// Whether collectives were called unseen, so that their numbers mean nothing.
    pub is_order_lost: bool,
    /// The moment of the freeze, in nanoseconds of the common clock.
    pub now: i64,
    /// The number of its clock; times of one clock are exact to one another.
    pub clock: u32,
    /// By how much its times may be off, either way, in nanoseconds.
    pub error: u64,
    /// Calls of threads that have no ring, since the start.
    pub without_ring: u64,
    /// Calls on communicators for which there was no room, since the start.
    pub without_space: u64,
}

/// One ring of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrozenRing {
    /// Records written since the start.
    pub written: u64,
    /// Of these, those that were overwritten.
    pub overwritten: u64,
    /// The begin of the oldest event that was still there, by the common clock.
    pub oldest: i64,
    /// Events that were there and found no room in a packet; they are older than those sent.
    pub left_out: u64,
    /// Records that their rank cannot have written.
    pub damaged: u64,
}

/// A rank's part in a communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrozenSeat {
    /// Its rank there.
    pub rank: Rank,
    /// Processes of the communicator.
    pub size: u32,
    /// Whether it joins two groups.
    pub is_between: bool,
    /// Whether a collective has failed there, since when `made` may not be what others count.
    pub is_number_lost: bool,
    /// Collectives there that have returned, or were started. Means nothing of a rank whose order
    /// is lost.
    pub made: u32,
}

/// The last seconds of some ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frozen {
    /// Ranks of the program; 0 where that is not known.
    pub world_size: u32,
    /// The ranks that were looked at.
    pub ranks: BTreeMap<Rank, FrozenRank>,
    /// Their rings, by rank and number, as far as anything was written there.
    pub rings: BTreeMap<(Rank, u8), FrozenRing>,
    /// By communicator and rank, of the communicators that events name.
    pub seats: BTreeMap<(u64, Rank), FrozenSeat>,
    /// What communicators are called.
    pub names: BTreeMap<u64, String>,
    /// The events, in no order.
    pub events: Vec<FrozenEvent>,
}

impl Frozen {
    /// Takes in other ranks.
    pub fn merge(&mut self, other: Self) {
        self.world_size = self.world_size.max(other.world_size);
        self.ranks.extend(other.ranks);
        self.rings.extend(other.rings);
        self.seats.extend(other.seats);
        for (identity, name) in other.names {
            self.add_name(identity, name);
        }
        self.events.extend(other.events);
    }

    /// Says what a communicator is called; of several names the first in order holds.
    pub fn add_name(&mut self, identity: u64, name: String) {
        match self.names.get_mut(&identity) {
            Some(mine) if *mine <= name => {}
            Some(mine) => *mine = name,
            None => drop(self.names.insert(identity, name)),
        }
    }

    /// Keeps the newest events, at most as many; the others are counted at their rings.
    pub fn bound(&mut self, most: usize) {
        let excess = self.events.len().saturating_sub(most);
        if excess == 0 {
            return;
        }
        self.events.sort_by_key(|event| (event.end(), event.rank, event.thread, event.begin));
        for event in self.events.drain(..excess) {
            let ring = self.rings.entry((event.rank, event.thread)).or_default();
            ring.left_out = ring.left_out.saturating_add(1);
        }
    }

    /// Keeps what belongs to the window that ends with the freeze: the last `span` nanoseconds
    /// before the last call that returned, or from the first call on, and all since. Gives its
    /// begin and its end, in the common clock, and sorts the events by their begin.
    pub fn cut(&mut self, span: u64) -> (i64, i64) {
        let now = self.ranks.values().map(|rank| rank.now).max().unwrap_or(0);
        let returned = self.events.iter().filter(|event| !event.is_open);
        let last = returned.map(FrozenEvent::end).max().unwrap_or(now).min(now);
        let whole = last.saturating_sub_unsigned(span);
        // Before the first call of ranks that have lost none there is nothing to show.
        let is_first_known = self.rings.values().all(|ring| ring.overwritten == 0);
        let first = self.events.iter().map(|event| event.begin).min();
        let begin = first.filter(|_| is_first_known).map_or(whole, |first| whole.max(first));
        self.events.retain(|event| event.end() >= begin);
        self.events.sort_by_key(|event| {
            (event.begin, core::cmp::Reverse(event.span), event.rank, event.thread, event.sequence)
        });
        let used: BTreeSet<u64> = self.events.iter().map(|event| event.communicator).collect();
        self.seats.retain(|(identity, _), _| used.contains(identity));
        self.names.retain(|identity, _| used.contains(identity));
        (begin, now)
    }

    /// Events of a ring that the window should have and that were overwritten, at most: how many
    /// of them are older than the window is not known.
    #[must_use]
    pub const fn dropped(ring: &FrozenRing, begin: i64) -> u64 {
        if ring.oldest > begin { ring.overwritten } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(rank: Rank, begin: i64, span: u64) -> FrozenEvent {
        let kind = Some(EventKind::Collective);
        FrozenEvent { rank, kind, communicator: 5, begin, span, ..FrozenEvent::default() }
    }

    fn frozen(events: &[FrozenEvent]) -> Frozen {
        let mut frozen = Frozen { events: events.to_vec(), ..Frozen::default() };
        for event in events {
            let now = 1_000;
            frozen.ranks.insert(event.rank, FrozenRank { now, ..FrozenRank::default() });
            frozen.seats.insert((5, event.rank), FrozenSeat::default());
            frozen.seats.insert((6, event.rank), FrozenSeat::default());
        }
        frozen
    }

    #[test]
    fn of_too_many_events_the_newest_stay_and_the_others_are_counted() {
        let mut all = frozen(&[event(0, 30, 5), event(1, 10, 5), event(0, 20, 40), event(1, 5, 1)]);
        all.bound(2);
        assert_eq!(all.events, [event(0, 30, 5), event(0, 20, 40)]);
        assert_eq!(all.rings[&(1, 0)].left_out, 2);
        all.bound(2);
        assert_eq!(all.rings[&(1, 0)].left_out, 2);
    }

    #[test]
    fn the_window_ends_with_the_last_return_where_all_ranks_wait() {
        let open = FrozenEvent { is_open: true, ..event(1, 500, 500) };
        let mut all = frozen(&[event(0, 100, 10), open, event(0, 390, 10), event(1, 295, 5)]);
        assert_eq!(all.cut(100), (300, 1_000));
        assert_eq!(all.events, [event(1, 295, 5), event(0, 390, 10), open]);
        let mut young = frozen(&[event(0, 390, 10)]);
        assert_eq!(young.cut(1_000), (390, 1_000));
        // Communicators of which no event is left are not told.
        assert_eq!(all.seats.keys().map(|key| key.0).max(), Some(5));
    }

    #[test]
    fn a_ring_that_was_overwritten_before_the_window_lacks_nothing() {
        let ring = FrozenRing { overwritten: 7, oldest: 300, ..FrozenRing::default() };
        assert_eq!((Frozen::dropped(&ring, 300), Frozen::dropped(&ring, 299)), (0, 7));
    }
}
