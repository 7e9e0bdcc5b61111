//! Parts of reductions come, are folded, and go on.

use alloc::vec::Vec;

use sapwood_packet::RankSet;

use super::agreement::KEPT_BYTES_MAX;
use super::counts::PartMeets;
use super::fold::{EarlyPart, Fold, Wave};
use crate::identity::{FoldId, MemberId};
use crate::limits::{PAYLOAD_BYTES_MAX, TRANSFERS_MAX};
use crate::member::{Due, Member, Phase, Timer};
use crate::message::{Message, PartHead, Ranges};
use crate::mutation::Mutation;
use crate::payload::Payload;

/// A list of contributions that would be longer goes to the root in parts: a message has a limit.
const GATHERED_PART_BYTES_MAX: usize = PAYLOAD_BYTES_MAX / 2;

impl Member {
    pub(crate) fn part(&mut self, head: PartHead, names: &Ranges, data: Payload) {
        let has_called = self.folds.get(&head.fold).is_some_and(|fold| fold.mine.is_some());
        let meets = if has_called { PartMeets::Call } else { PartMeets::NoCall };
        self.take_part(meets, head, names, data);
    }

    fn take_part(&mut self, meets: PartMeets, head: PartHead, names: &Ranges, data: Payload) {
        let id = head.fold;
        if self.phase == Phase::Outside || self.finished.contains(id) {
            return;
        }
        let is_root = self.root_of(id) == Some(self.me);
        if head.direct && !is_root {
            self.send_to_root(head, names.clone(), data);
            return;
        }
        let now = self.now;
        if !self.folds.contains_key(&id) {
            if self.folds.len() >= TRANSFERS_MAX {
                return;
            }
            let mut fold = Fold::new(head.clone(), now);
            fold.definition = self.definitions.of(head.operation, head.element).cloned();
            self.folds.insert(id, fold);
            let patience = self.fold_time(head.bytes);
            if let Some(fold) = self.folds.get_mut(&id) {
                fold.patience = patience;
                // The root's application may be late itself: nothing is passed on from here.
                fold.is_root = is_root;
            }
            self.wake_at(now + patience, Timer::FoldPatience(id));
            self.wake_at(now + self.config.linger, Timer::FoldLinger(id));
        }
        self.reduce_counts.note_part(meets, data.len());
        let Some(fold) = self.folds.get_mut(&id) else { return };
        fold.progress = now;
        let names = names.as_set().to_set();
        if is_root && fold.mine.is_none() {
            // What finds no room is asked for again.
            let bytes = fold.kept_bytes + data.len();
            if bytes <= KEPT_BYTES_MAX {
                fold.kept_bytes = bytes;
                fold.early.push(EarlyPart { head, names, data });
            }
            return;
        }
        if !is_alike(&fold.head, &head) {
            self.unlike(id, head, names, data, is_root);
        } else if is_root {
            self.part_at_root(meets, &head, &names, &data);
        } else {
            self.part_below_root(meets, head, names, data);
        }
    }

    /// Another operation, type or count than this member's: the root says so to its members.
    fn unlike(&mut self, id: FoldId, head: PartHead, names: RankSet, data: Payload, is_root: bool) {
        if !is_root {
            self.send_past(id, head, &names, data);
            return;
        }
        let (owners, _) = self.view.owners(names.as_ref());
        if owners.len() == 1
            && let Some(fold) = self.folds.get_mut(&id)
        {
            fold.rejected.union_with(names.as_ref());
            for (owner, _) in owners {
                self.send(owner, Message::Mismatch { fold: id });
            }
            self.check_root(id);
        }
    }

