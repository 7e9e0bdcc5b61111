//! A back-end whose link was cut, and that comes back after its place was given up, has missed
//! nothing that it could have been told.

use crate::harness::{Tree, each_seed, missing_ranks};
use sapwood_filter::WaveRule;
use sapwood_node::{Event, Recovery};
use sapwood_packet::{Rank, RankSet, StreamId};

const AWAY: Rank = 0;

fn terms() -> Recovery {
    Recovery { silence: std::time::Duration::ZERO, ..Recovery::default() }
}

/// A tree whose back-ends answer each number with itself, and a stream of all of them.
fn answering(spec: &str, seed: u64) -> (Tree, StreamId) {
    let mut tree = Tree::recovering(spec, seed, terms());
    let everyone = tree.everyone();
    let stream = tree.stream(&everyone, "sum", WaveRule::All);
    tree.program(|_, packet| packet.values().scalar(0).ok());
    tree.run();
    (tree, stream)
}

fn ask(tree: &mut Tree, stream: StreamId, numbers: std::ops::Range<i64>) {
    for number in numbers {
        tree.broadcast(stream, &RankSet::new(), number);
    }
    tree.run();
}

/// The back-end is cut off until it has been given up.
fn cut_off(tree: &mut Tree) {
    tree.cut_off.insert(AWAY);
    tree.cut(AWAY);
    // As far as any process can see, it is gone.
    tree.oracle.lost.insert(AWAY);
    tree.advance(1500);
    let lost = |event: &Event| matches!(event, Event::Lost { rank, .. } if *rank == AWAY);
    assert!(tree.events.iter().any(lost), "{:?}", tree.events);
}

fn come_back(tree: &mut Tree) {
    tree.cut_off = RankSet::new();
    tree.advance(1500);
    let joined =
        |event: &Event| matches!(event, Event::Joined { back_ends } if back_ends.contains(AWAY));
    assert!(tree.events.iter().any(joined), "{:?}", tree.events);
}

fn received(tree: &mut Tree, rank: Rank) -> Vec<i64> {
    let packets = &tree.process(rank).received;
    packets.iter().map(|packet| packet.values().scalar(0).expect("one number")).collect()
}

/// After the absence every back-end has had every request, and waves are complete again.
fn check_end(tree: &mut Tree, stream: StreamId, asked: i64, answers_before: usize) {
    let everyone = tree.everyone();
    let late: Vec<_> = tree.answers();
    let mut in_late = late.iter().filter(|answer| answer.is_late);
    assert!(in_late.all(|answer| answer.contributors == RankSet::range(AWAY, AWAY)));
    assert_eq!(late.len(), answers_before, "one late part for each wave that it was away in");
    ask(tree, stream, asked..asked + 3);
    let answers = tree.answers();
    assert_eq!(answers.len(), 3, "{:?}", tree.events);
    for (wave, answer) in (asked as u64..).zip(&answers) {
        assert_eq!((answer.wave, &answer.contributors), (wave, &everyone));
    }
    for rank in everyone.iter() {
        let expected: Vec<i64> = (0..asked + 3).collect();
        assert_eq!(received(tree, rank), expected, "rank {rank}");
    }
}

#[test]
fn a_back_end_that_was_given_up_is_told_what_it_has_missed() {
    each_seed("a_back_end_that_was_given_up", 100, |seed| {
        for spec in ["2", "2x2", "1x1x2", "4x2x2"] {
            let (mut tree, stream) = answering(spec, seed);
            ask(&mut tree, stream, 0..40);
            assert_eq!(tree.answers().len(), 40);
            cut_off(&mut tree);
            ask(&mut tree, stream, 40..45);
            let answers = tree.answers();
            assert_eq!(answers.len(), 5, "{spec}: no wave waits for it: {:?}", tree.events);
            let lacks =
                |answer: &sapwood_node::Answer| missing_ranks(answer) == RankSet::range(0, 0);
            assert!(answers.iter().all(lacks), "{spec}");
            come_back(&mut tree);
            check_end(&mut tree, stream, 45, 5);
        }
    });
}

#[test]
fn its_parent_may_die_while_it_is_away() {
    each_seed("its_parent_may_die", 100, |seed| {
        for spec in ["2x2", "2x2x2", "4x2x2"] {
            let (mut tree, stream) = answering(spec, seed);
            let parent = tree.topology.parent(AWAY).expect("a parent").rank();
            ask(&mut tree, stream, 0..7);
            assert_eq!(tree.answers().len(), 7);
            cut_off(&mut tree);
            ask(&mut tree, stream, 7..12);
            assert_eq!(tree.answers().len(), 5, "{spec}: {:?}", tree.events);
            tree.kill(parent);
            tree.advance(100);
            ask(&mut tree, stream, 12..14);
            assert_eq!(tree.answers().len(), 2, "{spec}: {:?}", tree.events);
            come_back(&mut tree);
            check_end(&mut tree, stream, 14, 7);
        }
    });
}

#[test]
fn nobody_waits_while_much_goes_down_without_it() {
    for spec in ["2", "2x2"] {
        let (mut tree, stream) = answering(spec, 1);
        tree.program(|_, _| None);
        cut_off(&mut tree);
        for _ in 0..64 {
            assert_eq!(tree.front_end().application().has_room(stream), Ok(true), "{spec}");
            tree.broadcast(stream, &RankSet::new(), vec![7_u8; 32 << 10]);
            tree.run();
        }
        assert_eq!(tree.process(1).received.len(), 64, "{spec}");
        come_back(&mut tree);
        tree.broadcast(stream, &RankSet::new(), 1_i64);
        tree.run();
        let received = tree.process(AWAY).received.len();
        assert!((1..=16).contains(&received), "{spec}: it has missed most: {received}");
    }
}

