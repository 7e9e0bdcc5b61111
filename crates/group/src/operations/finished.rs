//! The reductions that have ended last, so that parts of them that come late are known.

use alloc::collections::{BTreeMap, VecDeque};

use sapwood_packet::{RankSet, RankSetRef};

use crate::error::Reason;
use crate::identity::FoldId;

/// How many are remembered.
const FINISHED_MAX: usize = 4096;

/// Ended reductions, in the order in which they have ended: a number says nothing of the time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finished {
    /// Those that have ended without a result for any member have the virtual nodes because of
    /// which they did.
    known: BTreeMap<FoldId, Option<(RankSet, Reason)>>,
    order: VecDeque<FoldId>,
}

impl Finished {
    pub(crate) fn contains(&self, id: FoldId) -> bool {
        self.known.contains_key(&id)
    }

    /// Because of which virtual nodes a reduction has no result.
    pub(super) fn broken_by(&self, id: FoldId) -> Option<&(RankSet, Reason)> {
        self.known.get(&id)?.as_ref()
    }

    /// Those with a root among some virtual nodes.
    pub(crate) fn of_roots(&self, names: RankSetRef<'_>) -> impl Iterator<Item = FoldId> {
        self.order.iter().copied().filter(move |id| names.contains(id.root))
    }

    /// A reduction has ended; the one that did so first is forgotten where there are too many.
    pub(super) fn note(&mut self, id: FoldId) {
        if self.contains(id) {
            return;
        }
        self.known.insert(id, None);
        self.order.push_back(id);
        if self.order.len() > FINISHED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// A reduction has ended without a result, because of these virtual nodes.
    pub(super) fn note_broken(&mut self, id: FoldId, names: RankSet, reason: Reason) {
        self.note(id);
        self.known.insert(id, Some((names, reason)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_that_came_first_is_forgotten_first_whatever_its_number() {
        let mut finished = Finished::default();
        let large = |number: u64| FoldId { root: 9, number: (1 << 62) + number };
        for number in 0..FINISHED_MAX as u64 {
            finished.note(large(number));
        }
        // A small number of a small root is the newest all the same; twice is once.
        let small = FoldId { root: 0, number: 1 };
        finished.note(small);
        finished.note(small);
        assert!(finished.contains(small));
        assert!(!finished.contains(large(0)) && finished.contains(large(1)));
        for number in 1..=FINISHED_MAX as u64 {
            finished.note(FoldId { root: 1, number });
        }
        assert_eq!((finished.known.len(), finished.order.len()), (FINISHED_MAX, FINISHED_MAX));
        assert!(!finished.contains(small));
    }
}
