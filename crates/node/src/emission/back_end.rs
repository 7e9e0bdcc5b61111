//! The filters of a stream that run in a back-end.

use sapwood_filter::{Chain, Emitter, Filter, FilterError, WaveRef};
use sapwood_packet::{Header, Order, Packet, PacketRef, RankSet, RankSetRef, Tag, ValuesRef, Wave};

use crate::interface::{Delivery, Reason};
use crate::outbound::faults::cause_of;
use crate::streams::stream::Stream;
use crate::transform::back_end_filters::{BackEndFilters, packet_of};
use crate::transform::emissions::check_emissions;
use crate::turn::Turn;

impl Stream {
    /// A filter has failed on what was sent: its wave ends without this back-end, and the front-end
    /// is told why.
    fn fail_sent(&mut self, header: Header, error: &FilterError, turn: &mut Turn) {
        let Header { wave, origin: rank, .. } = header;
        self.tell_own_fault(wave, &RankSet::range(rank, rank), error, "", turn);
        self.next_wave = wave + 1;
        self.record_own_runs(turn);
        let header = Header { void: true, filtered: true, ..header };
        self.send_up(PacketRef { header, ..PacketRef::default() }, None, turn);
    }

    /// Sends what the upward filters make of the application's values, each packet in a wave of its
    /// own, the first in that one. Gives the length of their values.
    pub(crate) fn send_filtered(
        &mut self,
        header: Header,
        values: ValuesRef<'_>,
        turn: &mut Turn,
    ) -> usize {
        let contributors = [[header.origin; 2]];
        let contributors =
            RankSetRef::from_ranges(&contributors).expect("one range of one rank is in order");
        let (format, body) = (values.format(), values.body());
        let packet = PacketRef { header, contributors, format, body, ..PacketRef::default() };
        let emitter = match self.run_own(packet, |own| &mut own.up, turn) {
            Ok(emitter) => emitter,
            Err(error) => {
                self.fail_sent(header, &error, turn);
                return 0;
            }
        };
        let mut length = 0;
        let mut wave = header.wave;
        for (emission, values) in emitter.emissions() {
            if emission.is_reply {
                self.deliver_reply(header, emission.tag, values, turn);
                continue;
            }
            length += values.body().len();
            let made = Header { tag: emission.tag, wave, filtered: true, ..header };
            self.send_in_wave(made, values, turn);
            wave += 1;
        }
        turn.emitter = emitter;
        length
    }

    fn tell_own_fault(
        &mut self,
        wave: Wave,
        ranks: &RankSet,
        error: &FilterError,
        direction_note: &str,
        turn: &mut Turn,
    ) {
        let rank = turn.rank();
        let words = alloc::format!("{error} ({direction_note}at rank {rank})");
        let reason = Reason::new(cause_of(error), words);
        self.tell_fault(Some(wave), rank, ranks.clone(), reason, turn);
    }

    /// A packet for the application of this back-end has come.
    pub(crate) fn deliver_filtered(&mut self, packet: &Packet, turn: &mut Turn) {
        if self.refusal().is_some() {
            self.dropped += 1;
            return;
        }
        let rank = turn.rank();
        let header = Header { origin: rank, filtered: true, ..packet.header };
        let emitter = match self.run_own(packet.as_ref(), |own| &mut own.down, turn) {
            Ok(emitter) => emitter,
            Err(error) => {
                self.dropped += 1;
                let none = RankSet::new();
                return self.tell_own_fault(0, &none, &error, "downward, ", turn);
            }
        };
        for (emission, values) in emitter.emissions() {
            let header = Header { tag: emission.tag, ..header };
            if emission.is_reply {
                let (format, body) = (values.format(), values.body());
                let header = Header { order: Order::Direct, ..header };
                // The open run stands before this packet in the outbox, and must stand before it in
                // the retransmit buffer: an orphan sends again in that order.
                self.record_own_runs(turn);
                self.send_up(
                    PacketRef { header, format, body, ..PacketRef::default() },
                    None,
                    turn,
                );
            } else {
                self.deliver(packet_of(header, values), turn);
            }
        }
        turn.emitter = emitter;
    }

    /// Runs one of the chains on one packet; the emitter is to be given back.
    fn run_own(
        &mut self,
        packet: PacketRef<'_>,
        chain: impl FnOnce(&mut BackEndFilters) -> &mut Chain,
        turn: &mut Turn,
    ) -> Result<Emitter, FilterError> {
        let rank = turn.rank();
        let mut emitter = core::mem::take(&mut turn.emitter);
        emitter.clear();
        let wave = WaveRef {
            stream: self.id,
            wave: if packet.contributors.is_empty() { 0 } else { packet.header.wave },
            packets: &[packet],
            contributors: packet.contributors,
            rank,
            is_root: false,
            children: 0,
            back_ends: 1,
        };
        let Some(own) = &mut self.own else { return Ok(emitter) };
        chain(own).transform(&wave, &mut emitter)?;
        check_emissions(&emitter)?;
        Ok(emitter)
    }

    /// What an upward filter sends back goes down: to the application of this back-end.
    fn deliver_reply(&mut self, header: Header, tag: Tag, values: ValuesRef<'_>, turn: &mut Turn) {
        let header = Header {
            tag,
            wave: 0,
            ends_wave: false,
            filtered: true,
            order: Order::Direct,
            ..header
        };
        self.deliver(packet_of(header, values), turn);
    }

    /// Hands a packet to the application of this back-end.
    pub(crate) fn deliver(&mut self, packet: Packet, turn: &mut Turn) {
        let delivery = Delivery::Packet(packet);
        self.unread += u64::from(delivery.cost());
        if turn.deliveries.capacity() == 0 {
            // Most back-ends take each packet before the next one comes.
            turn.deliveries.reserve_exact(1);
        }
        turn.deliveries.push_back(delivery);
    }

    /// Whether what the application sends passes filters in this process.
    pub(crate) fn filters_sent(&self) -> bool {
        self.own.as_ref().is_some_and(|own| !own.up.is_pass())
    }

    /// Whether received packets pass filters in this process, or are dropped because the filters
    /// could not be made.
    pub(crate) fn filters_delivered(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.refused.is_some() || !own.down.is_pass())
    }

    /// Why this back-end takes no part in the stream, if its filters cannot be made here.
    pub(crate) fn refusal(&self) -> Option<&FilterError> {
        self.own.as_ref()?.refused.as_ref()
    }
}
