//! The trees of Saito, Taura and Chikayama: each member chooses its parent by probing random ones.
//!
//! A tree belongs to one root. For latency a member moves to a candidate that is nearer to it than
//! its parent, and nearer to the root than itself; the distance to the root is the sum of the round
//! trips along the tree. For bandwidth the estimate through a candidate is min(the candidate's
//! estimate, measured bandwidth / its children); a member moves if that grows, and joins by the
//! nearest of those within a tenth. One probe of a candidate is judged for the trees of all roots.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use sapwood_packet::RankSet;

use super::Share;
use super::probes::Probing;
use crate::identity::{MemberId, SECOND, Time};
use crate::limits::{PAPER_ANCESTORS_MAX, PROBE_BYTES, ROUND_TRIP_MAX};
use crate::message::{PaperKind, PaperTree, Position};
use crate::payload::Payload;

/// How many candidates a member compares before it joins a tree for bandwidth.
pub(super) const JOIN_PROBES: u32 = 10;
/// The bytes of a long probe take this part of its time at least.
const LEAST_SHARE: u64 = 16;
/// How often a root is asked in place of a random member.
const ROOT_ASKS: u32 = 3;

/// A member's state in all such trees.
#[derive(Clone, Debug, Default)]
pub(crate) struct Papers {
    pub(super) trees: BTreeMap<PaperTree, Paper>,
    latency: Probing,
    bandwidth: Probing,
    /// What probes for bandwidth carry; shared by all that wait in queues.
    pub(super) padding: Payload,
}

/// A member's state in one tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Paper {
    pub(super) edge: Option<Edge>,
    /// The parent's position.
    pub(super) above: Position,
    pub(super) children: Vec<(MemberId, RankSet)>,
    /// In a tree for bandwidth until there is a parent: what was found, and how many probes of how
    /// many are still to come.
    pub(super) candidates: Vec<Candidate>,
    pub(super) join_left: u32,
    /// How often the root was asked since it became the parent, or the tree was new.
    pub(super) root_asks: u32,
}

/// The edge from a parent, as its child has measured it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) parent: MemberId,
    /// None before it is measured.
    pub(super) round_trip: Option<Time>,
    /// In bytes per second.
    pub(super) bandwidth: u64,
}

/// A member that may become the parent.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) edge: Edge,
    pub(super) position: Position,
}

impl Edge {
    /// An edge in a tree for latency.
    pub(super) fn of_latency(parent: MemberId, round_trip: Time) -> Self {
        Self { parent, round_trip: Some(round_trip), bandwidth: 0 }
    }

    /// An edge in a tree for bandwidth, on which a long probe took this time after a short one. The
    /// round trip is no part of what the bytes take; where both are near to each other, the
    /// difference is noise.
    pub(super) fn of_bandwidth(parent: MemberId, round_trip: Time, long: Time) -> Self {
        let time = long.saturating_sub(round_trip).max(long / LEAST_SHARE).max(1);
        let bandwidth = (PROBE_BYTES as u64).saturating_mul(SECOND) / time;
        Self { parent, round_trip: Some(round_trip), bandwidth }
    }

    /// An edge that is still to be measured.
    pub(super) fn unmeasured(parent: MemberId) -> Self {
        Self { parent, round_trip: None, bandwidth: 0 }
    }
}

impl Candidate {
    /// The estimate through it, which would have one child more.
    pub(super) fn estimate(&self) -> u64 {
        let children = u64::from(self.position.children) + 1;
        self.position.bandwidth.min(self.edge.bandwidth / children)
    }
}

/// The best of these candidates: the nearest of those within a tenth of the highest estimate.
pub(super) fn best(candidates: Vec<Candidate>) -> Option<Candidate> {
    let most = candidates.iter().map(Candidate::estimate).max()?;
    let good = candidates.into_iter().filter(|candidate| candidate.estimate() >= most / 10 * 9);
    good.min_by_key(|candidate| candidate.edge.round_trip)
}

