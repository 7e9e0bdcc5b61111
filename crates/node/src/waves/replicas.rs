//! Copies of what filters hold from wave to wave: those that a child has handed over, and how a
//! stream hands over its own. `recovery/replica.rs` has the rules.

use alloc::vec::Vec;

use sapwood_packet::{RankSet, Values, Wave};
use sapwood_wire::limits::STATE_BYTES_MAX;

/// Waves that a filter takes in before its state is handed over again.
pub(crate) const WAVES: u64 = 64;

/// Bytes of states of one child and stream that do not count yet; of more, the oldest are
/// forgotten, and lost if the child dies before a later one counts.
const PENDING_BYTES_MAX: usize = 2 * STATE_BYTES_MAX;

/// Most copies of one child and stream; a child has fewer waves under way.
const REPLICAS_MAX: usize = 1 << 15;

/// Most ranges of processes that have been absorbed, in all of these.
const ABSORBED_RANGES_MAX: usize = 1 << 18;

/// The copy of the state of one filter of a child.
#[derive(Debug)]
pub(crate) struct Replica {
    /// The filter's position in the chain.
    pub(crate) filter: usize,
    /// It counts when all waves before this one have come.
    pub(crate) wave: Wave,
    /// The state, unless there was nothing in it.
    pub(crate) state: Option<Values>,
    /// Processes whose states may be in it.
    pub(crate) absorbed: RankSet,
}

/// What one child has handed over of a stream.
#[derive(Debug, Default)]
pub(crate) struct Replicas {
    pub(crate) list: Vec<Replica>,
}

impl Replicas {
    /// Takes another copy; everything before `next` has come from the child.
    pub(crate) fn add(&mut self, replica: Replica, next: Wave) {
        let (filter, wave) = (replica.filter, replica.wave);
        self.list.retain(|other| other.filter != filter || other.wave < wave);
        self.list.push(replica);
        self.forget_replaced(next);
        let bytes = |state: &Option<Values>| state.as_ref().map_or(0, |s| s.as_ref().body().len());
        let pending = |replica: &&mut Replica| replica.wave > next && replica.wave < wave;
        let mut held: usize = self.list.iter().map(|replica| bytes(&replica.state)).sum();
        for old in self.list.iter_mut().filter(pending) {
            if held > PENDING_BYTES_MAX {
                held -= bytes(&old.state);
                old.state = None;
            }
        }
    }

    /// Whether more copies are here than waves can be under way between two processes.
    pub(crate) fn is_full(&self) -> bool {
        let ranges = |replica: &Replica| replica.absorbed.as_ref().ranges().len();
        self.list.len() >= REPLICAS_MAX
            || self.list.iter().map(ranges).sum::<usize>() > ABSORBED_RANGES_MAX
    }

    /// Forgets the copies that later ones have taken the place of.
    pub(crate) fn forget_replaced(&mut self, next: Wave) {
        let counts: Vec<(usize, Wave)> = (self.list.iter())
            .filter(|replica| replica.wave <= next)
            .map(|replica| (replica.filter, replica.wave))
            .collect();
        let is_replaced =
            |filter, wave| counts.iter().any(|&(other, later)| other == filter && later > wave);
        self.list.retain(|replica| !is_replaced(replica.filter, replica.wave));
    }

    /// The child sends nothing more: only what counts stays.
    pub(crate) fn close(&mut self, next: Wave) {
        self.forget_replaced(next);
        self.list.retain(|replica| replica.wave <= next);
    }

    /// The processes whose states are in these copies.
    pub(crate) fn absorbed(&self) -> RankSet {
        let mut all = RankSet::new();
        self.list.iter().for_each(|replica| all.union_with(replica.absorbed.as_ref()));
        all
    }
}

/// How a stream with composable states hands them over.
#[derive(Debug, Default)]
pub(crate) struct Handover {
    /// The positions of the filters with such a state.
    pub(crate) filters: Vec<usize>,
    /// How many waves the filters have taken in behind the copy that was sent last.
    pub(crate) taken_in: u64,
    /// The filters that held something then.
    pub(crate) held: RankSet,
    /// Whether the front-end has been told that a state is too large.
    pub(crate) has_complained: bool,
    /// States of processes that are gone, to be taken over once all waves that are in them have
    /// gone on from here.
    pub(crate) heritage: Vec<Replica>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(wave: Wave, value: i64) -> Replica {
        let state = (value != 0).then(|| Values::new().scalar(value));
        Replica { filter: 0, wave, state, absorbed: RankSet::new() }
    }

    fn held(replicas: &Replicas) -> Vec<(Wave, i64)> {
        let value = |replica: &Replica| {
            replica.state.as_ref().map_or(0, |state| state.as_ref().scalar(0).expect("a number"))
        };
        replicas.list.iter().map(|replica| (replica.wave, value(replica))).collect()
    }

    #[test]
    fn a_copy_counts_once_its_waves_have_come() {
        let mut replicas = Replicas::default();
        replicas.add(replica(64, 7), 60);
        replicas.add(replica(100, 0), 70);
        assert_eq!(held(&replicas), [(64, 7), (100, 0)]);
        let mut dies_early = Replicas { list: core::mem::take(&mut replicas.list) };
        dies_early.close(99);
        assert_eq!(held(&dies_early), [(64, 7)], "what it gave with wave 99 has not come");
        replicas.add(replica(64, 7), 60);
        replicas.add(replica(100, 0), 70);
        replicas.close(100);
        assert_eq!(held(&replicas), [(100, 0)], "it has, and the copy has nothing of it");
    }

    #[test]
    fn filters_are_kept_apart() {
        let mut replicas = Replicas::default();
        replicas.add(replica(5, 1), 5);
        replicas.add(Replica { filter: 3, ..replica(6, 2) }, 6);
        replicas.add(Replica { filter: 3, ..replica(8, 4) }, 6);
        assert_eq!(held(&replicas), [(5, 1), (6, 2), (8, 4)]);
        replicas.close(9);
        assert_eq!(held(&replicas), [(5, 1), (8, 4)]);
    }

    #[test]
    fn copies_that_wait_are_bounded() {
        let mut replicas = Replicas::default();
        let large = |wave| Replica {
            filter: 0,
            wave,
            state: Some(Values::new().array(&alloc::vec![0_u64; STATE_BYTES_MAX / 8 - 1])),
            absorbed: RankSet::new(),
        };
        for wave in 1..100 {
            replicas.add(large(wave), 0);
            let bytes = replicas.list.iter().filter_map(|replica| replica.state.as_ref());
            let bytes: usize = bytes.map(|state| state.as_ref().body().len()).sum();
            assert!(bytes <= PENDING_BYTES_MAX);
        }
        assert_eq!(replicas.list.len(), 99, "each still ends what came before it");
        assert!(replicas.list[98].state.is_some(), "the last is never forgotten");
    }
}
