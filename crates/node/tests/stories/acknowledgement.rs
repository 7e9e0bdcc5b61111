//! What went down is acknowledged soon enough: a process that keeps it until then never waits for
//! good, however deep or wide the tree and whatever the windows.
use crate::harness::*;
use sapwood_filter::WaveRule;
use sapwood_node::Recovery;
use sapwood_packet::{RankSet, StreamId};
use sapwood_wire::limits::{ANCESTORS_MAX, KEPT_BYTES};

/// Numbers in one packet: 16 KiB of them, or three chunks and a bit.
const SMALL: usize = 2 << 10;
const CHUNKED: usize = 50 << 10;

/// Without probes, on whose beat everything is told some time.
fn terms() -> Recovery {
    Recovery { silence: std::time::Duration::ZERO, ..Recovery::default() }
}

fn tree_with(shape: &str, seed: u64, window: u32) -> (Tree, StreamId) {
    let mut tree = Tree::recovering(shape, seed, terms());
    tree.schedule.widen();
    let everyone = tree.everyone();
    let mut wanted = spec(&everyone, &["sum"], WaveRule::All);
    wanted.window_bytes = Some(window);
    let stream = tree.open(wanted);
    tree.run();
    (tree, stream)
}

/// How packets follow one another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    OneByOne,
    /// As many as there is room for.
    Together,
}

/// The front-end sends as long as there is room, until this many packets of this many numbers have
/// gone. The clock stands still. Gives how many have gone.
fn send_down(
    tree: &mut Tree,
    stream: StreamId,
    (packets, numbers): (usize, usize),
    pace: Pace,
) -> usize {
    for sent in 0..packets {
        if !tree.front_end().application().has_room(stream).expect("open") {
            tree.run();
        }
        if !tree.front_end().application().has_room(stream).expect("open") {
            return sent;
        }
        tree.broadcast(stream, &RankSet::new(), vec![sent as i64; numbers].as_slice());
        if pace == Pace::OneByOne {
            tree.run();
        }
    }
    tree.run();
    packets
}

#[test]
fn a_deep_chain_takes_many_times_what_is_kept() {
    each_seed("a_deep_chain", 1, |seed| {
        use Pace::{OneByOne, Together};
        let depths = [(12, OneByOne), (40, OneByOne), (ANCESTORS_MAX, OneByOne), (40, Together)];
        for (depth, pace) in depths {
            let window = if pace == OneByOne { 256 << 10 } else { 40 << 10 };
            let (mut tree, stream) = tree_with(&format!("1^{depth}"), seed, window);
            let packets = 3 * KEPT_BYTES / (8 * SMALL);
            let sent = send_down(&mut tree, stream, (packets, SMALL), pace);
            assert_eq!(sent, packets, "{depth} levels, windows of {window} bytes");
            assert_eq!(tree.process(0).received.len(), packets);
        }
    });
}

#[test]
fn large_packets_go_down_a_deep_chain() {
    each_seed("large_packets_go_down", 1, |seed| {
        let (mut tree, stream) = tree_with("1^40", seed, 256 << 10);
        assert_eq!(send_down(&mut tree, stream, (8, CHUNKED), Pace::OneByOne), 8);
    });
}

#[test]
fn a_window_larger_than_what_is_kept_stops_nobody() {
    each_seed("a_window_larger", 2, |seed| {
        for shape in ["1", "1^3", "3^2"] {
            let (mut tree, stream) = tree_with(shape, seed, 8 << 20);
            let packets = 4 * KEPT_BYTES / (8 * SMALL);
            let sent = send_down(&mut tree, stream, (packets, SMALL), Pace::Together);
            assert_eq!(sent, packets, "{shape}");
        }
    });
}

#[test]
fn a_little_for_each_of_many_stops_nobody_for_long() {
    each_seed("a_little_for_each", 2, |seed| {
        for shape in ["48", "6x8", "24x2"] {
            let (mut tree, stream) = tree_with(shape, seed, 256 << 10);
            for round in 0..4 {
                for rank in tree.everyone().iter() {
                    let mut waited = 0;
                    while !tree.front_end().application().has_room(stream).expect("open") {
                        assert!(waited < 200, "{shape}: the turn of {rank} in round {round}");
                        tree.advance(10);
                        waited += 10;
                    }
                    let numbers = vec![round; SMALL];
                    tree.broadcast(stream, &RankSet::range(rank, rank), numbers.as_slice());
                }
            }
            tree.run();
            for rank in tree.everyone().iter() {
                assert_eq!(tree.process(rank).received.len(), 4, "{shape}");
            }
        }
    });
}

#[test]
fn a_word_that_one_has_heard_does_not_stop_the_others() {
    each_seed("a_word_that_one_has_heard", 2, |seed| {
        for shape in ["2", "2^2", "2^4"] {
            let (mut tree, stream) = tree_with(shape, seed, 256 << 10);
            tree.broadcast(stream, &RankSet::range(0, 0), 1_i64);
            tree.run();
            let last = tree.everyone().as_ref().last().expect("some");
            for _ in 0..3 * KEPT_BYTES / (8 * SMALL) {
                let mut waited = 0;
                while !tree.front_end().application().has_room(stream).expect("open") {
                    assert!(waited < 2000, "{shape}");
                    tree.advance(100);
                    waited += 100;
                }
                let numbers = vec![7_i64; SMALL];
                tree.broadcast(stream, &RankSet::range(last, last), numbers.as_slice());
            }
        }
    });
}

#[test]
fn a_process_without_anybody_below_stops_nobody() {
    each_seed("a_process_without_anybody", 2, |seed| {
        for shape in ["2^2", "2^3", "1^2", "2"] {
            let (mut tree, stream) = tree_with(shape, seed, 256 << 10);
            let alone = tree.communication_ranks().last().copied();
            let dead = alone.map_or_else(|| tree.everyone(), |alone| tree.below(alone));
            dead.iter().for_each(|rank| tree.kill(rank));
            tree.advance(30_000);
            let packets = 4 * KEPT_BYTES / (8 * SMALL);
            for sent in 0..packets {
                let mut waited = 0;
                while !tree.front_end().application().has_room(stream).expect("open") {
                    assert!(waited < 2000, "{shape} after {sent}");
                    tree.advance(100);
                    waited += 100;
                }
                let numbers = vec![7_i64; SMALL];
                tree.broadcast(stream, &RankSet::new(), numbers.as_slice());
            }
        }
    });
}
