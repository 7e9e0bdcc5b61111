//! What changes when a process comes, goes, or moves to another parent.

use crate::members::membership::Membership;
use crate::streams::table::Streams;
use crate::turn::Turn;

/// A change of the tree around this process: it touches the membership, the streams of those
/// members and the links to them, and so holds all three for as long as it takes.
///
/// Recovery is a method of this type and not of the members: they, and the streams, know nothing of
/// what is made of a loss, and cannot begin a repair by themselves.
pub(crate) struct TreeChange<'a> {
    pub(crate) members: &'a mut Membership,
    pub(crate) streams: &'a mut Streams,
    pub(crate) turn: &'a mut Turn,
}
