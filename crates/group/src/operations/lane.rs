//! One stripe of a transfer at one member: what it has, for whom it answers, and to whom.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::{RankSet, RankSetRef};

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
    /// The first segment came to it with the opening.
    pub(crate) has_first: bool,
    /// When the transfer was opened to it.
    pub(crate) opened: Time,
    /// It was opened anew because it did not answer.
    pub(crate) is_repair: bool,
}

/// One stripe of a transfer.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) head: Head,
    /// The virtual nodes that this member answers for, or has answered for.
    pub(crate) taken: RankSet,
    /// Those of them that it carries itself.
    pub(crate) own: RankSet,
    /// The indexes of the segments that have come.
    pub(crate) have: RankSet,
    pub(crate) pieces: BTreeMap<u32, Payload>,
    pub(crate) children: Vec<Child>,
    pub(crate) done: RankSet,
    pub(crate) failed: Vec<(RankSet, Reason)>,
    pub(crate) owed: Vec<(MemberId, RankSet)>,
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
            have: RankSet::new(),
            pieces: BTreeMap::new(),
            children: Vec::new(),
            done: RankSet::new(),
            failed: Vec::new(),
            owed: Vec::new(),
            request: None,
            patience: 0,
            progress: now,
            asked: 0,
            began: None,
            is_mended: false,
        }
    }

    /// How many segments this stripe has: every so-manieth of the value.
    pub(crate) fn segments(&self) -> u64 {
        segments_of(&self.head)
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.have.len() >= self.segments()
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
        if names.is_empty() {
            return;
        }
        match self.failed.iter_mut().find(|entry| entry.1 == reason) {
            Some(entry) => entry.0.union_with(names.as_ref()),
            None => self.failed.push((names, reason)),
        }
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
        self.children.retain(|child| !child.names.is_empty());
    }
}

/// How many segments a stripe has.
pub(crate) fn segments_of(head: &Head) -> u64 {
    let (stripe, stripes) = (u64::from(head.stripe), u64::from(head.stripes.max(1)));
    (head.segments() + stripes - 1).saturating_sub(stripe) / stripes
}
