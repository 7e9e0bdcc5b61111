//! Large arrays that are folded chunk by chunk while processes die: a wave is whole as long as its
//! back-ends live, and one that cannot become whole is closed, with its missing.

use crate::harness::{Tree, each_seed, missing_ranks, says};
use sapwood_filter::WaveRule;
use sapwood_node::{Answer, Event, Recovery};
use sapwood_packet::RankSet;

/// Five chunks of 128 KiB.
const LENGTH: usize = 80_000;

fn terms() -> Recovery {
    Recovery { silence: std::time::Duration::ZERO, ..Recovery::default() }
}

/// One back-end's share: its bit of every element.
fn send_array(tree: &mut Tree, rank: u32, stream: u32) {
    let values = vec![1_i64 << rank; LENGTH];
    tree.send_values(rank, stream, values.as_slice(), None).expect("the stream is open");
}

fn assert_value(answer: &Answer) {
    let Some(packet) = &answer.packet else { return };
    let sum: i64 = answer.contributors.iter().map(|rank| 1_i64 << rank).sum();
    let values: &[i64] = packet.values().array(0).expect("an array");
    assert!(values.iter().all(|&value| value == sum), "a wrong value: {:?}", answer.contributors);
}

#[test]
fn the_death_of_communication_processes_tears_no_wave() {
    each_seed("the_death_of_communication", 80, |seed| {
        let spec = ["2x2", "1x1x2", "2x2x2", "4x4", "1x4x2"][seed as usize % 5];
        let mut tree = Tree::recovering(spec, seed, terms());
        tree.schedule.widen();
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        tree.oracle.forget(stream);
        tree.run();
        let mut answers = Vec::new();
        let victims = tree.communication_ranks();
        for &victim in &victims {
            everyone.iter().for_each(|rank| send_array(&mut tree, rank, stream));
            let moves = tree.schedule.below(900) as u64;
            tree.run_some(moves);
            tree.kill(victim);
            answers.extend(tree.answers());
        }
        assert_eq!(answers.len(), victims.len(), "one answer for each wave: {:?}", tree.events);
        for (wave, answer) in answers.iter().enumerate() {
            assert_eq!(answer.wave, wave as u64);
            assert_eq!(answer.contributors, everyone, "wave {wave}: {:?}", answer.missing);
            assert_value(answer);
        }
        let is_loss = |event: &Event| matches!(event, Event::Lost { .. });
        assert!(!tree.events.iter().any(is_loss), "no back-end was lost: {:?}", tree.events);
    });
}

#[test]
fn a_wave_that_loses_all_who_were_in_its_first_chunks_is_closed_with_its_missing() {
    each_seed("a_wave_that_loses_all", 80, |seed| {
        let spec = ["3", "2x2", "1x3", "2x2x2"][seed as usize % 4];
        let mut tree = Tree::recovering(spec, seed, terms());
        tree.schedule.widen();
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        tree.oracle.forget(stream);
        tree.run();
        // The last back-end comes to the wave only when its first chunks have gone on without it,
        // and the others are lost in its middle.
        let last = everyone.iter().last().expect("there are back-ends");
        let mut others = everyone.clone();
        others.subtract(RankSet::range(last, last).as_ref());
        others.iter().for_each(|rank| send_array(&mut tree, rank, stream));
        let moves = tree.schedule.below(400) as u64;
        tree.run_some(moves);
        let has_sent = tree.schedule.one_in(2);
        if has_sent {
            send_array(&mut tree, last, stream);
            let moves = tree.schedule.below(400) as u64;
            tree.run_some(moves);
        }
        others.iter().for_each(|rank| tree.kill(rank));
        tree.advance(30_000);
        let mut answers = tree.answers();
        for _ in usize::from(has_sent)..2 {
            send_array(&mut tree, last, stream);
        }
        tree.advance(1000);
        answers.extend(tree.answers());
        let on_time: Vec<&Answer> = answers.iter().filter(|answer| !answer.is_late).collect();
        let waves: Vec<u64> = on_time.iter().map(|answer| answer.wave).collect();
        assert_eq!(waves, [0, 1], "each wave is answered once: {:?}", tree.events);
        for answer in &on_time {
            assert_value(answer);
            let mut all = missing_ranks(answer);
            all.union_with(answer.contributors.as_ref());
            assert_eq!(all, everyone, "everyone is in it or named: {answer:?}");
        }
        assert_eq!(on_time[1].contributors, RankSet::range(last, last), "{answers:?}");
    });
}

/// Back-end 0 is lost while its array is under way, and 1 has sent its own: the answer names that,
/// if it lacks 1.
fn assert_torn_with_reason(tree: &mut Tree, spec: &str) {
    for answer in tree.answers() {
        assert_value(&answer);
        assert!(!says(&answer, 1, "sent nothing"), "{spec}: it has sent: {answer:?}");
    }
}

#[test]
fn a_wave_that_is_torn_below_an_orphan_comes_with_its_reason() {
    each_seed("a_wave_that_is_torn_below", 60, |seed| {
        let spec = ["1x2", "1x1x2", "2x2"][seed as usize % 3];
        let mut tree = Tree::recovering(spec, seed, terms());
        tree.schedule.widen();
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        tree.oracle.forget(stream);
        everyone.iter().for_each(|rank| send_array(&mut tree, rank, stream));
        let moves = tree.schedule.below(400) as u64;
        tree.run_some(moves);
        let orphan = tree.topology.parent(0).expect("a parent").rank();
        tree.cut_off.insert(orphan);
        tree.kill(0);
        tree.cut(orphan);
        tree.advance(1500);
        tree.cut_off = RankSet::new();
        tree.advance(3000);
        assert_torn_with_reason(&mut tree, spec);
    });
}

#[test]
fn a_wave_that_is_torn_below_one_that_was_an_orphan_comes_with_its_reason() {
    each_seed("a_wave_that_is_torn_below_one", 20, |seed| {
        let spec = ["2x1x1", "1x2x1x1"][seed as usize % 2];
        let mut tree = Tree::recovering(spec, seed, terms());
        tree.schedule.widen();
        let everyone = tree.everyone();
        let stream = tree.stream(&everyone, "sum", WaveRule::All);
        tree.oracle.forget(stream);
        // It does not hear that it may send the rest.
        tree.process(0).is_stalled = true;
        everyone.iter().for_each(|rank| send_array(&mut tree, rank, stream));
        tree.advance(200);
        // Its place is held for a second.
        tree.cut_off.insert(0);
        tree.cut(0);
        tree.run();
        let above = tree.topology.parent(0).expect("a parent").rank();
        let upper = tree.topology.parent(above).expect("another").rank();
        tree.kill(upper);
        tree.advance(3000);
        assert_torn_with_reason(&mut tree, spec);
    });
}
