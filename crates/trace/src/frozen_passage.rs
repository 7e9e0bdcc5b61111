//! How the processes of a collective in the window came and left.
//!
//! Once all processes have left a collective it is known how they passed it ([`FrozenPassage`]):
//! how long each was there before the last one came, in which order they left, and how long after
//! the last arrival. These are the arrival and departure waits of EventSpace's load-balance
//! monitor. Between hosts none is reported that is not longer than the clocks may be off.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use sapwood_packet::Rank;

use crate::event::EventKind;
use crate::frozen::{Frozen, FrozenEvent};
use crate::instance::Arrival;

/// How the processes of a collective came and left, when all of them have left.
///
/// Every time here is none where it is not longer than the clocks may be off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrozenPassage {
    /// From the first arrival to the last departure, in nanoseconds.
    pub elapsed: Option<u64>,
    /// How long before the last arrival each came, in nanoseconds; in the order of
    /// [`FrozenInstance::arrivals`](crate::FrozenInstance::arrivals).
    pub arrival_waits: Vec<Option<u64>>,
    /// How they left, by the times that were measured.
    pub departures: Vec<FrozenDeparture>,
}

/// How one process left a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrozenDeparture {
    /// The event with whose return it left, as a place in [`Frozen::events`]: the call itself, or
    /// the one that completed what was started.
    pub event: usize,
    /// How many left before it, the same for those that left at one time; none where the clocks do
    /// not tell this process's departure and another one's apart.
    pub place: Option<u32>,
    /// How long after the last arrival it left, in nanoseconds; negative for one that left before.
    pub wait: Option<i64>,
}

/// The events of one collective, as places in [`Frozen::events`].
#[derive(Default)]
pub(crate) struct CollectiveParts {
    /// Of the calls by which processes came.
    pub(crate) arrivals: Vec<usize>,
    /// Of those that completed what was started.
    pub(crate) completions: Vec<usize>,
}

/// How the processes came and left, if all of them have.
pub(crate) fn passage(
    frozen: &Frozen,
    size: u32,
    parts: &CollectiveParts,
) -> Option<FrozenPassage> {
    let completions = parts.completions.iter().map(|&at| (frozen.events[at].rank, at));
    let completions: BTreeMap<Rank, usize> = completions.collect();
    let mut ranks = BTreeSet::new();
    let exit = |&at: &usize| {
        let event = &frozen.events[at];
        let exit = match event.kind {
            Some(EventKind::CollectiveStarted) => *completions.get(&event.rank)?,
            _ => at,
        };
        let has_left = !event.is_open && !frozen.events[exit].is_open;
        (has_left && ranks.insert(event.rank)).then_some(exit)
    };
    let exits: Vec<usize> = parts.arrivals.iter().map(exit).collect::<Option<_>>()?;
    if u32::try_from(exits.len()) != Ok(size) {
        return None;
    }
    let came: Vec<Arrival> =
        parts.arrivals.iter().map(|&at| arrival(frozen, &frozen.events[at])).collect();
    let left: Vec<Arrival> =
        exits.iter().map(|&at| departure(frozen, &frozen.events[at])).collect();
    let last = LastMoment::of(&came);
    let arrival_waits = came.iter().map(|one| last.after(one).decided_length()).collect();
    let places = places(&left);
    let mut departures: Vec<FrozenDeparture> = (0..exits.len())
        .map(|member| FrozenDeparture {
            event: exits[member],
            place: places[member],
            wait: last.before(&left[member]).decided(),
        })
        .collect();
    departures.sort_by_key(|one| {
        let event = &frozen.events[one.event];
        (event.end(), event.rank)
    });
    let elapsed = elapsed(&came, &LastMoment::of(&left)).decided_length();
    Some(FrozenPassage { elapsed, arrival_waits, departures })
}

/// When the process of an event came.
pub(crate) fn arrival(frozen: &Frozen, event: &FrozenEvent) -> Arrival {
    let rank = frozen.ranks.get(&event.rank).copied().unwrap_or_default();
    Arrival { time: event.begin, rank: event.rank, clock: rank.clock, error: rank.error }
}

/// When it left, likewise.
fn departure(frozen: &Frozen, event: &FrozenEvent) -> Arrival {
    Arrival { time: event.end(), ..arrival(frozen, event) }
}

/// From the first of some arrivals to the last departure.
fn elapsed(came: &[Arrival], last: &LastMoment) -> Length {
    let mut all = Length { ns: i64::MIN, low: i64::MIN, high: i64::MIN };
    for one in came.iter().map(|one| last.after(one)) {
        all.ns = all.ns.max(one.ns);
        all.low = all.low.max(one.low);
        all.high = all.high.max(one.high);
    }
    all
}

