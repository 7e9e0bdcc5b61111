//! Small waves in a row, which travel and are folded as runs: an economy that no answer shows.
//!
//! Most stories tell one program twice: once with every wave on its way before the next is sent, so
//! that there are no runs, and once in bursts of any length. The answers must be the same bits.
use std::collections::BTreeMap;

use crate::harness::*;
use sapwood_filter::{Emitter, Filter, FilterError, Fold, Registry, WaveRef, WaveRule};
use sapwood_node::Answer;
use sapwood_packet::{Format, FormatRef, Rank, RankSet, StreamId, Values};

const SHAPES_OF_RUNS: [&str; 9] = ["1", "1^2", "1^4", "2", "2^2", "2^3", "2^4", "8", "8^2"];

/// What a back-end sends in one wave of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Double,
    Float,
    Doubles(usize),
    Bytes(usize),
    Word,
}

/// A number without a short form in binary, so that the order of additions shows in the bits of
/// sums.
fn uneven(rank: Rank, wave: u64, index: usize) -> f64 {
    let step = (u64::from(rank) * 7919 + wave * 104_729 + index as u64 * 31) % 1009;
    (step as f64 + 0.1) * [1e-9, 1.0 / 3.0, 1e7][(wave as usize + index + rank as usize) % 3]
}

impl Kind {
    fn values(self, rank: Rank, wave: u64) -> Values {
        match self {
            Self::Double => Values::new().scalar(uneven(rank, wave, 0)),
            Self::Float => Values::new().scalar(uneven(rank, wave, 0) as f32),
            Self::Doubles(count) => {
                let doubles: Vec<f64> = (0..count).map(|i| uneven(rank, wave, i)).collect();
                Values::new().array(&doubles)
            }
            Self::Bytes(count) => {
                let bytes: Vec<i8> = (0..count).map(|i| (rank as usize + i) as i8).collect();
                Values::new().array(&bytes)
            }
            Self::Word => Values::new().string("a word"),
        }
    }
}

/// How far bytes move between the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    /// Each wave is with the front-end's node before the next is sent: there are no runs.
    WaveByWave,
    /// Back-ends send many packets before anything moves, and then it moves a little.
    Bursts,
}

/// An answer without the words of its reasons, which say which member came first.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    value: Option<(i32, Format, Vec<u8>)>,
    contributors: RankSet,
    missing: RankSet,
}

/// Answers by their wave and the first member that they have.
type Story = BTreeMap<(u64, Option<Rank>), Told>;

fn tell(story: &mut Story, answers: Vec<Answer>) {
    for answer in answers {
        assert!(!answer.is_late, "{answer:?}");
        let key = (answer.wave, answer.contributors.as_ref().first());
        let missing = missing_ranks(&answer);
        let value = answer.packet.map(|packet| {
            (packet.tag(), packet.format().to_format(), packet.body().as_bytes().to_vec())
        });
        let told = Told { value, contributors: answer.contributors, missing };
        assert!(story.insert(key, told).is_none(), "one answer {key:?}");
    }
}

/// What each back-end sends in each of a number of waves, with its tag; none where it skips one.
struct Program<'a> {
    shape: &'a str,
    filter: &'a str,
    rule: WaveRule,
    window_bytes: Option<u32>,
    waves: u64,
    sends: &'a dyn Fn(Rank, u64) -> Option<(i32, Kind)>,
}

