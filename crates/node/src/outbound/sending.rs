//! What a back-end sends: small packets in runs, large ones by themselves.

use sapwood_link::{FrameInfo, SHARED_BODY_BYTES};
use sapwood_packet::{
    Body, DIRECTIVES_MAX, FormatRef, Header, IntoValues, PacketRef, RankSetRef, Slab, StreamId,
    Tag, ValuesRef, Wave,
};
use sapwood_wire::limits::PACKET_BYTES_MAX;

use crate::interface::{NodeError, Role};
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::turn::Turn;

impl Streams {
    pub(crate) fn send_values(
        &mut self,
        stream: StreamId,
        tag: Tag,
        values: impl IntoValues,
        wave: Option<Wave>,
        turn: &mut Turn,
    ) -> Result<usize, NodeError> {
        if turn.settings.role != Role::BackEnd {
            return Err(NodeError::NotBackEnd);
        }
        let rank = turn.rank.ok_or(NodeError::NotConnected)?;
        let at = self.find(stream).ok_or(NodeError::Stream { stream })?;
        let open = self.at(at);
        let next = open.next_wave;
        let wave = wave.unwrap_or(next);
        if wave < next || wave == sapwood_link::END.wave {
            return Err(NodeError::WavePassed { wave, next });
        }
        if let Some(error) = open.refusal() {
            return Err(NodeError::Filter(error.clone()));
        }
        let has_filters = open.filters_sent();
        let built = turn.build(values);
        built.check_memory()?;
        check_count(built.as_ref().len())?;
        let header =
            Header { stream, tag, wave, origin: rank, ends_wave: true, ..Header::default() };
        let values = built.as_ref();
        let length = values.body().len();
        if has_filters {
            let sent = self.at(at).send_filtered(header, values, turn);
            turn.built = built;
            return Ok(sent);
        }
        if length < SHARED_BODY_BYTES {
            self.at(at).send_in_wave(header, values, turn);
            turn.built = built;
            return Ok(length);
        }
        let (format, slab) = built.into_parts();
        let body = Body::from(slab);
        turn.retain_large(&body);
        check_length(&body)?;
        self.at(at).send_large(header, format.as_ref(), body, turn);
        Ok(length)
    }
}

impl Stream {
    /// Sends values in a wave that is open to this back-end.
    #[inline]
    pub(crate) fn send_in_wave(&mut self, header: Header, values: ValuesRef<'_>, turn: &mut Turn) {
        if values.body().len() >= SHARED_BODY_BYTES {
            let body = Body::from(Slab::copy_of(values.body()));
            return self.send_large(header, values.format(), body, turn);
        }
        self.begin_wave(header.wave, values.body().len(), turn);
        self.send_small(header, values, turn);
    }

    pub(crate) fn send_large(
        &mut self,
        header: Header,
        format: FormatRef<'_>,
        body: Body,
        turn: &mut Turn,
    ) {
        self.begin_wave(header.wave, body.len(), turn);
        let contributors = [[header.origin; 2]];
        let contributors =
            RankSetRef::from_ranges(&contributors).expect("one range of one rank is in order");
        let packet = PacketRef { header, contributors, format, ..PacketRef::default() };
        self.send_up(packet, Some(body), turn);
    }

    /// Sends a small packet of this back-end, in a run with those before it where that can be.
    #[inline]
    fn send_small(&mut self, header: Header, values: ValuesRef<'_>, turn: &mut Turn) {
        let Turn { links, parent, .. } = turn;
        let contributors = [[header.origin; 2]];
        let contributors =
            RankSetRef::from_ranges(&contributors).expect("one range of one rank is in order");
        let (format, body) = (values.format(), values.body());
        let mut packet = PacketRef { header, contributors, format, body, ..PacketRef::default() };
        let Some(outbox) = parent.and_then(|parent| links.outbox(parent)) else {
            return self.send_up(packet, None, turn);
        };
        if self.sender.waiting_bytes() == 0
            && let Some(grown) = outbox.extend_run(header.stream, header.tag, header.wave, values)
        {
            return self.sender.charge(grown);
        }
        if !self.sender.is_open() {
            outbox.end_run();
            return self.send_up(packet, None, turn);
        }
        self.keep_ended_runs(outbox);
        self.number(&mut packet);
        if let Ok(grown) = outbox.push_run(&packet) {
            self.sender.charge(grown);
            // A run is kept when it has ended.
            if !outbox.is_run_open() {
                self.sender.record_packed(FrameInfo::upward(&packet), grown, outbox);
            }
        }
        self.acknowledge_beside(turn);
    }

    /// A wave of this back-end is about to be sent.
    #[inline]
    fn begin_wave(&mut self, wave: Wave, length: usize, turn: &mut Turn) {
        turn.counted.sent(length);
        // A wave that is dropped is skipped, which the packet that follows tells the parent.
        if self.drops() {
            self.dropped += self.sender.make_room(self.request.window_bytes as usize);
        }
        self.next_wave = wave + 1;
    }
}

pub(crate) fn check_length(body: &Body) -> Result<(), NodeError> {
    let bytes = body.len() as u64;
    if bytes > PACKET_BYTES_MAX {
        return Err(NodeError::TooLong { bytes });
    }
    Ok(())
}

#[inline]
pub(crate) fn check_count(count: usize) -> Result<(), NodeError> {
    if count > DIRECTIVES_MAX {
        return Err(NodeError::TooManyValues { count });
    }
    Ok(())
}
