//! Processes note events of waves and packets while a session asks for them.

use core::time::Duration;

use crate::harness::*;
use sapwood_filter::WaveRule;
use sapwood_node::{
    ArrivalSums, ChildSums, HopEvent, HopForm, HopKind, HopQuestion, HopWave, HopWaves, Instant,
    ProcessHops, Records, TELEMETRY,
};
use sapwood_packet::{Rank, RankSet, StreamId};

/// When the harness begins.
const BEGIN: u64 = 1_000_000_000;

const MILLISECOND: u64 = 1_000_000;

const QUESTION: HopQuestion = HopQuestion {
    session: 1,
    lease: Duration::from_secs(1000),
    room: 4096,
    most: 4096,
    stream: None,
    form: HopForm::Events,
};

/// Asks all processes, and gives what each tells by rank.
fn ask(tree: &mut Tree, at_ms: u64, question: &HopQuestion) -> Vec<ProcessHops> {
    let members = tree.front_end().back_ends();
    let wait = WaveRule::Timeout { milliseconds: 500 };
    let stream = tree.stream(&members, TELEMETRY, wait);
    let now = Instant(BEGIN + at_ms * MILLISECOND);
    let asked = tree.front_end().application().ask_everyone(now, stream, Some(question));
    asked.expect("the stream is open");
    tree.settle();
    let answer = tree.one_answer();
    assert!(answer.is_complete(), "{answer:?}");
    tree.close(stream);
    let packet = answer.packet.expect("all tell something");
    let mut hops = Records::from_values(packet.values()).expect("these are records").hops;
    assert_eq!(hops.len(), tree.topology.node_count() as usize);
    hops.sort_by_key(|one| one.rank);
    hops
}

/// The waves of the process, and their sums, out of its events.
fn waves_of(hops: &ProcessHops) -> (Vec<HopWave>, ArrivalSums) {
    let (mut waves, mut all, mut sums) = (HopWaves::default(), Vec::new(), ArrivalSums::default());
    for event in &hops.events {
        if event.kind == HopKind::Late {
            sums.add_late(event);
        }
        waves.add(event, |wave| all.push(wave));
    }
    all.iter().for_each(|wave| sums.add_wave(wave));
    (all, sums)
}

/// In each of three waves this back-end sends 5 ms after all others.
fn three_waves_of(tree: &mut Tree, stream: StreamId, slow: Rank) -> u64 {
    let mut others = tree.everyone();
    others.subtract(RankSet::range(slow, slow).as_ref());
    let mut at_ms = 0;
    for _ in 0..3 {
        tree.all_send(&others, stream);
        tree.advance(5);
        tree.all_send(&RankSet::range(slow, slow), stream);
        tree.advance(1);
        at_ms += 6;
    }
    assert_eq!(tree.answers().len(), 3);
    at_ms
}

#[test]
fn each_process_tells_whose_part_came_last_and_by_how_much() {
    for (seed, spec) in SHAPES.into_iter().enumerate() {
        let mut tree = Tree::of(spec, seed as u64);
        let stream = tree.sum_of_all();
        ask(&mut tree, 0, &QUESTION);
        ask(&mut tree, 0, &HopQuestion { session: 2, form: HopForm::Sums, ..QUESTION });
        let slow = tree.everyone().len() as Rank / 2;
        let at_ms = three_waves_of(&mut tree, stream, slow);
        let told = ask(&mut tree, at_ms, &QUESTION);
        let sums = HopQuestion { session: 2, form: HopForm::Sums, ..QUESTION };
        let summed = ask(&mut tree, at_ms, &sums);
        for (hops, summed) in told.iter().zip(&summed) {
            let children = tree.topology.children(hops.rank).to_vec();
            let (waves, sums) = waves_of(hops);
            assert_eq!(waves.len(), 3, "{spec}: {hops:?}");
            assert_eq!((hops.lost, hops.unread), (0, 0), "{spec}");
            assert_eq!(hops.noted, hops.events.len() as u64, "{spec}");
            // The distributed form says what the events say.
            assert_eq!(summed.streams, sums.streams(), "{spec}");
            assert_eq!(summed.children, sums.children(), "{spec}");
            assert!(summed.events.is_empty(), "{spec}");
            let leads = children
                .iter()
                .copied()
                .find(|&child| child == slow || tree.below(child).contains(slow));
            for wave in &waves {
                assert_eq!(wave.awaited as usize, children.len(), "{spec}: {wave:?}");
                assert_eq!(wave.arrivals.len(), children.len(), "{spec}: {wave:?}");
                let last = wave.last().map(|last| (last.child, last.margin));
                let expected = leads.filter(|_| children.len() > 1).map(|c| (c, 5 * MILLISECOND));
                assert_eq!(last, expected, "{spec}: {wave:?}");
            }
            for child in summed.children.iter().filter(|_| children.len() > 1) {
                let is_slow = Some(child.child) == leads;
                let none = leads.is_none();
                let expected = ChildSums {
                    stream,
                    child: child.child,
                    waves: 3,
                    last: if is_slow { 3 } else { 0 },
                    together: if none { 3 } else { 0 },
                    late: 0,
                    waited: if is_slow || none { 0 } else { 15 * MILLISECOND },
                    caused: if is_slow { 15 * MILLISECOND } else { 0 },
                    caused_most: if is_slow { 5 * MILLISECOND } else { 0 },
                };
                assert_eq!(*child, expected, "{spec}");
            }
        }
    }
}