impl Program<'_> {
    fn send(&self, tree: &mut Tree, stream: StreamId, rank: Rank, wave: u64) {
        let sends = if wave == self.waves {
            // Behind the last wave all send in one more, so that no back-end is waited for.
            Some((TAG, Kind::Bytes(1)))
        } else {
            (self.sends)(rank, wave)
        };
        if let Some((tag, kind)) = sends {
            let values = kind.values(rank, wave);
            tree.send_tagged(rank, stream, tag, values, wave).expect("the stream is open");
        }
    }

    /// Lets it run once, and gives its answers and how often a run was open.
    fn run(&self, seed: u64, delivery: Delivery) -> (Story, u64) {
        let mut tree = Tree::of(self.shape, seed);
        let everyone = tree.everyone();
        let mut wanted = spec(&everyone, &[self.filter], self.rule);
        wanted.window_bytes = self.window_bytes;
        let stream = tree.open(wanted);
        tree.oracle.forget(stream);
        tree.run();
        let (mut story, mut runs) = (Story::new(), 0);
        if delivery == Delivery::WaveByWave {
            tree.schedule.widen();
            for wave in 0..=self.waves {
                for rank in everyone.iter() {
                    self.send(&mut tree, stream, rank, wave);
                    tree.run();
                }
                tell(&mut story, tree.answers());
            }
            return (story, 0);
        }
        let mut next: Vec<(Rank, u64)> = everyone.iter().map(|rank| (rank, 0)).collect();
        while !next.is_empty() {
            let chosen = tree.schedule.below(next.len());
            let burst = tree.schedule.below(200);
            let (rank, from) = next[chosen];
            let until = (self.waves + 1).min(from + burst as u64);
            for wave in from..until {
                self.send(&mut tree, stream, rank, wave);
                runs += u64::from(tree.process(rank).node.application().has_open_run(stream));
            }
            next[chosen].1 = until;
            next.retain(|&(_, wave)| wave <= self.waves);
            let moves = tree.schedule.below(60) as u64;
            tree.run_some(moves);
            if tree.schedule.one_in(8) {
                tell(&mut story, tree.answers());
            }
        }
        tell(&mut story, tree.answers());
        (story, runs)
    }

    /// The answers are the same whether packets travel alone or in runs.
    fn check(&self, seed: u64) -> Story {
        let (alone, _) = self.run(seed, Delivery::WaveByWave);
        let (in_runs, runs) = self.run(seed, Delivery::Bursts);
        assert!(runs > 0, "the story is about runs");
        let what = format!("{} {} {:?}", self.shape, self.filter, self.rule);
        for (key, answer) in &alone {
            assert_eq!(in_runs.get(key), Some(answer), "{what}: {key:?}");
        }
        assert_eq!(alone.len(), in_runs.len(), "{what}");
        in_runs
    }
}

/// How many waves a story has for a shape of this number of back-ends.
fn waves_for(shape: &str) -> u64 {
    match shape {
        "8^2" => 150,
        "2^4" | "8" => 250,
        _ => 400,
    }
}

#[test]
fn sums_have_the_same_bits_in_runs_and_alone() {
    each_seed("sums_have_the_same_bits", 6, |seed| {
        for (index, shape) in SHAPES_OF_RUNS.into_iter().enumerate() {
            let kinds = [
                Kind::Double,
                Kind::Doubles(8),
                Kind::Bytes(5),
                Kind::Float,
                Kind::Doubles(0),
                Kind::Bytes(64),
            ];
            let kind = kinds[(seed as usize + index) % kinds.len()];
            let program = Program {
                shape,
                filter: ["sum", "min", "max"][(seed as usize + index / 3) % 3],
                rule: WaveRule::All,
                window_bytes: [None, Some(300), Some(3000)][(seed as usize + index / 2) % 3],
                waves: waves_for(shape),
                sends: &|_, _| Some((TAG, kind)),
            };
            let story = program.check(seed);
            assert_eq!(story.len() as u64, program.waves + 1, "{shape} {kind:?}");
            assert!(story.values().all(|told| told.missing.is_empty() && told.value.is_some()));
        }
    });
}

/// A back-end that differs from others in some waves: which, and how.
fn odd_one(seed: u64, rank: Rank, wave: u64) -> Option<(i32, Kind)> {
    let usual = [Kind::Doubles(8), Kind::Bytes(5), Kind::Double][seed as usize % 3];
    let odd = match usual {
        // Of the same length in bytes, in another format; and of another length.
        Kind::Doubles(_) => [Kind::Doubles(9), Kind::Bytes(64), Kind::Word],
        // Arrays that are padded to the same length differ in their count alone.
        Kind::Bytes(_) => [Kind::Bytes(6), Kind::Bytes(9), Kind::Word],
        _ => [Kind::Float, Kind::Doubles(0), Kind::Word],
    };
    let place = (wave + seed * 37 + u64::from(rank) * 101) % 90;
    let is_odd = rank % 2 == (seed % 2) as Rank && place < 1 + seed % 4;
    Some((TAG, if is_odd { odd[(seed / 3) as usize % 3] } else { usual }))
}

