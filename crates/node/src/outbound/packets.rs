//! Packets that leave: up to the parent, or to the application at the front-end; down to the
//! children that lead to their destinations.

use sapwood_link::{EncodedFrame, FrameInfo, Outbox, SHARED_BODY_BYTES, SequenceSpace, cut};
use sapwood_packet::{Body, Order, PacketRef, Slab};

use crate::interface::{LinkId, Role};
use crate::streams::stream::Stream;
use crate::turn::Turn;

impl Stream {
    /// Sends a packet up, or delivers it at the front-end. With `shared`, that is its body and
    /// `packet.body` is empty.
    #[inline]
    pub(crate) fn send_up(&mut self, packet: PacketRef<'_>, shared: Option<Body>, turn: &mut Turn) {
        if turn.settings.role == Role::FrontEnd {
            return self.answer(packet, shared, turn);
        }
        let Some(parent) = turn.parent else { return self.keep_up(packet, shared, turn) };
        self.acknowledge_beside(turn);
        let length = shared.as_ref().map_or(packet.body.len(), Body::len);
        let is_small = length < SHARED_BODY_BYTES;
        if is_small && self.sender.is_open_for(&packet) {
            let mut packet = match &shared {
                Some(body) => PacketRef { body: body.as_bytes(), ..packet },
                None => packet,
            };
            let Some(outbox) = turn.links.outbox(parent) else { return };
            self.number(&mut packet);
            if let Ok(length) = outbox.push_packet(&packet) {
                let info = FrameInfo::upward(&packet);
                self.sender.packed(info, length, outbox);
            }
            return;
        }
        let body = shared.unwrap_or_else(|| Body::from(Slab::copy_of(packet.body)));
        self.send_up_large(parent, packet, &body, turn);
    }

    fn send_up_large(
        &mut self,
        parent: LinkId,
        packet: PacketRef<'_>,
        body: &Body,
        turn: &mut Turn,
    ) {
        let Some(outbox) = turn.links.outbox(parent) else { return };
        self.keep_ended_runs(outbox);
        self.queue_up(packet, body, Some(outbox));
    }

    /// A packet that goes up while there is no parent waits for one.
    fn keep_up(&mut self, packet: PacketRef<'_>, shared: Option<Body>, turn: &mut Turn) {
        if self.keeps && !turn.has_ended {
            let body = shared.unwrap_or_else(|| Body::from(Slab::copy_of(packet.body)));
            self.queue_up(packet, &body, None);
        }
    }

    /// Sends a packet down to the children that lead to its destinations.
    pub(crate) fn send_down(
        &mut self,
        packet: PacketRef<'_>,
        shared: Option<&Body>,
        turn: &mut Turn,
    ) {
        if packet.body.len() <= turn.chunk_bytes {
            let mut scratch = core::mem::take(&mut turn.scratch);
            scratch.clear();
            let is_small = packet.body.len() < SHARED_BODY_BYTES;
            let frame = match shared {
                Some(body) if !is_small => EncodedFrame::split(&packet, body.clone()).ok(),
                _ => None,
            };
            if frame.is_none() && sapwood_wire::encode_packet(&mut scratch, &packet).is_err() {
                return;
            }
            self.fan_out(packet, scratch.as_bytes(), frame.as_ref(), turn);
            turn.scratch = scratch;
            return;
        }
        let copied;
        let body = match shared {
            Some(body) => body,
            None => {
                copied = Body::from(Slab::copy_of(packet.body));
                &copied
            }
        };
        for (part, bytes) in cut(packet, body, turn.chunk_bytes) {
            if let Ok(frame) = EncodedFrame::split(&part, bytes) {
                self.fan_out(part, &[], Some(&frame), turn);
            }
        }
    }

    /// Puts one frame into the outbox of every child that leads to a destination. `frame` is its
    /// bytes; `encoded` the same in shared memory, when there is such.
    #[inline]
    pub(crate) fn fan_out(
        &mut self,
        packet: PacketRef<'_>,
        frame: &[u8],
        encoded: Option<&EncodedFrame>,
        turn: &mut Turn,
    ) {
        let safe = self.safe_up(turn.settings.role);
        let Turn { links, .. } = turn;
        let info = FrameInfo::downward(&packet);
        self.keep_down(info, frame, encoded);
        let drops = self.drops() && info.begins;
        let window = self.request.window_bytes as usize;
        let mut waiting: Option<EncodedFrame> = encoded.cloned();
        let mut is_for_some = false;
        for slot in &mut self.slots {
            let is_for = packet.destinations.is_empty()
                || slot.members.as_ref().intersects(packet.destinations);
            if !is_for || !slot.is_awaited() {
                continue;
            }
            is_for_some = true;
            if info.space == SequenceSpace::Waves {
                slot.down_sent = info.behind;
            }
            if !slot.alive {
                continue;
            }
            if slot.down.is_open() {
                let outbox = slot.link.and_then(|link| links.outbox(link));
                let Some(outbox) = outbox else { continue };
                match encoded {
                    Some(encoded) => outbox.push_frame(encoded),
                    None => outbox.push_bytes(frame),
                }
                slot.down.charge(encoded.map_or(frame.len(), EncodedFrame::length));
                if self.keeps
                    && slot.is_behind(safe.0)
                    && let Some(message) = slot.acknowledgement(self.id, safe, &mut self.stragglers)
                {
                    let pushed = outbox.push_control(&message);
                    debug_assert!(pushed.is_ok(), "an acknowledgement is short");
                }
                continue;
            }
            if drops {
                self.dropped += slot.down.make_room(window);
            }
            let copy = || EncodedFrame::whole(Body::from(Slab::copy_of(frame)));
            slot.down.wait(waiting.get_or_insert_with(copy).clone(), info);
        }
        if self.keeps && (!is_for_some || self.down_unannounced >= self.down_announce_bytes) {
            // No child will acknowledge this packet, or absent members were given up: what is safe
            // is computed anew.
            self.forget_down(turn);
        }
    }

    /// Gives a packet its number, if it is outside of the order of waves.
    #[inline]
    pub(crate) fn number(&mut self, packet: &mut PacketRef<'_>) {
        let is_single = self.is_immediate() || packet.header.late;
        packet.header.order = match packet.header.order {
            Order::Direct | Order::Last => packet.header.order,
            _ if is_single => Order::single(self.sender.number()),
            _ => Order::Wave,
        };
    }

    /// Lets a packet pass to the parent frame by frame, or makes it wait.
    fn queue_up(&mut self, packet: PacketRef<'_>, body: &Body, mut outbox: Option<&mut Outbox>) {
        let whole = PacketRef { body: body.as_bytes(), ..packet };
        // A chunk is not cut again.
        let is_cut = packet.chunk.is_none() && body.len() > self.chunk_bytes;
        let chunk_bytes = self.chunk_bytes;
        let chunks = is_cut.then(|| cut(whole, body, chunk_bytes)).into_iter().flatten();
        let uncut = (!is_cut).then(|| (whole, body.clone()));
        for (mut part, bytes) in chunks.chain(uncut) {
            self.number(&mut part);
            let info = FrameInfo::upward(&part);
            let Ok(frame) = EncodedFrame::split(&part, bytes) else { continue };
            match &mut outbox {
                Some(outbox) if self.sender.is_open_for(&part) => {
                    self.sender.send(frame, info, outbox);
                }
                _ => self.sender.wait(frame, info),
            }
        }
    }
}