/// A length of time as it was measured, and what it may be at least and at most.
struct Length {
    ns: i64,
    low: i64,
    high: i64,
}

impl Length {
    /// Of one that is longer than it may be off.
    fn decided(&self) -> Option<i64> {
        let error = self.high.saturating_sub(self.ns).max(self.ns.saturating_sub(self.low));
        (error <= 0 || self.ns.unsigned_abs() > error.unsigned_abs()).then_some(self.ns)
    }

    /// The same of one that is not negative.
    fn decided_length(&self) -> Option<u64> {
        self.decided().and_then(|ns| u64::try_from(ns).ok())
    }
}

/// Times between which a moment was.
struct Bounds {
    earliest: i64,
    latest: i64,
}

/// The last of some moments, beside moments of any clock.
#[derive(Default)]
struct LastMoment {
    /// The last one as it was measured.
    time: i64,
    /// The last one of each clock.
    of_clock: BTreeMap<u32, i64>,
    /// The last ones by the earliest and by the latest time at which each may have been.
    earliest: LastTwo,
    latest: LastTwo,
}

impl LastMoment {
    fn of(moments: &[Arrival]) -> Self {
        let time = moments.iter().map(|one| one.time).max().unwrap_or(0);
        let mut last = Self { time, ..Self::default() };
        for one in moments {
            let of_clock = last.of_clock.entry(one.clock).or_insert(one.time);
            *of_clock = one.time.max(*of_clock);
            last.earliest.add(ClockTime { time: one.earliest(), clock: one.clock });
            last.latest.add(ClockTime { time: one.latest(), clock: one.clock });
        }
        last
    }

    /// When it may have been at the earliest and at the latest, by the clock of another moment.
    fn bounds(&self, other: &Arrival) -> Bounds {
        let own = self.of_clock.get(&other.clock).copied();
        let earliest = self.earliest.of_others(other.clock);
        let earliest = earliest.map(|time| time.saturating_sub_unsigned(other.error));
        let latest = self.latest.of_others(other.clock);
        let latest = latest.map(|time| time.saturating_add_unsigned(other.error));
        Bounds {
            earliest: own.max(earliest).unwrap_or(self.time),
            latest: own.max(latest).unwrap_or(self.time),
        }
    }

    /// How long it was after another moment.
    fn after(&self, other: &Arrival) -> Length {
        let Bounds { earliest, latest } = self.bounds(other);
        let since = |time: i64| time.saturating_sub(other.time);
        Length { ns: since(self.time), low: since(earliest), high: since(latest) }
    }

    /// How long it was before another moment.
    fn before(&self, other: &Arrival) -> Length {
        let Bounds { earliest, latest } = self.bounds(other);
        let until = |time: i64| other.time.saturating_sub(time);
        Length { ns: until(self.time), low: until(latest), high: until(earliest) }
    }
}

/// A time and the number of its clock.
#[derive(Clone, Copy)]
struct ClockTime {
    time: i64,
    clock: u32,
}

/// The last of some times, and the last one of another clock.
#[derive(Clone, Copy, Default)]
struct LastTwo {
    first: Option<ClockTime>,
    second: Option<ClockTime>,
}

impl LastTwo {
    fn add(&mut self, one: ClockTime) {
        let is_later = |than: Option<ClockTime>| than.is_none_or(|than| one.time > than.time);
        let is_same_clock = self.first.is_some_and(|first| first.clock == one.clock);
        if is_later(self.first) {
            if !is_same_clock {
                self.second = self.first;
            }
            self.first = Some(one);
        } else if !is_same_clock && is_later(self.second) {
            self.second = Some(one);
        }
    }

    /// The last one that is not of this clock.
    fn of_others(&self, clock: u32) -> Option<i64> {
        let other = self.first.filter(|one| one.clock != clock).or(self.second);
        other.map(|one| one.time)
    }
}

