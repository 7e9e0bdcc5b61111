//! Frames that have come: control or packet, from which side, on which stream.

use sapwood_filter::Filter;
use sapwood_link::{Assembled, END, EncodedFrame, Position};
use sapwood_packet::{Body, FormatRef, Header, Packet, PacketRef, RankSet, Slab};
use sapwood_wire::{Frame, WireError, decode, frame_length};

use crate::interface::{Instant, LinkId, Mutation, Output};
use crate::members::membership::Membership;
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::transform::route::Route;
use crate::turn::Turn;
use crate::turn::links::Peer;
use crate::waves::head::Head;
use crate::waves::open_wave::{Arrived, OwnedBody};

/// Longest frame of a peer that has not said who it is, in bytes; a hello is shorter.
const HELLO_BYTES_MAX: usize = 4096;

/// Runs of waves go up only.
const RUN_DOWN: WireError = WireError::Unexpected { what: "a run of waves downwards" };
const BEFORE_HELLO: WireError = WireError::Unexpected { what: "a packet before its hello" };

impl Membership {
    /// Bytes in the shared buffer, beginning with a frame.
    pub(crate) fn bytes(
        &mut self,
        link: LinkId,
        bytes: &[u8],
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let mut rest = bytes;
        let now = turn.now;
        if let Some(open) = turn.links.link_mut(link) {
            open.heard = now;
        }
        loop {
            match frame_length(rest) {
                Ok(Some(length)) if length <= rest.len() => {
                    let (frame, after) = rest.split_at(length);
                    rest = after;
                    if let Some(open) = turn.links.link_mut(link) {
                        open.inbox.note_length(length);
                    }
                    self.frame(link, frame, streams, turn);
                }
                Ok(_) => break,
                Err(error) => return self.close_malformed(link, &error, streams, turn),
            }
        }
        if !rest.is_empty() {
            self.partial_frame(link, rest, streams, turn);
        }
    }

    /// The beginning of a frame whose rest has not come.
    #[cold]
    #[inline(never)]
    fn partial_frame(&mut self, link: LinkId, rest: &[u8], streams: &mut Streams, turn: &mut Turn) {
        let peer = turn.links.link(link).map(|open| open.peer);
        if let (Some(Peer::Stranger | Peer::Visitor), Ok(Some(length))) = (peer, frame_length(rest))
            && length > HELLO_BYTES_MAX
        {
            return self.close_malformed(link, &WireError::Length { bytes: length }, streams, turn);
        }
        if let (Some(peer), Ok(Some(length))) = (peer, frame_length(rest))
            && let Err(breach) = self.validate_length(peer, rest, length)
        {
            return self.close_for_breach(link, &breach, streams, turn);
        }
        let Turn { links, pool, .. } = turn;
        if let Some(open) = links.link_mut(link)
            && let Err(error) = open.inbox.keep(rest, pool)
        {
            self.close_malformed(link, &error, streams, turn);
        }
    }

    #[inline]
    fn frame(&mut self, link: LinkId, frame: &[u8], streams: &mut Streams, turn: &mut Turn) {
        let Some(peer) = turn.links.link(link).map(|open| open.peer) else { return };
        if let Err(breach) = self.validate_length(peer, frame, frame.len()) {
            return self.close_for_breach(link, &breach, streams, turn);
        }
        match (decode(frame), peer) {
            (Ok(Frame::Packet(packet)), Peer::Child(_)) => {
                let arrived = Arrived { packet, owned: None, charge: frame.len() as u32 };
                self.packet_up(link, arrived, streams, turn);
            }
            (Ok(Frame::Packet(packet)), Peer::Parent) if packet.more_waves == 0 => {
                self.packet_from_parent(link, packet, frame, None, streams, turn);
            }
            (Ok(Frame::Packet(_)), Peer::Parent) => {
                self.close_malformed(link, &RUN_DOWN, streams, turn)
            }
            (Ok(Frame::Packet(_)), Peer::Leaving | Peer::Ancestor) => {}
            (Ok(Frame::Packet(_)), Peer::Stranger | Peer::Visitor) => {
                self.close_malformed(link, &BEFORE_HELLO, streams, turn);
            }
            (Ok(Frame::Control(control)), _) => self.control(link, peer, control, streams, turn),
            (Err(error), _) => self.close_malformed(link, &error, streams, turn),
        }
    }

