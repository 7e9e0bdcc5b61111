//! The member that takes virtual nodes over, and what those that had them before have done for
//! them: that is not done a second time.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::{RankSet, RankSetRef};

use super::giving::Giving;
use crate::error::Reason;
use crate::identity::{CastId, FoldId, MemberId, Time};
use crate::limits::EPOCH_MAX;
use crate::member::{Event, Member, Phase, Timer};
use crate::message::{Gift, Message, Ranges, Record};
use crate::mutation::Mutation;

/// What was done for virtual nodes before they came to this member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handed {
    /// All that have ever come.
    names: RankSet,
    /// Those that this member has given away and not got back, while it stays.
    away: RankSet,
    casts: BTreeMap<CastId, HandedCast>,
    folds: BTreeMap<(FoldId, MemberId), HandedFold>,
}

/// The virtual nodes to which others have delivered a transfer.
#[derive(Clone, Debug, Default)]
struct HandedCast {
    delivered: RankSet,
    /// Others have a part of it, and get the rest or do not.
    begun: RankSet,
    since: Time,
}

/// The virtual nodes for which a member has given its value before it handed them over.
#[derive(Clone, Debug, Default)]
struct HandedFold {
    names: RankSet,
    since: Time,
}

impl Handed {
    /// How many operations are remembered.
    pub(crate) fn len(&self) -> usize {
        self.casts.len() + self.folds.len()
    }

    fn note(&mut self, giver: MemberId, gift: &Gift, now: Time) {
        self.names.union_with(gift.names.as_set());
        self.away.subtract(gift.names.as_set());
        for (cast, names) in &gift.delivered {
            self.cast(*cast, now).delivered.union_with(names.as_set());
        }
        for (cast, names) in &gift.begun {
            self.cast(*cast, now).begun.union_with(names.as_set());
        }
        for (id, names) in &gift.folds {
            // Twice for one reduction where the giver has itself been given some of them.
            let entry = self.folds.entry((*id, giver)).or_default();
            entry.names.union_with(names.as_set());
            entry.since = now;
        }
    }

    /// This member, which stays, has given virtual nodes away.
    pub(super) fn note_away(&mut self, names: &RankSet) {
        self.away.union_with(names.as_ref());
    }

    fn cast(&mut self, cast: CastId, now: Time) -> &mut HandedCast {
        let entry = self.casts.entry(cast).or_default();
        entry.since = now;
        entry
    }

    /// Adds what others have done for some virtual nodes to a list of what was done for them.
    pub(super) fn add_to(&self, gift: &mut Gift, names: RankSetRef<'_>) {
        for (cast, handed) in &self.casts {
            gift.delivered.extend(shared(*cast, &handed.delivered, names));
            gift.begun.extend(shared(*cast, &handed.begun, names));
        }
        for ((id, _), handed) in &self.folds {
            gift.folds.extend(shared(*id, &handed.names, names));
        }
    }

    /// A root's earlier transfers are over.
    pub(crate) fn raise_floor(&mut self, root: MemberId, floor: u64) {
        self.casts.retain(|cast, _| cast.root != root || cast.number >= floor);
    }

    /// Forgets what is older than a time.
    pub(crate) fn forget(&mut self, before: Time) {
        self.casts.retain(|_, handed| handed.since >= before);
        self.folds.retain(|_, handed| handed.since >= before);
    }

    /// Those of this member's virtual nodes for which another has given its value.
    pub(crate) fn contributed(&self, id: FoldId) -> RankSet {
        let mut all = RankSet::new();
        self.givers(id).for_each(|(_, names)| all.union_with(names.as_ref()));
        all
    }

    /// The members that have given it, and for which of these virtual nodes.
    fn givers(&self, id: FoldId) -> impl Iterator<Item = (MemberId, &RankSet)> {
        let all = (id, MemberId(0))..=(id, MemberId(u64::MAX));
        self.folds.range(all).map(|((_, giver), handed)| (*giver, &handed.names))
    }
}

/// What an operation has to do with some virtual nodes, if it has.
pub(super) fn shared<T>(id: T, of: &RankSet, names: RankSetRef<'_>) -> Option<(T, Ranges)> {
    let mut some = of.clone();
    some.intersect_with(names);
    (!some.is_empty()).then(|| (id, Ranges::from(&some)))
}

impl Member {
    /// A member that leaves offers its virtual nodes. One that waits until others carry its own
    /// takes none before, and says so: the sender, which keeps them, asks again.
    pub(crate) fn offered(&mut self, from: MemberId, names: &Ranges) {
        let names = names.clone();
        if self.is_giving_a_part() {
            return self.send(from, Message::Later { names });
        }
        let epoch = self.view.record(from).map_or(0, |record| record.epoch);
        let takes = !self.leaves_for_good() && epoch.max(self.own_record().epoch) < EPOCH_MAX;
        self.send(from, if takes { Message::Take { names } } else { Message::Decline { names } });
    }