#[test]
fn what_was_told_once_is_not_told_again() {
    for (seed, spec) in BUSHY.into_iter().enumerate() {
        let mut tree = Tree::of(spec, seed as u64);
        let stream = tree.sum_of_all();
        ask(&mut tree, 0, &QUESTION);
        let at_ms = three_waves_of(&mut tree, stream, 0);
        let first = ask(&mut tree, at_ms, &HopQuestion { most: 1, ..QUESTION });
        let rest = ask(&mut tree, at_ms, &QUESTION);
        let none = ask(&mut tree, at_ms, &QUESTION);
        for ((first, rest), none) in first.iter().zip(&rest).zip(&none) {
            let children = tree.topology.children(first.rank).len();
            let links = children + usize::from(tree.topology.parent(first.rank).is_some());
            assert_eq!(first.events.len(), links + 1, "{spec}: {first:?}");
            assert_eq!(first.unread, rest.events.len() as u64, "{spec}");
            assert_eq!(first.noted, links as u64 + 1 + first.unread, "{spec}");
            assert!(none.events.is_empty() && none.noted == first.noted, "{spec}: {none:?}");
        }
    }
}

#[test]
fn nothing_is_noted_before_a_session_begins_and_after_it_ends() {
    for (seed, spec) in SHAPES.into_iter().enumerate() {
        let mut tree = Tree::of(spec, seed as u64);
        let stream = tree.sum_of_all();
        let begin = three_waves_of(&mut tree, stream, 0);
        let is_fresh = |hops: &ProcessHops| hops.noted == 0 && hops.is_new;
        assert!(ask(&mut tree, begin, &QUESTION).iter().all(is_fresh));
        assert!(ask(&mut tree, begin, &QUESTION).iter().all(|hops| !hops.is_new));
        assert!(tree.front_end().notes_hops());
        let end = HopQuestion { lease: Duration::ZERO, ..QUESTION };
        assert!(ask(&mut tree, begin, &end).iter().all(|hops| hops.noted == 0));
        for process in &tree.processes {
            assert!(!process.node.notes_hops(), "{spec}: {:?}", process.rank);
        }
        // A session whose asker has gone ends with its lease.
        ask(&mut tree, begin, &HopQuestion { lease: Duration::from_millis(3), ..QUESTION });
        three_waves_of(&mut tree, stream, 0);
        for process in &tree.processes {
            assert!(!process.node.notes_hops(), "{spec}: {:?}", process.rank);
        }
    }
}

#[test]
fn what_is_overwritten_before_it_is_read_is_counted() {
    for (seed, spec) in ["8", "1^2", "2^2"].into_iter().enumerate() {
        let mut tree = Tree::of(spec, seed as u64);
        let stream = tree.sum_of_all();
        ask(&mut tree, 0, &HopQuestion { room: 4, ..QUESTION });
        let at_ms = three_waves_of(&mut tree, stream, 0);
        for hops in ask(&mut tree, at_ms, &QUESTION) {
            assert_eq!(hops.lost, hops.noted.saturating_sub(4), "{spec}: {hops:?}");
            assert_eq!(hops.events.len() as u64, hops.noted.min(4), "{spec}: {hops:?}");
            // Of a wave whose first events are lost no part is called the last.
            let (waves, sums) = waves_of(&hops);
            for wave in waves.iter().filter(|wave| !wave.is_whole()) {
                assert_eq!(wave.last(), None, "{spec}: {wave:?}");
            }
            let partial: u64 = sums.streams().iter().map(|sums| sums.partial).sum();
            let torn = waves.iter().filter(|wave| wave.awaited > 0 && !wave.is_whole()).count();
            assert_eq!(partial, torn as u64, "{spec}");
        }
    }
}

#[test]
fn a_ninth_session_is_refused_in_words_that_can_be_read() {
    let mut tree = Tree::of("2^2", 3);
    for session in 1..=8 {
        let told = ask(&mut tree, 0, &HopQuestion { session, ..QUESTION });
        assert!(told.iter().all(|hops| !hops.is_refused), "{session}");
    }
    let told = ask(&mut tree, 0, &HopQuestion { session: 9, ..QUESTION });
    assert!(told.iter().all(|hops| hops.is_refused && hops.noted == 0), "{told:?}");
    ask(&mut tree, 0, &HopQuestion { session: 4, lease: Duration::ZERO, ..QUESTION });
    let told = ask(&mut tree, 0, &HopQuestion { session: 9, ..QUESTION });
    assert!(told.iter().all(|hops| !hops.is_refused), "{told:?}");
}

