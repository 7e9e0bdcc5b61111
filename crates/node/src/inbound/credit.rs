//! Credit and acknowledgements that have come: what a neighbour has read, and what is safe with it.
//!
//! Both make room, so that what waited for it goes on in the same turn.

use sapwood_link::Position;
use sapwood_packet::StreamId;

use crate::interface::LinkId;
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::turn::Turn;

impl Streams {
    pub(crate) fn credit_from_parent(
        &mut self,
        link: LinkId,
        stream: StreamId,
        bytes: u32,
        turn: &mut Turn,
    ) {
        let Some(at) = self.find(stream) else { return };
        let Turn { links, .. } = turn;
        if let Some(outbox) = links.outbox(link) {
            self.at(at).sender.grant(bytes, outbox);
        }
        self.at(at).emit_ready(turn);
        self.at(at).end_if_deserted(turn);
    }

    pub(crate) fn credit_from_child(
        &mut self,
        link: LinkId,
        stream: StreamId,
        bytes: u32,
        turn: &mut Turn,
    ) {
        let Some(at) = self.find(stream) else { return };
        let Turn { links, .. } = turn;
        let stream = self.at(at);
        let Some(slot) = stream.slot_of(link) else { return };
        if let Some(outbox) = links.outbox(link) {
            stream.slots[slot].down.grant(bytes, outbox);
        }
        // What filters reply downwards waits for the children's credit; waves wait for the
        // parent's.
        if !stream.replies.is_empty() {
            self.at(at).emit_ready(turn);
        }
        // What waited here for this child has gone, so that the parent may send on.
        self.at(at).grant_to_parent(turn);
    }

    /// What this node has sent up before a place is safe.
    pub(crate) fn acknowledged_by_parent(
        &mut self,
        link: LinkId,
        id: StreamId,
        position: Position,
        single: u32,
        turn: &mut Turn,
    ) {
        let Some(at) = self.find(id) else { return };
        let Turn { links, pool, .. } = turn;
        let Stream { sender, slots, faults, .. } = self.at(at);
        let before = sender.unacknowledged_bytes();
        sender.acknowledge(position, single, pool);
        let safe = sender.acknowledged.wave;
        faults.forget_before(safe);
        let left = sender.unacknowledged_bytes();
        let mut has_much = left == 0;
        for slot in slots.iter_mut() {
            // Children hold what this process holds: one that has much to forget is told at once.
            has_much |= slot.has_unannounced(before - left);
        }
        let has_children = !slots.is_empty();
        if let Some(outbox) = links.outbox(link) {
            sender.pump(outbox);
        }
        if has_much {
            self.at(at).acknowledge_to_children(turn);
        } else if has_children {
            self.at(at).defer_acknowledgement(turn);
        }
        self.at(at).emit_ready(turn);
        // The end of the stream waits until all before it is safe.
        self.at(at).end_if_deserted(turn);
    }

    /// What was sent down to a child before a place has reached its back-ends.
    pub(crate) fn acknowledged_by_child(
        &mut self,
        link: LinkId,
        id: StreamId,
        position: Position,
        turn: &mut Turn,
    ) {
        let Some(at) = self.find(id) else { return };
        let stream = self.at(at);
        let Some(slot) = stream.slot_of(link) else { return };
        let slot = &mut stream.slots[slot];
        // Acknowledgements over an old and a new link may cross.
        slot.down_safe = slot.down_safe.max(position);
        self.at(at).forget_down(turn);
    }
}
