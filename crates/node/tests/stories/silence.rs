//! Processes that run late: they excuse others, and a member that was only slow is taken back.

use std::time::Duration;

use crate::harness::{Tree, each_seed, spec};
use sapwood_filter::{Registry, WaveRule};
use sapwood_node::{Event, Recovery};
use sapwood_packet::Rank;

const SILENCE: Duration = Duration::from_millis(300);

fn terms() -> Recovery {
    Recovery { silence: SILENCE, grace: Duration::from_secs(2), ..Recovery::default() }
}

fn is_broken(tree: &Tree) -> bool {
    tree.events.iter().any(|event| matches!(event, Event::Broken { .. }))
}

/// Lets time go by in steps, at the end of which all processes run: each is late by most of it.
fn run_late(tree: &mut Tree, steps: u32, milliseconds: u64) {
    for _ in 0..steps {
        tree.tick(milliseconds);
        tree.run();
    }
}

#[test]
fn what_a_process_is_late_itself_is_no_silence_of_others() {
    each_seed("what_a_process_is_late", 20, |seed| {
        let mut tree = Tree::recovering("2x2", seed, terms());
        let stream = tree.sum_of_all();
        let slow = tree.communication_ranks()[0];
        tree.process(slow).is_stalled = true;
        // Its beats are 50 ms apart: of each step it has overslept 90 ms.
        run_late(&mut tree, 3, 140);
        tree.process(slow).is_stalled = false;
        run_late(&mut tree, 3, 140);
        assert!(!is_broken(&tree), "{:?}", tree.events);
        let everyone = tree.everyone();
        tree.all_send(&everyone, stream);
        assert!(tree.one_answer().is_complete());
    });
}

#[test]
fn who_is_gone_is_missed_though_everybody_runs_late() {
    each_seed("who_is_gone_is_missed", 20, |seed| {
        for step in [40, 140, 1000] {
            let mut tree = Tree::recovering("2x2", seed, terms());
            let gone = tree.communication_ranks()[0];
            tree.process(gone).is_stalled = true;
            run_late(&mut tree, 20, step);
            assert!(is_broken(&tree), "steps of {step} ms: {:?}", tree.events);
        }
    });
}

#[test]
fn who_has_stopped_for_an_hour_gives_others_no_hour() {
    let mut tree = Tree::recovering("2x2", 1, terms());
    let gone = tree.communication_ranks()[0];
    tree.process(gone).is_stalled = true;
    tree.tick(3_600_000);
    tree.run();
    assert!(!is_broken(&tree), "no member has been waited for yet: {:?}", tree.events);
    tree.advance(1_000);
    assert!(is_broken(&tree), "{:?}", tree.events);
}

/// The front-end's events in which something did not start.
fn failures(tree: &Tree) -> Vec<Rank> {
    let failure = |event: &Event| match event {
        Event::StartFailed { rank, .. } => Some(*rank),
        _ => None,
    };
    tree.events.iter().filter_map(failure).collect()
}

#[test]
fn a_process_that_is_silent_while_it_starts_keeps_its_place() {
    each_seed("a_process_that_is_silent", 40, |seed| {
        let mut tree = Tree::planned_to_recover("2x2", seed, terms());
        tree.begin();
        // Until one of the two has been welcomed.
        let slow = 5;
        while !tree.is_welcomed(slow) {
            tree.run_some(1);
        }
        tree.process(slow).is_stalled = true;
        tree.advance(600);
        assert_eq!(failures(&tree), [], "it is only slow: {:?}", tree.events);
        let is_ready = |tree: &Tree| tree.events.iter().any(|e| matches!(e, Event::Ready { .. }));
        assert!(!is_ready(&tree), "it may come back: {:?}", tree.events);
        tree.process(slow).is_stalled = false;
        tree.advance(1_500);
        assert_eq!(failures(&tree), [], "{:?}", tree.events);
        assert!(is_ready(&tree), "{:?}", tree.events);
        let everyone = tree.everyone();
        assert_eq!(tree.front_end().back_ends(), everyone, "{:?}", tree.events);
        let stream = tree.open(spec(&everyone, &["sum"], WaveRule::All));
        tree.run();
        tree.all_send(&everyone, stream);
        assert!(tree.one_answer().is_complete());
    });
}

#[test]
fn a_process_that_never_speaks_again_while_it_starts_has_not_started() {
    each_seed("a_process_that_never_speaks", 20, |seed| {
        let mut tree = Tree::planned_to_recover("2x2", seed, terms());
        tree.begin();
        while !tree.is_welcomed(5) {
            tree.run_some(1);
        }
        tree.process(5).is_stalled = true;
        tree.advance(10_000);
        assert_eq!(failures(&tree), [5], "{:?}", tree.events);
        let ready = tree.events.iter().filter(|event| matches!(event, Event::Ready { .. }));
        assert_eq!(ready.count(), 1, "{:?}", tree.events);
    });
}

#[test]
fn a_child_that_comes_after_its_time_is_taken_in() {
    each_seed("a_child_that_comes_after", 40, |seed| {
        for (late, recovery) in [(0, terms()), (5, terms()), (5, Recovery::off())] {
            let mut tree = Tree::planned_to_recover("2x2", seed, recovery);
            tree.unable.insert(late, "has not joined the network in time".into());
            tree.start();
            assert_eq!(failures(&tree), [late]);
            let (everyone, below) = (tree.everyone(), tree.below(late));
            assert_eq!(tree.front_end().back_ends(), everyone.difference(below.as_ref()));
            let stream = tree.stream(&everyone.difference(below.as_ref()), "sum", WaveRule::All);
            tree.start_late(late);
            tree.run();
            let joined = tree.events.iter().filter_map(|event| match event {
                Event::Joined { back_ends } => Some(back_ends.iter()),
                _ => None,
            });
            assert_eq!(joined.flatten().collect::<Vec<_>>(), below.iter().collect::<Vec<_>>());
            assert_eq!(tree.front_end().back_ends(), everyone);
            tree.all_send(&everyone.difference(below.as_ref()), stream);
            assert!(tree.one_answer().is_complete());
            let stream = tree.stream(&everyone, "sum", WaveRule::All);
            tree.all_send(&everyone, stream);
            assert!(tree.one_answer().is_complete());
        }
    });
}

#[test]
fn a_rank_that_has_come_is_given_to_nobody_else() {
    let mut tree = Tree::planned("2x2", 1, Registry::built_in());
    tree.start();
    let before = tree.front_end().back_ends();
    tree.start_late(5);
    tree.run();
    assert_eq!(tree.front_end().back_ends(), before, "{:?}", tree.events);
}
