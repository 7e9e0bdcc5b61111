//! How many collectives the processes of a communicator had called when they ended.
//!
//! A process that leaves out a collective before another one of the same function and root is not
//! noticed by what is called: its calls match those of the others one by one, each with the wrong
//! one, and only the last one finds no partner. What tells it is the number of its calls.

use sapwood_packet::Rank;

use crate::file::Space;
use crate::mixture::{Kinds, Minority};

/// In the place of the size of a communicator of which the processes give different sizes.
const UNLIKE: u32 = u32::MAX;

/// The collectives of one communicator that those of its processes have called that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Processes of the communicator, or of its own group.
    pub size: u32,
    /// Those of them that have ended.
    pub count: u32,
    /// The processes by how many collectives they have called.
    pub kinds: Kinds<u32>,
}

impl Total {
    /// Of a process that has ended; none of a communicator of which nothing can be said. Of one
    /// between two groups each group counts for itself.
    #[must_use]
    pub fn of(space: &Space, rank: Rank) -> Option<Self> {
        let is_counted = !space.is_window && !space.is_number_lost && space.size > 1;
        let kinds = Kinds::of(space.made, rank);
        is_counted.then_some(Self { size: space.size, count: 1, kinds })
    }

    /// Takes in other processes of the same communicator.
    pub fn merge(&mut self, other: &Self) {
        if self.size != other.size {
            self.size = UNLIKE;
        }
        self.count = self.count.saturating_add(other.count);
        self.kinds.merge(&other.kinds);
    }

    /// Whether it is known of all processes.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.count >= self.size
    }

    /// Whether its processes give it different sizes, so that nothing is known of it.
    #[must_use]
    pub const fn is_unlike(&self) -> bool {
        self.size == UNLIKE
    }

    /// Whether they are known not to have called as many.
    #[must_use]
    pub const fn is_uneven(&self) -> bool {
        self.count == self.size && self.kinds.second.is_some()
    }

    /// Those that called more, or fewer, than most; none where there is no majority of two.
    #[must_use]
    pub fn minority(&self) -> Option<Minority<u32>> {
        self.kinds.minority(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mixture::Callers;

    fn space(made: u32) -> Space {
        Space { identity: 7, size: 4, made, ..Space::default() }
    }

    fn merged(made: &[u32]) -> Total {
        let mut all = (0..).zip(made).filter_map(|(rank, &made)| Total::of(&space(made), rank));
        let mut first = all.next().expect("a process");
        all.for_each(|one| first.merge(&one));
        first
    }

    #[test]
    fn the_process_that_called_fewer_is_told_apart() {
        let total = merged(&[21, 21, 20, 21]);
        let few = Callers { called: 20, count: 1, lowest: 2 };
        let most = Callers { called: 21, count: 3, lowest: 0 };
        assert_eq!(total.minority(), Some(Minority { few, most }));
        assert!(total.is_uneven());
        let halves = merged(&[21, 20, 21, 20]);
        assert_eq!((halves.is_uneven(), halves.minority()), (true, None));
    }

    #[test]
    fn nothing_is_said_before_all_have_ended_or_where_they_called_as_many() {
        let three = merged(&[1, 2, 3, 3]);
        assert_eq!((three.is_uneven(), three.minority()), (true, None));
        for made in [&[20, 21, 20][..], &[20, 20, 20, 20]] {
            assert!(!merged(made).is_uneven(), "{made:?}");
        }
        let mut unlike = merged(&[20, 21, 20]);
        unlike.merge(&Total::of(&Space { size: 2, ..space(20) }, 3).expect("a communicator"));
        assert!(unlike.is_unlike() && !unlike.is_uneven());
    }

    #[test]
    fn what_has_no_numbers_of_its_own_is_left_out() {
        let lost = Space { is_number_lost: true, ..space(4) };
        let window = Space { is_window: true, ..space(4) };
        let alone = Space { size: 1, ..space(4) };
        for one in [lost, window, alone] {
            assert_eq!(Total::of(&one, 0), None, "{one:?}");
        }
    }
}
