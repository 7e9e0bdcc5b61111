//! A round that was merged in a tree is, to the bit, the one that was folded in one place, whatever
//! the shape of the tree and the order of the children.

use crate::harness::{busy, node, program, round};
use proptest::prelude::*;
use proptest::sample::Index;
use sapwood_packet::Packet;
use sapwood_profile::{Counters, EVENTS_MAX, EventKey, Metric, RankProfile, Round};

fn leaf(profiles: &[RankProfile]) -> Packet {
    Packet::new(1, 100, round(profiles).encode())
}

/// Reduces level by level in groups of `fan_out`.
fn tree(mut level: Vec<Packet>, fan_out: usize) -> Packet {
    loop {
        level = level.chunks(fan_out).map(node).collect();
        if level.len() <= 1 || fan_out == 1 {
            return node(&level);
        }
    }
}

proptest! {
    #[test]
    fn every_regular_tree_gives_the_flat_round(profiles in program(1..20).prop_flat_map(busy), per_leaf in 1_usize..5) {
        let flat = leaf(&profiles);
        let leaves: Vec<Packet> = profiles.chunks(per_leaf).map(leaf).collect();
        for fan_out in [1, 2, 8] {
            let merged = tree(leaves.clone(), fan_out);
            prop_assert_eq!(merged.body(), flat.body());
        }
    }

    #[test]
    fn every_irregular_tree_gives_the_flat_round(
        profiles in program(1..16),
        merges in proptest::collection::vec(any::<(Index, Index)>(), 16),
    ) {
        let mut forest: Vec<Packet> = profiles.chunks(1).map(leaf).collect();
        for (left, right) in merges {
            let left = forest.swap_remove(left.index(forest.len()));
            if forest.is_empty() {
                forest.push(left);
                break;
            }
            let right = forest.swap_remove(right.index(forest.len()));
            forest.push(node(&[right, left]));
        }
        let (merged, flat) = (node(&forest), leaf(&profiles));
        prop_assert_eq!(merged.body(), flat.body());
    }

    #[test]
    fn statistics_are_those_of_the_profiles(profiles in program(1..12)) {
        let round = round(&profiles);
        for (key, statistics) in round.events() {
            let having = || profiles.iter().filter_map(|profile| {
                profile.events.get(key).map(|counters| (profile.mpi_rank, counters))
            });
            prop_assert_eq!(statistics.ranks() as usize, having().count());
            for metric in Metric::ALL {
                let values: Vec<_> = having().map(|(rank, counters)| (match metric {
                    Metric::Count => counters.count,
                    Metric::TimeNs => counters.time_ns,
                    Metric::Bytes => counters.bytes,
                }, rank)).collect();
                let of = statistics.metric(metric);
                let sum: u128 = values.iter().map(|&(value, _)| u128::from(value)).sum();
                prop_assert_eq!(of.sum(), sum);
                prop_assert_eq!(Some((of.min(), of.min_rank())), values.iter().copied().min());
                let max = values.iter().map(|&(value, rank)| (value, u32::MAX - rank)).max();
                prop_assert_eq!(Some((of.max(), u32::MAX - of.max_rank())), max);

                let mean = sum as f64 / values.len() as f64;
                let squares = values.iter().map(|&(value, _)| (value as f64 - mean).powi(2));
                let deviation = (squares.sum::<f64>() / values.len() as f64).sqrt();
                let saturated = of.squares() == u128::MAX;
                prop_assert_eq!(of.standard_deviation().is_none(), saturated);
                if let Some(exact) = of.standard_deviation() {
                    let near = (exact - deviation).abs() <= 1e-6 * (mean + deviation);
                    prop_assert!(near, "{} {}", exact, deviation);
                }
            }
        }
    }

    #[test]
    fn a_merge_that_fails_changes_nothing(profiles in program(2..6), again in any::<Index>()) {
        let mut round = round(&profiles);
        let before = round.clone();
        prop_assert!(round.add(again.get(&profiles)).is_err());
        prop_assert!(round.merge(Round::new(1_000_000)).is_err());
        prop_assert_eq!(round, before);
    }
}

/// Regions that a rank has room for.
const REGIONS: u32 = 768;

fn own_region(rank: u32, number: u32) -> EventKey {
    EventKey::Region(format!("rank {rank:03}, region {number:03}"))
}

/// A rank with as many regions as there is room for, none of which another rank has.
fn with_own_regions(rank: u32, world_size: u32) -> RankProfile {
    let mut profile = RankProfile::new(rank, world_size);
    let counters = Counters { count: 3, time_ns: 5, bytes: 0 };
    profile.events.extend((0..REGIONS).map(|number| (own_region(rank, number), counters)));
    profile
}

#[test]
fn events_beyond_the_most_are_left_out_alike_in_every_tree_and_that_is_told() {
    let ranks = 86;
    let profiles: Vec<RankProfile> = (0..ranks).map(|one| with_own_regions(one, ranks)).collect();
    let flat = leaf(&profiles);
    let leaves: Vec<Packet> = profiles.chunks(1).map(leaf).collect();
    for fan_out in [2, 8] {
        assert!(tree(leaves.clone(), fan_out).body() == flat.body(), "fan-out {fan_out}");
    }
    let whole = Round::decode(flat.values()).expect("a round");
    assert!(whole.has_left_out());
    assert_eq!((whole.events().len(), whole.covered().len()), (EVENTS_MAX, ranks.into()));
    // The last ones in their order are left out, and no number of the others is touched.
    let beyond = ranks * REGIONS - u32::try_from(EVENTS_MAX).unwrap();
    let calls = |rank, number| {
        whole.event(&own_region(rank, number)).map(|event| event.metric(Metric::Count).sum())
    };
    assert_eq!((calls(0, 0), calls(ranks - 1, REGIONS - beyond - 1)), (Some(3), Some(3)));
    assert_eq!((calls(ranks - 1, REGIONS - beyond), calls(ranks - 1, REGIONS - 1)), (None, None));
}
