//! Why a parent is one: the tree that members would make now, step by step.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sapwood_packet::{RankSet, RankSetRef};
use serde::{Deserialize, Serialize};

use super::{Branch, Terrain, TreeKind};
use crate::identity::{MemberId, Time};

/// One edge of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Which of the interior-disjoint trees; 0 where there is one.
    pub stripe: u8,
    /// The member that receives.
    pub child: MemberId,
    /// The member that sends to it.
    pub parent: MemberId,
    /// Its place in the order in which the parent serves its children, from 0.
    pub place: u32,
    /// The edges between it and the root.
    pub depth: u32,
    /// When it would have a short value, counted from the root's call, in nanoseconds.
    pub arrival: Time,
    /// Why this parent.
    pub why: Why,
}

/// Why a member is another one's parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// `flat`: the root sends to all itself.
    Flat,
    /// `binomial`: by the order of the virtual nodes alone.
    Order,
    /// `list`: the member before it in the chain.
    Chain,
    /// `static`: the first member of another given cluster is reached from the root.
    Site {
        /// The cluster of the child.
        site: u32,
    },
    /// A cluster is entered by its nearest known path; the clusters are indexes of the table.
    Gate {
        /// From this cluster.
        from: u16,
        /// Into this one.
        to: u16,
        /// The measured round trip, in nanoseconds, if there is one.
        round_trip: Option<Time>,
    },
    /// `adaptive`, inside a cluster: of all members that had the value, the parent was free first.
    FreeFirst {
        /// The cluster.
        cluster: u16,
    },
    /// A bulk transfer: the parent is an interior member of this stripe, and of no other.
    Interior,
    /// The rules of the paper chose it by probes.
    Probed,
    /// No tree reaches it: it is sent to point to point.
    Direct,
}

/// When a parent serves a child.
struct Turn {
    /// The child's place among its children.
    place: u32,
    /// The parent's depth.
    depth: u32,
    /// When the parent begins.
    begin: Time,
}

impl Terrain<'_> {
    /// The tree below the member of this terrain, as its members would split it.
    pub(crate) fn explain(&self, kind: TreeKind, targets: RankSetRef<'_>) -> Vec<Step> {
        let root = self.me;
        let mut steps = Vec::new();
        let mut queue = VecDeque::from([(root, targets.to_set(), 0, 0)]);
        while let Some((at, targets, depth, arrival)) = queue.pop_front() {
            let here = Terrain { me: at, ..*self };
            let (branches, _) = here.split(kind, root, targets.as_ref());
            let mut rest = targets;
            for (place, branch) in (0_u32..).zip(branches) {
                rest.subtract(branch.names.as_ref());
                let why = here.why(kind, branch.child);
                let step = here.step(&branch, Turn { place, depth, begin: arrival }, why);
                let mut below = branch.names;
                below.subtract(self.view.names_of(branch.child).as_ref());
                queue.push_back((branch.child, below, depth + 1, step.arrival));
                steps.push(step);
            }
            let others = steps.len() as u32;
            for (place, (child, names)) in (others..).zip(self.view.owners(rest.as_ref()).0) {
                let branch = Branch { child, names, route: super::Route::default() };
                let turn = Turn { place, depth, begin: arrival };
                steps.push(here.step(&branch, turn, Why::Direct));
            }
        }
        steps
    }

    /// The same of a bulk transfer.
    pub(crate) fn explain_stripes(&self, count: u8, targets: RankSetRef<'_>) -> Vec<Step> {
        let mut steps = Vec::new();
        for (stripe, branches) in (0..).zip(self.lay_out(count, targets)) {
            let mut queue: VecDeque<(MemberId, Vec<Branch>, u32, Time)> =
                VecDeque::from([(self.me, branches, 0, 0)]);
            while let Some((at, branches, depth, arrival)) = queue.pop_front() {
                let here = Terrain { me: at, ..*self };
                for (place, branch) in (0_u32..).zip(branches) {
                    let why = here.gate(branch.child).unwrap_or(Why::Interior);
                    let step = here.step(&branch, Turn { place, depth, begin: arrival }, why);
                    let everyone: &RankSet = self.view.everyone();
                    let (below, _) = here.follow(&branch.route, everyone.as_ref());
                    queue.push_back((branch.child, below, depth + 1, step.arrival));
                    steps.push(Step { stripe, ..step });
                }
            }
        }
        steps
    }

    fn step(&self, branch: &Branch, turn: Turn, why: Why) -> Step {
        let Turn { place, depth, begin } = turn;
        let clusters = self.clusters;
        let ends = clusters.label(self.me).zip(clusters.label(branch.child));
        let trip = ends.and_then(|(from, to)| clusters.round_trip(from, to));
        let wire = trip.map_or(self.overhead, |trip| trip / 2);
        Step {
            stripe: 0,
            child: branch.child,
            parent: self.me,
            place,
            depth: depth + 1,
            arrival: begin + u64::from(place) * self.busy + wire,
            why,
        }
    }

    fn why(&self, kind: TreeKind, child: MemberId) -> Why {
        let site = |member| self.view.record(member).map_or(0, |record| record.site);
        match kind {
            TreeKind::Flat => Why::Flat,
            TreeKind::Binomial => Why::Order,
            TreeKind::List => Why::Chain,
            TreeKind::Static if site(child) != site(self.me) => Why::Site { site: site(child) },
            TreeKind::Static => Why::Order,
            TreeKind::PaperLatency | TreeKind::PaperBandwidth => Why::Probed,
            TreeKind::Adaptive => self
                .gate(child)
                .unwrap_or(Why::FreeFirst { cluster: self.clusters.label(child).unwrap_or(0) }),
        }
    }

    /// Whether an edge leads from one cluster into another.
    fn gate(&self, child: MemberId) -> Option<Why> {
        let (from, to) = self.clusters.label(self.me).zip(self.clusters.label(child))?;
        let round_trip = self.clusters.round_trip(from, to);
        (from != to).then_some(Why::Gate { from, to, round_trip })
    }
}
