//! The ring of events of one member.

use alloc::string::ToString;
use alloc::vec::Vec;

use sapwood_ring::Ring;
use serde::{Deserialize, Serialize};

use super::event::GroupHop;
use crate::error::GroupError;
use crate::identity::{MemberId, SECOND, Time};
use crate::message::at_most;

/// Most events of a ring, and of one answer.
pub const GROUP_HOPS_MAX: usize = 1 << 16;

/// Longest time for which one question has a member note events, in nanoseconds.
const LEASE_MAX: Time = 600 * SECOND;

/// A reader's place in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupHopCursor {
    /// When the ring was made: another one has other numbers.
    pub since: Time,
    /// The number of the event that the reader has not had.
    pub next: u64,
}

/// Has a member note events, and asks for those of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupHopQuestion {
    /// Where to go on; none at first.
    pub cursor: Option<GroupHopCursor>,
    /// Events are noted for this long from now on, in nanoseconds and for ten minutes at most; 0
    /// asks for no further time. Readers do not know of one another: the noting ends with the
    /// longest of their times.
    pub lease: Time,
    /// How many events the ring holds, where it has still to be made.
    pub room: u32,
    /// How many events to give at most.
    pub most: u32,
}

/// What a member has noted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberHops {
    /// The member.
    pub member: MemberId,
    /// The time of the answer, on the clock of its events.
    pub now: Time,
    /// Where the next question goes on.
    pub cursor: GroupHopCursor,
    /// The ring at which the reader was is gone, since no question came in time: what it had not
    /// read of it is lost, uncounted.
    pub has_lapsed: bool,
    /// Events that were overwritten before this question, since the last.
    pub lost: u64,
    /// Events that are left for the next question.
    pub unread: u64,
    /// The events, the oldest first.
    #[serde(deserialize_with = "at_most::<_, _, GROUP_HOPS_MAX>")]
    pub hops: Vec<GroupHop>,
}

impl MemberHops {
    /// As bytes.
    ///
    /// # Errors
    /// [`GroupError::Message`] if there is no memory.
    pub fn encode(&self) -> Result<Vec<u8>, GroupError> {
        postcard::to_allocvec(self).map_err(|error| GroupError::Message(error.to_string()))
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`GroupError::Message`] for what is no such answer.
    pub fn decode(bytes: &[u8]) -> Result<Self, GroupError> {
        postcard::from_bytes(bytes).map_err(|error| GroupError::Message(error.to_string()))
    }
}

/// What a member notes, if anything.
#[derive(Debug, Default)]
pub(crate) struct HopRing {
    noted: Option<Noted>,
}

#[derive(Debug)]
struct Noted {
    since: Time,
    until: Time,
    ring: Ring<GroupHop>,
}

impl HopRing {
    /// Whether events are noted.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.noted.is_some()
    }

    /// Notes an event.
    pub(crate) fn note(&mut self, hop: GroupHop) {
        let Some(noted) = &mut self.noted else { return };
        if hop.time > noted.until {
            // The reader has gone without a word.
            self.noted = None;
            return;
        }
        noted.ring.note(hop);
    }

    /// Answers a question, which begins or prolongs the noting.
    pub(crate) fn answer(
        &mut self,
        member: MemberId,
        question: &GroupHopQuestion,
        now: Time,
    ) -> MemberHops {
        if self.noted.as_ref().is_some_and(|noted| noted.until < now) {
            self.noted = None;
        }
        let noted = self.noted.get_or_insert_with(|| Noted {
            since: now,
            until: now,
            ring: Ring::new((question.room as usize).clamp(1, GROUP_HOPS_MAX)),
        });
        let told = noted.read(member, question, now);
        noted.until = noted.until.max(now.saturating_add(question.lease.min(LEASE_MAX)));
        told
    }
}

