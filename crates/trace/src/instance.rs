//! One instance of a collective: when its processes came, merged over as many as are known.

use sapwood_packet::Rank;

use crate::mixture::{Called, Kinds};

/// Which ranks wait for which in a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Pattern {
    /// All wait for the last one.
    #[default]
    All = 0,
    /// All wait for the root.
    FromRoot = 1,
    /// The root waits for the last of the others.
    ToRoot = 2,
    /// That is not known: each waits for its neighbours, or for processes of another group, too.
    Unknown = 3,
}

impl Pattern {
    pub(crate) const fn from_code(code: u64) -> Option<Self> {
        Some(match code {
            0 => Self::All,
            1 => Self::FromRoot,
            2 => Self::ToRoot,
            3 => Self::Unknown,
            _ => return None,
        })
    }
}

/// When a process came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Nanoseconds of the common clock.
    pub time: i64,
    /// The process, as its rank in `MPI_COMM_WORLD`.
    pub rank: Rank,
    /// The number of the clock by which it was measured.
    pub clock: u32,
    /// By how much that clock may be off, either way, in nanoseconds.
    pub error: u64,
}

impl Arrival {
    /// Whether this one is later; of equal ones the lower rank, so that the order of merging does
    /// not matter.
    fn is_after(&self, other: &Self) -> bool {
        (self.time, core::cmp::Reverse(self.rank)) > (other.time, core::cmp::Reverse(other.rank))
    }

    /// By how much the time between the two may be off.
    #[must_use]
    pub const fn error_to(&self, other: &Self) -> u64 {
        if self.clock == other.clock { 0 } else { self.error.saturating_add(other.error) }
    }

    /// The latest time at which it may have been.
    pub(crate) fn latest(&self) -> i64 {
        self.time.saturating_add_unsigned(self.error)
    }

    /// The earliest time at which it may have been.
    pub(crate) fn earliest(&self) -> i64 {
        self.time.saturating_sub_unsigned(self.error)
    }

    /// Whether this one was later than another, where their clocks say so.
    fn was_after(&self, other: &Self) -> Option<bool> {
        let error = self.error_to(other);
        let later = self.time.saturating_sub(other.time);
        let is_known = error == 0 || later.unsigned_abs() > error;
        is_known.then_some(later > 0)
    }
}

/// The process of an instance for which others have waited, if it came late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latecomer {
    /// When it came.
    pub arrival: Arrival,
    /// Whether it was this one, and later than one that waits for it. None where the clocks do not
    /// say.
    pub is_late: Option<bool>,
}

/// Which instance of which communicator: its identity and the number of the collective on it.
pub type InstanceKey = (u64, u32);

/// What is known of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// What its processes called.
    pub kinds: Kinds,
    /// How many bytes those of them gave of which it is known; none of a collective in which that
    /// need not be the same.
    pub amounts: Option<Kinds<u32>>,
    /// Which ranks wait for which.
    pub pattern: Pattern,
    /// Processes of the communicator.
    pub size: u32,
    /// Those of which the arrival is known.
    pub count: u32,
    /// The latest arrival; of those beside the root if only the root waits.
    pub last: Option<Arrival>,
    /// The latest time at which a process of another clock than the last one may have come.
    pub rival: Option<i64>,
    /// The arrival of the root.
    pub root: Option<Arrival>,
    /// The earliest arrival; of equal ones that of the lowest rank. Where all wait for the root,
    /// that of the others, if one of them has come.
    pub first: Arrival,
    /// Sum of all arrivals.
    pub sum: i128,
    /// Whether its processes called different functions, gave different roots, or were of
    /// communicators of different sizes.
    pub is_mixed: bool,
}

impl Instance {
    /// Of one process that is not the root. A root means nothing where all wait for the last one,
    /// and where two groups wait for each other processes of one group give different ones.
    #[must_use]
    pub fn of(called: Called, pattern: Pattern, size: u32, arrival: Arrival) -> Self {
        let called = match pattern {
            Pattern::All | Pattern::Unknown => Called::without_root(called.function),
            Pattern::FromRoot | Pattern::ToRoot => called,
        };
        Self {
            kinds: Kinds::of(called, arrival.rank),
            amounts: None,
            pattern,
            size,
            count: 1,
            last: Some(arrival),
            rival: None,
            root: None,
            first: arrival,
            sum: arrival.time.into(),
            is_mixed: false,
        }
    }

