//! Filter states: copies of them go to the parent, and the states that children have
//! handed over are taken over.

use alloc::vec::Vec;

use sapwood_packet::{Rank, Values, Wave};
use sapwood_wire::limits::STATE_BYTES_MAX;
use sapwood_wire::{Control, Ranges};

use crate::interface::LinkId;
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::transform::job::{StateCopy, copy_of};
use crate::turn::Turn;
use crate::waves::replicas::{Replica, WAVES};

impl Streams {
    /// Hands over what filters hold and have not handed over, of streams that may send now.
    pub(crate) fn hand_over_rest(&mut self, turn: &mut Turn) {
        self.hand_over_rest_of(|stream| stream.sender.is_open(), turn);
    }

    /// Hands over what filters hold and have not handed over, of all streams.
    pub(crate) fn hand_over_before_leaving(&mut self, turn: &mut Turn) {
        self.hand_over_rest_of(|_| true, turn);
    }

    fn hand_over_rest_of(&mut self, is_meant: impl Fn(&Stream) -> bool, turn: &mut Turn) {
        for at in 0..self.len() {
            let stream = self.at(at);
            let holds = stream.handover.as_ref().is_some_and(|handover| handover.taken_in > 0);
            if holds && is_meant(stream) {
                let wave = stream.ended;
                stream.hand_over(wave, turn);
            }
        }
    }

    /// Hands over what the filters of all streams hold, to a new parent.
    pub(crate) fn hand_over_all(&mut self, turn: &mut Turn) {
        let absorbed = turn.absorbed.clone();
        for at in 0..self.len() {
            let stream = self.at(at);
            let wave = stream.ended;
            let Some(handover) = &mut stream.handover else { continue };
            let composable = 0..u32::try_from(handover.filters.len()).unwrap_or(0);
            // The new parent holds no copy yet: each filter's is sent, so that it learns which
            // processes' states are absorbed.
            let others = if absorbed.is_empty() { 0..0 } else { composable };
            handover.held = others.collect();
            self.at(at).hand_over(wave, turn);
        }
    }

    /// Whether a process must not come back: others have its state, or may have that of others.
    pub(crate) fn is_replaced(&self, rank: Rank, turn: &Turn) -> bool {
        let slots = self.iter().flat_map(|stream| &stream.slots);
        let mut replicas = slots.flat_map(|slot| &slot.replicas.list);
        turn.absorbed.contains(rank) || replicas.any(|replica| replica.absorbed.contains(rank))
    }

    /// An orphan is taken in over these processes.
    pub(crate) fn pass_over(&self, between: &[Rank], turn: &mut Turn) {
        if self.iter().any(|stream| stream.handover.is_some()) {
            between.iter().for_each(|&rank| turn.absorbed.insert(rank));
        }
    }

    /// The link to a child is gone: what it has handed over is fixed, whatever becomes of it.
    pub(crate) fn close_replicas(&mut self, link: LinkId, turn: &mut Turn) {
        for at in 0..self.len() {
            let stream = self.at(at);
            if stream.handover.is_none() {
                continue;
            }
            let Some(slot) = stream.slot_of(link) else { continue };
            let slot = &mut stream.slots[slot];
            slot.replicas.close(slot.next.wave);
            let absorbed = slot.replicas.absorbed();
            turn.absorbed.union_with(absorbed.as_ref());
        }
    }
}

impl Stream {
    /// The filters have taken in a wave, whose packets have not been sent.
    #[inline]
    pub(crate) fn note_taken_in(&mut self, wave: Wave, turn: &mut Turn) {
        let has_released = self.up.has_released();
        let Some(handover) = &mut self.handover else { return };
        handover.taken_in += 1;
        if has_released || handover.taken_in >= WAVES {
            self.hand_over(wave + 1, turn);
        }
    }

    /// Offloaded filters have taken in a wave, whose packets have not been sent; `copy` is
    /// what they held behind it, if that is due.
    pub(crate) fn note_taken_in_offload(
        &mut self,
        wave: Wave,
        copy: Option<StateCopy>,
        turn: &mut Turn,
    ) {
        let Some(handover) = &mut self.handover else { return };
        handover.taken_in += 1;
        if let Some(copy) = copy {
            self.hand_over_copy(wave + 1, copy, turn);
        }
    }

    /// Hands over what the filters of a stream hold, after all waves before this one. Filters that
    /// are offloaded are asked for it first.
    fn hand_over(&mut self, wave: Wave, turn: &mut Turn) {
        let has_parent = turn.parent.is_some();
        match &mut self.offload {
            None if has_parent => {
                let copy = copy_of(&self.up);
                self.hand_over_copy(wave, copy, turn);
            }
            None => {}
            Some(offload) => {
                offload.wants_copy |= has_parent;
                self.ask_for_work(turn);
            }
        }
    }

    /// Hands over what the filters of a stream held after all waves before this one.
    pub(crate) fn hand_over_copy(&mut self, wave: Wave, copy: StateCopy, turn: &mut Turn) {
        let Some(parent) = turn.parent else { return };
        let mut absorbed = turn.absorbed.clone();
        for slot in &self.slots {
            absorbed.union_with(slot.replicas.absorbed().as_ref());
        }
        let id = self.id;
        let Some(mut handover) = self.handover.take() else { return };
        handover.taken_in = 0;
        let held = core::mem::take(&mut handover.held);
        let mut is_too_large = false;
        for (number, saved) in copy.into_iter().enumerate() {
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
            self.sender.charge(values.len());
            let (format, values) = (format.to_vec(), values.to_vec());
            let absorbed = Ranges::from(&absorbed);
            let state = Control::State { stream: id, filter, wave, format, values, absorbed };
            turn.send_control(parent, &state);
        }
        let complains = is_too_large && !core::mem::replace(&mut handover.has_complained, true);
        self.handover = Some(handover);
        if complains {
            let reason = alloc::format!(
                "the state of a filter is longer than {STATE_BYTES_MAX} bytes and is not handed over"
            );
            self.complain(wave, &reason, turn);
        }
    }

    /// The process of a slot does not come back: what it has handed over is taken over as soon as
    /// its waves have gone on.
    pub(crate) fn inherit(&mut self, slot: usize, rank: Rank, turn: &mut Turn) {
        let replicas = core::mem::take(&mut self.slots[slot].replicas).list;
        let Some(handover) = &mut self.handover else { return };
        let mut inherited =
            replicas.into_iter().filter(|replica| replica.state.is_some()).peekable();
        let is_heir = inherited.peek().is_some();
        handover.heritage.extend(inherited);
        if is_heir {
            turn.absorbed.insert(rank);
        }
        self.take_over(turn);
    }

    /// Takes over what was inherited and is due.
    pub(crate) fn take_over(&mut self, turn: &mut Turn) {
        let ended = self.ended;
        let Some(handover) = &mut self.handover else { return };
        let is_due = |replica: &Replica| replica.wave <= ended;
        if !handover.heritage.iter().any(is_due) {
            return;
        }
        let (due, rest) = core::mem::take(&mut handover.heritage).into_iter().partition(is_due);
        handover.heritage = rest;
        let due: Vec<Replica> = due;
        for Replica { filter, state, .. } in due {
            let Some(state) = state else { continue };
            if let Some(offload) = &mut self.offload {
                offload.inherited.push((filter, state));
                continue;
            }
            let absorbed = self.up.absorb_into(filter, state.as_ref());
            if let Err(error) = absorbed {
                self.complain_of_loss(&error, turn);
            }
        }
        self.hand_over(ended, turn);
    }
}
