//! What a transfer is to the member itself, and what it tells those above.

use alloc::vec::Vec;

use sapwood_packet::{RankSet, RankSetRef};

use super::lane::Lane;
use crate::error::Reason;
use crate::identity::{CastId, MemberId, Time};
use crate::member::{Due, Event, Member, Timer};
use crate::message::{Message, Missing, Purpose, Ranges};
use crate::mutation::Mutation;
use crate::payload::Payload;

impl Member {
    /// Virtual nodes of this member are among the targets: what has come so far is theirs.
    pub(crate) fn deliver_own(&mut self, key: (CastId, u8), own: RankSet) {
        if own.is_empty() {
            return;
        }
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        lane.own.union_with(own.as_ref());
        lane.progress = self.now;
        let pieces: Vec<(u32, Payload)> =
            lane.pieces.iter().map(|(index, data)| (*index, data.clone())).collect();
        for (index, data) in pieces {
            self.deliver(key, own.clone(), index, data);
        }
    }

    pub(super) fn deliver(&mut self, key: (CastId, u8), names: RankSet, index: u32, data: Payload) {
        let Some(lane) = self.lanes.get(&key) else { return };
        let head = &lane.head;
        let is_own = lane.request.is_some() && head.purpose != Purpose::Direct;
        if names.is_empty() || is_own {
            return;
        }
        let (cast, tag, bytes) = (key.0, head.tag, head.bytes);
        let offset = u64::from(index) * u64::from(head.segment_bytes);
        let (id, contributors, missing) = match &head.purpose {
            Purpose::Result { fold, contributors, missing } => (*fold, contributors, missing),
            Purpose::Broken { fold, names, reason } => {
                let (id, because_of, reason) = (*fold, names.as_set().to_set(), *reason);
                return self.break_fold(Some(cast.root), id, &because_of, reason);
            }
            Purpose::Broadcast | Purpose::Direct => {
                let purpose = head.purpose.clone();
                return self.tell(Event::Delivery {
                    cast,
                    purpose,
                    tag,
                    names,
                    offset,
                    data,
                    bytes,
                });
            }
        };
        let fold = self.folds.get_mut(&id).filter(|fold| fold.request.is_some() && fold.to_all);
        let value = fold.and_then(|fold| fold.add_result(offset, data, bytes));
        // There may be many contributors: they are copied once, not with each piece.
        let Some(value) = value else { return };
        let contributors = contributors.as_set().to_set();
        let missing = missing.iter().map(|(names, why)| (names.as_set().to_set(), *why)).collect();
        self.result_came(id, value, contributors, missing);
    }

    /// Virtual nodes have it, or cannot get it as far as the sender knows.
    pub(crate) fn done(
        &mut self,
        from: MemberId,
        cast: CastId,
        stripe: u8,
        names: &Ranges,
        failed: &Missing,
    ) {
        let key = (cast, stripe);
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        lane.done.union_with(names.as_set());
        lane.progress = self.now;
        let others = self.note_whole(key, names.as_set());
        for (names, reason) in failed {
            let carried = self.carried_all_the_same(key, from, names.as_set());
            let Some(lane) = self.lanes.get_mut(&key) else { return };
            lane.fail(names.as_set().to_set().difference(carried.as_ref()), *reason);
            self.reach_past(key, from, &carried);
        }
        self.settle(key);
        others.into_iter().for_each(|other| self.settle_stripe(other, &RankSet::new()));
    }

    /// At the root: what a virtual node has acknowledged of one stripe it has acknowledged of all,
    /// since it does so when all are there. Another stripe may have been given up before, as one
    /// that stays alone, or its acknowledgement may be lost. Gives these other stripes.
    fn note_whole(&mut self, key: (CastId, u8), names: RankSetRef<'_>) -> Vec<(CastId, u8)> {
        if names.is_empty() {
            return Vec::new();
        }
        let stripes = self.lanes.range_mut((key.0, 0)..=(key.0, u8::MAX));
        let others = stripes.filter(|(other, lane)| **other != key && lane.request.is_some());
        let note = |(other, lane): (&(CastId, u8), &mut Lane)| {
            lane.done.union_with(names);
            *other
        };
        others.map(note).collect()
    }

