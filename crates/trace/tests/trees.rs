//! Waits that came through trees of any shape, over several rounds, against the same computed from
//! all events at once.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sapwood_filter::{Emitter, Registry, WaveRef};
use sapwood_packet::{Packet, RankSet, Values, ValuesRef};
use sapwood_trace::{
    Arrival, Awaited, Beside, BypassEdge, BypassHop, BypassTime, COUNTERS, Called, Circumstances,
    Counter, ENTRIES_MAX, Event, EventKind, Exchange, ExchangeReceived, FileClock, Findings,
    Gathered, HostClock, Instance, LateTimes, Ledger, Link, MESSAGES, Made, MessageKey, Observer,
    Outlier, Pattern, PlaceWaits, RankRing, ReceivingCall, Sent, Space, TRACE_WAITS, TcpFlow,
    TcpSocket, Total, TraceError, Wait, WholeCollectives, register,
};

const ALLREDUCE: u32 = 17;
const RECV: u32 = 378;
const SEND: u32 = 422;

fn clock() -> HostClock {
    HostClock::shared(FileClock { ticks: 0, ns: 0, scale: 1 << 32, is_cycles: true })
}

fn event(kind: EventKind, time: u64, span: u64, sequence: u32, peer: i32) -> Event {
    let function = ALLREDUCE;
    Event { time, span, function, space: 0, kind, members: 1, sequence, peer, tag: 3 }
}

fn about(rank: u32, ranks: u32, event: u32) -> Circumstances {
    let space = Space { identity: 77, size: ranks, rank, ..Space::default() };
    let procedure = event >> 8;
    Circumstances { rank, space, event, procedure, pattern: Pattern::All, beside: Beside::Nothing }
}

/// Four ranks that send to the next one and receive from the one before in one call; the last one
/// comes 4,000 ns late. Leaves read the sends of all their ranks before the receives.
fn late_exchange(leaves: usize, receivers: &[u32]) -> Vec<Gathered> {
    let mut observers = vec![Observer::default(); leaves];
    for kind in [EventKind::SendStarted, EventKind::Receive] {
        for rank in 0..4_u32 {
            let is_send = kind == EventKind::SendStarted;
            if !is_send && !receivers.contains(&rank) {
                continue;
            }
            let begin = if rank == 3 { 5_000 } else { 1_000 };
            let peer = if is_send { (rank + 1) % 4 } else { (rank + 3) % 4 };
            let event = event(kind, begin, 6_000 - begin, 1, peer.cast_signed());
            let about = Circumstances { beside: Beside::Send, ..about(rank, 4, RECV) };
            observers[rank as usize % leaves].observe(&event, &about, &clock());
        }
    }
    observers.iter_mut().map(Observer::take).collect()
}

#[test]
fn exchanges_wait_for_both_neighbours_whichever_leaf_reads_them() {
    let found = |leaves, fan_out, receivers: &[u32]| {
        let mut ledger = Ledger::default();
        ledger.absorb(through_tree(late_exchange(leaves, receivers), fan_out));
        let so_far = ledger.snapshot();
        let all = ledger.close();
        assert_eq!((&so_far.waited, &so_far.made), (&all.waited, &all.made), "known at once");
        all
    };
    for (leaves, fan_out) in [(1, 2), (2, 2), (4, 2), (4, 8)] {
        let all = found(leaves, fan_out, &[0, 1, 2, 3]);
        let late = all.made[&3];
        assert_eq!((late.sends, late.send_ns), (1, 4_000), "rank 0 receives from it");
        assert_eq!((late.receives, late.receive_ns), (1, 4_000), "rank 2 sends to it");
        assert_eq!(all.made.len(), 1, "{all:?}");
        let waits = [0, 1, 2, 3].map(|rank| (all.of_rank(rank).calls, all.of_rank(rank).wait_ns));
        assert_eq!(waits, [(1, 4_000), (1, 0), (1, 4_000), (1, 0)]);
        assert_eq!(all.links.len(), 4, "all messages took their time: {:?}", all.links);
        // What the late rank receives is not known: so is not when it took it.
        let some = found(leaves, fan_out, &[0, 1, 2]);
        let late = some.made[&3];
        assert_eq!((late.sends, late.receives), (1, 0));
        assert_eq!((some.of_rank(2).calls, some.of_rank(2).wait_ns), (1, 0), "none is lost");
        assert_eq!(some.unmatched_sends, 1);
    }
}

