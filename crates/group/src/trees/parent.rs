//! How a member finds its parents in the trees of Saito, Taura and Chikayama ([`super::paper`]).
//! Members probe only after the membership has changed, where a tree is new, and for the root of a
//! tree to which they go back.

use alloc::vec::Vec;

use super::paper::{Candidate, Edge, JOIN_PROBES, Paper, best};
use crate::identity::{MemberId, SECOND, Time};
use crate::limits::{PAPER_TREES_MAX, PROBE_BYTES};
use crate::member::{Member, Phase, Timer};
use crate::message::{Message, PaperKind, PaperTree, Position, Ranges};
use crate::payload::Payload;
use crate::random::around;

/// How many probes a member sends after it has joined a tree for bandwidth.
const EXTRA_PROBES: u32 = 10;
/// Members join trees for bandwidth within this span.
const JOIN_SPAN: Time = 2 * SECOND;

impl Member {
    /// Takes part in a tree. Beyond [`PAPER_TREES_MAX`] of a kind the tree stays flat.
    pub(crate) fn track(&mut self, tree: PaperTree) {
        let kind = tree.kind();
        let is_new = !self.papers.trees.contains_key(&tree);
        if is_new {
            if self.papers.of(kind).count() >= PAPER_TREES_MAX {
                return;
            }
            let paper = Paper { join_left: JOIN_PROBES, ..Paper::default() };
            self.papers.trees.insert(tree, paper);
        }
        if tree.root == self.me {
            return;
        }
        if is_new && !tree.bulk {
            // At first the root of a latency tree is the parent of all, at its measured distance.
            self.go_below_root(tree);
        }
        let (count, span) = match kind {
            PaperKind::Latency => (self.config.paper_probes, self.config.paper_period),
            PaperKind::Bandwidth => (JOIN_PROBES + EXTRA_PROBES, JOIN_SPAN),
        };
        let first = self.random.below(span);
        let probing = self.papers.probing(kind);
        // One probe more for the root of each further tree.
        probing.left = probing.left.saturating_add(1).max(count);
        self.step_papers_after(kind, first);
    }

    fn step_papers_after(&mut self, kind: PaperKind, span: Time) {
        if !core::mem::replace(&mut self.papers.probing(kind).is_timed, true) {
            self.wake_at(self.now + span, Timer::Paper(kind));
        }
    }

    fn go_below_root(&mut self, tree: PaperTree) {
        self.move_paper(tree, Edge::unmeasured(tree.root), Position::default());
        if let Some(paper) = self.papers.trees.get_mut(&tree) {
            paper.root_asks = u32::from(!tree.bulk);
        }
        if !tree.bulk {
            return self.send_probe(PaperKind::Latency, tree.root);
        }
        // A long probe of the root waits for those that are under way, and there may be none left.
        let after = around(&mut self.random, self.config.paper_period);
        let probing = self.papers.probing(PaperKind::Bandwidth);
        probing.left = probing.left.saturating_add(1);
        self.step_papers_after(PaperKind::Bandwidth, after);
    }

    /// Parents of which this holds may have taken this member for dead: they are told again that it
    /// is below them.
    pub(crate) fn attach_again(&mut self, may_have: impl Fn(MemberId) -> bool) {
        let is_meant = |edge: Edge| may_have(edge.parent) && self.view.is_alive(edge.parent);
        let trees = self.papers.trees.iter().filter(|(_, paper)| paper.edge.is_some_and(is_meant));
        let trees: Vec<PaperTree> = trees.map(|(tree, _)| *tree).collect();
        trees.into_iter().for_each(|tree| self.tell_parent(tree));
    }

    /// After a change of the membership members probe again, and orphans go back to the root.
    pub(crate) fn papers_changed(&mut self) {
        self.drop_dead_children();
        for kind in [PaperKind::Latency, PaperKind::Bandwidth] {
            let trees = self.papers.of(kind).map(|(tree, _)| tree);
            let below: Vec<PaperTree> = trees.filter(|tree| tree.root != self.me).collect();
            if below.is_empty() {
                continue;
            }
            let probing = self.papers.probing(kind);
            probing.left = probing.left.max(match kind {
                PaperKind::Latency => self.config.paper_probes,
                PaperKind::Bandwidth => EXTRA_PROBES,
            });
            if !probing.is_timed {
                let after = around(&mut self.random, self.config.paper_period);
                self.step_papers_after(kind, after);
            }
            for tree in below {
                let edge = self.papers.trees.get(&tree).and_then(|paper| paper.edge);
                let is_orphan = edge.is_some_and(|edge| !self.view.is_alive(edge.parent));
                if is_orphan && self.view.is_alive(tree.root) {
                    self.go_below_root(tree);
                }
            }
        }
    }

