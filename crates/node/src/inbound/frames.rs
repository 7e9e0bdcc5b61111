//! Frames that have come: control or packet, from which side, on which stream.

use sapwood_link::{Assembled, EncodedFrame, Position};
use sapwood_packet::{Body, FormatRef, Header, Packet, PacketRef, RankSet, Slab};
use sapwood_wire::{Cause, Frame, WireError, decode, frame_length};

use crate::inbound::Inbound;
use crate::interface::LinkId;
use crate::status::telemetry::Request;
use crate::streams::hops::note_down;
use crate::streams::stream::Stream;
use crate::turn::Turn;
use crate::turn::links::Peer;
use crate::waves::head::Head;
use crate::waves::open_wave::{Arrived, OwnedBody};

/// Longest frame of a peer that has not identified itself, in bytes; a hello is shorter.
const HELLO_BYTES_MAX: usize = 4096;

/// Runs of waves go up only.
const RUN_DOWN: WireError = WireError::Unexpected { what: "a run of waves downwards" };
const BEFORE_HELLO: WireError = WireError::Unexpected { what: "a packet before its hello" };

impl Inbound<'_> {
    /// Bytes in the shared buffer, beginning with a frame.
    pub(crate) fn bytes(&mut self, link: LinkId, bytes: &[u8]) {
        let mut rest = bytes;
        let now = self.turn.now;
        if let Some(open) = self.turn.links.link_mut(link) {
            open.heard = now;
        }
        loop {
            match frame_length(rest) {
                Ok(Some(length)) if length <= rest.len() => {
                    let (frame, after) = rest.split_at(length);
                    rest = after;
                    if let Some(open) = self.turn.links.link_mut(link) {
                        open.inbox.note_length(length);
                    }
                    self.frame(link, frame);
                }
                Ok(_) => break,
                Err(error) => return self.close_malformed(link, &error),
            }
        }
        if !rest.is_empty() {
            self.partial_frame(link, rest);
        }
    }

    /// The beginning of a frame whose rest has not come.
    #[cold]
    #[inline(never)]
    fn partial_frame(&mut self, link: LinkId, rest: &[u8]) {
        let peer = self.turn.links.link(link).map(|open| open.peer);
        if let (Some(Peer::Stranger | Peer::Visitor), Ok(Some(length))) = (peer, frame_length(rest))
            && length > HELLO_BYTES_MAX
        {
            return self.close_malformed(link, &WireError::Length { bytes: length });
        }
        if let (Some(peer), Ok(Some(length))) = (peer, frame_length(rest))
            && let Err(breach) = self.members.validate_length(peer, rest, length)
        {
            return self.close_for_breach(link, &breach);
        }
        let Turn { links, pool, .. } = &mut *self.turn;
        if let Some(open) = links.link_mut(link)
            && let Err(error) = open.inbox.keep(rest, pool)
        {
            self.close_malformed(link, &error);
        }
    }

    #[inline]
    fn frame(&mut self, link: LinkId, frame: &[u8]) {
        let Some(peer) = self.turn.links.link(link).map(|open| open.peer) else { return };
        if let Err(breach) = self.members.validate_length(peer, frame, frame.len()) {
            return self.close_for_breach(link, &breach);
        }
        match (decode(frame), peer) {
            (Ok(Frame::Packet(packet)), Peer::Child(_)) => {
                let arrived = Arrived { packet, owned: None, charge: frame.len() as u32 };
                self.packet_up(link, arrived);
            }
            (Ok(Frame::Packet(packet)), Peer::Parent) if packet.more_waves == 0 => {
                self.packet_from_parent(link, packet, frame, None);
            }
            (Ok(Frame::Packet(_)), Peer::Parent) => self.close_malformed(link, &RUN_DOWN),
            (Ok(Frame::Packet(_)), Peer::Leaving | Peer::Ancestor) => {}
            (Ok(Frame::Packet(_)), Peer::Stranger | Peer::Visitor) => {
                self.close_malformed(link, &BEFORE_HELLO);
            }
            (Ok(Frame::Control(control)), _) => self.control(link, peer, control),
            (Err(error), _) => self.close_malformed(link, &error),
        }
    }

    /// A large frame that lies in a slab of its own.
    pub(crate) fn large_frame(&mut self, link: LinkId, slab: Slab) {
        let Some(peer) = self.turn.links.link(link).map(|open| open.peer) else { return };
        let (head, start) = match decode(slab.as_bytes()) {
            Ok(Frame::Packet(packet)) => (Head::of(&packet), slab.len() - packet.body.len()),
            _ => {
                self.frame(link, slab.as_bytes());
                return self.turn.pool.give(slab);
            }
        };
        let charge = slab.len() as u32;
        match peer {
            Peer::Child(_) => {
                let owned = OwnedBody { start, length: slab.len() - start, slab };
                let arrived = Arrived { packet: head.with_body(&[]), owned: Some(owned), charge };
                self.packet_up(link, arrived);
            }
            Peer::Parent if head.more_waves == 0 => {
                let length = slab.len();
                let whole = Body::from(slab);
                self.turn.pool.give_later(&whole);
                let body = whole.part(start, length - start);
                let packet = head.with_body(body.as_bytes());
                let frame = EncodedFrame::whole(whole.clone());
                let shared = Some((frame, body.clone()));
                self.packet_from_parent(link, packet, whole.as_bytes(), shared);
            }
            Peer::Parent => self.close_malformed(link, &RUN_DOWN),
            Peer::Stranger | Peer::Visitor => {
                self.close_malformed(link, &BEFORE_HELLO);
            }
            Peer::Leaving | Peer::Ancestor => {}
        }
    }

    /// A packet from a child.
    #[inline]
    pub(crate) fn packet_up(&mut self, link: LinkId, arrived: Arrived<'_>) {
        let Some(at) = self.streams.find(arrived.packet.header.stream) else {
            return self.validate_stray(link, &arrived.packet);
        };
        let now = self.turn.now;
        let is_end = arrived.packet.header.is_last();
        let Some(slot) = self.streams.at(at).slot_of(link) else {
            return self.validate_stray(link, &arrived.packet);
        };
        if let Err(breach) =
            self.members.children.validate_packet(slot, &arrived.packet, self.streams.at(at))
        {
            return self.close_for_breach(link, &breach);
        }
        let stream = self.streams.at(at);
        match &mut stream.telemetry {
            None => {
                self.turn.counted.packets += 1;
                self.turn.counted.bytes += u64::from(arrived.charge);
                if self.turn.hops.is_on() {
                    stream.note_arrival(link, &arrived, self.turn);
                }
            }
            Some(asked) => asked.arrived(link, now),
        }
        if arrived.packet.header.is_direct() {
            // A reply of a downward filter goes on by itself, within the parent's credit.
            stream.waves.add_single(slot, arrived);
            return self.streams.at(at).emit_ready(self.turn);
        }
        if arrived.packet.more_waves > 0 {
            stream.arrive_run(slot, &arrived, now);
        } else if arrived.packet.chunk.is_some() && !stream.takes_chunks(arrived.packet.format) {
            self.streams.at(at).assemble_up(slot, &arrived, self.turn);
        } else if stream.holds_waves() {
            self.streams.at(at).hold_packet(slot, arrived, self.turn);
        } else {
            stream.arrive(slot, arrived, now);
        }
        let stream = self.streams.at(at);
        // A rule may forward an incomplete wave: it is asked after each packet.
        if stream.waves.is_ready(now) || stream.rule.is_some() {
            self.streams.at(at).emit_ready(self.turn);
        }
        // The end of the stream follows its last wave.
        if is_end {
            self.streams.at(at).end_if_deserted(self.turn);
        }
    }

    /// Validates a packet from the parent and handles it; the arguments are those of `packet_down`.
    fn packet_from_parent(
        &mut self,
        link: LinkId,
        packet: PacketRef<'_>,
        frame: &[u8],
        shared: Option<(EncodedFrame, Body)>,
    ) {
        match self.turn.validate_packet_down(&packet) {
            Ok(()) => self.packet_down(packet, frame, shared),
            Err(breach) => self.close_for_breach(link, &breach),
        }
    }

    /// A packet from the parent; `frame` is the encoded frame; `shared` is the same frame with
    /// reference counts, if it was read into a slab of its own.
    pub(crate) fn packet_down(
        &mut self,
        packet: PacketRef<'_>,
        frame: &[u8],
        shared: Option<(EncodedFrame, Body)>,
    ) {
        let Some(at) = self.streams.find(packet.header.stream) else { return };
        let stream = self.streams.at(at);
        stream.down_received += frame.len() as u64;
        if stream.keeps && !packet.header.is_direct() {
            if Position::of_downward(&packet) < stream.down_next {
                // It came from the parent before this one.
                // The duplicate used credit of the new link.
                return self.streams.at(at).grant_to_parent(self.turn);
            }
            stream.down_next = Position::behind_downward(&packet);
        }
        let (id, is_telemetry) = (packet.header.stream, stream.telemetry.is_some());
        let mut is_much_unannounced = false;
        if stream.keeps && self.turn.settings.role == crate::Role::BackEnd {
            stream.down_unannounced += frame.len();
            is_much_unannounced = stream.down_unannounced >= stream.down_announce_bytes;
        }
        if !is_telemetry {
            self.turn.counted.packets += 1;
            self.turn.counted.bytes += frame.len() as u64;
            if self.turn.hops.is_on() {
                note_down(&packet, self.turn);
            }
        }
        if self.turn.settings.role == crate::Role::BackEnd && is_telemetry {
            self.streams.asked(id, Request::of(&packet), self.members, self.turn);
        } else if self.turn.settings.role == crate::Role::BackEnd {
            self.streams.at(at).deliver_down(packet, shared.map(|(_, body)| body), self.turn);
        } else if self.streams.at(at).passes_down {
            self.streams.at(at).fan_out(
                packet,
                frame,
                shared.as_ref().map(|(frame, _)| frame),
                self.turn,
            );
        } else {
            self.streams.at(at).filter_down(packet, self.turn);
        }
        if is_telemetry && self.turn.settings.role == crate::Role::Communication {
            self.streams.asked(id, Request::of(&packet), self.members, self.turn);
        }
        self.streams.at(at).grant_to_parent(self.turn);
        if is_much_unannounced {
            self.streams.at(at).acknowledge_to_parent_later(self.turn);
        }
    }
}

