//! Windows: nothing piles up beyond them, no other process is held up, and nothing is lost.
use crate::harness::*;
use sapwood_filter::WaveRule;
use sapwood_node::Policy;
use sapwood_packet::{RankSet, StreamId};

const WINDOW_BYTES: u32 = 2048;

fn narrow(tree: &mut Tree, filter: &str, wave: WaveRule, policy: Policy) -> StreamId {
    let everyone = tree.everyone();
    let mut wanted = spec(&everyone, &[filter], wave);
    wanted.window_bytes = Some(WINDOW_BYTES);
    wanted.policy = policy;
    let stream = tree.open(wanted);
    tree.run();
    stream
}

/// What back-ends send: one number travels with others in a run, the rest one packet a frame.
#[derive(Clone, Copy, Debug)]
enum Payload {
    Number,
    Pair,
    Text,
}

/// Every back-end sends as long as its window has room; gives how many packets were sent.
fn send_while_room(tree: &mut Tree, stream: StreamId, payload: Payload, most: u64) -> u64 {
    let mut sent = 0;
    for rank in tree.everyone().iter() {
        while tree.oracle.next_wave(stream, rank) < most
            && tree.process(rank).node.application().has_room(stream).expect("open")
        {
            let wave = tree.oracle.next_wave(stream, rank);
            let number = number_of(rank, wave);
            match payload {
                Payload::Number => tree.send_values(rank, stream, number, Some(wave)),
                Payload::Pair => tree.send_values(rank, stream, (number, 7_i64), Some(wave)),
                Payload::Text => tree.send_values(rank, stream, "a word", Some(wave)),
            }
            .expect("open");
            tree.oracle.sent(stream, wave, rank, number);
            sent += 1;
        }
    }
    sent
}

#[test]
fn a_front_end_that_takes_nothing_stops_the_back_ends_and_loses_nothing() {
    each_seed("a_front_end_that_takes_nothing", 4, |seed| {
        for (shape, filter, wave, payload, most) in [
            ("2^3", "sum", WaveRule::All, Payload::Pair, 400),
            ("8", "sum", WaveRule::All, Payload::Pair, 400),
            ("8^2", "pass", WaveRule::Immediate, Payload::Pair, 400),
            ("1^4", "concatenate", WaveRule::All, Payload::Text, 400),
            // Runs make packets cheap: many more fit into the same windows, and no more than that.
            ("2^3", "sum", WaveRule::All, Payload::Number, 1500),
            ("8", "sum", WaveRule::All, Payload::Number, 1500),
        ] {
            let mut tree = Tree::of(shape, seed);
            tree.schedule.cut_bytes = tree.schedule.cut_bytes.max(500);
            let stream = narrow(&mut tree, filter, wave, Policy::Block);
            let other = tree.sum_of_all();
            tree.measures = true;
            while send_while_room(&mut tree, stream, payload, most) > 0 {
                tree.run();
            }
            let everyone = tree.everyone();
            let sent = tree.oracle.next_wave(stream, 0);
            assert!(sent < most, "the window stops {shape} after {sent} {payload:?}");
            let links = tree.topology.node_count() as usize;
            let bound = links * 4 * WINDOW_BYTES as usize + 100_000;
            assert!(tree.most_queued < bound, "{} of {bound} bytes queued", tree.most_queued);
            assert!(tree.front_end().queued_bytes() < 20 * WINDOW_BYTES as usize);

            // Others are not held up.
            for wave in 0..5 {
                tree.all_send(&everyone, other);
                tree.run();
                assert_eq!(tree.front_end_waves(other), wave + 1, "{shape}");
            }

            let mut counted = 0;
            loop {
                let answers = tree.answers();
                let mine = answers.iter().filter(|answer| answer.stream == stream);
                counted += mine.map(|answer| answer.contributors.len()).sum::<u64>();
                if send_while_room(&mut tree, stream, payload, most) == 0 {
                    break;
                }
            }
            assert_eq!(counted, most * everyone.len(), "{shape} {filter} {payload:?}");
        }
    });
}

