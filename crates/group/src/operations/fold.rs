//! A reduction at one member: its own part, what has come from below, and where it goes.
//!
//! Parts that have been folded cannot be taken apart. A part is therefore folded only where its
//! contributors and those of the wave are disjoint; what comes late goes to the root as it is. The
//! root drops what overlaps, and asks each virtual node that it lacks for its own value.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::RankSet;

use super::combine::{Operation, fold_in_order};
use super::counts::Folded;
use super::defined::{Definition, FoldFailed};
use super::grace::LeftCall;
use crate::error::Reason;
use crate::identity::{FoldId, MILLISECOND, MemberId, Request, Time};
use crate::member::{Member, Timer};
use crate::message::{Message, PaperTree, PartHead, Ranges};
use crate::mutation::Mutation;
use crate::payload::Payload;
use crate::trees::{Terrain, TreeKind};

/// Parts may take this long for each byte of the value: 10 MB/s.
const PATIENCE_PER_BYTE: Time = 100;
/// Deeper trees than this are taken for a circle.
const DEPTH_MAX: usize = 1 << 17;

/// One segment of a reduction.
#[derive(Debug, Default)]
pub(crate) struct Wave {
    pub(crate) names: RankSet,
    pub(crate) value: Vec<u8>,
    pub(crate) is_sent: bool,
    /// At the root, the parts of which the value was folded.
    pub(crate) parts: Vec<(RankSet, Payload)>,
}

/// The parent in one tree, and the virtual nodes of this member and those below it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) parent: Option<MemberId>,
    pub(crate) expected: RankSet,
}

/// A part that has come to the root before its own call.
#[derive(Debug)]
pub(crate) struct EarlyPart {
    pub(crate) head: PartHead,
    pub(crate) names: RankSet,
    pub(crate) data: Payload,
}

/// A reduction at one member.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) head: PartHead,
    /// The member's own value by segment, once the application has given it.
    pub(crate) mine: Option<Vec<Payload>>,
    pub(crate) my_names: RankSet,
    pub(crate) places: Vec<Place>,
    pub(crate) waves: BTreeMap<u32, Wave>,
    /// The root has asked for the own value before it was given.
    pub(crate) pulled_by: Option<MemberId>,
    pub(crate) request: Option<Request>,
    /// That call, if its caller leaves early and the member has others below it.
    pub(super) left_call: Option<LeftCall>,
    pub(crate) is_root: bool,
    pub(crate) to_all: bool,
    pub(crate) tree: TreeKind,
    /// At the root: whose values it waits for, and what all segments must stand for.
    pub(crate) required: RankSet,
    pub(crate) agreed: Option<RankSet>,
    pub(crate) rejected: RankSet,
    /// Virtual nodes whose members have died half-way: what comes with these is dropped.
    pub(crate) excluded: RankSet,
    /// Virtual nodes of which some segments had come, and others not for long, when what came
    /// folded with them was asked for by itself.
    pub(super) taken_apart: RankSet,
    /// Virtual nodes that were handed over between two members of which neither gives a value for
    /// them.
    pub(crate) absent: RankSet,
    /// Bytes of the parts that are kept.
    pub(crate) kept_bytes: usize,
    /// At the root, parts that came before its own call, whose operation, type and count hold.
    pub(crate) early: Vec<EarlyPart>,
    /// Pieces of the result by their offsets, in bytes.
    pub(crate) result: BTreeMap<u64, Payload>,
    /// How many bytes these have.
    pub(crate) result_bytes: u64,
    pub(crate) patience: Time,
    pub(crate) progress: Time,
    /// When it was last impatient.
    pub(crate) asked: Time,
    /// The root has its answer.
    pub(crate) is_finished: bool,
    /// What its operation does, where members define that and this one has done so.
    pub(super) definition: Option<Definition>,
    /// The function has failed: what is folded here is not to be used.
    pub(super) has_failed: bool,
}

