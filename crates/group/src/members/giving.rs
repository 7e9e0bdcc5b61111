//! The member that hands virtual nodes over: it holds new transfers to them back, finishes those
//! that it has begun, and gives the virtual nodes away with a list of what it has delivered. From
//! that message on it never carries them again, whether it arrives or not: so no virtual node has
//! two members that deliver. What was held back goes to the receiver as soon as that says that it
//! carries them. Only a receiver that leaves itself, and says that it has not taken them and will
//! not, gives them back.
//!
//! A member that leaves gives all that it carries; where an heir does not take them the next
//! members on the ring are asked. Of a member that stays (`staying`) one that joins takes some.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet};

use super::handed::shared;
use super::staying::{Afterwards, Departure};
use crate::error::Reason;
use crate::identity::{CastId, FoldId, MILLISECOND, MemberId, SECOND, Time};
use crate::limits::{MEMBERS_MAX, TRANSFERS_MAX};
use crate::member::{Event, Member, Timer};
use crate::message::{Gift, Life, Message, PartHead, Ranges, Record};
use crate::mutation::Mutation;
use crate::operations::{EarlyPart, Fold, Lane};

/// How often what may have been lost with a link is said again, and asked for again.
pub(super) const AGAIN: Time = 100 * MILLISECOND;
/// How long the heir may take to answer, besides what distance takes.
const ANSWER_MAX: Time = SECOND;
/// How long transfers and reductions that have begun may take to end. Then the virtual nodes are
/// given away all the same.
const DRAIN_MAX: Time = 2 * SECOND;
/// How long a receiver that lives may take to say that it carries what it was given. Then they are
/// no member's, or a third one's that claims them too.
const TAKE_MAX: Time = 10 * SECOND;
/// How many members a member that leaves offers its virtual nodes to, one after the other.
const HEIRS_MAX: usize = 3;

/// Virtual nodes that this member hands over.
#[derive(Clone, Debug)]
pub(crate) struct Giving {
    pub(crate) to: MemberId,
    pub(crate) names: RankSet,
    stage: Stage,
    until: Time,
    /// A link to the receiver has come up since it was told why reductions have no result.
    has_new_link: bool,
    pub(super) afterwards: Afterwards,
}

#[derive(Clone, Debug)]
enum Stage {
    /// The heir has not said that it takes them.
    Offered {
        /// Until when an heir that cannot take them yet is asked again.
        latest: Time,
    },
    /// Nothing new is delivered to them; what was begun ends.
    Draining {
        /// When it is looked again whether they can be given: what was to be told was too long.
        again: Time,
    },
    /// They are the receiver's, which may not know it yet.
    Given(Gift),
}

/// What has become of virtual nodes that were given away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// They are the receiver's.
    Taken,
    /// They have died with it.
    Lost,
}

impl Giving {
    /// A member that joins takes a part of what this one carries.
    pub(super) fn of_a_part(to: MemberId, names: RankSet, now: Time) -> Self {
        let (stage, until) = (Stage::Draining { again: now }, now + DRAIN_MAX);
        let afterwards = Afterwards::staying();
        Self { to, names, stage, until, has_new_link: false, afterwards }
    }

    /// Whether they are not this member's any more.
    pub(crate) fn is_given(&self) -> bool {
        matches!(self.stage, Stage::Given(_))
    }

    fn is_offered(&self) -> bool {
        matches!(self.stage, Stage::Offered { .. })
    }

    /// Whether it is these that are handed over to a member.
    fn is(&self, to: MemberId, names: &Ranges) -> bool {
        self.to == to && self.names.as_ref() == names.as_set()
    }

    /// Whether a link has come up since this was asked last.
    fn takes_new_link(&mut self) -> bool {
        core::mem::take(&mut self.has_new_link)
    }

    /// The virtual nodes to which no new transfer is delivered.
    pub(crate) fn withheld(&self) -> Option<&RankSet> {
        (!self.is_offered()).then_some(&self.names)
    }
}

impl Member {
    /// Leaves, and hands the own virtual nodes to the member that carries another one, or else to
    /// the next members on the ring.
    pub(crate) fn leave_to(&mut self, heir: Option<Rank>) {
        let me = self.me;
        // What the heir was named by may have come here itself.
        let heir = heir.and_then(|name| self.view.owner(name)).filter(|heir| *heir != me);
        match &mut self.giving {
            Some(giving) => giving.leave_afterwards(Departure::To(heir)),
            None => self.leave_to_member(heir),
        }
    }

