//! Lost time by communicator and function: which ranks came last, by how much, and which waited.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use sapwood_packet::{Rank, RankSet};
use sapwood_trace::{Findings, Lateness, MESSAGES, OTHERS, PlaceFigures, PlaceWaits, Standing};
use serde::{Deserialize, Serialize};

use crate::lost_places::{LostPlace, lost_places};

/// Places that are told, at most.
const PLACES_MAX: usize = 16;
/// Groups of ranks of one place that are told, at most.
const GROUPS_MAX: usize = 8;
/// A rank for which less of a place's lost time was waited, in per cent, is told with the rest.
const PART_PERCENT: u128 = 5;
/// A rank that waited less than this part of the one that waited longest is no member of a group,
/// in per cent.
const WAITER_PERCENT: u128 = 50;

/// The part of the longest wait for a rank that one at most has waited that came when it did, in
/// per cent.
const AS_LATE_PERCENT: u128 = 10;

/// A communicator and a function in which ranks have waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowPlace {
    /// What the communicator is called; empty for calls that found no room.
    pub communicator: String,
    /// Processes of it.
    pub size: u32,
    /// The function.
    pub function: String,
    /// Collectives of which all processes are known.
    pub collectives: u64,
    /// Time that ranks have waited here for others, all together.
    pub lost_s: f64,
    /// The part of all ranks' time that this is.
    pub lost_share: f64,
    /// The ranks that made them wait, the longest first.
    pub groups: Vec<SlowGroup>,
}

/// Ranks for which the same others have waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowGroup {
    /// The ranks that are named: those that came last, without those that had waited for others
    /// elsewhere. If all of them had, these others.
    pub ranks: String,
    /// The ranks that came last, of which the following fields are.
    #[serde(default)]
    pub came_last: String,
    /// How often one of these came last.
    pub times_last: u64,
    /// How often they were late by about as much as is told in `late_s`.
    pub times_late: u64,
    /// By how much they then came after the others, on the mean.
    pub late_s: f64,
    /// Those that waited for them.
    pub waiting: String,
    /// How long these did, all together.
    pub waited_s: f64,
    /// How long all others together waited for them.
    pub lost_s: f64,
    /// The part of the place's lost time that this is.
    pub lost_share: f64,
}

/// A rank for whose messages others have waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowMessages {
    /// The rank.
    pub rank: u32,
    /// Calls that waited for a message that it had not begun to send.
    pub late_sends: u64,
    /// How long.
    pub send_wait_s: f64,
    /// Sends, and exchanges such as MPI_Sendrecv, that waited for it to begin to receive.
    pub late_receives: u64,
    /// How long.
    pub receive_wait_s: f64,
    /// The longest time that one rank has waited for it in these.
    pub longest_s: f64,
    /// How long it has waited itself, for messages and in collectives.
    pub own_wait_s: f64,
    /// Whether it came late because it waited itself: that it did makes up most of `longest_s`.
    pub is_passed_on: bool,
}

fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}

/// The places of a run, those with most lost time first.
#[allow(clippy::cast_precision_loss, reason = "shares are shown with two figures")]
pub(super) fn places(
    findings: &Findings,
    standing: &Standing,
    elapsed: Duration,
) -> Vec<SlowPlace> {
    let whole_ns = elapsed.as_nanos() as f64 * f64::from(standing.world_size.max(1));
    let all = Pairs::of(findings.places.values());
    let told = |place: LostPlace<'_>| {
        let one = place.figures;
        SlowPlace {
            communicator: place.communicator,
            size: one.size,
            function: place.function,
            collectives: one.collectives,
            lost_s: seconds(one.lost_ns()),
            lost_share: one.lost_ns() as f64 / whole_ns.max(1.0),
            groups: groups(one, &all),
        }
    };
    lost_places(findings, standing, PLACES_MAX).into_iter().map(told).collect()
}

/// How long, in nanoseconds, one rank has waited for another: by that one and this one.
#[derive(Default)]
struct Pairs(BTreeMap<(Rank, Rank), u64>);