impl Fold {
    pub(crate) fn new(head: PartHead, now: Time) -> Self {
        Self {
            head,
            mine: None,
            my_names: RankSet::new(),
            places: Vec::new(),
            waves: BTreeMap::new(),
            pulled_by: None,
            request: None,
            left_call: None,
            is_root: false,
            to_all: false,
            tree: TreeKind::default(),
            required: RankSet::new(),
            agreed: None,
            rejected: RankSet::new(),
            excluded: RankSet::new(),
            taken_apart: RankSet::new(),
            absent: RankSet::new(),
            kept_bytes: 0,
            early: Vec::new(),
            result: BTreeMap::new(),
            result_bytes: 0,
            patience: 0,
            progress: now,
            asked: 0,
            is_finished: false,
            definition: None,
            has_failed: false,
        }
    }

    /// Whether the member has called, and knows no member that carries the root.
    pub(crate) fn waits_for_root(&self) -> bool {
        self.mine.is_some() && self.places.is_empty()
    }

    /// At the root: the virtual nodes whose values it still can get, or has.
    pub(super) fn wanted(&self, everyone: &RankSet) -> RankSet {
        let mut wanted = self.agreed.as_ref().unwrap_or(&self.required).clone();
        wanted.intersect_with(everyone.as_ref());
        for refused in [&self.rejected, &self.excluded, &self.absent] {
            wanted.subtract(refused.as_ref());
        }
        wanted
    }

    /// The length of the member's own value.
    pub(super) fn own_bytes(&self) -> u64 {
        self.mine.iter().flatten().map(|value| value.len() as u64).sum()
    }

    /// Whether the member has passed on all that it is to pass on.
    pub(crate) fn is_over(&self) -> bool {
        self.is_finished || (!self.is_root && self.all_sent())
    }

    pub(crate) fn all_sent(&self) -> bool {
        // They are sent in order: the last ones are looked at first.
        let mut segments = (0..self.head.segments).rev();
        self.mine.is_some()
            && segments.all(|segment| self.waves.get(&segment).is_some_and(|wave| wave.is_sent))
    }

    /// The member is the root now, and has not called: what came is judged by its own call. What
    /// it has passed on was for the root before, and is asked for again.
    pub(crate) fn keep_waves_until_the_call(&mut self) {
        for (segment, wave) in core::mem::take(&mut self.waves) {
            if !wave.is_sent && !wave.names.is_empty() {
                let head = PartHead { segment, direct: true, ..self.head.clone() };
                self.kept_bytes += wave.value.len();
                let (names, data) = (wave.names, Payload::from(wave.value));
                self.early.push(EarlyPart { head, names, data });
            }
        }
    }

    /// Whether two values of its operation can be folded at this member.
    pub(super) fn can_fold(&self) -> bool {
        !matches!(self.head.operation, Operation::Defined(_)) || self.definition.is_some()
    }

    /// Folds a part into a wave. That a function has failed is seen where the wave is looked at
    /// next: by [`Member::check_wave`], [`Member::check_root`] or [`Member::finish_root`].
    pub(super) fn merge(&mut self, segment: u32, names: &RankSet, data: &[u8]) -> Folded {
        let (operation, element) = (self.head.operation, self.head.element);
        let wave = self.waves.entry(segment).or_default();
        let is_first = wave.names.is_empty();
        if is_first {
            wave.value = data.to_vec();
        } else {
            let folded = operation.fold(element, self.definition.as_ref(), &mut wave.value, data);
            self.has_failed |= folded.is_err();
        }
        wave.names.union_with(names.as_ref());
        let is_copied = !data.is_empty() && (is_first || operation.keeps_apart());
        if is_copied { Folded::Copied } else { Folded::InPlace }
    }

    /// At the root, the value of all waves, which are gone afterwards.
    pub(super) fn take_value(&mut self) -> Result<Vec<u8>, FoldFailed> {
        let waves = core::mem::take(&mut self.waves);
        let bytes = waves.values().map(|wave| wave.value.len()).sum();
        let mut value = Vec::with_capacity(bytes);
        waves.into_values().for_each(|wave| value.extend(wave.value));
        if !self.head.operation.is_in_order() {
            return Ok(value);
        }
        fold_in_order(self.head.operation, self.head.element, self.definition.as_ref(), &value)
    }
}

impl Member {
    pub(crate) fn root_of(&self, fold: FoldId) -> Option<MemberId> {
        self.view.owner(fold.root)
    }

