//! Large packets: cut into chunks on the way, and the same bits at the end.
use crate::harness::*;
use sapwood_filter::WaveRule;
use sapwood_packet::{Rank, RankSet};

/// Numbers whose sum depends on the order in which they are added.
fn part_of(rank: Rank, length: usize) -> Vec<f64> {
    (0..length).map(|i| 1.0 / (i as f64 + 1.3 * f64::from(rank) + 0.7)).collect()
}

#[test]
fn a_megabyte_is_summed_to_the_same_bits_as_its_pieces() {
    const LENGTH: usize = 131_072;
    const PIECE: usize = 8_192;
    each_seed("a_megabyte_is_summed", 3, |seed| {
        for shape in ["1^2", "2", "2^2", "2^3"] {
            let mut tree = Tree::of(shape, seed);
            tree.schedule.widen();
            let everyone = tree.everyone();
            let whole = tree.stream(&everyone, "sum", WaveRule::All);
            let pieces = tree.stream(&everyone, "sum", WaveRule::All);
            tree.oracle.forget(whole);
            tree.oracle.forget(pieces);
            for rank in everyone.iter() {
                let values = part_of(rank, LENGTH);
                tree.send_values(rank, whole, values.as_slice(), None).expect("open");
                for piece in values.chunks(PIECE) {
                    tree.send_values(rank, pieces, piece, None).expect("open");
                }
                let moves = tree.schedule.below(30) as u64;
                tree.run_some(moves);
            }
            let answers = tree.answers();
            let is_whole = |answer: &&sapwood_node::Answer| answer.stream == whole;
            let large = answers.iter().find(is_whole).expect("the large one is answered");
            assert!(large.is_complete() && large.contributors == everyone);
            let mut joined = Vec::new();
            for small in answers.iter().filter(|answer| answer.stream == pieces) {
                let packet = small.packet.as_ref().expect("a value");
                joined.extend_from_slice(packet.values().array::<f64>(0).expect("an array"));
            }
            let packet = large.packet.as_ref().expect("a value");
            let sum: &[f64] = packet.values().array(0).expect("an array");
            assert!(sum.iter().map(|x| x.to_bits()).eq(joined.iter().map(|x| x.to_bits())));
        }
    });
}

#[test]
fn three_megabytes_go_down_to_everyone() {
    each_seed("three_megabytes_go_down", 2, |seed| {
        for shape in ["1^3", "2^2", "8"] {
            let mut tree = Tree::of(shape, seed);
            tree.schedule.widen();
            let stream = tree.sum_of_all();
            let values: Vec<u64> = (0..393_216).map(|i| i * 0x9e37_79b9).collect();
            tree.broadcast(stream, &RankSet::new(), values.as_slice());
            tree.broadcast(stream, &RankSet::new(), 7_i64);
            tree.run();
            for rank in tree.everyone().iter() {
                let received = &tree.process(rank).received;
                assert_eq!(received.len(), 2);
                assert_eq!(received[0].values().array::<u64>(0).expect("an array"), values);
                assert_eq!(received[1].values().scalar::<i64>(0), Ok(7));
            }
        }
    });
}

#[test]
fn large_arrays_are_put_together_where_a_filter_needs_them_whole() {
    each_seed("large_arrays_are_put_together", 3, |seed| {
        for shape in ["2", "2^2", "1^3"] {
            let mut tree = Tree::of(shape, seed);
            tree.schedule.widen();
            let everyone = tree.everyone();
            let stream = tree.stream(&everyone, "concatenate", WaveRule::All);
            for _ in 0..3 {
                for rank in everyone.iter() {
                    let values = vec![rank; 100_000 + rank as usize];
                    tree.send_values(rank, stream, values.as_slice(), None).expect("open");
                }
            }
            let expected: Vec<Rank> =
                everyone.iter().flat_map(|r| vec![r; 100_000 + r as usize]).collect();
            let answers = tree.answers();
            assert_eq!(answers.len(), 3);
            for answer in answers {
                let packet = answer.packet.expect("a value");
                assert!(packet.values().array::<u32>(0).expect("an array") == expected);
            }
        }
    });
}