#[test]
fn packets_that_differ_in_the_middle_of_runs_cost_exactly_their_waves() {
    each_seed("packets_that_differ_in_the_middle", 9, |seed| {
        for shape in ["2", "2^2", "2^3", "8", "3x2x2", "8^2"] {
            let sends = |rank, wave| odd_one(seed, rank, wave);
            let program = Program {
                shape,
                filter: "sum",
                rule: WaveRule::All,
                window_bytes: [None, Some(500)][seed as usize % 2],
                waves: waves_for(shape),
                sends: &sends,
            };
            let story = program.check(seed);
            let count = Tree::of(shape, seed).everyone().len() as Rank;
            let mut faults = 0;
            for (&(wave, _), told) in story.iter().filter(|((wave, _), _)| *wave < program.waves) {
                let mut kinds = (0..count).map(|rank| sends(rank, wave));
                let first = kinds.next().flatten();
                let is_mixed = kinds.any(|kind| kind != first);
                let is_word = first == Some((TAG, Kind::Word));
                let is_whole = told.missing.is_empty() && told.value.is_some();
                assert_eq!(is_whole, !is_mixed && !is_word, "{shape} wave {wave}: {told:?}");
                faults += u64::from(!is_whole);
            }
            assert!(faults > 0, "{shape}: the story is about faults");
        }
    });
}

#[test]
fn tags_that_change_cut_runs_and_reach_the_answers() {
    each_seed("tags_that_change_cut_runs", 8, |seed| {
        for shape in ["1^2", "2^2", "8", "2^4"] {
            let sends = |_, wave: u64| Some((TAG + (wave / (1 + seed * 9)) as i32, Kind::Double));
            let program = Program {
                shape,
                filter: "sum",
                rule: WaveRule::All,
                window_bytes: None,
                waves: waves_for(shape),
                sends: &sends,
            };
            for ((wave, _), told) in program.check(seed) {
                let (tag, ..) = told.value.expect("a sum");
                assert!(wave == program.waves || Some(tag) == sends(0, wave).map(|sent| sent.0));
            }
        }
    });
}

#[test]
fn skipped_waves_are_answered_without_those_who_skip_them() {
    each_seed("skipped_waves_are_answered", 8, |seed| {
        for shape in ["1^2", "2^2", "2^3", "8", "8^2"] {
            let skips = |rank: Rank, wave: u64| {
                (wave * 13 + u64::from(rank) * 29 + seed) % 71 < 2 || rank == 1 && wave / 40 == 1
            };
            let kind = [Kind::Double, Kind::Doubles(8), Kind::Bytes(5)][seed as usize % 3];
            let program = Program {
                shape,
                filter: "sum",
                rule: WaveRule::All,
                window_bytes: [None, Some(700)][seed as usize % 2],
                waves: waves_for(shape),
                sends: &|rank, wave| (!skips(rank, wave)).then_some((TAG, kind)),
            };
            let story = program.check(seed);
            for ((wave, _), told) in
                story.into_iter().filter(|((wave, _), _)| *wave < program.waves)
            {
                let missing = told.missing.iter().all(|rank| skips(rank, wave));
                assert!(missing && told.contributors.iter().all(|rank| !skips(rank, wave)));
            }
        }
    });
}

#[test]
fn filters_that_are_no_folds_get_the_waves_of_runs_one_by_one() {
    each_seed("filters_that_are_no_folds", 4, |seed| {
        for shape in ["1", "1^4", "2^2", "2^3", "8"] {
            for filter in ["pass", "concatenate", "statistics", "count", "average", "null"] {
                let kind = if seed % 2 == 0 { Kind::Double } else { Kind::Doubles(3) };
                let kind = if filter == "statistics" { Kind::Double } else { kind };
                Program {
                    shape,
                    filter,
                    rule: WaveRule::All,
                    window_bytes: [None, Some(900)][seed as usize % 2],
                    waves: 150,
                    sends: &|_, _| Some((TAG, kind)),
                }
                .check(seed);
            }
        }
    });
}