impl Papers {
    pub(super) fn probing(&mut self, kind: PaperKind) -> &mut Probing {
        match kind {
            PaperKind::Latency => &mut self.latency,
            PaperKind::Bandwidth => &mut self.bandwidth,
        }
    }

    pub(super) fn of(&self, kind: PaperKind) -> impl Iterator<Item = (PaperTree, &Paper)> {
        let is_of_kind = move |(tree, _): &(&PaperTree, &Paper)| tree.kind() == kind;
        self.trees.iter().filter(is_of_kind).map(|(tree, paper)| (*tree, paper))
    }

    /// The member's positions in all trees of a kind, by their roots, as far as they fit one
    /// answer. Which tree comes first changes with the number of the probe, so that each that fits
    /// at all has its turn; one that is deeper than that has no children from here.
    pub(super) fn positions(
        &self,
        me: MemberId,
        kind: PaperKind,
        number: u64,
    ) -> Vec<(MemberId, Position)> {
        let papers: Vec<(PaperTree, &Paper)> = self.of(kind).collect();
        let first = (number % papers.len().max(1) as u64) as usize;
        let mut room = PAPER_ANCESTORS_MAX;
        let mut positions = Vec::new();
        for (tree, paper) in papers[first..].iter().chain(&papers[..first]) {
            let position = paper.position(tree.root, me);
            let Some(rest) = room.checked_sub(position.ancestors.len()) else { continue };
            room = rest;
            positions.push((tree.root, position));
        }
        positions
    }

    /// A root that is to be asked in place of a random member: without an answer of it this one
    /// has no place in its tree.
    pub(super) fn root_to_ask(
        &mut self,
        me: MemberId,
        kind: PaperKind,
        is_alive: impl Fn(MemberId) -> bool,
    ) -> Option<MemberId> {
        for (tree, paper) in &mut self.trees {
            let root = tree.root;
            if tree.kind() == kind && root != me && paper.needs(root) && is_alive(root) {
                paper.root_asks += 1;
                return Some(root);
            }
        }
        None
    }

    /// The shares of a member's children; what they do not reach goes point to point.
    pub(super) fn shares(
        &self,
        tree: PaperTree,
        names: &BTreeMap<MemberId, RankSet>,
    ) -> Vec<Share> {
        let mut left: BTreeSet<MemberId> = names.keys().copied().collect();
        let mut shares = Vec::new();
        for (child, reach) in self.trees.get(&tree).iter().flat_map(|paper| &paper.children) {
            if !left.remove(child) {
                continue;
            }
            let mut share = Share::from([*child]);
            let within = |member: &MemberId| names[member].as_ref().is_within(reach.as_ref());
            share.extend(left.iter().copied().filter(within));
            left.retain(|member| !share.contains(member));
            shares.push(share);
        }
        shares.extend(left.into_iter().map(|member| Share::from([member])));
        shares
    }

    /// A root that went long ago is forgotten: its trees make room for others.
    pub(crate) fn forget(&mut self, root: MemberId) {
        self.trees.retain(|tree, _| tree.root != root);
    }

    /// The parent in a tree and what can be reached from this member down.
    pub(crate) fn position(&self, tree: PaperTree, own: &RankSet) -> (Option<MemberId>, RankSet) {
        let Some(paper) = self.trees.get(&tree) else { return (None, own.clone()) };
        (paper.edge.map(|edge| edge.parent), paper.reach(own))
    }
}

impl Paper {
    pub(super) fn reach(&self, own: &RankSet) -> RankSet {
        let mut reach = own.clone();
        for (_, names) in &self.children {
            reach.union_with(names.as_ref());
        }
        reach
    }

    /// Whether the root has to be asked, and was not asked often enough.
    fn needs(&self, root: MemberId) -> bool {
        let needs = match self.edge {
            Some(edge) => edge.parent == root && edge.round_trip.is_none(),
            None => self.candidates.is_empty(),
        };
        needs && self.root_asks < ROOT_ASKS
    }