    /// In a tree for bandwidth the other children have a larger share then.
    fn drop_dead_children(&mut self) {
        let mut shared_anew = Vec::new();
        for (tree, paper) in &mut self.papers.trees {
            let before = paper.children.len();
            paper.children.retain(|child| self.view.is_alive(child.0));
            if tree.bulk && paper.children.len() < before {
                shared_anew.push(*tree);
            }
        }
        shared_anew.into_iter().for_each(|tree| self.tell_children(tree));
    }

    fn send_probe(&mut self, kind: PaperKind, to: MemberId) {
        let number = self.papers.probing(kind).begin(to, None, self.now);
        self.send_padding(kind, to, number, 1);
    }

    /// The short probe for a bandwidth has taken this long: a long one follows it.
    fn send_long_probe(&mut self, to: MemberId, short: Time) {
        let kind = PaperKind::Bandwidth;
        let number = self.papers.probing(kind).begin(to, Some(short), self.now);
        self.send_padding(kind, to, number, PROBE_BYTES);
    }

    fn send_padding(&mut self, kind: PaperKind, to: MemberId, number: u64, bytes: usize) {
        if self.papers.padding.is_empty() {
            self.papers.padding = Payload::from(alloc::vec![0; PROBE_BYTES]);
        }
        let padding = self.papers.padding.part(0, bytes);
        self.prober.sent += 1;
        self.send(to, Message::Probe { kind, number, padding });
    }

    /// One probe in a period, to a random member, and never a second one beside it: where cards are
    /// slow, probes would measure the queue of those before them, without end.
    pub(crate) fn paper_step(&mut self, kind: PaperKind) {
        let others: Vec<MemberId> = self.view.alive().filter(|member| *member != self.me).collect();
        let (now, view) = (self.now, &self.view);
        let probing = self.papers.probing(kind);
        probing.is_timed = false;
        if probing.left == 0 || self.phase != Phase::Joined || others.is_empty() {
            return;
        }
        if !probing.is_awaited(|member| view.is_alive(member), now) {
            probing.left -= 1;
            let root = self.papers.root_to_ask(self.me, kind, |member| view.is_alive(member));
            let any = others[self.random.below(others.len() as u64) as usize];
            self.send_probe(kind, root.unwrap_or(any));
            if kind == PaperKind::Bandwidth {
                self.join_trees();
            }
        }
        if self.papers.probing(kind).left > 0 {
            let after = around(&mut self.random, self.config.paper_period);
            self.step_papers_after(kind, after);
        }
    }

    /// After ten candidates the best is taken, in each tree for bandwidth that has no parent yet.
    fn join_trees(&mut self) {
        let trees = self.papers.of(PaperKind::Bandwidth);
        let is_joining =
            |(tree, paper): &(PaperTree, &Paper)| tree.root != self.me && paper.edge.is_none();
        let joining: Vec<PaperTree> = trees.filter(is_joining).map(|(tree, _)| tree).collect();
        for tree in joining {
            let Some(paper) = self.papers.trees.get_mut(&tree) else { continue };
            paper.join_left = paper.join_left.saturating_sub(1);
            if paper.join_left > 0 {
                continue;
            }
            let mut candidates = core::mem::take(&mut paper.candidates);
            candidates.retain(|candidate| self.view.is_alive(candidate.edge.parent));
            if let Some(Candidate { edge, position }) = best(candidates) {
                self.move_paper(tree, edge, position);
            }
        }
    }

    pub(crate) fn probed(&mut self, from: MemberId, kind: PaperKind, number: u64) {
        let positions = self.papers.positions(self.me, kind, number);
        self.send(from, Message::ProbeReply { kind, number, positions });
    }

