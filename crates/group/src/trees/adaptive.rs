//! Labels and delegation: far clusters first, each by the shortest path; inside a cluster the
//! greedy tree of the LogP model, which is optimal for equal members (Karp, Sahay, Santos and
//! Schauser, SPAA'93).
//!
//! The metric is the time of arrival: a sender's place in the queue of its parent counts as much as
//! the distance. Each receiver splits its part anew, from its own cluster and table.

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::cells::Cells;
use super::{Share, Terrain};
use crate::identity::{MemberId, Time};

/// Splits members; the splitting one is not among them.
pub(super) fn delegate(terrain: &Terrain<'_>, root: MemberId, members: &[MemberId]) -> Vec<Share> {
    let cells: Cells<Vec<MemberId>> = terrain.cells(members.iter().copied(), Vec::push);
    let mut shares = Vec::new();
    for (label, beyond) in far_first(terrain, &cells) {
        let cell = &cells.far[&label];
        let gates = if terrain.me == root { terrain.copies_of_root(cell.len()) } else { 1 };
        for gate in 0..gates {
            let mut share: Share = cell.iter().skip(gate).step_by(gates).copied().collect();
            if gate == 0 {
                share.extend(beyond.iter().flat_map(|label| cells.far[label].iter()));
            }
            shares.push(share);
        }
    }
    shares.extend(greedy(&cells.near, terrain.busy, terrain.wire(cells.here)));
    shares
}

/// The clusters next to this one on the shortest paths, the one with the farthest end first, each
/// with those beyond it.
pub(super) fn far_first<T>(terrain: &Terrain<'_>, cells: &Cells<T>) -> Vec<(u16, Vec<u16>)> {
    let here = cells.here;
    let hop = |from: u16, to: u16| terrain.half_trip(from, to) + 2 * terrain.overhead;
    // For each cluster that is reached: its distance, and the first cluster on the way.
    let mut reached: BTreeMap<u16, (Time, u16)> = BTreeMap::from([(here, (0, here))]);
    while reached.len() <= cells.far.len() {
        let next = cells
            .far
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

/// One send in the greedy tree below a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GreedySend {
    /// The index of the member that sends; none if it is the head.
    pub(super) parent: Option<usize>,
    /// When the receiver has the value.
    pub(super) arrival: Time,
    /// The edges between the receiver and the head.
    pub(super) depth: u64,
}

/// The sends to `count` members below a head, in the order of their indexes: the member that is
/// free first sends next.
pub(super) fn greedy_sends(
    count: usize,
    busy: Time,
    wire: Time,
) -> impl Iterator<Item = GreedySend> {
    // When a member is free, in which order it came, and how deep it is.
    let mut free: BinaryHeap<Reverse<(Time, usize, u64)>> = BinaryHeap::new();
    free.push(Reverse((0, 0, 0)));
    (0..count).map_while(move |index| {
        let Reverse((time, order, depth)) = free.pop()?;
        let sent = time.saturating_add(busy);
        let arrival = sent.saturating_add(wire);
        free.push(Reverse((sent, order, depth)));
        free.push(Reverse((arrival, index + 1, depth + 1)));
        Some(GreedySend { parent: order.checked_sub(1), arrival, depth: depth + 1 })
    })
}

/// The shares of the children of one member in the greedy tree.
fn greedy(members: &[MemberId], busy: Time, wire: Time) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    // The index of the share that each member belongs to.
    let mut share_of: Vec<usize> = Vec::new();
    for (&member, send) in members.iter().zip(greedy_sends(members.len(), busy, wire)) {
        let share = send.parent.map_or(shares.len(), |parent| share_of[parent]);
        if share == shares.len() {
            shares.push(Share::new());
        }
        shares[share].push(member);
        share_of.push(share);
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
