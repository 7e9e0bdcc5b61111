//! Frozen events that came through the filter: whatever the order of leaves, each event is there
//! once or is counted, and no bytes harm a reader.

use proptest::prelude::*;
use sapwood_filter::{Emitter, Registry, WaveRef};
use sapwood_packet::{Packet, RankSet, Values, ValuesRef};
use sapwood_trace::{
    EventKind, Frozen, FrozenEvent, FrozenRank, FrozenRing, FrozenSeat, Pattern, Presence,
    Relations, TRACE_FREEZE, register,
};

const KINDS: [Option<EventKind>; 8] = [
    None,
    Some(EventKind::Collective),
    Some(EventKind::CollectiveStarted),
    Some(EventKind::CollectiveCompleted),
    Some(EventKind::Send),
    Some(EventKind::SendStarted),
    Some(EventKind::Receive),
    Some(EventKind::ReceiveCompleted),
];
const PATTERNS: [Pattern; 3] = [Pattern::All, Pattern::FromRoot, Pattern::ToRoot];

/// Merges the packets of some children in the filter of one process.
fn filtered(children: &[Frozen]) -> Frozen {
    let mut filter = register(Registry::empty())
        .make(TRACE_FREEZE, ValuesRef::default())
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
    Frozen::decode(values).expect("what the filter has made")
}

prop_compose! {
    fn event(rank: u32)(
        thread in 0_u8..3,
        kind in 0..KINDS.len(),
        pattern in 0..PATTERNS.len(),
        is_open: bool,
        communicator in 0_u64..3,
        sequence in 0_u32..4,
        peer in -1_i32..4,
        tag: i32,
        members: u8,
        begin in -1_000_i64..1_000,
        span in 0_u64..500,
        function in 0_u32..700,
    ) -> FrozenEvent {
        let (kind, pattern) = (KINDS[kind], PATTERNS[pattern]);
        FrozenEvent {
            rank, thread, function, kind, pattern, is_open, communicator, sequence, peer, tag,
            members, begin, span,
        }
    }
}

/// What a leaf with one rank sends.
fn leaf(rank: u32) -> impl Strategy<Value = Frozen> {
    let events = prop::collection::vec(event(rank), 0..20);
    (events, 0_u32..3, any::<u64>(), any::<bool>()).prop_map(
        move |(events, clock, error, is_lost)| {
            let mut frozen = Frozen { world_size: 4, events, ..Frozen::default() };
            let one = FrozenRank {
                presence: Presence::Sleeping,
                is_order_lost: is_lost,
                now: 2_000,
                clock,
                error: error / 4,
                ..FrozenRank::default()
            };
            frozen.ranks.insert(rank, one);
            let ring = FrozenRing { written: 90, overwritten: 3, ..FrozenRing::default() };
            frozen.rings.insert((rank, 0), ring);
            for communicator in 1..3 {
                let seat = FrozenSeat { rank, size: 4, ..FrozenSeat::default() };
                frozen.seats.insert((communicator, rank), seat);
                frozen.add_name(communicator, format!("{communicator} of {rank}"));
            }
            frozen
        },
    )
}

/// The greatest error of a clock in [`members`], in nanoseconds.
const ERROR_MAX: u64 = 60;

/// How one process truly came to a collective and left it.
#[derive(Clone, Debug)]
struct Member {
    came: i64,
    left: i64,
    clock: usize,
    is_started: bool,
}

/// A clock that is wrong by `offset`, which is at most its error.
#[derive(Clone, Debug)]
struct WrongClock {
    error: u64,
    offset: i64,
}

fn clocks() -> impl Strategy<Value = Vec<WrongClock>> {
    let clock = (0..=ERROR_MAX, -1.0..=1.0_f64)
        .prop_map(|(error, part)| WrongClock { error, offset: (error as f64 * part) as i64 });
    prop::collection::vec(clock, 3)
}

fn members() -> impl Strategy<Value = Vec<Member>> {
    let member = (0_i64..400, 0_i64..300, 0_usize..3, any::<bool>()).prop_map(
        |(came, span, clock, is_started)| Member { came, left: came + span, clock, is_started },
    );
    prop::collection::vec(member, 1..8)
}