    /// This member's places in the trees of a reduction.
    pub(super) fn places(&mut self, root: MemberId, tree: TreeKind, bytes: u64) -> Vec<Place> {
        let own = self.view.names_of(self.me);
        if root == self.me {
            let expected = self.view.everyone().clone();
            return Vec::from([Place { parent: None, expected }]);
        }
        if tree.is_paper() {
            let paper = PaperTree { root, bulk: tree == TreeKind::PaperBandwidth };
            let (parent, expected) = self.papers.position(paper, &own);
            return Vec::from([Place { parent: parent.or(Some(root)), expected }]);
        }
        let mut targets = self.view.everyone().clone();
        targets.subtract(self.view.names_of(root).as_ref());
        if let Some(count) = self.stripes_up(bytes, tree, root, targets.as_ref()) {
            let above = Terrain { me: root, ..self.terrain() };
            let stripes = above.lay_out(count, targets.as_ref());
            let place = |branches| self.place_in_route(root, branches);
            return stripes.iter().map(place).collect();
        }
        let mut place = Place { parent: Some(root), expected: own.clone() };
        let Some(mine) = own.as_ref().first() else { return Vec::from([place]) };
        let mut at = root;
        for _ in 0..DEPTH_MAX {
            let (branches, _) =
                Terrain { me: at, ..self.terrain_for(bytes) }.split(tree, root, targets.as_ref());
            let Some(branch) = branches.into_iter().find(|branch| branch.names.contains(mine))
            else {
                break;
            };
            if branch.child == self.me {
                place = Place { parent: Some(at), expected: branch.names };
                break;
            }
            at = branch.child;
            targets = branch.names;
            targets.subtract(self.view.names_of(at).as_ref());
        }
        Vec::from([place])
    }

    fn place_in_route(&self, root: MemberId, branches: &Vec<crate::trees::Branch>) -> Place {
        for branch in branches {
            let below = (branch.child, branch.route.0.len() as u32);
            let order: Vec<(MemberId, u32)> =
                core::iter::once(below).chain(branch.route.0.iter().copied()).collect();
            let Some(at) = order.iter().position(|entry| entry.0 == self.me) else { continue };
            // The parent is the last member before this one whose subtree holds it.
            let holds = |&index: &usize| index + (order[index].1 as usize) >= at;
            let parent = (0..at).rev().find(holds).map_or(root, |index| order[index].0);
            let mut expected = RankSet::new();
            for (member, _) in &order[at..=at + order[at].1 as usize] {
                expected.union_with(self.view.names_of(*member).as_ref());
            }
            return Place { parent: Some(parent), expected };
        }
        Place { parent: Some(root), expected: self.view.names_of(self.me) }
    }

    /// How long parts of a reduction may take.
    pub(super) fn fold_time(&self, bytes: u64) -> Time {
        self.config.patience
            + 4 * self.clusters.longest().max(MILLISECOND)
            + PATIENCE_PER_BYTE.saturating_mul(bytes)
    }

    /// Parts have not come for long: a member passes on what it has, the root asks for the rest.
    pub(crate) fn fold_patience(&mut self, id: FoldId) {
        let Some(fold) = self.folds.get_mut(&id) else { return };
        let end = fold.progress.max(fold.asked) + fold.patience;
        if fold.is_over() {
            return;
        }
        if end > self.now {
            let soon = self.ask_for_rest(id).map_or(end, |soon| soon.min(end));
            self.wake_at(soon, Timer::FoldPatience(id));
            return;
        }
        let is_silent = fold.progress <= fold.asked;
        fold.asked = self.now;
        fold.patience = fold.patience.saturating_mul(2).min(self.config.linger / 4);
        let next = self.now + fold.patience;
        let is_root = fold.is_root;
        self.wake_at(next, Timer::FoldPatience(id));
        if is_root {
            self.exclude_halved(id);
            if is_silent {
                self.take_stuck_apart(id);
            }
            self.check_root(id);
            self.pull(id);
        } else {
            self.pass_on_all(id);
        }
    }

    fn pass_on_all(&mut self, id: FoldId) {
        let Some(fold) = self.folds.get(&id) else { return };
        if self.root_of(id).is_none() {
            return;
        }
        let waiting: Vec<u32> = fold
            .waves
            .iter()
            .filter(|(_, wave)| !wave.is_sent && !wave.names.is_empty())
            .map(|(segment, _)| *segment)
            .collect();
        for segment in waiting {
            self.send_wave(id, segment);
        }
    }