    pub(super) fn leave_to_member(&mut self, heir: Option<MemberId>) {
        let heir = heir.filter(|heir| self.view.is_alive(*heir));
        let to = heir.or_else(|| self.view.after(self.me).next());
        match to.filter(|_| !self.leaves_for_good()) {
            Some(to) => self.offer(to, Vec::new()),
            None => self.leave(),
        }
    }

    /// Offers the own virtual nodes to a member after others, and leaves in the end.
    fn offer(&mut self, to: MemberId, mut asked: Vec<MemberId>) {
        let names = self.names();
        if names.is_empty() {
            return self.leave();
        }
        asked.push(to);
        let until = self.now + ANSWER_MAX + self.ping_patience();
        // By then a dead receiver of what the heir gives away has been noticed.
        let latest = u64::from(self.config.ping_tries).saturating_mul(self.ping_patience());
        let latest = until.max((self.now + ANSWER_MAX).saturating_add(latest));
        self.send(to, Message::Offer { names: (&names).into() });
        let afterwards = Afterwards::Leave { asked };
        let (stage, has_new_link) = (Stage::Offered { latest }, false);
        self.giving = Some(Giving { to, names, stage, until, has_new_link, afterwards });
        self.wake_at(self.now + AGAIN, Timer::Giving);
    }

    /// Another member takes what it was offered, or what it wants when it joins.
    pub(crate) fn asked_to_give(&mut self, from: MemberId, names: &Ranges) {
        let draining = (Stage::Draining { again: self.now }, self.now + DRAIN_MAX);
        let may_give = self.giving.is_none() && self.may_give_a_part(from, names);
        match &mut self.giving {
            Some(giving) if giving.is(from, names) => {
                if giving.is_offered() {
                    (giving.stage, giving.until) = draining;
                }
            }
            None if may_give => self.give_a_part(from, names),
            _ => self.send(from, Message::Decline { names: names.clone() }),
        }
    }

    /// The heir does not take them.
    pub(crate) fn declined(&mut self, from: MemberId, names: &Ranges) {
        let is_offered = |giving: &Giving| giving.is(from, names) && giving.is_offered();
        if self.giving.as_ref().is_some_and(is_offered) {
            self.call_off();
        }
    }

    /// The heir gives virtual nodes away itself, and takes none before that has ended.
    pub(crate) fn put_off_offer(&mut self, from: MemberId, names: &Ranges) {
        if let Some(giving) = self.giving.as_mut().filter(|giving| giving.is(from, names))
            && let Stage::Offered { latest } = giving.stage
        {
            giving.until = latest;
        }
    }

    /// The receiver leaves itself: it has not taken what it was given, and will not.
    pub(crate) fn returned(&mut self, from: MemberId, names: &Ranges) {
        let is_given = |giving: &Giving| giving.is(from, names) && giving.is_given();
        if self.giving.as_ref().is_some_and(is_given) {
            self.call_off();
        }
    }

    /// What was sent by an earlier link may be lost.
    pub(crate) fn note_link_of_receiver(&mut self, member: MemberId) {
        if let Some(giving) = self.giving.as_mut().filter(|giving| giving.to == member) {
            giving.has_new_link = true;
        }
    }

    /// The periodic look at a hand-over.
    pub(crate) fn giving_step(&mut self) {
        let Some(giving) = &self.giving else { return };
        let (to, is_late) = (giving.to, self.now >= giving.until);
        let (own, names) = (giving.names.clone(), Ranges::from(&giving.names));
        match &giving.stage {
            Stage::Offered { .. } if is_late => return self.call_off(),
            Stage::Offered { .. } => self.send(to, Message::Offer { names }),
            // The group's reductions come before a member that joins, which asks again.
            Stage::Draining { .. }
                if is_late && !giving.leaves() && self.is_any_root_open(&own) =>
            {
                return self.call_off();
            }
            Stage::Draining { .. } if is_late => {
                self.end_roots(&own);
                self.give();
                if self.giving.as_ref().is_some_and(|giving| !giving.is_given()) {
                    return self.call_off();
                }
            }
            Stage::Draining { .. } => {}
            Stage::Given(_) if is_late => return self.have_given(Fate::Lost),
            Stage::Given(gift) => {
                let gift = gift.clone();
                if self.giving.as_mut().is_some_and(Giving::takes_new_link) {
                    self.hand_over_causes(to, own.as_ref());
                }
                self.send(to, Message::Give { gift });
                self.suspect(to);
            }
        }
        self.wake_at(self.now + AGAIN, Timer::Giving);
    }

