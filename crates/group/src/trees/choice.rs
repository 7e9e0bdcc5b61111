//! Whether a value goes down the latency tree or, in stripes, down the bandwidth trees: by what
//! each would take, from the measured costs and distances; by its length alone while no costs are
//! measured.
//!
//! The estimates are those of the LogP model with lengths (Alexandrov and others, SPAA'95): a
//! sender is busy with a message for its work and its bytes. They count members by cluster and name
//! none, so that an estimate costs far less than a tree.

use alloc::vec::Vec;
use core::fmt;

use sapwood_packet::{RankSet, RankSetRef};
use serde::{Deserialize, Serialize};

use super::Terrain;
use super::adaptive::{far_first, greedy_sends};
use super::cells::Cells;
use crate::identity::{MemberId, Time};
use crate::measure::NearCosts;

/// How a value goes down from its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// By how many bandwidth trees; by the latency tree if none are.
    pub stripes: Option<u8>,
    /// Why so.
    pub why: ChoiceReason,
}

/// Why a value goes by the latency tree or by the bandwidth trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChoiceReason {
    /// It is so short that no estimate is made.
    Short {
        /// From this length on estimates are made, in bytes.
        bytes: u64,
    },
    /// No costs are measured: from a set length on it goes by the bandwidth trees.
    Length {
        /// That length, in bytes.
        bytes: u64,
    },
    /// The way that ends first.
    Estimate(Estimate),
}

/// What a value would take by each way, and the figures from which that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// Until the last member has it by the latency tree, in nanoseconds.
    pub latency_tree: Time,
    /// The same by the bandwidth trees.
    pub bandwidth_trees: Time,
    /// The work of a message and the time of a byte inside of clusters.
    pub near: NearCosts,
    /// The time of a byte between clusters, in picoseconds, where it was measured.
    pub far_ps: Option<u64>,
    /// The longest measured round trip, in nanoseconds.
    pub round_trip: Time,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stripes {
            Some(stripes) => write!(f, "{stripes} bandwidth trees: ")?,
            None => f.write_str("the latency tree: ")?,
        }
        let estimate = match &self.why {
            ChoiceReason::Short { bytes } => return write!(f, "shorter than {bytes} bytes"),
            ChoiceReason::Length { bytes } => {
                let side = if self.stripes.is_some() { "at least" } else { "shorter than" };
                return write!(f, "{side} {bytes} bytes, and no costs are measured");
            }
            ChoiceReason::Estimate(estimate) => estimate,
        };
        let ms = |time: Time| time as f64 / 1e6;
        write!(
            f,
            "{:.3} ms by the latency tree, {:.3} ms by the bandwidth trees, from {:.1} us a \
             message, {:.3} ns a byte",
            ms(estimate.latency_tree),
            ms(estimate.bandwidth_trees),
            estimate.near.work as f64 / 1e3,
            estimate.near.byte_ps as f64 / 1e3,
        )?;
        if let Some(far_ps) = estimate.far_ps {
            write!(f, " ({:.3} between clusters)", far_ps as f64 / 1e3)?;
        }
        write!(f, ", round trips up to {:.3} ms", ms(estimate.round_trip))
    }
}

/// What a choice was made from, besides the configuration of its member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChoiceBasis {
    /// The version of the view.
    pub(crate) view: u64,
    /// The version of the table of clusters, and the member that computed it.
    pub(crate) table: u64,
    pub(crate) author: MemberId,
    pub(crate) root: MemberId,
    pub(crate) bytes: u64,
    pub(crate) targets: RankSet,
}

/// The last choice: an estimate looks at all members, and programs repeat their calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastChoice(Option<(ChoiceBasis, Choice)>);

impl LastChoice {
    /// The choice, if it was made from this.
    pub(crate) fn of(&self, basis: &ChoiceBasis) -> Option<Choice> {
        self.0.as_ref().filter(|last| last.0 == *basis).map(|last| last.1)
    }

    /// Keeps a choice in place of the last one.
    pub(crate) fn keep(&mut self, basis: ChoiceBasis, choice: Choice) {
        self.0 = Some((basis, choice));
    }
}

/// A value as it would be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel {
    pub(crate) bytes: u64,
    pub(crate) stripes: u8,
    /// The length of its segments down the latency tree; its own if it is not cut.
    pub(crate) whole_segment_bytes: u64,
    /// The same down the bandwidth trees.
    pub(crate) stripe_segment_bytes: u64,
}

