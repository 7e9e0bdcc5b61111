//! Members come and go on purpose while waves run: no wave is lost or doubled, and new streams have
//! every member that is there.

use std::collections::BTreeSet;

use crate::harness::{Tree, each_seed, missing_ranks, says};
use sapwood_filter::WaveRule;
use sapwood_node::{DYNAMIC_RANKS_BEGIN, Event, Recovery, Role};
use sapwood_packet::{Rank, RankSet, StreamId};

/// Fan-outs 1, 2 and the default of 8, and a mixed one.
const SHAPES: [&str; 4] = ["1^3", "2^3", "8^2", "3x2x2"];

fn terms() -> Recovery {
    Recovery { silence: std::time::Duration::ZERO, ..Recovery::default() }
}

fn shape(seed: u64) -> &'static str {
    SHAPES[seed as usize % SHAPES.len()]
}

/// How many waves each sends.
fn send_waves(tree: &mut Tree, ranks: &RankSet, stream: StreamId, count: u64) {
    for rank in ranks.iter() {
        for _ in 0..count {
            let wave = tree.oracle.next_wave(stream, rank);
            let value = i64::from(rank % 1009) + wave as i64 * 2003;
            tree.send_in(rank, stream, value, wave).expect("the stream is open");
        }
    }
}

/// The front-end and the communication processes that are there, as places to go to.
fn places(tree: &Tree) -> Vec<Rank> {
    let mut places = vec![tree.topology.root().rank()];
    places.extend(tree.communication_ranks().into_iter().filter(|&rank| tree.is_alive(rank)));
    places
}

fn one_of(tree: &mut Tree, places: &[Rank]) -> Rank {
    places[tree.schedule.below(places.len())]
}

/// Takes the answers, which have all back-ends in them, wave by wave.
fn whole(tree: &mut Tree, stream: StreamId, everyone: &RankSet, next: &mut u64) {
    for answer in tree.answers() {
        if answer.stream != stream {
            continue;
        }
        assert_eq!((answer.wave, answer.is_late), (*next, false));
        assert_eq!(answer.contributors, *everyone, "wave {next}: {:?}", answer.missing);
        *next += 1;
    }
}

#[test]
fn back_ends_come_and_go_while_waves_run_without_them() {
    each_seed("back_ends_come_and_go", 120, |seed| {
        let mut tree = Tree::open_to_dynamic_members(shape(seed), seed, terms());
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        let mut given = BTreeSet::new();
        let (mut sent, mut next) = (0, 0);
        for _ in 0..6 {
            send_waves(&mut tree, &everyone, stream, 5);
            sent += 5;
            let (moves, open) = (tree.schedule.below(300) as u64, places(&tree));
            let parent = one_of(&mut tree, &open);
            let joined = tree.join_unplanned(parent, Role::BackEnd);
            tree.run_some(moves);
            tree.run();
            let rank = tree.processes[joined].rank.expect("it was welcomed");
            assert!(rank >= DYNAMIC_RANKS_BEGIN && given.insert(rank), "rank {rank} is fresh");
            let joined = Event::Joined { back_ends: RankSet::range(rank, rank) };
            assert!(tree.events.contains(&joined), "{:?}", tree.events);
            if tree.schedule.one_in(2) {
                send_waves(&mut tree, &everyone, stream, 5);
                sent += 5;
                tree.shutdown(rank);
                let has_left = |event: &Event| matches!(event, Event::Lost { rank: lost, reason, .. } if *lost == rank && reason.contains("has left"));
                tree.run();
                assert!(tree.events.iter().any(has_left), "{:?}", tree.events);
                given.insert(rank);
            }
        }
        whole(&mut tree, stream, &everyone, &mut next);
        assert_eq!(next, sent, "one answer for each wave");

        let now = tree.front_end().back_ends();
        assert!(everyone.difference(now.as_ref()).is_empty());
        let new = tree.stream(&now, "sum", WaveRule::All);
        send_waves(&mut tree, &now, new, 3);
        let mut next = 0;
        whole(&mut tree, new, &now, &mut next);
        assert_eq!(next, 3, "the members are in new streams");
    });
}

#[test]
fn what_a_member_has_sent_before_it_leaves_is_in_the_answers() {
    each_seed("what_a_member_has_sent", 120, |seed| {
        let mut tree = Tree::open_to_dynamic_members(shape(seed), seed, terms());
        let open = places(&tree);
        let parent = one_of(&mut tree, &open);
        let joined = tree.join_unplanned(parent, Role::BackEnd);
        tree.run();
        let rank = tree.processes[joined].rank.expect("it was welcomed");
        let now = tree.front_end().back_ends();
        let others = now.difference(RankSet::range(rank, rank).as_ref());
        let stream = tree.stream(&now, "sum", WaveRule::All);
        send_waves(&mut tree, &now, stream, 10);
        send_waves(&mut tree, &others, stream, 2);
        let moves = tree.schedule.below(200) as u64;
        tree.run_some(moves);
        tree.shutdown(rank);
        tree.advance(600);
        let answers = tree.answers();
        assert_eq!(answers.len(), 12);
        for (wave, answer) in answers.iter().enumerate() {
            let expected = if wave < 10 { &now } else { &others };
            assert_eq!(&answer.contributors, expected, "wave {wave}: {:?}", answer.missing);
        }
        let last = &answers[11];
        assert_eq!(missing_ranks(last), RankSet::range(rank, rank));
        assert!(says(last, rank, "has left"), "{:?}", last.missing);
        assert!(!tree.is_linked(joined));
    });
}

