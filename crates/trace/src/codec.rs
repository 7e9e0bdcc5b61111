//! Packets of waits: rows of 64-bit words in arrays; `gathered` draws the whole.

use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;

use sapwood_packet::{Directive, ElementType, Shape, Values, ValuesRef};

use crate::TraceError;
use crate::bypass::{BypassEdge, BypassFigures, BypassTime};
use crate::bypass_hop::{BypassHop, HOP_WORDS};
use crate::dropped::{DROPPED_WORDS, DroppedRings};
use crate::exchange::{Exchange, ExchangeReceived, Taken};
use crate::file::FileClock;
use crate::gathered::{COUNTERS, ENTRIES_MAX, Gathered, Made, Waited};
use crate::instance::{Arrival, Instance, Pattern};
use crate::link::Link;
use crate::message::{Awaited, Beside, CallKey, MessageKey, ReceivingCall, Sent};
use crate::mixture::{Called, Callers, Kinds};
use crate::place::{LATENESS_CLASSES, LateTimes, Outlier, PlaceWaits, WholeCollectives};
use crate::tcp_flow::{TcpFlow, TcpSocket};
use crate::total::Total;
use crate::words::{halves, pair};

const VERSION: u32 = 16;
const WORD: Directive = Directive::new(ElementType::Uint32, Shape::Scalar);
const LONGS: Directive = Directive::new(ElementType::Uint64, Shape::Array);
const LONG: Directive = Directive::new(ElementType::Uint64, Shape::Scalar);
const LAYOUT: [Directive; 21] = [
    WORD, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS,
    LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, LONG,
];
/// Rows of an array, at most. The entry for all others is beside the others.
const ROWS_MAX: usize = ENTRIES_MAX + 1024;
/// The first of the arrays of rows.
const FIRST_ROWS: usize = 3;
const WRONG: TraceError = TraceError::Contradiction { what: "rows" };

const HAS_LAST: u64 = 1;
const HAS_ROOT: u64 = 2;
const HAS_RIVAL: u64 = 4;
const IS_MIXED: u64 = 8;
const PATTERN_SHIFT: u32 = 8;
const IS_BLOCKING: u64 = 1;
const BESIDE_SHIFT: u32 = 1;
const IS_EXCHANGE: u32 = 1 << 8;
const HAS_RECEIVED: u32 = 1;
const HAS_TAKEN: u32 = 2;
const IS_TAKER_BLOCKING: u32 = 4;

fn push_arrival(row: &mut Vec<u64>, arrival: &Arrival) {
    row.extend([arrival.time.cast_unsigned(), pair(arrival.rank, arrival.clock), arrival.error]);
}

fn arrival(words: &[u64]) -> Arrival {
    let (rank, clock) = halves(words[1]);
    Arrival { time: words[0].cast_signed(), rank, clock, error: words[2] }
}

#[allow(clippy::cast_possible_truncation, reason = "the halves are what is taken")]
fn push_instance(row: &mut Vec<u64>, (key, one): (&(u64, u32), &Instance)) {
    let (first, second) = (one.kinds.first, one.kinds.second.unwrap_or_default());
    let flags = (u64::from(one.last.is_some()) * HAS_LAST)
        | (u64::from(one.root.is_some()) * HAS_ROOT)
        | (u64::from(one.rival.is_some()) * HAS_RIVAL)
        | (u64::from(one.is_mixed) * IS_MIXED);
    row.extend([
        key.0,
        pair(key.1, one.function()),
        pair(one.size, one.count),
        flags | (one.pattern as u64) << PATTERN_SHIFT | u64::from(second.lowest) << 32,
        one.sum as u64,
        (one.sum >> 64) as u64,
        one.rival.unwrap_or(0).cast_unsigned(),
    ]);
    push_arrival(row, &one.first);
    push_arrival(row, &one.last.unwrap_or_default());
    push_arrival(row, &one.root.unwrap_or_default());
    row.extend([
        pair(first.called.root.cast_unsigned(), first.lowest),
        pair(first.count, second.count),
        pair(second.called.function, second.called.root.cast_unsigned()),
    ]);
    let first = one.amounts.map_or_else(Callers::default, |amounts| amounts.first);
    let second = one.amounts.and_then(|amounts| amounts.second).unwrap_or_default();
    row.extend([
        pair(first.called, second.called),
        pair(first.count, second.count),
        pair(first.lowest, second.lowest),
    ]);
}