/// What messages and bytes cost, and the value.
struct Sending {
    near: NearCosts,
    far_ps: u64,
    bytes: u64,
    segment_bytes: u64,
}

impl Sending {
    fn segments(&self) -> u64 {
        self.bytes.div_ceil(self.segment_bytes.max(1)).max(1)
    }

    /// How long a sender is busy with one segment.
    fn segment(&self) -> Time {
        self.near.busy(self.segment_bytes)
    }

    /// How much longer bytes take to another cluster than the sender is busy with them.
    fn far_excess(&self, bytes: u64) -> Time {
        let excess_ps = self.far_ps.saturating_sub(self.near.byte_ps);
        crate::measure::span(bytes, excess_ps)
    }
}

/// How many members each cluster has.
type Counts = Cells<usize>;

impl Counts {
    /// How many members another cluster has.
    fn members(&self, label: u16) -> usize {
        self.far.get(&label).copied().unwrap_or(0)
    }
}

/// A cluster to which the root sends itself: to how many of its members, and the clusters that are
/// reached through it.
struct Gate {
    label: u16,
    beyond: Vec<u16>,
    copies: usize,
}

/// The greedy tree in a cluster: when its last member has the value, how many children its head
/// has, and how deep it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reach {
    time: Time,
    children: u64,
    depth: u64,
}