/// The window of one collective as it was measured.
fn measured(members: &[Member], clocks: &[WrongClock]) -> Frozen {
    let size = members.len() as u32;
    let mut frozen = Frozen { world_size: size, ..Frozen::default() };
    for (rank, member) in (0..size).zip(members) {
        let WrongClock { error, offset } = clocks[member.clock];
        let one =
            FrozenRank { now: 5_000, clock: member.clock as u32, error, ..FrozenRank::default() };
        frozen.ranks.insert(rank, one);
        frozen.seats.insert((1, rank), FrozenSeat { rank, size, ..FrozenSeat::default() });
        let mut note = |kind, begin: i64, end: i64| {
            frozen.events.push(FrozenEvent {
                rank,
                kind: Some(kind),
                communicator: 1,
                sequence: 1,
                peer: -1,
                begin: begin + offset,
                span: end.abs_diff(begin),
                ..FrozenEvent::default()
            });
        };
        if member.is_started {
            note(EventKind::CollectiveStarted, member.came, member.came);
            note(EventKind::CollectiveCompleted, member.came, member.left);
        } else {
            note(EventKind::Collective, member.came, member.left);
        }
    }
    frozen.cut(10_000);
    frozen
}

/// A moment as it was measured, its clock, and by how much that may be off.
#[derive(Clone, Copy)]
struct Measured {
    time: i64,
    clock: u32,
    error: i64,
}

impl Measured {
    fn of(frozen: &Frozen, rank: u32, time: i64) -> Self {
        let one = frozen.ranks[&rank];
        Self { time, clock: one.clock, error: one.error as i64 }
    }

    fn error_to(self, other: Self) -> i64 {
        if self.clock == other.clock { 0 } else { self.error + other.error }
    }
}

/// From the first of some moments to the last of others, each compared with each; none where that
/// is not longer than it may be off.
fn between(from: &[Measured], to: &[Measured]) -> Option<i64> {
    let pairs = || from.iter().flat_map(move |&one| to.iter().map(move |&other| (one, other)));
    let longest = |sign: i64| {
        let of =
            |(one, other): (Measured, Measured)| other.time - one.time + sign * one.error_to(other);
        pairs().map(of).max().expect("there are moments")
    };
    let (ns, error) = (longest(0), (longest(1) - longest(0)).max(longest(0) - longest(-1)));
    (error == 0 || ns > error).then_some(ns)
}

/// How many of some moments were before one of them, each compared with it.
fn place(of: usize, moments: &[Measured]) -> Option<u32> {
    let one = moments[of];
    let is_known = |other: &Measured| {
        one.clock == other.clock || (one.time - other.time).abs() > one.error_to(*other)
    };
    let before = moments.iter().filter(|other| other.time < one.time).count();
    moments.iter().all(is_known).then_some(before as u32)
}

fn job() -> impl Strategy<Value = Vec<Frozen>> {
    (leaf(0), leaf(1), leaf(2), leaf(3)).prop_map(|(a, b, c, d)| vec![a, b, c, d])
}

