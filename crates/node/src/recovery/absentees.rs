//! What goes down is kept for a while for back-ends that were given up: one whose link was cut, and
//! that comes back, has missed nothing then, and is as far as the others as soon as it has
//! answered.
//!
//! Owns for whom, from which position and until when. The frames are those of the stream's
//! [`RetransmitBuffer`](sapwood_link::RetransmitBuffer). They are forgotten as soon as they would
//! take half of what it may hold, so that no member waits for the absent.

use alloc::vec::Vec;

use sapwood_link::{Pool, Position};
use sapwood_packet::RankSet;
use sapwood_wire::limits::KEPT_BYTES;

use crate::interface::{Instant, Role};
use crate::node::Node;
use crate::streams::stream::Stream;

/// As many bytes may be kept for those who are away, together with what is kept for others.
const AWAY_BYTES_MAX: usize = KEPT_BYTES / 2;

/// Members of a stream that were given up.
#[derive(Debug)]
struct Absentees {
    members: RankSet,
    /// Everything that went down before this place has reached them.
    from: Position,
    /// They have ended by then, if they have found nobody.
    until: Instant,
}

/// Those of one stream who may come back.
#[derive(Debug, Default)]
pub(crate) struct AbsentBackEnds {
    list: Vec<Absentees>,
}

impl AbsentBackEnds {
    /// The place from which something is kept for them.
    #[inline]
    pub(crate) fn first(&self) -> Option<Position> {
        self.list.iter().map(|absentees| absentees.from).min()
    }

    /// These are there again, or others in their place.
    pub(crate) fn returned(&mut self, members: &RankSet) {
        self.keep_if(|absentees| {
            absentees.members.subtract(members.as_ref());
            !absentees.members.is_empty()
        });
    }

    /// Forgets those who do not come any more; whether there were some.
    fn expire(&mut self, now: Instant) -> bool {
        self.keep_if(|absentees| absentees.until > now)
    }

    fn keep_if(&mut self, is_kept: impl FnMut(&mut Absentees) -> bool) -> bool {
        let before = self.list.len();
        self.list.retain_mut(is_kept);
        before > self.list.len()
    }
}

impl Stream {
    /// What is kept for those who are away has become too much: they will have missed it.
    #[inline]
    pub(crate) fn bound_absent(&mut self) {
        if !self.absent.list.is_empty() && self.down_retransmit.bytes() > AWAY_BYTES_MAX {
            self.absent.list.clear();
            let (safe, before) = (self.down_safe(), self.down_retransmit.bytes());
            self.down_retransmit.forget_before(safe, &mut Pool::default());
            self.down_unannounced += before - self.down_retransmit.bytes();
        }
    }
}

impl Node {
    /// The members behind a slot that have not come back are given up, and may come nevertheless.
    pub(crate) fn await_absentees(&mut self, at: usize, slot: usize, returned: &RankSet) {
        let until = self.turn.now + self.turn.settings.recovery.search_limit(Role::BackEnd);
        let stream = self.streams.at(at);
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
    pub(crate) fn expire_absentees(&mut self) {
        for at in 0..self.streams.len() {
            if self.streams.at(at).absent.expire(self.turn.now) {
                self.forget_down(at);
                self.acknowledge_to_parent(at);
            }
        }
    }
}
