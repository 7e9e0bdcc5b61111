//! The rules of Saito, Taura and Chikayama: what a member does with the answers to its probes.

use std::collections::BTreeMap;

use sapwood_group::limits::PROBE_BYTES;
use sapwood_group::message::{Life, PaperKind, PaperTree, Position, Ranges, Record};
use sapwood_group::{Config, Input, MILLISECOND, MemberId, Message, Payload, SECOND, Time};

use crate::support::{Lonely, config, name, record};

const ME: MemberId = MemberId(1);
/// A member that probes does so before this time is over.
const LIMIT: Time = 60 * SECOND;
/// What an answer takes besides the time that a test gives it.
const INPUT: Time = 1_000;

/// A probe that the member has sent.
struct Probe {
    to: MemberId,
    kind: PaperKind,
    number: u64,
    bytes: usize,
}

/// A member that takes part in trees, and asks no other for a sign of life meanwhile.
fn in_trees(trees: &[PaperTree], others: &[MemberId]) -> Lonely {
    let silence = 1_000 * SECOND;
    let quiet = Config { watch_period: silence, ping_timeout: silence, ..config(ME) };
    let mut lonely = Lonely::among(quiet, others);
    for &tree in trees {
        lonely.give(Input::Track { tree });
    }
    lonely
}

fn at(distance: Time) -> Position {
    Position { distance, ..Position::default() }
}

/// The probes that it has sent since the last time.
fn probes(lonely: &mut Lonely) -> Vec<Probe> {
    let mut probes = Vec::new();
    lonely.sent.retain(|(to, message)| {
        let Message::Probe { kind, number, padding } = message else { return true };
        probes.push(Probe { to: *to, kind: *kind, number: *number, bytes: padding.len() });
        false
    });
    probes
}

/// Wakes it until it sends one.
fn next_probe(lonely: &mut Lonely) -> Option<Probe> {
    let end = lonely.now + LIMIT;
    while lonely.now < end {
        if let Some(probe) = probes(lonely).pop() {
            return Some(probe);
        }
        lonely.now = lonely.now.max(lonely.wake);
        lonely.give(Input::Wake);
    }
    None
}

fn answer(lonely: &mut Lonely, probe: &Probe, after: Time, positions: &[(MemberId, Position)]) {
    let (kind, number, positions) = (probe.kind, probe.number, positions.to_vec());
    lonely.now += after;
    lonely.hear(probe.to, Message::ProbeReply { kind, number, positions });
}

/// Lets it probe until it asks this member. Others are far, and take no part.
fn answer_as(
    lonely: &mut Lonely,
    member: MemberId,
    after: Time,
    positions: &[(MemberId, Position)],
) {
    loop {
        let probe = next_probe(lonely).expect("it asks all of a few members");
        if probe.to == member {
            return answer(lonely, &probe, after, positions);
        }
        answer(lonely, &probe, 20 * MILLISECOND, &[]);
    }
}

/// The members of which it has become a child in a tree, in this order.
fn parents(lonely: &Lonely, tree: PaperTree) -> Vec<MemberId> {
    let attach = Message::Attach { tree, names: Ranges::from(&name(ME)) };
    lonely.sent.iter().filter(|(_, message)| *message == attach).map(|(to, _)| *to).collect()
}

/// What it tells of its positions in the trees for latency.
fn told(lonely: &mut Lonely, to: MemberId) -> Vec<(MemberId, Position)> {
    let (kind, padding) = (PaperKind::Latency, Payload::from(vec![0]));
    lonely.hear(to, Message::Probe { kind, number: 77, padding });
    let mut replies = lonely.sent.iter().filter_map(|(member, message)| match message {
        Message::ProbeReply { number: 77, positions, .. } if *member == to => Some(positions),
        _ => None,
    });
    replies.next_back().expect("a reply").clone()
}

#[test]
fn the_sum_of_the_round_trips_to_the_root_is_told_and_judged_by() {
    let [root, near, nearer] = [2, 3, 4].map(MemberId);
    let tree = PaperTree { root, bulk: false };
    let mut lonely = in_trees(&[tree], &[root, near, nearer]);
    answer_as(&mut lonely, root, 10 * MILLISECOND, &[(root, at(0))]);
    answer_as(&mut lonely, near, MILLISECOND, &[(root, at(9 * MILLISECOND))]);
    assert_eq!(parents(&lonely, tree), [root, near]);
    let told = told(&mut lonely, nearer);
    assert_eq!((told.len(), told[0].0), (1, root));
    assert_eq!(told[0].1.distance, 10 * MILLISECOND + INPUT);
    assert_eq!(told[0].1.ancestors, [near]);
    // The parent has moved: now the way along the tree is 31 ms, beside 10 ms without it.
    lonely.hear(near, Message::Above { tree, position: at(30 * MILLISECOND) });
    let half = MILLISECOND / 2;
    answer_as(&mut lonely, nearer, half, &[(root, at(32 * MILLISECOND))]);
    assert_eq!(parents(&lonely, tree), [root, near], "that one is farther from the root");
    answer_as(&mut lonely, nearer, half, &[(root, at(20 * MILLISECOND))]);
    assert_eq!(parents(&lonely, tree), [root, near, nearer]);
}