    /// Asks for the values that the root lacks.
    pub(super) fn pull(&mut self, id: FoldId) {
        let Some(fold) = self.folds.get(&id) else { return };
        let wanted = fold.wanted(self.view.everyone());
        self.pull_of(id, &wanted);
    }

    /// Asks for those of some virtual nodes.
    pub(super) fn pull_of(&mut self, id: FoldId, wanted: &RankSet) {
        if self.breaks(Mutation::SkipPull) {
            return;
        }
        let now = self.now;
        let Some(fold) = self.folds.get_mut(&id).filter(|fold| fold.is_root) else { return };
        fold.asked = now;
        let fold = &*fold;
        let (bytes, segments) = (fold.own_bytes(), fold.head.segments);
        let mut asks: BTreeMap<MemberId, (RankSet, RankSet)> = BTreeMap::new();
        for segment in 0..segments {
            let lacking = match fold.waves.get(&segment) {
                Some(wave) => wanted.difference(wave.names.as_ref()),
                None => wanted.clone(),
            };
            for (owner, names) in self.view.owners(lacking.as_ref()).0 {
                let entry = asks.entry(owner).or_default();
                entry.0.union_with(names.as_ref());
                entry.1.insert(segment);
            }
        }
        if segments > 1 {
            // Members may have given a part of theirs by then.
            self.wake_at(now + self.fold_time(bytes), Timer::FoldPatience(id));
        }
        for (owner, (names, segments)) in asks {
            let (names, segments) = (Ranges::from(&names), Ranges::from(&segments));
            if owner == self.me {
                self.pulled_strange(owner, id, &names);
            }
            self.send(owner, Message::Pull { fold: id, names, segments });
        }
    }

    /// A member is gone: roots look at what they lack, others at what they wait for.
    pub(crate) fn folds_after_death(&mut self) {
        let ids: Vec<FoldId> = self.folds.keys().copied().collect();
        for id in ids {
            let soon = self.now + 2 * self.clusters.longest() + 5 * MILLISECOND;
            let Some(fold) = self.folds.get_mut(&id) else { continue };
            if fold.is_root {
                fold.asked = self.now;
                fold.patience = soon - self.now;
                self.wake_at(soon, Timer::FoldPatience(id));
                self.check_root(id);
                continue;
            }
            let segments = fold.head.segments;
            let (is_mine, request) = (fold.mine.is_some(), fold.request);
            if fold.waits_for_root() {
                continue;
            }
            if self.root_of(id).is_none() {
                self.root_lost(id, request);
                continue;
            }
            if is_mine {
                (0..segments).for_each(|segment| self.check_wave(id, segment));
            }
        }
    }

    /// A member carries names that it did not: calls that wait for a root there go on.
    pub(crate) fn folds_after_news(&mut self) {
        let waiting = self.folds.iter().filter(|(_, fold)| fold.waits_for_root());
        let ids: Vec<FoldId> = waiting.map(|(id, _)| *id).collect();
        for id in ids {
            let Some(root) = self.root_of(id) else { continue };
            let Some(fold) = self.folds.get(&id) else { continue };
            let bytes = fold.own_bytes();
            let (tree, segments) = (fold.tree, fold.head.segments);
            let places = self.places(root, tree, bytes);
            let Some(fold) = self.folds.get_mut(&id) else { continue };
            (fold.places, fold.progress) = (places, self.now);
            let patience = self.now + fold.patience;
            self.wake_at(patience, Timer::FoldPatience(id));
            (0..segments).for_each(|segment| self.check_wave(id, segment));
        }
    }

    pub(super) fn root_lost(&mut self, id: FoldId, request: Option<Request>) {
        self.folds.remove(&id);
        if let Some(request) = request {
            let missing = Vec::from([(RankSet::range(id.root, id.root), Reason::RootLost)]);
            self.answer(request, None, RankSet::new(), missing);
        }
    }

    /// Nothing has happened for long: the record goes.
    pub(crate) fn fold_linger(&mut self, id: FoldId) {
        let Some(fold) = self.folds.get(&id) else { return };
        let end = fold.progress + self.config.linger;
        if end > self.now || fold.request.is_some() {
            self.wake_at(end.max(self.now + self.config.linger / 4), Timer::FoldLinger(id));
        } else {
            self.folds.remove(&id);
        }
    }
}
