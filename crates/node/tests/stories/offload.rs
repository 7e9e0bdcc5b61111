//! Offloaded filters: which processes go on meanwhile, what comes of waves that are at
//! work when a process dies or the stream closes, and what of filters that never come back.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::harness::*;
use sapwood_filter::{Emitter, Filter, FilterError, FilterSpec, Registry, WaveRef, WaveRule};
use sapwood_node::{Event, FILTER_LIMIT, Recovery};
use sapwood_packet::{Rank, RankSet, StreamId};

/// Longer than a filter may take.
const TOO_LONG: u64 = FILTER_LIMIT.as_millis() as u64 + 1;

fn terms() -> Recovery {
    Recovery { silence: Duration::ZERO, ..Recovery::default() }
}

/// A tree whose stream of sums is computed apart, and one of the maximum beside it.
fn with_neighbour(shape: &str, seed: u64) -> (Tree, StreamId, StreamId) {
    let mut tree = Tree::with_filters(shape, seed, foreign_filters());
    let everyone = tree.everyone();
    let slow = tree.sum_of_all();
    let neighbour = tree.stream(&everyone, "max", WaveRule::All);
    tree.oracle.forget(neighbour);
    (tree, slow, neighbour)
}

fn all_send_both(tree: &mut Tree, slow: StreamId, neighbour: StreamId) {
    let everyone = tree.everyone();
    tree.all_send(&everyone, slow);
    for rank in everyone.iter() {
        tree.send_values(rank, neighbour, i64::from(rank), None).expect("open");
    }
}

fn is_told_of_limit(tree: &Tree, stream: StreamId) -> bool {
    tree.events.iter().any(|event| {
        matches!(event, Event::FilterFailed { stream: told, reason }
            if *told == stream && reason.contains("is given up"))
    })
}

#[test]
fn neighbours_go_on_while_a_filter_is_at_work() {
    each_seed("neighbours_go_on", 8, |seed| {
        for shape in ["2", "2^3", "8^2"] {
            let (mut tree, slow, neighbour) = with_neighbour(shape, seed);
            tree.holds_jobs = true;
            for wave in 0..3 {
                all_send_both(&mut tree, slow, neighbour);
                let answer = tree.one_answer();
                assert_eq!((answer.stream, answer.wave), (neighbour, wave));
            }
            tree.finish_jobs();
            let answers = tree.answers();
            let waves: Vec<u64> = answers.iter().map(|answer| answer.wave).collect();
            assert_eq!(waves, [0, 1, 2], "in their order");
            assert!(answers.iter().all(|answer| answer.stream == slow && answer.is_complete()));
        }
    });
}

#[test]
fn a_filter_that_never_returns_is_given_up_and_its_stream_says_so() {
    each_seed("a_filter_that_never_returns", 8, |seed| {
        let (mut tree, slow, neighbour) = with_neighbour("2^2", seed);
        tree.oracle.forget(slow);
        tree.holds_jobs = true;
        all_send_both(&mut tree, slow, neighbour);
        assert_eq!(tree.one_answer().stream, neighbour);
        tree.advance(TOO_LONG);
        let answer = tree.one_answer();
        assert_eq!((answer.stream, missing_ranks(&answer)), (slow, tree.everyone()));
        assert!(says(&answer, 0, "filter 'sum' of stream 1 has run for 10000 ms"), "{answer:?}");
        assert!(is_told_of_limit(&tree, slow), "{:?}", tree.events);
        // From now on it says so at once; and the filters that come back after all change nothing.
        all_send_both(&mut tree, slow, neighbour);
        let answers = tree.answers();
        assert_eq!(answers.len(), 2, "{answers:?}");
        tree.finish_jobs();
        all_send_both(&mut tree, slow, neighbour);
        let answers = tree.answers();
        let slow_one = answers.iter().find(|answer| answer.stream == slow).expect("an answer");
        assert!(says(slow_one, 3, "is given up"), "{slow_one:?}");
        assert_eq!(answers.len(), 2, "{answers:?}");
    });
}

