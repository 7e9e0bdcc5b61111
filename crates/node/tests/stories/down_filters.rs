//! Filters on the way down: what they rewrite, what they answer, what they refuse.
use crate::harness::*;
use sapwood_filter::{Emitter, Filter, FilterError, FilterSpec, Registry, WaveRef, WaveRule};
use sapwood_packet::{RankSet, StreamId};

/// Adds one to a number on its way down; answers upwards for odd ones, and refuses negative ones.
struct Step;

impl Filter for Step {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        for packet in wave.packets {
            let number = packet.values().scalar::<i64>(0)?;
            if number < 0 {
                return Err(FilterError::Failed("a negative number".into()));
            }
            out.emit(packet.header.tag, number + 1);
            if wave.is_root && number % 2 == 1 || !wave.is_root && number % 2 == 0 {
                out.reply(TAG + 9, i64::from(wave.rank));
            }
        }
        Ok(())
    }
}

fn stepped(shape: &str, seed: u64) -> (Tree, StreamId) {
    let registry = Registry::built_in().with("step", |_| Ok(Box::new(Step)));
    let mut tree = Tree::with_filters(shape, seed, registry);
    let mut wanted = spec(&tree.everyone(), &["sum"], WaveRule::All);
    wanted.down = vec![FilterSpec::from("step")];
    let stream = tree.open(wanted);
    tree.oracle.forget(stream);
    tree.run();
    (tree, stream)
}

#[test]
fn a_filter_rewrites_at_every_level() {
    each_seed("a_filter_rewrites", 6, |seed| {
        for (shape, levels) in [("2", 1), ("1^4", 4), ("2^3", 3), ("8", 1), ("8^2", 2)] {
            let (mut tree, stream) = stepped(shape, seed);
            tree.broadcast(stream, &RankSet::new(), 10_i64);
            tree.broadcast(stream, &RankSet::range(0, 0), 20_i64);
            tree.run();
            for rank in tree.everyone().iter() {
                let received = tree.process(rank).received.iter();
                let got: Vec<i64> = received.map(|p| p.values().scalar(0).expect("n")).collect();
                let both = [10 + levels, 20 + levels];
                assert_eq!(got, if rank == 0 { &both[..] } else { &both[..1] }, "{shape} {rank}");
            }
        }
    });
}

#[test]
fn replies_reach_the_front_end_outside_of_all_waves() {
    each_seed("replies_reach", 6, |seed| {
        let (mut tree, stream) = stepped("2^2", seed);
        tree.broadcast(stream, &RankSet::new(), 1_i64);
        let mut from: Vec<i64> = tree.answers().iter().map(sum_in).collect();
        from.sort_unstable();
        let mut all: Vec<i64> = tree.communication_ranks().into_iter().map(i64::from).collect();
        all.push(i64::from(tree.topology.root().rank()));
        all.sort_unstable();
        assert_eq!(from, all, "each node has answered once");
    });
}

#[test]
fn what_a_filter_refuses_is_told_where_it_happened() {
    let (mut tree, stream) = stepped("2^2", 1);
    tree.broadcast(stream, &RankSet::new(), -5_i64);
    tree.run();
    let told = tree.events.iter().any(|event| {
        matches!(event, sapwood_node::Event::FilterFailed { reason, .. }
            if reason.contains("a negative number"))
    });
    assert!(told, "{:?}", tree.events);
    assert!(tree.process(0).received.is_empty());
}
