//! What a message and a byte cost, from the transfers that come in any case: nothing is sent to
//! find it out.
//!
//! In a long transfer the segments come as fast as the member before can send them. The time of one
//! segment is its work and the time of its bytes; transfers with segments of different lengths tell
//! the two apart. A member counts those that came from its own cluster all the way, and of those
//! from another cluster the connection between, where senders send each segment once. The registrar
//! takes the medians of what all say, and tells all with the table of clusters, so that members
//! with one table choose alike.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::identity::{CastId, MemberId, Time};
use crate::limits::{BYTE_PS_MAX, WORK_MAX};
use crate::member::Member;
use crate::message::Message;
use crate::operations::Lane;
use crate::trees::TreeKind;

/// Shorter transfers say too little, in bytes.
const FLOW_BYTES_MIN: u64 = 64 << 10;
/// So do those of fewer segments.
const FLOW_SEGMENTS_MIN: u64 = 8;
/// How many of the last transfers count.
const FLOWS_MAX: usize = 16;
/// Segments must differ by this factor in length to tell work and bytes apart.
const SPREAD_MIN: u64 = 2;
/// A connection is slow if it takes this many halves of what the cards take.
const SLOW_TIMES_TWO: u64 = 3;
/// The least work of a message that is believed, in nanoseconds.
const WORK_MIN: Time = 1_000;
/// News is what differs by more than this part.
const NEWS_SHARE: u64 = 4;

/// What messages and bytes cost, as far as it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    /// Inside of clusters.
    pub near: Option<NearCosts>,
    /// The time of a byte on one connection between clusters, in picoseconds.
    pub far_ps: Option<u64>,
}

/// What a message and a byte cost inside of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearCosts {
    /// The work of one message, in nanoseconds: the o of LogP.
    pub work: Time,
    /// The time of a byte, in picoseconds.
    pub byte_ps: u64,
}

impl NearCosts {
    /// How long a sender is busy with a message of this length.
    #[must_use]
    pub fn busy(&self, bytes: u64) -> Time {
        self.work.saturating_add(span(bytes, self.byte_ps))
    }
}

impl Costs {
    /// Cuts what others say to the limits.
    pub(crate) fn bound(&mut self) {
        if let Some(near) = &mut self.near {
            near.work = near.work.clamp(WORK_MIN, WORK_MAX);
            near.byte_ps = near.byte_ps.min(BYTE_PS_MAX);
        }
        self.far_ps = self.far_ps.map(|far_ps| far_ps.min(BYTE_PS_MAX));
    }

    /// Whether they say something that others do not. Small differences are none: a choice that is
    /// made by these figures stays as it is.
    pub(crate) fn is_news_after(&self, last: &Self) -> bool {
        let differs = |new: Option<u64>, old: Option<u64>| match new.zip(old) {
            Some((new, old)) => is_news(new, old),
            None => new != old,
        };
        let work = |costs: &Self| costs.near.map(|near| near.work);
        let byte = |costs: &Self| costs.near.map(|near| near.byte_ps);
        differs(work(self), work(last))
            || differs(byte(self), byte(last))
            || differs(self.far_ps, last.far_ps)
    }
}

/// Whether a figure differs so much from the last one that it is told.
pub(super) fn is_news(new: u64, old: u64) -> bool {
    new.abs_diff(old) > new.min(old) / NEWS_SHARE
}

/// The time of bytes, in nanoseconds.
pub(crate) fn span(bytes: u64, byte_ps: u64) -> Time {
    bytes.saturating_mul(byte_ps) / 1000
}

/// The transfers that have come to a member last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flows {
    near: VecDeque<Flow>,
    far_ps: VecDeque<u64>,
    told: Option<Told>,
    /// At the registrar, what all have said.
    reports: BTreeMap<MemberId, Costs>,
}

/// What a member has said last, and to which registrar: another one has heard nothing of it.
#[derive(Clone, Copy, Debug)]
struct Told {
    registrar: MemberId,
    costs: Costs,
}