#[test]
fn large_packets_of_several_back_ends_pass_interleaved() {
    each_seed("large_packets_of_several", 2, |seed| {
        for shape in ["2", "2^2", "3"] {
            let mut tree = Tree::of(shape, seed);
            tree.schedule.widen();
            let everyone = tree.everyone();
            let stream = tree.stream(&everyone, "pass", WaveRule::Immediate);
            for rank in everyone.iter() {
                let values = vec![u64::from(rank) + 5; 655_360];
                tree.send_values(rank, stream, values.as_slice(), None).expect("open");
            }
            let answers = tree.answers();
            assert_eq!(answers.len() as u64, everyone.len());
            for answer in answers {
                let rank = answer.contributors.as_ref().first().expect("one");
                let packet = answer.packet.expect("a value");
                let values: &[u64] = packet.values().array(0).expect("an array");
                assert_eq!(values.len(), 655_360);
                assert!(values.iter().all(|&value| value == u64::from(rank) + 5));
            }
        }
    });
}

#[test]
fn death_in_the_middle_of_a_large_packet_gives_no_wrong_value() {
    const LENGTH: usize = 60_000;
    each_seed("death_in_the_middle", 60, |seed| {
        let mut tree = Tree::of(["2", "2^2", "3x2x2", "1^2"][seed as usize % 4], seed);
        tree.schedule.widen();
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        tree.oracle.forget(stream);
        for rank in everyone.iter() {
            let values = vec![1_i64 << (4 * rank); LENGTH];
            tree.send_values(rank, stream, values.as_slice(), None).expect("open");
        }
        let moves = tree.schedule.below(250) as u64;
        tree.run_some(moves);
        let mut victims = tree.communication_ranks();
        victims.extend(everyone.iter());
        let victim = victims[tree.schedule.below(victims.len())];
        tree.kill(victim);
        let others = everyone.difference(tree.below(victim).as_ref());
        tree.run();
        for rank in others.iter() {
            let values = vec![1_i64 << (4 * rank); LENGTH];
            tree.send_values(rank, stream, values.as_slice(), None).expect("open");
        }
        let answers = tree.answers();
        for answer in &answers {
            let Some(packet) = &answer.packet else {
                assert_eq!(missing_ranks(answer), everyone, "no back-end is in it: {answer:?}");
                continue;
            };
            let sum: i64 = answer.contributors.iter().map(|rank| 1_i64 << (4 * rank)).sum();
            let values: &[i64] = packet.values().array(0).expect("an array");
            assert!(values.iter().all(|&value| value == sum), "a wrong value");
        }
        if others.is_empty() {
            assert!(tree.front_end().application().is_deserted(stream));
        } else {
            assert_eq!(answers.len(), 2, "each wave is answered once: {answers:?}");
            assert_eq!(answers[1].contributors, others, "the next wave is as it should be");
        }
    });
}

#[test]
fn a_large_packet_that_is_late_in_part_harms_no_other() {
    each_seed("a_large_packet_that_is_late", 40, |seed| {
        let mut tree = Tree::of(["2", "2^2", "3"][seed as usize % 3], seed);
        tree.schedule.widen();
        let everyone = tree.everyone();
        let rule = WaveRule::Timeout { milliseconds: 100 };
        let stream = tree.stream(&everyone, "sum", rule);
        tree.oracle.forget(stream);
        for _ in 0..3 {
            for rank in everyone.iter() {
                let values = vec![1_i64 << (4 * rank); 60_000];
                tree.send_values(rank, stream, values.as_slice(), None).expect("open");
                let moves = tree.schedule.below(60) as u64;
                tree.run_some(moves);
                tree.process(0).is_stalled = tree.schedule.one_in(2);
                tree.tick(60);
            }
        }
        tree.process(0).is_stalled = false;
        tree.advance(2000);
        let answers = tree.answers();
        let mut counted = vec![RankSet::new(); 3];
        for answer in &answers {
            let before = &mut counted[answer.wave as usize];
            assert!(answer.contributors.iter().all(|rank| !before.contains(rank)), "twice");
            before.union_with(answer.contributors.as_ref());
            if let Some(packet) = &answer.packet {
                let sum: i64 = answer.contributors.iter().map(|rank| 1_i64 << (4 * rank)).sum();
                let values: &[i64] = packet.values().array(0).expect("an array");
                assert!(values.iter().all(|&value| value == sum), "a wrong value");
            }
        }
        for rank in everyone.iter() {
            tree.send_values(rank, stream, [1_i64].as_slice(), None).expect("open");
        }
        tree.advance(2000);
        let last = tree.one_answer();
        assert!(last.is_complete() && last.wave == 3, "{last:?}");
    });
}