    /// Virtual nodes are this member's from now on, but for those of which a newer claim or that of
    /// a third member is known.
    pub(crate) fn given(&mut self, from: MemberId, gift: &Gift) {
        let is_outside = gift.names.as_set().last().is_none_or(|last| last >= self.config.space);
        // A higher epoch would take back what this member is giving away: the giver sends it again.
        if self.phase == Phase::Outside || is_outside || self.is_giving_a_part() {
            return;
        }
        let (names, others) = self.left_of_gift(from, gift);
        if !others.is_empty() {
            // The giver has not heard yet: of an earlier gift, or of a third member.
            self.tell_records(from, others);
        }
        if self.leaves_for_good() {
            if !names.is_empty() && !self.handed.names.as_ref().intersects(names.as_ref()) {
                self.send(from, Message::Return { names: gift.names.clone() });
            }
            return;
        }
        let mut record = self.own_record();
        let epoch = record.epoch.max(gift.epoch).saturating_add(1);
        if names.is_empty() || epoch > EPOCH_MAX {
            return;
        }
        let names = names.as_ref();
        let mut all = record.names.as_set().to_set();
        all.union_with(names);
        record.names = (&all).into();
        if !self.breaks(Mutation::KeepEpoch) {
            record.epoch = epoch;
        }
        record.incarnation = record.incarnation.saturating_add(1);
        self.handed.note(from, gift, self.now);
        self.learn(record.clone());
        self.tell_records(from, Vec::from([record]));
        for &(root, floor) in &gift.floors {
            self.raise_floor(root, floor);
        }
        let keys: Vec<(CastId, u8)> = self.lanes.keys().copied().collect();
        for key in keys {
            let taken = self.lanes.get(&key).map(|lane| lane.taken.clone()).unwrap_or_default();
            let mut here = names.to_set();
            here.intersect_with(taken.as_ref());
            self.keep_back(key, here);
            self.settle(key);
        }
        self.finished(&gift.ended, &Ranges::default());
        self.take_roots(names);
        self.tell(Event::NamesMoved { names: names.to_set(), from, to: self.me });
        self.note_taken();
    }

    /// Those virtual nodes of a gift that are the giver's by this member's view, and the records of
    /// the members that carry the others.
    fn left_of_gift(&self, from: MemberId, gift: &Gift) -> (RankSet, Vec<Record>) {
        let names = gift.names.as_set();
        let had = |record: &Record| names.is_within(record.names.as_set());
        let is_theirs = self.view.record(from).is_some_and(had);
        let mut left = if is_theirs { names.to_set() } else { RankSet::new() };
        let mut others = Vec::new();
        for (owner, carried) in self.view.owners(names).0 {
            if owner != from {
                left.subtract(carried.as_ref());
                others.extend(self.view.record(owner).cloned());
            }
        }
        (left, others)
    }

    /// Whether this member leaves, so that it begins nothing and takes nothing over any more.
    pub(crate) fn leaves_for_good(&self) -> bool {
        self.phase != Phase::Joined || self.giving.as_ref().is_some_and(Giving::leaves)
    }

    pub(super) fn tell_records(&mut self, to: MemberId, records: Vec<Record>) {
        let targets = (&RankSet::new()).into();
        self.send(to, Message::Update { targets, records });
    }

    /// Those of some own virtual nodes to which this member delivers a transfer: not those that it
    /// is handing over, and not those that others have served before they came here.
    pub(crate) fn keep_back(&mut self, key: (CastId, u8), own: RankSet) -> RankSet {
        let mut own = own;
        let giving = self.giving.as_ref().filter(|_| !self.breaks(Mutation::DeliverWhileGiving));
        let withheld = giving.and_then(|giving| giving.withheld());
        if own.is_empty() || (withheld.is_none() && self.handed.len() == 0) {
            return own;
        }
        let mut held = own.clone();
        held.intersect_with(withheld.unwrap_or(&RankSet::new()).as_ref());
        // Of a transfer that was begun all stripes are delivered here.
        for (_, lane) in self.lanes.range((key.0, 0)..=(key.0, u8::MAX)) {
            held.subtract(lane.own.as_ref());
        }
        let handed = self.handed.casts.get(&key.0).cloned().unwrap_or_default();
        own.subtract(held.as_ref());
        if let Some(lane) = self.lanes.get_mut(&key) {
            let [mut done, mut lost] = [handed.delivered, handed.begun];
            done.intersect_with(own.as_ref());
            lost.intersect_with(own.as_ref());
            own.subtract(done.as_ref());
            own.subtract(lost.as_ref());
            lane.done.union_with(done.as_ref());
            lane.fail(lost, Reason::Left);
            lane.held.union_with(held.as_ref());
        }
        own
    }

