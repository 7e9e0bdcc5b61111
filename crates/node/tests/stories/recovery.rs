//! Communication processes die, and the tree repairs itself: no wave is lost and nothing is counted
//! twice.

use crate::harness::{Tree, each_seed};
use sapwood_filter::{Emitter, Filter, FilterError, FilterSpec, Registry, WaveRef, WaveRule};
use sapwood_node::{Event, Recovery};
use sapwood_packet::RankSet;

fn terms() -> Recovery {
    Recovery { silence: std::time::Duration::ZERO, ..Recovery::default() }
}

#[test]
fn orphans_go_to_their_grandparent_and_every_wave_is_complete() {
    each_seed("orphans_go_to_their", 200, |seed| {
        let mut tree = Tree::recovering("2x2x2", seed, terms());
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        tree.run();
        let inner = tree.communication_ranks();
        let victim = inner[seed as usize % inner.len()];
        let moves = tree.schedule.below(400) as u64;
        for rank in everyone.iter() {
            tree.send_many(rank, stream, 20).expect("the stream is open");
        }
        tree.run_some(moves);
        tree.kill(victim);
        let answers = tree.answers();
        for rank in everyone.iter() {
            tree.send_many(rank, stream, 5).expect("the stream is open");
        }
        let mut answers = answers;
        answers.extend(tree.answers());
        assert_eq!(answers.len(), 25, "one answer for each wave: {:?}", tree.events);
        for (wave, answer) in answers.iter().enumerate() {
            assert_eq!(answer.wave, wave as u64);
            assert_eq!(answer.contributors, everyone, "wave {wave} is complete");
            assert!(!answer.is_late);
        }
        let is_repaired =
            |event: &Event| matches!(event, Event::Repaired { rank, .. } if *rank == victim);
        assert!(tree.events.iter().any(is_repaired), "{:?}", tree.events);
    });
}

#[test]
fn one_process_after_another_dies() {
    each_seed("one_process_after", 200, |seed| {
        let spec = ["2x2x2x2", "3x3", "1x1x1x2", "4x2x2", "1x4x2"][seed as usize % 5];
        let mut tree = Tree::recovering(spec, seed, terms());
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        tree.run();
        let mut answers = Vec::new();
        let mut waves = 0;
        for victim in tree.communication_ranks() {
            for rank in everyone.iter() {
                tree.send_many(rank, stream, 7).expect("the stream is open");
            }
            waves += 7;
            let moves = tree.schedule.below(600) as u64;
            tree.run_some(moves);
            if tree.schedule.one_in(3) {
                answers.extend(tree.answers());
            }
            tree.kill(victim);
        }
        answers.extend(tree.answers());
        assert_eq!(answers.len(), waves, "one answer for each wave: {:?}", tree.events);
        assert!(answers.iter().all(|answer| answer.contributors == everyone));
    });
}

/// Makes two packets of one.
struct Double;

impl Filter for Double {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        for packet in wave.packets {
            out.emit_encoded(packet.header.tag, packet.values());
            out.emit_encoded(packet.header.tag, packet.values());
        }
        Ok(())
    }
}

#[test]
fn a_filter_that_multiplies_on_the_way_down_loses_nothing() {
    for (shape, copies) in [("2", 2), ("2^2", 4), ("1^3", 8), ("2^3", 8)] {
        let registry = Registry::built_in().with("double", |_| Ok(Box::new(Double)));
        let mut tree = Tree::recovering_with(shape, 1, terms(), registry);
        let everyone = tree.everyone();
        let mut wanted = crate::harness::spec(&everyone, &["sum"], WaveRule::All);
        wanted.down = vec![FilterSpec::from("double")];
        let stream = tree.open(wanted);
        for number in 0..3_i64 {
            tree.broadcast(stream, &RankSet::new(), number);
        }
        tree.run();
        for rank in everyone.iter() {
            let received: Vec<i64> = (tree.process(rank).received.iter())
                .map(|packet| packet.values().scalar(0).expect("one number"))
                .collect();
            let expected: Vec<i64> = (0..3).flat_map(|number| vec![number; copies]).collect();
            assert_eq!(received, expected, "{shape}, rank {rank}");
        }
    }
}

#[test]
fn what_goes_down_comes_once_and_in_order() {
    each_seed("what_goes_down", 200, |seed| {
        let mut tree = Tree::recovering("2x2x2", seed, terms());
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        tree.run();
        let inner = tree.communication_ranks();
        let none = RankSet::new();
        let mut sent = 0_i64;
        for victim in inner {
            for _ in 0..10 {
                tree.broadcast(stream, &none, sent);
                sent += 1;
                let moves = tree.schedule.below(60) as u64;
                tree.run_some(moves);
            }
            tree.kill(victim);
        }
        tree.run();
        for rank in everyone.iter() {
            let received: Vec<i64> = (tree.process(rank).received.iter())
                .map(|packet| packet.values().scalar(0).expect("one number"))
                .collect();
            assert_eq!(received, (0..sent).collect::<Vec<_>>(), "rank {rank}");
        }
    });
}

