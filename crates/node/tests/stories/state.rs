//! Filters that hold something from wave to wave, and the death of the processes that they are in.
//!
//! Every back-end marks each of its waves in an array that no other marks at that place, and
//! `accumulate` adds these arrays up. In the total of all answers a mark is 1 if the contribution
//! was counted, 0 if it was lost, and more if it was counted twice.

use std::time::Duration;

use crate::harness::{Tree, each_seed, foreign_filters, number_of, spec};
use sapwood_filter::{FilterSpec, Registry, WaveRule};
use sapwood_node::{Answer, Event, Recovery, StreamSpec};
use sapwood_packet::{Rank, RankSet, StreamId, Values};

/// Waves that may be lost of what a process held.
const BOUND: usize = 64;

fn terms() -> Recovery {
    Recovery { silence: Duration::ZERO, ..Recovery::default() }
}

/// A tree whose back-ends mark waves on a stream of the filter `accumulate`.
struct Marked {
    tree: Tree,
    stream: StreamId,
    everyone: RankSet,
    /// How many waves there will be.
    waves: usize,
    /// How many waves each back-end has marked.
    sent: Vec<usize>,
    /// Whether every answer is of all back-ends.
    is_whole: bool,
    /// For each back-end and wave, how often it was counted.
    counted: Vec<u8>,
}

impl Marked {
    fn new(shape: &str, seed: u64, terms: Recovery, period: u64, waves: usize) -> Self {
        // In some runs the filter is at work elsewhere while the tree goes on.
        let is_foreign = seed % 2 == 1;
        let registry = if is_foreign { foreign_filters() } else { Registry::built_in() };
        let mut tree = Tree::recovering_with(shape, seed, terms, registry);
        tree.delays_jobs = is_foreign;
        let everyone = tree.everyone();
        let parameters = Values::new().scalar(period);
        let accumulate = FilterSpec { name: "accumulate".into(), parameters };
        let members = everyone.clone();
        let stream = tree.open(StreamSpec { members, up: vec![accumulate], ..spec_of_all() });
        tree.run();
        let counted = vec![0; waves * everyone.len() as usize];
        let sent = vec![0; everyone.len() as usize];
        Self { tree, stream, everyone, waves, sent, is_whole: true, counted }
    }

    /// A back-end marks its next wave, if there is one.
    fn mark(&mut self, rank: Rank) {
        let wave = self.sent[rank as usize];
        if wave < self.waves {
            let mut marks = vec![0_u8; self.counted.len()];
            marks[rank as usize * self.waves + wave] = 1;
            let sent = self.tree.send_values(rank, self.stream, &marks[..], None);
            sent.expect("the stream is open");
            self.sent[rank as usize] += 1;
        }
    }

    /// All back-ends mark this many waves more.
    fn send(&mut self, waves: usize) {
        for _ in 0..waves {
            self.everyone.clone().iter().for_each(|rank| self.mark(rank));
        }
    }

    fn collect(&mut self) {
        for answer in self.tree.answers() {
            let is_whole = !answer.is_late && answer.contributors == self.everyone;
            assert!(is_whole || !self.is_whole, "{answer:?}");
            let Some(packet) = answer.packet else { continue };
            let marks = packet.values().array::<u8>(0).expect("marks");
            self.counted.iter_mut().zip(marks).for_each(|(count, mark)| *count += mark);
        }
    }

    /// Sends what is left, and gives which waves of each back-end were lost; nothing may have been
    /// counted twice.
    fn lost(mut self) -> Vec<(Rank, Vec<usize>)> {
        self.send(self.waves);
        self.tree.advance(2000);
        self.collect();
        let most = self.counted.iter().max();
        assert!(most <= Some(&1), "counted twice: {:?}", self.tree.events);
        let mut lost = Vec::new();
        for (rank, counts) in (0..).zip(self.counted.chunks_exact(self.waves)) {
            let waves: Vec<usize> = (0..self.waves).filter(|&wave| counts[wave] == 0).collect();
            if !waves.is_empty() {
                lost.push((rank, waves));
            }
        }
        lost
    }
}

fn spec_of_all() -> StreamSpec {
    spec(&RankSet::new(), &[], WaveRule::All)
}

/// Whether waves follow one another without a gap.
fn is_one_stretch(waves: &[usize]) -> bool {
    waves.windows(2).all(|pair| pair[1] == pair[0] + 1)
}

#[test]
fn what_a_process_took_in_since_its_last_replica_is_lost_and_no_more() {
    each_seed("what_a_process_took_in", 120, |seed| {
        let (shape, period, waves) =
            [("2x2x2", 16, 48), ("3x3", 5, 40), ("2x2", 100, 200)][seed as usize % 3];
        let mut marked = Marked::new(shape, seed, terms(), period, waves);
        let inner = marked.tree.communication_ranks();
        let victim = inner[seed as usize % inner.len()];
        let below = marked.tree.below(victim);
        marked.send(waves * 2 / 3);
        let moves = marked.tree.schedule.below(waves * 30) as u64;
        marked.tree.run_some(moves);
        marked.tree.kill(victim);
        marked.collect();
        for (rank, waves) in marked.lost() {
            assert!(below.contains(rank), "{victim} died, and {rank} has lost {waves:?}");
            assert!(waves.len() < BOUND && is_one_stretch(&waves), "{rank} has lost {waves:?}");
        }
    });
}