    /// A large frame that lies in a slab of its own.
    pub(crate) fn large_frame(
        &mut self,
        link: LinkId,
        slab: Slab,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let Some(peer) = turn.links.link(link).map(|open| open.peer) else { return };
        let (head, start) = match decode(slab.as_bytes()) {
            Ok(Frame::Packet(packet)) => (Head::of(&packet), slab.len() - packet.body.len()),
            _ => {
                self.frame(link, slab.as_bytes(), streams, turn);
                return turn.pool.give(slab);
            }
        };
        let charge = slab.len() as u32;
        match peer {
            Peer::Child(_) => {
                let owned = OwnedBody { start, length: slab.len() - start, slab };
                let arrived = Arrived { packet: head.with_body(&[]), owned: Some(owned), charge };
                self.packet_up(link, arrived, streams, turn);
            }
            Peer::Parent if head.more_waves == 0 => {
                let length = slab.len();
                let whole = Body::from(slab);
                turn.pool.give_later(&whole);
                let body = whole.part(start, length - start);
                let packet = head.with_body(body.as_bytes());
                let frame = EncodedFrame::whole(whole.clone());
                let shared = Some((frame, body.clone()));
                self.packet_from_parent(link, packet, whole.as_bytes(), shared, streams, turn);
            }
            Peer::Parent => self.close_malformed(link, &RUN_DOWN, streams, turn),
            Peer::Stranger | Peer::Visitor => {
                self.close_malformed(link, &BEFORE_HELLO, streams, turn);
            }
            Peer::Leaving | Peer::Ancestor => {}
        }
    }

