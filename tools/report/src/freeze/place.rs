//! A window summed up by communicator and function.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use sapwood_packet::RankSet;
use serde::{Deserialize, Serialize};

use super::{Freeze, FreezeCollective};

/// Calls of one function on one communicator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FreezePlace {
    /// The communicator, by its place in the list; null if it is not known.
    pub communicator: Option<usize>,
    /// The function.
    pub function: String,
    /// Calls of it.
    pub calls: u64,
    /// Of these, those that had not returned.
    pub open: u64,
    /// Ranks that made them.
    pub ranks: String,
    /// Collectives that begin with it.
    pub instances: u64,
    /// Of these, those to which all processes came in the window.
    pub whole: u64,
    /// Of these, those of which the clocks do not tell which rank came last.
    pub undecided: u64,
    /// Between the first and the last arrival of these, in nanoseconds: the mean; null for none.
    pub spread_mean_ns: Option<u64>,
    /// The longest.
    pub spread_max_ns: Option<u64>,
    /// How long its calls have waited for other ranks, all together, in nanoseconds.
    pub wait_ns: u64,
    /// The ranks for which others waited: the last one, or a root that came later than another
    /// rank; those for which that was so most often first.
    pub last: Vec<FreezeLast>,
    /// The ranks for which calls wait still.
    pub absent: String,
}

/// A rank for which others waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreezeLast {
    /// The rank.
    pub rank: u32,
    /// How often.
    pub times: u64,
}

/// Which place: communicator and function.
type Key = (Option<usize>, String);

#[derive(Default)]
struct Sums {
    place: FreezePlace,
    ranks: RankSet,
    absent: RankSet,
    spread_ns: u128,
    last: BTreeMap<u32, u64>,
}

pub(super) fn places(freeze: &Freeze) -> Vec<FreezePlace> {
    let mut found: BTreeMap<Key, Sums> = BTreeMap::new();
    for event in &freeze.events {
        let sums = found.entry((event.communicator, event.function.clone())).or_default();
        sums.place.calls += 1;
        sums.place.open += u64::from(event.is_open);
        sums.place.wait_ns = sums.place.wait_ns.saturating_add(event.wait_ns.unwrap_or(0));
        sums.ranks.insert(event.rank);
    }
    for one in &freeze.collectives {
        let sums = found.entry((Some(one.communicator), one.function.clone())).or_default();
        sums.add(freeze, one);
    }
    let mut places: Vec<FreezePlace> = found.into_iter().map(Sums::place).collect();
    places.sort_by_key(|place| Reverse((place.wait_ns, place.calls)));
    places
}

impl Sums {
    fn add(&mut self, freeze: &Freeze, one: &FreezeCollective) {
        let place = &mut self.place;
        place.instances += 1;
        self.absent.union_with(one.absent.parse::<RankSet>().unwrap_or_default().as_ref());
        let (Some(spread), Some(last)) = (one.spread_ns, one.last) else { return };
        place.whole += 1;
        place.spread_max_ns = place.spread_max_ns.max(Some(spread));
        self.spread_ns += u128::from(spread);
        if one.is_late {
            *self.last.entry(freeze.events[last].rank).or_default() += 1;
        } else if !one.is_decided {
            place.undecided += 1;
        }
    }

    fn place(((communicator, function), sums): (Key, Self)) -> FreezePlace {
        let mut last: Vec<FreezeLast> =
            sums.last.iter().map(|(&rank, &times)| FreezeLast { rank, times }).collect();
        last.sort_by_key(|one| (Reverse(one.times), one.rank));
        let whole = u128::from(sums.place.whole);
        FreezePlace {
            communicator,
            function,
            ranks: sums.ranks.to_string(),
            absent: sums.absent.to_string(),
            spread_mean_ns: sums.spread_ns.checked_div(whole).and_then(|ns| ns.try_into().ok()),
            last,
            ..sums.place
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::freeze::tests::{freeze, frozen};

    #[test]
    fn a_place_has_its_collectives_and_who_came_last() {
        let freeze = freeze(frozen());
        let [place] = &freeze.places[..] else { panic!("one place: {:?}", freeze.places) };
        assert_eq!((place.calls, place.open, place.instances, place.whole), (11, 3, 3, 2));
        assert_eq!(place.last, [FreezeLast { rank: 1, times: 2 }]);
        assert_eq!((place.ranks.as_str(), place.absent.as_str()), ("0-3", "1"));
        assert_eq!(place.spread_mean_ns, Some(500_001_000));
        // Twice three ranks wait half a second, and three wait for ten seconds still.
        assert_eq!(place.wait_ns, 2 * 1_499_998_000 + 29_999_995_000);
    }
}