    /// The distance to the root: the sum of the round trips along the tree, or none while one of
    /// them is not known.
    pub(super) fn distance(&self, root: MemberId) -> Option<Time> {
        let edge = self.edge?;
        let above = told_distance(edge.parent, root, &self.above)?;
        Some(above.saturating_add(edge.round_trip?).clamp(1, ROUND_TRIP_MAX))
    }

    /// The estimated bandwidth from the root.
    pub(super) fn estimate(&self) -> u64 {
        let Some(edge) = self.edge else { return 0 };
        self.above.bandwidth.min(edge.bandwidth / u64::from(self.above.children.max(1)))
    }

    /// What is told to children, and in answers to probes.
    pub(super) fn position(&self, root: MemberId, me: MemberId) -> Position {
        let children = self.children.len() as u32;
        if root == me {
            let bandwidth = u64::MAX;
            return Position { distance: 0, bandwidth, children, ancestors: Vec::new() };
        }
        let mut ancestors = self.above.ancestors.clone();
        ancestors.splice(0..0, self.edge.map(|edge| edge.parent));
        Position {
            distance: self.distance(root).unwrap_or(0),
            bandwidth: self.estimate(),
            children,
            ancestors,
        }
    }

    /// Whether a candidate in a tree for latency is nearer than the parent, and nearer to the root
    /// than the member itself.
    pub(super) fn is_nearer(&self, root: MemberId, candidate: &Candidate) -> bool {
        let theirs = told_distance(candidate.edge.parent, root, &candidate.position);
        let is_above = theirs.zip(self.distance(root)).is_some_and(|(theirs, own)| theirs < own);
        let times = candidate.edge.round_trip.zip(self.edge.and_then(|edge| edge.round_trip));
        is_above && times.is_some_and(|(time, parent)| time < parent)
    }
}

