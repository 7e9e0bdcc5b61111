//! The end of a stream at this process.

use sapwood_link::END;
use sapwood_packet::StreamId;
use sapwood_wire::Control;

use crate::interface::{Event, Output, Role};
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::turn::Turn;

impl Streams {
    /// When no child of a stream is left, the parent is told so, behind the last wave.
    pub(crate) fn end_if_deserted(&mut self, at: usize, turn: &mut Turn) {
        let stream = self.at(at);
        if stream.telemetry.is_some() {
            // This process itself still has something to tell.
            return;
        }
        let is_deserted = stream.slots.iter().all(|slot| slot.next >= END);
        if !is_deserted || stream.has_said_end || !stream.waves.is_empty() {
            return;
        }
        stream.has_said_end = true;
        let is_refused = stream.refusal().is_some();
        if turn.settings.role == Role::Communication || is_refused {
            let header = sapwood_packet::Header {
                stream: stream.id,
                order: sapwood_packet::Order::Last,
                origin: turn.rank(),
                ends_wave: true,
                void: true,
                ..Default::default()
            };
            let packet = sapwood_packet::PacketRef { header, ..Default::default() };
            self.send_up(at, packet, None, turn);
        }
    }

    pub(crate) fn close_now(&mut self, id: StreamId, turn: &mut Turn) {
        let Some(at) = self.find(id) else { return };
        self.at(at).force_down(turn);
        self.retire_filters(at);
        let mut frame = sapwood_packet::Slab::default();
        let encoded = sapwood_wire::encode_control(&mut frame, &Control::Close { stream: id });
        debug_assert!(encoded.is_ok(), "a close message is short");
        let Turn { links, .. } = turn;
        for slot in self.at(at).slots.iter().filter(|slot| slot.alive) {
            if let Some(outbox) = slot.link.and_then(|link| links.outbox(link)) {
                outbox.push_bytes(frame.as_bytes());
            }
        }
        let is_own_matter = self.at(at).telemetry.is_some();
        self.remove(id);
        if turn.settings.role == Role::BackEnd && !is_own_matter {
            turn.outputs.push_back(Output::Event(Event::StreamClosed { stream: id }));
        }
    }
}

impl Stream {
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
