//! One stripe of a transfer at one member: what it has, for which members it answers, and to which.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use sapwood_packet::{RankSet, RankSetRef};

use super::add_reason;
use crate::error::Reason;
use crate::identity::{MemberId, Request, Time};
use crate::message::{Head, Missing, Ranges, Route};
use crate::payload::Payload;

/// A child in a transfer.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    pub(crate) member: MemberId,
    /// The virtual nodes through it that have not been acknowledged.
    pub(crate) names: RankSet,
    pub(crate) route: Route,
    /// It was asked what it has, and gets nothing before it has said so.
    pub(crate) is_asked: bool,
    /// When the transfer was opened to it.
    pub(crate) opened: Time,
    /// It was opened anew because it did not answer.
    pub(crate) is_repair: bool,
}

/// How far a child has been sent the segments of a stripe.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cursor {
    /// The place of the next segment in [`Lane::order`].
    next: usize,
    /// Those that it has already.
    skips: RankSet,
}

/// One stripe of a transfer.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) head: Head,
    /// The virtual nodes that this member answers for, or has answered for.
    pub(crate) taken: RankSet,
    /// Those of them that it carries itself.
    pub(crate) own: RankSet,
    /// Virtual nodes that are being handed over: which member delivers to them is not known yet.
    pub(crate) held: RankSet,
    /// The indexes of the segments that have come.
    pub(crate) have: RankSet,
    pub(crate) pieces: BTreeMap<u32, Payload>,
    /// The same in the order in which they came, which is the order for the children.
    order: Vec<u32>,
    pub(crate) children: Vec<Child>,
    /// One for each member among the children that is sent segments, which those are not that have
    /// still to say what they have.
    cursors: BTreeMap<MemberId, Cursor>,
    pub(crate) done: RankSet,
    pub(crate) failed: Vec<(RankSet, Reason)>,
    pub(crate) owed: Vec<(MemberId, RankSet)>,
    /// The same of members that count as dead: one that lives after all still waits for it.
    owed_to_dead: Vec<(MemberId, RankSet)>,
    /// At the root, the call that it belongs to.
    pub(crate) request: Option<Request>,
    pub(crate) patience: Time,
    pub(crate) progress: Time,
    /// When it was last impatient.
    pub(crate) asked: Time,
    /// When the first segment came, and its length in bytes.
    pub(crate) began: Option<FirstSegment>,
    /// It was taken over by another sender, so that its pace says nothing of the links.
    pub(crate) is_mended: bool,
    /// It will be looked whether it has stayed the only stripe here.
    pub(super) is_watched: bool,
}

/// The first segment of a stripe that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstSegment {
    pub(crate) time: Time,
    pub(crate) bytes: u64,
}

impl Lane {
    pub(crate) fn new(head: Head, now: Time) -> Self {
        Self {
            head,
            taken: RankSet::new(),
            own: RankSet::new(),
            held: RankSet::new(),
            have: RankSet::new(),
            pieces: BTreeMap::new(),
            order: Vec::new(),
            children: Vec::new(),
            cursors: BTreeMap::new(),
            done: RankSet::new(),
            failed: Vec::new(),
            owed: Vec::new(),
            owed_to_dead: Vec::new(),
            request: None,
            patience: 0,
            progress: now,
            asked: 0,
            began: None,
            is_mended: false,
            is_watched: false,
        }
    }

    /// How many segments this stripe has: every so-manieth of the value.
    pub(crate) fn segments(&self) -> u64 {
        segments_of(&self.head)
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.pieces.len() as u64 >= self.segments()
    }

    /// Whether a segment belongs to this stripe.
    pub(crate) fn holds(&self, index: u32) -> bool {
        let stripes = u32::from(self.head.stripes.max(1));
        index % stripes == u32::from(self.head.stripe)
            && u64::from(index / stripes) < self.segments()
    }

    /// Whether nothing is expected and nothing is owed.
    pub(crate) fn is_over(&self) -> bool {
        self.children.is_empty() && self.owed.is_empty()
    }

