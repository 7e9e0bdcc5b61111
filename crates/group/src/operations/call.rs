//! What the application starts, and the answers.

use alloc::vec::Vec;

use sapwood_packet::{RankSet, RankSetRef};

use super::combine::entry;
use super::fold::Fold;
use super::grace::GraceKey;
use super::lane::Lane;
use super::{add_reason, by_first_cause};
use crate::error::{GroupError, Reason};
use crate::identity::{CastId, FoldId, MemberId, Request, Time};
use crate::limits::{
    SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, SEGMENTS_MAX, STRIPES_MAX, TRANSFERS_MAX, VALUE_BYTES_MAX,
};
use crate::member::{Answer, Call, Event, Member, Timer};
use crate::message::{Head, PartHead, Purpose, Route};
use crate::payload::Payload;
use crate::trees::{Branch, Choice, ChoiceBasis, ChoiceReason, Parcel, Terrain, TreeKind};

/// Requests from here on are the member's own.
pub(super) const INTERNAL: Request = 1 << 63;

/// Down a tree, stripes pay off from this part of the length from which they do upwards.
const DOWN_SHARE: u64 = 4;
/// No estimate is made for shorter values, in bytes: the latency tree is far better for them.
const ESTIMATED_BYTES_MIN: u64 = 4 << 10;

/// A call that has not been answered.
#[derive(Debug)]
pub(crate) enum Pending {
    /// Transfers from this member.
    Casts {
        /// They.
        casts: Vec<CastId>,
        /// All their virtual nodes.
        targets: RankSet,
    },
    /// A part of a reduction.
    Fold(FoldId),
}

/// One transfer that is to be started.
pub(super) struct Transfer {
    pub(super) targets: RankSet,
    pub(super) value: Payload,
    pub(super) purpose: Purpose,
    pub(super) tag: u64,
}

impl Member {
    pub(crate) fn call(&mut self, request: Request, tree: TreeKind, deadline: Time, call: Call) {
        if let Err(error) = self.try_call(request, tree, deadline, call) {
            self.tell(Event::Failed(request, error));
        } else if self.awaits(request) {
            self.wake_at(deadline.max(self.now), Timer::Deadline(request));
        }
    }

    /// Whether a call has no answer yet.
    fn awaits(&self, request: Request) -> bool {
        self.pending.contains_key(&request) || self.has_put_off(request)
    }

    fn try_call(
        &mut self,
        request: Request,
        tree: TreeKind,
        deadline: Time,
        call: Call,
    ) -> Result<(), GroupError> {
        if self.leaves_for_good() || self.is_taking() {
            return Err(GroupError::NotJoined);
        }
        if self.awaits(request) || request >= INTERNAL {
            return Err(GroupError::Number { number: request });
        }
        if self.pending.len() + self.put_off() >= TRANSFERS_MAX {
            return Err(GroupError::Busy);
        }
        let Some(call) = self.call_later(request, tree, deadline, call) else { return Ok(()) };
        let transfers = match call {
            Call::Broadcast { targets, value, tag } => {
                let targets = targets.unwrap_or_else(|| self.view.everyone().clone());
                Vec::from([Transfer { targets, value, purpose: Purpose::Broadcast, tag }])
            }
            Call::Direct { to, value, tag } => {
                let targets = RankSet::range(to, to);
                Vec::from([Transfer { targets, value, purpose: Purpose::Direct, tag }])
            }
            Call::Scatter { values, tag } => values
                .into_iter()
                .map(|(name, value)| {
                    let targets = RankSet::range(name, name);
                    Transfer { targets, value, purpose: Purpose::Direct, tag }
                })
                .collect(),
            Call::Reduce { root, number, operation, element, value, to_all, leaves_early } => {
                let fold = FoldId { root, number };
                self.note_fold(request, fold, leaves_early);
                let head = self.part_head(fold, operation, element, value.len());
                self.start_fold(request, tree, head, &value, to_all)?;
                if leaves_early {
                    let key = GraceKey::new(root, tree, operation, value.len() as u64);
                    self.begin_grace(request, fold, key);
                }
                return Ok(());
            }
        };
        self.check(&transfers)?;
        self.start_casts(request, tree, transfers);
        Ok(())
    }