#[test]
fn runs_of_waves_count_as_many_waves() {
    for (seed, spec) in BUSHY.into_iter().enumerate() {
        let mut tree = Tree::of(spec, seed as u64);
        let stream = tree.sum_of_all();
        ask(&mut tree, 0, &QUESTION);
        for rank in tree.everyone().iter() {
            tree.send_many(rank, stream, 100).expect("the stream is open");
        }
        assert_eq!(tree.answers().len(), 100, "{spec}");
        let told = ask(&mut tree, 0, &QUESTION);
        for hops in &told {
            let (waves, sums) = waves_of(hops);
            assert_eq!(waves.len(), 100, "{spec}: rank {}", hops.rank);
            let is_leaf = tree.topology.children(hops.rank).is_empty();
            assert!(waves.iter().all(|wave| is_leaf || wave.is_whole()), "{spec}");
            assert_eq!(sums.streams()[0].waves, 100, "{spec}");
        }
        // What travels as one piece is noted as one.
        let pieces = |hops: &&ProcessHops| hops.events.iter().any(|event| event.waves > 1);
        assert!(told.iter().any(|hops| pieces(&hops)), "{spec}");
    }
}

#[test]
fn a_part_that_comes_too_late_is_told_as_late_and_its_wave_as_partial() {
    for (seed, spec) in ["2", "8"].into_iter().enumerate() {
        let mut tree = Tree::of(spec, seed as u64);
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::Timeout { milliseconds: 50 });
        ask(&mut tree, 0, &QUESTION);
        let mut others = everyone.clone();
        others.subtract(RankSet::range(1, 1).as_ref());
        tree.all_send(&others, stream);
        tree.advance(60);
        assert_eq!(tree.one_answer().missing.len(), 1);
        tree.all_send(&RankSet::range(1, 1), stream);
        tree.settle();
        tree.answers();
        let root = tree.topology.root().rank();
        let told = ask(&mut tree, 60, &QUESTION);
        let hops = told.iter().find(|hops| hops.rank == root).expect("it tells");
        let (waves, sums) = waves_of(hops);
        assert_eq!(waves.len(), 1, "{spec}");
        assert!(!waves[0].is_whole() && waves[0].last().is_none(), "{spec}");
        assert_eq!(sums.streams()[0].partial, 1, "{spec}");
        let late: Vec<_> = sums.children().into_iter().filter(|child| child.late > 0).collect();
        assert_eq!(late.len(), 1, "{spec}: {late:?}");
        assert_eq!((late[0].child, late[0].late), (1, 1), "{spec}");
    }
}

#[test]
fn large_packets_have_one_event_each_though_they_travel_in_chunks() {
    for (seed, spec) in ["2", "2^2", "1^2"].into_iter().enumerate() {
        for filter in ["sum", "concatenate"] {
            let mut tree = Tree::of(spec, seed as u64);
            let everyone = tree.everyone();
            let stream = tree.stream(&everyone, filter, WaveRule::All);
            ask(&mut tree, 0, &QUESTION);
            let numbers = vec![1_i64; 100_000];
            for rank in everyone.iter() {
                tree.send_values(rank, stream, (&numbers[..],), None).expect("the stream is open");
            }
            tree.broadcast(stream, &everyone, (&numbers[..],));
            tree.settle();
            while tree.front_end().application().poll_delivery().is_some() {}
            for hops in ask(&mut tree, 0, &QUESTION) {
                let count =
                    |kind: HopKind| hops.events.iter().filter(|event| event.kind == kind).count();
                let children = tree.topology.children(hops.rank).len();
                assert_eq!(count(HopKind::Arrived), children, "{spec} {filter}: {hops:?}");
                assert_eq!(count(HopKind::SentUp), 1, "{spec} {filter}: {hops:?}");
                assert_eq!(count(HopKind::Down), 1, "{spec} {filter}: {hops:?}");
            }
        }
    }
}

#[test]
fn packets_of_a_stream_without_waves_are_no_waves() {
    let mut tree = Tree::of("2^2", 5);
    let members = tree.front_end().back_ends();
    let stream = tree.stream(&members, "pass", WaveRule::Immediate);
    ask(&mut tree, 0, &QUESTION);
    let everyone = tree.everyone();
    tree.all_send(&everyone, stream);
    assert_eq!(tree.answers().len(), 4, "one of each back-end");
    for hops in ask(&mut tree, 1, &QUESTION) {
        assert!(hops.events.iter().all(|event| event.kind == HopKind::Down), "{hops:?}");
    }
}

#[test]
fn only_the_stream_that_is_asked_for_is_told_of() {
    let mut tree = Tree::of("2^2", 5);
    let (one, other) = (tree.sum_of_all(), tree.sum_of_all());
    let question = HopQuestion { stream: Some(other), ..QUESTION };
    ask(&mut tree, 0, &question);
    let everyone = tree.everyone();
    tree.all_send(&everyone, one);
    tree.all_send(&everyone, other);
    assert_eq!(tree.answers().len(), 2);
    for hops in ask(&mut tree, 0, &question) {
        let is_other = |event: &HopEvent| event.stream == other;
        assert!(!hops.events.is_empty() && hops.events.iter().all(is_other), "{hops:?}");
    }
}
