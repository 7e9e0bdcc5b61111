//! Collectives in which processes gave different amounts of data where MPI needs the same of all:
//! what they gave, as far as it takes to name those that did otherwise.
//!
//! Such a program need not fail: what is too much is left where it was, and what is missing is
//! made up by what the memory held.

use sapwood_packet::Rank;

use crate::instance::{Instance, InstanceKey};
use crate::mixture::{Kinds, Minority, Unfinished};

/// The first collective of a communicator in which processes gave different amounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unequal {
    /// Its number on the communicator.
    pub number: u32,
    /// Its function.
    pub function: u32,
    /// Processes of the communicator.
    pub size: u32,
    /// Those of them that are known to have come.
    pub count: u32,
    /// The processes by how many bytes they gave.
    pub amounts: Kinds<u32>,
    /// Collectives of the communicator of which that is so.
    pub collectives: u64,
}

impl Unequal {
    /// Of an instance whose processes called the same, and gave different amounts.
    #[must_use]
    pub(crate) fn of(key: InstanceKey, one: &Instance) -> Option<Self> {
        let amounts = one.amounts.filter(|all| all.second.is_some() && !one.is_mixed)?;
        let (number, function) = (key.1, one.function());
        let Instance { size, count, .. } = *one;
        Some(Self { number, function, size, count, amounts, collectives: 1 })
    }

    /// Of a collective from which not all processes have returned.
    #[must_use]
    pub(crate) fn of_unfinished(one: &Unfinished) -> Option<Self> {
        let amounts = one.amounts.filter(|all| all.second.is_some())?;
        let Unfinished { number, size, count, kinds, .. } = *one;
        let function = kinds.first.called.function;
        let is_alike = kinds.second.is_none() && count <= size;
        is_alike.then_some(Self { number, function, size, count, amounts, collectives: 1 })
    }

    /// Takes in others of the same communicator.
    pub(crate) fn add(&mut self, other: &Self) {
        let collectives = self.collectives.saturating_add(other.collectives);
        if self.collectives == 0 || other.number < self.number {
            *self = *other;
        }
        self.collectives = collectives;
    }

    /// Those that gave another amount than most; none where there is no majority of two amounts, or
    /// those that have not come may change it.
    #[must_use]
    pub fn minority(&self) -> Option<Minority<u32>> {
        let minority = self.amounts.minority(self.count)?;
        let missing = self.size.saturating_sub(self.count);
        let few = minority.few.count.saturating_add(missing);
        (few < minority.most.count).then_some(minority)
    }

    /// The process that alone gave another amount.
    #[must_use]
    pub fn culprit(&self) -> Option<Rank> {
        self.minority().filter(|_| self.count == self.size).and_then(|one| one.culprit())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::instance::{Arrival, Pattern};
    use crate::mixture::{Called, Callers};

    const SUM: u32 = 17;

    fn instance(size: u32, amounts: &[Option<u32>]) -> Instance {
        let one = |(rank, &bytes): (Rank, &Option<u32>)| {
            let arrival = Arrival { rank, ..Arrival::default() };
            let called = Called::without_root(SUM);
            Instance::of(called, Pattern::All, size, arrival).with_amount(bytes)
        };
        let mut all = (0..).zip(amounts).map(one);
        let mut first = all.next().expect("a process");
        all.for_each(|one| first.merge(&one));
        first
    }

    fn unequal(size: u32, amounts: &[u32]) -> Option<Unequal> {
        let known: Vec<Option<u32>> = amounts.iter().copied().map(Some).collect();
        Unequal::of((7, 12), &instance(size, &known))
    }

    #[test]
    fn the_process_that_gave_another_amount_is_told_apart() {
        let one = unequal(4, &[80, 80, 72, 80]).expect("two amounts");
        assert_eq!((one.number, one.function, one.collectives), (12, SUM, 1));
        let few = Callers { called: 72, count: 1, lowest: 2 };
        let most = Callers { called: 80, count: 3, lowest: 0 };
        assert_eq!((one.minority(), one.culprit()), (Some(Minority { few, most }), Some(2)));
        let halves = unequal(4, &[80, 72, 80, 72]).expect("two amounts");
        assert_eq!(halves.minority(), None);
        let three = unequal(4, &[80, 80, 72, 88]).expect("three amounts");
        assert_eq!(three.minority(), None, "rank 3 gave a third amount");
    }

    #[test]
    fn where_the_amounts_are_alike_or_not_known_nothing_is_told() {
        assert_eq!(unequal(3, &[80, 80, 80]), None);
        assert_eq!(unequal(3, &[0, 0, 0]), None);
        let unknown = instance(3, &[Some(80), None, Some(80)]);
        assert_eq!(Unequal::of((7, 1), &unknown), None);
        assert!(Unequal::of((7, 1), &instance(3, &[Some(80), None, Some(0)])).is_some());
        let between =
            Instance::of(Called::without_root(SUM), Pattern::Unknown, 4, Arrival::default());
        assert_eq!(between.with_amount(Some(8)).amounts, None, "two groups may give other amounts");
    }

    #[test]
    fn calls_of_different_functions_are_not_told_by_their_amounts() {
        let mut mixed = instance(2, &[Some(80)]);
        let other = Called::without_root(SUM + 1);
        let arrival = Arrival { rank: 1, ..Arrival::default() };
        mixed.merge(&Instance::of(other, Pattern::All, 2, arrival).with_amount(Some(4)));
        assert_eq!(Unequal::of((7, 1), &mixed), None);
    }

    #[test]
    fn of_processes_that_have_not_come_no_majority_is_claimed() {
        let one = unequal(4, &[80, 80, 72]).expect("two amounts");
        assert_eq!((one.minority(), one.culprit()), (None, None), "the fourth may give 72");
        let one = unequal(5, &[80, 80, 72, 80]).expect("two amounts");
        assert_eq!(one.minority().map(|one| one.few.lowest), Some(2));
        assert_eq!(one.culprit(), None, "the fifth may have given 72, too");
    }

    #[test]
    fn the_first_collective_of_a_communicator_is_kept() {
        let of = |number, amounts: &[u32]| Unequal { number, ..unequal(2, amounts).expect("two") };
        let mut all = Unequal::default();
        [of(9, &[1, 2]), of(3, &[4, 8]), of(5, &[6, 7])].iter().for_each(|one| all.add(one));
        assert_eq!((all.number, all.amounts.first.called, all.collectives), (3, 4, 3));
    }
}
