//! Back-ends that come by themselves: where, under which rank, and when they are refused.
use crate::harness::*;
use sapwood_node::Event;
use sapwood_packet::{Rank, RankSet};

/// Why a process was sent away.
fn refusal(tree: &Tree, process: usize) -> String {
    let reason = |event: &Event| match event {
        Event::Ended { on_purpose: false, reason } => Some(reason.clone()),
        _ => None,
    };
    tree.processes[process].events.iter().find_map(reason).unwrap_or_default()
}

fn attach_all(tree: &mut Tree) {
    let everyone = tree.everyone();
    for rank in everyone.iter() {
        let parent = tree.topology.parent(rank).expect("a parent").rank();
        let process = tree.attach(parent, Some(rank));
        assert_eq!(tree.processes[process].node.rank(), Some(rank));
    }
    assert_eq!(tree.front_end().back_ends(), everyone);
}

#[test]
fn the_tree_says_where_ranks_are_kept_and_tells_who_joins() {
    each_seed("the_tree_says_where", 10, |seed| {
        for shape in ["2", "2x3", "2^3"] {
            let mut tree = Tree::attaching(shape, seed);
            let Some(Event::Ready { back_ends, attach_points }) = tree.events.first().cloned()
            else {
                panic!("ready comes first: {:?}", tree.events);
            };
            assert!(back_ends.is_empty());
            let mut kept = RankSet::new();
            for point in &attach_points {
                assert_eq!(
                    point.ranks,
                    tree.topology.children(point.parent).iter().copied().collect()
                );
                kept.union_with(point.ranks.as_ref());
            }
            assert_eq!(kept, tree.everyone());
            attach_all(&mut tree);
            for rank in tree.everyone().iter() {
                let joined = Event::Joined { back_ends: RankSet::range(rank, rank) };
                assert!(tree.events.contains(&joined), "{:?}", tree.events);
            }
            let stream = tree.sum_of_all();
            let everyone = tree.everyone();
            tree.all_send(&everyone, stream);
            assert!(tree.one_answer().is_complete());
        }
    });
}

#[test]
fn a_back_end_without_a_wish_gets_a_free_rank() {
    each_seed("a_back_end_without_a_wish", 10, |seed| {
        let mut tree = Tree::attaching("2x3", seed);
        let parent = tree.communication_ranks()[1];
        let ranks: Vec<Option<Rank>> = (0..3)
            .map(|_| {
                let process = tree.attach(parent, None);
                tree.processes[process].node.rank()
            })
            .collect();
        assert_eq!(ranks, [Some(3), Some(4), Some(5)]);
        let process = tree.attach(parent, None);
        assert!(refusal(&tree, process).contains("no rank is free"), "{}", refusal(&tree, process));
    });
}

#[test]
fn a_rank_that_is_taken_or_foreign_is_refused_with_the_reason() {
    each_seed("a_rank_that_is_taken", 10, |seed| {
        let mut tree = Tree::attaching("2x3", seed);
        let parent = tree.communication_ranks()[0];
        tree.attach(parent, Some(1));
        let taken = tree.attach(parent, Some(1));
        assert!(refusal(&tree, taken).contains("rank 1 has attached already"));
        let foreign = tree.attach(parent, Some(5));
        assert!(refusal(&tree, foreign).contains("kept ranks are '0-2'"));
        assert_eq!(tree.front_end().back_ends(), RankSet::range(1, 1), "no other is there");
    });
}

#[test]
fn a_back_end_that_comes_back_takes_part_again() {
    each_seed("a_back_end_that_comes_back", 30, |seed| {
        let mut tree = Tree::attaching(["2x3", "3"][seed as usize % 2], seed);
        attach_all(&mut tree);
        let everyone = tree.everyone();
        let stream = tree.sum_of_all();
        let others = everyone.difference(RankSet::range(1, 1).as_ref());
        tree.all_send(&others, stream);
        tree.run();
        tree.kill(1);
        assert_eq!(tree.one_answer().contributors, others);

        // A wave is open while it comes: that one does without it.
        tree.send(0, stream, number_of(0, 1)).expect("open");
        tree.run();
        let parent = tree.topology.parent(1).expect("a parent").rank();
        tree.attach(parent, Some(1));
        tree.send(2, stream, number_of(2, 1)).expect("open");
        for rank in everyone.iter().filter(|&rank| rank > 2) {
            tree.send(rank, stream, number_of(rank, 1)).expect("open");
        }
        let answer = tree.one_answer();
        assert_eq!((answer.wave, &answer.contributors), (1, &others));

        tree.oracle.lost = RankSet::new();
        for rank in everyone.iter() {
            tree.send_in(rank, stream, number_of(rank, 2), 2).expect("open");
        }
        assert!(tree.one_answer().is_complete());
    });
}