    /// What one probe has measured is judged for the trees of all roots.
    pub(crate) fn probe_replied(
        &mut self,
        from: MemberId,
        kind: PaperKind,
        number: u64,
        positions: Vec<(MemberId, Position)>,
    ) {
        let now = self.now;
        let Some(timed) = self.papers.probing(kind).answered(number, from, now) else { return };
        let edge = match (kind, timed.short) {
            (PaperKind::Latency, _) => Edge::of_latency(from, timed.time),
            (PaperKind::Bandwidth, Some(short)) => Edge::of_bandwidth(from, short, timed.time),
            (PaperKind::Bandwidth, None) => return self.send_long_probe(from, timed.time),
        };
        let is_told = positions.iter().any(|(root, _)| *root == from);
        // A root that takes no part in its tree can be measured all the same.
        let own = (!is_told && kind == PaperKind::Latency).then(|| (from, Position::default()));
        for (root, position) in positions.into_iter().chain(own) {
            let tree = PaperTree { root, bulk: kind == PaperKind::Bandwidth };
            if root != self.me {
                self.judge(tree, Candidate { edge, position });
            }
        }
    }

    fn judge(&mut self, tree: PaperTree, candidate: Candidate) {
        let (me, from) = (self.me, candidate.edge.parent);
        let Some(paper) = self.papers.trees.get_mut(&tree) else { return };
        if let Some(mut edge) = paper.edge.filter(|edge| edge.parent == from) {
            let before = paper.position(tree.root, me);
            let time = edge.round_trip.into_iter().chain(candidate.edge.round_trip).min();
            edge.round_trip = time;
            edge.bandwidth = edge.bandwidth.max(candidate.edge.bandwidth);
            paper.edge = Some(edge);
            paper.above = candidate.position;
            if paper.position(tree.root, me) != before {
                self.tell_children(tree);
            }
            return;
        }
        if candidate.position.ancestors.contains(&me) {
            return;
        }
        let is_better = match tree.kind() {
            PaperKind::Latency => paper.is_nearer(tree.root, &candidate),
            PaperKind::Bandwidth if paper.edge.is_none() => {
                if candidate.estimate() > 0 {
                    paper.candidates.push(candidate);
                }
                return;
            }
            PaperKind::Bandwidth => candidate.estimate() > paper.estimate() / 100 * 103,
        };
        if is_better {
            self.move_paper(tree, candidate.edge, candidate.position);
        }
    }

    fn move_paper(&mut self, tree: PaperTree, edge: Edge, position: Position) {
        let own = self.view.names_of(self.me);
        let Some(paper) = self.papers.trees.get_mut(&tree) else { return };
        let former = paper.edge.replace(edge).map(|former| former.parent);
        paper.above = position;
        // This member is one of them now; the parent tells the same when it has heard of it.
        paper.above.children = paper.above.children.saturating_add(1);
        let names = Ranges::from(&paper.reach(&own));
        if let Some(former) = former.filter(|former| *former != edge.parent) {
            self.send(former, Message::Detach { tree });
        }
        self.send(edge.parent, Message::Attach { tree, names });
        self.tell_children(tree);
    }

    fn tell_children(&mut self, tree: PaperTree) {
        let Some(paper) = self.papers.trees.get(&tree) else { return };
        let position = paper.position(tree.root, self.me);
        let children: Vec<MemberId> = paper.children.iter().map(|child| child.0).collect();
        for child in children {
            self.send(child, Message::Above { tree, position: position.clone() });
        }
    }

    fn tell_parent(&mut self, tree: PaperTree) {
        let own = self.view.names_of(self.me);
        let Some(paper) = self.papers.trees.get(&tree) else { return };
        if let Some(edge) = paper.edge {
            let names = Ranges::from(&paper.reach(&own));
            self.send(edge.parent, Message::Attach { tree, names });
        }
    }

    pub(crate) fn attached(&mut self, from: MemberId, tree: PaperTree, names: &Ranges) {
        let Some(paper) = self.papers.trees.get_mut(&tree) else { return };
        let names = names.as_set().to_set();
        match paper.children.iter_mut().find(|child| child.0 == from) {
            Some(child) => child.1 = names,
            None => {
                paper.children.push((from, names));
                if tree.bulk {
                    // The others have a smaller share from now on.
                    self.tell_children(tree);
                } else {
                    let position = paper.position(tree.root, self.me);
                    self.send(from, Message::Above { tree, position });
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
        let me = self.me;
        let Some(paper) = self.papers.trees.get_mut(&tree) else { return };
        if paper.edge.is_none_or(|edge| edge.parent != from) {
            return;
        }
        if position.ancestors.contains(&me) {
            // Two moved below each other at once: this one goes back to the root.
            self.go_below_root(tree);
            return;
        }
        if paper.above != position {
            paper.above = position;
            self.tell_children(tree);
        }
    }
}
