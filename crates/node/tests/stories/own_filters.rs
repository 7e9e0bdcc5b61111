//! A stream's filters in back-ends, where the stream asks for them: on what a back-end sends before
//! it gets its wave, and on what comes before it is delivered.

use std::cell::Cell;

use crate::harness::*;
use sapwood_filter::{Emitter, Filter, FilterError, FilterSpec, Registry, WaveRef, WaveRule};
use sapwood_node::{Event, Recovery};
use sapwood_packet::{RankSet, StreamId};

/// The sum of what came, and one for this run; 1013 is refused.
struct Step;

impl Filter for Step {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let sum = sum_of(wave)? + 1;
        if sum == 1013 {
            return Err(FilterError::Failed("that is 1013".into()));
        }
        out.emit(TAG, sum);
        Ok(())
    }
}

/// At back-ends: of two numbers one, of 100 two, of 200 an answer and nothing else. Elsewhere the
/// sum.
#[derive(Default)]
struct Shape {
    held: Option<i64>,
}

impl Filter for Shape {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        match (wave.children, sum_of(wave)?, self.held.take()) {
            (1.., sum, _) => out.emit(TAG, sum),
            (0, 100, _) => (0..2).for_each(|_| out.emit(TAG, 50_i64)),
            (0, 200, _) => out.reply(TAG + 1, i64::from(wave.rank)),
            (0, number, None) => self.held = Some(number),
            (0, number, Some(held)) => out.emit(TAG, number + held),
        }
        Ok(())
    }
}

fn sum_of(wave: &WaveRef<'_>) -> Result<i64, FilterError> {
    let mut sum = 0;
    for packet in wave.packets {
        sum += packet.values().scalar::<i64>(0)?;
    }
    Ok(sum)
}

fn registry() -> Registry {
    Registry::built_in()
        .with("step", |_| Ok(Box::new(Step)))
        .with("shape", |_| Ok(Box::<Shape>::default()))
}

fn tree_with(shape: &str, seed: u64, up: &[&str], down: &[&str]) -> (Tree, StreamId) {
    let mut tree = Tree::recovering_with(shape, seed, terms(), registry());
    let stream = open(&mut tree, up, down);
    (tree, stream)
}

fn open(tree: &mut Tree, up: &[&str], down: &[&str]) -> StreamId {
    let mut wanted = spec(&tree.everyone(), up, WaveRule::All);
    wanted.down = down.iter().map(|name| FilterSpec::from(*name)).collect();
    wanted.at_back_ends = true;
    let stream = tree.open(wanted);
    tree.oracle.forget(stream);
    tree.run();
    stream
}

fn terms() -> Recovery {
    Recovery { silence: std::time::Duration::ZERO, ..Recovery::default() }
}

fn send_all(tree: &mut Tree, stream: StreamId, number: i64) {
    for rank in tree.everyone().iter() {
        tree.send_values(rank, stream, number, None).expect("the stream is open");
    }
}

fn sums(tree: &mut Tree) -> Vec<i64> {
    tree.answers().iter().map(sum_in).collect()
}

#[test]
fn every_process_of_the_tree_runs_the_filter_once_a_wave() {
    each_seed("every_process_of", 6, |seed| {
        for shape in ["1", "2", "2^2", "1^4", "3^2", "8^2"] {
            let (mut tree, stream) = tree_with(shape, seed, &["step"], &["step"]);
            let back_ends = tree.everyone().len() as i64;
            let inner = tree.communication_ranks().len() as i64 + 1;
            for number in [1, 5, 0] {
                send_all(&mut tree, stream, number);
                assert_eq!(sums(&mut tree), [back_ends * (number + 1) + inner], "{shape}");
            }
            tree.broadcast(stream, &RankSet::new(), 2010_i64);
            tree.run();
            let mut levels =
                shape.split('^').nth(1).map_or(1, |text| text.parse().expect("a number"));
            levels += 1_i64;
            for rank in tree.everyone().iter() {
                let received = tree.process(rank).received.iter();
                let got: Vec<i64> = received.map(|p| p.values().scalar(0).expect("n")).collect();
                assert_eq!(got, [2010 + levels], "{shape} {rank}");
            }
        }
    });
}

#[test]
fn none_runs_where_it_is_not_asked_for_or_where_the_process_makes_no_filters() {
    let (mut tree, _) = tree_with("2^2", 1, &[], &[]);
    let wanted = spec(&tree.everyone(), &["step"], WaveRule::All);
    let plain = tree.open(wanted);
    tree.oracle.forget(plain);
    tree.run();
    send_all(&mut tree, plain, 1);
    assert_eq!(sums(&mut tree), [4 + 3]);
    assert!(Registry::empty().is_empty() && !registry().is_empty());
}

