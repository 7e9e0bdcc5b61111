//! Rank sets over the whole range of numbers, and as they come from outside.

use proptest::prelude::*;
use sapwood_packet::{PacketError, Rank, RankRange, RankSet, RankSetRef};

/// Ranks near both ends and in between.
fn any_rank() -> impl Strategy<Value = Rank> {
    prop_oneof![0_u32..12, Rank::MAX - 12..=Rank::MAX, any::<u32>()]
}

fn any_set() -> impl Strategy<Value = RankSet> {
    proptest::collection::vec((any_rank(), 0_u32..6), 0..10).prop_map(|ranges| {
        let mut set = RankSet::new();
        for (first, more) in ranges {
            set.insert_range(first, first.saturating_add(more));
        }
        set
    })
}

/// The plain meaning: each rank looked at where a range begins or ends.
fn agrees(set: &RankSet, on: &[Rank], holds: impl Fn(Rank) -> bool) -> Result<(), TestCaseError> {
    for rank in on {
        for near in [rank.saturating_sub(1), *rank, rank.saturating_add(1)] {
            prop_assert_eq!(set.contains(near), holds(near), "rank {} of {}", near, set);
        }
    }
    prop_assert!(RankSetRef::from_ranges(set.as_ref().ranges()).is_ok(), "{} is in order", set);
    Ok(())
}

proptest! {
    #[test]
    fn sets_of_any_ranks_are_joined_and_cut(mine in any_set(), theirs in any_set()) {
        let on: Vec<Rank> =
            [&mine, &theirs].iter().flat_map(|set| set.as_ref().ranges().concat()).collect();
        let mut union = mine.clone();
        union.union_with(theirs.as_ref());
        agrees(&union, &on, |rank| mine.contains(rank) || theirs.contains(rank))?;
        let mut common = mine.clone();
        common.intersect_with(theirs.as_ref());
        agrees(&common, &on, |rank| mine.contains(rank) && theirs.contains(rank))?;
        let rest = mine.difference(theirs.as_ref());
        agrees(&rest, &on, |rank| mine.contains(rank) && !theirs.contains(rank))?;
        prop_assert_eq!(union.len(), mine.len() + theirs.len() - common.len());
        prop_assert_eq!(mine.as_ref().intersects(theirs.as_ref()), !common.is_empty());
    }

    #[test]
    fn a_set_is_the_same_in_whatever_order_it_is_built(
        ranges in proptest::collection::vec((any_rank(), 0_u32..6), 0..8).prop_shuffle(),
    ) {
        let build = |ranges: &mut dyn Iterator<Item = &(Rank, u32)>| {
            let mut set = RankSet::new();
            ranges.for_each(|(first, more)| set.insert_range(*first, first.saturating_add(*more)));
            set
        };
        let set = build(&mut ranges.iter());
        prop_assert_eq!(&set, &build(&mut ranges.iter().rev()));
        prop_assert_eq!(set.to_string().parse::<RankSet>(), Ok(set));
    }

    #[test]
    fn ranges_from_outside_are_a_set_or_refused(
        ranges in proptest::collection::vec([any_rank(), any_rank()], 0..5),
    ) {
        let mut built = RankSet::new();
        ranges.iter().for_each(|[first, last]: &RankRange| built.insert_range(*first, *last));
        match RankSetRef::from_ranges(&ranges) {
            Ok(set) => prop_assert_eq!(set.to_set(), built),
            Err(error) => {
                prop_assert_eq!(error, PacketError::RankOrder);
                prop_assert_ne!(built.as_ref().ranges(), ranges);
            }
        }
    }

    #[test]
    fn any_text_is_a_rank_set_or_refused(text in "\\PC{0,20}|([0-9]{1,11}[-, ]{0,2}){0,6}") {
        if let Ok(set) = text.parse::<RankSet>() {
            prop_assert_eq!(set.to_string().parse::<RankSet>(), Ok(set));
        }
    }
}