#[test]
fn what_has_come_to_an_orphan_is_kept_until_it_has_come_to_those_below() {
    each_seed("what_has_come_to_an_orphan", 100, |seed| {
        let mut tree = Tree::recovering("1x1x2", seed, terms());
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        tree.run();
        let (upper, lower, reader) = (3, 4, 0);
        tree.process(reader).is_stalled = true;
        for number in 0..5_i64 {
            tree.broadcast(stream, &RankSet::new(), number);
        }
        tree.run();
        tree.kill(upper);
        tree.run();
        // The lower one has all of it, one of its back-ends nothing; then it is gone as well.
        tree.cut(reader);
        tree.kill(lower);
        tree.process(reader).is_stalled = false;
        tree.run();
        for rank in everyone.iter() {
            let received: Vec<i64> = (tree.process(rank).received.iter())
                .map(|packet| packet.values().scalar(0).expect("one number"))
                .collect();
            assert_eq!(received, [0, 1, 2, 3, 4], "rank {rank}");
        }
    });
}

#[test]
fn a_back_end_that_leaves_over_a_second_link_is_not_waited_for() {
    each_seed("a_back_end_that_leaves", 100, |seed| {
        let mut tree = Tree::recovering("2x2", seed, terms());
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        tree.run();
        tree.all_send(&everyone, stream);
        tree.shutdown(0);
        let moves = tree.schedule.below(40) as u64;
        tree.run_some(moves);
        // What it has sent is not safe yet, so that it connects anew before it goes.
        tree.cut(0);
        tree.advance(600);
        assert!(!tree.front_end().back_ends().contains(0), "{:?}", tree.events);
        let lost = tree.events.iter().rev().find_map(|event| match event {
            Event::Lost { reason, .. } => Some(reason.clone()),
            _ => None,
        });
        assert_eq!(lost.as_deref(), Some("back-end 0 has left"));
    });
}

#[test]
fn a_frame_that_takes_longer_than_the_silence_is_no_silence() {
    each_seed("a_frame_that_takes", 50, |seed| {
        let silence = std::time::Duration::from_millis(300);
        let recovery = Recovery { silence, ..Recovery::default() };
        let mut tree = Tree::recovering("1x2", seed, recovery);
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        tree.run();
        (tree.schedule.cut_bytes, tree.schedule.pipe_bytes) = (300, 300);
        let image = vec![7_u8; 64 << 10];
        tree.broadcast(stream, &RankSet::new(), image);
        let mut ticks = 0;
        while tree.queued_bytes() > 0 {
            // A link of some 30 KB a second: probes wait behind the image.
            tree.run_some(8);
            tree.tick(10);
            ticks += 1;
        }
        assert!(ticks > 90, "the image took three times the silence: {ticks} ticks");
        tree.run();
        let broken = |event: &Event| matches!(event, Event::Broken { .. });
        assert!(!tree.process(2).events.iter().any(broken), "no process is taken for dead");
        for rank in everyone.iter() {
            assert_eq!(tree.process(rank).received.len(), 1, "rank {rank}");
        }
    });
}

#[test]
fn repairs_can_be_switched_off_and_on_again() {
    each_seed("repairs_can_be_switched", 50, |seed| {
        let mut tree = Tree::recovering("2x2x2", seed, terms());
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        tree.run();
        let victims = tree.communication_ranks();
        let [first, .., last] = victims[..] else { panic!("there are several") };
        tree.switch_recovery(false);
        tree.run();
        let lost = tree.below(last);
        tree.oracle.killed(last, &lost);
        tree.kill(last);
        tree.run();
        let is_told =
            |event: &Event| matches!(event, Event::Lost { back_ends, .. } if *back_ends == lost);
        assert!(tree.events.iter().any(is_told), "{:?}", tree.events);
        let is_repair =
            |event: &Event| matches!(event, Event::Broken { .. } | Event::Repaired { .. });
        assert!(!tree.events.iter().any(is_repair), "{:?}", tree.events);
        assert!(lost.iter().all(|rank| tree.process(rank).node.has_ended()), "orphans end");

        tree.switch_recovery(true);
        tree.run();
        let left = everyone.difference(lost.as_ref());
        for rank in left.iter() {
            tree.send_many(rank, stream, 5).expect("the stream is open");
        }
        let moves = tree.schedule.below(300) as u64;
        tree.run_some(moves);
        tree.kill(first);
        let answers = tree.answers();
        assert_eq!(answers.len(), 5, "{:?}", tree.events);
        assert!(answers.iter().all(|answer| answer.contributors == left), "{answers:?}");
    });
}

#[test]
fn what_began_without_repairs_stays_without() {
    let mut tree = Tree::of("2x2", 1);
    assert!(tree.front_end().application().switch_recovery(false).is_ok());
    assert!(tree.front_end().application().switch_recovery(true).is_err());
}
