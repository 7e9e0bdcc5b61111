//! What is safe and need not be kept any more: told down for what went up, up for what went down.
//!
//! What went up is safe when the front-end has taken it. It says so lazily, since nobody waits for
//! it but memory: after so many waves or bytes, or a while after the last wave. Everybody below
//! passes it on at once.

use core::time::Duration;

use sapwood_packet::StreamId;
use sapwood_wire::Control;

use crate::lane::{Passage, Place};
use crate::membership::END;
use crate::mutation::Mutation;
use crate::slot::Until;
use crate::stream::Stream;
use crate::wave::OpenWave;
use crate::{LinkId, Node, Role};

/// How long the front-end waits with an acknowledgement that is not worth a message yet.
const DELAY: Duration = Duration::from_millis(50);
/// Waves after which it does not wait.
const WAVES: u64 = 1024;

impl Stream {
    /// Remembers who was not in a wave that has gone on. Waves before it that nobody has sent in
    /// have been skipped by all.
    fn record_absences(&mut self, wave: &OpenWave) {
        let until = wave.until().wave;
        if until <= self.ended && until > self.recorded {
            self.record(wave);
        }
    }

    /// The same for a wave of which nothing more is taken in, though it has not gone on.
    pub(crate) fn record(&mut self, wave: &OpenWave) {
        let (first, until) = (wave.place.wave, wave.until().wave);
        if first > self.recorded {
            self.absences.record(self.recorded, first, self.below.clone());
        }
        if wave.contributors != self.below {
            let absent = self.below.difference(wave.contributors.as_ref());
            self.absences.record(first, until, absent);
        }
        self.recorded = until;
    }
}

impl Node {
    /// A wave or single packet has gone on from here.
    pub(crate) fn note_emitted(&mut self, at: usize, wave: &OpenWave, is_single: bool) {
        let is_root = self.settings.role == Role::FrontEnd;
        let stream = self.streams.at(at);
        if is_root {
            stream.untold_bytes +=
                wave.charges.iter().map(|&(_, bytes)| u64::from(bytes)).sum::<u64>();
        }
        if !is_single {
            return stream.record_absences(wave);
        }
        let Some(&(slot, _)) = wave.charges.first() else { return };
        let loses_late = stream.breaks(Mutation::LoseLateParts);
        let own = if is_root { 0 } else { stream.sender.last_single() };
        let has_value = wave.has_values();
        let Some(slot) = stream.slots.get_mut(usize::from(slot)) else { return };
        slot.note_number(Until::Single(own), wave.header.generation);
        if wave.has_become_late && has_value && !loses_late {
            slot.note_late(own, wave.place.wave);
        }
    }

    /// The front-end has taken something: the children are told, now or later.
    pub(crate) fn owe_acknowledgement(&mut self, at: usize) {
        let stream = self.streams.at(at);
        if !stream.keeps {
            return;
        }
        let window = u64::from(stream.request.window_bytes);
        let waves = stream.ended.saturating_sub(stream.told);
        if waves >= WAVES || stream.untold_bytes >= window / 2 {
            return self.acknowledge_to_children(at);
        }
        if self.acknowledgement_due.is_none() {
            self.acknowledgement_due = Some(self.now + DELAY);
        }
    }

    /// Tells all that is owed, when its time has come.
    pub(crate) fn pay_acknowledgements(&mut self) {
        if self.acknowledgement_due.take_if(|due| *due <= self.now).is_some() {
            for at in 0..self.streams.len() {
                self.acknowledge_to_children(at);
            }
        }
    }

    /// Tells the children what they need not keep.
    pub(crate) fn acknowledge_to_children(&mut self, at: usize) {
        let is_root = self.settings.role == Role::FrontEnd;
        let Self { streams, links, .. } = self;
        let stream = streams.at(at);
        if !stream.keeps {
            return;
        }
        let is_early = stream.breaks(Mutation::AcknowledgeEarly);
        let safe = stream.safe(is_root || is_early);
        let single = stream.sender.acknowledged_single;
        stream.told = stream.ended;
        stream.untold_bytes = 0;
        for slot in &mut stream.slots {
            let Some((place, number)) = slot.settle(safe, single) else { continue };
            let Place { wave, offset } = place;
            let singles = u64::from(number);
            let message = Control::Acknowledge { stream: stream.id, wave, offset, singles };
            if let Some(outbox) = links.outbox(slot.link) {
                let pushed = outbox.push_control(&message);
                debug_assert!(pushed.is_ok(), "an acknowledgement is short");
            }
        }
    }

    /// What this node has sent up before a place is safe.
    pub(crate) fn acknowledged_by_parent(
        &mut self,
        link: LinkId,
        id: StreamId,
        place: Place,
        single: u32,
    ) {
        self.keep_ended_runs();
        let Some(at) = self.streams.find(id) else { return };
        let Self { streams, links, .. } = self;
        let sender = &mut streams.at(at).sender;
        sender.acknowledge(place, single);
        if let Some(outbox) = links.outbox(link) {
            sender.pump(outbox);
        }
        self.acknowledge_to_children(at);
        self.emit_ready(at);
        self.end_if_deserted(at);
        self.depart();
    }

    /// Runs that have ended in the outbox are kept by their streams.
    pub(crate) fn keep_ended_runs(&mut self) {
        let Self { links, streams, membership, .. } = self;
        let link = membership.parent.and_then(|parent| links.link_mut(parent));
        let Some(runs) = link.and_then(|link| link.outbox.ended_runs()) else { return };
        runs.drain(|stream, passage: Passage, frame| {
            if let Some(stream) = streams.get_mut(stream) {
                stream.sender.log(passage, frame);
            }
        });
    }

    /// What was sent down to a child before a place has reached its back-ends.
    pub(crate) fn acknowledged_by_child(&mut self, link: LinkId, id: StreamId, place: Place) {
        let Some(at) = self.streams.find(id) else { return };
        let stream = self.streams.at(at);
        let Some(slot) = stream.slot_of(link) else { return };
        let slot = &mut stream.slots[slot];
        slot.down_safe = slot.down_safe.max(place);
        self.forget_down(at);
    }

    /// Forgets what has reached everybody below.
    pub(crate) fn forget_down(&mut self, at: usize) {
        let stream = self.streams.at(at);
        let safe = stream.down_safe();
        stream.down_kept.forget_before(safe);
        self.grant_to_parent(at);
    }

    /// Tells the parent what has reached the back-ends below.
    pub(crate) fn acknowledge_to_parent(&mut self, at: usize) {
        let stream = self.streams.at(at);
        let mut safe = stream.down_safe().min(stream.down_next);
        if let Some(first) = stream.down_apart.as_ref().and_then(|apart| apart.first()) {
            safe = safe.min(first);
        }
        if !stream.keeps || safe <= stream.down_told || safe >= END {
            return;
        }
        stream.down_told = safe;
        let (id, Place { wave, offset }) = (stream.id, safe);
        if let Some(parent) = self.membership.parent {
            let message = Control::Acknowledge { stream: id, wave, offset, singles: 0 };
            self.send_control(parent, &message);
        }
    }
}
