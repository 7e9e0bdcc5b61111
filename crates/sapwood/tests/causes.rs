//! Why a back-end is missing, for programs: the cause is known where it arises, and travels.

use std::time::{Duration, Instant};

use crate::support::{
    HANG, Links, Seen, ask_until_missing, back_ends, builder, late_part, new_mark, of_rank, tags,
    tree_below_us,
};
use rustix::process::Signal;
use sapwood::{Answer, Cause, Event, Network, RankSet, Recovery, Stream, Tag, WaveRule};

const SHAPES: [&str; 2] = ["2", "2x2"];

fn serving(shape: &str) -> (Network, Vec<Seen>) {
    let mark = new_mark();
    let network = builder(shape, Links::Unix)
        .recovery(Recovery::default())
        .back_end(back_ends(&mark, &["serve"]))
        .open()
        .unwrap();
    (network, tree_below_us(&mark))
}

fn sums(network: &Network) -> Stream {
    network.stream(&network.everyone()).up("sum").open().unwrap()
}

/// The causes of an answer that is about back-end 1 alone.
fn cause_of(answer: &Answer) -> Cause {
    assert_eq!(answer.missing.len(), 1, "{:?}", answer.missing);
    assert_eq!(answer.missing[0].ranks.to_string(), "1");
    answer.missing[0].cause
}

fn after(stream: &mut Stream, tag: Tag) -> Answer {
    stream.broadcast(tag, [1_u32]).unwrap();
    stream.recv_timeout(HANG).unwrap()
}

#[test]
fn the_end_of_a_process_is_told_as_its_parent_saw_it() {
    for shape in SHAPES {
        for (tag, cause) in [(tags::DIE, Cause::Exited { status: 7 }), (tags::LEAVE, Cause::Left)] {
            let (mut network, _) = serving(shape);
            let mut stream = sums(&network);
            assert_eq!(cause_of(&after(&mut stream, tag)), cause, "{shape}");
            let mut events = std::iter::from_fn(|| network.next_event());
            let told = events.find_map(|event| match event {
                Event::Lost { cause, .. } => Some(cause),
                _ => None,
            });
            assert_eq!(told, Some(cause), "{shape}: the loss is told before the answer");
            network.close().unwrap();
        }
        let (network, tree) = serving(shape);
        let mut stream = sums(&network);
        of_rank(&tree, 1).kill();
        let answer = after(&mut stream, tags::RANK);
        assert_eq!(cause_of(&answer), Cause::Killed { signal: 9 }, "{shape}");
        let reason = &answer.missing[0].reason;
        assert!(reason.contains("killed by signal 9"), "{reason}");
        network.close().unwrap();
    }
}

#[test]
fn one_that_is_there_and_missing_has_another_cause() {
    for shape in SHAPES {
        let (network, tree) = serving(shape);
        let mut whole = sums(&network);
        // A filter that cannot merge the values of 1 with the others'.
        let answer = after(&mut whole, tags::MIX);
        assert!(answer.missing.iter().any(|missing| missing.cause == Cause::FilterFailed));
        let rule = WaveRule::Timeout { milliseconds: 500 };
        let mut timed = network.stream(&network.everyone()).up("sum").wave(rule).open().unwrap();
        let stopped = of_rank(&tree, 1);
        stopped.stop();
        let answer = ask_until_missing(&mut timed, &mut 0, &RankSet::range(1, 1));
        assert_eq!(cause_of(&answer), Cause::Late, "{shape}");
        stopped.signal(Signal::CONT);
        late_part(&mut timed, answer.wave, 1);
        network.close().unwrap();
    }
}

#[test]
fn one_that_passes_a_question_over_has_skipped_it() {
    let mark = new_mark();
    let network =
        builder("2x2", Links::Unix).back_end(back_ends(&mark, &["reply"])).open().unwrap();
    let mut stream = sums(&network);
    let mut first = stream.ask_async(tags::HUSH, [1_u32]).unwrap();
    assert!(stream.ask_timeout(tags::ECHO, 1_i64, HANG).unwrap().is_complete());
    let answer = first.wait().unwrap();
    assert_eq!(cause_of(&answer), Cause::Skipped);
    assert_eq!(answer.missing[0].reason, "sent nothing in the answer to question 0");
    network.close().unwrap();
}

#[test]
fn a_status_says_the_cause_of_those_who_are_missing() {
    let (mut network, tree) = serving("2x2");
    let frozen = of_rank(&tree, 1);
    frozen.stop();
    let begin = Instant::now();
    let cause = loop {
        let status = network.status(Duration::from_secs(1)).unwrap();
        match &status.missing[..] {
            [one] if one.ranks == RankSet::range(1, 1) => break one.cause,
            // On a busy machine others may be late, too.
            missing => assert!(begin.elapsed() < HANG, "{missing:?}"),
        }
    };
    frozen.signal(Signal::CONT);
    assert_eq!(cause, Cause::Late);
    network.close().unwrap();
}