    pub(crate) fn fail(&mut self, names: RankSet, reason: Reason) {
        add_reason(&mut self.failed, names, reason);
    }

    /// A member is gone, which waits for nothing unless it lives after all.
    pub(super) fn put_off_owed(&mut self, member: MemberId, may_live: bool) {
        if may_live {
            self.owed_to_dead.extend(self.owed.extract_if(.., |entry| entry.0 == member));
        } else {
            self.owed.retain(|entry| entry.0 != member);
            self.owed_to_dead.retain(|entry| entry.0 != member);
        }
    }

    /// A member that counted as dead lives; gives whether it waits for anything.
    pub(super) fn owe_again(&mut self, member: MemberId) -> bool {
        let before = self.owed.len();
        self.owed.extend(self.owed_to_dead.extract_if(.., |entry| entry.0 == member));
        self.owed.len() > before
    }

    /// The virtual nodes whose fate is known.
    pub(crate) fn settled(&self) -> RankSet {
        let mut settled = self.done.clone();
        for (names, _) in &self.failed {
            settled.union_with(names.as_ref());
        }
        settled
    }

    /// The failures among these, without those that have it after all.
    pub(crate) fn failed_of(&self, names: RankSetRef<'_>) -> Missing {
        let mut failed = Vec::new();
        for (set, reason) in &self.failed {
            let mut set = set.difference(self.done.as_ref());
            set.intersect_with(names);
            if !set.is_empty() {
                failed.push((Ranges::from(&set), *reason));
            }
        }
        failed
    }

    /// Children wait no longer for what is settled.
    pub(crate) fn settle_children(&mut self) {
        let settled = self.settled();
        for child in &mut self.children {
            child.names.subtract(settled.as_ref());
        }
        let before = self.children.len();
        self.children.retain(|child| !child.names.is_empty());
        if self.children.len() < before {
            self.pause_others();
        }
    }

    /// Members that are no children any more, or are asked what they have, are sent no segments.
    pub(crate) fn pause_others(&mut self) {
        let fed = self.children.iter().filter(|child| !child.is_asked).map(|child| child.member);
        let fed: BTreeSet<MemberId> = fed.collect();
        self.cursors.retain(|member, _| fed.contains(member));
    }

    /// A segment has come, or the application's value has it.
    pub(crate) fn add(&mut self, index: u32, data: Payload) {
        self.have.insert(index);
        self.pieces.insert(index, data);
        self.order.push(index);
    }

    /// The first segment goes to a child with the opening.
    pub(crate) fn start(&mut self, member: MemberId, first: u32) {
        let skips = RankSet::range(first, first);
        self.cursors.entry(member).or_insert(Cursor { next: 0, skips });
    }

    /// A child has said what it has, and gets the rest.
    pub(crate) fn restart(&mut self, member: MemberId, has: RankSet) {
        self.cursors.insert(member, Cursor { next: 0, skips: has });
    }

    /// The segment that a member is to be sent next, if it is sent any and one is there.
    pub(crate) fn next_for(&mut self, member: MemberId) -> Option<u32> {
        let cursor = self.cursors.get_mut(&member)?;
        let rest = self.order.get(cursor.next..)?;
        let skipped = rest.iter().take_while(|index| cursor.skips.contains(**index)).count();
        cursor.next += skipped;
        self.order.get(cursor.next).copied()
    }

    /// Takes that segment.
    pub(crate) fn take_next(&mut self, member: MemberId) -> Option<(u32, Payload)> {
        let index = self.next_for(member)?;
        self.cursors.get_mut(&member)?.next += 1;
        Some((index, self.pieces.get(&index)?.clone()))
    }
}

/// How many segments a stripe has.
pub(crate) fn segments_of(head: &Head) -> u64 {
    let (stripe, stripes) = (u64::from(head.stripe), u64::from(head.stripes.max(1)));
    (head.segments() + stripes - 1).saturating_sub(stripe) / stripes
}