#[test]
fn nothing_is_lost_when_everything_was_handed_over() {
    each_seed("nothing_is_lost", 40, |seed| {
        let silence = Duration::from_millis(300);
        let terms = Recovery { silence, ..terms() };
        let shape = ["2x2x2", "3x3", "1x1x2"][seed as usize % 3];
        let mut marked = Marked::new(shape, seed, terms, 30, 60);
        for (step, victim) in (0..).zip(marked.tree.communication_ranks()) {
            // At rest between two waves; each process dies with a part of a period.
            for _ in 0..3 + step {
                marked.send(1);
                marked.tree.advance(150);
            }
            if seed % 2 == 0 || marked.tree.is_alive(victim) {
                marked.tree.kill(victim);
            }
            marked.tree.advance(150);
            marked.collect();
        }
        assert_eq!(marked.lost(), [], "seed {seed}");
    });
}

#[test]
fn a_process_that_comes_back_brings_its_state_with_it() {
    each_seed("a_process_that_comes_back", 120, |seed| {
        let shape = ["2x2x2", "3x3", "1x2x2"][seed as usize % 3];
        let (period, waves) = [(7, 42), (100, 200)][usize::from(seed % 4 == 0)];
        let mut marked = Marked::new(shape, seed, terms(), period, waves);
        let inner = marked.tree.communication_ranks();
        for _ in 0..5 {
            marked.send(waves / 7);
            let moves = marked.tree.schedule.below(waves * 10) as u64;
            marked.tree.run_some(moves);
            let which = marked.tree.schedule.below(inner.len());
            marked.tree.cut(inner[which]);
            if marked.tree.schedule.one_in(2) {
                marked.collect();
            }
        }
        assert_eq!(marked.lost(), [], "seed {seed}");
    });
}

#[test]
fn nothing_is_counted_twice_whoever_is_cut_off_and_whoever_dies() {
    each_seed("nothing_is_counted_twice", 150, |seed| {
        let shape = ["2x2x2", "2x2x2x2", "1x1x1x2", "3x3"][seed as usize % 4];
        let (period, waves) = [(7, 49), (24, 48), (100, 100)][seed as usize % 3];
        // With a heartbeat, states are handed over at any time.
        let silence = Duration::from_millis(if seed % 5 == 0 { 0 } else { 300 });
        let mut marked = Marked::new(shape, seed, Recovery { silence, ..terms() }, period, waves);
        // Those that are without a parent for long are late; what they sent comes by itself.
        marked.is_whole = false;
        let everyone: Vec<Rank> = marked.everyone.iter().collect();
        let inner = marked.tree.communication_ranks();
        for _ in 0..24 {
            // Some are ahead of others.
            let first = marked.tree.schedule.below(everyone.len());
            let count = 1 + marked.tree.schedule.below(everyone.len());
            for _ in 0..marked.tree.schedule.below(4) {
                everyone[first..].iter().take(count).for_each(|&rank| marked.mark(rank));
            }
            let moves = marked.tree.schedule.below(200) as u64;
            marked.tree.run_some(moves);
            let milliseconds = [0, 0, 30, 120][marked.tree.schedule.below(4)];
            marked.tree.tick(milliseconds);
            let moves = marked.tree.schedule.below(60) as u64;
            marked.tree.run_some(moves);
            let which = inner[marked.tree.schedule.below(inner.len())];
            match marked.tree.schedule.below(8) {
                0 if marked.tree.is_alive(which) => marked.tree.kill(which),
                1 | 2 => marked.tree.cut(which),
                3 => marked.collect(),
                _ => {}
            }
        }
        marked.collect();
        marked.lost();
    });
}

#[test]
fn a_process_that_was_stopped_does_not_bring_back_what_was_taken_over() {
    each_seed("a_process_that_was_stopped", 40, |seed| {
        let silence = Duration::from_millis(300);
        let terms = Recovery { silence, ..terms() };
        let mut marked = Marked::new("2x2x2", seed, terms, 20, 60);
        let inner = marked.tree.communication_ranks();
        let victim = inner[seed as usize % 2];
        marked.send(10);
        marked.tree.advance(150);
        marked.tree.process(victim).is_stalled = true;
        marked.send(3);
        marked.tree.advance(3000);
        marked.tree.process(victim).is_stalled = false;
        let moves = marked.tree.schedule.below(400) as u64;
        marked.send(3);
        marked.tree.run_some(moves);
        marked.tree.advance(3000);
        if seed % 3 == 0 {
            // The process that holds it now dies, too, having handed it over.
            let mut others = inner.iter().filter(|&&rank| rank != victim);
            let heir = *others.next_back().expect("another process");
            marked.tree.kill(heir);
        }
        assert_eq!(marked.lost(), [], "seed {seed}");
    });
}