    /// Gives the virtual nodes away once all that was begun has ended.
    pub(crate) fn give_when_drained(&mut self) {
        let Some(giving) = &self.giving else { return };
        let is_time = matches!(giving.stage, Stage::Draining { again } if again <= self.now);
        if is_time && self.is_drained(&giving.names) {
            self.give();
        }
    }

    /// Reductions at roots that go to another member end here, with what has come.
    fn end_roots(&mut self, names: &RankSet) {
        let open: Vec<FoldId> = self.open_roots(names).collect();
        open.into_iter().for_each(|id| self.give_up_fold(id));
    }

    /// Reductions under way of which this member is the root by one of some virtual nodes.
    fn open_roots(&self, names: &RankSet) -> impl Iterator<Item = FoldId> {
        let is_open = move |(id, fold): &(&FoldId, &Fold)| {
            names.contains(id.root) && fold.is_root && fold.mine.is_some() && !fold.is_finished
        };
        self.folds.iter().filter(is_open).map(|(id, _)| *id)
    }

    fn is_any_root_open(&self, names: &RankSet) -> bool {
        self.open_roots(names).next().is_some()
    }

    fn is_drained(&self, names: &RankSet) -> bool {
        self.begun_casts(names).iter().all(|(cast, begun)| self.has_all(*cast, begun))
            && !self.is_any_root_open(names)
    }

    /// To which of some virtual nodes this member delivers each transfer.
    fn begun_casts(&self, names: &RankSet) -> BTreeMap<CastId, RankSet> {
        let mut casts: BTreeMap<CastId, RankSet> = BTreeMap::new();
        for (key, lane) in &self.lanes {
            let mut own = lane.own.clone();
            own.intersect_with(names.as_ref());
            if !own.is_empty() {
                casts.entry(key.0).or_default().union_with(own.as_ref());
            }
        }
        casts
    }

    /// Whether all stripes of a transfer have been delivered to these virtual nodes.
    fn has_all(&self, cast: CastId, names: &RankSet) -> bool {
        let stripes = self.lanes.range((cast, 0)..).next().map_or(0, |lane| lane.1.head.stripes);
        (0..stripes).all(|stripe| {
            self.lanes.get(&(cast, stripe)).is_some_and(|lane| {
                lane.is_complete() && names.as_ref().is_within(lane.own.as_ref())
            })
        })
    }

    /// The point of no return, unless there is more to tell than a message may have: what is
    /// remembered becomes less.
    fn give(&mut self) {
        let Some(giving) = &self.giving else { return };
        let (to, names) = (giving.to, giving.names.clone());
        let gift = self.gift(&names);
        if let Some(giving) = &mut self.giving {
            giving.has_new_link = false;
            (giving.stage, giving.until) = match &gift {
                Some(gift) => (Stage::Given(gift.clone()), self.now + TAKE_MAX),
                None => (Stage::Draining { again: self.now + AGAIN }, giving.until),
            };
        }
        let Some(gift) = gift else { return };
        self.hand_over_causes(to, names.as_ref());
        self.send(to, Message::Give { gift });
    }

    /// Virtual nodes with all that was done for them. None where a list of that is too long: cut,
    /// it would have the receiver do some of it again.
    fn gift(&self, names: &RankSet) -> Option<Gift> {
        let (epoch, floor) = (self.own_record().epoch, self.own_floor(self.next_cast));
        let mut gift = Gift { names: names.into(), epoch, ..Gift::default() };
        self.handed.add_to(&mut gift, names.as_ref());
        if !self.breaks(Mutation::GiveWithoutList) {
            for (cast, names) in self.begun_casts(names) {
                let is_whole = self.has_all(cast, &names);
                let list = if is_whole { &mut gift.delivered } else { &mut gift.begun };
                list.push((cast, Ranges::from(&names)));
            }
        }
        let given = self.folds.iter().filter(|(_, fold)| fold.mine.is_some());
        gift.folds
            .extend(given.filter_map(|(id, fold)| shared(*id, &fold.my_names, names.as_ref())));
        let is_root =
            |(id, fold): &(&FoldId, &Fold)| names.contains(id.root) && fold.mine.is_some();
        gift.ended = self.finished.of_roots(names.as_ref()).collect();
        gift.ended.extend(self.folds.iter().filter(is_root).map(|(id, _)| *id));
        gift.floors = self.floors.iter().map(|(root, floor)| (*root, *floor)).collect();
        gift.floors.push((self.me, floor));
        let lengths = [gift.delivered.len(), gift.begun.len(), gift.folds.len(), gift.ended.len()];
        let fits = lengths.iter().all(|length| *length <= TRANSFERS_MAX);
        (fits && gift.floors.len() <= MEMBERS_MAX).then_some(gift)
    }

