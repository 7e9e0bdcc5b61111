//! The trees of Saito, Taura and Chikayama: each member chooses its parent by probing random ones.
//!
//! A tree belongs to one root. For latency a member moves to a candidate that is nearer to it than
//! its parent and nearer to the root than itself. For bandwidth the estimate through a candidate is
//! min(the candidate's estimate, measured bandwidth / its children); a member moves if that grows,
//! and takes the nearest of those within a tenth. Members probe only after the membership changed.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use sapwood_packet::RankSet;

use super::Share;
use crate::identity::{MemberId, SECOND, Time};
use crate::limits::PROBE_BYTES;
use crate::member::{Member, Phase, Timer};
use crate::message::{Message, PaperTree, Position, Ranges};
use crate::payload::Payload;
use crate::random::around;

/// How many candidates a member compares before it joins a tree for bandwidth.
const JOIN_PROBES: u32 = 10;
/// How many probes it sends after that.
const EXTRA_PROBES: u32 = 10;
/// Members join trees for bandwidth within this span.
const JOIN_SPAN: Time = 2 * SECOND;
/// After this time a probe that was not answered counts as lost.
const LOST: Time = 10 * SECOND;

/// A member's state in all such trees.
#[derive(Clone, Debug, Default)]
pub(crate) struct Papers {
    trees: BTreeMap<PaperTree, Paper>,
    /// What probes for bandwidth carry; shared by all that wait in queues.
    padding: Payload,
}

#[derive(Clone, Debug, Default)]
struct Paper {
    parent: Option<MemberId>,
    parent_distance: Time,
    parent_bandwidth: u64,
    above: Position,
    distance: Time,
    children: Vec<(MemberId, RankSet)>,
    probe: Option<(u64, MemberId, Time)>,
    number: u64,
    probes_left: u32,
    candidates: Vec<(u64, Time, MemberId, u64, Position)>,
}

impl Papers {
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

    /// The parent in a tree and what can be reached from this member down.
    pub(crate) fn position(&self, tree: PaperTree, own: &RankSet) -> (Option<MemberId>, RankSet) {
        let Some(paper) = self.trees.get(&tree) else { return (None, own.clone()) };
        (paper.parent, paper.reach(own))
    }
}

impl Paper {
    fn reach(&self, own: &RankSet) -> RankSet {
        let mut reach = own.clone();
        for (_, names) in &self.children {
            reach.union_with(names.as_ref());
        }
        reach
    }

    fn position(&self, is_root: bool) -> Position {
        let mut ancestors = self.above.ancestors.clone();
        ancestors.splice(0..0, self.parent);
        let share = self.parent_bandwidth / u64::from(self.above.children.max(1));
        Position {
            distance: if is_root { 0 } else { self.distance },
            bandwidth: if is_root { u64::MAX } else { self.above.bandwidth.min(share) },
            children: self.children.len() as u32,
            ancestors,
        }
    }
}

impl Member {
    pub(crate) fn track(&mut self, tree: PaperTree) {
        let probes = if tree.bulk { JOIN_PROBES + EXTRA_PROBES } else { self.config.paper_probes };
        let paper = Paper { probes_left: probes, ..Paper::default() };
        self.papers.trees.insert(tree, paper);
        if tree.root != self.me {
            let span = if tree.bulk { JOIN_SPAN } else { self.config.paper_period };
            let first = self.random.below(span);
            self.wake_at(self.now + first, Timer::Paper(tree));
            self.begin_paper(tree);
        }
    }

    /// At first the root of a latency tree is the parent of all, at its measured distance.
    fn begin_paper(&mut self, tree: PaperTree) {
        if !tree.bulk {
            self.move_paper(tree, tree.root, Time::MAX / 4, u64::MAX, Position::default());
            self.send_probe(tree, tree.root);
        }
    }

