//! A process that dies is named in the answer, with a reason that is true, and nothing waits.
use std::collections::BTreeSet;

use crate::harness::*;
use sapwood_filter::WaveRule;
use sapwood_node::{Cause, Event};
use sapwood_packet::{Rank, RankSet};

fn without(everyone: &RankSet, lost: &RankSet) -> RankSet {
    everyone.difference(lost.as_ref())
}

#[test]
fn a_back_end_that_dies_before_it_sends_is_named() {
    each_seed("a_back_end_that_dies_before", 12, |seed| {
        for shape in ["2", "8", "2^2", "2^4", "8^2"] {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let stream = tree.sum_of_all();
            let dead = tree.schedule.below(everyone.len() as usize) as Rank;
            let others = without(&everyone, &RankSet::range(dead, dead));
            tree.all_send(&others, stream);
            let moves = tree.schedule.below(400) as u64;
            tree.run_some(moves);
            tree.kill(dead);
            for wave in 0..2 {
                if wave > 0 {
                    tree.all_send(&others, stream);
                }
                let answer = tree.one_answer();
                assert_eq!(answer.contributors, others, "{shape}");
                let reason = format!("back-end {dead} is gone");
                assert!(says(&answer, dead, &reason), "{shape} {answer:?}");
            }
            let lost = Event::Lost {
                rank: dead,
                back_ends: RankSet::range(dead, dead),
                reason: format!("back-end {dead} is gone: connection closed"),
                cause: Cause::Died,
            };
            assert!(tree.events.contains(&lost), "{:?}", tree.events);
        }
    });
}

#[test]
fn what_a_back_end_sent_before_it_died_counts_if_it_has_left() {
    each_seed("what_a_back_end_sent", 12, |seed| {
        for shape in ["2", "2^3", "8^2"] {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let stream = tree.sum_of_all();
            let dead = tree.schedule.below(everyone.len() as usize) as Rank;
            tree.send(dead, stream, number_of(dead, 0)).expect("open");
            tree.run();
            tree.kill(dead);
            tree.all_send(&without(&everyone, &RankSet::range(dead, dead)), stream);
            assert!(tree.one_answer().is_complete(), "it had sent");
        }
    });
}

#[test]
fn death_while_sending_is_all_or_nothing() {
    each_seed("death_while_sending", 60, |seed| {
        let mut tree = Tree::of(["2", "2^2", "2^3", "8"][seed as usize % 4], seed);
        let everyone = tree.everyone();
        let stream = tree.sum_of_all();
        let dead = tree.schedule.below(everyone.len() as usize) as Rank;
        for _ in 0..3 {
            tree.all_send(&everyone, stream);
        }
        let moves = tree.schedule.below(300) as u64;
        tree.run_some(moves);
        tree.kill(dead);
        assert_eq!(tree.answers().len(), 3, "the oracle has seen them");
    });
}

#[test]
fn a_communication_process_takes_its_subtree_with_it() {
    each_seed("a_communication_process_takes", 20, |seed| {
        for shape in BUSHY {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let stream = tree.sum_of_all();
            let inner = tree.communication_ranks();
            let dead = inner[tree.schedule.below(inner.len())];
            let lost = tree.below(dead);
            let others = without(&everyone, &lost);
            tree.run();
            tree.kill(dead);
            tree.all_send(&others, stream);
            let answer = tree.one_answer();
            assert_eq!((&answer.contributors, &missing_ranks(&answer)), (&others, &lost));
            let reason = format!("communication process {dead} is gone");
            assert!(lost.iter().all(|rank| says(&answer, rank, &reason)), "{answer:?}");
            for orphan in lost.iter() {
                assert!(tree.process(orphan).node.has_ended(), "an orphan ends");
            }
        }
    });
}

#[test]
fn a_stream_whose_members_are_all_gone_is_deserted_and_delivers_what_it_has() {
    each_seed("a_stream_whose_members", 20, |seed| {
        for shape in ["1", "1^3", "2", "2^3"] {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            let stream = tree.sum_of_all();
            assert!(!tree.front_end().application().is_deserted(stream));
            tree.all_send(&everyone, stream);
            tree.run();
            everyone.iter().for_each(|rank| tree.kill(rank));
            let answer = tree.one_answer();
            assert!(answer.is_complete(), "it had come before they died");
            assert!(tree.front_end().application().is_deserted(stream), "{shape}");
            let gone = tree.front_end().application().missing_members(stream);
            let mut ranks = RankSet::new();
            gone.iter().for_each(|missing| ranks.union_with(missing.ranks.as_ref()));
            assert_eq!(ranks, everyone);
            let named: u64 = gone.iter().map(|missing| missing.ranks.len()).sum();
            assert_eq!(named, everyone.len(), "no member is in two entries: {gone:?}");
            let causes: BTreeSet<Cause> = gone.iter().map(|missing| missing.cause).collect();
            assert_eq!(causes.len(), gone.len(), "one entry for each cause: {gone:?}");
        }
    });
}

#[test]
fn a_stream_opened_while_its_members_die_is_deserted_too() {
    each_seed("a_stream_opened_while", 30, |seed| {
        for shape in ["1^3", "2^2", "2^3"] {
            let mut tree = Tree::of(shape, seed);
            let everyone = tree.everyone();
            everyone.iter().for_each(|rank| tree.kill(rank));
            let moves = tree.schedule.below(12) as u64;
            tree.run_some(moves);
            let stranger = sapwood_node::NodeError::Members { ranks: RankSet::new() };
            let wanted = spec(&everyone, &["sum"], WaveRule::All);
            match tree.front_end().application().open_stream(wanted) {
                Ok(stream) => {
                    tree.settle();
                    assert!(tree.front_end().application().is_deserted(stream), "{shape}");
                }
                Err(error) => {
                    assert_eq!(core::mem::discriminant(&error), core::mem::discriminant(&stranger));
                }
            }
        }
    });
}

#[test]
fn an_orphan_tells_its_application_why() {
    let mut tree = Tree::of("2^2", 3);
    let inner = tree.communication_ranks()[0];
    let orphan = tree.below(inner).as_ref().first().expect("it has children");
    tree.kill(inner);
    tree.run();
    let events = &tree.process(orphan).events;
    let is_end = |event: &Event| matches!(event, Event::Ended { on_purpose: false, reason } if reason.contains("parent"));
    assert!(events.iter().any(is_end), "{events:?}");
}