    fn part_below_root(&mut self, meets: PartMeets, head: PartHead, names: RankSet, data: Payload) {
        let (id, segment) = (head.fold, head.segment);
        let folds_overlap = self.breaks(Mutation::FoldOverlap);
        let Some(fold) = self.folds.get_mut(&id) else { return };
        let wave = fold.waves.entry(segment).or_default();
        let overlaps = wave.names.as_ref().intersects(names.as_ref()) && !folds_overlap;
        let is_long =
            head.operation.keeps_apart() && wave.value.len() + data.len() > GATHERED_PART_BYTES_MAX;
        let is_first = wave.names.is_empty();
        if wave.is_sent || overlaps || is_long || !(is_first || fold.can_fold()) {
            return self.send_past(id, head, &names, data);
        }
        let how = fold.merge(segment, &names, data.as_slice());
        self.reduce_counts.note_fold(meets, data.len(), how);
        self.check_wave(id, segment);
    }

    /// A part goes to the root by itself; this member's own does not wait for it.
    fn send_past(&mut self, id: FoldId, head: PartHead, names: &RankSet, data: Payload) {
        let segment = head.segment;
        if let Some(fold) = self.folds.get_mut(&id) {
            for place in &mut fold.places {
                place.expected.subtract(names.as_ref());
            }
        }
        self.send_to_root(head, Ranges::from(names), data);
        self.check_wave(id, segment);
    }

    /// The member's own call is of another operation, type or count than the parts that came before
    /// it: these go to the root by themselves. Gives the virtual nodes of which they are.
    pub(super) fn send_unlike_past(&mut self, id: FoldId, own: &PartHead) -> RankSet {
        let mut sent = RankSet::new();
        let Some(fold) = self.folds.get_mut(&id) else { return sent };
        if is_alike(&fold.head, own) {
            return sent;
        }
        let head = fold.head.clone();
        for (segment, wave) in core::mem::take(&mut fold.waves) {
            sent.union_with(wave.names.as_ref());
            if !wave.is_sent && !wave.names.is_empty() {
                let head = PartHead { segment, ..head.clone() };
                self.send_to_root(head, Ranges::from(&wave.names), Payload::from(wave.value));
            }
        }
        sent
    }

    /// The root has called: what came before is judged by its terms.
    pub(super) fn take_early(&mut self, id: FoldId) {
        let Some(fold) = self.folds.get_mut(&id) else { return };
        let early = core::mem::take(&mut fold.early);
        fold.kept_bytes -= early.iter().map(|part| part.data.len()).sum::<usize>();
        for EarlyPart { head, names, data } in early {
            self.take_part(PartMeets::LateCall, head, &Ranges::from(&names), data);
        }
    }

    fn part_at_root(&mut self, meets: PartMeets, head: &PartHead, names: &RankSet, data: &Payload) {
        let (id, segment) = (head.fold, head.segment);
        let folds_overlap = self.breaks(Mutation::FoldOverlap);
        let Some(fold) = self.folds.get_mut(&id).filter(|fold| !fold.is_finished) else { return };
        let wave = fold.waves.entry(segment).or_default();
        let is_wanted =
            fold.agreed.as_ref().is_none_or(|agreed| names.as_ref().is_within(agreed.as_ref()));
        let is_excluded = fold.excluded.as_ref().intersects(names.as_ref());
        let overlaps = wave.names.as_ref().intersects(names.as_ref()) && !folds_overlap;
        if overlaps || is_excluded || !is_wanted {
            return;
        }
        let how = fold.merge_at_root(segment, names, data);
        self.reduce_counts.note_fold(meets, data.len(), how);
        self.check_root(id);
    }

    /// Passes a wave on when all whose values are expected are in it.
    pub(super) fn check_wave(&mut self, id: FoldId, segment: u32) {
        let everyone = self.view.everyone();
        let Some(fold) = self.folds.get(&id) else { return };
        if fold.has_failed {
            return self.function_failed(id);
        }
        let Some(wave) = fold.waves.get(&segment) else { return };
        if fold.is_root || wave.is_sent || fold.places.is_empty() || wave.names.is_empty() {
            return;
        }
        let place = &fold.places[segment as usize % fold.places.len()];
        let mut lacking = place.expected.difference(wave.names.as_ref());
        lacking.intersect_with(everyone.as_ref());
        if lacking.is_empty() {
            self.send_wave(id, segment);
        }
    }