/// What came after the first segment of a transfer, and in which time.
#[derive(Clone, Copy, Debug)]
struct Flow {
    segments: u64,
    bytes: u64,
    time: Time,
}

impl Flow {
    fn is_telling(&self) -> bool {
        self.segments >= FLOW_SEGMENTS_MIN && self.bytes >= FLOW_BYTES_MIN && self.time > 0
    }

    /// The length of a segment, and the time of one.
    fn of_one(&self) -> (u64, Time) {
        (self.bytes / self.segments, self.time / self.segments)
    }
}

impl Flows {
    fn costs(&self, assumed: Time) -> Costs {
        let mut far_ps: Vec<u64> = self.far_ps.iter().copied().collect();
        let mut costs = Costs { near: fit(&self.near, assumed), far_ps: median(&mut far_ps) };
        costs.bound();
        costs
    }

    /// The medians of what members have said.
    fn medians(&self) -> Costs {
        let near = |figure: fn(NearCosts) -> u64| {
            let mut all: Vec<u64> =
                self.reports.values().filter_map(|costs| costs.near.map(figure)).collect();
            median(&mut all)
        };
        let both = near(|costs| costs.work).zip(near(|costs| costs.byte_ps));
        let mut far_ps: Vec<u64> = self.reports.values().filter_map(|costs| costs.far_ps).collect();
        Costs {
            near: both.map(|(work, byte_ps)| NearCosts { work, byte_ps }),
            far_ps: median(&mut far_ps),
        }
    }
}

/// The line through the times of segments by their lengths (least squares). Where all have about
/// one length, the work is taken for what is assumed.
fn fit(flows: &VecDeque<Flow>, assumed: Time) -> Option<NearCosts> {
    let points: Vec<(u64, Time)> = flows.iter().map(Flow::of_one).collect();
    let shortest = points.iter().map(|point| point.0).min()?.max(1);
    let longest = points.iter().map(|point| point.0).max()?.max(1);
    let mut times: Vec<Time> = points.iter().map(|point| point.1).collect();
    let mut lengths: Vec<u64> = points.iter().map(|point| point.0).collect();
    let (time, length) = (median(&mut times)?, median(&mut lengths)?.max(1));
    let line = (longest >= SPREAD_MIN * shortest).then(|| line(&points)).flatten();
    Some(line.unwrap_or_else(|| {
        let work = assumed.min(time / 2);
        NearCosts { work, byte_ps: (time - work).saturating_mul(1000) / length }
    }))
}

/// None where longer segments do not take longer.
fn line(points: &[(u64, Time)]) -> Option<NearCosts> {
    let count = points.len() as i128;
    let (mut x, mut y, mut xx, mut xy) = (0_i128, 0_i128, 0_i128, 0_i128);
    for &(length, time) in points {
        let (length, time) = (i128::from(length), i128::from(time));
        (x, y, xx, xy) = (x + length, y + time, xx + length * length, xy + length * time);
    }
    let (below, above) = (count * xx - x * x, count * xy - x * y);
    if below <= 0 || above <= 0 {
        return None;
    }
    let byte_ps = above.saturating_mul(1000) / below;
    let work = (y - byte_ps * x / 1000) / count;
    let byte_ps = u64::try_from(byte_ps).ok()?;
    Some(NearCosts { work: u64::try_from(work).unwrap_or(0), byte_ps })
}

pub(super) fn median(values: &mut [u64]) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

impl Member {
    /// What is known of costs; nothing where they are not to be measured.
    pub(crate) fn known_costs(&self) -> Costs {
        if self.config.measures_costs { self.clusters.table().costs } else { Costs::default() }
    }