impl Pairs {
    fn of<'a>(places: impl Iterator<Item = &'a PlaceFigures>) -> Self {
        let mut all = Self::default();
        for (&(by, held), one) in places.flat_map(|place| &place.waits) {
            let sum = all.0.entry((held, by)).or_default();
            *sum = sum.saturating_add(one.wait_ns);
        }
        all
    }

    /// Whether a rank is late to a place because it waits for another elsewhere: for more than
    /// half of the longest time that one rank waits here for one of these two. The other one need
    /// not be the last one here: it may have come just before.
    fn is_held(&self, place: &PlaceFigures, rank: Rank, by: Rank) -> bool {
        let here = place.waits.get(&(by, rank)).map_or(0, |one| one.wait_ns);
        let elsewhere = self.0.get(&(rank, by)).copied().unwrap_or(0).saturating_sub(here);
        let waits = |late: Rank| place.waits.range((late, 0)..(late, OTHERS));
        let longest = waits(rank).chain(waits(by)).map(|(_, one)| one.wait_ns).max().unwrap_or(0);
        longest > 0 && elsewhere.saturating_mul(2) > longest
    }

    /// The ranks that are to be named of those that come together while others wait. In the place
    /// of one that another of them holds up before, or another that comes shortly before it, that
    /// one.
    fn named(&self, place: &PlaceFigures, ranks: &RankSet, waiters: &RankSet) -> RankSet {
        let is_held = |rank: Rank, by: Rank| {
            by != rank && self.is_held(place, rank, by) && !self.is_held(place, by, rank)
        };
        let comes_along = |rank: Rank, by: Rank| {
            ranks.contains(by) || place.waits.contains_key(&(rank, by)) && !waiters.contains(by)
        };
        let mut holders = RankSet::new();
        let mut free = RankSet::new();
        for rank in ranks.iter() {
            let by = self.0.range((rank, 0)..=(rank, Rank::MAX)).map(|(&(_, by), _)| by);
            let by: RankSet = by.filter(|&by| comes_along(rank, by) && is_held(rank, by)).collect();
            if by.is_empty() {
                free.insert(rank);
            }
            holders.union_with(by.as_ref());
        }
        // Of those that hold up each other in a circle all are named.
        match (free.is_empty(), ranks.as_ref().intersects(holders.as_ref())) {
            (true, true) => ranks.clone(),
            (true, false) => holders,
            (false, _) => free,
        }
    }
}

/// Ranks of a place for which the same others have waited; `all` has the waits of all places.
#[allow(clippy::cast_precision_loss, reason = "shares are shown with two figures")]
fn groups(place: &PlaceFigures, all: &Pairs) -> Vec<SlowGroup> {
    let lost_ns = place.lost_ns();
    let matters = |rank: Rank| {
        let mine = u128::from(place.lost_for(rank));
        mine * 100 >= u128::from(lost_ns) * PART_PERCENT && mine > 0
    };
    let mut late: Vec<Rank> = place.late.keys().copied().filter(|&rank| matters(rank)).collect();
    late.sort_by_key(|&rank| (Reverse(place.lost_for(rank)), rank));
    // Each rank is of one group: by itself, or with the first one that it comes together with.
    let mut grouped: RankSet = late.iter().copied().collect();
    let mut by_waiters: BTreeMap<String, (RankSet, RankSet)> = BTreeMap::new();
    for rank in late {
        let waiters = waiters(place, rank, None);
        let beside = as_late(place, rank).difference(grouped.as_ref());
        grouped.union_with(beside.as_ref());
        let group = by_waiters.entry(waiters.to_string()).or_default();
        group.0.insert(rank);
        group.0.union_with(beside.as_ref());
        group.1 = waiters;
    }
    merge_turns(place, &mut by_waiters);
    let mut groups: Vec<SlowGroup> = by_waiters
        .into_values()
        .map(|(ranks, waiters)| {
            let mut late = Lateness::default();
            ranks.iter().filter_map(|rank| place.late.get(&rank)).for_each(|one| late.merge(one));
            let (times_late, mean_ns) = late.usual();
            let waited_ns = waited_ns(place, &ranks, &waiters);
            let late_ns = match ranks == waiters {
                true => mean_ns,
                false => as_waited(mean_ns, waited_ns / waiters.len().max(1), late.total_ns()),
            };
            let group_ns = ranks.iter().map(|rank| place.lost_for(rank)).sum::<u64>();
            let came_last = ranks.to_string();
            let named = if ranks == waiters { ranks } else { all.named(place, &ranks, &waiters) };
            SlowGroup {
                ranks: named.to_string(),
                came_last,
                times_last: late.last,
                times_late,
                late_s: seconds(late_ns),
                waiting: waiters.to_string(),
                waited_s: seconds(waited_ns),
                lost_s: seconds(group_ns),
                lost_share: group_ns as f64 / lost_ns.max(1) as f64,
            }
        })
        .collect();
    groups.sort_by(|one, other| other.lost_s.total_cmp(&one.lost_s));
    groups.truncate(GROUPS_MAX);
    groups
}

