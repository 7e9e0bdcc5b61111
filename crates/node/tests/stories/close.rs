//! Streams that close, and the network that ends.
use crate::harness::*;
use sapwood_filter::WaveRule;
use sapwood_node::{Event, NodeError, Recovery};
use sapwood_packet::{RankSet, Recipients};

#[test]
fn what_comes_after_closing_harms_nobody() {
    each_seed("what_comes_after_closing", 20, |seed| {
        for shape in ["1", "2^2", "2^3", "8"] {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let (stream, other) = (tree.sum_of_all(), tree.sum_of_all());
            tree.broadcast(stream, &RankSet::new(), 3_i64);
            tree.all_send(&everyone, stream);
            let moves = tree.schedule.below(80) as u64;
            tree.run_some(moves);
            tree.close(stream);
            tree.all_send(&everyone, other);
            assert_eq!(tree.one_answer().stream, other, "{shape}");
            for rank in everyone.iter() {
                let process = tree.process(rank);
                assert!(process.events.contains(&Event::StreamClosed { stream }));
                assert_eq!(process.received.len(), 1, "what was sent before came");
                let error = tree.send(rank, stream, 1).expect_err("it is closed");
                assert_eq!(error, NodeError::Stream { stream });
            }
            let now = sapwood_node::Instant(0);
            let sent =
                tree.front_end().application().broadcast(now, stream, TAG, 1_i64, &Recipients::All);
            assert_eq!(sent, Err(NodeError::Stream { stream }));
        }
    });
}

#[test]
fn the_network_ends_for_everyone_and_every_link_closes() {
    each_seed("the_network_ends", 20, |seed| {
        for shape in SHAPES {
            let mut tree = Tree::of(shape, seed);
            let stream = tree.sum_of_all();
            tree.broadcast(stream, &RankSet::new(), 3_i64);
            tree.shutdown(tree.topology.root().rank());
            tree.run();
            for rank in tree.everyone().iter() {
                let process = tree.process(rank);
                assert_eq!(process.received.len(), 1, "what was sent before came");
                let is_end = |event: &Event| matches!(event, Event::Ended { on_purpose: true, .. });
                assert_eq!(process.events.iter().filter(|event| is_end(event)).count(), 1);
            }
            assert!((0..tree.processes.len()).all(|process| !tree.is_linked(process)), "{shape}");
        }
    });
}

#[test]
fn a_back_end_that_leaves_is_said_to_have_left() {
    each_seed("a_back_end_that_leaves", 20, |seed| {
        for shape in ["2", "2^2", "2^3"] {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let stream = tree.sum_of_all();
            tree.send(1, stream, number_of(1, 0)).expect("open");
            tree.shutdown(1);
            let others = everyone.difference(RankSet::range(1, 1).as_ref());
            tree.all_send(&others, stream);
            assert!(tree.one_answer().is_complete(), "what it sent before counts");
            tree.all_send(&others, stream);
            assert!(says(&tree.one_answer(), 1, "back-end 1 has left"));
        }
    });
}

#[test]
fn what_still_waits_when_the_network_ends_breaks_no_link() {
    each_seed("what_still_waits", 20, |seed| {
        for (shape, recovery) in [("1", Recovery::off()), ("1^3", Recovery::default())] {
            let mut tree = Tree::recovering(shape, seed, recovery);
            let everyone = tree.everyone();
            let mut wanted = spec(&everyone, &["sum"], WaveRule::All);
            wanted.window_bytes = Some(500);
            let stream = tree.open(wanted);
            tree.run();
            for number in 0..20_i64 {
                tree.broadcast(stream, &RankSet::new(), number);
            }
            // All of it goes, whatever the credit; what comes back is more than was spent.
            tree.shutdown(tree.topology.root().rank());
            tree.run();
            assert_eq!(tree.process(0).received.len(), 20, "{shape}");
        }
    });
}
