//! Packets to named ranks, and receiving from any stream.
use crate::harness::*;
use sapwood_packet::{Rank, RankSet};

#[test]
fn a_packet_reaches_those_it_is_for_and_nobody_else() {
    each_seed("a_packet_reaches_those", 8, |seed| {
        for shape in SHAPES {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let stream = tree.sum_of_all();
            let mut expected = vec![Vec::new(); everyone.len() as usize];
            for number in 0..20_i64 {
                let chosen: RankSet = everyone.iter().filter(|_| tree.schedule.one_in(3)).collect();
                let chosen = if chosen.is_empty() { everyone.clone() } else { chosen };
                tree.broadcast(stream, &chosen, number);
                chosen.iter().for_each(|rank| expected[rank as usize].push(number));
            }
            tree.run();
            for rank in everyone.iter() {
                let values = tree.process(rank).received.iter();
                let values: Vec<i64> = values.map(|p| p.values().scalar(0).expect("one")).collect();
                assert_eq!(values, expected[rank as usize], "{shape} rank {rank}");
            }
        }
    });
}

#[test]
fn a_back_end_receives_from_any_stream_in_order_of_each() {
    each_seed("a_back_end_receives_from_any", 8, |seed| {
        let mut tree = Tree::of("2^3", seed);
        let streams = [tree.sum_of_all(), tree.sum_of_all(), tree.sum_of_all()];
        for number in 0..30_i64 {
            tree.broadcast(streams[number as usize % 3], &RankSet::new(), number);
        }
        tree.run();
        for rank in tree.everyone().iter() {
            let received = std::mem::take(&mut tree.process(rank).received);
            let numbers = |stream| {
                let mine = received.iter().filter(move |packet| packet.header.stream == stream);
                mine.map(|packet| packet.values().scalar(0).expect("one")).collect::<Vec<i64>>()
            };
            for (at, stream) in streams.into_iter().enumerate() {
                assert_eq!(numbers(stream), (0..10).map(|n| n * 3 + at as i64).collect::<Vec<_>>());
            }
        }
    });
}

#[test]
fn a_rank_that_is_no_member_is_refused() {
    let mut tree = Tree::of("2^2", 0);
    let stream = tree.stream(&RankSet::range(0, 1), "sum", sapwood_filter::WaveRule::All);
    let stranger: Rank = 3;
    let to = RankSet::range(stranger, stranger);
    let now = sapwood_node::Instant(0);
    let error = tree
        .front_end()
        .application()
        .broadcast(now, stream, TAG, 1_i64, &to.into())
        .expect_err("no member");
    assert_eq!(error.to_string(), "rank 3 is no member of this stream");
}
