//! Collectives in which processes called different functions, or gave different roots: what they
//! did, as far as it takes to name those that did otherwise.
//!
//! Such a program need not hang. Its calls match each other by chance, and its results are wrong.

use sapwood_packet::Rank;

/// What a process called in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Called {
    /// The function; the forms of one collective are one.
    pub function: u32,
    /// The root that it gave, as its rank in the communicator; negative for none.
    pub root: i32,
}

impl Called {
    /// A collective that has no root.
    #[must_use]
    pub const fn without_root(function: u32) -> Self {
        Self { function, root: -1 }
    }
}

impl Default for Called {
    fn default() -> Self {
        Self::without_root(0)
    }
}

/// Processes that called the same, or as many times, or gave as many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Callers<T = Called> {
    /// What, how many times, or with how many bytes.
    pub called: T,
    /// How many they are.
    pub count: u32,
    /// The lowest of them, as its rank in `MPI_COMM_WORLD`.
    pub lowest: Rank,
}

/// Processes by what they called. Of more than two kinds the first two in order are kept, so that
/// the order of merging does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds<T = Called> {
    /// The first.
    pub first: Callers<T>,
    /// The second, if not all called the same.
    pub second: Option<Callers<T>>,
}

/// Two kinds of processes, of which one has more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Minority<T = Called> {
    /// Those that did otherwise.
    pub few: Callers<T>,
    /// The others.
    pub most: Callers<T>,
}

impl<T> Minority<T> {
    /// The process that alone did otherwise.
    #[must_use]
    pub fn culprit(&self) -> Option<Rank> {
        (self.few.count == 1).then_some(self.few.lowest)
    }
}

impl<T: Copy + Ord> Kinds<T> {
    /// Of one process.
    #[must_use]
    pub const fn of(called: T, rank: Rank) -> Self {
        Self { first: Callers { called, count: 1, lowest: rank }, second: None }
    }

    /// The kinds in order.
    pub fn iter(&self) -> impl Iterator<Item = &Callers<T>> {
        core::iter::once(&self.first).chain(&self.second)
    }

    /// Takes in those of other processes.
    pub fn merge(&mut self, other: &Self) {
        self.add(other.first);
        if let Some(second) = other.second {
            self.add(second);
        }
    }

    fn add(&mut self, mut more: Callers<T>) {
        let mine = [Some(&mut self.first), self.second.as_mut()];
        let same = mine.into_iter().flatten().find(|mine| mine.called == more.called);
        if let Some(mine) = same {
            mine.count = mine.count.saturating_add(more.count);
            mine.lowest = mine.lowest.min(more.lowest);
            return;
        }
        if more.called < self.first.called {
            core::mem::swap(&mut self.first, &mut more);
        }
        if self.second.is_none_or(|second| more.called < second.called) {
            self.second = Some(more);
        }
    }

    /// Those that did otherwise than most of `size` processes; none where there is no majority of
    /// two kinds.
    #[must_use]
    pub fn minority(&self, size: u32) -> Option<Minority<T>> {
        let (first, second) = (self.first, self.second?);
        let is_all = first.count.saturating_add(second.count) == size;
        match first.count.cmp(&second.count) {
            core::cmp::Ordering::Less if is_all => Some(Minority { few: first, most: second }),
            core::cmp::Ordering::Greater if is_all => Some(Minority { few: second, most: first }),
            _ => None,
        }
    }
}

/// The first collective of a communicator from which not all processes have returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Its number on the communicator.
    pub number: u32,
    /// Processes of the communicator.
    pub size: u32,
    /// Those of them that have returned.
    pub count: u32,
    /// What these called.
    pub kinds: Kinds,
    /// How many bytes they gave; none where that need not be the same.
    pub amounts: Option<Kinds<u32>>,
}

impl Unfinished {
    /// With the processes that are inside: all processes if they called different functions, or
    /// gave different roots, and each is known; else none.
    #[must_use]
    pub fn mixture(&self, inside: &[(Called, Rank)]) -> Option<Mixture> {
        let mut kinds = self.kinds;
        for &(called, rank) in inside {
            kinds.merge(&Kinds::of(called, rank));
        }
        let Self { number, size, .. } = *self;
        let is_whole = usize::try_from(size - self.count.min(size)) == Ok(inside.len());
        let is_mixed = is_whole && !inside.is_empty() && kinds.second.is_some();
        is_mixed.then_some(Mixture { number, size, kinds, collectives: 1 })
    }
}

