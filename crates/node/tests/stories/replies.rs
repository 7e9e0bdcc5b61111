//! Filters that answer downward, however much: it waits with them, and others have their turn.

use crate::harness::{TAG, Tree, each_seed, spec};
use sapwood_filter::{Emitter, Filter, FilterError, Registry, WaveRef, WaveRule};
use sapwood_packet::StreamId;

/// Replies to one wave.
const REPLIES: usize = 100_000;
const WINDOW_BYTES: u32 = 64 << 10;
/// What may wait on a link and in front of it, with the frames that one turn adds.
const QUEUED_BYTES_MAX: usize = 1 << 20;

/// Adds up, and answers each wave with very many packets, but not where the front-end is.
struct Flood {
    is_offloaded: bool,
}

impl Filter for Flood {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let mut sum = 0_i64;
        for packet in wave.packets {
            sum += packet.values().scalar::<i64>(0)?;
        }
        for number in 0..if wave.is_root { 0 } else { REPLIES } {
            out.reply(TAG, number as i64);
        }
        out.emit(TAG, sum);
        Ok(())
    }

    fn is_offloaded(&self) -> bool {
        self.is_offloaded
    }
}

fn flooded(seed: u64, is_offloaded: bool) -> (Tree, StreamId, StreamId) {
    let registry = match is_offloaded {
        true => Registry::built_in().with("flood", |_| Ok(Box::new(Flood { is_offloaded: true }))),
        false => {
            Registry::built_in().with("flood", |_| Ok(Box::new(Flood { is_offloaded: false })))
        }
    };
    let mut tree = Tree::with_filters("2x2", seed, registry);
    tree.schedule.cut_bytes = 64 << 10;
    tree.schedule.pipe_bytes = 64 << 10;
    let everyone = tree.everyone();
    let mut wanted = spec(&everyone, &["flood"], WaveRule::All);
    wanted.window_bytes = Some(WINDOW_BYTES);
    let flood = tree.open(wanted);
    let other = tree.stream(&everyone, "sum", WaveRule::All);
    tree.measures = true;
    (tree, flood, other)
}

#[test]
fn a_flood_of_replies_waits_with_its_filter_and_comes_whole() {
    for is_offloaded in [false, true] {
        let (mut tree, flood, other) = flooded(1, is_offloaded);
        let everyone = tree.everyone();
        // No application reads what comes down.
        everyone.iter().for_each(|rank| tree.process(rank).is_deaf = true);
        for _ in 0..3 {
            tree.all_send(&everyone, flood);
        }
        tree.run();
        let most = tree.most_queued;
        assert!(most < 8 * QUEUED_BYTES_MAX, "{most} bytes are queued; apart: {is_offloaded}");
        tree.all_send(&everyone, other);
        let answers = tree.answers();
        assert!(answers.iter().any(|answer| answer.stream == other && answer.is_complete()));
        everyone.iter().for_each(|rank| {
            tree.process(rank).is_deaf = false;
            tree.wake_program(rank);
        });
        let rest = tree.answers();
        let sums = answers.iter().chain(&rest).filter(|answer| answer.stream == flood);
        assert_eq!(sums.count(), 3, "apart: {is_offloaded}");
        for rank in everyone.iter() {
            assert_eq!(tree.process(rank).received.len(), 3 * REPLIES, "rank {rank}");
        }
    }
}

#[test]
fn a_flood_of_replies_leaves_others_their_turn() {
    each_seed("a_flood_of_replies_leaves", 2, |seed| {
        let (mut tree, flood, _) = flooded(seed, seed % 2 == 0);
        let everyone = tree.everyone();
        for _ in 0..3 {
            tree.all_send(&everyone, flood);
        }
        // What one move of one process makes is no more than other streams can wait for.
        let mut before = tree.queued_bytes();
        while tree.step() {
            let now = tree.queued_bytes();
            assert!(now < before + QUEUED_BYTES_MAX, "one move has made {} bytes", now - before);
            before = now;
        }
    });
}

#[test]
fn a_flood_of_replies_ends_with_its_stream_and_with_its_reader() {
    for is_offloaded in [false, true] {
        let (mut tree, flood, other) = flooded(1, is_offloaded);
        let everyone = tree.everyone();
        everyone.iter().for_each(|rank| tree.process(rank).is_deaf = true);
        tree.all_send(&everyone, flood);
        tree.run();
        // The reader that all wait for is gone: its sibling has the rest.
        tree.kill(0);
        tree.run();
        tree.process(1).is_deaf = false;
        tree.wake_program(1);
        tree.run();
        assert_eq!(tree.process(1).received.len(), REPLIES);
        tree.close(flood);
        tree.run();
        let rest = everyone.difference(sapwood_packet::RankSet::range(0, 0).as_ref());
        tree.all_send(&rest, other);
        let answers = tree.answers();
        assert!(answers.iter().any(|answer| answer.stream == other));
    }
}
