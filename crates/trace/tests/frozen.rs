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