/// What the processes of an instance called, of which the first did `function`.
fn kinds(words: &[u64], function: u32) -> Result<Kinds, TraceError> {
    let ((root, lowest), (count, others)) = (halves(words[16]), halves(words[17]));
    let (second_function, second_root) = halves(words[18]);
    let callers = |function, root: u32, count, lowest| {
        let called = Called { function, root: root.cast_signed() };
        Callers { called, count, lowest }
    };
    let first = callers(function, root, count, lowest);
    let second = callers(second_function, second_root, others, halves(words[3]).1);
    kinds_of(first, second)
}

/// Which amounts at most `most` processes of an instance gave; of none all is zero.
fn amounts(words: &[u64], most: u32) -> Result<Option<Kinds<u32>>, TraceError> {
    if words[19..22] == [0; 3] {
        return Ok(None);
    }
    let [called, count, lowest] = [19, 20, 21].map(|at| halves(words[at]));
    let first = Callers { called: called.0, count: count.0, lowest: lowest.0 };
    let second = Callers { called: called.1, count: count.1, lowest: lowest.1 };
    if first.count.saturating_add(second.count) > most {
        return Err(WRONG);
    }
    kinds_of(first, second).map(Some)
}

/// One kind of processes, or two in order; of a second one that is not there all is zero.
fn kinds_of<T>(first: Callers<T>, second: Callers<T>) -> Result<Kinds<T>, TraceError>
where
    T: Copy + Default + Ord,
{
    let is_single = second.count == 0;
    let is_ordered = is_single || first.called < second.called;
    if first.count == 0 || !is_ordered || (is_single && second != Callers::default()) {
        return Err(WRONG);
    }
    Ok(Kinds { first, second: (!is_single).then_some(second) })
}

fn instance(words: &[u64]) -> Result<((u64, u32), Instance), TraceError> {
    let ((sequence, function), (size, count)) = (halves(words[1]), halves(words[2]));
    let has = |flag| words[3] & flag != 0;
    let low = i128::from(words[4]);
    let one = Instance {
        kinds: kinds(words, function)?,
        amounts: amounts(words, count)?,
        pattern: Pattern::from_code(u64::from(halves(words[3]).0 >> PATTERN_SHIFT)).ok_or(WRONG)?,
        size,
        count,
        last: has(HAS_LAST).then(|| arrival(&words[10..])),
        rival: has(HAS_RIVAL).then(|| words[6].cast_signed()),
        root: has(HAS_ROOT).then(|| arrival(&words[13..])),
        first: arrival(&words[7..]),
        sum: i128::from(words[5].cast_signed()) << 64 | low,
        is_mixed: has(IS_MIXED),
    };
    if count == 0 { Err(WRONG) } else { Ok(((words[0], sequence), one)) }
}

fn push_key(row: &mut Vec<u64>, key: &MessageKey) {
    let tag = pair(key.tag.cast_unsigned(), key.number);
    row.extend([key.communicator, pair(key.source, key.destination), tag]);
}

fn message_key(words: &[u64]) -> MessageKey {
    let ((source, destination), (tag, number)) = (halves(words[1]), halves(words[2]));
    MessageKey { communicator: words[0], source, destination, tag: tag.cast_signed(), number }
}

fn push_awaited(row: &mut Vec<u64>, one: &Awaited) {
    push_arrival(row, &one.begin);
    let flags = (u64::from(one.is_blocking) * IS_BLOCKING) | ((one.beside as u64) << BESIDE_SHIFT);
    row.extend([one.span, pair(one.event, one.members), flags]);
}