    /// A segment has come: if it was the last of a transfer, the time of all is noted.
    pub(crate) fn note_flow(&mut self, (cast, stripe): (CastId, u8)) {
        let measures = self.config.measures && self.config.measures_costs;
        if !measures || !self.lanes.get(&(cast, stripe)).is_some_and(Lane::is_complete) {
            return;
        }
        let lanes: Vec<&Lane> =
            self.lanes.range((cast, 0)..=(cast, u8::MAX)).map(|entry| entry.1).collect();
        let is_plain = |lane: &&Lane| {
            lane.request.is_none() && lane.is_complete() && !lane.is_mended && lane.owed.len() == 1
        };
        let Some(head) = lanes.first().map(|lane| &lane.head) else { return };
        let stripes = usize::from(head.stripes);
        // Elsewhere a sender has several children, and its pace is that of as many messages: in
        // stripes it sends a part of the segments to each, in a list it has one child.
        let is_sent_once = stripes > 1 || head.tree == TreeKind::List;
        if !is_sent_once || lanes.len() != stripes || !lanes.iter().all(is_plain) {
            return;
        }
        let here = self.clusters.label(self.me);
        let is_near = |member: MemberId| here.is_some() && self.clusters.label(member) == here;
        let is_all_near = is_near(cast.root) && lanes.iter().all(|lane| is_near(lane.owed[0].0));
        let near = if is_all_near { whole_flow(&lanes, self.now) } else { None };
        // Each connection from another cluster by itself, and the slowest of them.
        let far = lanes.iter().filter(|lane| here.is_some() && !is_near(lane.owed[0].0));
        let far = far.filter_map(|lane| whole_flow(&[*lane], self.now));
        let known = self.known_costs().near;
        let far_ps = far.filter_map(|flow| Some(far_ps(flow, known?, stripes))).max();
        keep(&mut self.flows.near, near);
        keep(&mut self.flows.far_ps, far_ps);
        if near.is_some() || far_ps.is_some() {
            self.tell_costs();
        }
    }

    fn tell_costs(&mut self) {
        let costs = self.flows.costs(self.config.overhead);
        let Some(registrar) = self.view.registrar() else { return };
        let told = self.flows.told.filter(|told| told.registrar == registrar);
        if !costs.is_news_after(&told.map_or_else(Costs::default, |told| told.costs)) {
            return;
        }
        self.flows.told = Some(Told { registrar, costs });
        if registrar == self.me {
            self.costs_reported(self.me, costs);
        } else {
            self.send(registrar, Message::Costs { costs });
        }
    }

    /// A member says what messages and bytes cost.
    pub(crate) fn costs_reported(&mut self, from: MemberId, costs: Costs) {
        if self.view.is_alive(from) {
            self.flows.reports.insert(from, costs);
            self.gather_reports();
        }
    }

    /// What all have measured together; what none has, as in the last table. After the death of its
    /// predecessor a registrar has heard few, which do not outweigh those that its table stands
    /// for.
    pub(super) fn gathered_costs(&mut self) -> Costs {
        let view = &self.view;
        self.flows.reports.retain(|member, _| view.is_alive(*member));
        let table = self.clusters.table();
        let (last, new) = (table.costs, self.flows.medians());
        let is_own = table.author == self.me;
        let (first, then) = if is_own || 2 * self.flows.reports.len() >= view.len() {
            (new, last)
        } else {
            (last, new)
        };
        Costs { near: first.near.or(then.near), far_ps: first.far_ps.or(then.far_ps) }
    }
}

/// The time of a byte on a connection from another cluster, in picoseconds. Stripes share the cards
/// of their senders: a connection is slow only if it takes longer than its share of these.
fn far_ps(flow: Flow, near: NearCosts, stripes: usize) -> u64 {
    let segment = near.busy(flow.bytes / flow.segments);
    let share = segment.saturating_mul(flow.segments).saturating_mul(stripes as u64);
    if flow.time <= share.saturating_mul(SLOW_TIMES_TWO) / 2 {
        return near.byte_ps;
    }
    flow.time.saturating_mul(1000) / flow.bytes
}

