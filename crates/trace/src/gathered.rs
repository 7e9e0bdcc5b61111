//! What leaves have gathered of their ranks' events, and the merging of it on the way up.
//!
//! Instances of collectives are merged by their key; a message's send and its receive meet where
//! their ways meet, and leave the time that one waited for the other. What has not met yet travels
//! on. Waits are sums per rank and event, and per rank that made others wait; nothing in a packet
//! grows with the number of events that have been settled. Of a collective whose processes are all
//! at one leaf only sums travel. A packet has these values:
//!
//! ```text
//!  0  %ud    version, 16
//!  1  %auld  the clock of the lowest rank: rank, ticks, nanoseconds, scale, whether it is cycles;
//!            or nothing
//!  2  %auld  counters, in the order of `Counter`
//!  3  %auld  instances, 22 words each: key, sizes, times, what at most two kinds of processes
//!            called, and which at most two amounts they gave: the bytes of both, how many gave
//!            them, and the lowest of each
//!  4  %auld  sends, 8 words each, with whether the call receives, too
//!  5  %auld  receives, 9 words each
//!  6  %auld  calls that complete receives, 10 words each
//!  7  %auld  waits by rank and event, 5 words each
//!  8  %auld  ranks that made others wait, 7 words each
//!  9  %auld  waits by place, 5 words each: communicator; function and the one that was waited for;
//!            the one that waited; calls; nanoseconds
//! 10  %auld  transfers by sender and receiver, 6 words each: these two; messages; nanoseconds;
//!            bytes; messages of calls that send, too; logarithms of the times
//! 11  %auld  calls that send and receive, 12 words each: the rank, which halves are known, and
//!            whether a blocking receive took what was sent; the begin of the call; of what it has
//!            received the sender, the clock and the event of the call, the clock's error, the time
//!            of the call, the class of the size; the receiver of what it has sent
//! 12  %auld  how many collectives those that have ended had called, 5 words each: communicator;
//!            its size, how many have ended; twice, of those that called as many, how many they
//!            called and how many they are; the lowest of each
//! 13  %auld  hops of bypassed reductions of which not all have met yet, 4 words each, as they were
//!            recorded
//! 14  %auld  sums of those of which all have met, by edge, 20 words each: parent and child;
//!            reductions, in which the child was last, late, bypassed; how many times, their sum
//!            and the longest of five times
//! 15  %auld  whole collectives by place, 5 words each: communicator; function and size; how many;
//!            those of which it is not known which rank came last; the highest number of one
//! 16  %auld  how late ranks were in these, 5 words each: communicator; function and rank; the
//!            power of two of nanoseconds; how many times, and their sum
//! 17  %auld  the one of them to which a rank came latest, 4 words, or nothing: nanoseconds; rank
//!            and function; communicator; number
//! 18  %auld  sockets of TCP connections that are new, have sent anything, or were not reported for
//!            ten to twenty seconds, 10 words each: the names of both ends; the rank, and whether
//!            both are on one host; of the time since the row before its nanoseconds, those of
//!            collectives and those of waits for messages in it, microseconds with data under way,
//!            those of them without room at the other end, bytes; readings, and those at which data
//!            waited to be sent
//! 19  %auld  events that were overwritten before they were read by ring, 2 words each: rank and
//!            thread; how many
//! 20  %uld   how many reductions the sums of 14 are of
//! ```

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::Rank;

use crate::bypass::{BypassFigures, settle_whole};
use crate::bypass_hop::BypassHop;
use crate::dropped::{DroppedRings, RankRing};
use crate::exchange::{Exchange, ExchangeReceived, Taken};
use crate::file::FileClock;
use crate::instance::{Instance, InstanceKey};
use crate::link::Link;
use crate::message::{Awaited, CallKey, MessageKey, ReceivingCall, Sent, Wait, wait};
use crate::place::{
    LateKey, LateTimes, MESSAGES, OTHERS, Outlier, PlaceKey, PlaceWaits, WholeCollectives,
};
use crate::tcp_flow::TcpSocket;
use crate::total::Total;

/// The most entries of each kind in one packet. What is beyond is counted.
pub const ENTRIES_MAX: usize = 1 << 16;

