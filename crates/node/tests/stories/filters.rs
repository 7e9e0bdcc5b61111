//! Filters inside the tree: the built-in ones, chains, filters with a memory, and what they refuse.
use crate::harness::*;
use sapwood_filter::{
    Emitter, EquivalenceClasses, Filter, FilterError, Registry, Statistics, WaveRef, WaveRule,
};
use sapwood_node::{Answer, NodeError};
use sapwood_packet::{Packet, RankSet, ValuesRef};

fn only(tree: &mut Tree, filter: &str) -> Packet {
    let everyone = tree.everyone();
    let stream = tree.stream(&everyone, filter, WaveRule::All);
    tree.oracle.forget(stream);
    for rank in everyone.iter() {
        tree.send_values(rank, stream, f64::from(rank % 3), None).expect("open");
    }
    let answer = tree.one_answer();
    assert!(answer.is_complete() && answer.contributors == everyone, "{filter} {answer:?}");
    answer.packet.expect("a value")
}

#[test]
fn every_built_in_filter_gives_what_it_says() {
    each_seed("every_built_in_filter", 4, |seed| {
        for shape in SHAPES {
            let mut tree = Tree::of(shape, seed);
            let sent: Vec<f64> = tree.everyone().iter().map(|r| f64::from(r % 3)).collect();
            let count = sent.len() as f64;
            let sum: f64 = sent.iter().sum();
            let largest = sent.iter().copied().fold(0.0, f64::max);
            let scalar = |packet: Packet| packet.values().scalar::<f64>(0).expect("a number");
            assert_eq!(scalar(only(&mut tree, "sum")).to_bits(), sum.to_bits());
            assert_eq!(scalar(only(&mut tree, "min")).to_bits(), 0_f64.to_bits());
            assert_eq!(scalar(only(&mut tree, "max")).to_bits(), largest.to_bits());
            assert!((scalar(only(&mut tree, "average")) - sum / count).abs() < 1e-12);
            let counted = only(&mut tree, "count");
            assert_eq!(counted.values().scalar::<u64>(0), Ok(sent.len() as u64));
            let joined = only(&mut tree, "concatenate");
            assert_eq!(joined.values().array::<f64>(0).expect("an array"), sent);
            let packet = only(&mut tree, "equivalence");
            let classes = EquivalenceClasses::read(packet.values()).expect("classes");
            assert_eq!(classes.classes().len(), sent.len().min(3));
            let packet = only(&mut tree, "statistics");
            let statistics = Statistics::read(packet.values()).expect("statistics");
            assert_eq!(statistics.elements()[0].count, sent.len() as u64);
            assert!((statistics.elements()[0].mean - sum / count).abs() < 1e-12);
        }
    });
}

#[test]
fn packets_that_nothing_joins_come_one_by_one_with_the_missing_at_the_end() {
    each_seed("packets_that_nothing_joins", 6, |seed| {
        for shape in ["2", "2^3", "8^2"] {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let stream = tree.stream(&everyone, "pass", WaveRule::All);
            tree.kill(1);
            let others = everyone.difference(RankSet::range(1, 1).as_ref());
            tree.all_send(&others, stream);
            let answers = tree.answers();
            let mut seen = RankSet::new();
            answers.iter().for_each(|answer| seen.union_with(answer.contributors.as_ref()));
            assert_eq!((seen, answers.len() as u64), (others.clone(), others.len()));
            let (last, before) = answers.split_last().expect("answers");
            assert!(before.iter().all(|answer| answer.missing.is_empty()), "{before:?}");
            assert_eq!(missing_ranks(last), RankSet::range(1, 1), "{last:?}");
        }
    });
}

#[test]
fn mixed_formats_are_answered_with_the_filters_reason() {
    each_seed("mixed_formats", 10, |seed| {
        for shape in ["2", "8", "2^2", "2^4"] {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let stream = tree.stream(&everyone, "sum", WaveRule::All);
            tree.oracle.forget(stream);
            for rank in everyone.iter() {
                let sent = match rank {
                    0 => tree.send_values(rank, stream, "a word", None),
                    _ => tree.send_values(rank, stream, 1_i64, None),
                };
                sent.expect("open");
            }
            let answer = tree.one_answer();
            assert!(says(&answer, 0, "sum"), "{shape} {answer:?}");
            assert!(!answer.contributors.contains(0), "{answer:?}");
            let mut all = missing_ranks(&answer);
            all.union_with(answer.contributors.as_ref());
            assert_eq!(all, everyone);
            assert!(answer.missing.iter().all(|m| !m.reason.contains("sent nothing")));
            // The next wave is not touched by it.
            for rank in everyone.iter() {
                tree.send_values(rank, stream, 1_i64, None).expect("open");
            }
            assert_eq!(sum_in(&tree.one_answer()) as u64, everyone.len());
        }
    });
}