/// Merges the packets of some children in the filter of one process.
fn filtered(children: Vec<Gathered>) -> Gathered {
    let mut filter = register(Registry::empty())
        .make(TRACE_WAITS, ValuesRef::default())
        .expect("it was just registered");
    let packets: Vec<Packet> =
        children.iter().map(|one| Packet::new(1, 100, one.encode())).collect();
    let packets: Vec<_> = packets.iter().map(Packet::as_ref).collect();
    let contributors = RankSet::range(0, 1);
    let wave = WaveRef {
        stream: 1,
        wave: 0,
        packets: &packets,
        contributors: contributors.as_ref(),
        rank: 9,
        is_root: false,
        children: 2,
        back_ends: 2,
    };
    let mut out = Emitter::new();
    filter.transform(&wave, &mut out).expect("packets of leaves");
    let (_, values) = out.emissions().next().expect("one packet comes out");
    Gathered::decode(values).expect("what the filter has made")
}

/// Merges packets in a tree of this fan-out.
fn through_tree(mut level: Vec<Gathered>, fan_out: usize) -> Gathered {
    while level.len() > 1 {
        let mut next = Vec::new();
        let mut rest = level.into_iter();
        loop {
            let children: Vec<_> = rest.by_ref().take(fan_out).collect();
            if children.is_empty() {
                break;
            }
            next.push(filtered(children));
        }
        level = next;
    }
    level.pop().unwrap_or_default()
}

/// The events of all ranks, each in the round in which its leaf reads it.
type Events = Vec<(usize, Circumstances, Event)>;