    fn check(&self, transfers: &[Transfer]) -> Result<(), GroupError> {
        for transfer in transfers {
            let bytes = transfer.value.len() as u64;
            if bytes > VALUE_BYTES_MAX {
                return Err(GroupError::Value { bytes });
            }
            if transfer.targets.as_ref().last().is_some_and(|last| last >= self.config.space) {
                let (names, space) = (transfer.targets.clone(), self.config.space);
                return Err(GroupError::Outside { names, space });
            }
        }
        Ok(())
    }

    /// Starts transfers that are answered together.
    pub(super) fn start_casts(&mut self, request: Request, tree: TreeKind, all: Vec<Transfer>) {
        let mut casts = Vec::new();
        let mut targets = RankSet::new();
        let first = self.next_cast;
        for transfer in &all {
            let cast = CastId { root: self.me, number: self.next_cast };
            casts.push(cast);
            self.next_cast += 1;
            // What carries a result belongs to a reduction whose call was noted.
            if request < INTERNAL {
                self.note_cast(request, cast);
            }
            targets.union_with(transfer.targets.as_ref());
        }
        self.pending.insert(request, Pending::Casts { casts: casts.clone(), targets });
        let mut keys = Vec::new();
        for (cast, transfer) in casts.into_iter().zip(all) {
            keys.extend(self.start_cast(request, tree, (first, cast), transfer));
        }
        for key in keys {
            self.settle(key);
        }
    }

    fn start_cast(
        &mut self,
        request: Request,
        tree: TreeKind,
        (first, cast): (u64, CastId),
        transfer: Transfer,
    ) -> Vec<(CastId, u8)> {
        let Transfer { targets, value, purpose, tag } = transfer;
        let bytes = value.len() as u64;
        let laid_out = self.kept_choice(bytes, tree, self.me, targets.as_ref());
        let laid_out = laid_out.and_then(|choice| choice.stripes);
        let (has_stripes, stripes) = (laid_out.is_some(), laid_out.unwrap_or(1));
        let segment_bytes = self.cast_segment_bytes(bytes, tree, has_stripes);
        let floor = self.own_floor(first);
        let mut keys = Vec::new();
        let mut layouts = has_stripes.then(|| {
            let below = targets.difference(self.view.names_of(self.me).as_ref());
            self.terrain().lay_out(stripes, below.as_ref()).into_iter()
        });
        for stripe in 0..stripes {
            let key = (cast, stripe);
            let purpose = purpose.clone();
            let head =
                Head { cast, stripe, stripes, floor, tree, purpose, bytes, segment_bytes, tag };
            let mut lane = Lane::new(head, self.now);
            lane.request = Some(request);
            self.lanes.insert(key, lane);
            let laid = layouts.as_mut().and_then(Iterator::next);
            let branches = self.take_at_root(key, &targets, laid);
            let first =
                value.part(usize::from(stripe) * segment_bytes as usize, segment_bytes as usize);
            self.open_children(key, branches, Some((u32::from(stripe), first)));
            keys.push(key);
        }
        let count = bytes.div_ceil(u64::from(segment_bytes)).max(u64::from(stripes)) as u32;
        for index in 0..count {
            let key = (cast, (index % u32::from(stripes)) as u8);
            let start = index as usize * segment_bytes as usize;
            self.take_segment(key, index, value.part(start, segment_bytes as usize));
        }
        keys
    }