/// What came of a transfer after the first segment of these stripes.
fn whole_flow(lanes: &[&Lane], now: Time) -> Option<Flow> {
    let first = lanes.iter().filter_map(|lane| lane.began).min_by_key(|began| began.time)?;
    let segments: u64 = lanes.iter().map(|lane| lane.have.len()).sum();
    let bytes: u64 =
        lanes.iter().flat_map(|lane| lane.pieces.values()).map(|piece| piece.len() as u64).sum();
    let flow = Flow {
        segments: segments.saturating_sub(1),
        bytes: bytes.saturating_sub(first.bytes),
        time: now.saturating_sub(first.time),
    };
    flow.is_telling().then_some(flow)
}

fn keep<T>(all: &mut VecDeque<T>, new: Option<T>) {
    let Some(new) = new else { return };
    if all.len() == FLOWS_MAX {
        all.pop_front();
    }
    all.push_back(new);
}

#[cfg(test)]
mod tests {
    use sapwood_packet::RankSet;

    use super::*;
    use crate::member::Config;
    use crate::message::{Record, Table};

    /// Transfers of 64 segments each, at 40 us a message and 10 ns a byte.
    fn flows(lengths: &[u64]) -> VecDeque<Flow> {
        let of = |&length: &u64| Flow {
            segments: 64,
            bytes: 64 * length,
            time: 64 * (40_000 + 10 * length),
        };
        lengths.iter().map(of).collect()
    }

    #[test]
    fn segments_of_two_lengths_tell_work_and_bytes_apart() {
        let near = fit(&flows(&[4096, 32_768, 4096]), 5_000);
        assert_eq!(near, Some(NearCosts { work: 40_000, byte_ps: 10_000 }));
    }

    #[test]
    fn where_segments_have_one_length_the_work_is_assumed() {
        let near = fit(&flows(&[4096, 4096]), 40_960);
        assert_eq!(near, Some(NearCosts { work: 40_480, byte_ps: 9_882 }));
        assert_eq!(fit(&VecDeque::new(), 40_000), None);
    }

    #[test]
    fn a_connection_is_slow_only_where_it_takes_longer_than_the_cards() {
        let near = NearCosts { work: 40_000, byte_ps: 10_000 };
        let of = |time| Flow { segments: 10, bytes: 81_920, time };
        // Two stripes, each segment 40 us and 82 us.
        assert_eq!(far_ps(of(2 * 10 * 122_000), near, 2), 10_000);
        assert_eq!(far_ps(of(8_192_000), near, 2), 100_000);
    }

    #[test]
    fn a_registrar_that_has_heard_few_goes_on_from_the_costs_of_its_predecessor() {
        let me = MemberId(1);
        let mut member = Member::new(Config { id: me, ..Config::default() });
        for name in 1..=4_u32 {
            let names = RankSet::range(name, name);
            member.view.merge(Record::new(MemberId(u64::from(name)), &names));
        }
        let of =
            |byte_ps, far_ps| Costs { near: Some(NearCosts { work: 40_000, byte_ps }), far_ps };
        let (last, new) = (of(1_000, None), of(5_000, Some(9_000)));
        let predecessor = MemberId(9);
        let table = Table { version: 1, author: predecessor, costs: last, ..Table::default() };
        member.adopt_table(table);
        member.flows.reports.insert(MemberId(2), new);
        // Of connections between clusters the predecessor has said nothing.
        assert_eq!(member.gathered_costs(), of(1_000, Some(9_000)));
        member.flows.reports.insert(MemberId(3), new);
        assert_eq!(member.gathered_costs(), new);
        member.flows.reports.remove(&MemberId(3));
        let table = Table { version: 2, author: me, costs: last, ..Table::default() };
        member.adopt_table(table);
        assert_eq!(member.gathered_costs(), new, "the table is its own");
    }

    #[test]
    fn small_differences_are_no_news() {
        let of =
            |byte_ps, far_ps| Costs { near: Some(NearCosts { work: 40_000, byte_ps }), far_ps };
        assert!(!of(1_200, None).is_news_after(&of(1_000, None)));
        assert!(of(1_300, None).is_news_after(&of(1_000, None)));
        assert!(of(1_000, Some(9)).is_news_after(&of(1_000, None)));
        assert!(of(1_000, None).is_news_after(&Costs::default()));
    }
}