fn awaited(words: &[u64]) -> Awaited {
    let (event, members) = halves(words[4]);
    let is_blocking = words[5] & IS_BLOCKING != 0;
    let beside = match words[5] >> BESIDE_SHIFT {
        1 => Beside::Send,
        2 => Beside::Nothing,
        _ => Beside::Requests,
    };
    Awaited { begin: arrival(words), span: words[3], event, members, is_blocking, beside }
}

fn push_exchange(row: &mut Vec<u64>, (key, one): (&CallKey, &Exchange)) {
    let (received, taken) = (one.received.unwrap_or_default(), one.taken.unwrap_or_default());
    let flags = (u32::from(one.received.is_some()) * HAS_RECEIVED)
        | (u32::from(one.taken.is_some()) * HAS_TAKEN)
        | (u32::from(taken.is_blocking) * IS_TAKER_BLOCKING);
    row.extend([pair(key.0, flags), key.1.cast_unsigned()]);
    push_arrival(row, &received.sender);
    row.extend([pair(received.begin.clock, received.event), received.begin.error]);
    row.extend([received.span, received.size_class.into()]);
    push_arrival(row, &taken.begin);
}

fn exchange(words: &[u64]) -> Result<(CallKey, Exchange), TraceError> {
    let ((rank, flags), time) = (halves(words[0]), words[1].cast_signed());
    let (clock, event) = halves(words[5]);
    let received = ExchangeReceived {
        sender: arrival(&words[2..]),
        begin: Arrival { time, rank, clock, error: words[6] },
        span: words[7],
        event,
        size_class: u8::try_from(words[8]).map_err(|_| WRONG)?,
    };
    let is_blocking = flags & IS_TAKER_BLOCKING != 0;
    let is_alone = flags & (HAS_TAKEN | IS_TAKER_BLOCKING) == IS_TAKER_BLOCKING;
    if flags & !(HAS_RECEIVED | HAS_TAKEN | IS_TAKER_BLOCKING) != 0 || is_alone {
        return Err(WRONG);
    }
    let one = Exchange {
        received: (flags & HAS_RECEIVED != 0).then_some(received),
        taken: (flags & HAS_TAKEN != 0).then(|| Taken { begin: arrival(&words[9..]), is_blocking }),
    };
    if one.is_whole() || one == Exchange::default() { Err(WRONG) } else { Ok(((rank, time), one)) }
}

fn push_total(row: &mut Vec<u64>, (&communicator, one): (&u64, &Total)) {
    let (first, second) = (one.kinds.first, one.kinds.second.unwrap_or_default());
    row.extend([communicator, pair(one.size, one.count), pair(first.called, first.count)]);
    row.extend([pair(second.called, second.count), pair(first.lowest, second.lowest)]);
}

fn total(words: &[u64]) -> Result<(u64, Total), TraceError> {
    let ((size, count), lowest) = (halves(words[1]), halves(words[4]));
    let callers = |word, lowest| {
        let (called, count) = halves(word);
        Callers { called, count, lowest }
    };
    let (first, second) = (callers(words[2], lowest.0), callers(words[3], lowest.1));
    let kinds = kinds_of(first, second)?;
    if first.count.saturating_add(second.count) > count {
        return Err(WRONG);
    }
    Ok((words[0], Total { size, count, kinds }))
}

fn push_edge(row: &mut Vec<u64>, (&(parent, child), one): (&(u32, u32), &BypassEdge)) {
    row.extend([pair(parent, child), one.instances, one.last, one.late, one.bypassed]);
    for time in [one.after_exit, one.behind, one.waited, one.up, one.down] {
        row.extend([time.count, time.sum_ns, time.max_ns]);
    }
}