/// A mean lateness, as those saw it that waited: it is measured from the mean arrival of all
/// others, of which some may have come together with the one that was last.
fn as_waited(mean_ns: u64, each_waited_ns: u64, late_ns: u64) -> u64 {
    let ns = u128::from(mean_ns) * u128::from(each_waited_ns) / u128::from(late_ns.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// How long some ranks have waited for others, all together.
fn waited_ns(place: &PlaceFigures, ranks: &RankSet, waiters: &RankSet) -> u64 {
    let is_of = |(late, waiter): (Rank, Rank)| ranks.contains(late) && waiters.contains(waiter);
    let all = place.waits.iter().filter(|(key, _)| is_of(**key));
    all.fold(0, |sum, (_, one)| sum.saturating_add(one.wait_ns))
}

/// Those that waited for a rank, without those that did so only seldom or for short.
fn waiters(place: &PlaceFigures, rank: Rank, without: Option<&RankSet>) -> RankSet {
    let range = (rank, 0)..(rank, OTHERS);
    let most = place.waits.range(range.clone()).map(|(_, one)| one.wait_ns).max().unwrap_or(0);
    let is_one = |wait_ns: u64| u128::from(wait_ns) * 100 >= u128::from(most) * WAITER_PERCENT;
    let all = place.waits.range(range).filter(|(_, one)| is_one(one.wait_ns));
    let all = all.map(|(&(_, waiter), _)| waiter);
    all.filter(|waiter| without.is_none_or(|ranks| !ranks.contains(*waiter))).collect()
}

/// Ranks that came about when one did that came last: they have waited for it as often as those
/// that waited long, and next to nothing.
fn as_late(place: &PlaceFigures, rank: Rank) -> RankSet {
    let range = (rank, 0)..(rank, OTHERS);
    let most = place.waits.range(range.clone()).map(|(_, one)| *one).max_by_key(|one| one.wait_ns);
    let Some(most) = most else { return RankSet::new() };
    let is_one = |one: &PlaceWaits| {
        one.calls.saturating_mul(2) >= most.calls
            && u128::from(one.wait_ns) * 100 <= u128::from(most.wait_ns) * AS_LATE_PERCENT
    };
    let all = place.waits.range(range).filter(|(_, one)| is_one(one));
    all.map(|(&(_, waiter), _)| waiter).collect()
}

/// Ranks that wait for all others, each in its turn, are one group: all of them wait.
fn merge_turns(place: &PlaceFigures, groups: &mut BTreeMap<String, (RankSet, RankSet)>) {
    let all: Vec<(RankSet, RankSet)> = groups.values().cloned().collect();
    let is_alone = |(ranks, waiters): &(RankSet, RankSet)| {
        ranks.len() == 1 && waiters.len() + 1 >= u64::from(place.size)
    };
    if all.len() < 2 || !all.iter().all(is_alone) {
        return;
    }
    let mut joined = (RankSet::new(), RankSet::new());
    for (ranks, waiters) in &all {
        joined.0.union_with(ranks.as_ref());
        joined.1.union_with(waiters.as_ref());
    }
    // Where one of them stands out it stays by itself.
    let lost: Vec<u64> = joined.0.iter().map(|rank| place.lost_for(rank)).collect();
    let (least, most) = (lost.iter().min().copied(), lost.iter().max().copied());
    if most.unwrap_or(0) <= least.unwrap_or(0).saturating_mul(2) {
        groups.clear();
        groups.insert(joined.1.to_string(), joined);
    }
}

/// Ranks for whose messages others have waited, the longest first.
pub(super) fn messages(findings: &Findings) -> Vec<SlowMessages> {
    let late = findings
        .made
        .iter()
        .filter(|(rank, one)| **rank != OTHERS && one.send_ns.saturating_add(one.receive_ns) > 0);
    let mut all: Vec<SlowMessages> = late
        .map(|(&rank, one)| {
            let longest_ns = longest_ns(findings, rank);
            let own_ns = own_wait_ns(findings, rank);
            SlowMessages {
                rank,
                late_sends: one.sends,
                send_wait_s: seconds(one.send_ns),
                late_receives: one.receives,
                receive_wait_s: seconds(one.receive_ns),
                longest_s: seconds(longest_ns),
                own_wait_s: seconds(own_ns),
                is_passed_on: own_ns.saturating_mul(2) > longest_ns,
            }
        })
        .collect();
    let weight = |one: &SlowMessages| {
        let total = one.send_wait_s + one.receive_wait_s;
        if one.is_passed_on { -1.0 / (1.0 + total) } else { total }
    };
    all.sort_by(|one, other| weight(other).total_cmp(&weight(one)));
    all.truncate(PLACES_MAX);
    all
}

/// The longest time that one rank has waited for the messages of another, or until it took them.
fn longest_ns(findings: &Findings, rank: Rank) -> u64 {
    let Some(place) = findings.places.get(&MESSAGES) else { return 0 };
    let waits = place.waits.range((rank, 0)..=(rank, Rank::MAX));
    waits.map(|(_, one)| one.wait_ns).max().unwrap_or(0)
}

/// How long a rank has waited for others.
fn own_wait_ns(findings: &Findings, rank: Rank) -> u64 {
    let own = findings.waited.range((rank, 0)..=(rank, u32::MAX));
    own.fold(0, |all, (_, one)| all.saturating_add(one.wait_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(late: &[(Rank, &[Rank])]) -> PlaceFigures {
        let mut place = PlaceFigures { size: 4, collectives: 100, ..PlaceFigures::default() };
        for (rank, waiters) in late {
            let mut lateness = Lateness::default();
            (0..50).for_each(|_| lateness.add(60_000_000));
            place.late.insert(*rank, lateness);
            for waiter in *waiters {
                let one = PlaceWaits { calls: 50, wait_ns: 3_000_000_000 };
                place.waits.insert((*rank, *waiter), one);
            }
        }
        place
    }

    fn told(late: &[(Rank, &[Rank])]) -> Vec<(String, String, u64)> {
        let groups = groups(&place(late), &Pairs::default());
        groups.into_iter().map(|one| (one.ranks, one.waiting, one.times_late)).collect()
    }

    #[test]
    fn ranks_that_the_same_others_wait_for_are_one_group() {
        let late: [(Rank, &[Rank]); 4] = [(0, &[2, 3]), (1, &[2, 3]), (2, &[0, 1]), (3, &[0, 1])];
        let expected = [("2-3".into(), "0-1".into(), 100), ("0-1".into(), "2-3".into(), 100)];
        let mut all = told(&late);
        all.sort_by(|one, other| other.0.cmp(&one.0));
        assert_eq!(all, expected);
    }

    #[test]
    fn a_rank_that_comes_with_the_last_one_is_of_its_group() {
        let mut place = place(&[(1, &[2, 3])]);
        let one = PlaceWaits { calls: 48, wait_ns: 20_000_000 };
        place.waits.insert((1, 0), one);
        let ranks = |place| {
            groups(&place, &Pairs::default()).into_iter().map(|one| one.ranks).collect::<Vec<_>>()
        };
        assert_eq!(ranks(place.clone()), ["0-1"]);
        place.waits.insert((1, 0), PlaceWaits { calls: 3, ..one });
        assert_eq!(ranks(place), ["1"], "it was seldom there");
    }

    #[test]
    fn a_rank_that_the_last_one_held_up_elsewhere_is_not_named_with_it() {
        // Rank 0 gives its part of a broadcast to rank 1, which is slow, and comes late with it.
        let of = |wait_ns: u64, by: Rank, held: Rank| {
            let here = place(&[(0, &[2, 3]), (1, &[2, 3])]);
            let mut elsewhere = PlaceFigures::default();
            elsewhere.waits.insert((by, held), PlaceWaits { calls: 50, wait_ns });
            let all = Pairs::of([&here, &elsewhere].into_iter());
            let groups = groups(&here, &all);
            groups.into_iter().map(|one| (one.ranks, one.times_last)).collect::<Vec<_>>()
        };
        assert_eq!(of(2_900_000_000, 1, 0), [("1".into(), 100)]);
        assert_eq!(of(2_900_000_000, 0, 1), [("0".into(), 100)]);
        assert_eq!(of(1_000_000_000, 1, 0), [("0-1".into(), 100)], "a third of its lateness");
        assert_eq!(of(2_900_000_000, 2, 0), [("0-1".into(), 100)], "another one held it up");
    }

    #[test]
    fn a_rank_that_comes_last_behind_the_one_that_held_it_up_is_not_named() {
        // Rank 1 waits for a message of rank 0, which comes to the collective some time before it.
        let of = |short_ns: u64, elsewhere_ns: u64| {
            let mut here = place(&[(1, &[2, 3])]);
            here.waits.insert((1, 0), PlaceWaits { calls: 50, wait_ns: short_ns });
            let mut elsewhere = PlaceFigures::default();
            elsewhere.waits.insert((0, 1), PlaceWaits { calls: 50, wait_ns: elsewhere_ns });
            let groups = groups(&here, &Pairs::of([&here, &elsewhere].into_iter()));
            groups.into_iter().map(|one| (one.ranks, one.waiting)).collect::<Vec<_>>()
        };
        assert_eq!(of(20_000_000, 2_900_000_000), [("0".into(), "2-3".into())], "with it");
        assert_eq!(of(900_000_000, 2_000_000_000), [("0".into(), "2-3".into())], "before it");
        assert_eq!(of(900_000_000, 1_000_000_000), [("1".into(), "2-3".into())], "by a third");
        assert_eq!(of(2_900_000_000, 2_900_000_000), [("1".into(), "0,2-3".into())], "it waits");
    }

    #[test]
    fn a_rank_that_is_not_in_the_collective_is_not_named_there() {
        let here = place(&[(1, &[2, 3])]);
        let mut elsewhere = PlaceFigures::default();
        let one = PlaceWaits { calls: 50, wait_ns: 2_900_000_000 };
        elsewhere.waits.insert((7, 1), one);
        let groups = groups(&here, &Pairs::of([&here, &elsewhere].into_iter()));
        assert_eq!(groups[0].ranks, "1");
    }

    #[test]
    fn one_slow_rank_stands_alone() {
        assert_eq!(told(&[(1, &[0, 2, 3])]), [("1".into(), "0,2-3".into(), 50)]);
    }

    #[test]
    fn ranks_that_come_last_by_turns_are_told_together() {
        let late: [(Rank, &[Rank]); 4] =
            [(0, &[1, 2, 3]), (1, &[0, 2, 3]), (2, &[0, 1, 3]), (3, &[0, 1, 2])];
        assert_eq!(told(&late), [("0-3".into(), "0-3".into(), 200)]);
    }

    #[test]
    fn a_rank_that_only_passes_a_delay_on_is_told_apart() {
        let mut findings = Findings::default();
        let mut place = PlaceFigures::default();
        let mut late = |rank: Rank, waiters: &[Rank], ns: u64| {
            let made = findings.made.entry(rank).or_default();
            for waiter in waiters {
                made.sends += 10;
                made.send_ns += ns;
                place.waits.insert((rank, *waiter), PlaceWaits { calls: 10, wait_ns: ns });
                let event = findings.waited.entry((*waiter, 1)).or_default();
                event.wait_ns += ns;
            }
        };
        // Worker 2 is slow; the master waits for it, and the other workers for the master.
        late(2, &[0], 2_000_000_000);
        late(0, &[1, 3], 2_000_000_000);
        findings.places.insert(MESSAGES, place);
        let told = messages(&findings);
        let told: Vec<_> = told.iter().map(|one| (one.rank, one.is_passed_on)).collect();
        assert_eq!(told, [(2, false), (0, true)]);
    }
}
