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
//! child's last wave that came, which is less than [`WAVES`] waves. Streams that wait for nobody,
//! or that drop packets, hand nothing over: what has come to their parents is not told by waves.

use alloc::vec::Vec;

use sapwood_filter::FilterError;
use sapwood_packet::{FormatRef, Rank, Slab, Values, ValuesRef, Wave};
use sapwood_wire::limits::STATE_BYTES_MAX;
use sapwood_wire::{Control, Ranges, WireError};

use crate::interface::{LinkId, Output};
use crate::node::Node;
use crate::streams::stream::Stream;
use crate::transform::job::{StateCopy, copy_of};
use crate::waves::replicas::{Handover, Replica, WAVES};

impl Stream {
    /// Prepares to hand over the states of the filters, if they have some that is handed over.
    pub(crate) fn begin_handover(&mut self) {
        let is_announced_by_waves = !self.is_immediate() && !self.drops();
        if is_announced_by_waves && !self.up.composable().is_empty() {
            let (sent, filters) = (self.ended, self.up.composable().to_vec());
            self.handover = Some(Handover { sent, filters, ..Handover::default() }.into());
        }
    }
}

impl Node {
    /// The filters have taken in a wave, whose packets have not been sent.
    #[inline]
    pub(crate) fn note_taken_in(&mut self, at: usize, wave: Wave) {
        let stream = self.streams.at(at);
        let has_released = stream.up.has_released();
        let Some(handover) = &mut stream.handover else { return };
        handover.has_more = true;
        let next = wave + 1;
        if has_released || next.saturating_sub(handover.sent) >= WAVES {
            self.hand_over(at, next);
        }
    }

    /// Hands over what the filters of all streams hold and have not handed over.
    pub(crate) fn hand_over_rest(&mut self, is_leaving: bool) {
        for at in 0..self.streams.len() {
            let stream = self.streams.at(at);
            let (wave, is_open) = (stream.ended, stream.sender.is_open());
            if (is_open || is_leaving)
                && stream.handover.as_ref().is_some_and(|handover| handover.has_more)
            {
                self.hand_over(at, wave);
            }
        }
    }

    /// Hands over what the filters of all streams hold, to a new parent.
    pub(crate) fn hand_over_all(&mut self) {
        let absorbed = self.membership.absorbed.clone();
        for at in 0..self.streams.len() {
            let stream = self.streams.at(at);
            let wave = stream.ended;
            let Some(handover) = &mut stream.handover else { continue };
            let composable = 0..u32::try_from(handover.filters.len()).unwrap_or(0);
            // An old parent was told; this one has to know of those that were taken over.
            let others = if absorbed.is_empty() { 0..0 } else { composable };
            handover.held = others.collect();
            self.hand_over(at, wave);
        }
    }

    /// Filters that run apart have taken in a wave, whose packets have not been sent; `copy` is
    /// what they held behind it, if that is due.
    pub(crate) fn note_taken_in_offload(&mut self, at: usize, wave: Wave, copy: Option<StateCopy>) {
        let Some(handover) = &mut self.streams.at(at).handover else { return };
        handover.has_more = true;
        if let Some(copy) = copy {
            self.hand_over_copy(at, wave + 1, copy);
        }
    }

    /// Hands over what the filters of a stream hold, after all waves before this one. Filters that
    /// run apart are asked for it first.
    fn hand_over(&mut self, at: usize, wave: Wave) {
        let has_parent = self.turn.parent.is_some();
        let stream = self.streams.at(at);
        match &mut stream.offload {
            None if has_parent => {
                let copy = copy_of(&stream.up);
                self.hand_over_copy(at, wave, copy);
            }
            None => {}
            Some(offload) => {
                offload.wants_copy |= has_parent;
                self.ask_for_work(at);
            }
        }
    }

    /// Hands over what the filters of a stream held after all waves before this one.
    pub(crate) fn hand_over_copy(&mut self, at: usize, wave: Wave, copy: StateCopy) {
        let Some(parent) = self.turn.parent else { return };
        let mut absorbed = self.membership.absorbed.clone();
        let stream = self.streams.at(at);
        for slot in &stream.slots {
            absorbed.union_with(slot.replicas.absorbed().as_ref());
        }
        let id = stream.id;
        let Some(mut handover) = stream.handover.take() else { return };
        (handover.sent, handover.has_more) = (wave, false);
        let held = core::mem::take(&mut handover.held);
        let mut is_too_large = false;
        for (number, saved) in copy.into_iter().enumerate() {
            let stream = self.streams.at(at);
            let filter = handover.filters[number];
            let fits = |saved: &Values| saved.as_ref().body().len() <= STATE_BYTES_MAX;
            is_too_large |= saved.as_ref().is_some_and(|saved| !fits(saved));
            let (number, filter) = (number as u32, filter as u32);
            let saved = saved.filter(fits);
            if saved.is_none() && !held.contains(number) {
                // The parent holds nothing either.
                continue;
            }
            if saved.is_some() {
                handover.held.insert(number);
            }
            let saved = saved.unwrap_or_default();
            let (format, values) = (saved.as_ref().format().codes(), saved.as_ref().body());
            stream.sender.pass(values.len());
            let (format, values) = (format.to_vec(), values.to_vec());
            let absorbed = Ranges::from(&absorbed);
            let state = Control::State { stream: id, filter, wave, format, values, absorbed };
            self.turn.send_control(parent, &state);
        }
        let complains = is_too_large && !core::mem::replace(&mut handover.has_complained, true);
        self.streams.at(at).handover = Some(handover);
        if complains {
            let reason = alloc::format!(
                "the state of a filter is longer than {STATE_BYTES_MAX} bytes and is not handed over"
            );
            self.complain(at, wave, &reason);
        }
    }