#[test]
fn communication_processes_join_and_leave_and_no_wave_lacks_anybody() {
    each_seed("communication_processes_join", 120, |seed| {
        let mut tree = Tree::open_to_dynamic_members(shape(seed), seed, terms());
        let root = tree.topology.root().rank();
        let joined = tree.join_unplanned(root, Role::Communication);
        tree.run();
        let process = tree.processes[joined].rank.expect("it was welcomed");
        let is_offered = |event: &Event| matches!(event, Event::Offered { attach_points } if attach_points.iter().any(|point| point.parent == process));
        assert!(tree.events.iter().any(is_offered), "{:?}", tree.events);
        for _ in 0..3 {
            let joined = tree.join_unplanned(process, Role::BackEnd);
            tree.run();
            let rank = tree.processes[joined].rank.expect("it was welcomed");
            assert!((process + 1..process + 256).contains(&rank));
        }
        let everyone = tree.front_end().back_ends();
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        let (mut sent, mut next) = (0, 0);
        let mut leaving = tree.communication_ranks();
        leaving.push(process);
        while !leaving.is_empty() {
            send_waves(&mut tree, &everyone, stream, 7);
            sent += 7;
            let moves = tree.schedule.below(500) as u64;
            tree.run_some(moves);
            let at = tree.schedule.below(leaving.len());
            let rank = leaving.swap_remove(at);
            tree.shutdown(rank);
            if tree.schedule.one_in(2) {
                whole(&mut tree, stream, &everyone, &mut next);
            }
        }
        send_waves(&mut tree, &everyone, stream, 2);
        tree.advance(600);
        whole(&mut tree, stream, &everyone, &mut next);
        assert_eq!(next, sent + 2, "one answer for each wave: {:?}", tree.events);
        let is_gone = |event: &Event| match event {
            // One whose own parent had just left could say it to no process.
            Event::Broken { reason, .. } => {
                !reason.contains("has left") && !reason.contains("connection closed")
            }
            Event::Lost { back_ends, .. } => !back_ends.is_empty(),
            _ => false,
        };
        assert!(!tree.events.iter().any(is_gone), "{:?}", tree.events);
    });
}

#[test]
fn dynamic_members_are_repaired_like_all_others() {
    each_seed("dynamic_members_are_repaired", 120, |seed| {
        let mut tree = Tree::open_to_dynamic_members(shape(seed), seed, terms());
        let root = tree.topology.root().rank();
        let joined = tree.join_unplanned(root, Role::Communication);
        tree.run();
        let process = tree.processes[joined].rank.expect("it was welcomed");
        let mut victims = tree.communication_ranks();
        victims.push(process);
        for _ in 0..4 {
            let parent = one_of(&mut tree, &victims.clone());
            tree.join_unplanned(parent, Role::BackEnd);
        }
        tree.run();
        let everyone = tree.front_end().back_ends();
        assert_eq!(everyone.len(), tree.everyone().len() + 4);
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        let (mut sent, mut next) = (0, 0);
        for victim in victims {
            send_waves(&mut tree, &everyone, stream, 7);
            sent += 7;
            let moves = tree.schedule.below(500) as u64;
            tree.run_some(moves);
            tree.kill(victim);
        }
        whole(&mut tree, stream, &everyone, &mut next);
        assert_eq!(next, sent, "one answer for each wave: {:?}", tree.events);
    });
}

#[test]
fn who_is_not_wanted_is_told_why() {
    each_seed("who_is_not_wanted", 10, |seed| {
        let reason = |tree: &Tree, process: usize| {
            let reason = |event: &Event| match event {
                Event::Ended { reason, .. } => Some(reason.clone()),
                _ => None,
            };
            tree.processes[process].events.iter().find_map(reason).unwrap_or_default()
        };
        let mut tree = Tree::recovering("2x2", seed, terms());
        let parent = tree.communication_ranks()[0];
        for (role, text) in [
            (Role::BackEnd, "no rank is free"),
            (Role::Communication, "takes no further processes"),
        ] {
            let joined = tree.join_unplanned(parent, role);
            tree.run();
            assert!(reason(&tree, joined).contains(text), "{}", reason(&tree, joined));
        }
        let mut tree = Tree::open_to_dynamic_members("2x2", seed, terms());
        let joined = tree.join_unplanned(parent, Role::Communication);
        tree.run();
        assert!(reason(&tree, joined).contains("no level below"), "{}", reason(&tree, joined));
        let root = tree.topology.root().rank();
        for _ in 0..16 {
            tree.join_unplanned(root, Role::Communication);
        }
        tree.run();
        let joined = tree.join_unplanned(root, Role::Communication);
        tree.run();
        assert!(reason(&tree, joined).contains("no ranks left"), "{}", reason(&tree, joined));
    });
}
