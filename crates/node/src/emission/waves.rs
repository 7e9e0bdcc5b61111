//! Complete waves go through the stream's filters, and what comes out goes on.

use alloc::boxed::Box;

use sapwood_filter::{Emitter, Filter, FilterError, WaveRef};
use sapwood_link::Position;
use sapwood_packet::{Header, Order, PacketRef, RankSet, Values, Wave};
use smallvec::SmallVec;

use crate::interface::{Mutation, Role};
use crate::outbound::faults::cause_of;
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::transform::emissions::{check_emissions, shared};
use crate::transform::job::Item;
use crate::transform::route::Route;
use crate::turn::Turn;
use crate::waves::open_wave::{Bodies, HeldFold, OpenWave, OwnedBody};
use crate::waves::table::WaveKind;

impl Streams {
    /// Sends on what may go of all streams.
    pub(crate) fn emit_all_ready(&mut self, turn: &mut Turn) {
        for at in 0..self.len() {
            self.at(at).emit_ready(turn);
        }
    }
}

fn route_of(stream: &Stream, wave: &OpenWave, kind: WaveKind) -> Route {
    match stream.route {
        _ if wave.header.is_direct() => Route::Pass,
        // A packet that is its own wave is folded already.
        Route::Fold if kind.is_single() => Route::Pass,
        _ if kind.is_single() && wave.total.is_some() => Route::Pass,
        // A copy of a filter's state is identified by the waves that it contains. A late packet
        // belongs to none of them, so it does not pass the filter.
        _ if kind.is_single() && wave.header.late && stream.handover.is_some() => Route::Pass,
        route => route,
    }
}

impl Stream {
    /// Sends on every wave of a stream that may go, while there is room for what comes of it.
    #[inline]
    pub(crate) fn emit_ready(&mut self, turn: &mut Turn) {
        // Replies of one wave leave before the next wave's, which may make more of them.
        if !self.replies.is_empty() && !self.go_on_replying(turn) {
            return;
        }
        // The table's first wave is out, and goes on before the next one.
        if self.waits_for_record() {
            return;
        }
        let is_root = turn.settings.role == Role::FrontEnd;
        let mut has_emitted = false;
        loop {
            let now = turn.now;
            if self.rule.is_some() {
                self.consult_rule(turn);
            }
            if !self.has_room_up(turn.settings.role) || self.has_to_wait(turn) {
                break;
            }
            let Some((wave, kind)) = self.waves.take_ready(now) else { break };
            if let Some(asked) = self.telemetry.as_mut().filter(|_| !kind.is_single()) {
                // This process's own record is made after all inputs of the turn, which it counts.
                asked.complete = Some(wave);
                turn.records_wanted.push(self.id);
                break;
            }
            self.emit(wave, kind, turn);
            has_emitted = true;
            if !self.replies.is_empty() {
                break;
            }
        }
        // At the front-end an answer is safe as soon as it has left the table.
        if is_root && has_emitted {
            self.defer_acknowledgement(turn);
        }
    }

    /// Sends on the complete wave of a telemetry stream, to which this process adds its own part.
    pub(crate) fn emit_with_record(&mut self, own: Values, turn: &mut Turn) {
        let Some(asked) = &mut self.telemetry else { return };
        asked.own = Some(own);
        let Some(wave) = asked.complete.take() else { return };
        self.emit(wave, WaveKind::Gathered, turn);
        if turn.settings.role == Role::FrontEnd {
            self.defer_acknowledgement(turn);
        }
        self.emit_ready(turn);
    }

    /// Grants the children what the wave took of their credit.
    #[inline]
    fn release_charges(&mut self, wave: &OpenWave, turn: &mut Turn) {
        for &(slot, bytes) in &wave.charges {
            self.grant_to_child(usize::from(slot), bytes, turn);
        }
    }

