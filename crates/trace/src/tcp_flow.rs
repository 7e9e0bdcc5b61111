//! TCP connections between ranks: how long each has had data to send, and how fast it went.
//!
//! In a collective over a slow connection all ranks come in time and leave late, so that who came
//! last says nothing on it. The kernel counts at each end of a connection for how long data was
//! under way, and leaves compare these counters from reading to reading ([`TcpFlow`]). A socket is
//! known by the addresses of its connection ([`TcpEnds`]), and the two ends of a connection find
//! one another where all answers come together ([`TcpTrace`]). A connection is slow if it was busy
//! for much of the time, and far slower than others meanwhile ([`slow_flows`]).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use sapwood_packet::Rank;

/// Sockets whose ranks are known, and those whose other end is not, at most.
const SOCKETS_MAX: usize = 1 << 17;
/// Pairs of ranks that are told apart, at most.
const PAIRS_MAX: usize = 1 << 16;
/// A stretch lasts as long, at least.
const STRETCH_NS: u64 = 1_000_000_000;
/// Fewer connections have no others to be compared with.
const FLOWS_MIN: usize = 3;
/// Fewer bytes say nothing on how fast a connection is.
const BYTES_MIN: u64 = 64 << 10;
/// Nor do fewer readings on what it did in between.
const READINGS_MIN: u32 = 4;
/// The part of the time in which a slow connection is busy, at least, in millionths.
const SHARE_PPM_MIN: u64 = 500_000;
/// It is busy for this many times the time of others,
const TIMES_BUSY_MIN: u64 = 2;
/// and sends this many times fewer bytes in a second.
const TIMES_SLOWER_MIN: u64 = 4;
/// Of the time in which it was busy, its receiver had no room for at most one of this many parts.
const TIMES_TAKEN_MIN: u64 = 4;
/// Within a host a short burst is many times as fast as a long one; none of this rate is slow.
const WITHIN_BYTES_PER_S: u64 = 100_000_000;
/// The kernel counts in ticks of its clock, which are not longer than this, in microseconds.
const TICK_US: u64 = 10_000;
/// Collectives that last are known when they have ended: no shorter time is taken for them than
/// this part of the whole.
const CALLED_PART: u64 = 10;

/// The two ends of a connection, as they are called in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpEnds {
    /// The own one.
    pub own: u64,
    /// The other one, as the process at it calls its own.
    pub peer: u64,
    /// Whether both are on one host.
    pub is_within: bool,
}

impl TcpEnds {
    /// Of a socket with these addresses; `host` is alike for processes that share a loopback
    /// interface, and for no others.
    #[must_use]
    pub fn of(local: SocketAddr, remote: SocketAddr, host: u64) -> Self {
        let is_within = local.ip() == remote.ip() || local.ip().is_loopback();
        let host = if is_within { host } else { 0 };
        let name = |own: SocketAddr, peer: SocketAddr| {
            [own, peer].map(number).into_iter().fold(mix(FNV, host.into()), mix)
        };
        Self { own: name(local, remote), peer: name(remote, local), is_within }
    }
}

const FNV: u64 = 0xcbf2_9ce4_8422_2325;

/// An address and its port.
fn number(of: SocketAddr) -> u128 {
    let address: u128 = match of.ip() {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    };
    address.rotate_left(16) ^ u128::from(of.port())
}

fn mix(hash: u64, number: u128) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    number.to_le_bytes().into_iter().fold(hash, step)
}

/// What one end of a connection did in a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFlow {
    /// The time, in nanoseconds.
    pub elapsed_ns: u64,
    /// Nanoseconds of collectives that its rank has ended in it, of all threads.
    pub called_ns: u64,
    /// Microseconds in which it had data that the other end had not acknowledged.
    pub busy_us: u64,
    /// Of these, those in which the other end had no room for more.
    pub window_us: u64,
    /// Bytes that the other end has acknowledged.
    pub bytes: u64,
    /// Readings.
    pub readings: u32,
    /// Those at which data waited to be sent for the first time.
    pub queued: u32,
}

impl TcpFlow {
    /// Adds another time.
    pub const fn merge(&mut self, other: &Self) {
        self.elapsed_ns = self.elapsed_ns.saturating_add(other.elapsed_ns);
        self.called_ns = self.called_ns.saturating_add(other.called_ns);
        self.busy_us = self.busy_us.saturating_add(other.busy_us);
        self.window_us = self.window_us.saturating_add(other.window_us);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.readings = self.readings.saturating_add(other.readings);
        self.queued = self.queued.saturating_add(other.queued);
    }