#[test]
fn a_slow_child_stalls_its_stream_and_no_other() {
    each_seed("a_slow_child_stalls", 10, |seed| {
        for shape in ["2", "2^2", "2^3"] {
            let mut tree = Tree::of(shape, seed);
            let stream = narrow(&mut tree, "sum", WaveRule::All, Policy::Block);
            let other = tree.sum_of_all();
            tree.process(0).is_deaf = true;
            let mut sent = 0;
            while sent < 5000 && tree.front_end().application().has_room(stream).expect("open") {
                tree.broadcast(stream, &RankSet::new(), sent);
                sent += 1;
                tree.run();
            }
            assert!(sent < 5000, "the window stops the front-end");
            let last = tree.everyone().as_ref().last().expect("some");
            tree.broadcast(other, &RankSet::range(last, last), -1_i64);
            tree.run();
            let heard = tree.process(last).received.iter().any(|p| p.header.stream == other);
            assert!(heard, "another stream goes on");
            let bound = tree.topology.node_count() as usize * 3 * WINDOW_BYTES as usize + 50_000;
            assert!(tree.queued_bytes() < bound);

            tree.process(0).is_deaf = false;
            while sent < 500 {
                if tree.front_end().application().has_room(stream).expect("open") {
                    tree.broadcast(stream, &RankSet::new(), sent);
                    sent += 1;
                }
                tree.wake_program(0);
                tree.run();
            }
            tree.wake_program(0);
            tree.run();
            for rank in tree.everyone().iter() {
                let packets = tree.process(rank).received.iter();
                let numbers = packets.filter(|p| p.header.stream == stream);
                let numbers: Vec<i64> = numbers.map(|p| p.values().scalar(0).expect("n")).collect();
                assert_eq!(numbers, (0..sent).collect::<Vec<_>>(), "rank {rank} has all in order");
            }
        }
    });
}

#[test]
fn a_slow_child_that_dies_lets_its_stream_go_on() {
    each_seed("a_slow_child_that_dies", 10, |seed| {
        for shape in ["2", "2^2", "2^3"] {
            let mut tree = Tree::of(shape, seed);
            let stream = narrow(&mut tree, "sum", WaveRule::All, Policy::Block);
            tree.process(0).is_deaf = true;
            let mut sent = 0_i64;
            while tree.front_end().application().has_room(stream).expect("open") {
                tree.broadcast(stream, &RankSet::new(), sent);
                sent += 1;
                tree.run();
            }
            tree.kill(0);
            tree.run();
            let mut more = 0;
            while more < 300 && tree.front_end().application().has_room(stream).expect("open") {
                tree.broadcast(stream, &RankSet::new(), sent + more);
                more += 1;
                tree.run();
            }
            assert_eq!(more, 300, "{shape}: no wave waits for the dead");
            let last = tree.everyone().as_ref().last().expect("some");
            assert_eq!(tree.process(last).received.len() as i64, sent + more);
        }
    });
}

#[test]
fn dropping_the_oldest_counts_and_keeps_the_waves_in_order() {
    each_seed("dropping_the_oldest_counts", 10, |seed| {
        for shape in ["2", "2^3", "8^2"] {
            let mut tree = Tree::of(shape, seed);
            let stream = narrow(&mut tree, "sum", WaveRule::All, Policy::DropOldest);
            let everyone = tree.everyone();
            for _ in 0..300 {
                tree.all_send(&everyone, stream);
                let moves = tree.schedule.below(30) as u64;
                tree.run_some(moves);
            }
            tree.run();
            assert!(tree.queued_bytes() < tree.processes.len() * 6 * WINDOW_BYTES as usize);
            let waves: Vec<u64> = tree.answers().iter().map(|answer| answer.wave).collect();
            assert!(waves.windows(2).all(|pair| pair[0] < pair[1]), "in order: {waves:?}");
            let newest = waves.last().copied();
            assert_eq!(newest, Some(299), "{shape}: what is newest is not dropped");
            let dropped: u64 =
                everyone.iter().map(|r| tree.process(r).node.application().dropped(stream)).sum();
            assert!(dropped > 0, "the story is about drops");
            tree.all_send(&everyone, stream);
            let answers = tree.answers();
            assert!(
                answers.last().is_some_and(|answer| answer.wave == 300 && answer.is_complete())
            );
        }
    });
}

#[test]
fn dropping_downwards_never_joins_halves_of_two_packets() {
    each_seed("dropping_downwards", 12, |seed| {
        let mut tree = Tree::of(["1", "2", "2^2"][seed as usize % 3], seed);
        tree.schedule.widen();
        let everyone = tree.everyone();
        let mut wanted = spec(&everyone, &["sum"], WaveRule::All);
        wanted.window_bytes = Some(300_000);
        wanted.policy = Policy::DropOldest;
        let stream = tree.open(wanted);
        tree.run();
        for number in 0..25_i64 {
            // 3 chunks each, every element tells which packet it is of.
            tree.broadcast(stream, &RankSet::new(), vec![number; 40_000].as_slice());
            let moves = tree.schedule.below(12) as u64;
            tree.run_some(moves);
        }
        tree.run();
        for rank in everyone.iter() {
            let mut before = -1;
            for packet in &tree.process(rank).received {
                let elements: &[i64] = packet.values().array(0).expect("an array");
                assert_eq!(elements.len(), 40_000);
                assert!(elements.iter().all(|&e| e == elements[0]), "one packet, not two halves");
                assert!(elements[0] > before, "in order");
                before = elements[0];
            }
            assert_eq!(before, 24, "the newest comes through to rank {rank}");
        }
    });
}
