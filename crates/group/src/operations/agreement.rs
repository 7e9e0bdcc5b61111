//! One set of contributors for all segments of a reduction.
//!
//! Segments travel one by one, so that a member that dies half-way has given some of its own and
//! not the others. What was folded cannot be taken apart; the root therefore keeps the parts that
//! have come to it, and folds a segment anew from those that it may still use.

use alloc::vec::Vec;

use sapwood_packet::{RankSet, RankSetRef};

use super::counts::Folded;
use super::fold::{Fold, Wave};
use crate::identity::{FoldId, Time};
use crate::member::Member;
use crate::mutation::Mutation;
use crate::payload::Payload;

/// How many bytes of parts the root of one reduction keeps.
pub(super) const KEPT_BYTES_MAX: usize = 256 << 20;

impl Fold {
    /// Folds a part at the root, and keeps it where there are several segments.
    pub(super) fn merge_at_root(
        &mut self,
        segment: u32,
        names: &RankSet,
        data: &Payload,
    ) -> Folded {
        let how = self.merge(segment, names, data.as_slice());
        if self.head.segments > 1 && self.kept_bytes + data.len() <= KEPT_BYTES_MAX {
            self.kept_bytes += data.len();
            if let Some(wave) = self.waves.get_mut(&segment) {
                wave.parts.push((names.clone(), data.clone()));
            }
        }
        how
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

    /// The virtual nodes that some segments stand for and others do not.
    fn uneven(&self) -> RankSet {
        let mut some = RankSet::new();
        for wave in self.waves.values() {
            some.union_with(wave.names.as_ref());
        }
        if self.waves.len() == self.head.segments as usize {
            some.subtract(self.shared_names().as_ref());
        }
        some
    }

    /// Those of them that the root still wants: their members have given it some of the segments.
    pub(super) fn half_given(&self, everyone: &RankSet) -> RankSet {
        let mut some = self.uneven();
        some.intersect_with(self.wanted(everyone).as_ref());
        some
    }

    /// The same, with those that are said to have no value: a member that has left may have given
    /// some segments of its own for them, and the one that carries them now may still give others.
    fn doubtful(&self, everyone: &RankSet) -> RankSet {
        let mut kept = self.wanted(everyone);
        kept.union_with(self.absent.as_ref());
        let mut some = self.uneven();
        some.intersect_with(kept.as_ref());
        some
    }

    /// The virtual nodes that some segments stand for and others cannot any more, since no member
    /// carries them.
    fn halved(&self, everyone: &RankSet) -> RankSet {
        let mut some = self.uneven();
        some.subtract(everyone.as_ref());
        some
    }

    /// Takes out again what came folded with values of virtual nodes whose other segments do not
    /// come: without them it could not be used at the end. All of it can be asked for again.
    fn take_apart(&mut self, stuck: &RankSet, everyone: &RankSet) {
        let is_folded_with = |names: &RankSet| {
            let names = names.as_ref();
            names.intersects(stuck.as_ref())
                && !names.is_within(stuck.as_ref())
                && names.is_within(everyone.as_ref())
        };
        for segment in 0..self.head.segments {
            let Some(wave) = self.waves.get_mut(&segment) else { continue };
            let all = wave.names.clone();
            let before = wave.parts.len();
            let taken = wave.parts.extract_if(.., |part| is_folded_with(&part.0));
            let bytes: usize = taken.map(|part| part.1.len()).sum();
            if wave.parts.len() < before {
                self.kept_bytes -= bytes;
                self.rebuild(segment, all.as_ref());
            }
        }
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

    /// A question of the root has brought nothing: members that have given it some segments of
    /// their values may not give the others, as those that have left, or one that does not call
    /// what another has called for its virtual nodes. What is folded with those segments is asked
    /// for by itself, once for each set of them.
    pub(super) fn take_stuck_apart(&mut self, id: FoldId) {
        if self.breaks(Mutation::SkipAgreement) {
            return;
        }
        let everyone = self.view.everyone();
        let Some(fold) = self.folds.get_mut(&id).filter(|fold| fold.is_root) else { return };
        let stuck = fold.doubtful(everyone);
        if stuck != fold.taken_apart && fold.mine.is_some() {
            fold.take_apart(&stuck, everyone);
            fold.taken_apart = stuck;
        }
    }

    /// Members have answered the root's last question with some of their segments, as many as
    /// their links had room for, and are asked for the others without the patience that silence
    /// takes. Gives when the root is to look again, or nothing if it is not for that.
    pub(super) fn ask_for_rest(&mut self, id: FoldId) -> Option<Time> {
        let fold = self.folds.get(&id).filter(|fold| fold.is_root && !fold.is_finished)?;
        let rest = fold.half_given(self.view.everyone());
        let patience = self.fold_time(fold.own_bytes());
        let end = fold.progress + patience;
        if fold.progress <= fold.asked || rest.is_empty() {
            return None;
        }
        if end > self.now {
            return Some(end);
        }
        self.pull_of(id, &rest);
        Some(self.now + patience)
    }
}
