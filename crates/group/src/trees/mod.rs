//! Trees, by name: how a member splits the set of virtual nodes that is to be reached through it.
//!
//! A split needs no agreement between members: the receiver of each part answers for exactly the
//! virtual nodes that are named in the message. Only bulk transfers of `adaptive` are laid out by
//! their root, which sends each member the [`Route`] below it. The root alone chooses which of the
//! two a value takes ([`Choice`]); that its messages have routes tells the others.

mod adaptive;
mod cells;
mod choice;
mod explain;
mod kind;
mod paper;
mod parent;
mod plain;
mod probes;
mod stripes;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::{RankSet, RankSetRef};

pub use choice::{Choice, ChoiceReason, Estimate};
pub(crate) use choice::{ChoiceBasis, LastChoice, Parcel};
pub use explain::{Step, Why};
pub use kind::{TreeKind, UnknownTree};
pub(crate) use paper::Papers;

use crate::identity::{MemberId, Time};
use crate::measure::Clusters;
use crate::members::View;
use crate::message::{PaperTree, Route};

/// A child in one tree and what is to be reached through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The child.
    pub child: MemberId,
    /// The virtual nodes, its own included.
    pub names: RankSet,
    /// The tree below it, if it is laid out.
    pub route: Route,
}

/// The members below one, first the child, in the order in which it serves them.
pub(crate) type Share = Vec<MemberId>;

/// What a split is made from.
pub(crate) struct Terrain<'a> {
    pub(crate) me: MemberId,
    pub(crate) view: &'a View,
    pub(crate) clusters: &'a Clusters,
    pub(crate) papers: &'a Papers,
    /// The work of one send.
    pub(crate) overhead: Time,
    /// How long a sender is busy with one child: the work, and the bytes on its card.
    pub(crate) busy: Time,
}

impl Terrain<'_> {
    /// Splits a set. The second part are the virtual nodes that no member carries.
    pub(crate) fn split(
        &self,
        tree: TreeKind,
        root: MemberId,
        targets: RankSetRef<'_>,
    ) -> (Vec<Branch>, RankSet) {
        let (owners, unassigned) = self.view.owners(targets);
        let members: Vec<MemberId> =
            owners.iter().map(|entry| entry.0).filter(|&member| member != self.me).collect();
        let names: BTreeMap<MemberId, RankSet> = owners.into_iter().collect();
        let shares = match tree {
            TreeKind::Flat => members.into_iter().map(|member| Vec::from([member])).collect(),
            TreeKind::Binomial => plain::binomial(&members),
            TreeKind::List => plain::list(self, &members),
            TreeKind::Static => plain::clustered(self, &members),
            TreeKind::PaperLatency => self.papers.shares(PaperTree { root, bulk: false }, &names),
            TreeKind::PaperBandwidth => self.papers.shares(PaperTree { root, bulk: true }, &names),
            TreeKind::Adaptive => adaptive::delegate(self, root, &members),
        };
        (shares.into_iter().map(|share| branch(&share, &names)).collect(), unassigned)
    }

    /// Lays out the trees of a bulk transfer: for each stripe the root's branches.
    pub(crate) fn lay_out(&self, stripes: u8, targets: RankSetRef<'_>) -> Vec<Vec<Branch>> {
        let (owners, _) = self.view.owners(targets);
        let members: Vec<MemberId> =
            owners.iter().map(|entry| entry.0).filter(|&member| member != self.me).collect();
        let names: BTreeMap<MemberId, RankSet> = owners.into_iter().collect();
        let trees = stripes::interior_disjoint(self, usize::from(stripes), &members);
        trees
            .iter()
            .map(|children| {
                let roots = children.get(&self.me).map_or(&[][..], Vec::as_slice);
                roots.iter().map(|&child| routed(child, children, &names)).collect()
            })
            .collect()
    }

    /// The branches that a route gives, and the virtual nodes outside it. Where a child is gone,
    /// the live subtrees below it are hung below each other in a binary heap, as one branch: taken
    /// over one by one, they would overload a single member.
    pub(crate) fn follow(&self, route: &Route, targets: RankSetRef<'_>) -> (Vec<Branch>, RankSet) {
        let mut names: BTreeMap<MemberId, RankSet> = BTreeMap::new();
        for &(member, _) in &route.0 {
            let mut set = self.view.names_of(member);
            set.intersect_with(targets);
            names.insert(member, set);
        }
        let (roots, mut children) = edges(route);
        let (mut heads, mut gone): (Vec<MemberId>, Vec<MemberId>) =
            roots.into_iter().partition(|child| self.view.is_alive(*child));
        let mut orphans = Vec::new();
        while let Some(child) = gone.pop() {
            for &below in children.get(&child).into_iter().flatten() {
                if self.view.is_alive(below) {
                    orphans.push(below);
                } else {
                    gone.push(below);
                }
            }
        }
        for at in 1..orphans.len() {
            children.entry(orphans[(at - 1) / 2]).or_default().insert(0, orphans[at]);
        }
        heads.extend(orphans.first());
        let mut branches: Vec<Branch> =
            heads.into_iter().map(|child| routed(child, &children, &names)).collect();
        branches.retain(|branch| !branch.names.is_empty());
        let mut rest = targets.to_set();
        for branch in &branches {
            rest.subtract(branch.names.as_ref());
        }
        (branches, rest)
    }
}

/// The children of a route's head, and of all below.
fn edges(route: &Route) -> (Vec<MemberId>, BTreeMap<MemberId, Vec<MemberId>>) {
    let mut roots = Vec::new();
    let mut children: BTreeMap<MemberId, Vec<MemberId>> = BTreeMap::new();
    // The members whose subtrees are open, and where these end.
    let mut open: Vec<(MemberId, usize)> = Vec::new();
    for (at, &(member, below)) in route.0.iter().enumerate() {
        while open.last().is_some_and(|entry| entry.1 <= at) {
            open.pop();
        }
        match open.last() {
            Some(parent) => children.entry(parent.0).or_default().push(member),
            None => roots.push(member),
        }
        open.push((member, at + 1 + below as usize));
    }
    (roots, children)
}

fn branch(share: &[MemberId], names: &BTreeMap<MemberId, RankSet>) -> Branch {
    let mut all: Vec<[u32; 2]> = Vec::new();
    for set in share.iter().filter_map(|member| names.get(member)) {
        all.extend(set.as_ref().ranges());
    }
    all.sort_unstable();
    let mut set = RankSet::new();
    for [first, last] in all {
        set.insert_range(first, last);
    }
    Branch { child: share[0], names: set, route: Route::default() }
}

/// A branch with its route, from the children of all members.
fn routed(
    child: MemberId,
    children: &BTreeMap<MemberId, Vec<MemberId>>,
    names: &BTreeMap<MemberId, RankSet>,
) -> Branch {
    let mut order: Vec<(MemberId, u32)> = Vec::new();
    let mut open: Vec<(MemberId, Option<usize>)> = Vec::from([(child, None)]);
    // An entry with an index marks the end of that member's subtree.
    while let Some((member, end)) = open.pop() {
        if let Some(index) = end {
            order[index].1 = (order.len() - index - 1) as u32;
            continue;
        }
        open.push((member, Some(order.len())));
        order.push((member, 0));
        let below = children.get(&member).map_or(&[][..], Vec::as_slice);
        open.extend(below.iter().rev().map(|&next| (next, None)));
    }
    let share: Share = order.iter().map(|entry| entry.0).collect();
    let mut branch = branch(&share, names);
    branch.route = Route(order.split_off(1));
    branch
}
