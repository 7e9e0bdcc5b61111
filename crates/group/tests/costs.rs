//! What messages and bytes cost is measured by the transfers that come, and decides by which trees
//! a value goes.

use sapwood_group::limits::SEGMENT_BYTES_MIN;
use sapwood_group::measure::{Costs, NearCosts};
use sapwood_group::message::{Head, Life, Purpose, Ranges, Record, Route, Table};
use sapwood_group::status::ChangeKind;
use sapwood_group::trees::{Choice, ChoiceReason};
use sapwood_group::{
    CastId, Config, Input, MILLISECOND, Member, MemberId, Message, Output, Payload, TreeKind,
};
use sapwood_packet::RankSet;

use crate::support::{config, join, record};

const OTHER: MemberId = MemberId(2);
const SEGMENT: u64 = 2 * SEGMENT_BYTES_MIN as u64;
const SEGMENTS: u64 = 20;
/// The time between two segments: 40 us of work, and 10 ns a byte.
const PACE: u64 = 40_000 + 10 * SEGMENT;

/// One member, and another that exists by its messages only.
struct Receiver {
    member: Member,
    now: u64,
    /// The members to which it has said what messages and bytes cost.
    told: Vec<MemberId>,
}

impl Receiver {
    /// It computes the clusters.
    fn new() -> Self {
        let mut receiver = Self::with_name(1);
        receiver.hear(Message::Report { distances: vec![(MemberId(1), 200_000)] });
        receiver.pass(25 * MILLISECOND);
        receiver
    }

    fn with_name(name: u64) -> Self {
        let config = Config { measures: true, ..config(MemberId(name)) };
        let mut receiver = Self { member: Member::new(config), now: 0, told: Vec::new() };
        receiver.give(Input::Create);
        receiver.give(Input::LinkUp { member: OTHER, address: None });
        receiver.hear(join(OTHER));
        receiver
    }

    fn give(&mut self, input: Input) {
        self.member.handle_input(self.now, input);
        while let Some(output) = self.member.poll_output() {
            if let Output::Send { to, message: Message::Costs { .. } } = output {
                self.told.push(to);
            }
        }
    }

    fn hear(&mut self, message: Message) {
        self.give(Input::Message { from: OTHER, message });
    }

    fn pass(&mut self, span: u64) {
        self.now += span;
        self.give(Input::Wake);
    }

    /// A broadcast by the other member comes at a steady pace.
    fn receive_broadcast(&mut self, number: u64) {
        self.receive_broadcast_by(TreeKind::List, number);
    }

    fn receive_broadcast_by(&mut self, tree: TreeKind, number: u64) {
        let cast = CastId { root: OTHER, number };
        let head = Head {
            cast,
            stripe: 0,
            stripes: 1,
            floor: 1,
            tree,
            purpose: Purpose::Broadcast,
            bytes: SEGMENTS * SEGMENT,
            segment_bytes: SEGMENT as u32,
            tag: 0,
        };
        let data = Payload::from(vec![3; SEGMENT as usize]);
        let targets = Ranges::from(&self.member.names());
        let (route, ask, receipt) = (Route::default(), false, false);
        self.hear(Message::Open { head, targets, route, ask, receipt, data: data.clone() });
        for index in 1..SEGMENTS as u32 {
            self.now += PACE;
            self.hear(Message::Segment { cast, stripe: 0, index, data: data.clone() });
        }
    }

    fn choice(&self, bytes: u64) -> Choice {
        let status = self.member.status(TreeKind::Adaptive, None, bytes);
        status.tree.choice.expect("adaptive chooses")
    }
}

#[test]
fn a_group_that_has_measured_nothing_chooses_by_length() {
    let receiver = Receiver::new();
    let bytes = 48 << 10;
    let why = ChoiceReason::Length { bytes };
    assert_eq!(receiver.choice(bytes - 1), Choice { stripes: None, why });
    assert_eq!(receiver.choice(bytes), Choice { stripes: Some(2), why });
}

#[test]
fn a_long_transfer_measures_what_a_message_and_a_byte_cost() {
    let mut receiver = Receiver::new();
    receiver.receive_broadcast(1);
    receiver.pass(25 * MILLISECOND);
    let costs = receiver.member.clusters().table().costs;
    assert_eq!(costs.near, Some(NearCosts { work: 40_000, byte_ps: 10_000 }));
    assert_eq!(costs.far_ps, None);
    let choice = receiver.choice(1 << 20);
    let ChoiceReason::Estimate(estimate) = choice.why else { panic!("no estimate: {choice}") };
    assert_eq!(Some(estimate.near), costs.near);
    let is_long = estimate.bandwidth_trees < estimate.latency_tree;
    assert_eq!(choice.stripes.is_some(), is_long);
}

/// The sender may have other children, to each of which it sends the segment before the next one.
#[test]
fn a_tree_with_several_children_measures_no_costs() {
    for tree in TreeKind::ALL.into_iter().filter(|tree| *tree != TreeKind::List) {
        let mut receiver = Receiver::new();
        receiver.receive_broadcast_by(tree, 1);
        receiver.pass(25 * MILLISECOND);
        let costs = receiver.member.clusters().table().costs;
        assert_eq!(costs, Costs::default(), "{tree}");
    }
}

#[test]
fn news_of_costs_alone_is_no_change_of_the_clusters() {
    let mut receiver = Receiver::new();
    receiver.receive_broadcast(1);
    receiver.pass(25 * MILLISECOND);
    let table = receiver.member.clusters().table();
    assert!(table.version == 2 && table.costs.near.is_some(), "{table:?}");
    let changes = receiver.member.status(TreeKind::Adaptive, None, 1).changes.into_iter();
    let clusters: Vec<ChangeKind> = changes
        .map(|change| change.what)
        .filter(|what| matches!(what, ChangeKind::Clusters(..)))
        .collect();
    assert_eq!(clusters, [ChangeKind::Clusters(1, 1)]);
}

#[test]
fn a_new_registrar_is_told_what_the_last_one_was() {
    let mut receiver = Receiver::with_name(3);
    let targets = Ranges::from(&RankSet::new());
    let author = MemberId(1);
    let news = |life| Message::Update {
        targets: targets.clone(),
        records: vec![Record { life, ..record(author) }],
    };
    receiver.hear(news(Life::Alive));
    let labels = vec![(author, Ranges::from(&RankSet::range(1, 3)))];
    let distances = vec![(0, 0, 200_000)];
    let table = Table { version: 1, author, labels, distances, costs: Costs::default() };
    receiver.hear(Message::Clusters { targets: targets.clone(), table });
    receiver.receive_broadcast(1);
    receiver.receive_broadcast(2);
    assert_eq!(receiver.told, [author]);
    receiver.hear(news(Life::Dead));
    receiver.receive_broadcast(3);
    receiver.receive_broadcast(4);
    assert_eq!(receiver.told, [author, OTHER]);
}

#[test]
fn the_same_pace_again_is_no_news() {
    let mut receiver = Receiver::new();
    receiver.receive_broadcast(1);
    receiver.pass(25 * MILLISECOND);
    let version = receiver.member.clusters().table().version;
    receiver.receive_broadcast(2);
    receiver.pass(25 * MILLISECOND);
    assert_eq!(receiver.member.clusters().table().version, version);
}