proptest! {
    #[test]
    fn the_order_of_leaves_changes_nothing(leaves in job(), turn in 0_usize..4) {
        let mut turned = leaves.clone();
        turned.rotate_left(turn);
        let (flat, deep) = (filtered(&leaves), filtered(&[
            filtered(&turned[..2]),
            filtered(&turned[2..3]),
            filtered(&turned[3..]),
        ]));
        let sorted = |mut frozen: Frozen| {
            frozen.events.sort_by_key(|event| format!("{event:?}"));
            frozen
        };
        prop_assert_eq!(sorted(flat), sorted(deep));
    }

    #[test]
    fn every_event_stays_or_is_counted(leaves in job(), most in 0_usize..40) {
        let mut all = filtered(&leaves);
        let before = all.events.len();
        all.bound(most);
        let left_out: u64 = all.rings.values().map(|ring| ring.left_out).sum();
        prop_assert_eq!(all.events.len() as u64 + left_out, before as u64);
        prop_assert_eq!(all.events.len(), before.min(most));
    }

    #[test]
    fn no_event_waits_longer_than_it_lasts(leaves in job(), span in 0_u64..3_000) {
        let mut all = filtered(&leaves);
        let (begin, end) = all.cut(span);
        prop_assert!(begin <= end);
        prop_assert!(all.events.is_sorted_by_key(|event| event.begin));
        let relations = Relations::of(&all);
        prop_assert_eq!(relations.waits.len(), all.events.len());
        for (event, wait) in all.events.iter().zip(&relations.waits) {
            prop_assert!(wait.unwrap_or(0) <= event.span, "{event:?}: {wait:?}");
        }
        for instance in &relations.instances {
            let absent = |at: &usize| instance.absent.contains(&all.events[*at].rank);
            prop_assert!(!instance.arrivals.iter().any(absent));
        }
    }

    #[test]
    fn a_passage_is_what_each_process_compared_with_each_gives(
        members in members(),
        clocks in clocks(),
    ) {
        let frozen = measured(&members, &clocks);
        let relations = Relations::of(&frozen);
        let [instance] = &relations.instances[..] else { panic!("one collective") };
        let passage = instance.passage.as_ref().expect("all have left");
        let came: Vec<Measured> = instance
            .arrivals
            .iter()
            .map(|&at| Measured::of(&frozen, frozen.events[at].rank, frozen.events[at].begin))
            .collect();
        let left: Vec<Measured> = passage
            .departures
            .iter()
            .map(|one| &frozen.events[one.event])
            .map(|event| Measured::of(&frozen, event.rank, event.end()))
            .collect();
        prop_assert_eq!(left.len(), members.len());
        prop_assert!(left.is_sorted_by_key(|one| one.time));
        prop_assert_eq!(passage.elapsed.map(|ns| ns as i64), between(&came, &left));
        for (one, wait) in came.iter().zip(&passage.arrival_waits) {
            prop_assert_eq!(wait.map(|ns| ns as i64), between(&[*one], &came));
        }
        for (at, one) in passage.departures.iter().enumerate() {
            prop_assert_eq!(one.place, place(at, &left));
            // Back from the departure to the last arrival, which may be on either side of it.
            let since: Vec<i64> = [-1, 0, 1]
                .map(|sign| {
                    let last = |other: &Measured| other.time + sign * left[at].error_to(*other);
                    left[at].time - came.iter().map(last).max().expect("there are arrivals")
                })
                .to_vec();
            let error = (since[0] - since[1]).max(since[1] - since[2]);
            let is_known = error == 0 || since[1].abs() > error;
            prop_assert_eq!(one.wait, is_known.then_some(since[1]));
        }
    }

    /// Whatever the clocks say within their errors, what is claimed has been so.
    #[test]
    fn no_order_and_no_wait_is_claimed_that_was_not(members in members(), clocks in clocks()) {
        let frozen = measured(&members, &clocks);
        let relations = Relations::of(&frozen);
        let passage = relations.instances[0].passage.as_ref().expect("all have left");
        let is_near = |claim: i64, truth: i64| {
            claim.abs_diff(truth) <= 2 * ERROR_MAX && claim.signum() == truth.signum()
        };
        let last = members.iter().map(|one| one.came).max().expect("there are members");
        for (&at, wait) in relations.instances[0].arrivals.iter().zip(&passage.arrival_waits) {
            let truth = last - members[frozen.events[at].rank as usize].came;
            prop_assert!(wait.is_none_or(|claim| is_near(claim as i64, truth)), "{wait:?} {truth}");
        }
        for one in &passage.departures {
            let left = members[frozen.events[one.event].rank as usize].left;
            let before = members.iter().filter(|other| other.left < left).count() as u32;
            prop_assert!(one.place.is_none_or(|place| place == before), "{one:?} {before}");
            prop_assert!(one.wait.is_none_or(|claim| is_near(claim, left - last)), "{one:?}");
        }
        let first = members.iter().map(|one| one.came).min().expect("there are members");
        let end = members.iter().map(|one| one.left).max().expect("there are members");
        prop_assert!(passage.elapsed.is_none_or(|claim| is_near(claim as i64, end - first)));
    }

    #[test]
    fn any_words_are_refused_or_read(arrays in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..13), 5), name: String) {
        let head = Values::new().scalar(1_u32).scalar(4_u32);
        let values = arrays.iter().fold(head, |values, words| values.array(words)).strings(&[name]);
        if let Ok(mut read) = Frozen::decode(values.as_ref()) {
            let again = Frozen::decode(read.encode().as_ref()).expect("it was just written");
            prop_assert_eq!(&again, &read);
            read.bound(1);
            let _ = read.cut(u64::MAX);
            let _ = Relations::of(&read);
        }
    }
}
