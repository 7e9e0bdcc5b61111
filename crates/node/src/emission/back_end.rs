//! The filters of a stream that run in a back-end.

use crate::interface::Delivery;
use crate::node::Node;
use crate::streams::stream::Stream;
use crate::transform::emissions::check_emissions;
use sapwood_filter::{Chain, Emitter, Filter, FilterError, WaveRef};
use sapwood_packet::{
    Header, Packet, PacketRef, RankSet, RankSetRef, StreamId, Tag, ValuesRef, Wave,
};

use crate::transform::back_end::{OwnFilters, packet_of};

impl Stream {
    /// Whether what the application sends passes filters in this process.
    pub(crate) fn filters_sent(&self) -> bool {
        self.own.as_ref().is_some_and(|own| !own.up.is_pass())
    }

    /// Whether what comes for the application does, or is not for it since there is no filter.
    pub(crate) fn filters_delivered(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.refused.is_some() || !own.down.is_pass())
    }

    /// Why this back-end takes no part in the stream, if its filters cannot be made here.
    pub(crate) fn refusal(&self) -> Option<&FilterError> {
        self.own.as_ref()?.refused.as_ref()
    }
}

impl Node {
    /// Sends what the upward filters make of the application's values, each packet in a wave of its
    /// own, the first in that one. Gives the length of their values.
    pub(crate) fn send_filtered(
        &mut self,
        at: usize,
        header: Header,
        values: ValuesRef<'_>,
    ) -> usize {
        let contributors = [[header.origin; 2]];
        let contributors =
            RankSetRef::from_ranges(&contributors).expect("one range of one rank is in order");
        let (format, body) = (values.format(), values.body());
        let packet = PacketRef { header, contributors, format, body, ..PacketRef::default() };
        let emitter = match self.run_own(at, packet, |own| &mut own.up) {
            Ok(emitter) => emitter,
            Err(error) => {
                self.fail_sent(at, header, &error);
                return 0;
            }
        };
        let mut length = 0;
        let mut wave = header.wave;
        for (emission, values) in emitter.emissions() {
            if emission.is_reply {
                self.deliver_reply(at, header, emission.tag, values);
                continue;
            }
            length += values.body().len();
            let made = Header { tag: emission.tag, wave, filtered: true, ..header };
            self.send_in_wave(at, made, values);
            wave += 1;
        }
        self.turn.emitter = emitter;
        length
    }

    /// Runs one of the chains on one packet; the emitter is to be given back.
    fn run_own(
        &mut self,
        at: usize,
        packet: PacketRef<'_>,
        chain: impl FnOnce(&mut OwnFilters) -> &mut Chain,
    ) -> Result<Emitter, FilterError> {
        let rank = self.turn.rank_or_max();
        let mut emitter = core::mem::take(&mut self.turn.emitter);
        emitter.clear();
        let stream = self.streams.at(at);
        let wave = WaveRef {
            stream: stream.id,
            wave: if packet.contributors.is_empty() { 0 } else { packet.header.wave },
            packets: &[packet],
            contributors: packet.contributors,
            rank,
            is_root: false,
            children: 0,
            back_ends: 1,
        };
        let Some(own) = &mut stream.own else { return Ok(emitter) };
        chain(own).transform(&wave, &mut emitter)?;
        check_emissions(&emitter)?;
        Ok(emitter)
    }

    /// A filter has failed on what was sent: its wave ends without this back-end, and the front-end
    /// is told why.
    fn fail_sent(&mut self, at: usize, header: Header, error: &FilterError) {
        let Header { stream, wave, origin: rank, .. } = header;
        self.tell_own_fault(stream, wave, &RankSet::range(rank, rank), error, "");
        self.streams.at(at).next_wave = wave + 1;
        self.end_runs();
        let header = Header { void: true, filtered: true, ..header };
        self.send_up(at, PacketRef { header, ..PacketRef::default() }, None);
    }

    fn tell_own_fault(
        &mut self,
        stream: StreamId,
        wave: Wave,
        ranks: &RankSet,
        error: &FilterError,
        route: &str,
    ) {
        let rank = self.turn.rank_or_max();
        let reason = alloc::format!("{error} ({route}at rank {rank})");
        self.pass_on_fault(stream, wave, rank, ranks.clone(), reason);
    }

    /// What an upward filter sends back goes down: to the application of this back-end.
    fn deliver_reply(&mut self, at: usize, header: Header, tag: Tag, values: ValuesRef<'_>) {
        let header =
            Header { tag, wave: 0, ends_wave: false, filtered: true, direct: true, ..header };
        self.deliver(at, packet_of(header, values));
    }

    /// A packet for the application of this back-end has come.
    pub(crate) fn deliver_filtered(&mut self, at: usize, packet: &Packet) {
        let stream = self.streams.at(at);
        if stream.refusal().is_some() {
            stream.dropped += 1;
            return;
        }
        let rank = self.turn.rank_or_max();
        let header = Header { origin: rank, filtered: true, ..packet.header };
        let emitter = match self.run_own(at, packet.as_ref(), |own| &mut own.down) {
            Ok(emitter) => emitter,
            Err(error) => {
                self.streams.at(at).dropped += 1;
                let nobody = RankSet::new();
                return self.tell_own_fault(header.stream, 0, &nobody, &error, "downward, ");
            }
        };
        for (emission, values) in emitter.emissions() {
            let header = Header { tag: emission.tag, ..header };
            if emission.is_reply {
                let (format, body) = (values.format(), values.body());
                let header = Header { direct: true, generation: 0, ..header };
                self.end_runs();
                self.send_up(at, PacketRef { header, format, body, ..PacketRef::default() }, None);
            } else {
                self.deliver(at, packet_of(header, values));
            }
        }
        self.turn.emitter = emitter;
    }

    /// Hands a packet to the application of this back-end.
    pub(crate) fn deliver(&mut self, at: usize, packet: Packet) {
        let delivery = Delivery::Packet(packet);
        self.streams.at(at).unread += u64::from(delivery.cost());
        if self.turn.deliveries.capacity() == 0 {
            // Most back-ends take each packet before the next one comes.
            self.turn.deliveries.reserve_exact(1);
        }
        self.turn.deliveries.push_back(delivery);
    }
}
