//! Waits by place: for each communicator and function which rank came last how often and by how
//! much, and which ranks waited for it.

use alloc::collections::BTreeMap;

use sapwood_packet::Rank;

use crate::instance::{Arrival, Instance, InstanceKey, Pattern};

/// The part of the time by which a rank was late that its usual lateness stands for, in per cent.
const USUAL_PERCENT: u64 = 80;

/// In the place of a rank: all those that found no room.
pub const OTHERS: Rank = Rank::MAX;

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
    /// By their classes: see [`lateness_class`].
    classes: BTreeMap<u32, LateTimes>,
}

/// Times by which a rank was late, of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LateTimes {
    /// How often.
    pub times: u64,
    /// By how much in all, in nanoseconds.
    pub sum_ns: u64,
}

/// Classes of lateness.
pub(crate) const LATENESS_CLASSES: u32 = u64::BITS;

/// The class of a lateness: the power of two of nanoseconds after the mean of the others.
pub(crate) const fn lateness_class(late_ns: u64) -> u32 {
    if late_ns == 0 { 0 } else { late_ns.ilog2() }
}

impl LateTimes {
    /// Of one time.
    pub(crate) const fn of(late_ns: u64) -> Self {
        Self { times: 1, sum_ns: late_ns }
    }

    /// Adds others.
    pub const fn merge(&mut self, other: &Self) {
        self.times = self.times.saturating_add(other.times);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }
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

/// A place, the rank that was late there, and the class of the time by which it was.
pub type LateKey = (PlaceKey, Rank, u32);

/// The whole collectives of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WholeCollectives {
    /// Processes of the communicator.
    pub size: u32,
    /// How many collectives.
    pub collectives: u64,
    /// Of these, those of which the clocks do not tell which rank came last.
    pub undecided: u64,
    /// The highest number of one of them on its communicator.
    pub last: u32,
}

impl WholeCollectives {
    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        self.size = self.size.max(other.size);
        self.collectives = self.collectives.saturating_add(other.collectives);
        self.undecided = self.undecided.saturating_add(other.undecided);
        self.last = self.last.max(other.last);
    }
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
        self.add_times(lateness_class(late_ns), &LateTimes::of(late_ns));
    }

    /// Adds times of one class.
    pub(crate) fn add_times(&mut self, class: u32, more: &LateTimes) {
        self.last = self.last.saturating_add(more.times);
        self.classes.entry(class).or_default().merge(more);
    }

    /// How often it was late as much as matters, and by how much on the mean: the longest times
    /// that together make four fifths of the whole.
    #[must_use]
    pub fn usual(&self) -> (u64, u64) {
        let whole = self.total_ns();
        let (mut times, mut sum) = (0_u64, 0_u64);
        for more in self.classes.values().rev() {
            times = times.saturating_add(more.times);
            sum = sum.saturating_add(more.sum_ns);
            if u128::from(sum) * 100 >= u128::from(whole) * u128::from(USUAL_PERCENT) {
                break;
            }
        }
        (times, sum / times.max(1))
    }

    /// By how much it was late in all.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.classes.values().fold(0, |all, one| all.saturating_add(one.sum_ns))
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        other.classes.iter().for_each(|(&class, times)| self.add_times(class, times));
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
        let mut all = Instance::of(called, Pattern::All, 3, arrival(0, 10));
        all.merge(&Instance::of(called, Pattern::All, 3, arrival(1, 30)));
        all.merge(&Instance::of(called, Pattern::All, 3, arrival(2, 100)));
        assert_eq!(late_ns(&all, &arrival(2, 100)), 80);
        let mut root = Instance::of_root(called, Pattern::ToRoot, 2, arrival(0, 10));
        root.merge(&Instance::of(called, Pattern::ToRoot, 2, arrival(1, 60)));
        assert_eq!(late_ns(&root, &arrival(1, 60)), 50);
    }
}