fn edge(words: &[u64]) -> ((u32, u32), BypassEdge) {
    let time = |at: usize| {
        let [count, sum_ns, max_ns] = [at, at + 1, at + 2].map(|at| words[at]);
        BypassTime { count, sum_ns, max_ns }
    };
    let one = BypassEdge {
        instances: words[1],
        last: words[2],
        late: words[3],
        bypassed: words[4],
        after_exit: time(5),
        behind: time(8),
        waited: time(11),
        up: time(14),
        down: time(17),
    };
    (halves(words[0]), one)
}

fn push_socket(row: &mut Vec<u64>, (&own, one): (&u64, &TcpSocket)) {
    let TcpSocket { rank, peer, is_within, flow } = *one;
    row.extend([own, peer, pair(rank, is_within.into())]);
    row.extend([flow.elapsed_ns, flow.called_ns, flow.waited_ns]);
    row.extend([flow.busy_us, flow.window_us, flow.bytes, pair(flow.readings, flow.queued)]);
}

fn socket(words: &[u64]) -> Result<(u64, TcpSocket), TraceError> {
    let [own, peer, whose, elapsed_ns, called_ns, waited_ns, busy_us, window_us, bytes, read] =
        *words
    else {
        return Err(WRONG);
    };
    let ((rank, is_within), (readings, queued)) = (halves(whose), halves(read));
    let flow =
        TcpFlow { elapsed_ns, called_ns, waited_ns, busy_us, window_us, bytes, readings, queued };
    Ok((own, TcpSocket { rank, peer, is_within: is_within != 0, flow }))
}

impl Gathered {
    /// Words of a row of each array, from the array of instances on.
    pub const ROW_WORDS: [usize; 17] =
        [22, 8, 9, 10, 5, 7, 5, 6, 12, 5, HOP_WORDS, 20, 5, 5, 4, 10, DROPPED_WORDS];

    /// As the values of a packet.
    #[must_use]
    pub fn encode(&self) -> Values {
        let mut reference = Vec::new();
        if let Some((rank, clock)) = self.reference {
            let is_cycles = u64::from(clock.is_cycles);
            reference.extend([u64::from(rank), clock.ticks, clock.ns, clock.scale, is_cycles]);
        }
        let mut rows: [Vec<u64>; 17] = Default::default();
        self.instances.iter().for_each(|one| push_instance(&mut rows[0], one));
        for (key, one) in &self.sends {
            push_key(&mut rows[1], key);
            push_arrival(&mut rows[1], &one.begin);
            let is_exchange = u32::from(one.is_exchange) * IS_EXCHANGE;
            rows[1].extend([one.span, pair(one.event, u32::from(one.size_class) | is_exchange)]);
        }
        for (key, one) in &self.receives {
            push_key(&mut rows[2], key);
            push_awaited(&mut rows[2], one);
        }
        for (key, one) in &self.calls {
            rows[3].push(pair(key.0, one.known));
            push_awaited(&mut rows[3], &one.call);
            push_arrival(&mut rows[3], &one.last);
        }
        for (&(rank, event), one) in &self.waited {
            let words = [one.calls, one.wait_ns, one.error_ns, one.undecided];
            rows[4].push(pair(rank, event));
            rows[4].extend(words);
        }
        for (&rank, one) in &self.made {
            rows[5].push(rank.into());
            rows[5].extend([one.last, one.collective_ns, one.sends]);
            rows[5].extend([one.send_ns, one.receives, one.receive_ns]);
        }
        for (&((space, function), culprit, waiter), one) in &self.placed {
            rows[6].extend([space, pair(function, culprit), waiter.into()]);
            rows[6].extend([one.calls, one.wait_ns]);
        }
        for (&(sender, receiver), one) in &self.links {
            rows[7].extend([pair(sender, receiver), one.messages, one.transfer_ns]);
            rows[7].extend([one.bytes, one.exchanges, one.log_sum]);
        }
        self.exchanges.iter().for_each(|one| push_exchange(&mut rows[8], one));
        self.totals.iter().for_each(|one| push_total(&mut rows[9], one));
        self.hops.iter().for_each(|hop| rows[10].extend(hop.words()));
        self.bypass.edges.iter().for_each(|one| push_edge(&mut rows[11], one));
        for (&(space, function), one) in &self.wholes {
            rows[12].extend([space, pair(function, one.size), one.collectives, one.undecided]);
            rows[12].push(one.last.into());
        }
        for (&((space, function), rank, class), one) in &self.late {
            rows[13].extend([space, pair(function, rank), class.into(), one.times, one.sum_ns]);
        }
        if let Some(Outlier { late_ns, rank, function, key }) = self.outlier {
            rows[14].extend([late_ns, pair(rank, function), key.0, key.1.into()]);
        }
        self.sockets.iter().for_each(|one| push_socket(&mut rows[15], one));
        for (ring, events) in self.dropped.by_ring() {
            rows[16].extend(DroppedRings::row(ring, events));
        }
        let head = Values::new().scalar(VERSION).array(&reference).array(&self.counters);
        let values = rows.iter().fold(head, |values, rows| values.array(rows));
        values.scalar(self.bypass.instances)
    }

