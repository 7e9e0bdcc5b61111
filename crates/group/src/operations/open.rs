//! A transfer comes, is delivered, and goes on to the children.

use alloc::vec::Vec;

use sapwood_packet::{RankSet, RankSetRef};

use super::by_first_cause;
use super::lane::{Child, FirstSegment, Lane};
use crate::error::Reason;
use crate::identity::{CastId, MILLISECOND, MemberId, Time};
use crate::limits::TRANSFERS_MAX;
use crate::member::{Due, Member, Phase, Timer};
use crate::message::{Head, Life, Message, Ranges, Route};
use crate::mutation::Mutation;
use crate::payload::Payload;
use crate::trees::Branch;

/// A transfer's children may take this long for each byte of it: 10 MB/s.
const PATIENCE_PER_BYTE: Time = 100;
/// How many of the longest round trips a subtree may take.
const PATIENCE_TRIPS: Time = 4;

/// What opens a transfer at a child: the fields of [`Message::Open`].
pub(crate) struct Opening {
    pub(crate) head: Head,
    pub(crate) targets: Ranges,
    pub(crate) route: Route,
    pub(crate) ask: bool,
    pub(crate) receipt: bool,
    pub(crate) data: Payload,
}

impl Member {
    pub(crate) fn opened(&mut self, from: MemberId, opening: Opening) {
        let Opening { head, targets, route, ask, receipt, data } = opening;
        if self.phase == Phase::Outside {
            return;
        }
        let (cast, stripe) = (head.cast, head.stripe);
        if receipt {
            self.send(from, Message::Receipt { cast, stripe });
        }
        self.raise_floor(cast.root, head.floor);
        let key = (cast, stripe);
        let targets = targets.as_set();
        // An own transfer comes back where names have come here that it was sent to.
        let is_own_past = cast.root == self.me && !self.lanes.contains_key(&key);
        let is_past =
            is_own_past || self.floors.get(&cast.root).is_some_and(|floor| cast.number < *floor);
        if is_past || (!self.lanes.contains_key(&key) && self.lanes.len() >= TRANSFERS_MAX) {
            let names = Ranges::from(&targets.to_set());
            // What finds no room is not said to have come: the root would take it for the whole.
            let (names, failed) = if is_past {
                (names, Vec::new())
            } else {
                (Ranges::default(), Vec::from([(names, Reason::Deadline)]))
            };
            self.send(from, Message::Done { cast, stripe, names, failed });
            return;
        }
        if !self.lanes.contains_key(&key) {
            self.lanes.insert(key, Lane::new(head, self.now));
            self.wake_at(self.now + self.config.linger, Timer::Linger(cast, stripe));
        }
        let first = u32::from(stripe);
        // What is no segment of the value is not passed on either.
        let is_first = !ask
            && self.lanes.get(&key).is_some_and(|lane| {
                let bytes = lane.head.bytes_of(first);
                lane.have.is_empty() && bytes.unwrap_or(0) == data.len() as u64
            });
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.is_mended |= ask;
            match lane.owed.iter_mut().find(|entry| entry.0 == from) {
                Some(entry) => entry.1.union_with(targets),
                None => lane.owed.push((from, targets.to_set())),
            }
        }
        let branches = self.take(key, targets, &route);
        if is_first {
            // The members below come before the application here: they have farther to go.
            self.open_children(key, branches, Some((first, data.clone())));
        } else {
            self.open_children(key, branches, None);
        }
        if ask {
            let segments = self.lanes.get(&key).map_or_else(RankSet::new, |l| l.have.clone());
            let segments = Ranges::from(&segments);
            self.send(from, Message::Have { cast, stripe, segments });
        } else {
            self.take_segment(key, first, data);
        }
        self.settle(key);
    }

    /// Answers from now on for these virtual nodes; gives the branches that are to be opened.
    pub(super) fn take(
        &mut self,
        key: (CastId, u8),
        targets: RankSetRef<'_>,
        route: &Route,
    ) -> Vec<Branch> {
        let own_names = self.view.names_of(self.me);
        let is_leaving = self.phase != Phase::Joined;
        let own_past = self.view.record(self.me).map(|record| record.names.clone());
        let repeats = self.breaks(Mutation::RepeatDelivery);
        let back = self.come_back(key, targets);
        let circular = self.sent_in_a_circle(key, targets, &back);
        let Some(lane) = self.lanes.get_mut(&key) else { return Vec::new() };
        let mut new = targets.to_set();
        if !repeats {
            new.subtract(lane.taken.as_ref());
        }
        new.union_with(back.as_ref());
        lane.taken.union_with(targets);
        let mut own = new.clone();
        own.intersect_with(own_names.as_ref());
        new.subtract(own.as_ref());
        if is_leaving && let Some(past) = own_past {
            let mut gone = new.clone();
            gone.intersect_with(past.as_set());
            new.subtract(gone.as_ref());
            lane.fail(gone, Reason::Left);
        }
        let root = lane.head.cast.root;
        let (tree, bytes) = (lane.head.tree, lane.head.bytes);
        let own = self.keep_back(key, own);
        self.deliver_own(key, own);
        let (mut branches, rest) = if route.0.is_empty() {
            self.terrain_for(bytes).split(tree, root, new.as_ref())
        } else {
            self.terrain().follow(route, new.as_ref())
        };
        self.reach_rest(key, rest, &mut branches);
        self.reach_rest(key, circular, &mut branches);
        branches
    }

    /// What the children do not reach: point to point, or with the reason why not.
    pub(crate) fn reach_rest(
        &mut self,
        key: (CastId, u8),
        rest: RankSet,
        branches: &mut Vec<Branch>,
    ) {
        if rest.is_empty() || self.breaks(Mutation::DropRemainder) {
            return;
        }
        let (owners, unassigned) = self.view.owners(rest.as_ref());
        for (child, names) in owners {
            if child != self.me {
                branches.push(Branch { child, names, route: Route::default() });
            } else {
                self.take_late(key, names);
            }
        }
        self.fail_unassigned(key, &unassigned);
    }

    fn fail_unassigned(&mut self, key: (CastId, u8), names: &RankSet) {
        if names.is_empty() {
            return;
        }
        let causes = [
            (self.view.names_in(Life::Left, names.as_ref()), Reason::Left),
            (self.view.names_in(Life::Dead, names.as_ref()), Reason::Dead),
            (names.clone(), Reason::Unassigned),
        ];
        let mut rest = names.clone();
        for (of_cause, reason) in by_first_cause(&mut rest, causes) {
            if let Some(lane) = self.lanes.get_mut(&key) {
                lane.fail(of_cause, reason);
            }
        }
    }

    /// Opens the transfer to new children; with the first segment, or asking what they have.
    pub(crate) fn open_children(
        &mut self,
        key: (CastId, u8),
        branches: Vec<Branch>,
        first: Option<(u32, Payload)>,
    ) {
        let Some(lane) = self.lanes.get(&key) else { return };
        let head = lane.head.clone();
        let is_new = lane.children.is_empty();
        let here = self.clusters.label(self.me);
        let now = self.now;
        for branch in branches {
            let is_far = here.is_some() && self.clusters.label(branch.child) != here;
            let open = Message::Open {
                head: head.clone(),
                targets: Ranges::from(&branch.names),
                route: branch.route.clone(),
                ask: first.is_none(),
                receipt: is_far,
                data: first.as_ref().map_or_else(Payload::default, |entry| entry.1.clone()),
            };
            self.send(branch.child, open);
            if let Some(lane) = self.lanes.get_mut(&key) {
                if let Some((index, _)) = first {
                    lane.start(branch.child, index);
                }
                lane.children.push(Child {
                    member: branch.child,
                    names: branch.names,
                    route: branch.route,
                    is_asked: first.is_none(),
                    opened: now,
                    is_repair: false,
                });
            }
        }
        if is_new && let Some(lane) = self.lanes.get_mut(&key) {
            let trips = PATIENCE_TRIPS * self.clusters.longest().max(MILLISECOND);
            lane.patience =
                self.config.patience + trips + PATIENCE_PER_BYTE.saturating_mul(head.bytes);
            lane.progress = now;
            let time = now + lane.patience;
            if !lane.children.is_empty() {
                self.wake_at(time, Timer::Patience(key.0, key.1));
            }
        }
    }

    pub(crate) fn segment(&mut self, cast: CastId, stripe: u8, index: u32, data: Payload) {
        self.take_segment((cast, stripe), index, data);
        self.settle((cast, stripe));
    }

    /// A segment goes to the children and to the application, once.
    pub(super) fn take_segment(&mut self, key: (CastId, u8), index: u32, data: Payload) {
        let (repeats, now) = (self.breaks(Mutation::RepeatDelivery), self.now);
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        if !lane.holds(index) || (lane.have.contains(index) && !repeats) {
            return;
        }
        // What has another length is no segment of this value.
        if lane.head.bytes_of(index) != Some(data.len() as u64) {
            return;
        }
        lane.add(index, data.clone());
        lane.began.get_or_insert(FirstSegment { time: now, bytes: data.len() as u64 });
        lane.progress = now;
        let children: Vec<MemberId> = lane.children.iter().map(|child| child.member).collect();
        let own = lane.own.clone();
        for member in children {
            self.feed(key, member);
        }
        self.note_flow(key);
        self.deliver(key, own, index, data);
    }

    /// A child says what it has: it gets the rest.
    pub(crate) fn have(&mut self, from: MemberId, cast: CastId, stripe: u8, segments: &Ranges) {
        let Some(lane) = self.lanes.get_mut(&(cast, stripe)) else { return };
        let mut is_child = false;
        for child in lane.children.iter_mut().filter(|child| child.member == from) {
            is_child |= child.is_asked;
            child.is_asked = false;
        }
        if !is_child {
            return;
        }
        lane.progress = self.now;
        lane.restart(from, segments.as_set().to_set());
        self.feed((cast, stripe), from);
    }

    /// Sends a child what it lacks, as far as its link has credit; the rest when that has drained.
    pub(crate) fn feed(&mut self, key: (CastId, u8), member: MemberId) {
        while self.has_credit(member) {
            if !self.send_next(key, member) {
                return;
            }
        }
        self.wait_for_credit(key, member);
    }

    /// Sends a child one segment, in turn with what else waits for its link.
    pub(crate) fn feed_once(&mut self, key: (CastId, u8), member: MemberId) {
        if self.send_next(key, member) {
            self.wait_for_credit(key, member);
        }
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.progress = self.now;
        }
    }

    fn send_next(&mut self, key: (CastId, u8), member: MemberId) -> bool {
        let next = self.lanes.get_mut(&key).and_then(|lane| lane.take_next(member));
        let Some((index, data)) = next else { return false };
        self.send(member, Message::Segment { cast: key.0, stripe: key.1, index, data });
        true
    }

    fn wait_for_credit(&mut self, key: (CastId, u8), member: MemberId) {
        if self.lanes.get_mut(&key).is_some_and(|lane| lane.next_for(member).is_some()) {
            self.credit.wait(member, Due::Lane(key.0, key.1));
        }
    }

    pub(crate) fn receipt(&mut self, from: MemberId, cast: CastId, stripe: u8) {
        let Some(lane) = self.lanes.get(&(cast, stripe)) else { return };
        let child = lane.children.iter().find(|child| child.member == from);
        let opened = child.filter(|child| !child.is_repair).map(|child| child.opened);
        // A long segment measures the bandwidth, not the distance.
        let is_short = lane.head.bytes <= 4096;
        if let Some(opened) = opened.filter(|_| is_short) {
            self.observed(from, self.now - opened);
        }
    }
}