/// Of each moment how many were before it; none where one of another clock may have been on either
/// side of it.
fn places(moments: &[Arrival]) -> Vec<Option<u32>> {
    let mut times: Vec<i64> = moments.iter().map(|one| one.time).collect();
    times.sort_unstable();
    let mut by_earliest: Vec<&Arrival> = moments.iter().collect();
    by_earliest.sort_by_key(|one| one.earliest());
    // How late the first one, the first two, and so on, may have been.
    let mut latest = LastTwo::default();
    let latest: Vec<LastTwo> = by_earliest
        .iter()
        .map(|one| {
            latest.add(ClockTime { time: one.latest(), clock: one.clock });
            latest
        })
        .collect();
    let place = |one: &Arrival| {
        let begun = by_earliest.partition_point(|other| other.earliest() <= one.latest());
        let rival = latest.get(begun.checked_sub(1)?)?.of_others(one.clock);
        let is_known = rival.is_none_or(|rival| rival < one.earliest());
        let before = times.partition_point(|&time| time < one.time);
        is_known.then_some(u32::try_from(before).ok()?)
    };
    moments.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frozen_instance::Relations;
    use crate::frozen_instance::tests::{collective, window};
    use crate::instance::Pattern;

    fn passage_of(relations: &Relations) -> &FrozenPassage {
        let [instance] = &relations.instances[..] else { panic!("one collective") };
        instance.passage.as_ref().expect("all have left")
    }

    #[test]
    fn a_passage_has_who_came_and_who_left_around_the_last_arrival() {
        let events = [collective(0, 1, 10, 95), collective(1, 1, 100, 8), collective(2, 1, 60, 45)];
        let (frozen, relations) = window(&events, 3);
        let passage = passage_of(&relations);
        assert_eq!(passage.elapsed, Some(98));
        assert_eq!(passage.arrival_waits, [Some(90), Some(40), Some(0)], "ranks 0, 2 and 1");
        let left = |one: &FrozenDeparture| (frozen.events[one.event].rank, one.place, one.wait);
        let left: Vec<_> = passage.departures.iter().map(left).collect();
        let wanted = [(0, Some(0), Some(5)), (2, Some(0), Some(5)), (1, Some(2), Some(8))];
        assert_eq!(left, wanted);
    }

    #[test]
    fn who_leaves_before_the_last_one_comes_has_a_negative_wait() {
        let from_root = |rank, begin, span| FrozenEvent {
            pattern: Pattern::FromRoot,
            peer: 0,
            ..collective(rank, 1, begin, span)
        };
        let (_, relations) = window(&[from_root(0, 10, 5), from_root(1, 100, 5)], 2);
        let waits: Vec<_> = passage_of(&relations).departures.iter().map(|one| one.wait).collect();
        assert_eq!(waits, [Some(-85), Some(5)]);
    }

    #[test]
    fn what_was_started_is_left_by_the_call_that_completes_it() {
        let of = |kind, event: FrozenEvent| FrozenEvent { kind: Some(kind), ..event };
        let start = of(EventKind::CollectiveStarted, collective(0, 1, 10, 1));
        let end = of(EventKind::CollectiveCompleted, collective(0, 1, 40, 70));
        let (frozen, relations) = window(&[start, collective(1, 1, 100, 5), end], 2);
        let passage = passage_of(&relations);
        assert_eq!(
            (passage.elapsed, &passage.arrival_waits[..]),
            (Some(100), &[Some(90), Some(0)][..])
        );
        let last = passage.departures.last().map(|one| (frozen.events[one.event].kind, one.wait));
        assert_eq!(last, Some((Some(EventKind::CollectiveCompleted), Some(10))));
        let (_, relations) = window(&[start, collective(1, 1, 100, 5)], 2);
        assert_eq!(relations.instances[0].passage, None, "rank 0 has not completed it");
    }

    #[test]
    fn of_a_collective_that_one_has_not_left_or_where_calls_differ_no_passage_is_told() {
        let passage = |events: &[FrozenEvent]| window(events, 2).1.instances[0].passage.clone();
        let (early, late) = (collective(0, 1, 10, 95), collective(1, 1, 100, 5));
        assert!(passage(&[early, late]).is_some());
        assert_eq!(passage(&[early, FrozenEvent { is_open: true, ..late }]), None);
        assert_eq!(passage(&[early]), None);
        assert_eq!(passage(&[early, FrozenEvent { function: 8, ..late }]), None);
        assert_eq!(passage(&[early, early]), None, "one rank twice");
    }

    #[test]
    fn between_two_clocks_no_order_and_no_wait_is_told_inside_of_their_errors() {
        // Errors are 10 and 20: 30 together.
        let passage = |late: i64| {
            let events = [collective(0, 1, 100, 500), collective(1, 1, 100 + late, 500)];
            let (mut frozen, _) = window(&events, 2);
            for (rank, clock, error) in [(0, 1, 10), (1, 2, 20)] {
                let one = frozen.ranks.get_mut(&rank).expect("a rank");
                (one.clock, one.error) = (clock, error);
            }
            passage_of(&Relations::of(&frozen)).clone()
        };
        let places = |late: i64| -> Vec<Option<u32>> {
            passage(late).departures.iter().map(|one| one.place).collect()
        };
        assert_eq!(passage(29).arrival_waits, [None, None]);
        assert_eq!([places(29), places(30)], [[None, None], [None, None]]);
        assert_eq!(places(31), [Some(0), Some(1)]);
        assert_eq!(passage(31).arrival_waits, [Some(31), Some(0)]);
        assert_eq!(passage(31).departures.last().and_then(|one| one.wait), Some(500));
        assert_eq!(passage(31).elapsed, Some(531));
    }
}