impl Terrain<'_> {
    /// What a value takes by each way from the member of this terrain. A connection between
    /// clusters is as fast as those inside of them where its own costs are not measured.
    pub(crate) fn estimate(
        &self,
        near: NearCosts,
        measured_far_ps: Option<u64>,
        parcel: Parcel,
        targets: RankSetRef<'_>,
    ) -> Estimate {
        let far_ps = measured_far_ps.unwrap_or(near.byte_ps);
        let by = |segment_bytes| Sending { near, far_ps, bytes: parcel.bytes, segment_bytes };
        let owners = self.view.owners(targets).0;
        let others = owners.iter().map(|entry| entry.0).filter(|&member| member != self.me);
        let cells: Counts = self.cells(others, |count: &mut usize, _| *count += 1);
        Estimate {
            latency_tree: self.latency_tree(&by(parcel.whole_segment_bytes), &cells),
            bandwidth_trees: self.bandwidth_trees(
                &by(parcel.stripe_segment_bytes),
                &cells,
                parcel.stripes,
            ),
            near,
            far_ps: measured_far_ps,
            round_trip: self.clusters.longest(),
        }
    }

    /// As the adaptive rule splits: far clusters first, then the own one.
    fn latency_tree(&self, sending: &Sending, cells: &Counts) -> Time {
        let gates = self.gates(cells);
        if sending.segments() == 1 {
            self.passed_on_whole(sending, cells, &gates)
        } else {
            self.passed_on_in_segments(sending, cells, &gates)
        }
    }

    /// The clusters to which the root sends itself.
    fn gates(&self, cells: &Counts) -> Vec<Gate> {
        let gate = |(label, beyond): (u16, Vec<u16>)| {
            let copies = self.copies_of_root(cells.members(label));
            Gate { label, beyond, copies }
        };
        far_first(self, cells).into_iter().map(gate).collect()
    }

    fn reach(&self, label: u16, members: usize) -> Reach {
        greedy_reach(members, self.busy, self.wire(label))
    }

    /// Each member has the whole value before it sends it on.
    fn passed_on_whole(&self, sending: &Sending, cells: &Counts, gates: &[Gate]) -> Time {
        let excess = sending.far_excess(sending.bytes);
        let sends = |count: usize| self.busy.saturating_mul(count as u64);
        let (mut sent, mut end) = (0, 0);
        for gate in gates {
            sent += gate.copies;
            let hop = self.half_trip(cells.here, gate.label).saturating_add(excess);
            let arrival = sends(sent).saturating_add(hop);
            let share = cells.members(gate.label).div_ceil(gate.copies).saturating_sub(1);
            let own = sends(gate.beyond.len()).saturating_add(self.reach(gate.label, share).time);
            end = end.max(arrival.saturating_add(own));
            for (place, &next) in (1..).zip(&gate.beyond) {
                let hop = self.half_trip(gate.label, next).saturating_add(excess);
                let below = self.reach(next, cells.members(next).saturating_sub(1)).time;
                let after = sends(place).saturating_add(hop).saturating_add(below);
                end = end.max(arrival.saturating_add(after));
            }
        }
        end.max(sends(sent).saturating_add(self.reach(cells.here, cells.near).time))
    }

    /// Segments are passed on as they come: what the busiest sender sends is the longest part.
    fn passed_on_in_segments(&self, sending: &Sending, cells: &Counts, gates: &[Gate]) -> Time {
        let (segment, count) = (sending.segment(), sending.segments());
        let sends = |children: u64| children.saturating_mul(count).saturating_mul(segment);
        let below = |label: u16, reach: Reach| {
            reach.depth.saturating_mul(self.wire(label).saturating_add(segment))
        };
        let near = self.reach(cells.here, cells.near);
        let copies: u64 = gates.iter().map(|gate| gate.copies as u64).sum();
        let from_root = sends(copies + near.children);
        let by_stream = crate::measure::span(sending.bytes, sending.far_ps);
        let mut end = from_root.saturating_add(below(cells.here, near));
        for gate in gates {
            let share = cells.members(gate.label).div_ceil(gate.copies).saturating_sub(1);
            let reach = self.reach(gate.label, share);
            let from_gate = sends(gate.beyond.len() as u64 + reach.children);
            let flow = from_root.max(from_gate).max(by_stream);
            let hop = self.half_trip(cells.here, gate.label).saturating_add(segment);
            let arrival = flow.saturating_add(hop);
            end = end.max(arrival.saturating_add(below(gate.label, reach)));
            for &next in &gate.beyond {
                let reach = self.reach(next, cells.members(next).saturating_sub(1));
                let hop = self.half_trip(gate.label, next).saturating_add(segment);
                let more = sends(reach.children).saturating_sub(flow);
                let after = hop.saturating_add(more).saturating_add(below(next, reach));
                end = end.max(arrival.saturating_add(after));
            }
        }
        end
    }

    /// As the stripes are laid out: cluster after cluster, nearest first, in each a heap whose
    /// interior members have as many children as there are stripes.
    fn bandwidth_trees(&self, sending: &Sending, cells: &Counts, stripes: u8) -> Time {
        let stripes = u64::from(stripes.max(1));
        let (segment, count) = (sending.segment(), sending.segments());
        // A member that passes a segment on to several has the last of them wait.
        let turn = segment.saturating_mul(stripes);
        let mut fill = 0_u64;
        let mut through = |label: u16, members: usize| {
            let hop = self.wire(label).saturating_add(turn);
            fill = fill.saturating_add(heap_depth(members, stripes).saturating_mul(hop));
        };
        let order = cells.nearest_first(self);
        through(cells.here, cells.near);
        for &label in &order {
            through(label, cells.members(label));
        }
        let mut from = cells.here;
        for &label in &order {
            let hop = self.half_trip(from, label).saturating_add(segment);
            let excess = sending.far_excess(sending.segment_bytes);
            fill = fill.saturating_add(hop).saturating_add(excess);
            from = label;
        }
        let entry = if cells.near > 0 { self.wire(cells.here) } else { 0 };
        let by_card = count.saturating_mul(segment);
        let by_stream = crate::measure::span(sending.bytes / stripes, sending.far_ps);
        let flow = if order.is_empty() { by_card } else { by_card.max(by_stream) };
        flow.saturating_add(fill).saturating_add(entry)
    }
}

/// The greedy tree below a head, with this many members.
fn greedy_reach(members: usize, busy: Time, wire: Time) -> Reach {
    let mut reach = Reach::default();
    for send in greedy_sends(members, busy, wire) {
        reach.time = reach.time.max(send.arrival);
        reach.depth = reach.depth.max(send.depth);
        reach.children += u64::from(send.parent.is_none());
    }
    reach
}

