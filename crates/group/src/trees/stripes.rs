//! Interior-disjoint trees for bulk: each carries its part of the segments, and each member is
//! interior in at most one of them (SplitStream, Castro and others, SOSP'03; two trees: Sanders,
//! Speck and Träff, Parallel Computing 35, 2009).
//!
//! Each tree enters a cluster once, from a member of the cluster before it that has a slot left, so
//! that the value crosses each wide-area link once in all, over as many connections as there are
//! trees.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::Terrain;
use super::cells::Cells;
use crate::identity::MemberId;

type Children = BTreeMap<MemberId, Vec<MemberId>>;

/// For each tree the children of each interior member.
pub(super) fn interior_disjoint(
    terrain: &Terrain<'_>,
    count: usize,
    members: &[MemberId],
) -> Vec<Children> {
    let mut trees: Vec<Children> = alloc::vec![Children::new(); count];
    let mut previous = alloc::vec![terrain.me; count];
    for cell in in_turn(terrain, members) {
        let parts: Vec<Vec<MemberId>> = (0..count)
            .map(|tree| cell.iter().skip(tree).step_by(count).copied().collect())
            .collect();
        for (index, tree) in trees.iter_mut().enumerate() {
            let order = heap_order(&parts, index);
            for (place, &member) in order.iter().enumerate() {
                let first = (count * place + 1).min(order.len());
                let last = (count * place + count + 1).min(order.len());
                if first < last {
                    tree.entry(member).or_default().extend(&order[first..last]);
                }
            }
            tree.entry(previous[index]).or_default().push(order[0]);
        }
        previous = with_slots(&cell, &trees, count);
    }
    trees
}

/// A tree's interior members, then one of each other class that may have a slot left, then all.
fn heap_order(parts: &[Vec<MemberId>], index: usize) -> Vec<MemberId> {
    let others = (1..parts.len()).map(|offset| &parts[(index + offset) % parts.len()]);
    let mut order = parts[index].clone();
    order.extend(others.clone().filter_map(|part| part.last()));
    for part in others {
        order.extend(part.iter().take(part.len().saturating_sub(1)));
    }
    order
}

/// The members from which the next cluster is entered, one for each tree.
fn with_slots(cell: &[MemberId], trees: &[Children], count: usize) -> Vec<MemberId> {
    let mut slots = Vec::new();
    for &member in cell {
        let used: usize = trees.iter().map(|tree| tree.get(&member).map_or(0, Vec::len)).sum();
        slots.extend(core::iter::repeat_n(member, count.saturating_sub(used)));
    }
    // Where the slots do not suffice, different members take one more each.
    let more: BTreeSet<MemberId> = cell.iter().rev().copied().collect();
    slots.extend(more.into_iter().rev());
    (0..count).map(|tree| slots[tree % slots.len()]).collect()
}

/// The members by cluster: the own one, then the others, nearest first.
fn in_turn(terrain: &Terrain<'_>, members: &[MemberId]) -> Vec<Vec<MemberId>> {
    let mut cells: Cells<Vec<MemberId>> = terrain.cells(members.iter().copied(), Vec::push);
    let order = cells.nearest_first(terrain);
    let far = order.iter().filter_map(|label| cells.far.remove(label));
    let own = Some(cells.near).filter(|near| !near.is_empty());
    own.into_iter().chain(far).collect()
}
