//! Figures of scopes that came through the filter: whatever the tree, the same groups are kept, and
//! sums take fewer bytes than sketches of the same events.

use proptest::prelude::*;
use sapwood_filter::{Emitter, Registry, WaveRef};
use sapwood_packet::{Packet, RankSet, Values};
use sapwood_trace::{ScopeCounter, ScopeFigures, ScopeKey, ScopeReduction, TRACE_SCOPE, register};

const KEPT: u32 = 3;
const TOP: ScopeReduction = ScopeReduction::Top { groups: 3 };

/// Merges the packets of some children in the filter of one process.
fn filtered(children: &[ScopeFigures], groups_max: u32) -> ScopeFigures {
    let parameters = Values::new().scalar(0_u64).scalar(groups_max);
    let mut filter = register(Registry::empty())
        .make(TRACE_SCOPE, parameters.as_ref())
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
    ScopeFigures::decode(values).expect("what the filter has made")
}

/// Events, and their sum.
fn totals(figures: &ScopeFigures) -> [u64; 2] {
    let groups = figures.groups.values();
    groups.fold([0; 2], |[count, sum], one| [count + one.count, sum + one.sum])
}

/// Figures of four ranks whose events take many different times.
fn spread(reduction: ScopeReduction) -> ScopeFigures {
    let mut figures = ScopeFigures::default();
    for rank in 0..4 {
        let key = ScopeKey { rank, ..ScopeKey::default() };
        figures.add_all(key, (1..=1_000_u64).map(|step| step * step), reduction);
    }
    figures
}

proptest! {
    #[test]
    fn the_largest_of_all_are_kept_whatever_the_tree(
        ranks in prop::collection::vec(prop::collection::vec(0_u64..50, 0..6), 1..12),
        fan_out in 2_usize..5,
    ) {
        let (mut whole, mut level) = (ScopeFigures::default(), Vec::new());
        for (rank, times) in (0..).zip(&ranks) {
            let mut leaf = ScopeFigures::default();
            for (place, &ns) in (0..).zip(times) {
                // Most functions have one event, the first two have two.
                let key = ScopeKey { rank, function: 1 + place % 4, ..ScopeKey::default() };
                leaf.add(key, ns, TOP);
            }
            whole.merge(&leaf);
            leaf.keep_largest(KEPT);
            level.push(leaf);
        }
        while level.len() > 1 {
            level = level.chunks(fan_out).map(|children| filtered(children, KEPT)).collect();
        }
        let answer = filtered(&level, KEPT);

        let told_apart = answer.groups.iter().filter(|(key, _)| **key != ScopeKey::OTHERS);
        let least = told_apart.map(|(_, one)| one.sum).min().unwrap_or(0);
        let mut folded = 0;
        for (key, one) in &whole.groups {
            match answer.groups.get(key) {
                Some(kept) => prop_assert_eq!(kept, one),
                None => {
                    prop_assert!(one.sum <= least, "{:?} of {:?}", key, answer);
                    folded += 1;
                }
            }
        }
        prop_assert_eq!(folded, whole.groups.len().saturating_sub(3));
        prop_assert_eq!(answer.groups.contains_key(&ScopeKey::OTHERS), folded > 0);
        prop_assert_eq!(totals(&answer), totals(&whole));
        prop_assert_eq!(answer.counter(ScopeCounter::Folded), 0);
        // Groups of equal sums are chosen alike, too, and so no order of merging shows.
        whole.keep_largest(KEPT);
        prop_assert_eq!(answer, whole);
    }
}

#[test]
fn without_a_number_of_groups_all_are_kept() {
    let [one, other] = [0, 1].map(|first: u32| {
        let mut figures = ScopeFigures::default();
        for rank in first * 5..first * 5 + 5 {
            figures.add(ScopeKey { rank, ..ScopeKey::default() }, 7, ScopeReduction::Sketch);
        }
        figures
    });
    assert_eq!(filtered(&[one, other], 0).groups.len(), 10);
}

#[test]
fn the_filter_takes_bytes_and_groups_or_nothing() {
    let registry = register(Registry::empty());
    assert!(registry.make(TRACE_SCOPE, Values::new().as_ref()).is_ok());
    let Err(error) = registry.make(TRACE_SCOPE, Values::new().scalar(9_u64).as_ref()) else {
        panic!("a number of groups is missing");
    };
    assert!(error.to_string().contains("%uld, and the most groups, %ud, or nothing"), "{error}");
}

#[test]
fn sums_are_those_of_a_sketch_in_fewer_bytes() {
    let (mut sketch, mut sums) = (spread(ScopeReduction::Sketch), spread(ScopeReduction::Sums));
    for (key, one) in &sketch.groups {
        let other = &sums.groups[key];
        assert_eq!(
            (one.count, one.sum, one.least, one.most, one.variance().to_bits()),
            (other.count, other.sum, other.least, other.most, other.variance().to_bits())
        );
        assert!(one.quantile(500).abs_diff(250_000) <= 250_000 / 30, "{}", one.quantile(500));
    }
    let size = |figures: &ScopeFigures| figures.encode().as_ref().body().len();
    // Four groups of nine words, beside what an answer without any group has.
    assert_eq!(size(&sums), size(&ScopeFigures::default()) + 4 * 9 * 8);
    assert!(size(&sketch) > 10 * size(&sums), "{} and {}", size(&sketch), size(&sums));
    // They come whole through a process that sketches do not pass.
    for one in [&mut sketch, &mut sums] {
        one.bound(4 * 9 * 8);
    }
    assert_eq!(sums, filtered(std::slice::from_ref(&sums), 0));
    let folded = [&sketch, &sums].map(|one| one.counter(ScopeCounter::Folded));
    assert_eq!(folded, [4, 0]);
    assert_eq!(totals(&sketch), totals(&sums));
}
