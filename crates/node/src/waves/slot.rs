//! One child as a stream sees it: how far it has come upwards, and what may still go down to it.

use alloc::collections::VecDeque;

use sapwood_link::{Assemblies, END, Gate, Position, has_reached, shorten};
use sapwood_packet::{RankSet, Wave, waves_between};
use sapwood_wire::limits::KEPT_BYTES;

use crate::interface::LinkId;
use crate::waves::permission::PacketPermission;
use crate::waves::replicas::Replicas;

/// After this many bytes a child is told what is safe, though nothing else goes to it: before what
/// it may keep is used up.
const UNANNOUNCED_BYTES_MAX: usize = KEPT_BYTES / 4;

/// After this many waves or packets a neighbour is told what is safe, if a packet goes there
/// anyhow.
pub(crate) const UNANNOUNCED_PACKETS: u64 = 128;

/// A child that leads to members of the stream.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) link: Option<LinkId>,
    /// The stream's members behind it.
    pub(crate) members: RankSet,
    pub(crate) alive: bool,
    /// Set when its process is gone and those below it may still come: the number of its vacancy.
    /// Waves wait for it.
    pub(crate) vacancy: Option<u64>,
    /// Everything before this place has come, or will never come.
    pub(crate) next: Position,
    /// `next` before the child sent its last packet (`Order::Last`).
    pub(crate) next_before_end: Position,
    /// Where in the open waves the next packet is likely to belong, counted from the stream's
    /// start.
    pub(crate) hint: u64,
    /// Bytes that have been dealt with and not been granted again; below 0 while more was granted
    /// than has been dealt with.
    owed: i64,
    /// Bytes of chunks that were granted again so that the rest of their wave could come.
    granted_early: u32,
    pub(crate) assemblies: Assemblies,
    /// Where what the stream sends down waits for this child's credit.
    pub(crate) down: Gate,
    /// The place behind what has been sent down to it.
    pub(crate) down_sent: Position,
    /// Everything before this place has reached its back-ends.
    pub(crate) down_safe: Position,
    /// Numbers of single packets that have come from it, and what has to be safe for them to be.
    numbers: VecDeque<(Until, u32)>,
    /// How many single packets have come that have not gone on, and the number of the last that
    /// has: all of those come behind it.
    waiting_singles: u32,
    last_single: u32,
    /// What it has been told is safe.
    announced: (Position, u32),
    /// Bytes that have become safe since, as far as they are counted.
    unannounced_bytes: usize,
    safe_number: u32,
    /// What it has handed over of its filters' states.
    pub(crate) replicas: Replicas,
    /// The members for which it may send, once it has.
    pub(crate) permission: Option<PacketPermission>,
}

/// What has to be safe for a single packet of a child to be safe.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// The single packet of this number that this node has sent.
    Single(u32),
    /// This wave.
    Wave(Wave),
}

impl Slot {
    pub(crate) fn new(
        link: Option<LinkId>,
        members: RankSet,
        first: Position,
        window: u32,
    ) -> Self {
        Self {
            link,
            members,
            alive: true,
            vacancy: None,
            next: first,
            next_before_end: first,
            hint: 0,
            owed: 0,
            granted_early: 0,
            assemblies: Assemblies::default(),
            down: Gate::new(window),
            down_sent: Position::default(),
            down_safe: Position::default(),
            numbers: VecDeque::new(),
            waiting_singles: 0,
            last_single: 0,
            announced: (first, 0),
            unannounced_bytes: 0,
            safe_number: 0,
            replicas: Replicas::default(),
            permission: None,
        }
    }