    /// The view has changed: perhaps the receiver carries the virtual nodes now, or is gone.
    pub(crate) fn check_giving(&mut self) {
        let Some(giving) = &self.giving else { return };
        let is_there = self.view.is_alive(giving.to);
        let Stage::Given(gift) = &giving.stage else {
            return if is_there { self.keep_what_is_left() } else { self.call_off() };
        };
        // To take them would have raised its epoch.
        let has_left = |heir: &Record| heir.life == Life::Left && heir.epoch <= gift.epoch;
        if self.view.record(giving.to).is_some_and(has_left) {
            return self.call_off();
        }
        let own = self.view.names_of(self.me);
        let is_over = !own.as_ref().intersects(giving.names.as_ref());
        if is_over || !is_there {
            self.have_given(if is_over { Fate::Taken } else { Fate::Lost });
        }
    }

    /// Another member has claimed some of the virtual nodes before they were given away.
    fn keep_what_is_left(&mut self) {
        let own = self.names();
        let is_less = |giving: &Giving| !giving.names.as_ref().is_within(own.as_ref());
        if self.giving.as_ref().is_some_and(is_less) {
            self.call_off();
        }
    }

    /// The virtual nodes stay here, or go to another heir; what was held back is delivered.
    fn call_off(&mut self) {
        let Some(giving) = self.giving.take() else { return };
        for (key, held) in self.take_held() {
            self.deliver_own(key, held);
            self.settle(key);
        }
        let asked = match giving.afterwards {
            Afterwards::Leave { asked } => asked,
            Afterwards::Stay(staying) => return self.go_on(staying),
        };
        let next = self.view.after(self.me).find(|member| !asked.contains(member));
        match next.filter(|_| asked.len() < HEIRS_MAX) {
            Some(next) => self.offer(next, asked),
            None => self.leave(),
        }
    }

    /// The virtual nodes are no longer this member's.
    fn have_given(&mut self, fate: Fate) {
        let Some(giving) = self.giving.take() else { return };
        let stays = matches!(giving.afterwards, Afterwards::Stay(_));
        if stays {
            self.handed.note_away(&giving.names);
        }
        let mut record = self.own_record();
        record.names = (&record.names.as_set().to_set().difference(giving.names.as_ref())).into();
        record.incarnation = record.incarnation.saturating_add(1);
        // One message says that this member has them no more, and which one has them.
        if let Some(other) = self.view.record(giving.to).filter(|_| fate == Fate::Taken).cloned() {
            self.tell_all(other);
        }
        if !(stays && self.breaks(Mutation::KeepGiven)) {
            self.learn(record);
        }
        for (key, held) in self.take_held() {
            if fate == Fate::Taken {
                let mut branches = Vec::new();
                self.reach_rest(key, held, &mut branches);
                self.open_children(key, branches, None);
            } else if let Some(lane) = self.lanes.get_mut(&key) {
                lane.fail(held, Reason::Dead);
            }
            self.settle(key);
        }
        self.move_roots(&giving.names);
        self.tell(Event::NamesMoved { names: giving.names, from: self.me, to: giving.to });
        match giving.afterwards {
            Afterwards::Leave { .. } => self.leave(),
            Afterwards::Stay(staying) => self.go_on(staying),
        }
    }

    fn take_held(&mut self) -> Vec<((CastId, u8), RankSet)> {
        let held = |(key, lane): (&(CastId, u8), &mut Lane)| {
            (!lane.held.is_empty()).then(|| (*key, core::mem::take(&mut lane.held)))
        };
        self.lanes.iter_mut().filter_map(held).collect()
    }

    /// Parts that have come for a root which is another member's now go there.
    fn move_roots(&mut self, names: &RankSet) {
        let is_moved =
            |(id, fold): &(&FoldId, &Fold)| names.contains(id.root) && fold.mine.is_none();
        let moved: BTreeSet<FoldId> =
            self.folds.iter().filter(is_moved).map(|(id, _)| *id).collect();
        for id in moved {
            let Some(fold) = self.folds.remove(&id) else { continue };
            let Some(root) = self.root_of(id) else { continue };
            for EarlyPart { head, names, data } in fold.early {
                let (head, names) = (PartHead { direct: true, ..head }, Ranges::from(&names));
                self.send_late(root, Message::Part { head, names, data });
            }
        }
    }
}