/// What is counted beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Events that were read.
    Events = 0,
    /// Events that were overwritten before they were read.
    Dropped = 1,
    /// Events of threads that have no ring.
    WithoutRing = 2,
    /// Calls on communicators for which there was no room.
    WithoutSpace = 3,
    /// Receives of which it is not known which message they took.
    Unsure = 4,
    /// Collectives whose number is not known.
    Unordered = 5,
    /// Entries that found no room on their way.
    LeftOut = 6,
    /// Readings that ended early because the share of a processor was used up.
    Throttled = 7,
    /// Readings that ended because the ranks did not come to where events are to be read.
    PutOff = 8,
    /// Records that were read at another moment, before they would have been overwritten.
    Overdue = 9,
    /// Ranks whose event file cannot be read any more.
    Unreadable = 10,
    /// Events of communicators that were freed, and whose place another one had before the events
    /// were read.
    Former = 11,
    /// Hops of bypassed reductions that were overwritten before they were read.
    HopsDropped = 12,
    /// Those of threads that have no ring of hops.
    HopsWithoutRing = 13,
    /// Those of a kind that is not known.
    HopsUnknown = 14,
    /// Those that found no room on their way.
    HopsLeftOut = 15,
    /// Ranks whose files have rings of hops.
    HopRanks = 16,
    /// Records of calls that their rank cannot have written.
    Damaged = 17,
    /// Leaves that cannot ask what the kernel counts of TCP connections.
    TcpUnreadable = 18,
    /// Sockets of TCP connections that found no room.
    TcpLeftOut = 19,
}

/// How many counters there are.
pub const COUNTERS: usize = 20;

/// How one rank has waited in one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Calls of which it is known.
    pub calls: u64,
    /// Nanoseconds.
    pub wait_ns: u64,
    /// By how much these may be off.
    pub error_ns: u64,
    /// Calls whose wait the clocks do not tell.
    pub undecided: u64,
}

/// How one rank has made others wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Collectives for which it was the one that others waited for.
    pub last: u64,
    /// Nanoseconds that all others together have waited for it in these.
    pub collective_ns: u64,
    /// Calls that waited for a message that it had not begun to send.
    pub sends: u64,
    /// Nanoseconds of these.
    pub send_ns: u64,
    /// Sends and exchanges that waited for its receive to begin.
    pub receives: u64,
    /// Nanoseconds of these.
    pub receive_ns: u64,
}

impl Waited {
    /// Adds a call.
    pub const fn add(&mut self, wait: Wait) {
        match wait {
            Wait::Known(ns, error) => {
                self.calls = self.calls.saturating_add(1);
                self.wait_ns = self.wait_ns.saturating_add(ns);
                self.error_ns = self.error_ns.saturating_add(error);
            }
            Wait::Undecided => self.undecided = self.undecided.saturating_add(1),
        }
    }

    /// Adds other calls.
    pub const fn merge(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
        self.error_ns = self.error_ns.saturating_add(other.error_ns);
        self.undecided = self.undecided.saturating_add(other.undecided);
    }
}

impl Made {
    /// Adds what happened elsewhere.
    pub const fn merge(&mut self, other: &Self) {
        self.last = self.last.saturating_add(other.last);
        self.collective_ns = self.collective_ns.saturating_add(other.collective_ns);
        self.sends = self.sends.saturating_add(other.sends);
        self.send_ns = self.send_ns.saturating_add(other.send_ns);
        self.receives = self.receives.saturating_add(other.receives);
        self.receive_ns = self.receive_ns.saturating_add(other.receive_ns);
    }

    /// All that others have waited for it, in nanoseconds.
    #[must_use]
    pub const fn total_ns(&self) -> u64 {
        self.collective_ns.saturating_add(self.send_ns).saturating_add(self.receive_ns)
    }
}