    /// Acknowledges what is settled.
    pub(crate) fn settle(&mut self, key: (CastId, u8)) {
        let Some(lane) = self.lanes.get(&key) else { return };
        if lane.head.stripes == 1 {
            let own = if lane.is_complete() { lane.own.clone() } else { RankSet::new() };
            return self.settle_stripe(key, &own);
        }
        // A stripe is acknowledged when all are complete: the root takes it for all of them.
        let is_whole = self.stripes_of(key.0).all(|(_, lane)| lane.is_complete());
        let own = if is_whole { self.own_in_all_stripes(key.0) } else { RankSet::new() };
        self.settle_stripe(key, &own);
        // Others may have waited for this one.
        let waits = |lane: &Lane| lane.is_complete() && !own.as_ref().is_within(lane.done.as_ref());
        let waiting = self.stripes_of(key.0).filter(|(_, lane)| waits(lane));
        let others: Vec<(CastId, u8)> = waiting.map(|entry| *entry.0).collect();
        others.into_iter().for_each(|other| self.settle_stripe(other, &own));
    }

    /// The stripes of a transfer that are here.
    fn stripes_of(&self, cast: CastId) -> impl Iterator<Item = (&(CastId, u8), &Lane)> {
        self.lanes.range((cast, 0)..=(cast, u8::MAX))
    }

    /// The own virtual nodes for which all stripes of a transfer have come here, or have begun to:
    /// while two members claim one, each of them may get a stripe, and none acknowledges its own.
    fn own_in_all_stripes(&self, cast: CastId) -> RankSet {
        let mut lanes = self.stripes_of(cast).map(|entry| entry.1);
        let Some(first) = lanes.next() else { return RankSet::new() };
        let (mut own, mut stripes) = (first.own.clone(), 1);
        for lane in lanes {
            own.intersect_with(lane.own.as_ref());
            stripes += 1;
        }
        if stripes == first.head.stripes { own } else { RankSet::new() }
    }

    /// The own virtual nodes of which nothing is known but this stripe, which is complete.
    fn lone_names(&self, key: (CastId, u8)) -> RankSet {
        let Some(lane) = self.lanes.get(&key) else { return RankSet::new() };
        if lane.head.stripes == 1 || lane.own.is_empty() || !lane.is_complete() {
            return RankSet::new();
        }
        let mut names = lane.own.difference(lane.settled().as_ref());
        if !names.is_empty() {
            names.subtract(self.own_in_all_stripes(key.0).as_ref());
        }
        names
    }

    /// It is looked once whether the others come, and not anew with each acknowledgement.
    fn watch_lone_stripe(&mut self, key: (CastId, u8)) {
        if self.lanes.get(&key).is_none_or(|lane| lane.is_watched)
            || self.lone_names(key).is_empty()
        {
            return;
        }
        let patience = self.lone_stripe_patience();
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        lane.is_watched = true;
        let look = lane.progress + patience;
        self.wake_at(look, Timer::LoneStripe(key.0, key.1));
    }

    /// The other stripes of a transfer have not come here for long, and may have gone elsewhere:
    /// the own virtual nodes have not got it. Where they come after all, the last of them is
    /// acknowledged, by which the root knows that all are here.
    pub(crate) fn lone_stripe(&mut self, cast: CastId, stripe: u8) {
        let key = (cast, stripe);
        let patience = self.lone_stripe_patience();
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        lane.is_watched = false;
        if lane.progress + patience > self.now {
            return self.watch_lone_stripe(key);
        }
        let lost = self.lone_names(key);
        if let Some(lane) = self.lanes.get_mut(&key).filter(|_| !lost.is_empty()) {
            lane.fail(lost, Reason::Deadline);
            self.settle(key);
        }
    }

    /// Several times as long as a death takes to be noticed: what the dead was to pass on comes.
    fn lone_stripe_patience(&self) -> Time {
        let silence = u64::from(self.config.ping_tries).saturating_mul(self.ping_patience());
        silence.saturating_mul(4).min(self.config.linger / 2)
    }