    /// A packet from a child.
    #[inline]
    pub(crate) fn packet_up(
        &mut self,
        link: LinkId,
        arrived: Arrived<'_>,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let Some(at) = streams.find(arrived.packet.header.stream) else {
            return self.validate_stray(link, &arrived.packet, streams, turn);
        };
        let now = turn.now;
        let is_end = arrived.packet.header.is_last();
        let Some(slot) = streams.at(at).slot_of(link) else {
            return self.validate_stray(link, &arrived.packet, streams, turn);
        };
        if let Err(breach) = self.children.validate_packet(slot, &arrived.packet, streams.at(at)) {
            return self.close_for_breach(link, &breach, streams, turn);
        }
        let stream = streams.at(at);
        match &mut stream.telemetry {
            None => {
                turn.counted.packets += 1;
                turn.counted.bytes += u64::from(arrived.charge);
            }
            Some(asked) => asked.arrived(link, now),
        }
        if arrived.packet.header.is_direct() {
            // A reply of a downward filter goes on by itself, within the parent's credit.
            stream.waves.add_single(slot, arrived, false);
            return streams.at(at).emit_ready(turn);
        }
        if arrived.packet.more_waves > 0 {
            stream.arrive_run(slot, &arrived, now);
        } else if arrived.packet.chunk.is_some() && !stream.takes_chunks(arrived.packet.format) {
            streams.at(at).assemble_up(slot, &arrived, turn);
        } else if stream.holds_waves() {
            streams.at(at).hold_packet(slot, arrived, turn);
        } else {
            stream.arrive(slot, arrived, now);
        }
        let stream = streams.at(at);
        // A rule may forward an incomplete wave: it is asked after each packet.
        if stream.waves.is_ready(now) || stream.rule.is_some() {
            streams.at(at).emit_ready(turn);
        }
        // The end of the stream follows its last wave.
        if is_end {
            streams.at(at).end_if_deserted(turn);
        }
    }

    /// Validates a packet from the parent and handles it; the arguments are those of `packet_down`.
    fn packet_from_parent(
        &mut self,
        link: LinkId,
        packet: PacketRef<'_>,
        frame: &[u8],
        shared: Option<(EncodedFrame, Body)>,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        match turn.validate_packet_down(&packet) {
            Ok(()) => self.packet_down(packet, frame, shared, streams, turn),
            Err(breach) => self.close_for_breach(link, &breach, streams, turn),
        }
    }

    /// A packet from the parent; `frame` is the encoded frame; `shared` is the same frame with
    /// reference counts, if it was read into a slab of its own.
    pub(crate) fn packet_down(
        &mut self,
        packet: PacketRef<'_>,
        frame: &[u8],
        shared: Option<(EncodedFrame, Body)>,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let Some(at) = streams.find(packet.header.stream) else { return };
        let stream = streams.at(at);
        stream.down_received += frame.len() as u64;
        if stream.keeps && !packet.header.is_direct() {
            if Position::of_downward(&packet) < stream.down_next {
                // It came from the parent before this one.
                // The duplicate used credit of the new link.
                return streams.at(at).grant_to_parent(turn);
            }
            stream.down_next = Position::behind_downward(&packet);
        }
        let is_telemetry = stream.telemetry.is_some();
        let mut is_much_unannounced = false;
        if stream.keeps && turn.settings.role == crate::Role::BackEnd {
            stream.down_unannounced += frame.len();
            is_much_unannounced = stream.down_unannounced >= stream.down_announce_bytes;
        }
        if !is_telemetry {
            turn.counted.packets += 1;
            turn.counted.bytes += frame.len() as u64;
        }
        if turn.settings.role == crate::Role::BackEnd && is_telemetry {
            self.asked(packet.header.stream, packet.header.wave, streams, turn);
        } else if turn.settings.role == crate::Role::BackEnd {
            streams.at(at).deliver_down(packet, shared.map(|(_, body)| body), turn);
        } else if streams.at(at).passes_down {
            streams.at(at).fan_out(packet, frame, shared.as_ref().map(|(frame, _)| frame), turn);
        } else {
            streams.at(at).filter_down(packet, turn);
        }
        if is_telemetry && turn.settings.role == crate::Role::Communication {
            self.asked(packet.header.stream, packet.header.wave, streams, turn);
        }
        streams.at(at).grant_to_parent(turn);
        if is_much_unannounced {
            streams.at(at).owe_to_parent(turn);
        }
    }

    /// A peer broke the format: nothing more can be believed of this link.
    pub(crate) fn close_malformed(
        &mut self,
        link: LinkId,
        error: &WireError,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let reason = alloc::format!("{error}");
        if turn.links.link(link).is_some() {
            self.distrusts = Some(reason.clone());
        }
        turn.outputs.push_back(Output::Hangup(link));
        self.link_down(link, &reason, streams, turn);
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
            self.release(slot, early, turn);
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
            self.tell_failure(packet.header.wave, contributors, lacking, turn);
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
            self.release(slot, early, turn);
        }
    }

    /// A packet or chunk of a child goes to its wave.
    #[inline]
    pub(crate) fn arrive(&mut self, slot: usize, arrived: Arrived<'_>, now: Instant) {
        let header = arrived.packet.header;
        let chunk = arrived.packet.chunk;
        if header.is_last() {
            return self.advance(slot, END);
        }
        let mut position =
            Position { wave: header.wave, offset: chunk.map_or(0, |chunk| chunk.offset) };
        let next = self.slots[slot].next;
        if header.void && position.wave == next.wave {
            // The child ends the wave in the middle of a packet: where an orphan has come to may
            // lie between two chunks.
            position = self.waves.first_open_of(next);
        }
        if self.is_immediate() {
            return self.arrive_unordered(slot, arrived, position);
        }
        if position.wave < self.ended || position < self.gone_until {
            return self.arrive_straggler(slot, arrived, position);
        }
        if header.late || position < next {
            return self.arrive_beside(slot, arrived, position, now);
        }
        if position.wave < self.resumed_until && self.is_repeated_in(&arrived, position) {
            return self.pass_repeated(slot, arrived, position);
        }
        self.arrive_in_order(slot, arrived, position, now);
    }

    /// A packet or chunk whose turn it is in its child's order.
    #[inline]
    fn arrive_in_order(
        &mut self,
        slot: usize,
        arrived: Arrived<'_>,
        position: Position,
        now: Instant,
    ) {
        let header = arrived.packet.header;
        let chunk = arrived.packet.chunk;
        // A single packet needs a wave of its own: a run is cut before and behind it.
        self.waves.split_at(position);
        self.waves.split_at(Position::start_of(position.wave + 1));
        let length = arrived.body().len() as u64;
        let total = chunk.map(|chunk| chunk.total);
        let fold = if self.route == Route::Fold { self.up.as_fold() } else { None };
        // Back-ends send in order: the packet nearly always belongs to the wave behind its child's
        // last.
        let hint = self.slots[slot].hint;
        let replaces = self.breaks(Mutation::ReplaceContributors);
        let (index, wave, is_new) = self.waves.at(position, &self.slots, hint);
        if replaces {
            wave.contributors.clear();
        }
        if header.void {
            wave.charges.push((slot as u16, arrived.charge));
            wave.contributors.union_with(arrived.packet.contributors);
        } else {
            if !wave.has_values() {
                wave.total = total;
            }
            if wave.total == total {
                let Arrived { packet, owned, charge } = arrived;
                wave.add(slot, &packet, owned, charge, fold);
            } else {
                // It has sent, and is named with those that its packet does not fit to.
                wave.charges.push((slot as u16, arrived.charge));
                wave.contributors.union_with(arrived.packet.contributors);
                let name = fold.map_or("null", |fold| fold.name());
                wave.fault = Some(unequal_lengths(name, wave.total, total));
            }
        }
        if is_new {
            self.waves.begin(index, now, self.patience);
        }
        let until = match chunk {
            Some(chunk) if position.offset + length < chunk.total => {
                Position { wave: position.wave, offset: position.offset + length }
            }
            _ if header.ends_wave => Position::start_of(position.wave + 1),
            _ => return,
        };
        let is_fold = fold.is_some();
        // The usual case: exactly one wave ends here, so none is searched for.
        if self.slots[slot].next == position && self.waves.is_last_before(index, until) {
            let wave = self.waves.wave_mut(index);
            wave.waiting -= 1;
            self.slots[slot].next = until;
            self.slots[slot].hint = self.waves.number_of(index) + 1;
        } else {
            self.advance(slot, until);
        }
        if is_fold {
            let wave = self.waves.wave_mut(index);
            wave.next_turn(slot);
            if wave.holds_any()
                && let Some(fold) = self.up.as_fold()
            {
                wave.fold_held(fold, &self.slots, false);
            }
        }
    }

    /// After a chunk was forwarded, opens the wave entry of the next chunk even if no child has
    /// sent it: that entry's deadline then ends the wave.
    pub(crate) fn begin_rest(&mut self, position: Position, now: Instant) {
        let hint = self.waves.number_of(0);
        let (index, _, is_new) = self.waves.at(position, &self.slots, hint);
        if is_new {
            self.waves.begin(index, now, self.patience);
        }
    }

    /// The child sends nothing more before the position `until`.
    #[inline]
    pub(crate) fn advance(&mut self, slot: usize, until: Position) {
        let from = self.slots[slot].next;
        if until <= from {
            return;
        }
        if until == END {
            self.slots[slot].next_before_end = from;
        }
        self.waves.split_at(until);
        let hint = self.slots[slot].hint;
        self.slots[slot].next = until;
        self.slots[slot].hint = self.waves.stop_waiting_for(from, until, hint);
    }
}

fn unequal_lengths(
    name: &'static str,
    first: Option<u64>,
    other: Option<u64>,
) -> sapwood_filter::FilterError {
    let text = |total: Option<u64>| {
        total.map_or_else(|| "a short packet".into(), |total| alloc::format!("{total} bytes"))
    };
    sapwood_filter::FilterError::Mixed { name, first: text(first), other: text(other) }
}
