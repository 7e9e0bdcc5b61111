//! TCP connections between ranks: how long each has had data to send, and how fast it went.
//!
//! In a collective over a slow connection all ranks come in time and leave late, so that which rank
//! came last says nothing on it. The kernel counts at each end of a connection for how long data
//! was under way, and leaves compare these counters from reading to reading ([`TcpFlow`]). A socket
//! is known by the addresses of its connection ([`TcpEnds`]), and the two ends of a connection find
//! one another where all answers come together ([`TcpTrace`]). A connection is slow if it was busy
//! for much of the time, and far slower than others meanwhile ([`slow_flows`]).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use sapwood_packet::Rank;

/// Sockets whose ranks are known, and those whose other end is not, at most.
const SOCKETS_MAX: usize = 1 << 17;
/// Pairs of ranks that are distinguished, at most.
const PAIRS_MAX: usize = 1 << 16;
/// A socket that is in none of this many answers one after another is closed: leaves tell of each
/// one again and again.
const UNHEARD_MAX: u64 = 1 << 11;
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
/// Calls that last are known when they have ended: no shorter time is taken for them than this
/// part of the whole.
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
    /// The same of calls that have sent or received a message and waited for it, as `MPI_Waitall`;
    /// all of the time of a reading before which the rank may have been in a collective that had
    /// not ended.
    pub waited_ns: u64,
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
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
        self.busy_us = self.busy_us.saturating_add(other.busy_us);
        self.window_us = self.window_us.saturating_add(other.window_us);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.readings = self.readings.saturating_add(other.readings);
        self.queued = self.queued.saturating_add(other.queued);
    }

    /// The same if it took as long, and it was idle in what is less. What it did is in the last
    /// part of its time.
    fn in_last(mut self, ns: u64) -> Self {
        let part = |of: u64| {
            let part = u128::from(of) * u128::from(ns);
            let part = part.div_ceil(u128::from(self.elapsed_ns.max(1)));
            u64::try_from(part).unwrap_or(of).min(of)
        };
        let readings = u32::try_from(part(self.readings.into())).unwrap_or(self.readings);
        let (called_ns, waited_ns) = (part(self.called_ns), part(self.waited_ns));
        self.readings = readings.max(self.queued);
        (self.called_ns, self.waited_ns) = (called_ns, waited_ns);
        self.elapsed_ns = ns;
        self
    }

    /// Whether it had any data under way.
    const fn has_sent(&self) -> bool {
        self.busy_us > 0 || self.bytes > 0
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

    /// The same of the time that its rank has spent in collectives; where it was in none, in waits
    /// for messages, and of the whole time where none of those has ended. A collective that has not
    /// ended counts with these waits, so that short ones beside it are not taken for all.
    fn called_ppm(&self) -> u64 {
        let in_calls_ns = if self.called_ns > 0 { self.called_ns } else { self.waited_ns };
        let called_ns = match in_calls_ns {
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

/// A socket of a rank, and what it did since its last report.
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
    ends: BTreeMap<u64, KnownEnd>,
    /// Those of which the rank at the other end is not known.
    open: BTreeMap<u64, TcpSocket>,
    /// How many answers were taken.
    answers: u64,
    /// With which of them it was looked for closed sockets.
    forgotten: u64,
    /// Ends, and pairs of ranks, that were counted as without room; of each as many as there is
    /// room for others, at most.
    left_out_ends: BTreeSet<u64>,
    left_out_pairs: BTreeSet<(Rank, Rank)>,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug)]
struct KnownEnd {
    rank: Rank,
    /// The answer that named it last.
    heard: u64,
    /// Up to which time of its pair of ranks its activity was reported; none until it is known
    /// which pair that is.
    until_ns: Option<u64>,
}

/// What a pair of ranks did in the time of one answer.
#[derive(Clone, Copy, Debug)]
struct PairAnswer {
    /// The connection that was busy for longest.
    busiest: TcpSocket,
    /// Up to which time of the pair it is known.
    until_ns: u64,
}

impl TcpTrace {
    /// Takes the sockets of an answer; how many of them, and of pairs of ranks, find no room and
    /// were not counted before. Of several connections between two ranks the one counts that was
    /// busy for longest; time passes once for all of them.
    pub fn take(
        &mut self,
        sockets: BTreeMap<u64, TcpSocket>,
        found: &mut BTreeMap<(Rank, Rank), TcpFigures>,
    ) -> u64 {
        self.answers += 1;
        self.forget_closed(&sockets);
        let mut left_out = 0;
        for (own, socket) in sockets {
            if !self.name(own, socket.rank) {
                left_out += u64::from(note(&mut self.left_out_ends, own, SOCKETS_MAX));
                continue;
            }
            self.open.entry(own).and_modify(|mine| mine.merge(&socket)).or_insert(socket);
        }
        for (pair, answer) in self.resolve(found) {
            let is_known = found.contains_key(&pair);
            // Of a pair that has sent nothing yet nothing is kept but its time, by its ends.
            if !is_known && !answer.busiest.flow.has_sent() {
                continue;
            }
            if !is_known && found.len() >= PAIRS_MAX {
                left_out += u64::from(note(&mut self.left_out_pairs, pair, PAIRS_MAX));
                continue;
            }
            let figures = found.entry(pair).or_default();
            figures.is_within = answer.busiest.is_within;
            let passed_ns = answer.until_ns.saturating_sub(figures.all.elapsed_ns);
            figures.add(&answer.busiest.flow.in_last(passed_ns));
        }
        left_out
    }

    /// Notes whose an end is; whether there is room for it.
    fn name(&mut self, own: u64, rank: Rank) -> bool {
        let heard = self.answers;
        if let Some(known) = self.ends.get_mut(&own)
            && known.rank == rank
        {
            known.heard = heard;
            return true;
        }
        let has_room = self.ends.len() < SOCKETS_MAX || self.ends.contains_key(&own);
        if has_room {
            self.ends.insert(own, KnownEnd { rank, heard, until_ns: None });
        }
        has_room
    }

    /// Takes out the sockets of which both ranks are known, by these.
    fn resolve(
        &mut self,
        found: &BTreeMap<(Rank, Rank), TcpFigures>,
    ) -> BTreeMap<(Rank, Rank), PairAnswer> {
        let mut pairs: BTreeMap<(Rank, Rank), PairAnswer> = BTreeMap::new();
        let ends = &mut self.ends;
        self.open.retain(|own, socket| {
            let Some(to) = ends.get(&socket.peer).map(|peer| peer.rank) else { return true };
            let pair = (socket.rank, to);
            // Those before it may have been told of for longer.
            let passed_ns = || found.get(&pair).map_or(0, |figures| figures.all.elapsed_ns);
            let elapsed_ns = socket.flow.elapsed_ns;
            let Some(end) = ends.get_mut(own) else { return false };
            let until_ns = match end.until_ns {
                Some(until_ns) => until_ns.saturating_add(elapsed_ns),
                None => passed_ns().max(elapsed_ns),
            };
            end.until_ns = Some(until_ns);
            // What was only named has done nothing yet.
            if to != socket.rank && elapsed_ns > 0 {
                let answer = PairAnswer { busiest: *socket, until_ns };
                let mine = pairs.entry(pair).or_insert(answer);
                mine.until_ns = mine.until_ns.max(until_ns);
                let sent = |one: &TcpSocket| (one.flow.sending_us(), one.flow.bytes);
                if sent(socket) > sent(&mine.busiest) {
                    mine.busiest = *socket;
                }
            }
            false
        });
        pairs
    }

    /// Makes room for new sockets, if there is none and was none for some answers.
    fn forget_closed(&mut self, sockets: &BTreeMap<u64, TcpSocket>) {
        let is_due = self.answers >= self.forgotten + UNHEARD_MAX / 16;
        // Which of them are new matters only where all of them might find no room.
        if self.ends.len() + sockets.len() <= SOCKETS_MAX || !is_due {
            return;
        }
        let new = sockets.keys().filter(|own| !self.ends.contains_key(own)).count();
        if self.ends.len() + new <= SOCKETS_MAX {
            return;
        }
        self.forgotten = self.answers;
        let since = self.answers.saturating_sub(UNHEARD_MAX);
        self.ends.retain(|_, end| end.heard >= since);
        let ends = &self.ends;
        self.open.retain(|own, _| ends.contains_key(own));
    }
}

/// Adds to a set if it has room and has it not yet; whether it did.
fn note<T: Ord>(told: &mut BTreeSet<T>, one: T, most: usize) -> bool {
    told.len() < most && told.insert(one)
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

/// What a connection goes over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Medium {
    WithinHost,
    BetweenHosts,
}

impl Medium {
    const fn of(figures: &TcpFigures) -> Self {
        if figures.is_within { Self::WithinHost } else { Self::BetweenHosts }
    }
}

/// The connections that were slow over the whole run, or over their busiest stretch.
#[must_use]
pub fn slow_flows(flows: &BTreeMap<(Rank, Rank), TcpFigures>) -> Vec<SlowFlow> {
    let mut slow = Vec::new();
    for medium in [Medium::WithinHost, Medium::BetweenHosts] {
        // Connections within a host are another medium than those between hosts.
        let alike = || flows.iter().filter(move |(_, one)| Medium::of(one) == medium);
        let all = slow_of(medium, alike().map(|(&ends, one)| (ends, one.all)).collect());
        let parts = alike().map(|(&ends, one)| (ends, one.busiest)).collect();
        let parts = slow_of(medium, parts);
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
fn slow_of(medium: Medium, mut flows: Vec<((Rank, Rank), TcpFlow)>) -> Vec<SlowFlow> {
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
        slow if medium == Medium::WithinHost => slow.min(WITHIN_BYTES_PER_S),
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
    use super::Medium::{BetweenHosts, WithinHost};
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
            waited_ns: 0,
            busy_us: pace.busy_ppm / 4,
            window_us: pace.window_ppm / 4,
            bytes: pace.bytes_per_s / 4,
            readings: 1,
            queued: pace.is_queued.into(),
        }
    }

    fn figures(medium: Medium, paces: &[(u32, Pace)]) -> TcpFigures {
        let is_within = medium == WithinHost;
        let mut figures = TcpFigures { is_within, ..TcpFigures::default() };
        for &(readings, pace) in paces {
            (0..readings).for_each(|_| figures.add(&reading(pace)));
        }
        figures
    }

    /// The slow ones of a ring of connections, each with its pace over ten seconds.
    fn slow(medium: Medium, paces: &[Pace]) -> Vec<(Rank, Rank)> {
        let size = u32::try_from(paces.len()).expect("few ranks");
        let ring = (0..size).zip(paces);
        let flows =
            ring.map(|(from, &pace)| ((from, (from + 1) % size), figures(medium, &[(40, pace)])));
        ends(&slow_flows(&flows.collect()))
    }

    fn ends(slow: &[SlowFlow]) -> Vec<(Rank, Rank)> {
        slow.iter().map(|one| (one.from, one.to)).collect()
    }

    #[test]
    fn a_connection_that_holds_a_ring_up_is_slow() {
        assert_eq!(slow(WithinHost, &[IDLE, HELD, IDLE]), [(1, 2)]);
        assert_eq!(slow(BetweenHosts, &[HELD, IDLE, IDLE, IDLE]), [(0, 1)]);
        assert_eq!(slow(WithinHost, &[IDLE, IDLE, IDLE]), []);
        assert_eq!(slow(WithinHost, &[HELD, HELD, HELD]), [], "none is slower than the others");
        assert_eq!(slow(WithinHost, &[IDLE, HELD]), [], "too few to compare");
    }

    #[test]
    fn fast_connections_with_much_data_are_not_slow() {
        let bulk = |bytes_per_s| Pace { bytes_per_s, ..HELD };
        let all = [bulk(1_100_000_000), bulk(1_000_000_000), bulk(900_000_000)];
        assert_eq!(slow(BetweenHosts, &all), [], "all are busy");
        // What is short goes at once, what is long at the rate of the medium.
        let short = Pace { busy_ppm: 500, bytes_per_s: 4_000_000, ..IDLE };
        assert_eq!(slow(WithinHost, &[bulk(1_500_000_000), short, short, short]), []);
        let short = Pace { busy_ppm: 5_000, bytes_per_s: 4_000_000, ..IDLE };
        assert_eq!(slow(BetweenHosts, &[bulk(1_100_000_000), short, short, short]), []);
        assert_eq!(slow(BetweenHosts, &[bulk(110_000_000), short, short, short]), [(0, 1)]);
    }

    #[test]
    fn a_receiver_that_takes_nothing_makes_no_connection_slow() {
        let stopped = Pace { window_ppm: 990_000, ..HELD };
        assert_eq!(slow(WithinHost, &[IDLE, stopped, IDLE, IDLE]), []);
        // As of 8 MB to a rank that comes by 0.9 s later than the others.
        let late = Pace { busy_ppm: 990_000, window_ppm: 450_000, ..HELD };
        assert_eq!(slow(WithinHost, &[IDLE, late, IDLE, IDLE]), []);
        // Of the last bytes of a message it is not said at once that they have come.
        let late = Pace { is_queued: false, ..HELD };
        assert_eq!(slow(WithinHost, &[IDLE, late, IDLE, IDLE]), []);
    }

    #[test]
    fn a_slow_connection_may_be_one_between_hosts_beside_fast_ones_within() {
        let mut flows = BTreeMap::new();
        for from in 0..4 {
            flows.insert((from, from + 1), figures(WithinHost, &[(40, IDLE)]));
        }
        let between = Pace { bytes_per_s: 30_000_000, ..HELD };
        flows.insert((4, 0), figures(BetweenHosts, &[(40, between)]));
        assert_eq!(slow_flows(&flows), [], "there is no other between hosts");
        for from in 5..8 {
            flows.insert(
                (from, 0),
                figures(BetweenHosts, &[(40, Pace { busy_ppm: 2_000, ..IDLE })]),
            );
        }
        assert_eq!(ends(&slow_flows(&flows)), [(4, 0)]);
    }

    #[test]
    fn a_connection_that_becomes_slow_is_told_with_its_busiest_stretch() {
        let mut flows = BTreeMap::new();
        for from in 0..4 {
            let to = (from + 1) % 4;
            let paces = if from == 2 { [(80, IDLE), (12, HELD)] } else { [(80, IDLE), (12, IDLE)] };
            flows.insert((from, to), figures(WithinHost, &paces));
        }
        let [one] = &slow_flows(&flows)[..] else { panic!("one connection") };
        assert_eq!((one.from, one.to, one.flow.elapsed_ns), (2, 3, SECOND_NS));
        assert_eq!((one.flow.sending_ppm(), one.flow.bytes_per_s()), (1_000_000, 950_000));
        assert_eq!(one.all.readings, 92);
        assert!(one.usual_bytes_per_s > 50 * one.flow.bytes_per_s(), "{one:?}");
    }

    #[test]
    fn what_is_slow_in_calls_is_slow_beside_much_computation() {
        let of = |called_ns, waited_ns| {
            let elapsed_ns = 10 * SECOND_NS;
            let mut flow = TcpFlow { called_ns, waited_ns, elapsed_ns, ..TcpFlow::default() };
            (flow.busy_us, flow.bytes, flow.readings, flow.queued) = (2_000_000, 1 << 20, 40, 8);
            let other = TcpFlow { busy_us: 20_000, queued: 0, ..flow };
            let flows = [((0, 1), other), ((1, 2), flow), ((2, 0), other)];
            slow_of(WithinHost, flows.into()).len()
        };
        assert_eq!(of(3 * SECOND_NS, 0), 1);
        assert_eq!(of(6 * SECOND_NS, 0), 0, "a third of the time in collectives");
        assert_eq!(of(0, 0), 0, "it is not known");
        assert_eq!(of(0, 3 * SECOND_NS), 1, "there are only messages");
        assert_eq!(of(0, 6 * SECOND_NS), 0, "a third of the time in waits for these");
        assert_eq!(of(3 * SECOND_NS, 6 * SECOND_NS), 1, "in collectives");
        assert_eq!(of(0, 10 * SECOND_NS), 0, "it may have been in one that has not ended");
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

    /// Two connections from rank 1 to rank 2, both named.
    fn parallel() -> TcpTrace {
        let mut trace = TcpTrace::default();
        let named = |rank, peer| socket(rank, peer, TcpFlow::default());
        let ends = [(10, named(1, 20)), (11, named(1, 21)), (20, named(2, 10)), (21, named(2, 11))];
        assert_eq!(trace.take(ends.into(), &mut BTreeMap::new()), 0);
        trace
    }

    #[test]
    fn the_time_of_parallel_connections_passes_once() {
        let (mut trace, mut found) = (parallel(), BTreeMap::new());
        for _ in 0..40 {
            trace.take([(10, socket(1, 20, reading(HELD)))].into(), &mut found);
        }
        // The other one was idle until now, and is the busier one in this reading.
        let mut late = reading(HELD);
        (late.elapsed_ns, late.called_ns) = (41 * SECOND_NS / 4, 41 * SECOND_NS / 5);
        late.readings = 41;
        let both = [(10, socket(1, 20, reading(IDLE))), (11, socket(1, 21, late))];
        trace.take(both.into(), &mut found);
        let all = found[&(1, 2)].all;
        assert_eq!((all.elapsed_ns, all.called_ns), (41 * SECOND_NS / 4, 41 * SECOND_NS / 5));
        assert_eq!((all.readings, all.queued, all.sending_ppm()), (41, 41, 1_000_000));
    }

    #[test]
    fn time_in_which_a_pair_sends_nothing_is_added_and_makes_no_pair() {
        let (mut trace, mut found) = (parallel(), BTreeMap::new());
        let idle = TcpFlow { elapsed_ns: 9 * SECOND_NS, readings: 36, ..TcpFlow::default() };
        let mut take = |flow| {
            trace.take([(10, socket(1, 20, flow))].into(), &mut found);
            found.get(&(1, 2)).map(|figures: &TcpFigures| figures.all.elapsed_ns)
        };
        assert_eq!(take(idle), None);
        assert_eq!(take(reading(HELD)), Some(9 * SECOND_NS + SECOND_NS / 4));
        assert_eq!(take(idle), Some(18 * SECOND_NS + SECOND_NS / 4));
    }

    #[test]
    fn a_pair_without_room_is_counted_once_and_closed_sockets_make_room() {
        let (mut trace, mut found) = (parallel(), BTreeMap::new());
        let pairs = u32::try_from(PAIRS_MAX).expect("a number of pairs");
        found.extend((0..pairs).map(|one| ((one + 3, one), TcpFigures::default())));
        let mut told = || trace.take([(10, socket(1, 20, reading(HELD)))].into(), &mut found);
        assert_eq!([told(), told()], [1, 0]);
        let mut trace = TcpTrace::default();
        let mut found = BTreeMap::new();
        let named = |own: u64| (own, socket(1, own, TcpFlow::default()));
        let most = SOCKETS_MAX as u64;
        let mut told =
            |ends: core::ops::Range<u64>| trace.take(ends.map(named).collect(), &mut found);
        assert_eq!(told(1..most + 1), 0);
        assert_eq!([told(most + 1..most + 4), told(most + 1..most + 4)], [3, 0]);
        for _ in 0..UNHEARD_MAX {
            assert_eq!(told(1..3), 0);
        }
        assert_eq!(told(most + 1..most + 9), 0, "all but two are closed");
    }
}