    /// Microseconds in which it had data under way, and the other end room for it.
    #[must_use]
    pub const fn sending_us(&self) -> u64 {
        self.busy_us.saturating_sub(self.window_us)
    }

    /// How fast it was while it had data under way; of little data it is not known exactly.
    #[must_use]
    pub fn bytes_per_s(&self) -> u64 {
        let sending_us = self.sending_us().max(TICK_US);
        let rate = u128::from(self.bytes) * 1_000_000 / u128::from(sending_us);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// The part of the whole time in which it sent, in millionths.
    #[must_use]
    pub fn sending_ppm(&self) -> u64 {
        ppm(self.sending_us(), self.elapsed_ns)
    }

    /// The same of the time that its rank has spent in collectives; of the whole time where none
    /// of these has ended.
    fn called_ppm(&self) -> u64 {
        let called_ns = match self.called_ns {
            0 => self.elapsed_ns,
            called_ns => called_ns.clamp(self.elapsed_ns / CALLED_PART, self.elapsed_ns),
        };
        ppm(self.sending_us(), called_ns)
    }

    /// Whether it is long enough to be compared.
    const fn is_known(&self) -> bool {
        self.bytes >= BYTES_MIN && self.readings >= READINGS_MIN
    }

    /// Whether the other end had room for most of what was under way. Of one that is late to take
    /// it, a part of the time is counted as if the connection were busy.
    const fn is_taken(&self) -> bool {
        self.window_us <= self.busy_us / TIMES_TAKEN_MIN
    }

    /// Whether data waited to be sent while it was busy, as a rule. A connection is busy, too,
    /// while all is sent and the other end takes its time to say that it has come.
    fn is_queued(&self) -> bool {
        let queued_ppm = u64::from(self.queued) * 1_000_000 / u64::from(self.readings.max(1));
        queued_ppm * 2 >= self.sending_ppm() && self.queued > 0
    }
}

/// A part of a time, in millionths; not more than all of it.
fn ppm(us: u64, of_ns: u64) -> u64 {
    let part = u128::from(us) * 1_000_000_000 / u128::from(of_ns.max(1));
    u64::try_from(part).unwrap_or(u64::MAX).min(1_000_000)
}

/// A socket of a rank, and what it did since it was told before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSocket {
    /// The rank.
    pub rank: Rank,
    /// The other end, as its process calls it.
    pub peer: u64,
    /// Whether that is on the same host.
    pub is_within: bool,
    /// What it did.
    pub flow: TcpFlow,
}

impl TcpSocket {
    /// Takes in what is known of it from elsewhere, or later.
    pub const fn merge(&mut self, other: &Self) {
        let mut flow = self.flow;
        flow.merge(&other.flow);
        *self = *other;
        self.flow = flow;
    }
}

/// What one rank has sent to another over TCP in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFigures {
    /// Whether both are on one host.
    pub is_within: bool,
    /// All of it.
    pub all: TcpFlow,
    /// Of all stretches of a second or more, the one in which it sent for the largest part.
    pub busiest: TcpFlow,
    /// The stretch that is being gathered.
    stretch: TcpFlow,
}

impl TcpFigures {
    /// Adds what was sent since the time before.
    pub fn add(&mut self, flow: &TcpFlow) {
        self.all.merge(flow);
        self.stretch.merge(flow);
        if self.stretch.elapsed_ns >= STRETCH_NS && self.stretch.is_known() {
            let stretch = core::mem::take(&mut self.stretch);
            let is_first = self.busiest.readings == 0;
            if is_first || stretch.sending_ppm() > self.busiest.sending_ppm() {
                self.busiest = stretch;
            }
        }
    }
}

/// The sockets of a run, put together to connections between ranks.
#[derive(Clone, Debug, Default)]
pub struct TcpTrace {
    /// By the name of an end.
    ranks: BTreeMap<u64, Rank>,
    /// Those of which the rank at the other end is not known.
    open: BTreeMap<u64, TcpSocket>,
}

