//! From bytes to frames, and from frames to control messages and packets.

mod admission;
mod breach;
mod control;
mod credit;
mod frames;
mod opening;

use crate::members::membership::Membership;
use crate::recovery::change::TreeChange;
use crate::streams::table::Streams;
use crate::turn::Turn;

/// What came over a link, on its way to the stage that it concerns.
///
/// It decides by the frame and by the peer at the other end, and holds nothing itself: a packet
/// goes to its stream, a control message to the members or, where it changes the tree, to a
/// [`TreeChange`].
pub(crate) struct Inbound<'a> {
    pub(crate) members: &'a mut Membership,
    pub(crate) streams: &'a mut Streams,
    pub(crate) turn: &'a mut Turn,
}

impl Inbound<'_> {
    #[inline]
    fn tree_change(&mut self) -> TreeChange<'_> {
        TreeChange { members: self.members, streams: self.streams, turn: self.turn }
    }
}
