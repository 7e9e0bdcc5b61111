//! What messages and bytes cost is measured by the transfers that come, and decides by which trees
//! a value goes.

use sapwood_group::limits::SEGMENT_BYTES_MIN;
use sapwood_group::measure::NearCosts;
use sapwood_group::message::{Head, Life, Purpose, Ranges, Record, Route};
use sapwood_group::trees::{Choice, ChoiceReason};
use sapwood_group::{
    CastId, Config, Input, MILLISECOND, Member, MemberId, Message, Payload, TreeKind,
};
use sapwood_packet::RankSet;

const OTHER: MemberId = MemberId(2);
const SEGMENT: u64 = 2 * SEGMENT_BYTES_MIN as u64;
const SEGMENTS: u64 = 20;
/// The time between two segments: 40 us of work, and 10 ns a byte.
const PACE: u64 = 40_000 + 10 * SEGMENT;

/// One member, which computes the clusters, and another that exists by its messages only.
struct Receiver {
    member: Member,
    now: u64,
}

impl Receiver {
    fn new() -> Self {
        let names = RankSet::range(1, 1);
        let config = Config { id: MemberId(1), names, space: 100, ..Config::default() };
        let mut receiver = Self { member: Member::new(config), now: 0 };
        receiver.give(Input::Create);
        receiver.give(Input::LinkUp { member: OTHER, address: None });
        let names = Ranges::from(&RankSet::range(2, 2));
        let (address, life) = ("2".into(), Life::Alive);
        let record =
            Record { id: OTHER, address, names, site: 0, incarnation: 0, life, gone_ms: 0 };
        receiver.hear(Message::Join { space: 100, record });
        receiver.hear(Message::Report { distances: vec![(MemberId(1), 200_000)] });
        receiver.pass(25 * MILLISECOND);
        receiver
    }

    fn give(&mut self, input: Input) {
        self.member.handle_input(self.now, input);
        while self.member.poll_output().is_some() {}
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
        let cast = CastId { root: OTHER, number };
        let head = Head {
            cast,
            stripe: 0,
            stripes: 1,
            floor: 1,
            tree: TreeKind::Adaptive,
            purpose: Purpose::Broadcast,
            bytes: SEGMENTS * SEGMENT,
            segment_bytes: SEGMENT as u32,
            tag: 0,
        };
        let data = Payload::from(vec![3; SEGMENT as usize]);
        let targets = Ranges::from(&RankSet::range(1, 1));
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