#[test]
fn streams_that_wait_for_nobody_get_every_wave_of_a_run() {
    each_seed("streams_that_wait_for_nobody", 6, |seed| {
        for shape in ["1^4", "2^2", "2^4", "8"] {
            for filter in ["pass", "sum"] {
                let program = Program {
                    shape,
                    filter,
                    rule: WaveRule::Immediate,
                    window_bytes: [None, Some(400)][seed as usize % 2],
                    waves: 150,
                    sends: &|_, _| Some((TAG, Kind::Doubles(2))),
                };
                let back_ends = Tree::of(shape, seed).everyone().len();
                assert_eq!(program.check(seed).len() as u64, 151 * back_ends, "{shape} {filter}");
            }
        }
    });
}

/// Back-ends send at random, in bursts or not at all; the oracle looks at the answers. Gives how
/// often a run was open.
fn stream_at_random(tree: &mut Tree, streams: &[StreamId], steps: usize, burst: usize) -> u64 {
    let everyone = tree.everyone();
    let mut runs = 0;
    for _ in 0..steps {
        let rank = tree.schedule.below(everyone.len() as usize) as Rank;
        let stream = streams[tree.schedule.below(streams.len())];
        if tree.is_alive(rank) {
            let count = tree.schedule.below(burst) as u64;
            for _ in 0..count {
                // A process that is no member, or has no parent any more, sends nothing.
                let _ = tree.send_many(rank, stream, 1);
                runs += u64::from(tree.process(rank).node.application().has_open_run(stream));
            }
        }
        let moves = tree.schedule.below(80) as u64;
        tree.run_some(moves);
    }
    runs
}

/// Each of them sends a burst.
fn stream_one_burst(tree: &mut Tree, stream: StreamId, ranks: &RankSet) {
    for rank in ranks.iter() {
        let count = tree.schedule.below(150) as u64;
        tree.send_many(rank, stream, count).expect("open");
        let moves = tree.schedule.below(80) as u64;
        tree.run_some(moves);
    }
}

/// Every back-end that is there comes as far as the farthest.
fn catch_up(tree: &mut Tree, stream: StreamId, members: &RankSet) {
    let last = members.iter().map(|rank| tree.oracle.next_wave(stream, rank)).max().unwrap_or(0);
    for rank in members.iter().filter(|&rank| tree.is_alive(rank)).collect::<Vec<_>>() {
        let left = last - tree.oracle.next_wave(stream, rank);
        let _ = tree.send_many(rank, stream, left);
    }
}

#[test]
fn back_ends_out_of_step_are_in_every_wave() {
    each_seed("back_ends_out_of_step", 30, |seed| {
        let shape = SHAPES_OF_RUNS[seed as usize % SHAPES_OF_RUNS.len()];
        let mut tree = Tree::of(shape, seed);
        let everyone = tree.everyone();
        let stream = tree.sum_of_all();
        let runs = stream_at_random(&mut tree, &[stream], 60, 150);
        assert!(runs > 0, "the story is about runs");
        catch_up(&mut tree, stream, &everyone);
        let answers = tree.answers();
        assert_eq!(answers.len() as u64, tree.oracle.next_wave(stream, 0), "{shape}");
        assert!(answers.iter().all(Answer::is_complete));
    });
}

#[test]
fn deaths_in_the_middle_of_runs_leave_true_answers() {
    each_seed("deaths_in_the_middle", 60, |seed| {
        let shape = ["2", "2^2", "2^3", "2^4", "8", "3x2x2"][seed as usize % 6];
        let mut tree = Tree::of(shape, seed);
        let everyone = tree.everyone();
        let mut wanted = spec(&everyone, &["sum"], WaveRule::All);
        wanted.window_bytes = [None, Some(400)][seed as usize / 6 % 2];
        let stream = tree.open(wanted);
        tree.run();
        let runs = stream_at_random(&mut tree, &[stream], 20, 150);
        assert!(runs > 0, "the story is about runs");
        let mut victims = tree.communication_ranks();
        victims.extend(everyone.iter());
        for _ in 0..1 + seed % 2 {
            let victim = victims[tree.schedule.below(victims.len())];
            if tree.is_alive(victim) {
                tree.kill(victim);
            }
            stream_at_random(&mut tree, &[stream], 15, 150);
        }
        catch_up(&mut tree, stream, &everyone);
        tree.answers();
        let reachable = tree.reachable();
        tree.oracle.check_complete(stream, &reachable);
    });
}