impl Stream {
    /// A packet for the application of this back-end.
    fn deliver_down(&mut self, packet: PacketRef<'_>, shared: Option<Body>, turn: &mut Turn) {
        let whole = match packet.chunk {
            None => match shared {
                Some(body) => {
                    let format = packet.format.to_format();
                    Packet::from_parts(packet.header, format, body)
                }
                None => packet.to_packet(),
            },
            Some(chunk) => {
                let key = (packet.header.origin, packet.header.wave);
                if chunk.offset == 0 {
                    self.assemblies.use_memory(turn.pool.take_used(chunk.total as usize));
                }
                match self.assemblies.add(key, chunk, &RankSet::new(), packet.body, &turn.pool) {
                    Assembled::Whole(slab, _) => {
                        let body = Body::from(slab);
                        turn.pool.give_later(&body);
                        Packet::from_parts(packet.header, packet.format.to_format(), body)
                    }
                    Assembled::Partial => return,
                    Assembled::Torn => {
                        self.dropped += 1;
                        return;
                    }
                    Assembled::Lacking(lacking) => {
                        self.dropped += 1;
                        let next = self.next_wave;
                        turn.undelivered = Some(lacking);
                        return self.complain(next, &alloc::format!("{lacking}"), turn);
                    }
                }
            }
        };
        match self.filters_delivered() {
            true => self.deliver_filtered(&whole, turn),
            false => self.deliver(whole, turn),
        }
    }