    /// Reads the values of a packet.
    ///
    /// # Errors
    /// [`TraceError::Format`] when they are another thing, else what is wrong with them.
    pub fn decode(values: ValuesRef<'_>) -> Result<Self, TraceError> {
        let fits = values.format().directives().eq(LAYOUT);
        if !fits || values.scalar::<u32>(0)? != VERSION {
            return Err(TraceError::Format { format: values.format().to_string() });
        }
        let reference = reference(values.array(1)?)?;
        let counters: &[u64] = values.array(2)?;
        let counters = *<&[u64; COUNTERS]>::try_from(counters).map_err(|_| WRONG)?;
        let mut read = Self { reference, counters, ..Self::default() };
        for words in rows(values, 3)? {
            let (key, one) = instance(words)?;
            fresh(read.instances.insert(key, one))?;
        }
        for words in rows(values, 4)? {
            let begin = arrival(&words[3..]);
            let (event, flags) = halves(words[7]);
            let is_exchange = flags & IS_EXCHANGE != 0;
            let size_class = u8::try_from(flags & !IS_EXCHANGE).map_err(|_| WRONG)?;
            let sent = Sent { begin, span: words[6], event, size_class, is_exchange };
            fresh(read.sends.insert(message_key(words), sent))?;
        }
        for words in rows(values, 5)? {
            fresh(read.receives.insert(message_key(words), awaited(&words[3..])))?;
        }
        for words in rows(values, 6)? {
            let (rank, known) = halves(words[0]);
            let call = awaited(&words[1..]);
            let one = ReceivingCall { call, known, last: arrival(&words[7..]) };
            fresh(read.calls.insert((rank, call.begin.time), one))?;
        }
        for words in rows(values, 7)? {
            let [_, calls, wait_ns, error_ns, undecided] = *words else { return Err(WRONG) };
            let one = Waited { calls, wait_ns, error_ns, undecided };
            fresh(read.waited.insert(halves(words[0]), one))?;
        }
        for words in rows(values, 8)? {
            let [rank, last, collective_ns, sends, send_ns, receives, receive_ns] = *words else {
                return Err(WRONG);
            };
            let one = Made { last, collective_ns, sends, send_ns, receives, receive_ns };
            fresh(read.made.insert(halves(rank).0, one))?;
        }
        for words in rows(values, 9)? {
            let [space, whom, waiter, calls, wait_ns] = *words else { return Err(WRONG) };
            let (function, culprit) = halves(whom);
            let key = ((space, function), culprit, halves(waiter).0);
            fresh(read.placed.insert(key, PlaceWaits { calls, wait_ns }))?;
        }
        for words in rows(values, 10)? {
            let [ends, messages, transfer_ns, bytes, exchanges, log_sum] = *words else {
                return Err(WRONG);
            };
            let link = Link { messages, transfer_ns, log_sum, bytes, exchanges };
            fresh(read.links.insert(halves(ends), link))?;
        }
        for words in rows(values, 11)? {
            let (key, one) = exchange(words)?;
            fresh(read.exchanges.insert(key, one))?;
        }
        for words in rows(values, 12)? {
            let (communicator, one) = total(words)?;
            fresh(read.totals.insert(communicator, one))?;
        }
        read.hops = hops(values)?;
        read.bypass = bypass(values)?;
        read.sockets = sockets(values)?;
        read.dropped = DroppedRings::decode(values.array(19)?, ROWS_MAX).ok_or(WRONG)?;
        read.read_conclusions(values)?;
        Ok(read)
    }

