//! What filters hold from wave to wave, handed over to the parent so that it is not lost with its
//! process.
//!
//! A communication process sends its parent copies of its filters' composable states
//! ([`sapwood_filter::State::Composable`]). **A copy counts from when the parent has all waves that
//! are in it on, and in the place of the one before**: what a filter gave out has left its state,
//! so that the copy behind it and the packets that brought it come into force together. When the
//! child is gone and does not come back itself, the parent's own filter takes over the copy that
//! counts.
//!
//! Nothing is counted twice. A process whose state was taken over is turned away when it comes back
//! after all, here and at every ancestor: the ranks of those processes travel up with the copies.
//! So is one that an orphan was taken in over, since it may have thought that the orphan was gone,
//! and taken over its state. A copy is not taken over before this node has sent on all waves that
//! are in it.
//!
//! What is lost is bounded: what the child's filters took in between the copy that counts and the
//! child's last wave that came, which is less than [`WAVES`] waves. Streams that do not wait,
//! or that drop packets, hand nothing over: what has come to their parents is not told by waves.

use sapwood_packet::{FormatRef, Slab, ValuesRef};
use sapwood_wire::{Control, WireError};

use crate::interface::{LinkId, Output};
use crate::recovery::change::TreeChange;
use crate::waves::replicas::Replica;

impl TreeChange<'_> {
    /// A child hands over what a filter of its holds.
    pub(crate) fn keep_replica(&mut self, link: LinkId, state: Control) -> Result<(), WireError> {
        let Control::State { stream, filter, wave, format, values, absorbed } = state else {
            return Err(WireError::Unexpected { what: state.name() });
        };
        let absorbed = absorbed.to_set()?;
        let format = FormatRef::from_codes(&format).ok_or(WireError::Control)?;
        let slab = Slab::copy_of(&values);
        let parsed = ValuesRef::parse(format, slab.as_bytes()).map_err(|_| WireError::Control)?;
        let state = (!format.is_empty()).then(|| parsed.to_values());
        let Some(at) = self.streams.find(stream) else { return Ok(()) };
        let stream = self.streams.at(at);
        let Some(slot) = stream.slot_of(link) else { return Ok(()) };
        let filter = filter as usize;
        let takes = stream.handover.as_ref().is_some_and(|kept| kept.filters.contains(&filter));
        if takes && self.members.children.has_rejoined_any(&absorbed) {
            // It has taken over the state of a process that is here, and has it.
            if let Some(rank) = self.members.children.rank_of(link) {
                self.turn.absorbed.insert(rank);
            }
            self.turn.send_control(link, &Control::Dissolve);
            self.turn.outputs.push_back(Output::Hangup(link));
            self.link_down(link, "it has taken the place of a process that is here");
            return Ok(());
        }
        if takes {
            let stream = self.streams.at(at);
            let next = stream.slots[slot].next.wave;
            let replica = Replica { filter, wave, state, absorbed };
            stream.slots[slot].replicas.add(replica, next);
        }
        self.streams.at(at).grant_to_child(slot, values.len() as u32, self.turn);
        Ok(())
    }
}