    fn settle_stripe(&mut self, key: (CastId, u8), own: &RankSet) {
        let is_early = self.breaks(Mutation::AcknowledgeEarly);
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        if lane.is_complete() {
            lane.done.union_with(own.as_ref());
            if is_early {
                let taken = lane.taken.clone();
                lane.done.union_with(taken.as_ref());
            }
        }
        lane.settle_children();
        let settled = lane.settled();
        let mut answers: Vec<(MemberId, Ranges, Missing)> = Vec::new();
        for (member, names) in &lane.owed {
            if names.as_ref().is_within(settled.as_ref()) {
                let failed = lane.failed_of(names.as_ref());
                let mut done = names.clone();
                done.intersect_with(lane.done.as_ref());
                answers.push((*member, Ranges::from(&done), failed));
            }
        }
        lane.owed.retain(|entry| !entry.1.as_ref().is_within(settled.as_ref()));
        let is_over = lane.is_over() && lane.taken.as_ref().is_within(settled.as_ref());
        let request = lane.request;
        let (cast, stripe) = key;
        for (member, names, failed) in answers {
            self.send(member, Message::Done { cast, stripe, names, failed });
        }
        if let Some(request) = request.filter(|_| is_over) {
            self.cast_over(request);
        }
        self.watch_lone_stripe(key);
    }

    /// A root's earlier transfers are over: nothing is kept of them.
    pub(crate) fn raise_floor(&mut self, root: MemberId, floor: u64) {
        // Nothing is kept for a root that no view has: no record would end it.
        if root == self.me || self.view.record(root).is_none() {
            return;
        }
        let known = self.floors.entry(root).or_insert(1);
        if floor <= *known {
            return;
        }
        *known = floor;
        self.handed.raise_floor(root, floor);
        if self.breaks(Mutation::KeepFinished) {
            return;
        }
        let first = CastId { root, number: 0 };
        let end = CastId { root, number: floor };
        let past: Vec<(CastId, u8)> =
            self.lanes.range((first, 0)..(end, 0)).map(|entry| *entry.0).collect();
        for key in past {
            self.lanes.remove(&key);
        }
    }

    /// Nothing has happened for long to any stripe: the record goes. The last stripe to come is
    /// acknowledged only where the others are still here, and a root needs all until its call ends.
    pub(crate) fn lane_linger(&mut self, cast: CastId, stripe: u8) {
        let Some(lane) = self.lanes.get(&(cast, stripe)) else { return };
        let is_called = lane.request.is_some();
        let stripes = self.stripes_of(cast).map(|entry| entry.1);
        let last = stripes.map(|lane| lane.progress).fold(lane.progress, Time::max);
        let end = last + self.config.linger;
        let is_sending = self.credit.is_waiting(Due::Lane(cast, stripe));
        if end > self.now || is_called || is_sending || self.breaks(Mutation::KeepFinished) {
            self.wake_at(end.max(self.now + self.config.linger / 4), Timer::Linger(cast, stripe));
        } else {
            self.lanes.remove(&(cast, stripe));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::Config;
    use crate::message::Head;
    use crate::trees::TreeKind;

    /// Each acknowledgement from below is progress, and one look at the end is enough.
    #[test]
    fn a_stripe_that_stays_alone_is_looked_at_once_at_a_time() {
        let mut member = Member::new(Config { id: MemberId(1), ..Config::default() });
        let (cast, stripe) = (CastId { root: MemberId(2), number: 1 }, 1);
        let head = Head {
            cast,
            stripe,
            stripes: 2,
            floor: 1,
            tree: TreeKind::Adaptive,
            purpose: Purpose::Broadcast,
            bytes: 16,
            segment_bytes: 8,
            tag: 0,
        };
        let mut lane = Lane::new(head, 0);
        lane.own = RankSet::range(1, 1);
        lane.add(1, Payload::from(Vec::from([0_u8; 8])));
        member.lanes.insert((cast, stripe), lane);
        let names = Ranges::from(&RankSet::range(5, 5));
        for now in 1..9 {
            member.now = now;
            member.done(MemberId(3), cast, stripe, &names, &Vec::new());
        }
        let is_look = |timer: &Timer| matches!(timer, Timer::LoneStripe(..));
        assert_eq!(member.agenda.iter().filter(|(_, timer)| is_look(timer)).count(), 1);
    }
}
