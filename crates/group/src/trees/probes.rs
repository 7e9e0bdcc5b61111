//! The probes of one kind that a member has under way.

use alloc::vec::Vec;

use crate::identity::{MemberId, SECOND, Time};

/// After this time a probe that was not answered counts as lost.
const LOST: Time = 10 * SECOND;

/// A member's probes of one kind. Each is judged for the trees of all roots, so that there is one
/// such list for all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Probing {
    /// How many random members are still to be asked.
    pub(super) left: u32,
    /// Whether the agenda has the next step.
    pub(super) is_timed: bool,
    number: u64,
    under_way: Vec<UnderWay>,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    number: u64,
    to: MemberId,
    sent: Time,
    short: Option<Time>,
}

/// How long the answer to a probe has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timed {
    pub(super) time: Time,
    /// If the probe was long: how long that to the short one before has taken.
    pub(super) short: Option<Time>,
}

impl Probing {
    /// The number of a probe that is sent now, with the time of the short one before if it is
    /// long. It replaces an earlier one to the same member.
    pub(super) fn begin(&mut self, to: MemberId, short: Option<Time>, now: Time) -> u64 {
        self.number += 1;
        self.under_way.retain(|one| one.to != to);
        self.under_way.push(UnderWay { number: self.number, to, sent: now, short });
        self.number
    }

    /// How long the probe with this number to this member has taken, once.
    pub(super) fn answered(&mut self, number: u64, from: MemberId, now: Time) -> Option<Timed> {
        let is_this = |one: &UnderWay| (one.number, one.to) == (number, from);
        let at = self.under_way.iter().position(is_this)?;
        let one = self.under_way.swap_remove(at);
        Some(Timed { time: now - one.sent, short: one.short })
    }

    /// Whether an answer is still awaited, of a member that lives.
    pub(super) fn is_awaited(&mut self, is_alive: impl Fn(MemberId) -> bool, now: Time) -> bool {
        self.under_way.retain(|one| is_alive(one.to) && now < one.sent + LOST);
        !self.under_way.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_answered_once_by_its_member_or_lost() {
        let (one, other) = (MemberId(1), MemberId(2));
        let mut probing = Probing::default();
        let first = probing.begin(one, None, 100);
        assert_eq!(probing.answered(first, other, 150), None);
        assert_eq!(probing.answered(first, one, 150), Some(Timed { time: 50, short: None }));
        assert_eq!(probing.answered(first, one, 160), None);
        let second = probing.begin(one, None, 200);
        let third = probing.begin(one, Some(50), 210);
        assert_eq!(probing.answered(second, one, 260), None, "it was replaced");
        assert!(probing.is_awaited(|_| true, 260));
        assert_eq!(probing.answered(third, one, 290), Some(Timed { time: 80, short: Some(50) }));
        assert!(!probing.is_awaited(|_| true, 290));
        probing.begin(other, None, 300);
        assert!(!probing.is_awaited(|_| false, 300), "the member is gone");
        probing.begin(other, None, 300);
        assert!(probing.is_awaited(|_| true, 299 + LOST));
        assert!(!probing.is_awaited(|_| true, 300 + LOST));
    }
}