fn run(events: &Events, ranks: u32, ranks_per_leaf: u32, fan_out: usize) -> Findings {
    let clock = clock();
    let leaves = ranks.div_ceil(ranks_per_leaf) as usize;
    let mut observers = vec![Observer::default(); leaves];
    let mut ledger = Ledger::default();
    let last = events.iter().map(|(round, ..)| *round).max().unwrap_or(0);
    for round in 0..=last + 2 {
        let settled = ledger.take_settled(usize::MAX);
        let mut level = Vec::new();
        for (leaf, observer) in observers.iter_mut().enumerate() {
            settled.iter().for_each(|one| observer.settle(one, &clock));
            for (_, about, event) in events.iter().filter(|(at, ..)| *at == round) {
                if (about.rank / ranks_per_leaf) as usize == leaf {
                    observer.observe(event, about, &clock);
                }
            }
            level.push(observer.take());
        }
        ledger.absorb(through_tree(level, fan_out));
    }
    ledger.close()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn collectives_are_settled_alike_in_every_tree(
        arrivals in prop::collection::vec(prop::collection::vec((0_u64..1_000, 0_usize..3), 2..9), 1..20),
        fan_out in 2_usize..5,
        ranks_per_leaf in 1_u32..4,
    ) {
        let ranks = arrivals.iter().map(Vec::len).min().expect("one at least") as u32;
        let mut events = Events::new();
        let mut expected: BTreeMap<u32, u64> = (0..ranks).map(|rank| (rank, 0)).collect();
        let mut made: BTreeMap<u32, u64> = BTreeMap::new();
        for (number, arrivals) in (0_u32..).zip(&arrivals) {
            let base = u64::from(number) * 10_000;
            let arrivals = &arrivals[..ranks as usize];
            let latest = arrivals.iter().map(|(time, _)| *time).max().expect("two at least");
            let culprit = arrivals.iter().position(|(time, _)| *time == latest).expect("it is there");
            for (rank, &(time, round)) in (0_u32..).zip(arrivals) {
                let span = latest - time + 50;
                let event = event(EventKind::Collective, base + time, span, number + 1, -1);
                events.push((round, about(rank, ranks, ALLREDUCE), event));
                *expected.get_mut(&rank).expect("every rank") += latest - time;
                *made.entry(culprit as u32).or_default() += latest - time;
            }
        }
        let found = run(&events, ranks, ranks_per_leaf, fan_out);
        let waits: BTreeMap<u32, u64> =
            found.waited.iter().map(|((rank, _), one)| (*rank, one.wait_ns)).collect();
        prop_assert_eq!(waits, expected);
        let blamed: BTreeMap<u32, u64> =
            found.made.iter().map(|(rank, one)| (*rank, one.collective_ns)).filter(|one| one.1 > 0).collect();
        made.retain(|_, ns| *ns > 0);
        prop_assert_eq!(blamed, made);
        prop_assert_eq!((found.collectives, found.incomplete), (arrivals.len() as u64, 0));
    }

    #[test]
    fn messages_meet_wherever_their_ways_meet(
        messages in prop::collection::vec(
            (0_u32..6, 0_u32..6, 0_u64..1_000, 0_u64..1_000, 0_usize..3, 0_usize..3), 1..60),
        fan_out in 2_usize..5,
        ranks_per_leaf in 1_u32..4,
    ) {
        let mut events = Events::new();
        let mut numbers: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut waits: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (at, &(from, to, sent, received, round, other)) in (0_u64..).zip(&messages) {
            let number = numbers.entry((from, to)).or_default();
            *number += 1;
            let base = at * 10_000;
            let send = event(EventKind::Send, base + sent, 200, *number, to as i32);
            let receive = event(EventKind::Receive, base + received, 300, *number, from as i32);
            events.push((round, about(from, 6, SEND), send));
            events.push((other, about(to, 6, RECV), receive));
            *waits.entry((to, RECV)).or_default() += sent.saturating_sub(received).min(300);
            *waits.entry((from, SEND)).or_default() += received.saturating_sub(sent).min(200);
        }
        let found = run(&events, 6, ranks_per_leaf, fan_out);
        let came: BTreeMap<(u32, u32), u64> =
            found.waited.iter().map(|(key, one)| (*key, one.wait_ns)).collect();
        prop_assert_eq!(came, waits);
        prop_assert_eq!((found.unmatched_sends, found.unmatched_receives), (0, 0));
    }
}

/// A rank's part in a collective in which it gave as many bytes.
fn given(number: u32, bytes: u32) -> Event {
    let time = u64::from(number) * 1_000;
    let tag = (bytes + 1).cast_signed();
    Event { tag, ..event(EventKind::Collective, time, 500, number, -1) }
}