#[test]
fn a_back_end_that_comes_back_finds_its_place_among_runs() {
    each_seed("a_back_end_that_comes_back", 30, |seed| {
        let mut tree = Tree::attaching(["2x3", "3", "2^2"][seed as usize % 3], seed);
        let everyone = tree.everyone();
        let parent = |tree: &Tree, rank| tree.topology.parent(rank).expect("a parent").rank();
        for rank in everyone.iter() {
            let parent = parent(&tree, rank);
            tree.attach(parent, Some(rank));
        }
        let stream = tree.sum_of_all();
        let runs = stream_at_random(&mut tree, &[stream], 20, 100);
        assert!(runs > 0, "the story is about runs");
        tree.kill(1);
        // Everything that it has sent is answered, with it or without.
        catch_up(&mut tree, stream, &everyone);
        tree.answers();
        let others = everyone.difference(RankSet::range(1, 1).as_ref());
        stream_one_burst(&mut tree, stream, &others);
        let place = parent(&tree, 1);
        tree.attach(place, Some(1));
        stream_one_burst(&mut tree, stream, &others);
        // It begins behind everything that has been sent.
        let next = everyone.iter().map(|rank| tree.oracle.next_wave(stream, rank)).max();
        let last = next.expect("some") + 70;
        for rank in everyone.iter() {
            tree.send_in(rank, stream, number_of(rank, last), last).expect("open");
        }
        let mut answers = tree.answers();
        tree.oracle.lost = RankSet::new();
        for rank in everyone.iter() {
            tree.send_many(rank, stream, 200).expect("open");
        }
        answers.extend(tree.answers());
        let complete = answers.iter().filter(|answer| answer.wave >= last);
        assert_eq!(complete.filter(|answer| answer.is_complete()).count(), 201);
    });
}

#[test]
fn runs_in_waves_with_a_time_out_count_once() {
    each_seed("runs_in_waves_with_a_time_out", 20, |seed| {
        let shape = ["2", "2^2", "2^3", "8", "3x2x2"][seed as usize % 5];
        let mut tree = Tree::of(shape, seed);
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::Timeout { milliseconds: 100 });
        let (mut answers, mut runs) = (Vec::new(), 0);
        for _ in 0..15 {
            runs += stream_at_random(&mut tree, &[stream], 6, 100);
            answers.extend(tree.answers());
            let milliseconds = tree.schedule.below(60) as u64;
            tree.advance(milliseconds);
        }
        for _ in 0..10 {
            tree.advance(200);
            answers.extend(tree.answers());
        }
        assert!(runs > 0, "the story is about runs");
        let sent: u64 = everyone.iter().map(|rank| tree.oracle.next_wave(stream, rank)).sum();
        let counted: u64 = answers.iter().map(|answer| answer.contributors.len()).sum();
        assert_eq!(counted, sent, "{shape}: nothing is lost and nothing counts twice");
    });
}

#[test]
fn streams_over_parts_of_the_tree_keep_their_runs_apart() {
    each_seed("streams_over_parts_of_the_tree", 20, |seed| {
        let shape = ["2^2", "2^3", "8", "8^2", "2^4"][seed as usize % 5];
        let mut tree = Tree::of(shape, seed);
        let everyone = tree.everyone();
        let even: RankSet = everyone.iter().filter(|rank| rank % 2 == 0).collect();
        let few: RankSet = everyone.iter().filter(|&rank| rank > 1 && rank < 4).collect();
        let parts = [everyone, even, few];
        let streams: Vec<StreamId> = parts
            .iter()
            .map(|members| {
                let mut wanted = spec(members, &["sum"], WaveRule::All);
                wanted.window_bytes = [None, Some(600)][seed as usize / 5 % 2];
                tree.open(wanted)
            })
            .collect();
        tree.run();
        let runs = stream_at_random(&mut tree, &streams, 60, 120);
        assert!(runs > 0, "the story is about runs");
        for (&stream, members) in streams.iter().zip(&parts) {
            catch_up(&mut tree, stream, members);
        }
        let answers = tree.answers();
        for (&stream, members) in streams.iter().zip(&parts) {
            let first = members.as_ref().first().expect("it has members");
            let mine = answers.iter().filter(|answer| answer.stream == stream);
            let count = mine.filter(|answer| answer.is_complete()).count() as u64;
            assert_eq!(count, tree.oracle.next_wave(stream, first), "{shape} {members}");
        }
    });
}