/// The first collective of a communicator in which processes did not call the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mixture {
    /// Its number on the communicator.
    pub number: u32,
    /// Processes of the communicator.
    pub size: u32,
    /// What they called.
    pub kinds: Kinds,
    /// Collectives of the communicator of which that is so.
    pub collectives: u64,
}

impl Mixture {
    /// Takes in another one of the same communicator.
    pub fn add(&mut self, number: u32, size: u32, kinds: &Kinds) {
        if self.collectives == 0 || number < self.number {
            (self.number, self.size, self.kinds) = (number, size, *kinds);
        }
        self.collectives = self.collectives.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callers(event: u32, count: u32, lowest: Rank) -> Callers {
        Callers { called: Called::without_root(event), count, lowest }
    }

    fn minority(mixture: &Mixture) -> Option<Minority> {
        mixture.kinds.minority(mixture.size)
    }

    fn merged(order: &[(u32, Rank)]) -> Kinds {
        let of = |&(event, rank): &(u32, Rank)| Kinds::of(Called::without_root(event), rank);
        let mut kinds = of(&order[0]);
        order[1..].iter().for_each(|one| kinds.merge(&of(one)));
        kinds
    }

    #[test]
    fn the_order_of_merging_changes_nothing() {
        let wanted = Kinds { first: callers(3, 2, 1), second: Some(callers(5, 1, 0)) };
        let mut all = [(5, 0), (3, 1), (9, 2), (3, 3), (7, 4)];
        for _ in 0..all.len() {
            all.rotate_left(1);
            assert_eq!(merged(&all), wanted, "{all:?}");
            let mut halves = merged(&all[..2]);
            halves.merge(&merged(&all[2..]));
            assert_eq!(halves, wanted, "{all:?}");
        }
    }

    #[test]
    fn the_first_collective_that_is_mixed_has_the_ones_that_did_otherwise() {
        let mut mixture = Mixture::default();
        mixture.add(42, 4, &merged(&[(3, 0), (3, 1), (5, 2), (5, 3)]));
        assert_eq!(minority(&mixture), None, "as many did the one as the other");
        mixture.add(41, 4, &merged(&[(3, 0), (3, 1), (5, 2), (3, 3)]));
        mixture.add(43, 4, &merged(&[(3, 0), (3, 1), (3, 2), (5, 3)]));
        assert_eq!((mixture.number, mixture.collectives), (41, 3));
        let told = Minority { few: callers(5, 1, 2), most: callers(3, 3, 0) };
        assert_eq!(minority(&mixture), Some(told));
        let mut three = Mixture::default();
        three.add(1, 4, &merged(&[(3, 0), (3, 1), (5, 2), (7, 3)]));
        assert_eq!(minority(&three), None, "rank 3 called a third thing");
    }

    #[test]
    fn of_a_collective_from_which_some_have_returned_those_inside_are_told_once_all_are_known() {
        let called = |root| Called { function: 3, root };
        let mut kinds = Kinds::of(called(0), 0);
        kinds.merge(&Kinds::of(called(0), 1));
        let open = Unfinished { number: 6, size: 4, count: 2, kinds, amounts: None };
        let inside = [(called(0), 2), (called(2), 3)];
        let mixture = open.mixture(&inside).expect("two kinds");
        assert_eq!((mixture.number, mixture.collectives), (6, 1));
        let told = mixture.kinds.minority(mixture.size).expect("three gave the same root");
        assert_eq!((told.culprit(), told.few.called), (Some(3), called(2)));
        assert_eq!(open.mixture(&inside[1..]), None, "rank 2 is not known");
        assert_eq!(open.mixture(&[(called(0), 2), (called(0), 3)]), None, "all called the same");
        assert_eq!(Unfinished { count: 4, ..open }.mixture(&[]), None, "none is inside");
    }

    #[test]
    fn another_root_is_another_call() {
        let of = |root, rank| Kinds::of(Called { function: 3, root }, rank);
        let mut kinds = of(0, 0);
        kinds.merge(&of(0, 1));
        assert_eq!(kinds.second, None);
        kinds.merge(&of(2, 2));
        assert_eq!(kinds.second.map(|one| (one.called.root, one.lowest)), Some((2, 2)));
    }
}