    /// Passes a wave on as it is, or as it is by the time that its link has credit.
    pub(crate) fn send_wave(&mut self, id: FoldId, segment: u32) {
        let root = self.root_of(id);
        let Some(fold) = self.folds.get(&id) else { return };
        let is_past = |wave: &Wave| wave.is_sent || wave.names.is_empty();
        if fold.is_root || fold.waves.get(&segment).is_none_or(is_past) {
            return;
        }
        let count = fold.places.len().max(1);
        let parent = fold.places.get(segment as usize % count).and_then(|place| place.parent);
        let parent = parent.filter(|parent| self.view.is_alive(*parent));
        // Without either the root is lost, which is told of elsewhere.
        let Some(to) = parent.or(root) else { return };
        if to != self.me && !self.has_credit(to) {
            return self.credit.wait(to, Due::Wave(id, segment));
        }
        let Some(fold) = self.folds.get_mut(&id) else { return };
        let Some(wave) = fold.waves.get_mut(&segment) else { return };
        wave.is_sent = true;
        let data = Payload::from(core::mem::take(&mut wave.value));
        let names = Ranges::from(&wave.names);
        let is_direct = parent.is_none() || parent == root;
        let head = PartHead { segment, direct: is_direct, ..fold.head.clone() };
        self.send(to, Message::Part { head, names, data });
        self.check_sent(id);
    }

    /// A member's call to a reduction that others get is over when its part is on its way.
    pub(super) fn check_sent(&mut self, id: FoldId) {
        let Some(fold) = self.folds.get_mut(&id) else { return };
        if fold.to_all || fold.is_root || !fold.all_sent() {
            return;
        }
        let own = fold.my_names.clone();
        if let Some(request) = fold.request.take() {
            self.grace_met(id);
            self.answer(request, None, own, Vec::new());
        }
    }

    fn send_to_root(&mut self, mut head: PartHead, names: Ranges, data: Payload) {
        head.direct = true;
        if let Some(root) = self.root_of(head.fold) {
            self.send_late(root, Message::Part { head, names, data });
        }
    }

    /// The root lacks this member's value.
    pub(crate) fn pulled(&mut self, from: MemberId, id: FoldId, names: &Ranges, lacks: &Ranges) {
        self.pulled_strange(from, id, names);
        let Some(fold) = self.folds.get_mut(&id) else { return self.note_pull(from, id) };
        let Some(mine) = &fold.mine else {
            fold.pulled_by = Some(from);
            return;
        };
        let mut parts = Vec::new();
        for (segment, value) in (0..).zip(mine) {
            if lacks.as_set().is_empty() || lacks.as_set().contains(segment) {
                parts.push((segment, value.clone()));
            }
        }
        // What it lacks may have been given by another member, which is asked.
        if !fold.my_names.as_ref().intersects(names.as_set()) {
            return;
        }
        let (head, given) = (fold.head.clone(), fold.my_names.clone());
        let names = Ranges::from(&self.names_of_own_value(given));
        for (segment, data) in parts {
            let head = PartHead { segment, direct: true, ..head.clone() };
            self.send_late(from, Message::Part { head, names: names.clone(), data });
        }
    }

    /// For which virtual nodes the own value counts: without those that this member has given away
    /// and whose member has died since, which the root may have left out of the result. What is
    /// still here is always among them, so that the value counts once.
    fn names_of_own_value(&self, mut names: RankSet) -> RankSet {
        if !names.as_ref().intersects(self.names().as_ref()) {
            return names;
        }
        names.intersect_with(self.view.everyone().as_ref());
        names
    }

    /// The application has not given its value yet: the root is told when it does.
    fn note_pull(&mut self, from: MemberId, id: FoldId) {
        if !self.finished.contains(id) && self.early_pulls.len() < TRANSFERS_MAX {
            self.early_pulls.insert(id, from);
        }
    }
}

fn is_alike(one: &PartHead, other: &PartHead) -> bool {
    (one.operation, one.element, one.segments, one.bytes)
        == (other.operation, other.element, other.segments, other.bytes)
}