impl TcpTrace {
    /// Takes the sockets of an answer; how many of them found no room. Of several connections
    /// between two ranks the one counts that was busy for longest.
    pub fn take(
        &mut self,
        sockets: BTreeMap<u64, TcpSocket>,
        found: &mut BTreeMap<(Rank, Rank), TcpFigures>,
    ) -> u64 {
        let mut left_out = 0;
        for (own, socket) in sockets {
            if self.ranks.len() >= SOCKETS_MAX && !self.ranks.contains_key(&own) {
                left_out += 1;
                continue;
            }
            self.ranks.insert(own, socket.rank);
            self.open.entry(own).and_modify(|mine| mine.merge(&socket)).or_insert(socket);
        }
        let mut busiest: BTreeMap<(Rank, Rank), TcpSocket> = BTreeMap::new();
        let ranks = &self.ranks;
        self.open.retain(|_, socket| {
            let Some(&to) = ranks.get(&socket.peer) else { return true };
            // What was only named has done nothing yet.
            if to != socket.rank && socket.flow.elapsed_ns > 0 {
                let mine = busiest.entry((socket.rank, to)).or_insert(*socket);
                if socket.flow.sending_us() > mine.flow.sending_us() {
                    *mine = *socket;
                }
            }
            false
        });
        for (ends, socket) in busiest {
            if found.len() >= PAIRS_MAX && !found.contains_key(&ends) {
                left_out += 1;
                continue;
            }
            let figures = found.entry(ends).or_default();
            figures.is_within = socket.is_within;
            figures.add(&socket.flow);
        }
        left_out
    }
}

/// A connection that was slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowFlow {
    /// The sender.
    pub from: Rank,
    /// The receiver.
    pub to: Rank,
    /// What it did in the time in which it was slow: all of the run, or its busiest stretch.
    pub flow: TcpFlow,
    /// What it did in the whole run.
    pub all: TcpFlow,
    /// How fast the median of the connections was.
    pub usual_bytes_per_s: u64,
}

/// The connections that were slow over the whole run, or over their busiest stretch.
#[must_use]
pub fn slow_flows(flows: &BTreeMap<(Rank, Rank), TcpFigures>) -> Vec<SlowFlow> {
    let mut slow = Vec::new();
    for is_within in [true, false] {
        // Connections within a host are another medium than those between hosts.
        let alike = || flows.iter().filter(move |(_, one)| one.is_within == is_within);
        let all = slow_of(is_within, alike().map(|(&ends, one)| (ends, one.all)).collect());
        let parts = alike().map(|(&ends, one)| (ends, one.busiest)).collect();
        let parts = slow_of(is_within, parts);
        let ends = |one: &SlowFlow| (one.from, one.to);
        let is_told = |one: &SlowFlow| all.iter().any(|told| ends(told) == ends(one));
        slow.extend(parts.into_iter().filter(|one| !is_told(one)));
        slow.extend(all);
    }
    for one in &mut slow {
        one.all = flows.get(&(one.from, one.to)).map_or(one.flow, |figures| figures.all);
    }
    slow.sort_by_key(|one| (core::cmp::Reverse(one.all.sending_us()), one.from, one.to));
    slow
}