#[test]
fn an_unknown_filter_is_refused_where_the_stream_is_opened() {
    let mut tree = Tree::of("2", 0);
    let everyone = tree.everyone();
    let error =
        tree.front_end().application().open_stream(spec(&everyone, &["summ"], WaveRule::All));
    assert!(matches!(error, Err(NodeError::Filter(FilterError::Unknown { .. }))), "{error:?}");
}

/// Sums, but only in every second wave, which it counts itself; then also gives its count, and
/// tells those below.
#[derive(Default)]
struct EverySecond {
    waves: i64,
}

impl Filter for EverySecond {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        self.waves += 1;
        if self.waves % 2 == 1 {
            return Ok(());
        }
        let number = |values: ValuesRef<'_>| values.scalar::<i64>(0).unwrap_or(0);
        let first = wave.packets.iter().filter(|packet| packet.header.tag == TAG);
        out.emit(TAG, first.map(|packet| number(packet.values())).sum::<i64>());
        out.emit(TAG + 1, self.waves);
        out.reply(TAG + 2, i64::from(wave.rank));
        Ok(())
    }
}

#[test]
fn a_filter_may_remember_suppress_emit_twice_and_reply() {
    each_seed("a_filter_may_remember", 8, |seed| {
        for shape in ["1", "2", "8"] {
            let registry =
                Registry::built_in().with("second", |_| Ok(Box::<EverySecond>::default()));
            let mut tree = Tree::with_filters(shape, seed, registry);
            let everyone = tree.everyone();
            let stream = tree.stream(&everyone, "second", WaveRule::All);
            for _ in 0..4 {
                tree.all_send(&everyone, stream);
            }
            let answers = tree.answers();
            let waves: Vec<(u64, i32)> = answers.iter().map(tag_of).collect();
            assert_eq!(waves, [(1, TAG), (1, TAG + 1), (3, TAG), (3, TAG + 1)], "{shape}");
            assert_eq!(sum_in(&answers[0]), everyone.iter().map(|r| number_of(r, 1)).sum());
            assert_eq!(sum_in(&answers[3]), 4);
            let root = i64::from(tree.topology.root().rank());
            for rank in everyone.iter() {
                let replies = tree.process(rank).received.iter();
                let replies: Vec<_> = replies.map(|p| (p.tag(), p.values().scalar(0))).collect();
                assert_eq!(replies, [(TAG + 2, Ok(root)), (TAG + 2, Ok(root))]);
            }
        }
    });
}

fn tag_of(answer: &Answer) -> (u64, i32) {
    (answer.wave, answer.packet.as_ref().expect("a value").tag())
}

#[test]
fn a_wave_suppressed_inside_the_tree_is_no_answer() {
    each_seed("a_wave_suppressed_inside", 8, |seed| {
        let registry = Registry::built_in().with("second", |_| Ok(Box::<EverySecond>::default()));
        let mut tree = Tree::with_filters("2^2", seed, registry);
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "second", WaveRule::All);
        for _ in 0..8 {
            tree.all_send(&everyone, stream);
        }
        // Below, waves 1, 3, 5 and 7 go on; of the waves that have values, the front-end answers
        // each second one. Waves without a value do not reach its filter.
        let waves: Vec<u64> = tree.answers().iter().map(|answer| answer.wave).collect();
        assert_eq!(waves, [3, 3, 7, 7]);
    });
}

#[test]
fn a_chain_runs_its_filters_in_order() {
    each_seed("a_chain_runs", 6, |seed| {
        for shape in ["2", "2^3", "8"] {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let stream = tree.open(spec(&everyone, &["max", "sum"], WaveRule::All));
            tree.run();
            tree.all_send(&everyone, stream);
            let answer = tree.one_answer();
            let largest = everyone.iter().map(|r| number_of(r, 0)).max().expect("some");
            assert_eq!(sum_in(&answer), largest, "the sum of one largest number");
            assert!(answer.is_complete());
        }
    });
}

#[test]
fn a_process_that_does_not_know_a_filter_is_named_in_every_wave() {
    each_seed("a_process_that_does_not_know", 10, |seed| {
        let mut tree = Tree::of("2^2", seed);
        tree.teach_front_end("second", |_| Ok(Box::<EverySecond>::default()));
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "second", WaveRule::All);
        assert!(
            tree.front_end().application().is_deserted(stream),
            "no back-end below can take part"
        );
    });
}
