//! The children of a process: which there are, over which links, and what each leads to.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet};
use sapwood_wire::Cause;

use crate::interface::{Instant, LinkId};
use crate::members::authority::{Authority, is_dynamic};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Awaited,
    Connected,
    /// Its subtree has started as far as it will.
    Reported,
    /// Never came, or is gone.
    Gone,
}

/// A process that this node has, had, or is to have as a child.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) link: Option<LinkId>,
    pub(crate) expected: RankSet,
    pub(crate) connected: RankSet,
    /// Of an orphan: the back-ends that it speaks for.
    pub(crate) covers: RankSet,
    pub(crate) plan: Vec<u8>,
    pub(crate) state: State,
    pub(crate) is_leaving: bool,
    /// Its process id on its host, by which two processes under one rank are distinguished.
    pub(crate) pid: u32,
    /// How it has ended, if that is known, rather than that its link has closed.
    pub(crate) ending: Option<Cause>,
    /// Whether it has been taken in and has not told yet how far its streams are.
    pub(crate) is_resuming: bool,
    /// Whether it had another parent, or another link to this one, before.
    pub(crate) is_orphan: bool,
    /// Whether it answers probes at any time.
    pub(crate) is_responsive: bool,
    /// Whether it has been sent the files that there are, and is sent those that come.
    pub(crate) has_files: bool,
    /// When the probe was sent that it has not answered.
    pub(crate) probed: Option<Instant>,
    /// Since when a process has been waiting to know whether it is there.
    pub(crate) suspected: Option<Instant>,
    /// What it may say.
    pub(crate) authority: Authority,
}

impl Child {
    pub(crate) fn awaited(expected: RankSet, plan: Vec<u8>) -> Self {
        let authority = Authority { domain: expected.clone(), ..Authority::default() };
        Self {
            link: None,
            authority,
            expected,
            connected: RankSet::new(),
            covers: RankSet::new(),
            plan,
            state: State::Awaited,
            is_leaving: false,
            pid: 0,
            ending: None,
            is_resuming: false,
            is_orphan: false,
            is_responsive: false,
            has_files: false,
            probed: None,
            suspected: None,
        }
    }

    /// Whether it has ever connected.
    pub(crate) fn has_come(&self) -> bool {
        self.link.is_some() || self.pid != 0
    }
}

/// All children of a process that there are, were or are to be, by rank.
#[derive(Debug, Default)]
pub(crate) struct Children {
    table: BTreeMap<Rank, Child>,
}

impl Children {
    /// Awaits those that a plan names, besides those that there are.
    pub(crate) fn append(&mut self, mut planned: BTreeMap<Rank, Child>) {
        self.table.append(&mut planned);
    }

    /// All of them, in the order of their ranks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Child> {
        self.table.values()
    }

    /// The back-ends that are connected through other children than this one.
    pub(crate) fn connected_but(&self, rank: Rank) -> RankSet {
        let mut all = RankSet::new();
        for (_, child) in self.table.iter().filter(|(other, _)| **other != rank) {
            all.union_with(child.connected.as_ref());
        }
        all
    }

    /// Whether a child is there and has said what it has.
    pub(crate) fn has_rejoined(&self, rank: Rank) -> bool {
        let is_there = |child: &Child| child.link.is_some() && child.state == State::Reported;
        self.table.get(&rank).is_some_and(is_there)
    }

    /// The same of some of these.
    pub(crate) fn has_rejoined_any(&self, ranks: &RankSet) -> bool {
        self.table.keys().any(|&rank| ranks.contains(rank) && self.has_rejoined(rank))
    }

    /// The child at the other end of a link.
    pub(crate) fn rank_of(&self, link: LinkId) -> Option<Rank> {
        let mut children = self.table.iter();
        children.find(|(_, child)| child.link == Some(link)).map(|(&rank, _)| rank)
    }

    /// Whether a child that was to be started has not come yet.
    pub(crate) fn is_awaited(&self, rank: Rank) -> bool {
        self.table.get(&rank).is_some_and(|child| child.state == State::Awaited)
    }

    /// Whether a child that was to be started has ever come; so has a process that is no child.
    pub(crate) fn has_come(&self, rank: Rank) -> bool {
        self.table.get(&rank).is_none_or(Child::has_come)
    }

    /// The link of a child that is there.
    pub(crate) fn link_of(&self, rank: Rank) -> Option<LinkId> {
        self.table.get(&rank)?.link
    }

    pub(crate) fn get(&self, rank: Rank) -> Option<&Child> {
        self.table.get(&rank)
    }

    pub(crate) fn get_mut(&mut self, rank: Rank) -> Option<&mut Child> {
        self.table.get_mut(&rank)
    }

    pub(crate) fn insert(&mut self, rank: Rank, child: Child) {
        self.table.insert(rank, child);
    }

    /// The back-ends of orphans that have not told yet how far their streams are.
    pub(crate) fn resuming(&self) -> RankSet {
        let mut all = RankSet::new();
        for child in self.table.values().filter(|child| child.is_resuming) {
            all.union_with(child.connected.as_ref());
        }
        all
    }

    /// The other children that say that a back-end is below them.
    pub(crate) fn holders_of(&self, back_end: Rank) -> Vec<Rank> {
        let holds = |(&rank, child): (&Rank, &Child)| {
            (rank != back_end && child.link.is_some() && child.connected.contains(back_end))
                .then_some(rank)
        };
        self.table.iter().filter_map(holds).collect()
    }

    /// A child was not taken in after all.
    pub(crate) fn forget(&mut self, rank: Rank) {
        if let Some(child) = self.table.get_mut(&rank) {
            child.link = None;
            child.state = State::Gone;
        }
    }

    /// All children, by rank.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Rank, &mut Child)> {
        self.table.iter_mut().map(|(&rank, child)| (rank, child))
    }

    /// The children that are there, with the back-ends that they lead to.
    pub(crate) fn linked(&self) -> impl Iterator<Item = (Rank, LinkId, &RankSet)> {
        let there = |(&rank, child): (&Rank, &'_ Child)| child.link.map(|link| (rank, link));
        self.table.iter().filter_map(move |entry| {
            there(entry).map(|(rank, link)| (rank, link, &entry.1.connected))
        })
    }

    /// The links of all children that are there.
    pub(crate) fn links(&self) -> Vec<LinkId> {
        self.table.values().filter_map(|child| child.link).collect()
    }

    /// The children that are there, with the back-ends that they lead to.
    pub(crate) fn links_with_back_ends(&self) -> Vec<(LinkId, RankSet)> {
        let there = |child: &Child| child.link.map(|link| (link, child.connected.clone()));
        self.table.values().filter_map(there).collect()
    }

    /// Whether one of two children may have been above the other, or above what is below it: only
    /// then can one tell what has become of the other.
    pub(crate) fn are_related(&self, one: Rank, other: Rank) -> bool {
        let (Some(first), Some(second)) = (self.get(one), self.get(other)) else { return true };
        let domains = (&first.authority.domain, &second.authority.domain);
        // Where dynamic members come from is not in the plan.
        is_dynamic(one)
            || is_dynamic(other)
            || domains.0.is_empty()
            || domains.1.is_empty()
            || domains.0.as_ref().intersects(domains.1.as_ref())
    }

    pub(crate) fn leaving(&mut self, rank: Rank) {
        if let Some(child) = self.table.get_mut(&rank) {
            child.is_leaving = true;
        }
    }
}