#[test]
fn a_filter_that_comes_along_is_not_given_up() {
    let (mut tree, slow, neighbour) = with_neighbour("2", 1);
    tree.holds_jobs = true;
    all_send_both(&mut tree, slow, neighbour);
    tree.answers();
    // It has begun another wave, and is not stuck in the first.
    tree.advance(TOO_LONG - 2);
    tree.finish_jobs();
    tree.holds_jobs = true;
    all_send_both(&mut tree, slow, neighbour);
    tree.advance(TOO_LONG - 2);
    tree.finish_jobs();
    let answers = tree.answers();
    assert!(answers.iter().all(|answer| answer.is_complete()), "{answers:?}");
    assert!(!is_told_of_limit(&tree, slow));
}

/// Filters that are there.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// Counts itself, and passes the first packet on.
struct Counted;

impl Filter for Counted {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let Some(first) = wave.packets.first() else { return Ok(()) };
        out.emit_encoded(first.header.tag, first.values());
        Ok(())
    }

    fn is_offloaded(&self) -> bool {
        true
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

fn counted() -> Registry {
    Registry::built_in().with("counted", |_| {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(Counted))
    })
}

#[test]
fn a_stream_that_closes_lets_go_of_its_filters_where_they_ran() {
    let mut tree = Tree::with_filters("2^3", 3, counted());
    let everyone = tree.everyone();
    let mut wanted = spec(&everyone, &["counted"], WaveRule::All);
    wanted.down = vec![FilterSpec::from("counted")];
    let stream = tree.open(wanted);
    tree.oracle.forget(stream);
    tree.run();
    assert_eq!(ALIVE.load(Ordering::SeqCst), 2 * 7);
    tree.holds_jobs = true;
    tree.all_send(&everyone, stream);
    tree.run();
    tree.close(stream);
    tree.run();
    assert!(tree.answers().is_empty());
    assert!(ALIVE.load(Ordering::SeqCst) >= 4, "those at work are out");
    tree.finish_jobs();
    tree.run();
    tree.finish_jobs();
    assert_eq!(ALIVE.load(Ordering::SeqCst), 0);
    assert!(tree.answers().is_empty(), "no wave waits for it");
}

#[test]
fn packets_at_work_go_down_before_their_stream_closes() {
    each_seed("packets_at_work", 8, |seed| {
        let registry = Registry::built_in().with("down", |_| Ok(Box::new(Down)));
        let mut tree = Tree::with_filters("2^2", seed, registry);
        let everyone = tree.everyone();
        let mut wanted = spec(&everyone, &["max"], WaveRule::All);
        wanted.down = vec![FilterSpec::from("down")];
        let stream = tree.open(wanted);
        tree.delays_jobs = true;
        tree.run();
        for number in 0..20_i64 {
            tree.broadcast(stream, &RankSet::new(), number);
        }
        let is_closed = seed % 2 == 0;
        match is_closed {
            true => tree.close(stream),
            false => tree.shutdown(tree.topology.root().rank()),
        }
        tree.run();
        for rank in everyone.iter() {
            let received = tree.process(rank).received.iter();
            let got: Vec<i64> = received.map(|p| p.values().scalar(0).expect("n")).collect();
            assert_eq!(got, (0..20).map(|n| n + 2).collect::<Vec<_>>(), "rank {rank}");
        }
    });
}

/// Adds one at every level.
struct Down;

impl Filter for Down {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        for packet in wave.packets {
            out.emit(packet.header.tag, packet.values().scalar::<i64>(0)? + 1);
        }
        Ok(())
    }

    fn is_offloaded(&self) -> bool {
        true
    }
}

