//! The end of reductions: at the root, and at the members that get the result from it.

use alloc::vec::Vec;

use sapwood_packet::RankSet;

use super::by_first_cause;
use super::call::{INTERNAL, Transfer};
use super::fold::Fold;
use crate::error::Reason;
use crate::identity::{FoldId, MILLISECOND};
use crate::limits::VALUE_BYTES_MAX;
use crate::member::{Member, Timer};
use crate::message::{Life, Message, Missing, Purpose, Ranges};
use crate::mutation::Mutation;
use crate::payload::Payload;
use crate::trees::TreeKind;

/// How long the ends of reductions are gathered.
const FINISH_DELAY: u64 = 20 * MILLISECOND;

impl Fold {
    /// Keeps a piece of the result; gives the result when all of its bytes are here.
    pub(super) fn add_result(
        &mut self,
        offset: u64,
        piece: Payload,
        bytes: u64,
    ) -> Option<Payload> {
        // Kept apart until all are here: what a message says of the length costs no memory.
        self.result_bytes += piece.len() as u64;
        let replaced = self.result.insert(offset, piece);
        self.result_bytes -= replaced.map_or(0, |piece| piece.len() as u64);
        if self.result_bytes < bytes {
            return None;
        }
        let pieces = core::mem::take(&mut self.result);
        let mut value = Vec::with_capacity(self.result_bytes as usize);
        pieces.values().for_each(|piece| value.extend_from_slice(piece.as_slice()));
        Some(Payload::from(value))
    }
}

impl Member {
    /// The root has all that it can get: either all segments stand for the same virtual nodes, or
    /// those that do not are asked for anew.
    pub(crate) fn check_root(&mut self, id: FoldId) {
        let skips = self.breaks(Mutation::SkipAgreement);
        let everyone = self.view.everyone();
        let Some(fold) = self.folds.get_mut(&id) else { return };
        if !fold.is_root || fold.is_finished || fold.mine.is_none() {
            return;
        }
        if fold.has_failed {
            return self.function_failed(id);
        }
        let wanted = fold.wanted(everyone);
        let segments = fold.head.segments;
        // They come in order: the last ones are looked at first.
        let is_full = (0..segments).rev().all(|segment| {
            let wave = fold.waves.get(&segment);
            wave.is_some_and(|wave| wanted.as_ref().is_within(wave.names.as_ref()))
        });
        if !is_full {
            return;
        }
        let shared = fold.shared_names();
        if skips || fold.waves.values().all(|wave| wave.names == shared) {
            self.finish_root(id, shared);
            return;
        }
        let mut agreed = shared;
        agreed.intersect_with(everyone.as_ref());
        for segment in 0..segments {
            let is_wrong = fold.waves.get(&segment).is_some_and(|wave| wave.names != agreed);
            if is_wrong {
                fold.rebuild(segment, agreed.as_ref());
            }
        }
        if fold.has_failed {
            return self.function_failed(id);
        }
        fold.agreed = Some(agreed);
        self.pull(id);
    }

    /// The root's answer, with what it has.
    pub(super) fn finish_root(&mut self, id: FoldId, contributors: RankSet) {
        let Some(fold) = self.folds.get_mut(&id) else { return };
        if fold.has_failed {
            return self.function_failed(id);
        }
        fold.is_finished = true;
        let is_in_order = fold.head.operation.is_in_order();
        let bytes: u64 = fold.waves.values().map(|wave| wave.value.len() as u64).sum();
        let is_too_long = fold.to_all && !is_in_order && bytes > VALUE_BYTES_MAX;
        let value = if is_too_long { Ok(Vec::new()) } else { fold.take_value() };
        let Ok(value) = value else { return self.function_failed(id) };
        let (required, rejected) = (fold.required.clone(), fold.rejected.clone());
        let absent = fold.absent.clone();
        let (to_all, tree, request) = (fold.to_all, fold.tree, fold.request.take());
        let missing = self.missing(&required, &contributors, [rejected, absent]);
        if is_too_long {
            self.refuse_result(id, &required);
            if let Some(request) = request {
                let refused = [(contributors, Reason::Mismatch)];
                let missing = refused.into_iter().chain(missing).collect();
                self.answer(request, None, RankSet::new(), missing);
            }
            return;
        }
        let value = Payload::from(value);
        if to_all {
            let listed: Missing =
                missing.iter().map(|(names, reason)| (Ranges::from(names), *reason)).collect();
            let purpose = Purpose::Result {
                fold: id,
                contributors: Ranges::from(&contributors),
                missing: listed,
            };
            let mut targets = required;
            targets.intersect_with(self.view.everyone().as_ref());
            let transfer = Transfer { targets, value: value.clone(), purpose, tag: 0 };
            self.start_internal(tree, transfer);
        }
        if let Some(request) = request {
            self.answer(request, Some(value), contributors, missing);
        }
        self.end_fold(id);
    }

    /// A transfer that no call of the application has started.
    pub(super) fn start_internal(&mut self, tree: TreeKind, transfer: Transfer) {
        self.internal += 1;
        self.start_casts(INTERNAL + self.internal, tree, Vec::from([transfer]));
        let end = self.now + self.config.linger;
        self.wake_at(end, Timer::Deadline(INTERNAL + self.internal));
    }

