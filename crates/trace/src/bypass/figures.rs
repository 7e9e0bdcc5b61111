//! What is known of the edges of the trees.

use alloc::collections::BTreeMap;

use sapwood_packet::Rank;

use crate::place::OTHERS;

/// Edges that are distinguished, at most.
pub const BYPASS_EDGES_MAX: usize = 4096;

/// Times of one kind, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BypassTime {
    /// How many there are.
    pub count: u64,
    /// All together.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl BypassTime {
    pub(super) fn add(&mut self, ns: u64) {
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The mean in nanoseconds; none where there are none.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a mean is not exact")]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }
}

/// What went over the edge from a child to its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BypassEdge {
    /// Reductions whose tree has this edge.
    pub instances: u64,
    /// Of these, those in which the child's part was the last that the parent lacked: the parent
    /// itself and its other children had come.
    pub last: u64,
    /// Those in which the parent had called before the part came.
    pub late: u64,
    /// Those in which the parent had left its call, too: what the bypass has spared it.
    pub bypassed: u64,
    /// How long after the parent's return these came.
    pub after_exit: BypassTime,
    /// How long after the part of the child before it, in order of arrival, where there is one.
    pub behind: BypassTime,
    /// How long the part lay there until the last one came.
    pub waited: BypassTime,
    /// From the moment when the child's place was folded to the part's arrival.
    pub up: BypassTime,
    /// From the moment when the result was there to the child's having read it, where all read it.
    pub down: BypassTime,
}

impl BypassEdge {
    fn merge(&mut self, other: &Self) {
        self.instances = self.instances.saturating_add(other.instances);
        self.last = self.last.saturating_add(other.last);
        self.late = self.late.saturating_add(other.late);
        self.bypassed = self.bypassed.saturating_add(other.bypassed);
        self.after_exit.merge(&other.after_exit);
        self.behind.merge(&other.behind);
        self.waited.merge(&other.waited);
        self.up.merge(&other.up);
        self.down.merge(&other.down);
    }
}

/// What is known of bypassed reductions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BypassFigures {
    /// Reductions of which every hop is known.
    pub instances: u64,
    /// Reductions of which some hops are not known; nothing of them counts.
    pub incomplete: u64,
    /// By parent and child in `MPI_COMM_WORLD`, whatever the communicator and the root;
    /// [`OTHERS`] twice for those that found no room.
    pub edges: BTreeMap<(Rank, Rank), BypassEdge>,
}

impl BypassFigures {
    /// Adds what is known of other reductions.
    pub fn merge(&mut self, other: &Self) {
        self.instances = self.instances.saturating_add(other.instances);
        self.incomplete = self.incomplete.saturating_add(other.incomplete);
        for (&(parent, child), one) in &other.edges {
            self.edge(parent, child).merge(one);
        }
    }

    pub(super) fn edge(&mut self, parent: Rank, child: Rank) -> &mut BypassEdge {
        let has_room = self.edges.len() < BYPASS_EDGES_MAX;
        let is_known = has_room || self.edges.contains_key(&(parent, child));
        let key = if is_known { (parent, child) } else { (OTHERS, OTHERS) };
        self.edges.entry(key).or_default()
    }
}