/// The distance that a member has told: 0 is the root's, and of others means that they know none.
fn told_distance(member: MemberId, root: MemberId, position: &Position) -> Option<Time> {
    if member == root { Some(0) } else { Some(position.distance).filter(|told| *told > 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: MemberId = MemberId(1);

    fn candidate(id: u64, round_trip: Time, position: Position) -> Candidate {
        Candidate { edge: Edge::of_latency(MemberId(id), round_trip), position }
    }

    fn at(distance: Time) -> Position {
        Position { distance, ..Position::default() }
    }

    #[test]
    fn the_distance_to_the_root_is_the_sum_of_the_round_trips_along_the_tree() {
        let edge = Edge::of_latency(MemberId(2), 30);
        let mut paper = Paper { edge: Some(edge), above: at(100), ..Paper::default() };
        assert_eq!(paper.distance(ROOT), Some(130));
        assert_eq!(paper.position(ROOT, MemberId(3)).distance, 130);
        assert_eq!(paper.position(ROOT, MemberId(3)).ancestors, [MemberId(2)]);
        paper.above = at(0);
        assert_eq!(paper.distance(ROOT), None, "the parent knows none");
        paper.edge = Some(Edge::of_latency(ROOT, 30));
        assert_eq!(paper.distance(ROOT), Some(30));
        paper.edge = Some(Edge::unmeasured(ROOT));
        assert_eq!(paper.distance(ROOT), None);
    }

    #[test]
    fn a_candidate_for_latency_is_nearer_than_the_parent_and_nearer_to_the_root() {
        let edge = Edge::of_latency(MemberId(2), 30);
        let paper = Paper { edge: Some(edge), above: at(100), ..Paper::default() };
        assert!(paper.is_nearer(ROOT, &candidate(4, 29, at(129))));
        assert!(!paper.is_nearer(ROOT, &candidate(4, 30, at(129))), "as far as the parent");
        assert!(!paper.is_nearer(ROOT, &candidate(4, 29, at(130))), "as far from the root");
        assert!(!paper.is_nearer(ROOT, &candidate(4, 29, at(0))), "it knows no distance");
        assert!(paper.is_nearer(ROOT, &candidate(1, 29, at(0))), "the root");
    }

    #[test]
    fn an_estimate_is_that_of_the_candidate_or_the_bandwidth_for_each_of_its_children() {
        let edge = |id| Edge { parent: MemberId(id), round_trip: Some(id), bandwidth: 900 };
        let position = |bandwidth, children| Position { bandwidth, children, ..at(0) };
        let of = |id, bandwidth, children| {
            let position = position(bandwidth, children);
            Candidate { edge: edge(id), position }
        };
        assert_eq!(of(2, 500, 0).estimate(), 500);
        assert_eq!(of(2, 500, 1).estimate(), 450);
        let chosen = |candidates| best(candidates).map(|one| one.edge.parent.0);
        assert_eq!(chosen(Vec::from([of(4, 500, 0), of(3, 500, 1), of(2, 440, 0)])), Some(3));
        assert_eq!(chosen(Vec::new()), None);
        let above = position(500, 3);
        let paper = Paper { edge: Some(edge(2)), above, ..Paper::default() };
        assert_eq!(paper.estimate(), 300);
    }

    #[test]
    fn an_answer_has_the_trees_that_fit_and_the_next_one_has_others() {
        let ancestors = alloc::vec![MemberId(9); PAPER_ANCESTORS_MAX];
        let above = Position { ancestors, ..at(0) };
        let mut papers = Papers::default();
        for root in [ROOT, MemberId(2)] {
            let paper = Paper { above: above.clone(), ..Paper::default() };
            papers.trees.insert(PaperTree { root, bulk: false }, paper);
        }
        let roots = |number| {
            let positions = papers.positions(MemberId(3), PaperKind::Latency, number);
            positions.into_iter().map(|(root, _)| root).collect::<Vec<MemberId>>()
        };
        assert_eq!(roots(0), [ROOT]);
        assert_eq!(roots(1), [MemberId(2)]);
        assert_eq!(roots(2), [ROOT]);
        assert!(papers.positions(MemberId(3), PaperKind::Bandwidth, 1).is_empty());
    }

    #[test]
    fn a_tree_that_does_not_fit_keeps_no_other_out_of_the_answer() {
        let mut papers = Papers::default();
        for (root, depth) in [(1, PAPER_ANCESTORS_MAX + 1), (2, PAPER_ANCESTORS_MAX), (4, 0)] {
            let above = Position { ancestors: alloc::vec![MemberId(9); depth], ..at(0) };
            let tree = PaperTree { root: MemberId(root), bulk: false };
            papers.trees.insert(tree, Paper { above, ..Paper::default() });
        }
        for number in 0..3 {
            let positions = papers.positions(MemberId(3), PaperKind::Latency, number);
            let mut roots: Vec<u64> = positions.iter().map(|(root, _)| root.0).collect();
            roots.sort_unstable();
            assert_eq!(roots, [2, 4], "the first is too deep; probe {number}");
        }
    }

    #[test]
    fn the_trees_of_a_root_go_with_it() {
        let other = PaperTree { root: MemberId(2), bulk: true };
        let mut papers = Papers::default();
        for tree in [other, PaperTree { root: ROOT, bulk: false }] {
            papers.trees.insert(tree, Paper::default());
        }
        papers.forget(ROOT);
        assert_eq!(papers.trees.into_keys().collect::<Vec<PaperTree>>(), [other]);
    }

    #[test]
    fn a_bandwidth_is_measured_without_the_round_trip() {
        let (parent, near, far) = (MemberId(2), 300_000, 10_000_000);
        let bytes = PROBE_BYTES as u64 * 10;
        let bandwidth = |trip, long| Edge::of_bandwidth(parent, trip, long).bandwidth;
        assert_eq!(bandwidth(near, near + SECOND / 10), bytes);
        assert_eq!(bandwidth(far, far + SECOND / 10), bytes);
        assert_eq!(bandwidth(far, far / 2), bandwidth(far, far / 4) / 2, "noise");
    }
}
