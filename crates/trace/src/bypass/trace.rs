//! Hops of all ranks, put together by reduction as they come in.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use sapwood_packet::Rank;

use crate::bypass::figures::BypassFigures;
use crate::bypass_hop::{BypassHop, BypassHopKind};

/// Reductions that wait for hops, at most; for a further one the oldest is counted as incomplete.
const OPEN_MAX: usize = 1 << 14;
/// Hops that wait, at most: reductions of many ranks have more.
const HOPS_MAX: usize = 1 << 20;
/// Reductions that were given up and are known as such, at most.
const GIVEN_UP_MAX: usize = 1 << 14;

/// A reduction: its communicator, and its number on it.
type BypassKey = (u64, u32);

/// The hops of reductions, and the figures that follow.
#[derive(Clone, Debug, Default)]
pub struct BypassTrace {
    open: BTreeMap<BypassKey, Reduction>,
    hops: usize,
    /// How many reductions have begun, by which the oldest is known.
    begun: u64,
    order: BTreeMap<u64, BypassKey>,
    /// Those that were given up last, the oldest first: hops of theirs may come later.
    given_up: VecDeque<BypassKey>,
    /// The same ones.
    given_up_keys: BTreeSet<BypassKey>,
    figures: BypassFigures,
}

/// What is known of one reduction.
#[derive(Clone, Debug, Default)]
struct Reduction {
    begun: u64,
    size: usize,
    is_to_all: bool,
    hops: usize,
    places: BTreeMap<Rank, PlaceStamps>,
    arrivals: Vec<PartStamp>,
    /// When the result was there.
    published: Option<u64>,
}

/// When something happened at the place of a rank.
#[derive(Clone, Copy, Debug, Default)]
struct PlaceStamps {
    entered: Option<u64>,
    sent_up: Option<u64>,
    received_down: Option<u64>,
    exit: Option<u64>,
}

/// When the part of a child came to its parent.
#[derive(Clone, Copy, Debug)]
struct PartStamp {
    parent: Rank,
    child: Rank,
    time: u64,
    is_late: bool,
}

impl BypassTrace {
    /// Takes a hop; a reduction of which every hop is known is settled. A late hop of one that was
    /// given up opens it no more: that is counted already.
    pub fn take(&mut self, hop: &BypassHop) {
        let key = key_of(hop);
        if self.given_up_keys.contains(&key) {
            return;
        }
        let begun = self.begun;
        let reduction = self.open.entry(key).or_insert_with(|| Reduction {
            begun,
            size: usize::from(hop.size),
            ..Reduction::default()
        });
        if reduction.hops == 0 {
            self.order.insert(begun, key);
            self.begun += 1;
        }
        reduction.note(hop);
        self.hops += 1;
        if reduction.is_whole() {
            if let Some(reduction) = self.remove(key) {
                self.figures.settle(&reduction);
            }
        } else if self.open.len() > OPEN_MAX || self.hops > HOPS_MAX {
            self.give_up_oldest();
        }
    }

    fn remove(&mut self, key: BypassKey) -> Option<Reduction> {
        let reduction = self.open.remove(&key)?;
        self.order.remove(&reduction.begun);
        self.hops -= reduction.hops;
        Some(reduction)
    }

    fn give_up_oldest(&mut self) {
        let oldest = self.order.first_key_value().map(|(_, &key)| key);
        let Some(key) = oldest.filter(|&key| self.remove(key).is_some()) else { return };
        self.figures.incomplete += 1;
        self.given_up.push_back(key);
        self.given_up_keys.insert(key);
        if self.given_up.len() > GIVEN_UP_MAX
            && let Some(known) = self.given_up.pop_front()
        {
            self.given_up_keys.remove(&known);
        }
    }

    /// What has become known since this was asked before.
    pub(crate) fn take_figures(&mut self) -> BypassFigures {
        core::mem::take(&mut self.figures)
    }