    /// After a change of the membership members probe again, and orphans go back to the root.
    pub(crate) fn papers_changed(&mut self) {
        let trees: Vec<PaperTree> = self.papers.trees.keys().copied().collect();
        let me = self.me;
        for tree in trees.into_iter().filter(|tree| tree.root != me) {
            let is_orphan = {
                let Some(paper) = self.papers.trees.get_mut(&tree) else { continue };
                let was_idle = paper.probes_left == 0;
                paper.probes_left = if tree.bulk { EXTRA_PROBES } else { self.config.paper_probes };
                let parent = paper.parent;
                if was_idle {
                    let after = around(&mut self.random, self.config.paper_period);
                    self.wake_at(self.now + after, Timer::Paper(tree));
                }
                parent.is_some_and(|parent| !self.view.is_alive(parent))
            };
            let view = &self.view;
            if let Some(paper) = self.papers.trees.get_mut(&tree) {
                paper.children.retain(|child| view.is_alive(child.0));
            }
            if is_orphan && self.view.is_alive(tree.root) {
                self.move_paper(tree, tree.root, Time::MAX / 4, 0, Position::default());
                self.send_probe(tree, tree.root);
            }
        }
    }

    fn send_probe(&mut self, tree: PaperTree, to: MemberId) {
        let Some(paper) = self.papers.trees.get_mut(&tree) else { return };
        paper.number += 1;
        let number = paper.number;
        paper.probe = Some((number, to, self.now));
        if self.papers.padding.is_empty() {
            self.papers.padding = Payload::from(alloc::vec![0; PROBE_BYTES]);
        }
        self.prober.sent += 1;
        let padding = self.papers.padding.part(0, if tree.bulk { PROBE_BYTES } else { 1 });
        self.send(to, Message::Probe { tree, number, padding });
    }

    /// One probe in a period, to a random member, and never a second one beside it: where cards are
    /// slow, probes would measure the queue of those before them, without end.
    pub(crate) fn paper_step(&mut self, tree: PaperTree) {
        let others: Vec<MemberId> = self.view.alive().filter(|member| *member != self.me).collect();
        let any = self.random.below(others.len() as u64) as usize;
        let Some(paper) = self.papers.trees.get_mut(&tree) else { return };
        if paper.probes_left == 0 || self.phase != Phase::Joined || others.is_empty() {
            return;
        }
        let is_under_way = |&(_, to, sent): &(u64, MemberId, Time)| {
            self.view.is_alive(to) && self.now < sent + LOST
        };
        if paper.probe.as_ref().is_some_and(is_under_way) {
            let after = around(&mut self.random, self.config.paper_period);
            self.wake_at(self.now + after, Timer::Paper(tree));
            return;
        }
        paper.probes_left -= 1;
        let is_joining = tree.bulk && paper.parent.is_none();
        let to = if is_joining && paper.candidates.is_empty() { tree.root } else { others[any] };
        let goes_on = paper.probes_left > 0;
        self.send_probe(tree, to);
        if is_joining {
            self.join_bulk(tree);
        }
        if goes_on {
            let after = around(&mut self.random, self.config.paper_period);
            self.wake_at(self.now + after, Timer::Paper(tree));
        }
    }

    /// After ten candidates the best is taken: the nearest of those within a tenth.
    fn join_bulk(&mut self, tree: PaperTree) {
        let Some(paper) = self.papers.trees.get_mut(&tree) else { return };
        if paper.probes_left > EXTRA_PROBES {
            return;
        }
        let candidates = core::mem::take(&mut paper.candidates);
        let best = candidates.iter().map(|candidate| candidate.0).max().unwrap_or(0);
        let good = |candidate: &(u64, Time, MemberId, u64, Position)| candidate.0 >= best / 10 * 9;
        let chosen = candidates.into_iter().filter(good).min_by_key(|candidate| candidate.1);
        if let Some((_, time, candidate, bandwidth, position)) = chosen {
            self.move_paper(tree, candidate, time, bandwidth, position);
        }
    }

    pub(crate) fn probed(&mut self, from: MemberId, tree: PaperTree, number: u64) {
        let is_root = tree.root == self.me;
        let position =
            self.papers.trees.get(&tree).map_or_else(Position::default, |p| p.position(is_root));
        self.send(from, Message::ProbeReply { tree, number, position });
    }

