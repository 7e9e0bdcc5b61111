//! Waits by place: for each communicator and function who came last how often and by how much, and
//! who waited for whom.

use alloc::collections::BTreeMap;

use sapwood_packet::Rank;

use crate::instance::{Arrival, Instance, InstanceKey, Pattern};

/// The part of the time by which a rank was late that its usual lateness stands for, in per cent.
const USUAL_PERCENT: u64 = 80;

/// A communicator's identity and a function. Places that found no room have 0 for both.
pub type PlaceKey = (u64, u32);

/// How one rank has waited for another at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceWaits {
    /// Calls.
    pub calls: u64,
    /// Nanoseconds of these.
    pub wait_ns: u64,
}

/// How late a rank was when it came last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// How often it was the one for which others waited.
    pub last: u64,
    /// By the power of two of nanoseconds after the mean of the others: times, and their sum.
    classes: BTreeMap<u32, (u64, u64)>,
}

/// A collective to which one process came late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outlier {
    /// By how much it came after the mean of the others, in nanoseconds.
    pub late_ns: u64,
    /// The one for which others waited.
    pub rank: Rank,
    /// The function.
    pub function: u32,
    /// The communicator, and the number of the collective there.
    pub key: InstanceKey,
}

/// In the place of a communicator and a function: messages, on whatever communicator.
pub const MESSAGES: PlaceKey = (4, 0);

/// What is known of a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceFigures {
    /// Processes of the communicator.
    pub size: u32,
    /// Collectives of which all processes are known.
    pub collectives: u64,
    /// By the rank for which others waited.
    pub late: BTreeMap<Rank, Lateness>,
    /// By the rank that was waited for, and the one that waited.
    pub waits: BTreeMap<(Rank, Rank), PlaceWaits>,
}

impl PlaceWaits {
    /// Adds others.
    pub const fn merge(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
    }
}

impl Lateness {
    /// Adds a time by which it was late.
    pub fn add(&mut self, late_ns: u64) {
        self.last = self.last.saturating_add(1);
        let class = late_ns.max(1).ilog2();
        let (times, sum) = self.classes.entry(class).or_default();
        *times = times.saturating_add(1);
        *sum = sum.saturating_add(late_ns);
    }

    /// How often it was late as much as matters, and by how much on the mean: the longest times
    /// that together make four fifths of the whole.
    #[must_use]
    pub fn usual(&self) -> (u64, u64) {
        let whole = self.total_ns();
        let (mut times, mut sum) = (0_u64, 0_u64);
        for (more, part) in self.classes.values().rev() {
            times = times.saturating_add(*more);
            sum = sum.saturating_add(*part);
            if u128::from(sum) * 100 >= u128::from(whole) * u128::from(USUAL_PERCENT) {
                break;
            }
        }
        (times, sum / times.max(1))
    }

    /// By how much it was late in all.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.classes.values().fold(0, |all, (_, sum)| all.saturating_add(*sum))
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        self.last = self.last.saturating_add(other.last);
        for (class, (times, sum)) in &other.classes {
            let mine = self.classes.entry(*class).or_default();
            mine.0 = mine.0.saturating_add(*times);
            mine.1 = mine.1.saturating_add(*sum);
        }
    }
}

impl PlaceFigures {
    /// All time that ranks have waited here for others, in nanoseconds.
    #[must_use]
    pub fn lost_ns(&self) -> u64 {
        self.waits.values().fold(0, |all, one| all.saturating_add(one.wait_ns))
    }

    /// What was waited for one rank.
    #[must_use]
    pub fn lost_for(&self, rank: Rank) -> u64 {
        let range = (rank, 0)..=(rank, Rank::MAX);
        self.waits.range(range).fold(0, |all, (_, one)| all.saturating_add(one.wait_ns))
    }
}

/// By how much the one that others waited for came after these, in nanoseconds.
#[must_use]
pub(crate) fn late_ns(instance: &Instance, culprit: &Arrival) -> u64 {
    let late = match (instance.pattern, instance.root) {
        (Pattern::ToRoot, Some(root)) => i128::from(culprit.time) - i128::from(root.time),
        _ => {
            let others = i128::from(instance.count.saturating_sub(1).max(1));
            let mean = instance.sum.saturating_sub(culprit.time.into()) / others;
            i128::from(culprit.time).saturating_sub(mean)
        }
    };
    u64::try_from(late.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_lateness_is_of_the_times_that_matter() {
        let mut often = Lateness::default();
        (0..100).for_each(|_| often.add(50_000_000));
        assert_eq!(often.usual(), (100, 50_000_000));
        // Late in one step of ten by 0.8 s, and by next to nothing in others.
        let mut seldom = Lateness::default();
        (0..90).for_each(|_| seldom.add(40_000));
        (0..10).for_each(|_| seldom.add(800_000_000));
        assert_eq!((seldom.last, seldom.usual()), (100, (10, 800_000_000)));
        assert_eq!(Lateness::default().usual(), (0, 0));
    }

    #[test]
    fn a_rank_is_late_by_what_it_comes_after_the_others() {
        let arrival = |rank, time| Arrival { time, rank, ..Arrival::default() };
        let called = crate::mixture::Called::without_root(7);
        let mut all = Instance::of(called, Pattern::All, 3, arrival(0, 10), false);
        all.merge(&Instance::of(called, Pattern::All, 3, arrival(1, 30), false));
        all.merge(&Instance::of(called, Pattern::All, 3, arrival(2, 100), false));
        assert_eq!(late_ns(&all, &arrival(2, 100)), 80);
        let mut root = Instance::of(called, Pattern::ToRoot, 2, arrival(0, 10), true);
        root.merge(&Instance::of(called, Pattern::ToRoot, 2, arrival(1, 60), false));
        assert_eq!(late_ns(&root, &arrival(1, 60)), 50);
    }
}