    /// Adds a packet to a wave whose filter needs all packets. Its credit is granted at once unless
    /// it is the child's last packet of the wave: a wave longer than the window could never become
    /// complete otherwise.
    fn hold_packet(&mut self, slot: usize, mut arrived: Arrived<'_>, turn: &mut Turn) {
        let now = turn.now;
        let Header { ends_wave, late, .. } = arrived.packet.header;
        let child = &mut self.slots[slot];
        let early = if ends_wave || late { 0 } else { arrived.charge };
        if ends_wave && !late {
            arrived.charge = arrived.charge.saturating_add(child.withdraw_early_grants());
        } else if early > 0 {
            child.grant_early(early);
            arrived.charge = 0;
        }
        self.arrive(slot, arrived, now);
        if early > 0 {
            self.grant_to_child(slot, early, turn);
        }
    }

    /// A chunk on a stream whose filters need whole packets.
    fn assemble_up(&mut self, slot: usize, arrived: &Arrived<'_>, turn: &mut Turn) {
        let now = turn.now;
        let packet = arrived.packet;
        let Some(chunk) = packet.chunk else { return };
        let key = (packet.header.origin, packet.header.wave);
        let contributors = packet.contributors.to_set();
        let assembled =
            self.slots[slot].assemblies.add(key, chunk, &contributors, arrived.body(), &turn.pool);
        if let Assembled::Lacking(lacking) = &assembled {
            let cause = Cause::OutOfMemory;
            self.tell_failure(packet.header.wave, contributors, cause, lacking, turn);
        }
        let void = Slab::default();
        let mut whole = PacketRef { chunk: None, body: void.as_bytes(), ..packet };
        let mut charge = arrived.charge;
        let mut early = 0;
        if matches!(assembled, Assembled::Partial) || !packet.header.ends_wave {
            early = core::mem::take(&mut charge);
            self.slots[slot].grant_early(early);
        } else {
            charge = charge.saturating_add(self.slots[slot].withdraw_early_grants());
        }
        match assembled {
            Assembled::Partial => {}
            Assembled::Whole(slab, contributors) => {
                whole.contributors = contributors.as_ref();
                let length = slab.len();
                let owned = OwnedBody { slab, start: 0, length };
                let arrived = Arrived { packet: whole, owned: Some(owned), charge };
                self.arrive(slot, arrived, now);
            }
            Assembled::Torn | Assembled::Lacking(_) if packet.header.ends_wave => {
                let header = Header { void: true, ..packet.header };
                whole = PacketRef { header, contributors: Default::default(), ..whole };
                whole.format = FormatRef::default();
                let arrived = Arrived { packet: whole, owned: None, charge };
                self.arrive(slot, arrived, now);
            }
            Assembled::Torn | Assembled::Lacking(_) => {}
        }
        if early > 0 {
            self.grant_to_child(slot, early, turn);
        }
    }
}
