//! Streams that do not wait: every packet comes alone, in the order of its sender.
use std::collections::BTreeMap;

use crate::harness::*;
use sapwood_filter::WaveRule;
use sapwood_packet::Rank;

#[test]
fn every_packet_comes_alone_and_in_the_order_of_its_sender() {
    each_seed("every_packet_comes_alone", 8, |seed| {
        for shape in SHAPES {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            for filter in ["pass", "sum"] {
                let stream = tree.stream(&everyone, filter, WaveRule::Immediate);
                for _ in 0..5 {
                    tree.all_send(&everyone, stream);
                }
                let answers = tree.answers();
                assert_eq!(answers.len() as u64, 5 * everyone.len(), "{shape} {filter}");
                let mut next: BTreeMap<Rank, u64> = BTreeMap::new();
                for answer in answers {
                    let rank = answer.contributors.as_ref().first().expect("one sender");
                    assert_eq!(answer.contributors.len(), 1);
                    assert!(answer.missing.is_empty() && !answer.is_late);
                    let wave = next.entry(rank).or_default();
                    assert_eq!((answer.wave, sum_in(&answer)), (*wave, number_of(rank, *wave)));
                    *wave += 1;
                }
            }
        }
    });
}

#[test]
fn what_a_filter_refuses_is_answered_with_its_reason() {
    each_seed("what_a_filter_refuses", 4, |seed| {
        for shape in ["1", "2", "2^3"] {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let stream = tree.stream(&everyone, "statistics", WaveRule::Immediate);
            tree.send_values(0, stream, "no number", None).expect("open");
            let answer = tree.one_answer();
            assert!(answer.packet.is_none(), "{answer:?}");
            assert!(says(&answer, 0, "statistics"), "{answer:?}");
        }
    });
}