    pub(super) fn end_fold(&mut self, id: FoldId) {
        self.folds.remove(&id);
        self.note_finished(id);
        self.finishing.push(id);
        self.wake_at(self.now + FINISH_DELAY, Timer::Finish);
    }

    /// What all values make together is longer than a value may be: no member gets it.
    fn refuse_result(&mut self, id: FoldId, required: &RankSet) {
        let (owners, _) = self.view.owners(required.as_ref());
        let me = self.me;
        for (owner, _) in owners.into_iter().filter(|(owner, _)| *owner != me) {
            self.send(owner, Message::Mismatch { fold: id });
        }
        self.end_fold(id);
    }

    /// The root's deadline has passed.
    pub(crate) fn give_up_fold(&mut self, id: FoldId) {
        let skips = self.breaks(Mutation::SkipAgreement);
        let Some(fold) = self.folds.get_mut(&id) else { return };
        if fold.waits_for_root() {
            let request = fold.request;
            return self.root_lost(id, request);
        }
        if !fold.is_root {
            let request = fold.request;
            // Once the own value has gone up whole, what has not come is the root's result.
            let root = RankSet::range(id.root, id.root);
            let absent = if fold.all_sent() { root } else { fold.my_names.clone() };
            let call = fold.left_call.take();
            self.folds.remove(&id);
            self.grace_missed(call);
            if let Some(request) = request {
                let missing = Vec::from([(absent, Reason::Deadline)]);
                self.answer(request, None, RankSet::new(), missing);
            }
            return;
        }
        let mut shared = fold.shared_names();
        if !fold.is_whole(&shared) && !skips {
            shared = fold.agree_on_what_is_here();
        }
        self.finish_root(id, shared);
    }

    fn missing(
        &self,
        required: &RankSet,
        contributors: &RankSet,
        [rejected, absent]: [RankSet; 2],
    ) -> Vec<(RankSet, Reason)> {
        let mut rest = required.difference(contributors.as_ref());
        if rest.is_empty() {
            return Vec::new();
        }
        let causes = [
            (rejected, Reason::Mismatch),
            (absent, Reason::Left),
            (self.view.everyone().clone(), Reason::Deadline),
            (self.view.names_in(Life::Left, rest.as_ref()), Reason::Left),
            (rest.clone(), Reason::Dead),
        ];
        let mut missing = by_first_cause(&mut rest, causes);
        // In the order of their first virtual nodes.
        missing.sort_by_key(|(names, _)| names.as_ref().first());
        missing
    }

    /// Tells all that reductions are over.
    pub(crate) fn tell_finished(&mut self) {
        let folds = core::mem::take(&mut self.finishing);
        if !folds.is_empty() && !self.breaks(Mutation::KeepFinished) {
            let targets = self.others();
            self.pass(targets.as_ref(), |targets| Message::Finished {
                folds: folds.clone(),
                targets,
            });
        }
    }

    pub(crate) fn finished(&mut self, folds: &[FoldId], targets: &Ranges) {
        self.pass(targets.as_set(), |targets| Message::Finished { folds: folds.to_vec(), targets });
        for &id in folds {
            self.note_finished(id);
            let Some(fold) = self.folds.get_mut(&id) else { continue };
            // A result that all get comes by itself; until then the call waits.
            if fold.to_all && fold.request.is_some() {
                fold.is_finished = true;
                continue;
            }
            let (own, request) = (fold.my_names.clone(), fold.request);
            let call = fold.left_call.take();
            self.folds.remove(&id);
            self.grace_missed(call);
            if let Some(request) = request {
                self.answer(request, None, own, Vec::new());
            }
        }
    }

    pub(super) fn note_finished(&mut self, id: FoldId) {
        self.early_pulls.remove(&id);
        self.finished.note(id);
    }

    /// A result that all get is here as a whole.
    pub(super) fn result_came(
        &mut self,
        id: FoldId,
        value: Payload,
        contributors: RankSet,
        missing: Vec<(RankSet, Reason)>,
    ) {
        let request = self.folds.remove(&id).and_then(|fold| fold.request);
        self.note_finished(id);
        if let Some(request) = request {
            self.answer(request, Some(value), contributors, missing);
        }
    }

    /// This member's value does not fit the others'.
    pub(crate) fn mismatched(&mut self, id: FoldId) {
        let Some(fold) = self.folds.remove(&id) else { return };
        self.note_finished(id);
        if let Some(request) = fold.request {
            let missing = Vec::from([(fold.my_names, Reason::Mismatch)]);
            self.answer(request, None, RankSet::new(), missing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::PartHead;
    use crate::operations::combine::{Element, Operation};

    #[test]
    fn a_result_is_whole_when_each_of_its_pieces_has_come_in_any_order() {
        let head = PartHead {
            fold: FoldId { root: 0, number: 1 },
            segment: 0,
            segments: 1,
            operation: Operation::Sum,
            element: Element::Byte,
            bytes: 6,
            direct: false,
        };
        let mut fold = Fold::new(head, 0);
        let mut add = |offset: u64, piece: &[u8]| {
            let whole = fold.add_result(offset, Payload::from(piece.to_vec()), 6);
            whole.map(|whole| whole.as_slice().to_vec())
        };
        assert_eq!(add(4, b"ef"), None);
        assert_eq!(add(0, b"xx"), None);
        assert_eq!(add(0, b"ab"), None, "a piece that comes again counts once");
        assert_eq!(add(2, b"cd"), Some(b"abcdef".to_vec()));
    }
}