    /// By which of its trees `adaptive` brings a value of a length down from a member.
    pub(crate) fn choice(
        &self,
        bytes: u64,
        tree: TreeKind,
        root: MemberId,
        targets: RankSetRef<'_>,
    ) -> Option<Choice> {
        if tree != TreeKind::Adaptive {
            return None;
        }
        let stripes = self.config.stripes.clamp(1, STRIPES_MAX);
        let costs = self.known_costs();
        let Some(near) = costs.near else {
            let least = self.config.stripe_bytes / DOWN_SHARE;
            let why = ChoiceReason::Length { bytes: least };
            return Some(Choice { stripes: (bytes >= least).then_some(stripes), why });
        };
        if bytes < ESTIMATED_BYTES_MIN {
            let why = ChoiceReason::Short { bytes: ESTIMATED_BYTES_MIN };
            return Some(Choice { stripes: None, why });
        }
        let segment_bytes = |has_stripes| self.cast_segment_bytes(bytes, tree, has_stripes);
        let parcel = Parcel {
            bytes,
            stripes,
            whole_segment_bytes: u64::from(segment_bytes(false)),
            stripe_segment_bytes: u64::from(segment_bytes(true)),
        };
        let from = Terrain { me: root, ..self.terrain_for(bytes) };
        let estimate = from.estimate(near, costs.far_ps, parcel, targets);
        let is_long = estimate.bandwidth_trees < estimate.latency_tree;
        let why = ChoiceReason::Estimate(estimate);
        Some(Choice { stripes: is_long.then_some(stripes), why })
    }

    /// The same, kept from the last call that was like this one.
    fn kept_choice(
        &mut self,
        bytes: u64,
        tree: TreeKind,
        root: MemberId,
        targets: RankSetRef<'_>,
    ) -> Option<Choice> {
        if tree != TreeKind::Adaptive || bytes < ESTIMATED_BYTES_MIN {
            return self.choice(bytes, tree, root, targets);
        }
        let (view, table) = (self.view.version(), self.clusters.table());
        let (table, author) = (table.version, table.author);
        let basis = ChoiceBasis { view, table, author, root, bytes, targets: targets.to_set() };
        let choice = match self.last_choice.of(&basis) {
            Some(choice) => choice,
            None => self.choice(bytes, tree, root, targets)?,
        };
        self.last_choice.keep(basis, choice);
        Some(choice)
    }

    /// How many stripes a reduction has on its way up to a member: as many as a part of its length
    /// has on its way down. A value that is not cut has none: it would go up one of them whole.
    pub(super) fn stripes_up(
        &mut self,
        bytes: u64,
        tree: TreeKind,
        root: MemberId,
        targets: RankSetRef<'_>,
    ) -> Option<u8> {
        if bytes < self.config.bulk_bytes {
            return None;
        }
        self.kept_choice(bytes / DOWN_SHARE, tree, root, targets).and_then(|choice| choice.stripes)
    }

