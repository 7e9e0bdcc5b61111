//! Members by cluster, and what the table of clusters says of a split: one definition for the trees
//! and for the estimates of them.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Terrain;
use crate::identity::{MILLISECOND, MemberId, Time};

/// How many members of a far cluster the root sends to itself.
const GATES: usize = 2;
/// A cluster with fewer members has one gate: a second would save less than it costs.
const GATED_MEMBERS_MIN: usize = 8;
/// A round trip that is assumed where none was measured.
const UNKNOWN: Time = 100 * MILLISECOND;

/// Members by cluster, without the splitting one: for each cluster their list, or their count.
#[derive(Debug)]
pub(super) struct Cells<T> {
    /// The cluster of the splitting member.
    pub(super) here: u16,
    /// Its other members.
    pub(super) near: T,
    /// The members of the other clusters.
    pub(super) far: BTreeMap<u16, T>,
}

impl<T> Cells<T> {
    /// The other clusters, nearest first, and last those at no known distance.
    pub(super) fn nearest_first(&self, terrain: &Terrain<'_>) -> Vec<u16> {
        let mut order: Vec<u16> = self.far.keys().copied().collect();
        order.sort_by_key(|&label| {
            (terrain.clusters.round_trip(self.here, label).unwrap_or(Time::MAX), label)
        });
        order
    }
}

impl Terrain<'_> {
    /// Members by cluster. A member whose cluster is not known counts to the own cluster.
    pub(super) fn cells<T: Default>(
        &self,
        members: impl Iterator<Item = MemberId>,
        mut add: impl FnMut(&mut T, MemberId),
    ) -> Cells<T> {
        let here = self.clusters.label(self.me).unwrap_or(0);
        let mut far: BTreeMap<u16, T> = BTreeMap::new();
        for member in members {
            let label = self.clusters.label(member).unwrap_or(here);
            add(far.entry(label).or_default(), member);
        }
        let near = far.remove(&here).unwrap_or_default();
        Cells { here, near, far }
    }

    /// The wire of a cluster: what is left of half a round trip without the work of the sender.
    pub(super) fn wire(&self, label: u16) -> Time {
        let round_trip = self.clusters.round_trip(label, label).unwrap_or(4 * self.overhead);
        (round_trip / 2).saturating_sub(self.overhead)
    }

    /// Half a round trip between two clusters.
    pub(super) fn half_trip(&self, from: u16, to: u16) -> Time {
        self.clusters.round_trip(from, to).unwrap_or(UNKNOWN) / 2
    }

    /// To how many members of a cluster of this size the root sends itself; any other member sends
    /// to one. A second copy of a long value over the wide area costs more than it saves.
    pub(super) fn copies_of_root(&self, members: usize) -> usize {
        let is_short = self.busy < 4 * self.overhead;
        if is_short && members >= GATED_MEMBERS_MIN { GATES } else { 1 }
    }
}