/// How deep the last of this many members is in a heap below its first.
fn heap_depth(members: usize, arity: u64) -> u64 {
    let mut at = (members as u64).saturating_sub(1);
    if arity <= 1 {
        return at;
    }
    let mut depth = 0;
    while at > 0 {
        at = (at - 1) / arity;
        depth += 1;
    }
    depth
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::identity::MILLISECOND;
    use crate::measure::{Adopted, Clusters, Costs};
    use crate::members::View;
    use crate::message::{Record, Table};
    use crate::trees::Papers;

    const MEMBERS: u32 = 60;

    /// A network of clusters in turn: its round trips, and the costs of messages and bytes.
    #[derive(Clone, Copy)]
    struct Net {
        clusters: u32,
        near: Time,
        far: Time,
        costs: NearCosts,
    }

    const PLAIN: Net = Net {
        clusters: 3,
        near: 300_000,
        far: 8 * MILLISECOND,
        costs: NearCosts { work: 40_000, byte_ps: 9_090 },
    };

    fn estimate(net: Net, bytes: u64) -> Estimate {
        let mut view = View::default();
        let mut names = alloc::vec![RankSet::new(); net.clusters as usize];
        for name in 0..MEMBERS {
            names[(name % net.clusters) as usize].insert(name);
            let names = RankSet::range(name, name);
            view.merge(Record::new(MemberId(u64::from(name) + 1), &names));
        }
        let labels = (1..).map(MemberId).zip(names.iter().map(Into::into)).collect();
        let mut distances = Vec::new();
        for from in 0..net.clusters as u16 {
            let to = from..net.clusters as u16;
            distances.extend(to.map(|to| (from, to, if from == to { net.near } else { net.far })));
        }
        let costs = Costs { near: Some(net.costs), far_ps: None };
        let table = Table { version: 1, author: MemberId(1), labels, distances, costs };
        let mut clusters = Clusters::default();
        assert_eq!(clusters.adopt(table, &view), Adopted::Clusters);
        let terrain = Terrain {
            me: MemberId(1),
            view: &view,
            clusters: &clusters,
            papers: &Papers::default(),
            overhead: net.costs.work,
            busy: net.costs.busy(bytes),
        };
        let segment_bytes = if bytes < 32 << 10 { bytes } else { 8 << 10 };
        let parcel = Parcel {
            bytes,
            stripes: 2,
            whole_segment_bytes: segment_bytes,
            stripe_segment_bytes: bytes.min(8 << 10),
        };
        terrain.estimate(net.costs, None, parcel, view.everyone().as_ref())
    }

    /// The first length for which the bandwidth trees end first, in powers of two.
    fn switch(net: Net) -> u64 {
        let is_long = |bytes: &u64| {
            let estimate = estimate(net, *bytes);
            estimate.bandwidth_trees < estimate.latency_tree
        };
        (10..=30).map(|bits| 1_u64 << bits).find(is_long).expect("long values take stripes")
    }

    #[test]
    fn faster_cards_and_longer_distances_move_the_switch_to_longer_values() {
        let plain = switch(PLAIN);
        let fast = NearCosts { byte_ps: PLAIN.costs.byte_ps / 10, ..PLAIN.costs };
        assert!(switch(Net { costs: fast, ..PLAIN }) > plain, "{plain}");
        let far = Net { near: 10 * PLAIN.near, far: 10 * PLAIN.far, ..PLAIN };
        assert!(switch(far) > plain, "{plain}");
    }

    #[test]
    fn slower_cards_do_not_move_the_switch_to_longer_values() {
        let slow = NearCosts { byte_ps: 10 * PLAIN.costs.byte_ps, ..PLAIN.costs };
        assert!(switch(Net { costs: slow, ..PLAIN }) <= switch(PLAIN));
    }

    #[test]
    fn an_estimate_is_that_of_the_model_where_one_cluster_is_flat() {
        // The greedy tree is flat with such long round trips: 59 sends, and the wire.
        let net = Net { clusters: 1, near: 400 * MILLISECOND, ..PLAIN };
        let busy = net.costs.busy(1000);
        assert_eq!(estimate(net, 1000).latency_tree, 59 * busy + net.near / 2 - net.costs.work);
    }

    #[test]
    fn a_choice_names_its_figures() {
        let estimate = estimate(PLAIN, 1 << 20);
        let choice = Choice { stripes: Some(2), why: ChoiceReason::Estimate(estimate) };
        let text = choice.to_string();
        assert!(text.starts_with("2 bandwidth trees: "), "{text}");
        assert!(text.contains("from 40.0 us a message, 9.090 ns a byte, "), "{text}");
        let text = Choice { stripes: None, why: ChoiceReason::Length { bytes: 9 } }.to_string();
        assert_eq!(text, "the latency tree: shorter than 9 bytes, and no costs are measured");
    }

    #[test]
    fn a_heap_is_as_deep_as_its_last_member() {
        let depths: Vec<u64> = [0, 1, 2, 3, 4, 7, 8].map(|members| heap_depth(members, 2)).into();
        assert_eq!(depths, [0, 0, 1, 1, 2, 2, 3]);
        assert_eq!(heap_depth(5, 1), 4);
    }
}