    /// What has become known since it was taken out; reductions that wait for hops are not in it.
    #[must_use]
    pub const fn figures(&self) -> &BypassFigures {
        &self.figures
    }

    /// The same when no further hops come.
    #[must_use]
    pub fn close(mut self) -> BypassFigures {
        self.figures.incomplete += self.open.len() as u64;
        self.figures
    }
}

fn key_of(hop: &BypassHop) -> BypassKey {
    (hop.communicator, hop.instance)
}

/// Sums up the reductions of which every hop is among these; the hops of all others stay.
pub(crate) fn settle_whole(hops: &mut Vec<BypassHop>) -> BypassFigures {
    let mut figures = BypassFigures::default();
    hops.sort_by_key(key_of);
    let mut others = Vec::new();
    for own in hops.chunk_by(|one, next| key_of(one) == key_of(next)) {
        let size = own.first().map_or(0, |hop| usize::from(hop.size));
        let mut reduction = Reduction { size, ..Reduction::default() };
        if own.len() >= least_hops(size) {
            own.iter().for_each(|hop| reduction.note(hop));
        }
        if reduction.is_whole() {
            figures.settle(&reduction);
        } else {
            others.extend_from_slice(own);
        }
    }
    *hops = others;
    figures
}

/// Of each rank four but for the parts, of which the root's own is none.
const fn least_hops(size: usize) -> usize {
    (4 * size).saturating_sub(1)
}

impl Reduction {
    fn note(&mut self, hop: &BypassHop) {
        self.hops += 1;
        self.is_to_all |= hop.is_to_all;
        let place = self.places.entry(hop.rank).or_default();
        match hop.kind {
            BypassHopKind::Entered => place.entered = Some(hop.time),
            BypassHopKind::SentUp => {
                place.sent_up = Some(hop.time);
                if hop.is_root {
                    self.published = Some(hop.time);
                }
            }
            BypassHopKind::ReceivedDown => place.received_down = Some(hop.time),
            BypassHopKind::Exit => place.exit = Some(hop.time),
            BypassHopKind::Arrived => self.arrivals.push(PartStamp {
                parent: hop.rank,
                child: hop.child,
                time: hop.time,
                is_late: hop.is_late,
            }),
        }
    }

    /// Whether every hop is known: each rank has called, sent up and left, and over each edge a
    /// part has come.
    fn is_whole(&self) -> bool {
        // Four of each rank but for the parts, of which the root's own is none.
        let of_rank = if self.is_to_all { 5 } else { 4 };
        if self.hops + 1 < self.size * of_rank || self.places.len() != self.size {
            return false;
        }
        let is_known = |place: &PlaceStamps| {
            let has_own = place.entered.is_some() && place.sent_up.is_some();
            has_own && place.exit.is_some() && place.received_down.is_some() == self.is_to_all
        };
        self.arrivals.len() + 1 == self.size
            && self.published.is_some()
            && self.places.values().all(is_known)
    }
}

impl BypassFigures {
    /// Adds a reduction of which every hop is known.
    fn settle(&mut self, reduction: &Reduction) {
        self.instances += 1;
        let mut by_parent: BTreeMap<Rank, Vec<PartStamp>> = BTreeMap::new();
        for part in &reduction.arrivals {
            by_parent.entry(part.parent).or_default().push(*part);
        }
        for (parent, mut parts) in by_parent {
            parts.sort_by_key(|part| (part.time, part.child));
            self.settle_place(reduction, parent, &parts);
        }
    }