impl Noted {
    fn read(&self, member: MemberId, question: &GroupHopQuestion, now: Time) -> MemberHops {
        let known = question.cursor.filter(|cursor| cursor.since == self.since);
        let has_lapsed = question.cursor.is_some() && known.is_none();
        let (oldest, end) = (self.ring.oldest(), self.ring.end());
        // A reader that is new to this ring has not asked for what was noted before.
        let asked = match (known, has_lapsed) {
            (Some(cursor), _) => cursor.next.min(end),
            (None, true) => oldest,
            (None, false) => end,
        };
        let from = asked.max(oldest);
        let most = u64::from(question.most).min(GROUP_HOPS_MAX as u64);
        let until = end.min(from.saturating_add(most));
        MemberHops {
            member,
            now,
            cursor: GroupHopCursor { since: self.since, next: until },
            has_lapsed,
            lost: from - asked,
            unread: end - until,
            hops: self.ring.range(from, until).copied().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hops::{GroupHopKind, GroupHopOperation};
    use crate::identity::FoldId;

    const ME: MemberId = MemberId(7);

    fn hop(time: Time) -> GroupHop {
        let operation = Some(GroupHopOperation::Fold(FoldId { root: 0, number: time }));
        GroupHop { time, operation, kind: GroupHopKind::Delivered }
    }

    fn question(cursor: Option<GroupHopCursor>) -> GroupHopQuestion {
        GroupHopQuestion { cursor, lease: 1000, room: 4, most: 100 }
    }

    fn times(told: &MemberHops) -> Vec<Time> {
        told.hops.iter().map(|hop| hop.time).collect()
    }

    #[test]
    fn nothing_is_noted_before_a_question_and_after_its_time() {
        let mut ring = HopRing::default();
        ring.note(hop(1));
        assert!(!ring.is_on());
        let first = ring.answer(ME, &question(None), 10);
        assert_eq!((first.hops.len(), first.has_lapsed, ring.is_on()), (0, false, true));
        ring.note(hop(11));
        ring.note(hop(1011));
        assert!(!ring.is_on(), "the lease was over at 1010");
        let late = ring.answer(ME, &question(Some(first.cursor)), 1020);
        assert!(late.has_lapsed && late.hops.is_empty());
    }

    #[test]
    fn two_readers_get_all_events_and_learn_what_was_overwritten() {
        let mut ring = HopRing::default();
        let one = ring.answer(ME, &question(None), 0);
        (1..=3).for_each(|time| ring.note(hop(time)));
        let other = ring.answer(ME, &question(None), 3);
        assert!(other.hops.is_empty(), "a new reader has not asked for the past");
        (4..=6).for_each(|time| ring.note(hop(time)));
        let one = ring.answer(ME, &question(Some(one.cursor)), 6);
        assert_eq!((times(&one), one.lost, one.unread), (alloc::vec![3, 4, 5, 6], 2, 0));
        let few = GroupHopQuestion { most: 2, ..question(Some(other.cursor)) };
        let other = ring.answer(ME, &few, 6);
        assert_eq!((times(&other), other.lost, other.unread), (alloc::vec![4, 5], 0, 1));
        let last = GroupHopQuestion { lease: 0, ..question(Some(other.cursor)) };
        assert_eq!(times(&ring.answer(ME, &last, 7)), [6]);
        ring.note(hop(8));
        let one = ring.answer(ME, &question(Some(one.cursor)), 9);
        assert_eq!((times(&one), one.has_lapsed), (alloc::vec![8], false), "it still reads");
        ring.note(hop(1010));
        assert!(!ring.is_on(), "the longest lease was over at 1009");
    }

    #[test]
    fn an_answer_survives_its_bytes_and_a_broken_one_is_refused() {
        let mut ring = HopRing::default();
        let first = ring.answer(ME, &question(None), 0);
        ring.note(hop(1));
        let told = ring.answer(ME, &question(Some(first.cursor)), 2);
        let bytes = told.encode().unwrap();
        assert_eq!(MemberHops::decode(&bytes), Ok(told));
        assert!(MemberHops::decode(&bytes[..bytes.len() - 1]).is_err());
    }
}