#[test]
fn each_packet_of_a_filter_is_a_wave_and_none_is_none() {
    each_seed("each_packet_of", 6, |seed| {
        let (mut tree, stream) = tree_with("2^2", seed, &["shape"], &[]);
        send_all(&mut tree, stream, 3);
        assert_eq!(sums(&mut tree), [] as [i64; 0], "all hold one");
        send_all(&mut tree, stream, 4);
        assert_eq!(sums(&mut tree), [28]);
        send_all(&mut tree, stream, 100);
        assert_eq!(sums(&mut tree), [200, 200]);
        send_all(&mut tree, stream, 200);
        assert_eq!(sums(&mut tree), [] as [i64; 0]);
        for rank in tree.everyone().iter() {
            let received = &tree.process(rank).received;
            assert_eq!(received.len(), 1, "what goes back is the back-end's own");
            assert_eq!(received[0].tag(), TAG + 1);
            assert_eq!(received[0].values().scalar::<i64>(0), Ok(i64::from(rank)));
        }
    });
}

#[test]
fn a_filter_that_fails_costs_its_wave_and_is_named() {
    each_seed("a_filter_that_fails", 6, |seed| {
        let (mut tree, stream) = tree_with("2^2", seed, &["step"], &["step"]);
        for rank in tree.everyone().iter() {
            let number = if rank == 2 { 1012_i64 } else { 1 };
            tree.send_values(rank, stream, number, None).expect("the wave is told of");
        }
        let answer = tree.one_answer();
        assert_eq!((sum_in(&answer), missing_ranks(&answer)), (9, RankSet::range(2, 2)));
        assert!(says(&answer, 2, "that is 1013"), "{answer:?}");
        send_all(&mut tree, stream, 1);
        assert_eq!(sums(&mut tree), [11], "the next wave is whole");
        // The two levels above have added one each: it is refused in back-ends.
        tree.broadcast(stream, &RankSet::new(), 1010_i64);
        tree.run();
        let told = |event: &&Event| matches!(event, Event::FilterFailed { reason, .. } if reason.contains("downward, at rank"));
        assert_eq!(tree.events.iter().filter(told).count(), 4, "{:?}", tree.events);
        assert!(tree.everyone().iter().all(|rank| tree.process(rank).received.is_empty()));
    });
}

thread_local! {
    /// How often the filter below can still be made.
    static LEFT: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn a_back_end_that_cannot_make_the_filter_is_missing_and_hears_why() {
    let rare = |_: sapwood_packet::ValuesRef<'_>| -> Result<Box<dyn Filter>, FilterError> {
        if LEFT.replace(LEFT.get().saturating_sub(1)) == 0 {
            return Err(FilterError::Failed("there is no such file".into()));
        }
        Ok(Box::new(Step))
    };
    for shape in ["2", "2^2"] {
        let registry = Registry::built_in().with("step", rare);
        let mut tree = Tree::recovering_with(shape, 1, terms(), registry);
        // All inner nodes and one back-end have it.
        LEFT.set(tree.communication_ranks().len() as u32 + 2);
        let stream = open(&mut tree, &["step"], &[]);
        let (mut can, mut cannot) = (0, RankSet::new());
        for rank in tree.everyone().iter() {
            match tree.send_values(rank, stream, 1_i64, None) {
                Ok(()) => can += 1,
                Err(error) => {
                    assert!(error.to_string().contains("no such file"), "{error}");
                    cannot.insert(rank);
                }
            }
        }
        assert_eq!(can, 1);
        let answer = tree.one_answer();
        assert_eq!(missing_ranks(&answer), cannot, "{shape}");
        assert!(cannot.iter().all(|rank| says(&answer, rank, "no such file")), "{answer:?}");
        tree.broadcast(stream, &RankSet::new(), 4_i64);
        tree.run();
        let heard =
            tree.everyone().iter().filter(|rank| !tree.process(*rank).received.is_empty()).count();
        assert_eq!(heard, 1, "a packet that passed no filter is not delivered");
    }
}

#[test]
fn large_packets_pass_them_whole() {
    let (mut tree, stream) = tree_with("2^2", 3, &["concatenate"], &["statistics"]);
    let long = vec![1_i64; 100_000];
    for rank in tree.everyone().iter() {
        let values = sapwood_packet::Values::new().array(&long);
        tree.send_values(rank, stream, values, None).expect("the stream is open");
    }
    let answer = tree.one_answer();
    let packet = answer.packet.as_ref().expect("a value");
    assert_eq!(packet.values().array::<i64>(0).expect("numbers").len(), 400_000);
    assert_eq!(answer.contributors, tree.everyone());
}

#[test]
fn what_they_made_is_sent_again_and_not_made_again() {
    each_seed("what_they_made", 100, |seed| {
        let (mut tree, stream) = tree_with("2x2x2", seed, &["shape"], &[]);
        let everyone = tree.everyone();
        let mut waves = Vec::new();
        for victim in tree.communication_ranks() {
            for number in 0..6 {
                send_all(&mut tree, stream, number);
            }
            // Of each two sends one wave.
            waves.extend([8, 40, 72]);
            let moves = tree.schedule.below(400) as u64;
            tree.run_some(moves);
            tree.kill(victim);
        }
        let answers = tree.answers();
        assert!(answers.iter().all(|answer| answer.contributors == everyone), "{:?}", tree.events);
        let got: Vec<i64> = answers.iter().map(sum_in).collect();
        assert_eq!(got, waves, "one answer for each wave");
    });
}
