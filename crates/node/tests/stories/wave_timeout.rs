//! Waves with a time-out: partial answers that name the late members, and late packets that count
//! once.
use crate::harness::*;
use sapwood_filter::WaveRule;
use sapwood_packet::{Rank, RankSet};

const PATIENCE: WaveRule = WaveRule::Timeout { milliseconds: 100 };

fn without(everyone: &RankSet, rank: Rank) -> RankSet {
    everyone.difference(RankSet::range(rank, rank).as_ref())
}

#[test]
fn a_wave_that_all_have_sent_in_does_not_wait() {
    each_seed("a_wave_that_all_have_sent_in", 6, |seed| {
        for shape in SHAPES {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let stream = tree.stream(&everyone, "sum", PATIENCE);
            tree.all_send(&everyone, stream);
            assert!(tree.one_answer().is_complete());
        }
    });
}

#[test]
fn whoever_is_late_is_named_and_comes_later_once() {
    each_seed("whoever_is_late_is_named", 12, |seed| {
        for shape in ["2", "8", "2^2", "2^3", "2^4", "8^2"] {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let stream = tree.stream(&everyone, "sum", PATIENCE);
            let late = tree.schedule.below(everyone.len() as usize) as Rank;
            tree.all_send(&without(&everyone, late), stream);
            assert!(tree.answers().is_empty(), "the time is not over");
            tree.advance(100);
            let answer = tree.one_answer();
            assert_eq!(answer.contributors, without(&everyone, late));
            assert!(says(&answer, late, "no answer within 100 ms"), "{answer:?}");

            tree.send(late, stream, 77).expect("the wave is still open to it");
            let answer = tree.one_answer();
            assert!(answer.is_late && answer.missing.is_empty());
            assert_eq!((answer.wave, sum_in(&answer)), (0, 77));

            tree.all_send(&everyone, stream);
            let answer = tree.one_answer();
            assert_eq!((answer.wave, answer.is_complete()), (1, true));
        }
    });
}

#[test]
fn nodes_near_the_back_ends_give_up_earlier() {
    each_seed("nodes_near_the_back_ends", 4, |seed| {
        let mut tree = Tree::of("2^4", seed);
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", PATIENCE);
        let mut patience = Vec::new();
        let mut rank = 0;
        while let Some(parent) = tree.topology.parent(rank).map(|node| node.rank()) {
            patience.push(
                tree.process(parent).node.application().patience(stream).expect("it has one"),
            );
            rank = parent;
        }
        let milliseconds: Vec<u128> = patience.iter().map(|p| p.as_millis()).collect();
        assert_eq!(milliseconds, [25, 50, 75, 100]);

        // One sends in each half: both are in the answer, though no other back-end ever sends.
        tree.send(0, stream, 1).expect("open");
        tree.send(15, stream, 2).expect("open");
        // Each node waits its own share from the first packet that it sees.
        tree.advance(24);
        assert!(tree.answers().is_empty());
        tree.advance(226);
        let answer = tree.one_answer();
        assert_eq!((sum_in(&answer), answer.contributors.to_string().as_str()), (3, "0,15"));
    });
}

#[test]
fn back_ends_at_their_own_pace_are_in_each_wave_at_most_once() {
    each_seed("back_ends_at_their_own_pace", 40, |seed| {
        let mut tree = Tree::of(["2^2", "2^3", "8", "3x2x2"][seed as usize % 4], seed);
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", PATIENCE);
        let mut sent = 0;
        for _ in 0..60 {
            let rank = tree.schedule.below(everyone.len() as usize) as Rank;
            let wave = tree.oracle.next_wave(stream, rank);
            tree.send(rank, stream, number_of(rank, wave)).expect("open");
            sent += 1;
            let (moves, milliseconds) = (tree.schedule.below(60), tree.schedule.below(30));
            tree.run_some(moves as u64);
            tree.advance(milliseconds as u64);
        }
        tree.advance(1000);
        let answers = tree.answers();
        let counted: u64 = answers.iter().map(|answer| answer.contributors.len()).sum();
        assert_eq!(counted, sent, "nothing is lost and nothing counts twice");
    });
}

#[test]
fn a_wave_that_cannot_go_on_does_not_spin_on_its_clock() {
    each_seed("a_wave_that_cannot_go_on", 8, |seed| {
        let mut tree = Tree::of("2^2", seed);
        let everyone = tree.everyone();
        let mut wanted = spec(&everyone, &["sum"], PATIENCE);
        wanted.window_bytes = Some(256);
        let stream = tree.open(wanted);
        tree.run();
        // The front-end takes nothing, so that every window fills; then time passes.
        for _ in 0..200 {
            for rank in 0..3 {
                let wave = tree.oracle.next_wave(stream, rank);
                tree.send(rank, stream, number_of(rank, wave)).expect("open");
            }
        }
        for _ in 0..50 {
            tree.advance(20);
        }
        let mut counted = 0;
        for _ in 0..200 {
            counted += tree.answers().iter().map(|answer| answer.contributors.len()).sum::<u64>();
            tree.advance(200);
        }
        assert_eq!(counted, 600);
    });
}