    /// Whether what goes down has to be kept for it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.alive || self.vacancy.is_some()
    }

    /// A single packet of this child has come, and waits to go on.
    #[inline]
    pub(crate) fn expect_single(&mut self, number: u32) {
        self.waiting_singles += u32::from(number > 0);
    }

    /// The first single packet of this child that waits has gone on.
    pub(crate) fn note_single(&mut self, own: u32, number: u32) {
        if number > 0 {
            self.waiting_singles = self.waiting_singles.saturating_sub(1);
            self.last_single = number;
            self.note_number(Until::Single(own), number);
        }
    }

    /// A single packet of this child is safe when something else is.
    pub(crate) fn note_number(&mut self, until: Until, number: u32) {
        if number > 0 {
            // One that was put to its wave may have overtaken others that waited to go on.
            let is_behind = |&(_, other): &(Until, u32)| !has_reached(number, other);
            let overtaken = self.numbers.iter().rev().take_while(|&other| is_behind(other)).count();
            self.numbers.insert(self.numbers.len() - overtaken, (until, number));
        }
    }

    /// This many bytes more have become safe; whether it is time to tell the child.
    #[inline]
    pub(crate) fn has_unannounced(&mut self, bytes: usize) -> bool {
        self.unannounced_bytes += bytes;
        self.unannounced_bytes >= UNANNOUNCED_BYTES_MAX
    }

    /// Whether this child may forget enough waves for an acknowledgement beside a packet.
    #[inline]
    pub(crate) fn is_behind(&self, safe: Position) -> bool {
        waves_between(self.announced.0.wave, safe.wave) >= UNANNOUNCED_PACKETS
    }

    /// What this child need not keep any more, if it has not been told: the place before which its
    /// packets are safe, and the number of its last single packet that is. Parts of the wave
    /// `held` are not.
    pub(crate) fn settle(
        &mut self,
        safe: Position,
        single: u32,
        held: Option<Wave>,
    ) -> Option<(Position, u32)> {
        self.unannounced_bytes = 0;
        while let Some(&(until, number)) = self.numbers.front() {
            let is_safe = match until {
                Until::Single(own) => has_reached(single, own),
                Until::Wave(wave) => Position::start_of(wave) < safe,
            };
            // Single packets are acknowledged in order: one behind a waiting one must wait.
            let overtakes = self.waiting_singles > 0 && !has_reached(self.last_single, number);
            if !is_safe || overtakes {
                break;
            }
            self.safe_number = number;
            self.numbers.pop_front();
        }
        let held = held.map_or(END, Position::start_of);
        // One that has said that nothing more comes may have members again, which send what they
        // have kept of waves that have gone on without them.
        let come = if self.next < END { self.next } else { self.next_before_end };
        let position = held.min(safe).min(come).max(self.announced.0);
        let now = (position, self.safe_number);
        if !self.alive || now == self.announced {
            return None;
        }
        self.announced = now;
        Some(now)
    }

    /// Gives back memory that is not needed any more.
    pub(crate) fn reclaim(&mut self) {
        self.down.reclaim();
        shorten(&mut self.numbers);
    }

    /// This many bytes from this child have been dealt with; gives a grant when it is worth a
    /// message.
    #[inline]
    pub(crate) fn release(&mut self, bytes: u32, window: u32) -> Option<u32> {
        self.owed += i64::from(bytes);
        // One grant for half a window: the sender never stalls, and grants stay rare.
        if self.owed < i64::from(window / 2) {
            return None;
        }
        let grant = u32::try_from(self.owed).unwrap_or(u32::MAX);
        self.owed -= i64::from(grant);
        Some(grant)
    }

    /// A chunk has come of a packet that is needed whole: its credit returns at once.
    pub(crate) fn grant_early(&mut self, bytes: u32) {
        self.granted_early = self.granted_early.saturating_add(bytes);
    }

    /// A wave has come whole: what was granted for it early is taken back until it has gone on.
    /// Gives those bytes.
    pub(crate) fn withdraw_early_grants(&mut self) -> u32 {
        let early = core::mem::take(&mut self.granted_early);
        self.owed -= i64::from(early);
        early
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_packet_that_waits_is_not_told_of_with_one_behind_it() {
        let mut slot =
            Slot::new(Some(LinkId(0)), RankSet::range(0, 3), Position::start_of(0), 1024);
        slot.next = Position::start_of(9);
        let safe = Position::start_of(4);
        slot.expect_single(1);
        // The second belongs to a wave that is open here.
        slot.note_number(Until::Wave(3), 2);
        assert_eq!(slot.settle(safe, 0, None), Some((safe, 0)));
        slot.note_single(1, 1);
        assert_eq!(slot.settle(safe, 0, None), None, "the first has gone on, and is not safe");
        assert_eq!(slot.settle(safe, 1, None), Some((safe, 2)));
        assert_eq!(
            slot.settle(Position::start_of(8), 1, Some(6)),
            Some((Position::start_of(6), 2))
        );
    }
}