/// Those that are slow beside the others.
fn slow_of(is_within: bool, mut flows: Vec<((Rank, Rank), TcpFlow)>) -> Vec<SlowFlow> {
    flows.retain(|(_, flow)| flow.is_known());
    if flows.len() < FLOWS_MIN {
        return Vec::new();
    }
    let mut rates: Vec<u64> = flows.iter().map(|(_, flow)| flow.bytes_per_s()).collect();
    let mut shares: Vec<u64> = flows.iter().map(|(_, flow)| flow.sending_ppm()).collect();
    rates.sort_unstable();
    shares.sort_unstable();
    // If half of them are slow, the others are what is usual.
    let usual_bytes_per_s = rates[rates.len() / 2];
    let usual_ppm = shares[(shares.len() - 1) / 2];
    let slow_bytes_per_s = match usual_bytes_per_s / TIMES_SLOWER_MIN {
        slow if is_within => slow.min(WITHIN_BYTES_PER_S),
        slow => slow,
    };
    let is_slow = |flow: &TcpFlow| {
        flow.called_ppm() >= SHARE_PPM_MIN
            && flow.sending_ppm() >= usual_ppm.saturating_mul(TIMES_BUSY_MIN)
            && flow.is_queued()
            && flow.is_taken()
            && flow.bytes_per_s() <= slow_bytes_per_s
    };
    let slow = flows.iter().filter(|(_, flow)| is_slow(flow));
    let slow =
        slow.map(|&((from, to), flow)| SlowFlow { from, to, flow, all: flow, usual_bytes_per_s });
    slow.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// What a connection did in each of many readings, four in a second.
    #[derive(Clone, Copy)]
    struct Pace {
        busy_ppm: u64,
        window_ppm: u64,
        bytes_per_s: u64,
        is_queued: bool,
    }

    /// As of a ring of ranks that sum up gradients.
    const IDLE: Pace =
        Pace { busy_ppm: 5_000, window_ppm: 0, bytes_per_s: 950_000, is_queued: false };
    const HELD: Pace =
        Pace { busy_ppm: 1_000_000, window_ppm: 0, bytes_per_s: 950_000, is_queued: true };

    fn reading(pace: Pace) -> TcpFlow {
        TcpFlow {
            elapsed_ns: SECOND_NS / 4,
            called_ns: SECOND_NS / 5,
            busy_us: pace.busy_ppm / 4,
            window_us: pace.window_ppm / 4,
            bytes: pace.bytes_per_s / 4,
            readings: 1,
            queued: pace.is_queued.into(),
        }
    }

    fn figures(is_within: bool, paces: &[(u32, Pace)]) -> TcpFigures {
        let mut figures = TcpFigures { is_within, ..TcpFigures::default() };
        for &(readings, pace) in paces {
            (0..readings).for_each(|_| figures.add(&reading(pace)));
        }
        figures
    }

    /// The slow ones of a ring of connections, each with its pace over ten seconds.
    fn slow(is_within: bool, paces: &[Pace]) -> Vec<(Rank, Rank)> {
        let size = u32::try_from(paces.len()).expect("few ranks");
        let ring = (0..size).zip(paces);
        let flows = ring
            .map(|(from, &pace)| ((from, (from + 1) % size), figures(is_within, &[(40, pace)])));
        ends(&slow_flows(&flows.collect()))
    }

    fn ends(slow: &[SlowFlow]) -> Vec<(Rank, Rank)> {
        slow.iter().map(|one| (one.from, one.to)).collect()
    }

    #[test]
    fn a_connection_that_holds_a_ring_up_is_slow() {
        assert_eq!(slow(true, &[IDLE, HELD, IDLE]), [(1, 2)]);
        assert_eq!(slow(false, &[HELD, IDLE, IDLE, IDLE]), [(0, 1)]);
        assert_eq!(slow(true, &[IDLE, IDLE, IDLE]), []);
        assert_eq!(slow(true, &[HELD, HELD, HELD]), [], "none is slower than the others");
        assert_eq!(slow(true, &[IDLE, HELD]), [], "too few to compare");
    }

    #[test]
    fn fast_connections_with_much_data_are_not_slow() {
        let bulk = |bytes_per_s| Pace { bytes_per_s, ..HELD };
        let all = [bulk(1_100_000_000), bulk(1_000_000_000), bulk(900_000_000)];
        assert_eq!(slow(false, &all), [], "all are busy");
        // What is short goes at once, what is long at the rate of the medium.
        let short = Pace { busy_ppm: 500, bytes_per_s: 4_000_000, ..IDLE };
        assert_eq!(slow(true, &[bulk(1_500_000_000), short, short, short]), []);
        let short = Pace { busy_ppm: 5_000, bytes_per_s: 4_000_000, ..IDLE };
        assert_eq!(slow(false, &[bulk(1_100_000_000), short, short, short]), []);
        assert_eq!(slow(false, &[bulk(110_000_000), short, short, short]), [(0, 1)]);
    }

    #[test]
    fn a_receiver_that_takes_nothing_makes_no_connection_slow() {
        let stopped = Pace { window_ppm: 990_000, ..HELD };
        assert_eq!(slow(true, &[IDLE, stopped, IDLE, IDLE]), []);
        // As of 8 MB to a rank that comes by 0.9 s later than the others.
        let late = Pace { busy_ppm: 990_000, window_ppm: 450_000, ..HELD };
        assert_eq!(slow(true, &[IDLE, late, IDLE, IDLE]), []);
        // Of the last bytes of a message it is not said at once that they have come.
        let late = Pace { is_queued: false, ..HELD };
        assert_eq!(slow(true, &[IDLE, late, IDLE, IDLE]), []);
    }

    #[test]
    fn a_slow_connection_may_be_one_between_hosts_beside_fast_ones_within() {
        let mut flows = BTreeMap::new();
        for from in 0..4 {
            flows.insert((from, from + 1), figures(true, &[(40, IDLE)]));
        }
        let between = Pace { bytes_per_s: 30_000_000, ..HELD };
        flows.insert((4, 0), figures(false, &[(40, between)]));
        assert_eq!(slow_flows(&flows), [], "there is no other between hosts");
        for from in 5..8 {
            flows.insert((from, 0), figures(false, &[(40, Pace { busy_ppm: 2_000, ..IDLE })]));
        }
        assert_eq!(ends(&slow_flows(&flows)), [(4, 0)]);
    }

    #[test]
    fn a_connection_that_becomes_slow_is_told_with_its_busiest_stretch() {
        let mut flows = BTreeMap::new();
        for from in 0..4 {
            let to = (from + 1) % 4;
            let paces = if from == 2 { [(80, IDLE), (12, HELD)] } else { [(80, IDLE), (12, IDLE)] };
            flows.insert((from, to), figures(true, &paces));
        }
        let [one] = &slow_flows(&flows)[..] else { panic!("one connection") };
        assert_eq!((one.from, one.to, one.flow.elapsed_ns), (2, 3, SECOND_NS));
        assert_eq!((one.flow.sending_ppm(), one.flow.bytes_per_s()), (1_000_000, 950_000));
        assert_eq!(one.all.readings, 92);
        assert!(one.usual_bytes_per_s > 50 * one.flow.bytes_per_s(), "{one:?}");
    }

    #[test]
    fn what_is_slow_in_collectives_is_slow_beside_much_computation() {
        let of = |called_ns| {
            let mut flow = TcpFlow { called_ns, elapsed_ns: 10 * SECOND_NS, ..TcpFlow::default() };
            (flow.busy_us, flow.bytes, flow.readings, flow.queued) = (2_000_000, 1 << 20, 40, 8);
            let other = TcpFlow { busy_us: 20_000, queued: 0, ..flow };
            let flows = [((0, 1), other), ((1, 2), flow), ((2, 0), other)];
            slow_of(true, flows.into()).len()
        };
        assert_eq!(of(3 * SECOND_NS), 1);
        assert_eq!(of(6 * SECOND_NS), 0, "a third of the time in collectives");
        assert_eq!(of(0), 0, "it is not known");
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn both_ends_of_a_connection_find_one_another() {
        let of =
            |local: &str, remote: &str, host| TcpEnds::of(address(local), address(remote), host);
        for (one, other) in [("10.0.0.1:1", "10.0.0.2:1"), ("[fe80::1]:7", "[fe80::2]:9")] {
            let (mine, theirs) = (of(one, other, 1), of(other, one, 2));
            assert_eq!((mine.own, mine.peer), (theirs.peer, theirs.own));
            assert!(!mine.is_within && mine.own != mine.peer);
        }
        // Each host has a loopback interface of its own.
        let (one, other) = ("127.0.0.1:40000", "127.0.0.1:40001");
        assert!(of(one, other, 1).is_within);
        assert_eq!(of(one, other, 1).own, of(other, one, 1).peer);
        assert_ne!(of(one, other, 1).own, of(other, one, 2).peer);
    }

    fn socket(rank: Rank, peer: u64, flow: TcpFlow) -> TcpSocket {
        TcpSocket { rank, peer, is_within: true, flow }
    }

    #[test]
    fn sockets_meet_in_any_order_and_of_several_the_busiest_counts() {
        let (mut trace, mut found) = (TcpTrace::default(), BTreeMap::new());
        let named = TcpFlow::default();
        // The other end comes later, and a socket of no rank never.
        let first = [(10, socket(1, 20, reading(HELD))), (11, socket(1, 99, reading(HELD)))];
        assert_eq!(trace.take(first.into(), &mut found), 0);
        assert!(found.is_empty());
        assert_eq!(trace.take([(20, socket(2, 10, named))].into(), &mut found), 0);
        assert_eq!(found.keys().collect::<Vec<_>>(), [&(1, 2)]);
        let more = [
            (12, socket(1, 21, reading(IDLE))),
            (21, socket(2, 12, named)),
            (10, socket(1, 20, reading(HELD))),
        ];
        assert_eq!(trace.take(more.into(), &mut found), 0);
        let all = found[&(1, 2)].all;
        assert_eq!((all.readings, all.queued), (2, 2), "{all:?}");
        assert_eq!(found.len(), 1);
    }
}