    /// The result of a wave was sent: records which members were absent, and absorbs inherited
    /// states that are due.
    #[inline]
    fn note_sent_on(&mut self, wave: &OpenWave, kind: WaveKind, turn: &mut Turn) {
        if turn.hops.is_on() && !kind.is_single() {
            self.note_wave_sent(wave, turn);
        }
        if self.keeps {
            self.note_emitted(wave, kind, turn);
            if self.handover.is_some() {
                self.take_over(turn);
            }
        }
    }

    /// A wave without a value still has to end at the parent.
    fn end_void(&mut self, wave: &OpenWave, kind: WaveKind, turn: &mut Turn) {
        let rank = turn.rank();
        let header = Header { ends_wave: true, void: true, ..self.header_of(wave, rank) };
        // No process waits for the end of a late part, or of a packet that ends no wave.
        if kind.is_single() && (wave.header.late || !wave.header.ends_wave) {
            return;
        }
        if !kind.is_single() {
            self.ended = wave.position.wave + 1;
        }
        let contributors = wave.contributors.as_ref();
        self.send_up(PacketRef { header, contributors, ..PacketRef::default() }, None, turn);
    }

    fn emit(&mut self, mut wave: Box<OpenWave>, kind: WaveKind, turn: &mut Turn) {
        let is_torn = self.ended > wave.position.wave && !kind.is_single();
        if is_torn {
            // An earlier chunk of this packet failed: the wave has been ended already.
            return self.finish(wave, turn);
        }
        let route = self.begin_emission(&wave, kind, turn);
        let is_telemetry = self.telemetry.is_some();
        if route == Route::Fold
            && wave.holds_any()
            && let Some(fold) = self.up.as_fold()
        {
            wave.fold_held(fold, &self.slots, HeldFold::Everything);
        }
        // Behind the folding, which is what brings the contributors of a chunk together.
        self.check_chunks(&mut wave, kind);
        if let Some(error) = wave.fault.take() {
            // Each wave of a run has an answer of its own.
            for number in 0..=u64::from(wave.more) {
                self.fail(wave.position.wave + number, &wave, &error, turn);
            }
        } else if !wave.has_values() && (kind.is_single() || !is_telemetry) {
            self.end_void(&wave, kind, turn);
        } else {
            match route {
                Route::Fold => self.emit_folded(&mut wave, turn),
                Route::Pass => {
                    let bodies = wave.take_bodies();
                    self.emit_passed(&wave, bodies, kind, turn);
                }
                Route::Transform => match self.given_up() {
                    Some(error) => self.fail(wave.position.wave, &wave, &error, turn),
                    None => {
                        self.note_transformed(turn);
                        self.emit_transformed(&wave, kind, turn);
                    }
                },
            }
        }
        // Before the credit is granted: what may be acknowledged travels with it.
        self.note_sent_on(&wave, kind, turn);
        self.finish(wave, turn);
    }

    /// Grants the children what the wave took of their credit, and keeps its memory.
    fn finish(&mut self, wave: Box<OpenWave>, turn: &mut Turn) {
        self.release_charges(&wave, turn);
        self.recycle_wave(wave, turn);
    }

    fn emit_folded(&mut self, wave: &mut OpenWave, turn: &mut Turn) {
        let rank = turn.rank();
        let chunk = wave.chunk();
        let length = wave.folded_bytes().map_or(0, <[u8]>::len) as u64;
        let is_last = chunk.is_none_or(|chunk| chunk.offset + length >= chunk.total);
        let header = Header { ends_wave: is_last, ..self.header_of(wave, rank) };
        if is_last {
            self.ended = wave.until().wave;
        }
        let owned = wave.take_owned().map(OwnedBody::into_body);
        if let Some(body) = &owned {
            // The parent's outbox may hold it until it is acknowledged.
            turn.pool.give_later(body);
        }
        let packet = PacketRef {
            header,
            format: wave.format.as_ref(),
            contributors: wave.contributors.as_ref(),
            destinations: Default::default(),
            chunk,
            more_waves: wave.more,
            body: if owned.is_some() { &[] } else { wave.folded_bytes().unwrap_or_default() },
        };
        self.send_up(packet, owned, turn);
        // Without an entry of its own the rest of the packet would have no deadline.
        if let Some(chunk) = chunk.filter(|_| !is_last) {
            let rest = Position { wave: wave.position.wave, offset: chunk.offset + length };
            let now = turn.now;
            self.begin_rest(rest, now);
        }
    }