#[test]
fn one_probe_is_judged_for_the_trees_of_all_roots() {
    let [one, other, near] = [2, 3, 4].map(MemberId);
    let trees = [one, other].map(|root| PaperTree { root, bulk: false });
    let mut lonely = in_trees(&trees, &[one, other, near]);
    // At first the roots are measured themselves.
    let first = probes(&mut lonely);
    assert_eq!(first.iter().map(|probe| probe.to).collect::<Vec<_>>(), [one, other]);
    for probe in &first {
        answer(&mut lonely, probe, 10 * MILLISECOND, &[]);
    }
    let positions = [(one, at(9 * MILLISECOND)), (other, at(8 * MILLISECOND))];
    answer_as(&mut lonely, near, MILLISECOND, &positions);
    for tree in trees {
        assert_eq!(parents(&lonely, tree), [tree.root, near]);
    }
    let told = told(&mut lonely, near);
    let distances: BTreeMap<MemberId, Time> =
        told.iter().map(|(root, position)| (*root, position.distance)).collect();
    let along = [(one, 10 * MILLISECOND + INPUT), (other, 9 * MILLISECOND + INPUT)];
    assert_eq!((told.len(), distances), (2, BTreeMap::from(along)));
}

#[test]
fn twenty_long_probes_and_one_for_the_second_root_are_enough_for_two_trees_for_bandwidth() {
    let [one, other, near] = [2, 3, 4].map(MemberId);
    let trees = [one, other].map(|root| PaperTree { root, bulk: true });
    let mut lonely = in_trees(&trees, &[one, other, near]);
    let mut lengths = Vec::new();
    while let Some(probe) = next_probe(&mut lonely) {
        lengths.push(probe.bytes);
        // 128 KiB take a millisecond besides the round trip; below a root it is 50 MB/s.
        let estimate = |root: MemberId| if root == probe.to { u64::MAX } else { 50_000_000 };
        let position = |root: MemberId| Position { bandwidth: estimate(root), ..at(MILLISECOND) };
        let positions = [one, other].map(|root| (root, position(root)));
        let time = if probe.bytes == 1 { MILLISECOND } else { 2 * MILLISECOND };
        answer(&mut lonely, &probe, time, &positions);
    }
    // A short probe goes before each, for the round trip.
    assert_eq!(lengths, [1, PROBE_BYTES].repeat(21));
    for tree in trees {
        assert_eq!(parents(&lonely, tree).last(), Some(&tree.root), "the best of all");
    }
}

#[test]
fn children_in_a_tree_for_bandwidth_are_told_when_one_of_them_has_died() {
    let [one, other] = [2, 3].map(MemberId);
    let tree = PaperTree { root: ME, bulk: true };
    let mut lonely = in_trees(&[tree], &[one, other]);
    for child in [one, other] {
        lonely.hear(child, Message::Attach { tree, names: Ranges::from(&name(child)) });
    }
    lonely.sent.clear();
    lonely.learn(one, vec![Record { life: Life::Dead, ..record(other) }]);
    let position = Position { bandwidth: u64::MAX, children: 1, ..Position::default() };
    assert!(lonely.sent.contains(&(one, Message::Above { tree, position })), "{:?}", lonely.sent);
}

#[test]
fn a_new_child_in_a_tree_for_bandwidth_is_told_of_its_parent_once_and_the_others_are_too() {
    let [one, other] = [2, 3].map(MemberId);
    let tree = PaperTree { root: ME, bulk: true };
    let mut lonely = in_trees(&[tree], &[one, other]);
    for child in [one, other] {
        lonely.hear(child, Message::Attach { tree, names: Ranges::from(&name(child)) });
    }
    let told = lonely.sent.iter().filter_map(|(to, message)| match message {
        Message::Above { position, .. } => Some((*to, position.children)),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [(one, 1), (one, 2), (other, 2)]);
}

/// Two moved below each other with the last of their probes.
#[test]
fn a_member_that_goes_back_to_the_root_of_a_tree_for_bandwidth_measures_it() {
    let [root, near] = [2, 3].map(MemberId);
    let tree = PaperTree { root, bulk: true };
    let mut lonely = in_trees(&[tree], &[root, near]);
    while let Some(probe) = next_probe(&mut lonely) {
        // Besides the round trip 128 KiB take 19 ms from the root, and 1 ms from the other.
        let (bandwidth, long) = if probe.to == root { (u64::MAX, 20) } else { (50_000_000, 2) };
        let position = Position { bandwidth, ..at(MILLISECOND) };
        let time = if probe.bytes == 1 { 1 } else { long };
        answer(&mut lonely, &probe, time * MILLISECOND, &[(root, position)]);
    }
    assert_eq!(parents(&lonely, tree).last(), Some(&near));
    let position = Position { ancestors: vec![ME], ..at(MILLISECOND) };
    lonely.hear(near, Message::Above { tree, position });
    assert_eq!(parents(&lonely, tree).last(), Some(&root));
    let probe = next_probe(&mut lonely).expect("the way from the root is not known");
    assert_eq!((probe.to, probe.kind), (root, PaperKind::Bandwidth));
}

/// Each of two may have taken the other for dead.
#[test]
fn a_parent_that_may_have_dropped_a_child_is_told_again_of_it() {
    let [root, other] = [2, 3].map(MemberId);
    let tree = PaperTree { root, bulk: false };
    let mut lonely = in_trees(&[tree], &[root, other]);
    assert_eq!(parents(&lonely, tree), [root]);
    let dead = |member| Record { life: Life::Dead, ..record(member) };
    lonely.learn(other, vec![dead(root)]);
    assert_eq!(parents(&lonely, tree), [root]);
    lonely.learn(other, vec![Record { incarnation: 1, ..record(root) }]);
    assert_eq!(parents(&lonely, tree), [root; 2]);
    lonely.learn(other, vec![dead(ME)]);
    assert_eq!(parents(&lonely, tree), [root; 3]);
}