/// What is on its way up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    /// The clock of the lowest rank.
    pub reference: Option<(Rank, FileClock)>,
    /// By [`Counter`].
    pub counters: [u64; COUNTERS],
    /// By ring, what is counted as dropped.
    pub dropped: DroppedRings,
    /// Collectives.
    pub instances: BTreeMap<InstanceKey, Instance>,
    /// Messages whose receive is not known yet.
    pub sends: BTreeMap<MessageKey, Sent>,
    /// Messages whose send is not known yet.
    pub receives: BTreeMap<MessageKey, Awaited>,
    /// Calls of which not all senders are known yet.
    pub calls: BTreeMap<CallKey, ReceivingCall>,
    /// Waits by rank and event.
    pub waited: BTreeMap<(Rank, u32), Waited>,
    /// The ranks that made others wait.
    pub made: BTreeMap<Rank, Made>,
    /// By place, the rank that was waited for, and the one that waited.
    pub placed: BTreeMap<(PlaceKey, Rank, Rank), PlaceWaits>,
    /// By sender and receiver; [`OTHERS`] twice for those that found no room.
    pub links: BTreeMap<(Rank, Rank), Link>,
    /// Calls that send one message and receive another, of which not both have met yet.
    pub exchanges: BTreeMap<CallKey, Exchange>,
    /// By communicator, of processes that have ended.
    pub totals: BTreeMap<u64, Total>,
    /// Hops of bypassed reductions of which not all are here.
    pub hops: Vec<BypassHop>,
    /// Sums of the reductions of which all hops have met.
    pub bypass: BypassFigures,
    /// Sockets of TCP connections, by the name of their end.
    pub sockets: BTreeMap<u64, TcpSocket>,
    /// Collectives that are whole, by place.
    pub wholes: BTreeMap<PlaceKey, WholeCollectives>,
    /// How late ranks were in these.
    pub late: BTreeMap<LateKey, LateTimes>,
    /// The one of these to which a rank came latest.
    pub outlier: Option<Outlier>,
}

impl Gathered {
    /// Adds to a counter.
    pub const fn count(&mut self, counter: Counter, amount: u64) {
        let place = counter as usize;
        self.counters[place] = self.counters[place].saturating_add(amount);
    }

    /// Counts events of a ring that were overwritten before they were read.
    pub fn count_dropped(&mut self, ring: RankRing, events: u64) {
        self.count(Counter::Dropped, events);
        self.dropped.add(ring, events);
    }