    /// The state of another process could not be taken over.
    pub(crate) fn complain_of_loss(&mut self, at: usize, error: &FilterError) {
        let ended = self.streams.at(at).ended;
        self.complain(at, ended, &alloc::format!("the state of a process is lost: {error}"));
    }

    /// Tells here and at the front-end what costs no wave anything now.
    pub(crate) fn complain(&mut self, at: usize, wave: Wave, reason: &str) {
        let rank = self.turn.rank_or_max();
        let reason = alloc::format!("{reason} (at rank {rank})");
        let stream = self.streams.at(at).id;
        if let Some(parent) = self.turn.parent {
            let (back_ends, reason) = (Ranges::default(), reason.clone());
            self.turn
                .send_control(parent, &Control::Fault { stream, wave, rank, back_ends, reason });
        }
        self.turn.report_fault(stream, reason);
    }

    /// A child hands over what a filter of its holds.
    pub(crate) fn keep_replica(&mut self, link: LinkId, state: Control) -> Result<(), WireError> {
        let Control::State { stream, filter, wave, format, values, absorbed } = state else {
            return Err(WireError::Control);
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
        if takes && self.membership.has_rejoined_any(&absorbed) {
            // It has taken over the state of a process that is here, and has it.
            if let Some(rank) = self.membership.rank_of(link) {
                self.membership.absorbed.insert(rank);
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
        self.release(at, slot, values.len() as u32);
        Ok(())
    }

    /// Whether a process must not come back: others have its state, or may have that of others.
    pub(crate) fn is_replaced(&self, rank: Rank) -> bool {
        let slots = self.streams.iter().flat_map(|stream| &stream.slots);
        let mut replicas = slots.flat_map(|slot| &slot.replicas.list);
        self.membership.absorbed.contains(rank)
            || replicas.any(|replica| replica.absorbed.contains(rank))
    }

    /// An orphan is taken in over these processes.
    pub(crate) fn pass_over(&mut self, between: &[Rank]) {
        if self.streams.iter().any(|stream| stream.handover.is_some()) {
            between.iter().for_each(|&rank| self.membership.absorbed.insert(rank));
        }
    }

    /// The link to a child is gone: what it has handed over is fixed, whatever becomes of it.
    pub(crate) fn close_replicas(&mut self, link: LinkId) {
        for at in 0..self.streams.len() {
            let stream = self.streams.at(at);
            if stream.handover.is_none() {
                continue;
            }
            let Some(slot) = stream.slot_of(link) else { continue };
            let slot = &mut stream.slots[slot];
            slot.replicas.close(slot.next.wave);
            let absorbed = slot.replicas.absorbed();
            self.membership.absorbed.union_with(absorbed.as_ref());
        }
    }

    /// The process of a slot does not come back: what it has handed over is taken over as soon as
    /// its waves have gone on.
    pub(crate) fn inherit(&mut self, at: usize, slot: usize, rank: Rank) {
        let Self { streams, membership, .. } = self;
        let stream = streams.at(at);
        let replicas = core::mem::take(&mut stream.slots[slot].replicas).list;
        let Some(handover) = &mut stream.handover else { return };
        for replica in replicas.into_iter().filter(|replica| replica.state.is_some()) {
            membership.absorbed.insert(rank);
            handover.heritage.push(replica);
        }
        self.take_over(at);
    }

    /// Takes over what was inherited and is due.
    pub(crate) fn take_over(&mut self, at: usize) {
        let stream = self.streams.at(at);
        let ended = stream.ended;
        let Some(handover) = &mut stream.handover else { return };
        let is_due = |replica: &Replica| replica.wave <= ended;
        if !handover.heritage.iter().any(is_due) {
            return;
        }
        let (due, rest) = core::mem::take(&mut handover.heritage).into_iter().partition(is_due);
        handover.heritage = rest;
        let due: Vec<Replica> = due;
        for Replica { filter, state, .. } in due {
            let Some(state) = state else { continue };
            if let Some(offload) = &mut self.streams.at(at).offload {
                offload.inherited.push((filter, state));
                continue;
            }
            let absorbed = self.streams.at(at).up.absorb_into(filter, state.as_ref());
            if let Err(error) = absorbed {
                self.complain_of_loss(at, &error);
            }
        }
        self.hand_over(at, ended);
    }
}