    /// Adds what came to one place, in order of arrival.
    fn settle_place(&mut self, reduction: &Reduction, parent: Rank, parts: &[PartStamp]) {
        let stamps = |rank| reduction.places.get(&rank).copied().unwrap_or_default();
        let PlaceStamps { entered, exit, .. } = stamps(parent);
        let last_part = parts.last().map(|part| part.time);
        let own = entered.unwrap_or_default();
        let complete = last_part.unwrap_or_default().max(own);
        let mut before: Option<u64> = None;
        for (number, part) in parts.iter().enumerate() {
            let child = stamps(part.child);
            let edge = self.edge(parent, part.child);
            edge.instances += 1;
            edge.last += u64::from(number + 1 == parts.len() && part.time > own);
            edge.late += u64::from(part.is_late);
            if let Some(after) = exit.and_then(|exit| part.time.checked_sub(exit)) {
                edge.bypassed += 1;
                edge.after_exit.add(after);
            }
            if let Some(before) = before {
                edge.behind.add(part.time.saturating_sub(before));
            }
            edge.waited.add(complete - part.time);
            if let Some(sent) = child.sent_up {
                edge.up.add(part.time.saturating_sub(sent));
            }
            if let (Some(there), Some(read)) = (reduction.published, child.received_down) {
                edge.down.add(read.saturating_sub(there));
            }
            before = Some(part.time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bypass::figures::{BypassEdge, BypassTime};

    const COMM: u64 = 9;

    fn hop(kind: BypassHopKind, rank: Rank, time: u64) -> BypassHop {
        BypassHop {
            time,
            communicator: COMM,
            instance: 1,
            kind,
            size: 4,
            rank,
            child: rank,
            is_late: false,
            is_to_all: false,
            is_root: kind == BypassHopKind::SentUp && rank == 0,
        }
    }

    fn arrived_late(parent: Rank, child: Rank, time: u64) -> BypassHop {
        BypassHop { child, is_late: true, ..hop(BypassHopKind::Arrived, parent, time) }
    }

    /// The tree of four ranks, 0 <- 1, 0 <- 2 <- 3, in which rank 3 calls long after the others.
    fn late_leaf() -> Vec<BypassHop> {
        use BypassHopKind::{Entered, Exit, SentUp};
        [
            hop(Entered, 0, 100),
            hop(Entered, 1, 110),
            hop(SentUp, 1, 112),
            arrived_late(0, 1, 115),
            hop(Exit, 1, 120),
            hop(Entered, 2, 130),
            hop(Exit, 2, 135),
            // By rank 3, which goes on to the places of ranks 2 and 0.
            hop(Entered, 3, 1000),
            hop(SentUp, 3, 1002),
            arrived_late(2, 3, 1005),
            hop(SentUp, 2, 1010),
            arrived_late(0, 2, 1020),
            hop(SentUp, 0, 1030),
            hop(Exit, 3, 1040),
            hop(Exit, 0, 1050),
        ]
        .to_vec()
    }

    fn once(ns: u64) -> BypassTime {
        BypassTime { count: 1, sum_ns: ns, max_ns: ns }
    }

    #[test]
    fn a_part_that_comes_after_its_parent_has_left_is_bypassed() {
        let mut trace = BypassTrace::default();
        late_leaf().iter().for_each(|hop| trace.take(hop));
        let figures = trace.close();
        assert_eq!((figures.instances, figures.incomplete), (1, 0));
        let one = BypassEdge { instances: 1, late: 1, ..BypassEdge::default() };
        let expected = [
            // The root waits: nothing is bypassed there.
            ((0, 1), BypassEdge { waited: once(905), up: once(3), ..one }),
            (
                (0, 2),
                BypassEdge { last: 1, behind: once(905), waited: once(0), up: once(10), ..one },
            ),
            (
                (2, 3),
                BypassEdge {
                    last: 1,
                    bypassed: 1,
                    after_exit: once(870),
                    waited: once(0),
                    up: once(3),
                    ..one
                },
            ),
        ];
        assert_eq!(figures.edges, BTreeMap::from(expected));
    }

    #[test]
    fn hops_may_come_in_any_order_and_in_any_packet() {
        let mut forwards = BypassTrace::default();
        let mut backwards = BypassTrace::default();
        late_leaf().iter().for_each(|hop| forwards.take(hop));
        late_leaf().iter().rev().for_each(|hop| backwards.take(hop));
        assert_eq!(forwards.close(), backwards.close());
    }

    #[test]
    fn whole_reductions_are_summed_up_and_the_hops_of_others_stay() {
        let of = |instance| late_leaf().into_iter().map(move |hop| BypassHop { instance, ..hop });
        let mut hops: Vec<BypassHop> = of(3).chain(of(1)).chain(of(2)).collect();
        let missing = hops.remove(20);
        assert_eq!(missing.instance, 1);
        let mut all = BypassTrace::default();
        hops.iter().chain([&missing]).for_each(|hop| all.take(hop));
        let mut sums = settle_whole(&mut hops);
        assert_eq!((sums.instances, sums.incomplete, hops.len()), (2, 0, late_leaf().len() - 1));
        assert!(hops.iter().all(|hop| hop.instance == 1));
        // What is missing comes with another packet.
        let mut rest = BypassTrace::default();
        hops.iter().chain([&missing]).for_each(|hop| rest.take(hop));
        sums.merge(&rest.take_figures());
        assert_eq!((rest.close(), sums), (BypassFigures::default(), all.close()));
    }

    #[test]
    fn a_reduction_of_which_a_hop_is_missing_is_counted_and_in_nothing() {
        for missing in 0..late_leaf().len() {
            let mut trace = BypassTrace::default();
            let mut hops = late_leaf();
            hops.remove(missing);
            hops.iter().for_each(|hop| trace.take(hop));
            assert_eq!(trace.figures().incomplete, 0, "it may still come");
            let figures = trace.close();
            assert_eq!((figures.instances, figures.incomplete), (0, 1), "{missing}");
            assert!(figures.edges.is_empty());
        }
    }

    #[test]
    fn a_parent_that_comes_last_has_no_last_child_and_what_came_waits_for_it() {
        let mut hops = late_leaf();
        hops[0].time = 1025;
        for hop in &mut hops {
            hop.is_late &= hop.rank != 0;
        }
        let mut trace = BypassTrace::default();
        hops.iter().for_each(|hop| trace.take(hop));
        let figures = trace.close();
        let edge = |child| figures.edges[&(0, child)];
        assert_eq!((edge(1).last, edge(2).last, edge(2).late), (0, 0, 0));
        assert_eq!((edge(1).waited, edge(2).waited), (once(910), once(5)));
    }

    #[test]
    fn a_result_that_all_read_has_a_way_down() {
        let mut hops = late_leaf();
        hops.extend(
            (0..4).map(|rank| hop(BypassHopKind::ReceivedDown, rank, 1031 + 7 * u64::from(rank))),
        );
        hops.iter_mut().for_each(|hop| hop.is_to_all = true);
        let mut trace = BypassTrace::default();
        hops.iter().for_each(|hop| trace.take(hop));
        let figures = trace.close();
        assert_eq!(figures.instances, 1);
        let down = |edge| figures.edges[&edge].down;
        assert_eq!([down((0, 1)), down((0, 2)), down((2, 3))], [once(8), once(15), once(22)]);
    }

    #[test]
    fn what_waits_for_hops_is_bounded_and_the_oldest_is_given_up() {
        let mut trace = BypassTrace::default();
        let beyond = 3;
        for instance in 0..(OPEN_MAX + beyond) as u32 {
            trace.take(&BypassHop { instance, ..hop(BypassHopKind::Entered, 0, 1) });
        }
        assert_eq!(
            (trace.open.len(), trace.order.len(), trace.hops),
            (OPEN_MAX, OPEN_MAX, OPEN_MAX)
        );
        assert_eq!(trace.figures().incomplete, beyond as u64);
        assert!(!trace.open.contains_key(&(COMM, 0)) && trace.open.contains_key(&(COMM, 3)));
        // Its later hops do not have others given up, and it is counted once.
        trace.take(&BypassHop { instance: 0, ..hop(BypassHopKind::Exit, 0, 2) });
        assert!(!trace.open.contains_key(&(COMM, 0)) && trace.open.contains_key(&(COMM, 3)));
        assert_eq!(trace.figures().incomplete, beyond as u64);
    }
}
