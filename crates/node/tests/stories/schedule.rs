//! Anything may happen in any order: waves, requests, deaths, time and closing, at random.
use crate::harness::*;
use sapwood_filter::WaveRule;
use sapwood_packet::{Rank, RankSet, StreamId};

const SHAPES_AT_RANDOM: [&str; 6] = ["1^3", "2^2", "2^3", "8", "3x2x2", "2x8"];

/// One random operation.
fn act(tree: &mut Tree, streams: &mut Vec<StreamId>, seed: u64) {
    let everyone = tree.everyone();
    let stream = streams[tree.schedule.below(streams.len())];
    match tree.schedule.below(24) {
        0 if streams.len() < 5 => {
            let reachable: Vec<Rank> = tree.front_end().application().back_ends().iter().collect();
            let chosen = reachable.into_iter().filter(|_| tree.schedule.one_in(2));
            let members: RankSet = chosen.collect::<Vec<_>>().into_iter().collect();
            if !members.is_empty() {
                let rule = [WaveRule::All, WaveRule::Timeout { milliseconds: 40 }];
                let mut wanted = spec(&members, &["sum"], rule[tree.schedule.below(2)]);
                wanted.window_bytes = Some([200, 2000, 1 << 20][tree.schedule.below(3)]);
                streams.push(tree.open(wanted));
            }
        }
        1 if !seed.is_multiple_of(3) => {
            let mut all = tree.communication_ranks();
            all.extend(everyone.iter());
            let victim = all[tree.schedule.below(all.len())];
            if tree.is_alive(victim) && tree.schedule.one_in(2) {
                tree.kill(victim);
            }
        }
        2 if streams.len() > 1 && tree.schedule.one_in(3) => {
            streams.retain(|&other| other != stream);
            tree.close(stream);
        }
        3 => tree.broadcast(stream, &RankSet::new(), 5_i64),
        4 => drop(tree.answers()),
        5 => {
            let milliseconds = tree.schedule.below(60) as u64;
            tree.advance(milliseconds);
        }
        6 | 7 => {
            let moves = tree.schedule.below(300) as u64;
            tree.run_some(moves);
        }
        8 => {
            // Many in a row travel in runs.
            let rank = tree.schedule.below(everyone.len() as usize) as Rank;
            let count = 1 + tree.schedule.below(100) as u64;
            if tree.is_alive(rank) {
                let _ = tree.send_many(rank, stream, count);
            }
        }
        _ => {
            let rank = tree.schedule.below(everyone.len() as usize) as Rank;
            let skipped = u64::from(tree.schedule.one_in(10));
            let wave = tree.oracle.next_wave(stream, rank) + skipped;
            if tree.is_alive(rank) {
                // A back-end may not know the stream yet, or no more, or be an orphan.
                let _ = tree.send_in(rank, stream, number_of(rank, wave), wave);
            }
        }
    }
}

#[test]
fn whatever_happens_every_answer_is_true_and_nothing_waits_for_ever() {
    each_seed("whatever_happens", 400, |seed| {
        let mut tree = Tree::of(SHAPES_AT_RANDOM[seed as usize % 6], seed);
        let mut streams = vec![tree.sum_of_all()];
        for _ in 0..150 {
            act(&mut tree, &mut streams, seed);
        }
        for _ in 0..40 {
            tree.answers();
            tree.advance(200);
        }
        tree.answers();
        let reachable = tree.reachable();
        for &stream in &streams {
            tree.oracle.check_complete(stream, &reachable);
            let members =
                tree.front_end().application().members(stream).expect("it is open").clone();
            let is_left = members.iter().any(|rank| reachable.contains(&rank));
            assert_eq!(
                tree.front_end().application().is_deserted(stream),
                !is_left,
                "stream {stream}"
            );
        }
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut tree = Tree::of("3x2x2", seed);
        let mut streams = vec![tree.sum_of_all()];
        (0..150).for_each(|_| act(&mut tree, &mut streams, seed));
        let answers = tree.answers();
        format!("{answers:?} {:?} {}", tree.events, tree.schedule.next())
    };
    for seed in 0..10 {
        assert_eq!(run(seed), run(seed));
    }
}