    pub(crate) fn probe_replied(
        &mut self,
        from: MemberId,
        tree: PaperTree,
        number: u64,
        position: Position,
    ) {
        let (me, now) = (self.me, self.now);
        let Some(paper) = self.papers.trees.get_mut(&tree) else { return };
        let Some((_, _, sent)) = paper.probe.filter(|probe| (probe.0, probe.1) == (number, from))
        else {
            return;
        };
        paper.probe = None;
        let time = now - sent;
        if from == tree.root && !tree.bulk {
            paper.distance = time;
        }
        if paper.parent == Some(from) {
            paper.parent_distance = time.min(paper.parent_distance);
            paper.above = position;
            self.tell_children(tree);
            return;
        }
        if position.ancestors.contains(&me) {
            return;
        }
        if !tree.bulk {
            let is_nearer = time < paper.parent_distance
                && position.distance < paper.distance
                && (from == tree.root || position.distance > 0);
            if is_nearer {
                self.move_paper(tree, from, time, 0, position);
            }
            return;
        }
        let bandwidth = (PROBE_BYTES as u64).saturating_mul(SECOND) / time.max(1);
        let through = position.bandwidth.min(bandwidth / (u64::from(position.children) + 1));
        if paper.parent.is_none() {
            paper.candidates.push((through, time, from, bandwidth, position));
        } else if through > paper.position(false).bandwidth / 100 * 103 {
            self.move_paper(tree, from, time, bandwidth, position);
        }
    }

    fn move_paper(
        &mut self,
        tree: PaperTree,
        to: MemberId,
        time: Time,
        bandwidth: u64,
        position: Position,
    ) {
        let own = self.view.names_of(self.me);
        let Some(paper) = self.papers.trees.get_mut(&tree) else { return };
        let former = paper.parent.replace(to);
        paper.parent_distance = time;
        paper.parent_bandwidth = bandwidth;
        paper.above = position;
        let names = Ranges::from(&paper.reach(&own));
        if let Some(former) = former.filter(|former| *former != to) {
            self.send(former, Message::Detach { tree });
        }
        self.send(to, Message::Attach { tree, names });
        self.tell_children(tree);
    }

    fn tell_children(&mut self, tree: PaperTree) {
        let Some(paper) = self.papers.trees.get(&tree) else { return };
        let position = paper.position(tree.root == self.me);
        let children: Vec<MemberId> = paper.children.iter().map(|child| child.0).collect();
        for child in children {
            self.send(child, Message::Above { tree, position: position.clone() });
        }
    }

    fn tell_parent(&mut self, tree: PaperTree) {
        let own = self.view.names_of(self.me);
        let Some(paper) = self.papers.trees.get(&tree) else { return };
        if let Some(parent) = paper.parent {
            let names = Ranges::from(&paper.reach(&own));
            self.send(parent, Message::Attach { tree, names });
        }
    }

    pub(crate) fn attached(&mut self, from: MemberId, tree: PaperTree, names: &Ranges) {
        let Some(paper) = self.papers.trees.get_mut(&tree) else { return };
        let names = names.as_set().to_set();
        match paper.children.iter_mut().find(|child| child.0 == from) {
            Some(child) => child.1 = names,
            None => {
                paper.children.push((from, names));
                let position = paper.position(tree.root == self.me);
                self.send(from, Message::Above { tree, position });
                if tree.bulk {
                    self.tell_children(tree);
                }
            }
        }
        self.tell_parent(tree);
    }

    pub(crate) fn detached(&mut self, from: MemberId, tree: PaperTree) {
        let Some(paper) = self.papers.trees.get_mut(&tree) else { return };
        paper.children.retain(|child| child.0 != from);
        if tree.bulk {
            self.tell_children(tree);
        }
        self.tell_parent(tree);
    }

    pub(crate) fn above(&mut self, from: MemberId, tree: PaperTree, position: Position) {
        let (me, root) = (self.me, tree.root);
        let Some(paper) = self.papers.trees.get_mut(&tree) else { return };
        if paper.parent != Some(from) {
            return;
        }
        if position.ancestors.contains(&me) {
            // Two moved below each other at once: this one goes back to the root.
            self.move_paper(tree, root, Time::MAX / 4, 0, Position::default());
            return;
        }
        if paper.above != position {
            paper.above = position;
            self.tell_children(tree);
        }
    }
}
