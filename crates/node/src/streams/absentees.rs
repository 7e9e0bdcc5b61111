//! What goes down is kept for a while for back-ends that were given up: one whose link was cut, and
//! that comes back, has missed nothing then, and is as far as the others as soon as it has
//! answered.
//!
//! Owns for which members, from which position and until when. The frames are those of the stream's
//! [`RetransmitBuffer`](sapwood_link::RetransmitBuffer). They are forgotten as soon as they would
//! take half of what it may hold, so that no member waits for the absent.

use alloc::vec::Vec;

use sapwood_link::{Pool, Position};
use sapwood_packet::RankSet;
use sapwood_wire::limits::KEPT_BYTES;

use crate::interface::Instant;
use crate::streams::stream::Stream;

/// As many bytes may be kept for absent members, together with what is kept for others.
const AWAY_BYTES_MAX: usize = KEPT_BYTES / 2;

/// Members of a stream that were given up.
#[derive(Debug)]
pub(crate) struct Absentees {
    pub(crate) members: RankSet,
    /// Everything that went down before this place has reached them.
    pub(crate) from: Position,
    /// They have ended by then, if they have found no parent.
    pub(crate) until: Instant,
}

/// The absent members of one stream that may come back.
#[derive(Debug, Default)]
pub(crate) struct AbsentBackEnds {
    pub(crate) list: Vec<Absentees>,
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

    /// Forgets the members that do not come any more; whether there were some.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        self.keep_if(|absentees| absentees.until > now)
    }

    fn keep_if(&mut self, is_kept: impl FnMut(&mut Absentees) -> bool) -> bool {
        let before = self.list.len();
        self.list.retain_mut(is_kept);
        before > self.list.len()
    }
}

impl Stream {
    /// What is kept for absent members has become too much: they will have missed it.
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