#[test]
fn what_a_back_end_sent_before_it_died_counts_though_it_is_at_work() {
    each_seed("what_a_back_end_sent", 8, |seed| {
        let (mut tree, slow, _) = with_neighbour("2^2", seed);
        let everyone = tree.everyone();
        tree.holds_jobs = true;
        tree.all_send(&everyone, slow);
        tree.run();
        tree.kill(2);
        tree.run();
        tree.finish_jobs();
        assert!(tree.one_answer().is_complete(), "it had sent");
        let others = everyone.difference(RankSet::range(2, 2).as_ref());
        tree.all_send(&others, slow);
        let answer = tree.one_answer();
        assert_eq!(missing_ranks(&answer), RankSet::range(2, 2), "{answer:?}");
    });
}

#[test]
fn nothing_is_lost_or_doubled_when_processes_die_with_waves_at_work() {
    each_seed("nothing_is_lost_or_doubled", 60, |seed| {
        let shape = ["2x2x2", "3x3", "2x2", "1x1x2x2"][seed as usize % 4];
        let mut tree = Tree::recovering_with(shape, seed, terms(), foreign_filters());
        tree.delays_jobs = true;
        let stream = tree.sum_of_all();
        let everyone = tree.everyone();
        let inner = tree.communication_ranks();
        for round in 0..6 {
            for rank in everyone.iter() {
                let count = 1 + tree.schedule.below(8) as u64;
                tree.send_many(rank, stream, count).expect("open");
            }
            let moves = tree.schedule.below(400) as u64;
            tree.run_some(moves);
            let which: Rank = inner[tree.schedule.below(inner.len())];
            match tree.schedule.below(3) {
                0 if round > 1 && tree.is_alive(which) => tree.kill(which),
                _ if tree.is_alive(which) => tree.cut(which),
                _ => {}
            }
        }
        tree.advance(2000);
        let answers = tree.answers();
        assert!(answers.iter().all(|answer| answer.missing.is_empty()), "{answers:?}");
        let reachable = tree.reachable();
        tree.oracle.check_complete(stream, &reachable);
    });
}

#[test]
fn a_process_that_leaves_waits_for_its_filters_and_loses_nothing() {
    each_seed("a_process_that_leaves", 20, |seed| {
        let mut tree = Tree::recovering_with("2x2x2", seed, terms(), foreign_filters());
        tree.delays_jobs = true;
        let stream = tree.sum_of_all();
        let everyone = tree.everyone();
        for rank in everyone.iter() {
            tree.send_many(rank, stream, 6).expect("open");
        }
        let moves = tree.schedule.below(300) as u64;
        tree.run_some(moves);
        let inner = tree.communication_ranks();
        let which = inner[seed as usize % inner.len()];
        tree.shutdown(which);
        tree.advance(3000);
        let answers = tree.answers();
        assert_eq!(answers.len(), 6, "{answers:?}");
        assert!(answers.iter().all(|answer| answer.is_complete()), "{answers:?}");
    });
}

#[test]
fn slow_filters_are_moved_apart_and_come_back_when_they_are_quick() {
    let mut tree = Tree::of("2", 1);
    let everyone = tree.everyone();
    let stream = tree.stream(&everyone, "average", WaveRule::All);
    tree.oracle.forget(stream);
    let now = sapwood_node::Instant(1_000_000_000);
    tree.front_end().spent(stream, now, Duration::from_millis(50));
    tree.holds_jobs = true;
    tree.all_send(&everyone, stream);
    assert!(tree.answers().is_empty() && tree.jobs.len() == 1, "it is at work elsewhere");
    tree.finish_jobs();
    assert_eq!(tree.answers().len(), 1);
    for _ in 0..1100 {
        tree.all_send(&everyone, stream);
        tree.answers();
    }
    tree.holds_jobs = true;
    tree.all_send(&everyone, stream);
    assert_eq!((tree.answers().len(), tree.jobs.len()), (1, 0), "it is quick again");
}