    /// Of the root.
    #[must_use]
    pub fn of_root(called: Called, pattern: Pattern, size: u32, arrival: Arrival) -> Self {
        // Where the root waits for the others, it is not the last one.
        let last = (pattern != Pattern::ToRoot).then_some(arrival);
        Self { last, root: Some(arrival), ..Self::of(called, pattern, size, arrival) }
    }

    /// Of the same process, which gave as many bytes. What two groups give each other need not be
    /// the same.
    #[must_use]
    pub fn with_amount(mut self, bytes: Option<u32>) -> Self {
        let bytes = bytes.filter(|_| self.pattern != Pattern::Unknown);
        self.amounts = bytes.map(|bytes| Kinds::of(bytes, self.first.rank));
        self
    }

    /// Takes in what is known of other processes.
    pub fn merge(&mut self, other: &Self) {
        // Where calls do not fit together, the order of merging does not matter either.
        self.pattern = self.pattern.min(other.pattern);
        self.kinds.merge(&other.kinds);
        match (&mut self.amounts, &other.amounts) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine, theirs) => *mine = mine.or(*theirs),
        }
        self.is_mixed |= other.is_mixed || self.kinds.second.is_some() || self.size != other.size;
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.root = self.root.or(other.root);
        let root = self.root.filter(|_| self.pattern == Pattern::FromRoot);
        let order =
            |one: &Arrival| (root.is_some_and(|root| root.rank == one.rank), one.time, one.rank);
        self.first = core::cmp::min_by_key(self.first, other.first, order);
        let rivals = [self.rival, other.rival];
        let (last, loser) = match (self.last, other.last) {
            (Some(ours), Some(theirs)) if theirs.is_after(&ours) => (Some(theirs), Some(ours)),
            (ours, theirs) => (ours.or(theirs), ours.and(theirs)),
        };
        // One of the last one's own clock may be among them: then it counts as a rival without
        // need, which makes a claim weaker and never wrong.
        let loser = loser.filter(|loser| last.is_some_and(|last| last.clock != loser.clock));
        self.rival = rivals.into_iter().flatten().chain(loser.map(|one| one.latest())).max();
        self.last = last;
    }

    /// The function; the first one where the processes did not call the same.
    #[must_use]
    pub const fn function(&self) -> u32 {
        self.kinds.first.called.function
    }

    /// Whether all processes have come.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.count >= self.size
    }

    /// The process for which others have waited, if it came late; none if the calls do not belong
    /// together, or if it is not known which ranks wait for which.
    #[must_use]
    pub fn latecomer(&self) -> Option<Latecomer> {
        if self.is_mixed || self.count > self.size {
            return None;
        }
        let (arrival, waiting) = match self.pattern {
            Pattern::All => (self.last?, self.first),
            Pattern::FromRoot => (self.root?, self.first),
            Pattern::ToRoot => (self.last?, self.root?),
            Pattern::Unknown => return None,
        };
        let rival_was_before =
            |one: &Arrival| self.rival.is_none_or(|rival| one.earliest() > rival);
        let is_late = match self.pattern {
            Pattern::FromRoot => arrival.was_after(&waiting),
            _ if rival_was_before(&arrival) => arrival.was_after(&waiting),
            // Whichever of the others came last, the root came later, and has waited for none.
            Pattern::ToRoot if rival_was_before(&waiting) => {
                arrival.was_after(&waiting).filter(|is_after| !is_after)
            }
            _ => None,
        };
        Some(Latecomer { arrival, is_late })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEVEN: Called = Called::without_root(7);

    fn arrival(rank: Rank, time: i64, clock: u32) -> Arrival {
        Arrival { time, rank, clock, error: u64::from(clock) * 10 }
    }

    fn late(arrival: Arrival) -> Latecomer {
        Latecomer { arrival, is_late: Some(true) }
    }

    fn merged(order: &[Rank], arrivals: &[Arrival], pattern: Pattern, root: Rank) -> Instance {
        let size = u32::try_from(arrivals.len()).expect("few");
        let one = |rank: Rank| match arrivals[rank as usize] {
            arrival if rank == root => Instance::of_root(SEVEN, pattern, size, arrival),
            arrival => Instance::of(SEVEN, pattern, size, arrival),
        };
        let mut instance = one(order[0]);
        order[1..].iter().for_each(|&rank| instance.merge(&one(rank)));
        instance
    }

    #[test]
    fn the_last_one_is_found_in_any_order() {
        let arrivals = [arrival(0, 5, 0), arrival(1, 90, 0), arrival(2, 90, 0), arrival(3, 7, 0)];
        let instance = merged(&[0, 1, 2, 3], &arrivals, Pattern::All, 9);
        assert_eq!(instance, merged(&[3, 2, 0, 1], &arrivals, Pattern::All, 9));
        assert_eq!((instance.sum, instance.first, instance.is_whole()), (192, arrivals[0], true));
        assert_eq!(instance.latecomer(), Some(late(arrivals[1])));
    }

    #[test]
    fn of_rooted_collectives_the_root_or_the_last_of_the_others_counts() {
        let arrivals = [arrival(0, 5, 0), arrival(1, 50, 0), arrival(2, 90, 0)];
        let from = merged(&[2, 0, 1], &arrivals, Pattern::FromRoot, 1);
        assert_eq!(from.latecomer(), Some(late(arrivals[1])));
        let to = merged(&[2, 0, 1], &arrivals, Pattern::ToRoot, 0);
        assert_eq!(to.latecomer(), Some(late(arrivals[2])));
        // A root that comes after all others has not waited for them.
        let to = merged(&[2, 0, 1], &arrivals, Pattern::ToRoot, 2);
        assert_eq!(to.latecomer(), Some(Latecomer { arrival: arrivals[1], is_late: Some(false) }));
    }

    #[test]
    fn between_two_clocks_a_root_is_late_only_beyond_their_errors() {
        // Errors are 10 and 20: 30 together.
        let is_late = |pattern, root_time, other_time| {
            let arrivals = [arrival(0, root_time, 1), arrival(1, other_time, 2)];
            merged(&[0, 1], &arrivals, pattern, 0).latecomer().and_then(|one| one.is_late)
        };
        let cases =
            [(131, 100, Some(true)), (130, 100, None), (100, 130, None), (100, 131, Some(false))];
        for (root, other, is) in cases {
            assert_eq!(is_late(Pattern::FromRoot, root, other), is, "{root} {other}");
            let of_others = is.map(|is| !is);
            assert_eq!(is_late(Pattern::ToRoot, root, other), of_others, "{root} {other}");
        }
    }

    #[test]
    fn a_root_that_came_after_all_others_waited_for_none_whichever_was_the_last() {
        let is_late = |root_time| {
            let arrivals = [arrival(0, root_time, 0), arrival(1, 100, 1), arrival(2, 105, 2)];
            for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
                let instance = merged(&order, &arrivals, Pattern::ToRoot, 0);
                assert_eq!(instance, merged(&[0, 1, 2], &arrivals, Pattern::ToRoot, 0));
                let late = instance.latecomer().and_then(|one| one.is_late);
                assert_eq!(late, (root_time > 125).then_some(false), "{root_time} {order:?}");
            }
        };
        [10, 101, 109, 125, 126, 10_000].into_iter().for_each(is_late);
    }

    #[test]
    fn two_clocks_decide_only_what_lies_outside_of_their_errors() {
        // Errors are 10 and 20: 30 together.
        let decided = [arrival(0, 100, 1), arrival(1, 131, 2)];
        let close = [arrival(0, 100, 1), arrival(1, 130, 2)];
        let culprit = |arrivals: &[Arrival], order: &[Rank]| {
            merged(order, arrivals, Pattern::All, 9).latecomer().expect("one came last")
        };
        for order in [[0, 1], [1, 0]] {
            assert_eq!(culprit(&decided, &order), late(decided[1]));
            let unknown = Latecomer { arrival: close[1], is_late: None };
            assert_eq!(culprit(&close, &order), unknown);
        }
        let same = [arrival(0, 100, 1), arrival(1, 101, 1)];
        assert_eq!(culprit(&same, &[0, 1]), late(same[1]));
    }

    #[test]
    fn between_neighbours_no_process_is_the_last_one() {
        let arrivals = [arrival(0, 5, 0), arrival(1, 50, 0), arrival(2, 90, 0)];
        let instance = merged(&[2, 0, 1], &arrivals, Pattern::Unknown, 1);
        assert_eq!((instance.is_whole(), instance.latecomer()), (true, None));
    }

    #[test]
    fn calls_that_do_not_belong_together_accuse_no_rank() {
        let mut instance = Instance::of(SEVEN, Pattern::All, 2, arrival(0, 5, 0));
        let eight = Called::without_root(8);
        instance.merge(&Instance::of(eight, Pattern::All, 2, arrival(1, 9, 0)));
        assert_eq!((instance.is_whole(), instance.latecomer()), (true, None));
    }
}
