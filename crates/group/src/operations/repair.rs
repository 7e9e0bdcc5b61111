//! Transfers whose children die, are cut off or stay silent: what they were to reach is sent again,
//! to the roots of their subtrees where those are known, else point to point. Receivers say first
//! what they have.

use alloc::vec::Vec;

use sapwood_packet::{RankSet, RankSetRef};

use super::lane::{Child, Lane};
use crate::identity::{CastId, MemberId};
use crate::member::{Member, Timer};
use crate::message::{Life, Route};
use crate::mutation::Mutation;
use crate::trees::Branch;

impl Member {
    /// A member is gone: its subtrees in all transfers are taken over, its reductions go on.
    pub(crate) fn member_gone(&mut self, gone: MemberId) {
        self.prober_forgets(gone);
        let may_live = self.view.record(gone).is_some_and(|record| record.life == Life::Dead);
        let keys: Vec<(CastId, u8)> = self.lanes.keys().copied().collect();
        for key in keys {
            if let Some(lane) = self.lanes.get_mut(&key) {
                lane.put_off_owed(gone, may_live);
            }
            if !self.breaks(Mutation::ForgetAdoption) {
                self.adopt_from(key, gone);
            }
            self.settle(key);
        }
        let due = self.credit.forget_due(gone);
        self.redirect(gone, due);
        self.folds_after_death();
    }

    /// A member that counted as dead lives. It does not know what others took it for in the
    /// meantime, and waits for what they owed it.
    pub(crate) fn member_back(&mut self, member: MemberId) {
        let owes = |(key, lane): (&(CastId, u8), &mut Lane)| lane.owe_again(member).then_some(*key);
        let keys: Vec<(CastId, u8)> = self.lanes.iter_mut().filter_map(owes).collect();
        keys.into_iter().for_each(|key| self.settle(key));
    }

    fn adopt_from(&mut self, key: (CastId, u8), gone: MemberId) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        let (lost, kept): (Vec<Child>, Vec<Child>) =
            lane.children.drain(..).partition(|child| child.member == gone);
        lane.children = kept;
        lane.pause_others();
        for child in lost {
            let (branches, mut rest) = self.terrain().follow(&child.route, child.names.as_ref());
            // This member may carry now what was the child's, which would have sent it back.
            let is_other = |branch: &Branch| branch.child != self.me;
            let (mut branches, back): (Vec<Branch>, Vec<Branch>) =
                branches.into_iter().partition(is_other);
            back.iter().for_each(|branch| rest.union_with(branch.names.as_ref()));
            self.reach_rest(key, rest, &mut branches);
            self.open_children(key, branches, None);
        }
    }

    /// The link to a child was closed: what was on its way is lost, so it is asked what it has.
    pub(crate) fn reconnected(&mut self, member: MemberId) {
        let keys: Vec<(CastId, u8)> = self.lanes.keys().copied().collect();
        for key in keys {
            let Some(lane) = self.lanes.get_mut(&key) else { continue };
            let (again, kept): (Vec<Child>, Vec<Child>) =
                lane.children.drain(..).partition(|child| child.member == member);
            lane.children = kept;
            lane.pause_others();
            let branches = again
                .into_iter()
                .map(|c| Branch { child: member, names: c.names, route: c.route })
                .collect();
            self.open_children(key, branches, None);
        }
    }

    /// Children have not answered for long: they are asked for a sign of life, and meanwhile those
    /// below them get a short transfer point to point.
    pub(crate) fn lane_patience(&mut self, cast: CastId, stripe: u8) {
        let key = (cast, stripe);
        let now = self.now;
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        if lane.children.is_empty() {
            return;
        }
        let end = lane.progress.max(lane.asked) + lane.patience;
        if end > now {
            self.wake_at(end, Timer::Patience(cast, stripe));
            return;
        }
        lane.patience = lane.patience.saturating_mul(2).min(self.config.linger / 4);
        lane.asked = now;
        let next = now + lane.patience;
        let is_short = lane.head.bytes <= u64::from(lane.head.segment_bytes);
        let silent: Vec<MemberId> = lane.children.iter().map(|child| child.member).collect();
        let late: Vec<(MemberId, RankSet)> = lane
            .children
            .iter_mut()
            .filter(|child| is_short && !child.is_repair)
            .map(|child| {
                child.is_repair = true;
                (child.member, child.names.clone())
            })
            .collect();
        self.wake_at(next, Timer::Patience(cast, stripe));
        for member in silent {
            self.suspect(member);
        }
        for (member, mut names) in late {
            names.subtract(self.view.names_of(member).as_ref());
            let mut branches = Vec::new();
            self.reach_rest(key, names, &mut branches);
            self.open_repairs(key, branches);
        }
        self.settle(key);
    }

    /// Those of the virtual nodes which a child has given up that another member carries in the
    /// view of this root. News comes to all in its own time: the child may not have heard yet of
    /// a member that has joined under a name that was free, or of one that is not dead after all.
    pub(super) fn carried_all_the_same(
        &self,
        key: (CastId, u8),
        from: MemberId,
        names: RankSetRef<'_>,
    ) -> RankSet {
        // Below the root each step would wait for the silent members anew.
        let lane = self.lanes.get(&key).filter(|lane| lane.request.is_some());
        let Some(lane) = lane else { return RankSet::new() };
        let mut carried = names.to_set();
        carried.intersect_with(lane.taken.as_ref());
        carried.subtract(lane.settled().as_ref());
        carried.intersect_with(self.view.everyone().as_ref());
        // The member that carries a virtual node knows best.
        for member in [from, self.me] {
            carried.subtract(self.view.names_of(member).as_ref());
        }
        carried
    }

    /// Opens to the members that carry these virtual nodes, past the child that has given them up.
    /// They are asked for a sign of life as well, since the child may be right.
    pub(super) fn reach_past(&mut self, key: (CastId, u8), from: MemberId, names: &RankSet) {
        if names.is_empty() {
            return;
        }
        let (owners, _) = self.view.owners(names.as_ref());
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        let mut branches = Vec::new();
        for (child, mut names) in owners.iter().cloned() {
            let direct = lane.children.iter().filter(|known| known.member == child);
            direct.for_each(|known| names.subtract(known.names.as_ref()));
            if !names.is_empty() {
                branches.push(Branch { child, names, route: Route::default() });
            }
        }
        for child in lane.children.iter_mut().filter(|child| child.member == from) {
            child.names.subtract(names.as_ref());
        }
        for (owner, _) in owners {
            self.suspect(owner);
        }
        self.open_repairs(key, branches);
    }

    /// Opens to members that others were to reach.
    fn open_repairs(&mut self, key: (CastId, u8), branches: Vec<Branch>) {
        let before = self.lanes.get(&key).map_or(0, |lane| lane.children.len());
        self.open_children(key, branches, None);
        if let Some(lane) = self.lanes.get_mut(&key) {
            for child in &mut lane.children[before..] {
                child.is_repair = true;
            }
        }
    }
}