    /// Virtual nodes that this member has already sent a transfer for when they came to it: it
    /// comes back from the member that had them.
    pub(crate) fn come_back(&self, key: (CastId, u8), targets: RankSetRef<'_>) -> RankSet {
        let mut back = self.handed.names.clone();
        back.intersect_with(targets);
        if back.is_empty() {
            return back;
        }
        back.intersect_with(self.names().as_ref());
        if let Some(lane) = self.lanes.get(&key) {
            back.intersect_with(lane.taken.as_ref());
            back.subtract(lane.own.as_ref());
            back.subtract(lane.held.as_ref());
            back.subtract(lane.settled().as_ref());
        }
        back
    }

    /// A member below, to which this one has sent virtual nodes, may take it for the parent of some
    /// of them since others have come here, or were here before: each would wait for the other.
    /// These are what is neither settled nor the own ones, to be reached point to point.
    pub(crate) fn sent_in_a_circle(
        &self,
        key: (CastId, u8),
        targets: RankSetRef<'_>,
        back: &RankSet,
    ) -> RankSet {
        if !targets.intersects(self.handed.names.as_ref())
            && !targets.intersects(self.handed.away.as_ref())
        {
            return RankSet::new();
        }
        let own = self.names();
        let mut moved = self.handed.names.clone();
        moved.intersect_with(own.as_ref());
        moved.union_with(self.handed.away.as_ref());
        let Some(lane) = self.lanes.get(&key).filter(|_| targets.intersects(moved.as_ref())) else {
            return RankSet::new();
        };
        let mut circular = targets.to_set();
        circular.intersect_with(lane.taken.as_ref());
        for known in [&own, back, &lane.own, &lane.held, &lane.settled()] {
            circular.subtract(known.as_ref());
        }
        circular
    }

    /// Of virtual nodes that were sent to others and are this member's now.
    pub(crate) fn take_late(&mut self, key: (CastId, u8), mut names: RankSet) {
        let Some(lane) = self.lanes.get(&key) else { return };
        names.subtract(lane.own.as_ref());
        names.subtract(lane.held.as_ref());
        let own = self.keep_back(key, names);
        self.deliver_own(key, own);
    }

    /// This member is the root of reductions now to which it was a contributor.
    fn take_roots(&mut self, names: RankSetRef<'_>) {
        let is_here = |id: &FoldId| names.contains(id.root) && !self.finished.contains(*id);
        let ids: Vec<FoldId> = self.folds.keys().copied().filter(is_here).collect();
        for id in ids {
            let Some(fold) = self.folds.get_mut(&id).filter(|fold| !fold.is_root) else { continue };
            fold.is_root = true;
            fold.progress = self.now;
            let time = self.now + fold.patience;
            if fold.mine.is_some() {
                for segment in 0..fold.head.segments {
                    fold.rebuild(segment, RankSet::new().as_ref());
                }
            } else {
                fold.keep_waves_until_the_call();
            }
            self.wake_at(time, Timer::FoldPatience(id));
            self.check_root(id);
        }
    }

    /// The root asks for values of own virtual nodes that this member's value does not stand for:
    /// another member has given them, or none will. Before its call it is those that another has
    /// given: a member that has joined meanwhile may never call.
    pub(crate) fn pulled_strange(&mut self, from: MemberId, id: FoldId, names: &Ranges) {
        let mut strange = names.as_set().to_set();
        strange.intersect_with(self.names().as_ref());
        match self.folds.get(&id).filter(|fold| fold.mine.is_some()) {
            Some(fold) => strange.subtract(fold.my_names.as_ref()),
            None => strange.intersect_with(self.handed.contributed(id).as_ref()),
        }
        if strange.is_empty() {
            return;
        }
        let mut asked = Vec::new();
        for (giver, given) in self.handed.givers(id) {
            let mut some = strange.clone();
            some.intersect_with(given.as_ref());
            if self.view.is_alive(giver) && !some.is_empty() {
                asked.push((giver, some));
            }
        }
        for (giver, some) in asked {
            // Its answer comes here, and goes on to the root.
            strange.subtract(some.as_ref());
            let (names, segments) = (Ranges::from(&some), Ranges::default());
            self.send(giver, Message::Pull { fold: id, names, segments });
        }
        if strange.is_empty() {
            return;
        }
        let names = Ranges::from(&strange);
        if from == self.me {
            self.absent(id, &names);
        } else {
            self.send(from, Message::Absent { fold: id, names });
        }
    }

    /// Virtual nodes have no value in a reduction.
    pub(crate) fn absent(&mut self, id: FoldId, names: &Ranges) {
        let Some(fold) = self.folds.get_mut(&id).filter(|fold| fold.is_root) else { return };
        fold.absent.union_with(names.as_set());
        self.check_root(id);
    }
}
