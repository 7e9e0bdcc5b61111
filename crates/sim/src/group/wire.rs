//! When a message arrives: the sender's work and card, the connection, the pipe between clusters,
//! the receiver's card and work.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::layout::{Network, gauss};
use crate::chance;
use sapwood_group::Time;
use sapwood_random::Random;

/// What is busy until when.
#[derive(Clone, Debug)]
pub(super) struct Wires {
    send: Vec<Time>,
    receive: Vec<Time>,
    work: Vec<Time>,
    streams: BTreeMap<(usize, usize), Time>,
    pipes: BTreeMap<(usize, usize), Time>,
    order: BTreeMap<(usize, usize), Time>,
    chance: Random,
}

/// What a message is to the wires.
#[derive(Clone, Copy, Debug)]
pub(super) struct Freight {
    pub(super) bytes: usize,
    /// It passes between the segments of transfers.
    pub(super) is_probe: bool,
    /// What it measures is not exact.
    pub(super) is_noisy: bool,
}

/// The way of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    /// When the last byte has left the sender's queue.
    pub(super) departure: Time,
    pub(super) arrival: Time,
    /// How long the slowest of the sender's card, the connection and the pipe takes for all bytes.
    pub(super) slowest: Time,
}

impl Wires {
    pub(super) fn new(hosts: usize, seed: u64) -> Self {
        Self {
            send: alloc::vec![0; hosts],
            receive: alloc::vec![0; hosts],
            work: alloc::vec![0; hosts],
            streams: BTreeMap::new(),
            pipes: BTreeMap::new(),
            order: BTreeMap::new(),
            chance: chance::of_seed(seed ^ 0x7769_7265),
        }
    }

    /// When a message that is sent now has left, and when its last byte is at the receiver.
    pub(super) fn carry(
        &mut self,
        network: &Network,
        now: Time,
        (from, to): (usize, usize),
        freight: Freight,
    ) -> Passage {
        let Freight { bytes, is_probe, is_noisy } = freight;
        let layout = &network.layout;
        let span = |rate: f64| (bytes as f64 * 1000.0 / rate) as Time;
        // A kernel serves connections in turn: a probe does not wait behind the bulk of others.
        let start = if is_probe { now } else { now.max(self.send[from]) };
        let mut slowest = span(network.placement.cards[from]);
        let mut end = start + network.overhead + slowest;
        if !is_probe {
            self.send[from] = end;
        }
        let ends = (network.cluster(from), network.cluster(to));
        if ends.0 != ends.1 {
            // Between the segments of a stream, not behind all that wait for it.
            let stream = (!is_probe).then_some((&mut self.streams, (from, to), layout.stream));
            let pipe = (&mut self.pipes, ends, network.placement.pipe(ends.0, ends.1));
            for (table, key, rate) in stream.into_iter().chain([pipe]) {
                let free = table.entry(key).or_insert(0);
                *free = start.max(*free) + span(rate);
                slowest = slowest.max(span(rate));
                // A probe passes between segments, of which many that are counted here have not
                // even left the cards of this host and others.
                end = end.max(if is_probe { start + span(rate) } else { *free });
            }
        }
        let mut arrival = end + network.latency(from, to);
        if is_noisy {
            let trip = 2.0 * (2.0 * network.overhead as f64 + network.latency(from, to) as f64);
            arrival += (trip * layout.noise * gauss(&mut self.chance).abs()) as Time;
            if self.chance.below(100) < 3 {
                arrival += (-libm::log(1.0 - self.chance.fraction()) * 300_000.0) as Time;
            }
        }
        // A link puts control messages between the segments of a transfer.
        if is_probe {
            return Passage { departure: end, arrival, slowest };
        }
        let last = self.order.entry((from, to)).or_insert(0);
        *last = arrival.max(*last);
        Passage { departure: end, arrival: *last, slowest }
    }

    /// The time at which the receiver handles a message whose last byte has come now, and for all
    /// of which the slowest wire before has taken `slowest`.
    pub(super) fn take(
        &mut self,
        network: &Network,
        now: Time,
        to: usize,
        freight: Freight,
        slowest: Time,
    ) -> Time {
        if freight.is_probe {
            return now + network.overhead;
        }
        // The card receives while the message arrives, one message after the other: it is behind by
        // what it takes longer than the slowest wire before it.
        let span = (freight.bytes as f64 * 1000.0 / network.placement.cards[to]) as Time;
        let alone = now + span.saturating_sub(slowest);
        let received = alone.max(self.receive[to] + span);
        self.receive[to] = received;
        self.work[to] = received.max(self.work[to]) + network.overhead;
        self.work[to]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sapwood_layout::Layout;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_message_takes_the_time_of_the_cards_at_both_ends() {
        let layout =
            Layout { hosts: 2, clusters: 1, card: Vec::from([100.0, 25.0]), ..Layout::default() };
        let network = Network::draw(&layout, 1);
        let is_slow = |host: usize| network.placement.cards[host] == 25.0;
        let slow = (0..2).find(|host| is_slow(*host)).expect("one of two");
        let segment = Freight { bytes: MIB, is_probe: false, is_noisy: false };
        let of_rate = |rate: f64| (MIB as f64 * 1000.0 / rate) as Time;
        for (from, leaves_after) in [(slow, 25.0), (1 - slow, 100.0)] {
            let mut wires = Wires::new(2, 1);
            let passage = wires.carry(&network, 0, (from, 1 - from), segment);
            let Passage { departure, arrival, slowest } = passage;
            let span = of_rate(leaves_after);
            assert_eq!((departure, slowest), (network.overhead + span, span), "from {from}");
            // The slower card has the say, at whichever end it is, also for a message alone.
            let first = wires.take(&network, arrival, 1 - from, segment, slowest);
            let way = 2 * network.overhead + network.latency(from, 1 - from);
            assert_eq!(first, way + of_rate(25.0), "to {}", 1 - from);
            // A second one comes behind the first.
            let second = wires.take(&network, arrival, 1 - from, segment, slowest);
            let received = of_rate(network.placement.cards[1 - from]);
            assert!(second >= arrival + received, "to {}", 1 - from);
        }
    }

    /// Three connections may hand over as much, which the card of their host sends in 114 ms.
    #[test]
    fn signs_of_life_of_other_hosts_do_not_wait_for_a_card_behind_which_much_is_queued() {
        let layout = Layout { hosts: 6, clusters: 2, ..Layout::default() };
        let network = Network::draw(&layout, 1);
        let there = |host: &usize| network.cluster(*host) != network.cluster(0);
        let far: Vec<usize> = (1..6).filter(there).collect();
        let near = (1..6).find(|host| !there(host)).expect("three hosts are in each cluster");
        let mut wires = Wires::new(6, 1);
        for to in &far {
            let segments = Freight { bytes: 4 * MIB, is_probe: false, is_noisy: false };
            wires.carry(&network, 0, (0, *to), segments);
        }
        for from in [0, near] {
            let ping = Freight { bytes: 32, is_probe: true, is_noisy: false };
            let passage = wires.carry(&network, 0, (from, far[2]), ping);
            let unhindered = network.overhead + network.latency(from, far[2]);
            let most = unhindered + network.overhead;
            assert!((unhindered..most).contains(&passage.arrival), "{from}: {passage:?}");
        }
    }
}
