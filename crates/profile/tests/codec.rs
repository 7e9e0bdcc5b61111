//! Rounds and rows come back as they were sent, and no values make their readers panic.

use crate::harness::{busy, program, round};
use proptest::prelude::*;
use proptest::sample::Index;
use sapwood_packet::{Format, Values, ValuesRef};
use sapwood_profile::{Counters, EventKey, RankProfile, RankRows, Round};

/// More than all that a round has besides its events, times of activities included.
const HEAD_BYTES: usize = 4096;
/// Enough events that a column of their statistics is longer than that.
const EVENTS: u32 = 500;

#[test]
fn a_round_of_one_rank_is_hardly_longer_than_its_row() {
    let mut profile = RankProfile::new(0, 1);
    let counters = Counters { count: 3, time_ns: 5, bytes: 0 };
    let region = |number: u32| (EventKey::Region(format!("region {number}")), counters);
    profile.events.extend((0..EVENTS).map(region));
    let length = |values: Values| values.into_parts().1.as_bytes().len();
    let whole = length(round(std::slice::from_ref(&profile)).encode());
    let row = length(RankRows::new(vec![profile]).expect("one rank").encode());
    assert!(whole < row + HEAD_BYTES, "{whole} bytes beside {row}");
}

proptest! {
    #[test]
    fn a_round_comes_back(profiles in program(1..8).prop_flat_map(busy)) {
        let round = round(&profiles);
        prop_assert_eq!(Round::decode(round.encode().as_ref()), Ok(round));
    }

    #[test]
    fn rows_come_back(profiles in program(1..8)) {
        let rows = RankRows::new(profiles.clone()).expect("every rank once");
        let decoded = RankRows::decode(rows.encode().as_ref()).expect("its own packet");
        prop_assert_eq!(&decoded, &rows);
        prop_assert_eq!(decoded.profiles(), &profiles[..]);
        prop_assert_eq!(decoded.round(), Ok(round(&profiles)));
        let events: usize = profiles.iter().map(|profile| profile.events.len()).sum();
        prop_assert_eq!(rows.rows().count(), events);
    }

    #[test]
    fn rows_of_many_leaves_are_put_together(profiles in program(2..12), at in any::<Index>()) {
        let (left, right) = profiles.split_at(at.index(profiles.len()));
        let mut rows = RankRows::new(right.to_vec()).expect("every rank once");
        rows.extend(RankRows::new(left.to_vec()).expect("every rank once")).expect("others");
        prop_assert_eq!(rows.profiles(), &profiles[..]);
        prop_assert!(rows.extend(RankRows::new(profiles).expect("every rank once")).is_err());
    }

    #[test]
    fn a_changed_byte_makes_no_reader_panic(
        profiles in program(1..4),
        changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..6),
    ) {
        let rows = RankRows::new(profiles.clone()).expect("every rank once").encode();
        for values in [round(&profiles).encode(), rows] {
            let (format, mut body) = values.into_parts();
            for (at, byte) in &changes {
                *at.get_mut(body.as_mut_bytes()) = *byte;
            }
            if let Ok(values) = ValuesRef::parse(format.as_ref(), body.as_bytes()) {
                read(values)?;
            }
        }
    }

    #[test]
    fn arbitrary_bytes_make_no_reader_panic(body in proptest::collection::vec(any::<u64>(), 0..80)) {
        let body: Vec<u64> = body.into_iter().map(|word| word % 7).collect();
        let formats = [
            "%ud %ud %uld %uld %aud %aud %aud %aud %aud %as %aud %auld %auld %auld %auld %auld \
             %auld %aud %aud",
            "%ud %ud %aud %aud %auc %auld %auld %auld %as %as %aud %as %aud %auld %auld %auld",
        ];
        for format in formats {
            let format: Format = format.parse().expect("a format");
            let bytes: &[u8] = bytemuck::cast_slice(&body);
            read(ValuesRef::new(format.as_ref(), bytes))?;
        }
    }
}

/// Reads values as what they may be; what can be read is what would be sent again.
fn read(values: ValuesRef<'_>) -> Result<(), TestCaseError> {
    if let Ok(round) = Round::decode(values) {
        for (_, statistics) in round.events() {
            let deviation = statistics.time_ns.standard_deviation();
            prop_assert!(deviation.is_none_or(|deviation| deviation >= 0.0));
        }
        prop_assert_eq!(Round::decode(round.encode().as_ref()), Ok(round));
    }
    if let Ok(rows) = RankRows::decode(values) {
        prop_assert_eq!(RankRows::decode(rows.encode().as_ref()), Ok(rows));
    }
    Ok(())
}
