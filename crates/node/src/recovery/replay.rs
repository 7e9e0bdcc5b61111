//! Back-ends that were given up and may come back: what went down is kept for them for a while, see
//! [`AbsentBackEnds`](crate::streams::absentees::AbsentBackEnds).

use sapwood_packet::RankSet;

use crate::interface::Role;
use crate::streams::absentees::Absentees;
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::turn::Turn;

impl Streams {
    /// Forgets what was kept for back-ends that do not come any more.
    pub(crate) fn expire_absentees(&mut self, turn: &mut Turn) {
        for at in 0..self.len() {
            if self.at(at).absent.expire(turn.now) {
                self.at(at).forget_down(turn);
                self.at(at).acknowledge_to_parent(turn);
            }
        }
    }
}

impl Stream {
    /// The members behind a slot that have not come back are given up, and may come nevertheless.
    pub(crate) fn await_absentees(&mut self, slot: usize, returned: &RankSet, turn: &mut Turn) {
        let until = turn.now + turn.settings.recovery.search_limit(Role::BackEnd);
        let (members, from) = {
            let slot = &self.slots[slot];
            (slot.members.difference(returned.as_ref()), slot.down_safe)
        };
        if self.keeps && !members.is_empty() {
            self.absent.list.push(Absentees { members, from, until });
            // There may be no next packet with which this is looked at, since there is no room.
            self.bound_absent();
        }
    }
}
