//! Waves that wait for all: exact sums with the right contributors, whatever the shape and
//! schedule.
use crate::harness::*;
use sapwood_filter::WaveRule;
use sapwood_packet::{Rank, RankSet};

#[test]
fn a_sum_over_everyone_is_exact_at_every_fan_out_and_depth() {
    each_seed("a_sum_over_everyone", 8, |seed| {
        for shape in SHAPES {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let stream = tree.sum_of_all();
            for wave in 0..3 {
                tree.all_send(&everyone, stream);
                let answer = tree.one_answer();
                assert_eq!((answer.wave, &answer.contributors), (wave, &everyone), "{shape}");
                assert!(answer.is_complete() && !answer.is_late);
                assert_eq!(sum_in(&answer), everyone.iter().map(|r| number_of(r, wave)).sum());
            }
        }
    });
}

#[test]
fn requests_go_down_and_sums_come_up_at_once() {
    each_seed("requests_go_down", 6, |seed| {
        for shape in SHAPES {
            let mut tree = Tree::of(shape, seed);
            tree.program(|rank, packet| {
                Some(packet.values().scalar::<i64>(0).expect("a number") * i64::from(rank + 1))
            });
            let stream = tree.sum_of_all();
            let everyone = tree.everyone();
            let weight: i64 = everyone.iter().map(|rank| i64::from(rank) + 1).sum();
            for request in 1..=5_i64 {
                tree.broadcast(stream, &RankSet::new(), request);
            }
            let sums: Vec<i64> = tree.answers().iter().map(sum_in).collect();
            assert_eq!(
                sums,
                (1..=5).map(|request| request * weight).collect::<Vec<_>>(),
                "{shape}"
            );
        }
    });
}

#[test]
fn streams_over_parts_of_the_tree_do_not_mix() {
    each_seed("streams_over_parts", 10, |seed| {
        let mut tree = Tree::of("2^4", seed);
        let parts: [RankSet; 4] = [
            "0-15".parse().expect("ranks"),
            "0,5,10,15".parse().expect("ranks"),
            "3".parse().expect("ranks"),
            "8-15".parse().expect("ranks"),
        ];
        let streams = parts.clone().map(|part| tree.stream(&part, "sum", WaveRule::All));
        for _ in 0..4 {
            for (part, stream) in parts.iter().zip(streams) {
                tree.all_send(part, stream);
                let moves = tree.schedule.below(50) as u64;
                tree.run_some(moves);
            }
        }
        let answers = tree.answers();
        assert_eq!(answers.len(), 16);
        for answer in answers {
            let at = streams.iter().position(|&s| s == answer.stream).expect("one of ours");
            assert_eq!(answer.contributors, parts[at]);
            assert!(answer.is_complete());
        }
    });
}

#[test]
fn waves_that_a_back_end_skips_are_answered_without_it() {
    each_seed("waves_that_a_back_end_skips", 10, |seed| {
        for shape in ["2", "2^3", "8^2"] {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let stream = tree.sum_of_all();
            let idler: Rank = tree.schedule.below(everyone.len() as usize) as Rank;
            let others = everyone.difference(RankSet::range(idler, idler).as_ref());
            for _ in 0..3 {
                tree.all_send(&others, stream);
            }
            assert!(tree.answers().is_empty(), "the idler is waited for");
            tree.send_in(idler, stream, 5, 2).expect("waves may be skipped");
            let answers = tree.answers();
            assert_eq!(answers.len(), 3);
            for answer in &answers[..2] {
                assert_eq!(answer.contributors, others);
                assert!(says(answer, idler, "sent nothing in wave"), "{answer:?}");
            }
            assert!(answers[2].is_complete());
        }
    });
}

#[test]
fn a_back_end_cannot_send_in_a_wave_that_has_passed() {
    let mut tree = Tree::of("2", 0);
    let stream = tree.sum_of_all();
    tree.send_in(0, stream, 1, 4).expect("waves may be skipped");
    let error = tree.send_in(0, stream, 1, 4).expect_err("wave 4 has passed");
    assert_eq!(error.to_string(), "wave 4 has passed; the next one to send in is 5");
}