#[test]
fn nothing_is_kept_for_one_that_can_not_come_any_more() {
    let (mut tree, stream) = answering("2", 1);
    tree.cut_off.insert(AWAY);
    tree.cut(AWAY);
    tree.advance(14_000);
    assert!(tree.process(AWAY).node.has_ended(), "no process has taken it in");
    tree.program(|_, _| None);
    tree.broadcast(stream, &RankSet::new(), vec![7_u8; 300 << 10]);
    tree.run();
    tree.advance(3000);
    tree.broadcast(stream, &RankSet::new(), 1_i64);
    tree.run();
    assert_eq!(tree.process(1).received.len(), 2);
}

/// How a back-end goes that has not read what was sent last.
#[derive(Clone, Copy, Debug)]
enum Manner {
    Dies,
    Leaves,
    IsCutOff,
}

#[test]
fn what_a_back_end_had_not_read_takes_no_room_when_it_is_gone() {
    for spec in ["1", "2", "3", "2x2", "1x1"] {
        for manner in [Manner::Dies, Manner::Leaves, Manner::IsCutOff] {
            let (mut tree, stream) = answering(spec, 1);
            tree.program(|_, _| None);
            tree.process(AWAY).is_stalled = true;
            tree.broadcast(stream, &RankSet::new(), vec![7_u8; 1_100_000]);
            // Back-ends that read say so within this time.
            tree.advance(200);
            assert_eq!(
                tree.front_end().application().has_room(stream),
                Ok(false),
                "{spec}: it is waited for"
            );
            match manner {
                Manner::Dies => tree.kill(AWAY),
                Manner::Leaves => {
                    tree.process(AWAY).is_stalled = false;
                    tree.shutdown(AWAY);
                    tree.process(AWAY).is_stalled = true;
                    tree.kill(AWAY);
                }
                Manner::IsCutOff => {
                    tree.cut_off.insert(AWAY);
                    tree.cut(AWAY);
                }
            }
            tree.advance(1500);
            let is_lost =
                |event: &Event| matches!(event, Event::Lost { rank, .. } if *rank == AWAY);
            assert!(tree.events.iter().any(is_lost), "{spec}, {manner:?}: {:?}", tree.events);
            assert_eq!(
                tree.front_end().application().has_room(stream),
                Ok(true),
                "{spec}, {manner:?}"
            );
        }
    }
}

#[test]
fn what_it_brings_is_safe_no_sooner_though_its_parent_had_no_children() {
    each_seed("what_it_brings_is_safe", 40, |seed| {
        for spec in ["2x1", "2x1x1", "3x1x1x1"] {
            let mut tree = Tree::recovering(spec, seed, terms());
            let everyone = tree.everyone();
            let mut wanted = crate::harness::spec(&everyone, &["sum"], WaveRule::All);
            wanted.window_bytes = Some(600);
            let stream = tree.open(wanted);
            tree.run();
            cut_off(&mut tree);
            tree.send_many(AWAY, stream, 20).expect("the stream is open");
            let others = everyone.difference(RankSet::range(AWAY, AWAY).as_ref());
            for rank in others.iter() {
                tree.send_many(rank, stream, 60).expect("the stream is open");
            }
            // The waves go on without it, until the front-end has no room for more answers.
            tree.advance(200);
            come_back(&mut tree);
            let parent = tree.topology.parent(AWAY).expect("a parent").rank();
            tree.kill(parent);
            tree.advance(1500);
            let answers = tree.answers();
            let with_it = answers.iter().filter(|answer| answer.contributors.contains(AWAY));
            assert_eq!(with_it.count(), 20, "{spec}: {answers:?}");
        }
    });
}

#[test]
fn a_back_end_that_was_away_when_a_stream_opened_is_late_in_its_waves() {
    each_seed("a_back_end_that_was_away_when", 40, |seed| {
        for (spec, other) in [("1x2", 1), ("1x3", 1), ("2x2", 1), ("1x1x2", 1), ("1x2x2", 7)] {
            let mut tree = Tree::recovering(spec, seed, terms());
            let everyone = tree.everyone();
            // The front-end has not heard of it when it opens the stream.
            tree.processes[0].is_stalled = true;
            tree.cut_off.insert(AWAY);
            tree.cut(AWAY);
            tree.oracle.lost.insert(AWAY);
            tree.advance(1500);
            let stream = tree.open(crate::harness::spec(&everyone, &["sum"], WaveRule::All));
            tree.run();
            let others = everyone.difference(RankSet::range(AWAY, AWAY).as_ref());
            for rank in others.iter() {
                tree.send_many(rank, stream, 6).expect("the stream is open");
            }
            tree.advance(100);
            // Another one comes anew, with what may have been counted.
            tree.cut(other);
            tree.advance(100);
            tree.processes[0].is_stalled = false;
            tree.run();
            come_back(&mut tree);
            tree.send_many(AWAY, stream, 6).expect("the stream is open");
            let answers = tree.answers();
            let with_it = answers.iter().filter(|answer| answer.contributors.contains(AWAY));
            assert_eq!(with_it.count(), 6, "{spec}: {answers:?}");
        }
    });
}
