//! The view of all members, by news in any order, against the same computed name by name.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, btree_set};
use proptest::prelude::*;
use sapwood_group::MemberId;
use sapwood_group::members::View;
use sapwood_group::message::{Life, Record};
use sapwood_packet::RankSet;

const NAMES: u32 = 16;

/// Records of a few members that claim each other's virtual nodes; a member says other names only
/// with another incarnation.
fn news() -> impl Strategy<Value = Vec<Record>> {
    let names = btree_set(0..NAMES, 0..8);
    let said = btree_map((1_u64..5, 0_u32..4), (names, 0_usize..3), 1..12);
    let record = |((id, incarnation), (names, lives)): ((u64, u32), (BTreeSet<u32>, usize))| {
        let names = names.into_iter().collect::<RankSet>();
        let record = Record { incarnation, ..Record::new(MemberId(id), &names) };
        let lives = [Life::Alive, Life::Dead, Life::Left].into_iter().take(lives + 1);
        lives.map(move |life| Record { life, ..record.clone() })
    };
    said.prop_map(move |said| said.into_iter().flat_map(record).collect::<Vec<_>>()).prop_shuffle()
}

/// Of the newest record of each member: the smallest living one that claims a name has it.
fn owners(news: &[Record]) -> BTreeMap<u32, MemberId> {
    let mut newest: BTreeMap<MemberId, &Record> = BTreeMap::new();
    for record in news {
        let known = newest.entry(record.id).or_insert(record);
        if (known.incarnation, known.life) < (record.incarnation, record.life) {
            *known = record;
        }
    }
    let mut owners = BTreeMap::new();
    for record in newest.into_values().filter(|record| record.life == Life::Alive) {
        for name in record.names.as_set().iter() {
            owners.entry(name).or_insert(record.id);
        }
    }
    owners
}

proptest! {
    #[test]
    fn news_in_any_order_gives_each_name_to_the_smallest_member_that_claims_it(news in news()) {
        let mut view = View::default();
        for at in 0..news.len() {
            view.merge(news[at].clone());
            let expected = owners(&news[..=at]);
            let found: BTreeMap<u32, MemberId> =
                (0..NAMES).filter_map(|name| Some((name, view.owner(name)?))).collect();
            prop_assert_eq!(&found, &expected);
            let everyone = expected.keys().copied().collect::<RankSet>();
            prop_assert_eq!(view.everyone(), &everyone);
            let (by_member, unassigned) = view.owners(RankSet::range(0, NAMES - 1).as_ref());
            prop_assert_eq!(unassigned, RankSet::range(0, NAMES - 1).difference(everyone.as_ref()));
            for (member, names) in by_member {
                prop_assert_eq!(&view.names_of(member), &names);
                prop_assert!(names.iter().all(|name| expected[&name] == member));
            }
        }
    }
}