    /// What whole collectives said.
    fn read_conclusions(&mut self, values: ValuesRef<'_>) -> Result<(), TraceError> {
        for words in rows(values, 15)? {
            let [space, what, collectives, undecided, last] = *words else { return Err(WRONG) };
            let ((function, size), (last, 0)) = (halves(what), halves(last)) else {
                return Err(WRONG);
            };
            let one = WholeCollectives { size, collectives, undecided, last };
            fresh(self.wholes.insert((space, function), one))?;
        }
        for words in rows(values, 16)? {
            let [space, whom, class, times, sum_ns] = *words else { return Err(WRONG) };
            let (function, rank) = halves(whom);
            let class = u32::try_from(class).ok().filter(|&class| class < LATENESS_CLASSES);
            let key = ((space, function), rank, class.ok_or(WRONG)?);
            fresh(self.late.insert(key, LateTimes { times, sum_ns }))?;
        }
        for words in rows(values, 17)? {
            let [late_ns, whom, space, number] = *words else { return Err(WRONG) };
            let (rank, function) = halves(whom);
            let key = (space, u32::try_from(number).map_err(|_| WRONG)?);
            fresh(self.outlier.replace(Outlier { late_ns, rank, function, key }))?;
        }
        Ok(())
    }
}

/// The rank by whose clock times are, and that clock.
fn reference(words: &[u64]) -> Result<Option<(u32, FileClock)>, TraceError> {
    match *words {
        [] => Ok(None),
        [rank, ticks, ns, scale, is_cycles] => {
            let clock = FileClock { ticks, ns, scale, is_cycles: is_cycles != 0 };
            Ok(Some((halves(rank).0, clock)))
        }
        _ => Err(WRONG),
    }
}

/// Hops, as they were recorded.
fn hops(values: ValuesRef<'_>) -> Result<Vec<BypassHop>, TraceError> {
    let hop = |words: &[u64]| BypassHop::decode(*words.first_chunk::<HOP_WORDS>()?);
    rows(values, 13)?.map(|words| hop(words).ok_or(WRONG)).collect()
}

/// Sums of bypassed reductions.
fn bypass(values: ValuesRef<'_>) -> Result<BypassFigures, TraceError> {
    let mut read = BypassFigures { instances: values.scalar(20)?, ..BypassFigures::default() };
    for words in rows(values, 14)? {
        let (ends, one) = edge(words);
        fresh(read.edges.insert(ends, one))?;
    }
    Ok(read)
}

/// Sockets of TCP connections.
fn sockets(values: ValuesRef<'_>) -> Result<BTreeMap<u64, TcpSocket>, TraceError> {
    let mut read = BTreeMap::new();
    for words in rows(values, 18)? {
        let (own, one) = socket(words)?;
        fresh(read.insert(own, one))?;
    }
    Ok(read)
}

/// The rows of one array.
fn rows(
    values: ValuesRef<'_>,
    index: usize,
) -> Result<core::slice::ChunksExact<'_, u64>, TraceError> {
    let all: &[u64] = values.array(index)?;
    let words = Gathered::ROW_WORDS[index - FIRST_ROWS];
    if !all.len().is_multiple_of(words) || all.len() / words > ROWS_MAX {
        return Err(WRONG);
    }
    Ok(all.chunks_exact(words))
}

/// Each key is there once.
fn fresh<T>(before: Option<T>) -> Result<(), TraceError> {
    if before.is_none() { Ok(()) } else { Err(WRONG) }
}
