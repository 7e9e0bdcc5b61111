//! Back-ends that were given up and may come back: what went down is kept for them for a while, see
//! [`AbsentBackEnds`](crate::streams::absentees::AbsentBackEnds).

use sapwood_packet::RankSet;

use crate::interface::Role;
use crate::streams::absentees::Absentees;
use crate::streams::table::Streams;
use crate::turn::Turn;

impl Streams {
    /// The members behind a slot that have not come back are given up, and may come nevertheless.
    pub(crate) fn await_absentees(
        &mut self,
        at: usize,
        slot: usize,
        returned: &RankSet,
        turn: &mut Turn,
    ) {
        let until = turn.now + turn.settings.recovery.search_limit(Role::BackEnd);
        let stream = self.at(at);
        let (members, from) = {
            let slot = &stream.slots[slot];
            (slot.members.difference(returned.as_ref()), slot.down_safe)
        };
        if stream.keeps && !members.is_empty() {
            stream.absent.list.push(Absentees { members, from, until });
            // There may be no next packet with which this is looked at, since there is no room.
            stream.bound_absent();
        }
    }

    /// Forgets what was kept for back-ends that do not come any more.
    pub(crate) fn expire_absentees(&mut self, turn: &mut Turn) {
        for at in 0..self.len() {
            if self.at(at).absent.expire(turn.now) {
                self.forget_down(at, turn);
                self.acknowledge_to_parent(at, turn);
            }
        }
    }
}
