//! One set of contributors for all segments of a reduction.
//!
//! Segments travel one by one, so that a member that dies half-way has given some of its own and
//! not the others. What was folded cannot be taken apart; the root therefore keeps the parts that
//! have come to it, and folds a segment anew from those that it may still use.

use alloc::vec::Vec;

use sapwood_packet::{RankSet, RankSetRef};

use super::fold::{Fold, Wave};
use crate::identity::FoldId;
use crate::member::Member;
use crate::mutation::Mutation;
use crate::payload::Payload;

/// How many bytes of parts the root of one reduction keeps.
pub(super) const KEPT_BYTES_MAX: usize = 256 << 20;

impl Fold {
    /// Folds a part at the root, and keeps it where there are several segments.
    pub(super) fn merge_at_root(&mut self, segment: u32, names: &RankSet, data: &Payload) {
        self.merge(segment, names, data.as_slice());
        if self.head.segments > 1 && self.kept_bytes + data.len() <= KEPT_BYTES_MAX {
            self.kept_bytes += data.len();
            if let Some(wave) = self.waves.get_mut(&segment) {
                wave.parts.push((names.clone(), data.clone()));
            }
        }
    }

    /// Folds a segment anew from the own value and the parts within a set.
    pub(crate) fn rebuild(&mut self, segment: u32, within: RankSetRef<'_>) {
        let parts = self.waves.remove(&segment).map(|wave| wave.parts).unwrap_or_default();
        self.kept_bytes -= parts.iter().map(|part| part.1.len()).sum::<usize>();
        self.waves.insert(segment, Wave::default());
        let own = self.my_names.clone();
        let mine = self.mine.as_ref().and_then(|mine| mine.get(segment as usize)).cloned();
        if let Some(value) = mine {
            self.merge(segment, &own, value.as_slice());
        }
        for (names, data) in parts {
            let is_new = self.waves.get(&segment).is_some_and(|wave| {
                names.as_ref().is_within(within) && !wave.names.as_ref().intersects(names.as_ref())
            });
            if is_new {
                self.merge_at_root(segment, &names, &data);
            }
        }
    }

    /// The virtual nodes that all segments stand for.
    pub(super) fn shared_names(&self) -> RankSet {
        let mut waves = self.waves.values();
        let mut shared = waves.next().map(|wave| wave.names.clone()).unwrap_or_default();
        for wave in waves {
            shared.intersect_with(wave.names.as_ref());
        }
        shared
    }

    /// Whether all segments are there and stand for these virtual nodes.
    pub(super) fn is_whole(&self, names: &RankSet) -> bool {
        self.waves.len() == self.head.segments as usize
            && self.waves.values().all(|wave| wave.names == *names)
    }

    /// Makes all segments stand for the same virtual nodes, with the parts that are here: for as
    /// many as these allow, and for the own ones in any case.
    pub(super) fn agree_on_what_is_here(&mut self) -> RankSet {
        let segments = self.head.segments;
        let mut set = match self.waves.len() == segments as usize {
            true => self.shared_names(),
            false => RankSet::new(),
        };
        set.union_with(self.my_names.as_ref());
        loop {
            let mut next = set.clone();
            for segment in 0..segments {
                self.rebuild(segment, set.as_ref());
                if let Some(wave) = self.waves.get(&segment) {
                    next.intersect_with(wave.names.as_ref());
                }
            }
            if next == set {
                return set;
            }
            set = next;
        }
    }

    /// The virtual nodes that some segments stand for and others cannot any more, since no member
    /// carries them.
    fn halved(&self, everyone: &RankSet) -> RankSet {
        let mut some = RankSet::new();
        for wave in self.waves.values() {
            some.union_with(wave.names.as_ref());
        }
        some.subtract(everyone.as_ref());
        if self.waves.len() == self.head.segments as usize {
            some.subtract(self.shared_names().as_ref());
        }
        some
    }
}

impl Member {
    /// Takes the parts of members that have died half-way out again.
    pub(super) fn exclude_halved(&mut self, id: FoldId) {
        let everyone = self.view.everyone().clone();
        if self.breaks(Mutation::SkipAgreement) {
            return;
        }
        let Some(fold) = self.folds.get_mut(&id).filter(|fold| fold.is_root) else { return };
        let halved = fold.halved(&everyone);
        if halved.is_empty() || fold.mine.is_none() {
            return;
        }
        fold.excluded.union_with(halved.as_ref());
        let mut kept = fold.required.clone();
        kept.union_with(everyone.as_ref());
        kept.subtract(fold.excluded.as_ref());
        let wrong: Vec<u32> = fold
            .waves
            .iter()
            .filter(|(_, wave)| wave.names.as_ref().intersects(halved.as_ref()))
            .map(|(segment, _)| *segment)
            .collect();
        for segment in wrong {
            fold.rebuild(segment, kept.as_ref());
        }
    }
}
