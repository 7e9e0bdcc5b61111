//! What a back-end sends: small packets in runs, large ones by themselves.

use sapwood_link::{FrameInfo, SHARED_BODY_BYTES};
use sapwood_packet::{
    Body, DIRECTIVES_MAX, FormatRef, Header, PacketRef, RankSetRef, Slab, ValuesRef, Wave,
};
use sapwood_wire::limits::PACKET_BYTES_MAX;

use crate::interface::NodeError;
use crate::streams::stream::Stream;
use crate::turn::Turn;

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
