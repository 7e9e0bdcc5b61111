//! The end of a stream at this process.

use sapwood_link::END;
use sapwood_packet::StreamId;
use sapwood_wire::Control;

use crate::interface::{Event, Output, Role};
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::turn::Turn;

impl Streams {
    /// A stream closes: what waits on it goes first, then the message, then it is forgotten.
    pub(crate) fn begin_close(&mut self, id: StreamId, turn: &mut Turn) {
        let Some(at) = self.find(id) else { return };
        if !self.at(at).closes_later() {
            self.close_now(id, turn);
        }
    }

    pub(crate) fn close_now(&mut self, id: StreamId, turn: &mut Turn) {
        let Some((stream, jobs)) = self.with_jobs(id) else { return };
        stream.force_down(turn);
        stream.retire_filters(jobs);
        let mut frame = sapwood_packet::Slab::default();
        let encoded = sapwood_wire::encode_control(&mut frame, &Control::Close { stream: id });
        debug_assert!(encoded.is_ok(), "a close message is short");
        let Turn { links, .. } = turn;
        for slot in stream.slots.iter().filter(|slot| slot.alive) {
            if let Some(outbox) = slot.link.and_then(|link| links.outbox(link)) {
                outbox.push_bytes(frame.as_bytes());
            }
        }
        let is_own_matter = stream.telemetry.is_some();
        // From here on packets of this stream that are still under way count as strays, which cost
        // their sender nothing while the number is known.
        self.remove(id);
        if turn.settings.role == Role::BackEnd && !is_own_matter {
            turn.outputs.push_back(Output::Event(Event::StreamClosed { stream: id }));
        }
    }
}

impl Stream {
    /// When no child of a stream is left, the parent is told so, behind the last wave.
    pub(crate) fn end_if_deserted(&mut self, turn: &mut Turn) {
        if self.telemetry.is_some() {
            // This process itself still has something to tell.
            return;
        }
        let is_deserted = self.slots.iter().all(|slot| slot.next >= END);
        if !is_deserted || self.has_said_end || !self.waves.is_empty() {
            return;
        }
        self.has_said_end = true;
        let is_refused = self.refusal().is_some();
        if turn.settings.role == Role::Communication || is_refused {
            let header = sapwood_packet::Header {
                stream: self.id,
                order: sapwood_packet::Order::Last,
                origin: turn.rank(),
                ends_wave: true,
                void: true,
                ..Default::default()
            };
            let packet = sapwood_packet::PacketRef { header, ..Default::default() };
            self.send_up(packet, None, turn);
        }
    }

    /// The parent was told that nothing more comes on a stream, which is not so any more.
    pub(crate) fn withdraw_end(&mut self, turn: &mut Turn) {
        let has_told = core::mem::take(&mut self.has_said_end) && !self.sender.withdraw_end();
        if !has_told {
            return;
        }
        let up = (self.ended.max(self.waves.end()), 0);
        let (stream, down) = (self.id, (self.down_next.wave, self.down_next.offset));
        if let Some(parent) = turn.parent {
            turn.send_control(parent, &Control::Resume { stream, up, down });
        }
    }

    /// A child will send nothing more on a stream: its open waves do not wait for it.
    pub(crate) fn give_up_slot(&mut self, slot: usize, turn: &mut Turn) {
        self.advance(slot, END);
        self.slots[slot].assemblies.clear();
        self.slots[slot].down.clear();
        self.emit_ready(turn);
        self.end_if_deserted(turn);
        // It may have been the slowest, for which others were made to wait: what it alone had not
        // read need not be kept any more.
        self.forget_down(turn);
    }

    /// Lets everything that waits on a stream go down, whatever the credit.
    pub(crate) fn force_down(&mut self, turn: &mut Turn) {
        let Turn { links, .. } = turn;
        for slot in &mut self.slots {
            if let Some(outbox) = slot.link.and_then(|link| links.outbox(link)) {
                slot.down.force(outbox);
            }
        }
    }
}