    /// The root's branches: as laid out, with what the layout lacks point to point.
    fn take_at_root(
        &mut self,
        key: (CastId, u8),
        targets: &RankSet,
        laid: Option<Vec<Branch>>,
    ) -> Vec<Branch> {
        let Some(mut branches) = laid else {
            return self.take(key, targets.as_ref(), &Route::default());
        };
        let mut own = targets.clone();
        own.intersect_with(self.view.names_of(self.me).as_ref());
        let mut rest = targets.difference(own.as_ref());
        for branch in &branches {
            rest.subtract(branch.names.as_ref());
        }
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.taken.union_with(targets.as_ref());
        }
        let own = self.keep_back(key, own);
        self.deliver_own(key, own);
        self.reach_rest(key, rest, &mut branches);
        branches
    }

    /// The length of a segment of a transfer. With measured costs whatever has stripes is cut.
    fn cast_segment_bytes(&self, bytes: u64, tree: TreeKind, has_stripes: bool) -> u32 {
        let Some(near) = self.known_costs().near else { return self.segment_bytes(bytes, tree) };
        if bytes < self.config.bulk_bytes && !has_stripes {
            return bytes.max(1) as u32;
        }
        self.cut_bytes(bytes, tree, near.work.saturating_mul(1000) / near.byte_ps.max(1))
    }

    /// The same of a reduction, whose members must agree on it: by no figure that was measured.
    fn segment_bytes(&self, bytes: u64, tree: TreeKind) -> u32 {
        if bytes < self.config.bulk_bytes {
            return bytes.max(1) as u32;
        }
        self.cut_bytes(bytes, tree, self.config.overhead / 8)
    }

    /// Long enough that the work of sending is small, short enough that the pipeline fills soon;
    /// `unit` bytes are on the card for as long as one message is work.
    fn cut_bytes(&self, bytes: u64, tree: TreeKind, unit: u64) -> u32 {
        if let Some(fixed) = self.config.segment_bytes {
            let least = (bytes.div_ceil(SEGMENTS_MAX) as u32).next_multiple_of(8);
            return (fixed.max(8) / 8 * 8).max(least);
        }
        let members = self.view.len().max(2) as u64;
        let depth = if tree == TreeKind::List { members } else { u64::from(members.ilog2()) + 4 };
        // The square root of length x unit / depth.
        let best = (bytes.saturating_mul(unit.max(1)) / depth).isqrt() / 8 * 8;
        best.clamp(u64::from(SEGMENT_BYTES_MIN), u64::from(SEGMENT_BYTES_MAX)) as u32
    }

    /// All own transfers below this number are over; `next` is the first that begins now.
    pub(crate) fn own_floor(&self, next: u64) -> u64 {
        let first = CastId { root: self.me, number: 0 };
        let mut own = self.lanes.range((first, 0)..);
        own.next().filter(|entry| entry.0.0.root == self.me).map_or(next, |e| e.0.0.number)
    }

    /// One of a call's transfers is over; perhaps all are.
    pub(super) fn cast_over(&mut self, request: Request) {
        let Some(Pending::Casts { casts, .. }) = self.pending.get(&request) else { return };
        let is_over = casts.iter().all(|cast| {
            let lanes = self.lanes.range((*cast, 0)..=(*cast, u8::MAX));
            let mut count = 0;
            let mut all = true;
            for (_, lane) in lanes {
                count += 1;
                all &= count <= usize::from(lane.head.stripes)
                    && lane.is_over()
                    && lane.taken.as_ref().is_within(lane.settled().as_ref());
            }
            all && count > 0
        });
        if is_over {
            self.answer_casts(request, Reason::Dead);
        }
    }

    /// Answers a call with what its transfers have reached.
    fn answer_casts(&mut self, request: Request, otherwise: Reason) {
        let Some(Pending::Casts { casts, targets }) = self.pending.get(&request) else { return };
        let (casts, targets) = (casts.clone(), targets.clone());
        let mut lacking = RankSet::new();
        let mut said: Vec<(RankSet, Reason)> = Vec::new();
        for cast in casts {
            let keys: Vec<(CastId, u8)> =
                self.lanes.range((cast, 0)..=(cast, u8::MAX)).map(|entry| *entry.0).collect();
            for key in keys {
                let Some(lane) = self.lanes.remove(&key) else { continue };
                let without = lane.taken.difference(lane.done.as_ref());
                for (mut names, reason) in lane.failed {
                    names.intersect_with(without.as_ref());
                    said.push((names, reason));
                }
                lacking.union_with(without.as_ref());
            }
        }
        let contributors = targets.difference(lacking.as_ref());
        // Two stripes may have been given up for two reasons, since they went by members whose
        // views differed: what was said first counts.
        let mut missing = by_first_cause(&mut lacking, said);
        add_reason(&mut missing, lacking, otherwise);
        self.answer(request, None, contributors, missing);
    }

    pub(crate) fn deadline(&mut self, request: Request) {
        match self.pending.get(&request) {
            Some(Pending::Casts { .. }) => self.answer_casts(request, Reason::Deadline),
            Some(Pending::Fold(id)) => {
                let id = *id;
                self.give_up_fold(id);
            }
            None => self.drop_later_call(request),
        }
    }

    /// Gives the application its answer.
    pub(super) fn answer(
        &mut self,
        request: Request,
        value: Option<Payload>,
        contributors: RankSet,
        missing: Vec<(RankSet, Reason)>,
    ) {
        if self.pending.remove(&request).is_some() && request < INTERNAL {
            self.tell(Event::Answered(request, Answer { value, contributors, missing }));
        }
    }

    fn part_head(
        &self,
        fold: FoldId,
        operation: super::Operation,
        element: super::Element,
        bytes: usize,
    ) -> PartHead {
        let bytes = bytes as u64;
        let segment = u64::from(self.segment_bytes(bytes, TreeKind::Adaptive));
        let segments = if operation.keeps_apart() { 1 } else { bytes.div_ceil(segment).max(1) };
        PartHead {
            fold,
            segment: 0,
            segments: segments as u32,
            operation,
            element,
            bytes: if operation == super::Operation::Gather { 0 } else { bytes },
            direct: false,
        }
    }

    fn start_fold(
        &mut self,
        request: Request,
        tree: TreeKind,
        head: PartHead,
        value: &Payload,
        to_all: bool,
    ) -> Result<(), GroupError> {
        let id = head.fold;
        let bytes = value.len() as u64;
        let own = self.view.names_of(self.me).difference(self.handed.contributed(id).as_ref());
        if !value.len().is_multiple_of(head.element.bytes()) || bytes > VALUE_BYTES_MAX {
            return Err(GroupError::Value { bytes });
        }
        let (root, space) = (RankSet::range(id.root, id.root), self.config.space);
        if id.root >= space {
            return Err(GroupError::Outside { names: root, space });
        }
        if own.is_empty() {
            return Err(GroupError::Name { names: root });
        }
        let is_used = self.folds.get(&id).is_some_and(|fold| fold.mine.is_some());
        if is_used || self.folds.len() >= TRANSFERS_MAX {
            return Err(GroupError::Number { number: id.number });
        }
        let definition = self.definitions.of(head.operation, head.element).cloned();
        if let (Some(operation), None) = (head.operation.defined(), &definition) {
            self.break_fold(None, id, &own, Reason::Undefined);
            return Err(GroupError::Undefined { operation });
        }
        self.pending.insert(request, Pending::Fold(id));
        if self.finished.contains(id) {
            let cause = self.finished.broken_by(id).cloned();
            let missing = Vec::from([cause.unwrap_or((own, Reason::Deadline))]);
            self.answer(request, None, RankSet::new(), missing);
            return Ok(());
        }
        // A root that is not there may still join: until then the call has no places.
        let root = self.root_of(id);
        let mut places = root.map_or_else(Vec::new, |root| self.places(root, tree, bytes));
        let patience = self.fold_time(bytes);
        let required = self.view.everyone().clone();
        let (me, now) = (self.me, self.now);
        if !self.folds.contains_key(&id) {
            self.wake_at(now + self.config.linger, Timer::FoldLinger(id));
        }
        let past = self.send_unlike_past(id, &head);
        for place in &mut places {
            place.expected.subtract(past.as_ref());
            place.expected.subtract(self.handed.contributed(id).as_ref());
        }
        let fold = self.folds.entry(id).or_insert_with(|| Fold::new(head.clone(), now));
        fold.head = head.clone();
        fold.definition = definition;
        (fold.places, fold.patience, fold.progress) = (places, patience, now);
        (fold.my_names, fold.request, fold.to_all) = (own, Some(request), to_all);
        (fold.tree, fold.is_root, fold.required) = (tree, root == Some(me), required);
        self.wake_at(now + patience, Timer::FoldPatience(id));
        self.give_own_value(id, &head, value);
        self.take_early(id);
        Ok(())
    }

    fn give_own_value(&mut self, id: FoldId, head: &PartHead, value: &Payload) {
        let is_pulled = self.early_pulls.remove(&id);
        let Some(fold) = self.folds.get_mut(&id) else { return };
        let own = fold.my_names.clone();
        let mine: Vec<Payload> = if head.operation.keeps_apart() {
            let name = own.as_ref().first().unwrap_or(0);
            Vec::from([Payload::from(entry(name, value.as_slice()))])
        } else {
            let length = value.len().div_ceil(head.segments as usize).next_multiple_of(8).max(8);
            (0..head.segments as usize).map(|index| value.part(index * length, length)).collect()
        };
        let is_pulled = is_pulled.or(fold.pulled_by.take());
        fold.mine = Some(mine.clone());
        let head = fold.head.clone();
        for (segment, value) in (0..).zip(mine) {
            let Some(fold) = self.folds.get_mut(&id) else { return };
            let wave = fold.waves.entry(segment).or_default();
            if wave.is_sent || (is_pulled.is_some() && !fold.is_root) {
                // The wave has gone, or the root waits for this value by itself.
                if !wave.is_sent && !wave.names.is_empty() {
                    self.send_wave(id, segment);
                } else {
                    wave.is_sent = true;
                }
                let names = (&own).into();
                let head = PartHead { segment, direct: true, ..head.clone() };
                // The one that has asked may be a root of which no news has come yet.
                if let Some(root) = self.root_of(id).or(is_pulled) {
                    self.send_late(root, crate::Message::Part { head, names, data: value });
                }
            } else {
                fold.merge(segment, &own, value.as_slice());
                self.check_wave(id, segment);
            }
        }
        self.check_sent(id);
        self.check_root(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::MILLISECOND;
    use crate::measure::{Costs, NearCosts};
    use crate::member::Config;
    use crate::message::{Record, Table};

    const MEMBERS: u32 = 60;
    const ROOT: MemberId = MemberId(1);

    /// The second of many members of one cluster whose cards carry 1 MB/s.
    fn member_with_slow_cards() -> Member {
        let (id, space) = (MemberId(2), MEMBERS);
        let mut member =
            Member::new(Config { id, space, segment_bytes: Some(512), ..Config::default() });
        for name in 0..MEMBERS {
            let names = RankSet::range(name, name);
            member.view.merge(Record::new(MemberId(u64::from(name) + 1), &names));
        }
        take_table(&mut member, 1, NearCosts { work: 40_000, byte_ps: 1_000_000 });
        member
    }

    fn take_table(member: &mut Member, version: u64, near: NearCosts) {
        let labels = Vec::from([(ROOT, (&RankSet::range(0, MEMBERS - 1)).into())]);
        let distances = Vec::from([(0, 0, MILLISECOND)]);
        let costs = Costs { near: Some(near), far_ps: None };
        member.adopt_table(Table { version, author: ROOT, labels, distances, costs });
    }

    #[test]
    fn a_reduction_that_is_not_cut_has_no_stripes() {
        let mut member = member_with_slow_cards();
        let targets = RankSet::range(1, MEMBERS - 1);
        let least = member.config.bulk_bytes;
        let mut stripes =
            |bytes| member.stripes_up(bytes, TreeKind::Adaptive, ROOT, targets.as_ref());
        assert_eq!(stripes(least), Some(2));
        assert_eq!(stripes(least - 8), None);
        // A broadcast of a part of its length has them: it is cut for them.
        let part = (least - 8) / DOWN_SHARE;
        let choice = member.choice(part, TreeKind::Adaptive, ROOT, targets.as_ref());
        assert_eq!(choice.and_then(|choice| choice.stripes), Some(2));
    }

    #[test]
    fn a_choice_is_kept_until_what_it_was_made_from_changes() {
        let mut member = member_with_slow_cards();
        let targets = RankSet::range(1, MEMBERS - 1);
        let bytes = 8 << 10;
        let stripes = |member: &mut Member, targets: RankSetRef<'_>| {
            let choice = member.kept_choice(bytes, TreeKind::Adaptive, ROOT, targets);
            assert_eq!(choice, member.choice(bytes, TreeKind::Adaptive, ROOT, targets));
            choice.and_then(|choice| choice.stripes)
        };
        assert_eq!(stripes(&mut member, targets.as_ref()), Some(2));
        assert_eq!(stripes(&mut member, targets.as_ref()), Some(2));
        // To a single member one message is less work than sixteen.
        assert_eq!(stripes(&mut member, RankSet::range(1, 1).as_ref()), None);
        assert_eq!(stripes(&mut member, targets.as_ref()), Some(2));
        take_table(&mut member, 2, NearCosts { work: 40_000, byte_ps: 10 });
        assert_eq!(stripes(&mut member, targets.as_ref()), None);
    }
}