#[test]
fn a_process_that_was_taken_for_dead_is_not_heard_a_second_time() {
    each_seed("a_process_that_was_taken_for_dead", 30, |seed| {
        let terms = Recovery {
            silence: Duration::from_millis(300),
            grace: Duration::from_millis(500),
            orphan_limit: Duration::from_secs(60),
            ..terms()
        };
        // It has a state of its own, or those of its children.
        let shape = ["2x2", "2x2x2"][seed as usize / 2 % 2];
        let mut marked = Marked::new(shape, seed, terms, 20, 60);
        let victim = marked.tree.communication_ranks()[seed as usize % 2];
        marked.send(10);
        marked.tree.advance(150);
        // Stopped until it knows of no other process any more when it goes on.
        marked.tree.process(victim).is_stalled = true;
        marked.tree.advance(5000);
        marked.tree.process(victim).is_stalled = false;
        marked.tree.advance(1000);
        marked.tree.kill(victim);
        assert_eq!(marked.lost(), [], "seed {seed}");
    });
}

/// The values of answers, in order.
fn values(answers: &[Answer]) -> Vec<i64> {
    let packets = answers.iter().filter_map(|answer| answer.packet.as_ref());
    packets.map(|packet| packet.values().scalar(0).expect("one number")).collect()
}

#[test]
fn a_filter_that_begins_anew_may_repeat_itself_but_misses_no_change() {
    each_seed("a_filter_that_begins_anew", 60, |seed| {
        let mut tree = Tree::recovering("2x2", seed, terms());
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "changes", WaveRule::All);
        let send = |tree: &mut Tree, of: fn(Rank) -> i64| {
            for rank in tree.everyone().iter() {
                tree.send_values(rank, stream, of(rank), None).expect("the stream is open");
            }
            tree.run_some(seed % 50);
        };
        send(&mut tree, i64::from);
        assert_eq!(values(&tree.answers()), [0, 1, 2, 3]);
        send(&mut tree, i64::from);
        assert_eq!(values(&tree.answers()), [0; 0], "nothing has changed");
        let inner = tree.communication_ranks();
        let victim = inner[seed as usize % inner.len()];
        send(&mut tree, i64::from);
        tree.kill(victim);
        send(&mut tree, i64::from);
        let mut again = values(&tree.answers());
        again.sort_unstable();
        let below: Vec<i64> = tree.below(victim).iter().map(i64::from).collect();
        assert!(again.is_empty() || again == below, "{again:?}");
        send(&mut tree, |rank| i64::from(rank != 2));
        let changed = values(&tree.answers());
        assert!(changed.contains(&0), "the change is seen: {changed:?}");
        send(&mut tree, |rank| i64::from(rank != 2));
        assert_eq!(values(&tree.answers()), [0; 0], "nothing has changed");
    });
}

#[test]
fn a_death_is_no_change_of_a_sum() {
    each_seed("a_death_is_no_change", 60, |seed| {
        let mut tree = Tree::recovering("2x2x2", seed, terms());
        let everyone = tree.everyone();
        let stream = tree.open(spec(&everyone, &["sum", "changes"], WaveRule::All));
        tree.run();
        let mut answers = Vec::new();
        for victim in tree.communication_ranks() {
            for _ in 0..3 {
                for rank in everyone.iter() {
                    let value = number_of(rank, 0);
                    tree.send_values(rank, stream, value, None).expect("the stream is open");
                }
            }
            tree.run_some(seed);
            tree.kill(victim);
            answers.extend(tree.answers());
        }
        let sum: i64 = everyone.iter().map(|rank| number_of(rank, 0)).sum();
        assert_eq!(values(&answers), [sum], "one answer, whichever process dies");
        tree.send_values(0, stream, number_of(0, 0) + 1, None).expect("the stream is open");
        for rank in everyone.iter().filter(|&rank| rank != 0) {
            tree.send_values(rank, stream, number_of(rank, 0), None).expect("the stream is open");
        }
        assert_eq!(values(&tree.answers()), [sum + 1]);
    });
}

#[test]
fn a_state_that_is_too_large_is_told_once() {
    let terms = Recovery { silence: Duration::from_millis(300), ..terms() };
    let mut tree = Tree::recovering("1x2", 1, terms);
    let everyone = tree.everyone();
    let parameters = Values::new().scalar(3_u64);
    let accumulate = FilterSpec { name: "accumulate".into(), parameters };
    let members = everyone.clone();
    let stream = tree.open(StreamSpec { members, up: vec![accumulate], ..spec_of_all() });
    tree.run();
    let values = vec![1_u8; (1 << 20) + 1];
    for _ in 0..3 {
        for rank in everyone.iter() {
            tree.send_values(rank, stream, &values[..], None).expect("the stream is open");
        }
        tree.advance(150);
    }
    let answers = tree.answers();
    assert_eq!(answers.len(), 1);
    let complaints: Vec<&String> = (tree.events.iter())
        .filter_map(|event| match event {
            Event::FilterFailed { reason, .. } => Some(reason),
            _ => None,
        })
        .collect();
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(complaints[0].contains("not handed over (at rank"), "{complaints:?}");
}