    /// Forwards a wave that a job has returned. `made` is the filters' result; an error fails the
    /// wave.
    pub(crate) fn emit_finished(
        &mut self,
        item: &Item,
        made: Option<Result<&mut Emitter, &FilterError>>,
        turn: &mut Turn,
    ) {
        let Item { wave, kind, route } = item;
        if let Some(error) = &wave.fault {
            self.fail(wave.position.wave, wave, error, turn);
        } else if !wave.has_values() {
            self.end_void(wave, *kind, turn);
        } else if *route != Route::Transform {
            self.emit_passed(wave, Bodies::new(), *kind, turn);
        } else {
            match made {
                Some(Ok(emitter)) => self.send_emissions(wave, emitter, *kind, turn),
                Some(Err(error)) => self.fail(wave.position.wave, wave, error, turn),
                None => self.end_void(wave, *kind, turn),
            }
        }
        self.note_sent_on(wave, *kind, turn);
        self.release_charges(wave, turn);
    }

    fn emit_transformed(&mut self, wave: &OpenWave, kind: WaveKind, turn: &mut Turn) {
        let rank = turn.rank();
        let is_root = turn.settings.role == Role::FrontEnd;
        let asked = self.telemetry.as_mut();
        let own = asked.and_then(|asked| asked.own.take());
        let own = own.as_ref().map(sapwood_packet::Values::as_ref).map(|values| PacketRef {
            header: wave.header,
            format: values.format(),
            body: values.body(),
            ..PacketRef::default()
        });
        // Taken out of the turn for the call and put back, so that no wave allocates one.
        let mut emitter = core::mem::take(&mut turn.emitter);
        emitter.clear();
        let packets: SmallVec<[PacketRef<'_>; 8]> = own.into_iter().chain(wave.packets()).collect();
        let lent = WaveRef {
            stream: self.id,
            wave: wave.position.wave,
            packets: &packets,
            contributors: wave.contributors.as_ref(),
            rank,
            is_root,
            children: self.slots.len() as u32,
            back_ends: self.below.len() as u32,
        };
        let made = self.up.transform(&lent, &mut emitter);
        match made.and_then(|()| check_emissions(&emitter)) {
            Ok(()) => {
                if !kind.is_single() {
                    self.note_taken_in(wave.position.wave, turn);
                }
                self.send_emissions(wave, &mut emitter, kind, turn);
            }
            Err(error) => self.fail(wave.position.wave, wave, &error, turn),
        }
        turn.emitter = emitter;
    }

    fn send_emissions(
        &mut self,
        wave: &OpenWave,
        out: &mut Emitter,
        kind: WaveKind,
        turn: &mut Turn,
    ) {
        let rank = turn.rank();
        let ups = out.emissions().filter(|(emission, _)| !emission.is_reply).count();
        let mut left = ups;
        for (emission, values) in out.emissions().filter(|(emission, _)| !emission.is_reply) {
            let ends_wave = left == 1;
            let packet = PacketRef {
                header: Header { tag: emission.tag, ends_wave, ..self.header_of(wave, rank) },
                format: values.format(),
                contributors: wave.contributors.as_ref(),
                destinations: Default::default(),
                chunk: None,
                more_waves: 0,
                body: values.body(),
            };
            // The packets before this one have gone up already; what ends the wave in their place
            // tells what is lacking.
            let shared = match shared(packet.body) {
                Ok(shared) => shared,
                Err(lacking) => {
                    return self.fail(wave.position.wave, wave, &lacking.into(), turn);
                }
            };
            left -= 1;
            self.send_up(packet, shared, turn);
        }
        let header = self.header_of(wave, rank);
        self.answer_down(header, out, turn);
        if ups == 0 {
            return self.end_void(wave, kind, turn);
        }
        if !kind.is_single() {
            self.ended = wave.position.wave + 1;
        }
    }

    /// Runs the downward filters on one whole packet and sends what comes of it.
    pub(crate) fn transform_down(&mut self, packet: PacketRef<'_>, turn: &mut Turn) {
        if self.down_offload.is_some() {
            return self.queue_down(packet, turn);
        }
        let rank = turn.rank();
        let is_root = turn.settings.role == Role::FrontEnd;
        let mut emitter = core::mem::take(&mut turn.emitter);
        emitter.clear();
        let wave = WaveRef {
            stream: self.id,
            wave: 0,
            packets: &[packet],
            contributors: Default::default(),
            rank,
            is_root,
            children: self.slots.len() as u32,
            back_ends: self.below.len() as u32,
        };
        let made = self.down.transform(&wave, &mut emitter);
        if let Err(error) = made.and_then(|()| check_emissions(&emitter)) {
            self.fail_down(&error, turn);
            emitter.clear();
        }
        self.send_made_down(packet, &emitter, turn);
        turn.emitter = emitter;
    }

    /// The packets of a wave go on as they came, each with its own contributors.
    ///
    /// `bodies` are those that have been taken out of the wave; where there is none, the packet
    /// shows its own.
    fn emit_passed(
        &mut self,
        wave: &OpenWave,
        mut bodies: Bodies,
        kind: WaveKind,
        turn: &mut Turn,
    ) {
        let last = wave.packets().count().saturating_sub(1);
        for (index, mut packet) in wave.packets().enumerate() {
            if !kind.is_single() {
                packet.header.ends_wave = index == last;
            }
            let body = bodies.get_mut(index).and_then(Option::take);
            if let Some(body) = &body {
                turn.pool.give_later(body);
            }
            self.send_up(packet, body, turn);
        }
        if !kind.is_single() {
            self.ended = wave.position.wave + 1;
        }
    }

    /// A filter failed: its reason goes up with the back-ends that this costs, and the wave ends.
    fn fail(&mut self, number: Wave, wave: &OpenWave, error: &FilterError, turn: &mut Turn) {
        let rank = turn.rank();
        self.tell_failure(number, wave.contributors.clone(), cause_of(error), error, turn);
        let own = self.header_of(wave, rank);
        let header = Header { wave: number, ends_wave: true, void: true, ..own };
        // The rest of a large packet whose chunk failed finds the wave ended, and is dropped.
        self.ended = self.ended.max(number + 1);
        self.send_up(PacketRef { header, ..PacketRef::default() }, None, turn);
    }

    /// A packet from the parent goes through the stream's downward filters.
    pub(crate) fn filter_down(&mut self, packet: PacketRef<'_>, turn: &mut Turn) {
        let assembled;
        let mut whole = packet;
        if let Some(chunk) = packet.chunk {
            let key = (packet.header.origin, packet.header.wave);
            match self.assemblies.add(key, chunk, &RankSet::new(), packet.body, &turn.pool) {
                sapwood_link::Assembled::Whole(slab, _) => assembled = slab,
                sapwood_link::Assembled::Partial => return,
                sapwood_link::Assembled::Torn => {
                    self.dropped += 1;
                    return;
                }
                sapwood_link::Assembled::Lacking(lacking) => {
                    return self.fail_down(&lacking.into(), turn);
                }
            }
            whole = PacketRef { chunk: None, body: assembled.as_bytes(), ..packet };
        }
        self.transform_down(whole, turn);
    }

    /// What downward filters have made of a packet goes on, or back up.
    pub(crate) fn send_made_down(
        &mut self,
        packet: PacketRef<'_>,
        emitter: &Emitter,
        turn: &mut Turn,
    ) {
        let rank = turn.rank();
        let downs = emitter.emissions().filter(|(emission, _)| !emission.is_reply).count();
        // Several packets that a filter further up has made of one have one number: the index goes
        // on.
        if self.down_made.0 != packet.header.wave {
            self.down_made = (packet.header.wave, 0);
        }
        let mut index = self.down_made.1;
        let end = index + downs as u32;
        self.down_made.1 = end;
        for (emission, values) in emitter.emissions() {
            let mut header =
                Header { tag: emission.tag, origin: rank, filtered: true, ..packet.header };
            if !emission.is_reply {
                header.order = Order::part(index);
                index += 1;
                header.ends_wave = packet.header.ends_wave && index == end;
            }
            let mut made = PacketRef {
                header,
                format: values.format(),
                destinations: packet.destinations,
                body: values.body(),
                ..PacketRef::default()
            };
            let shared = match shared(made.body) {
                Ok(shared) => shared,
                Err(lacking) => return self.fail_down(&lacking.into(), turn),
            };
            if emission.is_reply {
                made.header.order = Order::Direct;
                made.destinations = Default::default();
                self.send_up(made, shared, turn);
            } else {
                self.send_down(made, shared.as_ref(), turn);
            }
        }
    }

    /// A wave has left the table and is about to go on: packets for it that arrive from now on are
    /// stragglers.
    #[inline]
    pub(crate) fn begin_emission(
        &mut self,
        wave: &OpenWave,
        kind: WaveKind,
        turn: &mut Turn,
    ) -> Route {
        if !kind.is_single() {
            self.gone_until = match wave.more {
                // Only this chunk has gone: the next one of the same wave is still in time.
                0 => Position { offset: wave.position.offset + 1, ..wave.position },
                _ => wave.until(),
            };
        }
        if self.telemetry.is_none() {
            turn.counted.waves += u64::from(!kind.is_single()) + u64::from(wave.more);
        }
        route_of(self, wave, kind)
    }

    /// Keeps the memory of a wave.
    pub(crate) fn recycle_wave(&mut self, mut wave: Box<OpenWave>, turn: &mut Turn) {
        wave.charges.clear();
        if let Some(body) = wave.take_owned() {
            turn.pool.give(body.slab);
        }
        while let Some(slab) = wave.used.pop() {
            turn.pool.give(slab);
        }
        self.waves.recycle(wave);
    }

    /// A packet on its way down has come to nothing.
    pub(crate) fn fail_down(&mut self, error: &FilterError, turn: &mut Turn) {
        let rank = turn.rank();
        self.dropped += 1;
        let (stream, reason) = (self.id, alloc::format!("{error} (downward, at rank {rank})"));
        turn.report_fault(stream, reason);
    }

    /// The header of what comes of a wave, of which more follows.
    fn header_of(&self, wave: &OpenWave, rank: u32) -> Header {
        Header {
            stream: self.id,
            tag: wave.header.tag,
            wave: wave.position.wave,
            origin: rank,
            filtered: true,
            late: wave.header.late,
            ..Header::default()
        }
    }

    /// All chunks of a folded packet must stand for the same back-ends, or the whole would be a sum
    /// over no back-end in particular: one that does not fails the wave.
    fn check_chunks(&mut self, wave: &mut OpenWave, kind: WaveKind) {
        if wave.total.is_none() || kind.is_single() || self.breaks(Mutation::SkipChunkCheck) {
            return;
        }
        if wave.position.offset == 0 {
            self.chunk_contributors = wave.contributors.clone();
        } else if self.chunk_contributors != wave.contributors {
            wave.contributors.union_with(self.chunk_contributors.as_ref());
            let reason = "back-ends were lost in the middle of a large packet";
            wave.fault = Some(FilterError::Failed(reason.into()));
        }
    }
}