    /// Whether nothing is in it that another packet would change; what the kernel counts of TCP
    /// connections, which goes on, is not looked at.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // What rings have lost is in the counters, too.
        self.counters == [0; COUNTERS]
            && self.instances.is_empty()
            && self.sends.is_empty()
            && self.receives.is_empty()
            && self.calls.is_empty()
            && self.waited.is_empty()
            && self.made.is_empty()
            && self.placed.is_empty()
            && self.links.is_empty()
            && self.exchanges.is_empty()
            && self.totals.is_empty()
            && self.hops.is_empty()
            && self.bypass == BypassFigures::default()
            && self.wholes.is_empty()
            && self.late.is_empty()
            && self.outlier.is_none()
    }

    /// Entries that have not been settled, without hops, which keep no others from being read.
    #[must_use]
    pub fn open_entries(&self) -> usize {
        self.instances.len()
            + self.sends.len()
            + self.receives.len()
            + self.calls.len()
            + self.exchanges.len()
    }

    /// Adds what is known of an instance.
    pub fn add_instance(&mut self, key: InstanceKey, instance: &Instance) {
        match self.instances.get_mut(&key) {
            Some(mine) => mine.merge(instance),
            None => drop(self.instances.insert(key, *instance)),
        }
    }

    /// Adds how many collectives of a communicator processes had called that have ended.
    pub fn add_total(&mut self, communicator: u64, total: &Total) {
        match self.totals.get_mut(&communicator) {
            Some(mine) => mine.merge(total),
            None => drop(self.totals.insert(communicator, *total)),
        }
    }

    /// Adds a send; if its receive is here they meet.
    pub fn add_send(&mut self, key: MessageKey, sent: Sent) {
        match self.receives.remove(&key) {
            Some(awaited) => self.meet(&sent, awaited),
            None => drop(self.sends.insert(key, sent)),
        }
    }

    /// Adds a receive; if its send is here they meet.
    pub fn add_receive(&mut self, key: MessageKey, awaited: Awaited) {
        match self.sends.remove(&key) {
            Some(sent) => self.meet(&sent, awaited),
            None => drop(self.receives.insert(key, awaited)),
        }
    }

    fn meet(&mut self, sent: &Sent, awaited: Awaited) {
        if sent.span > 0 && awaited.is_blocking {
            let waited = wait(&sent.begin, sent.span, &awaited.begin);
            self.credit(sent.begin.rank, sent.event, waited);
            if let Wait::Known(ns @ 1.., _) = waited {
                self.blame_receiver(awaited.begin.rank, sent.begin.rank, ns);
            }
        }
        let (sender, receiver) = (sent.begin, awaited.begin);
        if let Some(link) = Link::of(sent, &awaited) {
            self.add_link((sender.rank, receiver.rank), &link);
        }
        if sent.is_exchange {
            let taken = Some(Taken { begin: receiver, is_blocking: awaited.is_blocking });
            let half = Exchange { received: None, taken };
            self.add_exchange((sender.rank, sender.time), &half);
        }
        let key = (receiver.rank, receiver.time);
        if awaited.is_exchange() {
            let received = ExchangeReceived::of(sent, &awaited);
            self.credit_sender(&received);
            self.add_exchange(key, &Exchange { received: Some(received), taken: None });
        } else if awaited.members > 0 {
            self.add_call(key, &ReceivingCall::of(awaited, sent));
        }
    }

    /// Adds the wait of an exchange for its sender; that for the other rank is added once it is
    /// known, which it may never be.
    fn credit_sender(&mut self, received: &ExchangeReceived) {
        let waited = received.wait_for_sender();
        self.credit(received.begin.rank, received.event, waited);
        if let Wait::Known(ns @ 1.., _) = waited {
            self.blame_sender(received.sender.rank, received.begin.rank, ns);
        }
    }

    fn add_exchange(&mut self, key: CallKey, exchange: &Exchange) {
        let whole = joined(&mut self.exchanges, key, exchange, Exchange::merge, Exchange::is_whole);
        if let Some(exchange) = whole {
            self.end_exchange(&exchange);
        }
    }

    /// Adds what the two halves of an exchange say together.
    fn end_exchange(&mut self, exchange: &Exchange) {
        let Some(received) = exchange.received else { return };
        let rank = received.begin.rank;
        if let Some(link) = exchange.link() {
            self.add_link((received.sender.rank, rank), &link);
        }
        if let Some(taker) = exchange.taker_wait() {
            // The call has been counted by its wait for the sender, as undecided if that was.
            let more = Waited { wait_ns: taker.ns, error_ns: taker.error_ns, ..Waited::default() };
            self.waited.entry((rank, received.event)).or_default().merge(&more);
            if taker.ns > 0 {
                self.blame_receiver(taker.rank, rank, taker.ns);
            }
        }
    }

    fn add_call(&mut self, key: CallKey, call: &ReceivingCall) {
        let (merge, is_whole) = (ReceivingCall::merge, ReceivingCall::is_whole);
        let Some(whole) = joined(&mut self.calls, key, call, merge, is_whole) else { return };
        let ReceivingCall { call, last, .. } = whole;
        let waited = wait(&call.begin, call.span, &last);
        self.credit(call.begin.rank, call.event, waited);
        if let Wait::Known(ns @ 1.., _) = waited {
            self.blame_sender(last.rank, call.begin.rank, ns);
        }
    }

    /// Adds what is known of a socket.
    pub fn add_socket(&mut self, own: u64, socket: &TcpSocket) {
        self.sockets.entry(own).and_modify(|mine| mine.merge(socket)).or_insert(*socket);
    }

    fn blame_sender(&mut self, sender: Rank, waiter: Rank, ns: u64) {
        self.blame(sender, &Made { sends: 1, send_ns: ns, ..Made::default() });
        self.add_message_wait(sender, waiter, ns);
    }

    fn blame_receiver(&mut self, receiver: Rank, waiter: Rank, ns: u64) {
        self.blame(receiver, &Made { receives: 1, receive_ns: ns, ..Made::default() });
        self.add_message_wait(receiver, waiter, ns);
    }

    fn add_message_wait(&mut self, culprit: Rank, waiter: Rank, ns: u64) {
        self.add_placed(MESSAGES, culprit, waiter, &PlaceWaits { calls: 1, wait_ns: ns });
    }

    /// Adds to what is known of the way from one rank to another.
    pub fn add_link(&mut self, ends: (Rank, Rank), link: &Link) {
        self.links.entry(ends).or_default().merge(link);
    }

    /// Adds a call to the waits of a rank.
    pub fn credit(&mut self, rank: Rank, event: u32, waited: Wait) {
        self.waited.entry((rank, event)).or_default().add(waited);
    }

    /// Adds to what a rank has made others wait.
    pub fn blame(&mut self, rank: Rank, made: &Made) {
        self.made.entry(rank).or_default().merge(made);
    }

    /// Adds to what one rank has waited for another at a place.
    pub fn add_placed(&mut self, place: PlaceKey, culprit: Rank, waiter: Rank, one: &PlaceWaits) {
        self.placed.entry((place, culprit, waiter)).or_default().merge(one);
    }

    /// Takes in what other leaves have gathered.
    pub fn merge(&mut self, other: Self) {
        let lowest = |one: &(Rank, FileClock)| one.0;
        self.reference = self.reference.into_iter().chain(other.reference).min_by_key(lowest);
        for (mine, theirs) in self.counters.iter_mut().zip(other.counters) {
            *mine = mine.saturating_add(theirs);
        }
        self.dropped.merge(&other.dropped);
        other.instances.iter().for_each(|(&key, one)| self.add_instance(key, one));
        other.sends.into_iter().for_each(|(key, one)| self.add_send(key, one));
        other.receives.into_iter().for_each(|(key, one)| self.add_receive(key, one));
        other.calls.iter().for_each(|(&key, one)| self.add_call(key, one));
        other.exchanges.iter().for_each(|(&key, one)| self.add_exchange(key, one));
        for (key, one) in other.waited {
            self.waited.entry(key).or_default().merge(&one);
        }
        for (rank, one) in other.made {
            self.blame(rank, &one);
        }
        for ((place, culprit, waiter), one) in other.placed {
            self.add_placed(place, culprit, waiter, &one);
        }
        for (ends, link) in other.links {
            self.add_link(ends, &link);
        }
        other.totals.iter().for_each(|(&space, one)| self.add_total(space, one));
        other.sockets.iter().for_each(|(&own, one)| self.add_socket(own, one));
        self.hops.extend(other.hops);
        self.bypass.merge(&other.bypass);
        other.wholes.iter().for_each(|(&place, one)| self.add_whole(place, one));
        other.late.iter().for_each(|(&key, times)| self.add_late(key, times));
        self.outlier = self.outlier.max(other.outlier);
    }

    /// Sums up the bypassed reductions of which all hops are here, so that these travel no further,
    /// and keeps to the number of hops that a packet may have.
    pub fn settle_hops(&mut self) {
        let settled = settle_whole(&mut self.hops);
        self.bypass.merge(&settled);
        let beyond = self.hops.len().saturating_sub(ENTRIES_MAX);
        self.hops.truncate(ENTRIES_MAX);
        self.count(Counter::HopsLeftOut, beyond as u64);
    }

    /// Keeps to the number of entries that a packet may have.
    pub fn bound(&mut self) {
        let left_out = cut(&mut self.instances)
            + cut(&mut self.sends)
            + cut(&mut self.receives)
            + cut(&mut self.calls)
            + cut(&mut self.exchanges)
            + cut(&mut self.totals);
        self.count(Counter::LeftOut, left_out);
        let left_out = cut(&mut self.sockets);
        self.count(Counter::TcpLeftOut, left_out);
        self.dropped.bound(ENTRIES_MAX);
        self.settle_hops();
        self.bound_conclusions();
        // Sums stay right, only whose they are is not known any more.
        for _ in ENTRIES_MAX..self.waited.len() {
            let last = self.waited.range(..(OTHERS, 0)).next_back().map(|(key, one)| (*key, *one));
            let Some((key, one)) = last else { break };
            self.waited.remove(&key);
            self.waited.entry((OTHERS, key.1)).or_default().merge(&one);
        }
        for _ in ENTRIES_MAX..self.made.len() {
            let last = self.made.range(..OTHERS).next_back().map(|(rank, one)| (*rank, *one));
            let Some((rank, one)) = last else { break };
            self.made.remove(&rank);
            self.blame(OTHERS, &one);
        }
        for _ in ENTRIES_MAX..self.placed.len() {
            let Some((_, one)) = self.placed.pop_last() else { break };
            self.add_placed((0, 0), OTHERS, OTHERS, &one);
        }
        for _ in ENTRIES_MAX..self.links.len() {
            let last = self.links.range(..(OTHERS, 0)).next_back().map(|(key, one)| (*key, *one));
            let Some((key, one)) = last else { break };
            self.links.remove(&key);
            self.add_link((OTHERS, OTHERS), &one);
        }
    }
}

/// What is known of a call with this part of it, once that is all; until then the part is kept.
fn joined<T: Copy>(
    open: &mut BTreeMap<CallKey, T>,
    key: CallKey,
    part: &T,
    merge: impl Fn(&mut T, &T),
    is_whole: impl Fn(&T) -> bool,
) -> Option<T> {
    let mut all = *part;
    if let Some(mine) = open.remove(&key) {
        merge(&mut all, &mine);
    }
    if is_whole(&all) {
        return Some(all);
    }
    open.insert(key, all);
    None
}

fn cut<K: Ord, V>(map: &mut BTreeMap<K, V>) -> u64 {
    let mut count = 0;
    while map.len() > ENTRIES_MAX {
        map.pop_last();
        count += 1;
    }
    count
}