/// The first two amounts of a collective in order, each with how many ranks gave it and the lowest.
fn kinds_of(amounts: &[(u32, usize)]) -> Vec<(u32, u32, u32)> {
    let mut kinds: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for (rank, &(bytes, _)) in (0_u32..).zip(amounts) {
        kinds.entry(bytes).or_insert((0, rank)).0 += 1;
    }
    kinds.into_iter().take(2).map(|(bytes, (count, lowest))| (bytes, count, lowest)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn amounts_that_differ_are_found_alike_in_every_tree(
        given_amounts in prop::collection::vec(
            prop::collection::vec((prop_oneof![9 => Just(80_u32), 1 => 70_u32..90], 0_usize..3), 2..9),
            1..20,
        ),
        fan_out in 2_usize..5,
        ranks_per_leaf in 1_u32..4,
    ) {
        let ranks = given_amounts.iter().map(Vec::len).min().expect("one at least");
        let mut events = Events::new();
        let mut unequal = Vec::new();
        for (number, amounts) in (1_u32..).zip(&given_amounts) {
            let amounts = &amounts[..ranks];
            for (rank, &(bytes, round)) in (0_u32..).zip(amounts) {
                events.push((round, about(rank, ranks as u32, ALLREDUCE), given(number, bytes)));
            }
            let kinds = kinds_of(amounts);
            if kinds.len() > 1 {
                unequal.push((number, kinds));
            }
        }
        let found = run(&events, ranks as u32, ranks_per_leaf, fan_out).unequal_amounts();
        prop_assert_eq!(found.len(), usize::from(!unequal.is_empty()));
        if let Some((number, kinds)) = unequal.first() {
            let one = found[&77];
            prop_assert_eq!((one.number, one.collectives), (*number, unequal.len() as u64));
            let told: Vec<(u32, u32, u32)> =
                one.amounts.iter().map(|all| (all.called, all.count, all.lowest)).collect();
            prop_assert_eq!(&told, kinds);
        }
    }
}

#[test]
fn of_a_collective_from_which_a_process_has_not_returned_the_amounts_of_the_others_are_known() {
    let mut ledger = Ledger::default();
    let mut observer = Observer::default();
    for (rank, bytes) in [(0, 80), (1, 80), (2, 72), (3, 80)] {
        observer.observe(&given(1, bytes), &about(rank, 5, ALLREDUCE), &clock());
    }
    ledger.absorb(observer.take());
    let so_far = ledger.findings().unequal_amounts();
    let minority = so_far[&77].minority().expect("one gave less");
    assert_eq!((minority.few.lowest, minority.few.called, minority.most.count), (2, 72, 3));
    assert_eq!(ledger.close().unequal_amounts(), so_far);
}

#[test]
fn behind_a_collective_that_is_mixed_no_amounts_are_told() {
    let told = |number: u32| {
        let mut gathered = Gathered::default();
        for rank in 0..3_u32 {
            let arrival = Arrival { rank, ..Arrival::default() };
            let odd = rank == 2;
            let one = |function: u32, bytes: u32| {
                let called = Called::without_root(function);
                Instance::of(called, Pattern::All, 3, arrival).with_amount(Some(bytes))
            };
            gathered.add_instance((77, 5), &one(if odd { 8 } else { 7 }, 4));
            gathered.add_instance((77, number), &one(7, if odd { 8 } else { 4 }));
        }
        let mut ledger = Ledger::default();
        ledger.absorb(gathered);
        let found = ledger.close();
        assert_eq!((found.mixed, found.mixtures[&77].number), (1, 5));
        found.unequal_amounts().len()
    };
    assert_eq!((told(4), told(6)), (1, 0));
}

#[test]
fn what_never_comes_is_counted_and_the_rest_is_right() {
    let mut events = Events::new();
    for number in 1..=10_u32 {
        for rank in 0..3_u32 {
            // Rank 2's fourth one was overwritten.
            if (rank, number) != (2, 4) {
                let time = u64::from(number) * 1_000 + u64::from(rank) * 100;
                let event = event(EventKind::Collective, time, 500, number, -1);
                events.push((0, about(rank, 3, ALLREDUCE), event));
            }
        }
    }
    let receive = event(EventKind::Receive, 5, 5, 1, 1);
    events.push((0, about(0, 3, RECV), receive));
    let found = run(&events, 3, 1, 2);
    assert_eq!((found.collectives, found.incomplete), (9, 1));
    assert_eq!((found.unmatched_receives, found.unmatched_sends), (1, 0));
    let of = |rank| found.waited[&(rank, ALLREDUCE)];
    assert_eq!((of(0).wait_ns, of(1).wait_ns, of(2).wait_ns), (9 * 200, 9 * 100, 0));
    assert_eq!((found.made[&2].last, found.made[&2].collective_ns), (9, 9 * 300));
}

#[test]
fn a_started_collective_waits_in_the_call_that_completes_it() {
    let mut events = Events::new();
    for rank in 0..2_u32 {
        let start = event(EventKind::CollectiveStarted, 100 + u64::from(rank) * 1_000, 5, 1, -1);
        let done = event(EventKind::CollectiveCompleted, 700, 600, 1, -1);
        events.push((0, about(rank, 2, ALLREDUCE), start));
        // One learns of the end before it has completed it.
        events.push((3 * rank as usize, about(rank, 2, 515), done));
    }
    let found = run(&events, 2, 1, 2);
    // Rank 0 computes until 700, and waits until 1100.
    assert_eq!(found.waited[&(0, 515)].wait_ns, 400);
    assert_eq!(found.waited[&(1, 515)].wait_ns, 0);
    assert_eq!(found.made[&1].collective_ns, 400);
}

#[test]
fn the_ends_of_a_connection_meet_where_all_answers_come_together() {
    let leaf = |own, peer, rank| {
        let mut gathered = Gathered::default();
        let flow = TcpFlow { elapsed_ns: 9, bytes: own, ..TcpFlow::default() };
        gathered.add_socket(own, &TcpSocket { rank, peer, is_within: false, flow });
        gathered
    };
    let mut ledger = Ledger::default();
    let is_new = ledger.absorb(filtered(vec![leaf(1, 2, 0), leaf(2, 1, 3)]));
    assert!(!is_new, "what goes on as long as the ranks do is not waited for");
    let bytes = ledger.findings().tcp.iter().map(|(ends, one)| (*ends, one.all.bytes));
    assert_eq!(bytes.collect::<Vec<_>>(), [((0, 3), 1), ((3, 0), 2)]);
}

/// The arrays of rows in a packet.
const ROWS: std::ops::Range<usize> = 3..20;
/// Those of collectives.
const INSTANCES: usize = 3;
/// Those of calls that send and receive.
const EXCHANGES: usize = 11;
/// Those of how many collectives those had called that have ended.
const TOTALS: usize = 12;
/// Those of hops of bypassed reductions.
const HOPS: usize = 13;

/// Those of whole collectives.
const WHOLES: usize = 15;
/// Those of how late ranks were in whole collectives.
const LATE: usize = 16;
/// Those of rings that have lost events.
const DROPPED: usize = 19;

/// A packet with rows in each of its arrays.
fn packet() -> Gathered {
    let mut gathered = Gathered { counters: [1; COUNTERS], ..Gathered::default() };
    let mut observer = Observer::default();
    observer.observe(&event(EventKind::Collective, 1, 1, 1, -1), &about(0, 2, ALLREDUCE), &clock());
    gathered.merge(observer.take());
    let key = MessageKey { communicator: 77, source: 1, destination: 2, tag: 3, number: 4 };
    gathered.sends.insert(key, Sent { size_class: 9, is_exchange: true, ..Sent::default() });
    let awaited = Awaited { members: 2, is_blocking: true, ..Awaited::default() };
    gathered.receives.insert(MessageKey { number: 5, ..key }, awaited);
    let call = ReceivingCall { call: awaited, known: 1, ..ReceivingCall::default() };
    gathered.calls.insert((0, 0), call);
    gathered.credit(1, RECV, Wait::Known(5, 1));
    gathered.blame(2, &Made { sends: 1, send_ns: 5, ..Made::default() });
    gathered.add_placed(MESSAGES, 2, 1, &PlaceWaits { calls: 1, wait_ns: 5 });
    gathered.add_link((2, 1), &Link::of_message(7, 8));
    let begin = Arrival { time: 50, rank: 3, ..Arrival::default() };
    let received = ExchangeReceived { begin, span: 9, ..ExchangeReceived::default() };
    let half = Exchange { received: Some(received), taken: None };
    gathered.exchanges.insert((3, 50), half);
    for (rank, made) in [(0, 20), (1, 21), (2, 21)] {
        let space = Space { identity: 77, size: 4, made, ..Space::default() };
        gathered.add_total(77, &Total::of(&space, rank).expect("it is counted"));
    }
    let words = [50, 77, 2 | 1 << 8 | 4 << 16 | 9 << 32, 2 | 3 << 32];
    gathered.hops.push(BypassHop::decode(words).expect("an arrival"));
    let up = BypassTime { count: 9, sum_ns: 70, max_ns: 12 };
    let edge = BypassEdge { instances: 9, last: 5, late: 3, up, ..BypassEdge::default() };
    gathered.bypass.instances = 9;
    gathered.bypass.edges.insert((2, 3), edge);
    let flow = TcpFlow { elapsed_ns: 9, busy_us: 8, readings: 7, queued: 6, ..TcpFlow::default() };
    gathered.add_socket(5, &TcpSocket { rank: 2, peer: 4, is_within: true, flow });
    gathered
        .add_whole((77, 9), &WholeCollectives { size: 4, collectives: 8, undecided: 1, last: 6 });
    gathered.add_late(((77, 9), 2, 7), &LateTimes { times: 1, sum_ns: 200 });
    gathered.outlier = Some(Outlier { late_ns: 200, rank: 2, function: 9, key: (77, 3) });
    gathered.count_dropped(RankRing { rank: 2, thread: 1 }, 6);
    gathered
}

/// A packet in which one array has other rows.
fn forged(values: ValuesRef<'_>, index: usize, rows: &[u64]) -> Values {
    let version = values.scalar::<u32>(0).expect("the version");
    let forged = (1..ROWS.end).fold(Values::new().scalar(version), |forged, at| {
        let own: &[u64] = values.array(at).expect("an array of words");
        forged.array(if at == index { rows } else { own })
    });
    forged.scalar(values.scalar::<u64>(ROWS.end).expect("how many reductions"))
}

#[test]
fn forged_packets_are_refused() {
    let gathered = packet();
    let values = gathered.encode();
    assert!(Gathered::decode(Values::new().as_ref()).is_err());
    for index in ROWS {
        let rows: &[u64] = values.as_ref().array(index).expect("an array of words");
        assert_eq!(rows.len(), Gathered::ROW_WORDS[index - ROWS.start], "one row of array {index}");
        let same = forged(values.as_ref(), index, rows);
        assert_eq!(Gathered::decode(same.as_ref()), Ok(gathered.clone()));
        // Hops have no key that is there once.
        let twice = (index != HOPS).then(|| [rows, rows].concat());
        for rows in [Some(&rows[1..]), twice.as_deref()].into_iter().flatten() {
            let forged = forged(values.as_ref(), index, rows);
            assert!(Gathered::decode(forged.as_ref()).is_err(), "array {index}: {rows:?}");
        }
    }
}

/// What is read of a packet whose only row of an array has another word.
fn altered(array: usize, at: usize, word: u64) -> Result<Gathered, TraceError> {
    let values = packet().encode();
    let row: &[u64] = values.as_ref().array(array).expect("an array of words");
    let mut row = row.to_vec();
    row[at] = word;
    Gathered::decode(forged(values.as_ref(), array, &row).as_ref())
}

#[test]
fn forged_amounts_are_refused() {
    let decoded = |at: usize, word: u64| altered(INSTANCES, at, word);
    let amounts = |read: Gathered| read.instances.values().next().and_then(|one| one.amounts);
    let other = decoded(19, 70).map(amounts).expect("another amount");
    assert_eq!(other.map(|all| (all.first.called, all.first.count)), Some((70, 1)));
    assert!(decoded(20, 0).is_err(), "none gave what was given");
    assert!(decoded(20, 2).is_err(), "more gave it than have come");
    assert!(decoded(19, 2 | 70 << 32).is_err(), "the second ones are none, and have given some");
}

#[test]
fn rings_that_have_lost_nothing_are_refused() {
    let lost = |events| altered(DROPPED, 1, events).map(|read| read.dropped.most(1));
    assert_eq!(lost(1), Ok(vec![(RankRing { rank: 2, thread: 1 }, 1)]));
    assert!(lost(0).is_err());
}

#[test]
fn forged_exchanges_are_refused() {
    let decoded = |at: usize, word: u64| altered(EXCHANGES, at, word);
    let flags = |flags: u64| decoded(0, 3 | flags << 32);
    assert!(flags(1).is_ok() && flags(2).is_ok() && flags(6).is_ok());
    for wrong in [0, 3, 4, 5, 7, 8, 1 << 31] {
        assert!(flags(wrong).is_err(), "flags {wrong}");
    }
    assert!(decoded(8, 255).is_ok());
    assert!(decoded(8, 256).is_err(), "no class of sizes");
}

#[test]
fn forged_totals_are_refused() {
    let decoded = |at: usize, word: u64| altered(TOTALS, at, word);
    assert!(decoded(1, 4 | 3 << 32).is_ok());
    assert!(decoded(1, 4 | 2 << 32).is_err(), "fewer than those that are distinguished");
    assert!(decoded(2, 20).is_err(), "the first ones are none");
    assert!(decoded(3, 20 | 2 << 32).is_err(), "both called as many");
    assert!(decoded(3, 21).is_err(), "the second ones are none, and have called some");
}

#[test]
fn forged_whole_collectives_are_refused() {
    assert!(altered(WHOLES, 4, 9).is_ok());
    assert!(altered(WHOLES, 4, 1 << 32).is_err(), "no such number");
    assert!(altered(LATE, 2, 63).is_ok());
    assert!(altered(LATE, 2, 64).is_err(), "no such class");
}

#[test]
fn forged_hops_are_refused() {
    let decoded = |at: usize, word: u64| altered(HOPS, at, word);
    assert_eq!(decoded(0, 51).map(|read| read.hops[0].time), Ok(51));
    assert!(decoded(2, 6).is_err(), "no such kind");
    assert!(decoded(3, 2 | 2 << 32).is_err(), "a part that comes to its own place");
}

#[test]
fn hops_of_several_leaves_are_put_together_by_reduction() {
    // Ranks 0 and 1; the late child's rank notes what happens at the root's place.
    let hop = |kind: u64, flags: u64, time: u64, rank: u64, child: u64| {
        let words = [time, 77, kind | flags << 8 | 2 << 16 | 5 << 32, rank | child << 32];
        BypassHop::decode(words).expect("a known kind")
    };
    let leaf = |hops: &[BypassHop]| Gathered { hops: hops.to_vec(), ..Gathered::default() };
    let mut ledger = Ledger::default();
    assert!(ledger.absorb(leaf(&[hop(1, 0, 10, 0, 0), hop(5, 0, 95, 0, 0)])));
    assert_eq!(ledger.findings().bypass.instances, 0, "the other rank is not known yet");
    let mut late = leaf(&[hop(1, 0, 80, 1, 1), hop(3, 0, 82, 1, 1)]);
    late.merge(leaf(&[hop(2, 1, 85, 0, 1), hop(3, 4, 90, 0, 0), hop(5, 0, 92, 1, 1)]));
    let decoded = Gathered::decode(late.encode().as_ref()).expect("as it was written");
    ledger.absorb(decoded);
    ledger.absorb(leaf(&[hop(1, 0, 200, 0, 0)].map(|one| BypassHop { instance: 6, ..one })));
    let found = ledger.close().bypass;
    assert_eq!((found.instances, found.incomplete), (1, 1));
    let edge = found.edges[&(0, 1)];
    assert_eq!((edge.last, edge.late, edge.bypassed, edge.up.sum_ns), (1, 1, 0, 3));
}

#[test]
fn of_reductions_of_which_all_hops_have_met_sums_by_edge_travel() {
    // Ranks 0 and 1, each of a leaf, in reductions that both leaves have read but for the last one.
    let hop = |kind: u64, flags: u64, time: u64, rank: u64, child: u64| {
        let words = [time, 77, kind | flags << 8 | 2 << 16, rank | child << 32];
        BypassHop::decode(words).expect("a known kind")
    };
    let parent = [hop(1, 0, 10, 0, 0), hop(5, 0, 95, 0, 0)];
    let child = [
        hop(1, 0, 80, 1, 1),
        hop(3, 0, 82, 1, 1),
        hop(2, 1, 85, 0, 1),
        hop(3, 4, 90, 0, 0),
        hop(5, 0, 92, 1, 1),
    ];
    let leaf = |hops: &[BypassHop], count: u32| {
        let all = (0..count)
            .flat_map(|instance| hops.iter().map(move |hop| BypassHop { instance, ..*hop }));
        Gathered { hops: all.collect(), ..Gathered::default() }
    };
    let count = 20_000;
    let mut met = leaf(&parent, count);
    met.bound();
    assert_eq!(met.hops.len(), 2 * count as usize, "none is whole");
    met.merge(leaf(&child, count - 1));
    met.bound();
    assert_eq!((met.hops.len(), met.open_entries()), (2, 0));
    assert_eq!(met.counters[Counter::HopsLeftOut as usize], 0, "more than a packet has room for");
    let read = Gathered::decode(met.encode().as_ref()).expect("as it was written");
    assert_eq!(read, met);
    let mut ledger = Ledger::default();
    assert!(ledger.absorb(read));
    let last = leaf(&child, count).hops.split_off(child.len() * (count as usize - 1));
    ledger.absorb(Gathered { hops: last, ..Gathered::default() });
    let found = ledger.close().bypass;
    assert_eq!((found.instances, found.incomplete), (u64::from(count), 0));
    let edge = found.edges[&(0, 1)];
    let sums = [edge.instances, edge.last, edge.late, edge.up.count, edge.up.sum_ns / 3];
    assert_eq!(sums, [u64::from(count); 5]);
}

#[test]
fn hops_beyond_the_room_of_a_packet_are_counted() {
    let hop = BypassHop::decode([1, 1, 1, 0]).expect("a known kind");
    let mut gathered = Gathered { hops: vec![hop; ENTRIES_MAX + 3], ..Gathered::default() };
    gathered.bound();
    assert_eq!(gathered.hops.len(), ENTRIES_MAX);
    assert_eq!(gathered.counters[Counter::HopsLeftOut as usize], 3);
}

#[test]
fn what_rings_beyond_the_room_of_a_packet_have_lost_is_in_the_sum() {
    let most = u32::try_from(ENTRIES_MAX).expect("a small number");
    let mut gathered = Gathered::default();
    (0..=most).for_each(|rank| gathered.count_dropped(RankRing { rank, thread: 0 }, 1));
    gathered.bound();
    assert_eq!(gathered.dropped.len(), ENTRIES_MAX);
    assert_eq!(gathered.counters[Counter::Dropped as usize], u64::from(most) + 1);
}

#[test]
fn what_was_overwritten_is_known_by_ring_whichever_leaf_reads_it() {
    let ring = |rank| RankRing { rank, thread: 1 };
    let leaf = |rank: u32| {
        let mut gathered = Gathered::default();
        gathered.count_dropped(ring(rank), u64::from(rank));
        gathered
    };
    for fan_out in [2, 3, 8] {
        let mut ledger = Ledger::default();
        for _ in 0..2 {
            ledger.absorb(through_tree((0..5).map(leaf).collect(), fan_out));
        }
        let findings = ledger.findings();
        assert_eq!(findings.counter(Counter::Dropped), 20);
        assert_eq!(findings.dropped.most(2), [(ring(4), 8), (ring(3), 6)]);
        assert_eq!(findings.dropped.len(), 4, "one has lost nothing");
    }
}

#[test]
fn those_that_called_fewer_collectives_are_known_once_all_have_ended_whichever_leaf_reads_them() {
    for fan_out in [2, 3, 8] {
        let leaf = |rank: u32| {
            let mut gathered = Gathered::default();
            let made = if rank == 5 { 19 } else { 20 };
            let space = Space { identity: 7, size: 16, made, rank, ..Space::default() };
            gathered.add_total(7, &Total::of(&space, rank).expect("it is counted"));
            gathered
        };
        let mut ledger = Ledger::default();
        ledger.absorb(through_tree((0..9).map(leaf).collect(), fan_out));
        assert!(ledger.findings().uneven.is_empty(), "not all have ended");
        ledger.absorb(through_tree((9..16).map(leaf).collect(), fan_out));
        let total = ledger.findings().uneven[&7];
        let minority = total.minority().expect("one called fewer");
        assert_eq!((minority.few.lowest, minority.few.called, minority.most.count), (5, 19, 15));
    }
}
