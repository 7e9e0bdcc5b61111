//! Programs of a few MPI ranks with arbitrary profiles, and the filter without nodes or links.
#![allow(dead_code, reason = "every test file uses a part of it")]

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use sapwood_filter::{Emitter, Registry, WaveRef};
use sapwood_packet::{Packet, RankSet, ValuesRef};
use sapwood_profile::{
    Activity, ActivityKind, Class, Condition, Counters, EventKey, Figure, PROFILE_STATISTICS, Peer,
    RankProfile, RankState, Round, SizeClass, SizeHistogram, TimeShare, register,
};

pub fn key() -> impl Strategy<Value = EventKey> {
    let size_class = prop_oneof![0_u8..6, Just(255)];
    prop_oneof![
        (1_u32..600, size_class).prop_map(|(id, code)| EventKey::Function {
            id,
            size_class: SizeClass::from_code(code).expect("a code of a size class"),
        }),
        "[a-cä]{1,3}".prop_map(EventKey::Region),
    ]
}

pub fn counters() -> impl Strategy<Value = Counters> {
    let number = || prop_oneof![0_u64..100, any::<u64>(), Just(u64::MAX)];
    (number(), number(), number()).prop_map(|(count, time_ns, bytes)| Counters {
        count,
        time_ns,
        bytes,
    })
}

/// The profiles of all ranks of a program.
pub fn program(ranks: std::ops::Range<usize>) -> impl Strategy<Value = Vec<RankProfile>> {
    let events = btree_map(key(), counters(), 0..12);
    let label = "[a-z0-9é ]{0,12}";
    let rank = (1_u8..5, any::<(u32, u64, u64, u64)>(), label, label, events);
    vec(rank, ranks).prop_map(|ranks| {
        let world_size = u32::try_from(ranks.len()).expect("a small program");
        let profile =
            |(rank, (code, (pid, started_ns, dropped, unreadable), host, program, events))| {
                let events: std::collections::BTreeMap<EventKey, Counters> = events;
                let received = events.iter().filter(|(_, counters)| counters.bytes > 1);
                let received = received.map(|(key, counters)| (key.clone(), counters.bytes / 2));
                RankProfile {
                    received: received.collect(),
                    pid,
                    state: RankState::from_code(code).expect("a code of a state"),
                    started_ns,
                    host,
                    program,
                    dropped,
                    unreadable,
                    events,
                    ..RankProfile::new(rank, world_size)
                }
            };
        (0..).zip(ranks).map(profile).collect()
    })
}

/// What the ranks do at one moment, given to their profiles.
pub fn busy(profiles: Vec<RankProfile>) -> impl Strategy<Value = Vec<RankProfile>> {
    let kind = (proptest::option::of(1_u32..4), any::<bool>(), 0_usize..3, "[a-b]?", "[a-b]?");
    let peer = prop_oneof![Just(Peer::None), Just(Peer::Any), (0_u32..9).prop_map(Peer::Rank)];
    let activity = (kind, peer, 0_u64..5).prop_map(|(kind, peer, for_ns)| {
        let (function, is_long, condition, communicator, region) = kind;
        let condition = [Condition::Unknown, Condition::Computing, Condition::Lost][condition];
        let kind = ActivityKind { function, is_long, condition, communicator, region };
        Activity { kind, peer, for_ns }
    });
    let time = prop_oneof![(0_u64..9, 0_u64..9), any::<(u64, u64)>()]
        .prop_map(|(wall_ns, mpi_ns)| TimeShare { wall_ns, mpi_ns });
    let figure = (proptest::sample::select(&Figure::ALL[..]), any::<u64>());
    let calls = proptest::array::uniform32(prop_oneof![3 => Just(0), 1 => any::<u64>()]);
    let figures = (btree_map(figure.0, figure.1, 0..4), calls, 0_u32..2);
    vec((vec(activity, 0..3), time, figures), profiles.len()).prop_map(move |all| {
        let busy = |(profile, (activities, time, figures)): (&RankProfile, (_, TimeShare, _))| {
            let (figures, calls, taken_functions) = figures;
            let functions = profile.events.keys().filter(|key| key.class() != Class::Region);
            let sizes = functions.map(|key| (key.clone(), SizeHistogram::new(calls))).collect();
            let interval = TimeShare { wall_ns: time.wall_ns / 2, mpi_ns: time.mpi_ns / 3 };
            let profile = profile.clone();
            RankProfile { activities, time, interval, sizes, figures, taken_functions, ..profile }
        };
        profiles.iter().zip(all).map(busy).collect()
    })
}

/// The round of some profiles, folded one by one.
pub fn round(profiles: &[RankProfile]) -> Round {
    let mut round = Round::new(profiles[0].world_size);
    for profile in profiles {
        round.add(profile).expect("every rank once, of one program");
    }
    round
}

/// Lets one node's filter transform a wave.
pub fn node(packets: &[Packet]) -> Packet {
    let mut filter = register(Registry::built_in())
        .make(PROFILE_STATISTICS, ValuesRef::default())
        .expect("it was registered");
    let packets: Vec<_> = packets.iter().map(Packet::as_ref).collect();
    let contributors = RankSet::range(0, 1);
    let wave = WaveRef {
        stream: 1,
        wave: 0,
        packets: &packets,
        contributors: contributors.as_ref(),
        rank: 1000,
        is_root: false,
        children: 2,
        back_ends: 2,
    };
    let mut out = Emitter::new();
    filter.transform(&wave, &mut out).expect("rounds of different ranks");
    let mut emissions = out.emissions();
    let (emission, values) = emissions.next().expect("a wave becomes one packet");
    assert!(emissions.next().is_none(), "a wave becomes one packet");
    Packet::new(1, emission.tag, values.to_values())
}
