//! Any text as a rank set, any numbers as its ranges, and what sets do with each other.

use sapwood_packet::{RankRange, RankSet, RankSetRef};

use crate::Target;

/// Rank sets.
pub const TARGET: Target = Target { name: "ranks", run, repair: None };

fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    // The two sides of a bar are two sets.
    let (left, right) = text.split_once('|').unwrap_or((&text, ""));
    let (left, right) = (left.parse::<RankSet>(), right.parse::<RankSet>());
    match (&left, &right) {
        (Ok(left), Ok(right)) => check_pair(left, right),
        (Err(error), _) | (_, Err(error)) => assert!(!error.to_string().is_empty()),
    }
    let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let ranges: Vec<RankRange> =
        input.chunks_exact(8).map(|range| [number(range), number(&range[4..])]).collect();
    let mut built = RankSet::new();
    for [first, last] in &ranges {
        built.insert_range(*first, *last);
    }
    check_set(&built);
    if let Ok(set) = RankSetRef::from_ranges(&ranges) {
        assert_eq!(set.to_set(), built, "ranges in order are the set that they build");
        check_pair(&set.to_set(), &RankSet::range(1, 3));
    }
}

fn check_set(set: &RankSet) {
    assert!(RankSetRef::from_ranges(set.as_ref().ranges()).is_ok(), "a set is in order");
    assert_eq!(set.to_string().parse::<RankSet>().as_ref(), Ok(set));
    assert_eq!(set.is_empty(), set.iter().next().is_none());
    assert_eq!(set.as_ref().first(), set.iter().next());
    for [first, last] in set.as_ref().ranges() {
        assert!(set.contains(*first) && set.contains(*last));
        assert!(first.checked_sub(1).is_none_or(|before| !set.contains(before)));
        assert!(last.checked_add(1).is_none_or(|behind| !set.contains(behind)));
    }
}

fn check_pair(left: &RankSet, right: &RankSet) {
    let mut union = left.clone();
    union.union_with(right.as_ref());
    let mut common = left.clone();
    common.intersect_with(right.as_ref());
    let only_left = left.difference(right.as_ref());
    let only_right = right.difference(left.as_ref());
    for set in [left, right, &union, &common, &only_left, &only_right] {
        check_set(set);
    }
    assert_eq!(union.len(), only_left.len() + only_right.len() + common.len());
    assert_eq!(left.len(), only_left.len() + common.len());
    assert_eq!(left.as_ref().intersects(right.as_ref()), !common.is_empty());
    let mut mirrored = right.clone();
    mirrored.intersect_with(left.as_ref());
    assert_eq!(mirrored, common);
}
