//! A tree comes up: each member is named, and one that cannot start says why.
use crate::harness::*;
use sapwood_filter::{Registry, WaveRule};
use sapwood_node::{Event, Input, Instant};
use sapwood_packet::RankSet;

#[test]
fn ready_names_everyone_who_is_there() {
    each_seed("ready_names_everyone", 10, |seed| {
        for shape in SHAPES {
            let tree = Tree::of(shape, seed);
            assert_eq!(tree.events.len(), 1, "ready is said once: {:?}", tree.events);
        }
    });
}

#[test]
fn a_process_that_cannot_start_says_why_and_its_siblings_come_up() {
    each_seed("a_process_that_cannot_start", 20, |seed| {
        for shape in ["2", "8", "2^2", "2^3", "8^2"] {
            let mut tree = Tree::planned(shape, seed, Registry::built_in());
            let mut all = tree.communication_ranks();
            all.extend(tree.everyone().iter());
            let unable = all[tree.schedule.below(all.len())];
            let words = String::from("cannot load libhello.so.1");
            tree.unable.insert(unable, words.clone());
            tree.start();
            let there = tree.everyone().difference(tree.below(unable).as_ref());
            let failed = Event::StartFailed { rank: unable, text: words };
            assert!(tree.events.contains(&failed), "{:?}", tree.events);
            let ready = Event::Ready { back_ends: there.clone(), attach_points: Vec::new() };
            assert_eq!(tree.events.last(), Some(&ready), "{shape}");
            if !there.is_empty() {
                let stream = tree.stream(&there, "sum", WaveRule::All);
                tree.all_send(&there, stream);
                assert!(tree.one_answer().is_complete());
            }
        }
    });
}

#[test]
fn a_process_that_dies_while_the_tree_starts_does_not_hold_it_up() {
    each_seed("a_process_that_dies_while", 60, |seed| {
        let shape = ["2^2", "2^3", "8"][seed as usize % 3];
        let mut tree = Tree::planned(shape, seed, Registry::built_in());
        tree.begin();
        let moves = tree.schedule.below(120) as u64;
        tree.run_some(moves);
        let mut all = tree.communication_ranks();
        all.extend(tree.everyone().iter());
        let victim = all[tree.schedule.below(all.len())];
        if tree.is_alive(victim) {
            tree.kill(victim);
        }
        tree.run();
        let is_ready = |event: &Event| matches!(event, Event::Ready { .. });
        assert_eq!(tree.events.iter().filter(|event| is_ready(event)).count(), 1);
        let reachable: RankSet = tree.reachable().into_iter().collect();
        assert_eq!(tree.front_end().back_ends(), reachable, "those that are left are known");
    });
}

#[test]
fn what_a_process_notices_is_told_to_the_front_end() {
    each_seed("what_a_process_notices", 10, |seed| {
        for shape in ["2", "2^2", "2^3"] {
            let mut tree = Tree::of(shape, seed);
            let mut all = vec![tree.topology.root().rank()];
            all.extend(tree.communication_ranks());
            for rank in all {
                let text = String::from("host n17: its clock is 5400 s ahead of its parent's");
                let noticed = Input::Notice { text: text.clone() };
                tree.process(rank).node.handle_input(Instant(2_000_000_000), noticed);
                // It goes with the process's next output.
                let stream = tree.stream(&tree.everyone(), "sum", WaveRule::All);
                tree.close(stream);
                tree.run();
                assert_eq!(tree.events.last(), Some(&Event::Notice { rank, text }), "{shape}");
            }
        }
    });
}
