//! Labels and delegation: far clusters first, each by the shortest path; inside a cluster the
//! greedy tree of the LogP model, which is optimal for equal members (Karp, Sahay, Santos and
//! Schauser, SPAA'93).
//!
//! The metric is the time of arrival: a sender's place in the queue of its parent counts as much as
//! the distance. Each receiver splits its part anew, from its own cluster and table.

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{Share, Terrain};
use crate::identity::{MILLISECOND, MemberId, Time};

/// How many members of a far cluster the root sends to itself.
pub(super) const GATES: usize = 2;
/// A round trip that is assumed where none was measured.
pub(super) const UNKNOWN: Time = 100 * MILLISECOND;
/// A cluster with fewer members has one gate: a second would save less than it costs.
pub(super) const GATED_MEMBERS_MIN: usize = 8;

/// Splits members, who are without the splitting one.
pub(super) fn delegate(terrain: &Terrain<'_>, root: MemberId, members: &[MemberId]) -> Vec<Share> {
    let clusters = terrain.clusters;
    let here = clusters.label(terrain.me).unwrap_or(0);
    let mut cells: BTreeMap<u16, Vec<MemberId>> = BTreeMap::new();
    for &member in members {
        cells.entry(clusters.label(member).unwrap_or(here)).or_default().push(member);
    }
    let near = cells.remove(&here).unwrap_or_default();
    let mut shares = Vec::new();
    // A second copy of a long value over the wide area costs more than it saves.
    let is_short = terrain.busy < 4 * terrain.overhead;
    let gates = if terrain.me == root && is_short { GATES } else { 1 };
    for (label, beyond) in far_first(terrain, here, &cells) {
        let cell = &cells[&label];
        let gates = if cell.len() < GATED_MEMBERS_MIN { 1 } else { gates };
        for gate in 0..gates {
            let mut share: Share = cell.iter().skip(gate).step_by(gates).copied().collect();
            if gate == 0 {
                share.extend(beyond.iter().flat_map(|label| cells[label].iter()));
            }
            shares.push(share);
        }
    }
    let round_trip = clusters.round_trip(here, here).unwrap_or(4 * terrain.overhead);
    let wire = (round_trip / 2).saturating_sub(terrain.overhead);
    shares.extend(greedy(&near, terrain.busy, wire));
    shares
}

/// The clusters next to this one on the shortest paths, the one with the farthest end first, each
/// with those beyond it.
pub(super) fn far_first(
    terrain: &Terrain<'_>,
    here: u16,
    cells: &BTreeMap<u16, Vec<MemberId>>,
) -> Vec<(u16, Vec<u16>)> {
    let hop = |from: u16, to: u16| {
        let round_trip = terrain.clusters.round_trip(from, to).unwrap_or(UNKNOWN);
        round_trip / 2 + 2 * terrain.overhead
    };
    // For each cluster that is reached: its distance, and the first cluster on the way.
    let mut reached: BTreeMap<u16, (Time, u16)> = BTreeMap::from([(here, (0, here))]);
    while reached.len() <= cells.len() {
        let next = cells
            .keys()
            .filter(|label| !reached.contains_key(label))
            .flat_map(|&to| {
                let steps =
                    reached.iter().map(move |(&from, &(far, first))| (to, from, far, first));
                steps.map(|(to, from, far, first)| (far + hop(from, to), to, from, first))
            })
            .min();
        let Some((distance, to, from, first)) = next else { break };
        reached.insert(to, (distance, if from == here { to } else { first }));
    }
    reached.remove(&here);
    let mut direct: BTreeMap<u16, (Time, Vec<u16>)> = BTreeMap::new();
    for (&label, &(distance, first)) in &reached {
        let entry = direct.entry(first).or_default();
        entry.0 = entry.0.max(distance);
        if label != first {
            entry.1.push(label);
        }
    }
    let mut order: Vec<(u16, (Time, Vec<u16>))> = direct.into_iter().collect();
    order.sort_by_key(|(label, (distance, _))| (Reverse(*distance), *label));
    order.into_iter().map(|(label, (_, beyond))| (label, beyond)).collect()
}

/// The shares of the children of one member in the greedy tree: the member that is free
/// first sends next.
fn greedy(members: &[MemberId], busy: Time, wire: Time) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    // When a member is free, in which order it came, and the share that it belongs to.
    let mut free: BinaryHeap<Reverse<(Time, usize, Option<usize>)>> = BinaryHeap::new();
    free.push(Reverse((0, 0, None)));
    for (index, &member) in members.iter().enumerate() {
        let Some(Reverse((time, order, share))) = free.pop() else { break };
        let share_index = share.unwrap_or_else(|| {
            shares.push(Share::new());
            shares.len() - 1
        });
        shares[share_index].push(member);
        free.push(Reverse((time + busy, order, share)));
        free.push(Reverse((time + busy + wire, index + 1, Some(share_index))));
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greedy_tree_is_flat_where_the_wire_is_long_and_deep_where_it_is_short() {
        let members: Vec<MemberId> = (1..=16).map(MemberId).collect();
        assert_eq!(greedy(&members, 1, 999).len(), 16);
        let deep = greedy(&members, 40, 0);
        assert!(deep.len() < 6, "{deep:?}");
        assert_eq!(deep.concat().len(), 16);
    }
}