/// A fold that is defined on nothing.
struct Picky;

impl Filter for Picky {
    fn transform(&mut self, _: &WaveRef<'_>, _: &mut Emitter) -> Result<(), FilterError> {
        Err(FilterError::Failed("picky takes nothing".into()))
    }

    fn as_fold(&self) -> Option<&dyn Fold> {
        Some(self)
    }
}

impl Fold for Picky {
    fn name(&self) -> &'static str {
        "picky"
    }

    fn check(&self, _: FormatRef<'_>) -> Result<(), FilterError> {
        Err(FilterError::Failed("picky takes nothing".into()))
    }

    fn fold(&self, _: FormatRef<'_>, _: &mut [u8], _: &[u8]) -> Result<(), FilterError> {
        Ok(())
    }

    fn fold_run(
        &self,
        _: FormatRef<'_>,
        _: usize,
        _: &mut [u8],
        _: &[u8],
    ) -> Result<(), FilterError> {
        Ok(())
    }

    fn fold_chunk(
        &self,
        _: FormatRef<'_>,
        _: u64,
        _: &mut [u8],
        _: &[u8],
    ) -> Result<(), FilterError> {
        Ok(())
    }
}

#[test]
fn a_run_that_a_filter_refuses_fails_each_of_its_waves() {
    each_seed("a_run_that_a_filter_refuses", 6, |seed| {
        for shape in ["1", "2^2", "8", "2^3"] {
            let registry = Registry::built_in().with("picky", |_| Ok(Box::new(Picky)));
            let mut tree = Tree::with_filters(shape, seed, registry);
            let everyone = tree.everyone();
            let stream = tree.stream(&everyone, "picky", WaveRule::All);
            for rank in everyone.iter() {
                tree.send_many(rank, stream, 200).expect("open");
            }
            let answers = tree.answers();
            assert_eq!(answers.len(), 200, "{shape}");
            for (wave, answer) in answers.iter().enumerate() {
                assert_eq!((answer.wave, missing_ranks(answer)), (wave as u64, everyone.clone()));
                assert!(everyone.iter().all(|rank| says(answer, rank, "picky")), "{answer:?}");
            }
        }
    });
}

/// All send until every window is full; gives how many packets that took.
fn fill_windows(tree: &mut Tree, stream: StreamId) -> u64 {
    let mut sent = 0;
    loop {
        let before = sent;
        for rank in tree.everyone().iter() {
            while sent < 50_000
                && tree.process(rank).node.application().has_room(stream).expect("open")
            {
                tree.send_many(rank, stream, 1).expect("open");
                sent += 1;
            }
        }
        tree.run();
        if sent == before || sent == 50_000 {
            return sent;
        }
    }
}

#[test]
fn runs_that_were_cut_give_their_credit_back_once() {
    each_seed("runs_that_were_cut_give_their_credit", 6, |seed| {
        let shape = ["2^2", "8", "2"][seed as usize % 3];
        let narrow = |tree: &mut Tree| {
            let mut wanted = spec(&tree.everyone(), &["sum"], WaveRule::All);
            wanted.window_bytes = Some(3000);
            let stream = tree.open(wanted);
            tree.run();
            stream
        };
        let mut fresh = Tree::of(shape, seed);
        let stream = narrow(&mut fresh);
        let expected = fill_windows(&mut fresh, stream);

        let mut tree = Tree::of(shape, seed);
        let everyone = tree.everyone();
        let stream = narrow(&mut tree);
        for _ in 0..40 {
            stream_at_random(&mut tree, &[stream], 10, 100);
            tree.answers();
        }
        catch_up(&mut tree, stream, &everyone);
        tree.answers();
        let sent = fill_windows(&mut tree, stream);
        assert!(sent < 2 * expected && expected < 2 * sent, "{shape}: {sent}, fresh {expected}");
    });
}
