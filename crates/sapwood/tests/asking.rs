//! Questions and their answers: each question has its own answer, whatever else is under way.

use std::time::Duration;

use crate::support::{
    HANG, Links, Seen, back_ends, builder, new_mark, of_rank, tags, tree_below_us,
};
use rustix::process::Signal;
use sapwood::{Answer, Error, Network, Recovery, Stream, WaveRule};

/// A wait for an answer that cannot come meanwhile.
const SHORT: Duration = Duration::from_millis(50);
const NAP_MS: u32 = 2000;

fn replying(shape: &str) -> (Network, Vec<Seen>) {
    let mark = new_mark();
    let network = builder(shape, Links::Unix)
        .recovery(Recovery::default())
        .back_end(back_ends(&mark, &["reply"]))
        .open()
        .unwrap();
    (network, tree_below_us(&mark))
}

fn sums(network: &Network) -> Stream {
    network.stream(&network.everyone()).up("sum").open().unwrap()
}

fn number(answer: &Answer) -> i64 {
    answer.value().unwrap().scalar(0).unwrap()
}

fn is_timeout(asked: &sapwood::Result<Answer>) -> bool {
    matches!(asked, Err(Error::Timeout { what: "answer", .. }))
}

#[test]
fn an_answer_that_comes_too_late_is_not_given_for_the_next_question() {
    for shape in ["1x1", "2", "2x2"] {
        let (network, tree) = replying(shape);
        let mut stream = sums(&network);
        let count = network.everyone().size() as i64;
        let late = of_rank(&tree, 0);
        late.stop();
        let asked = stream.ask_timeout(tags::RANK, (), SHORT);
        assert!(is_timeout(&asked), "{asked:?}");
        // The next question is asked before that answer comes.
        let mut next = stream.ask_async(tags::ECHO, 42_i64).unwrap();
        late.signal(Signal::CONT);
        let answer = next.wait_timeout(HANG).unwrap();
        assert_eq!((number(&answer), answer.question()), (42 * count, Some(1)), "{shape}");
        for value in [43_i64, 44] {
            let answer = stream.ask_timeout(tags::ECHO, value, HANG).unwrap();
            assert_eq!(number(&answer), value * count, "{shape}");
            assert_eq!(answer.question(), Some(value.cast_unsigned() - 41));
        }
        assert_eq!(stream.discarded(), 1);
        assert!(stream.try_recv().unwrap().is_none(), "nothing else came");
        network.close().unwrap();
    }
}

#[test]
fn what_answers_no_question_is_received_as_what_it_is() {
    let (network, _) = replying("2x2");
    let mut stream = sums(&network);
    stream.broadcast(tags::ECHO, 5_i64).unwrap();
    // Back-end 1 alone also sends unasked, before and behind its replies.
    let answer = stream.ask_timeout(tags::UNASKED, [1_u32], HANG).unwrap();
    assert_eq!(number(&answer), 1 + 2 + 3);
    let answer = stream.ask_timeout(tags::ECHO, 6_i64, HANG).unwrap();
    assert_eq!((number(&answer), answer.question()), (24, Some(2)));
    assert!(answer.is_complete());
    let mut received = Vec::new();
    for _ in 0..3 {
        let answer = stream.recv_timeout(HANG).unwrap();
        received.push((answer.question(), number(&answer), answer.contributors.len()));
    }
    assert_eq!(received, [(Some(0), 20, 4), (None, -1, 1), (None, -2, 1)]);
    assert_eq!(stream.discarded(), 0);
    network.close().unwrap();
}

#[test]
fn several_questions_are_under_way_and_taken_in_any_order() {
    let (network, tree) = replying("2x2");
    let mut stream = sums(&network);
    let mut asked: Vec<_> =
        (0..20_i64).map(|value| stream.ask_async(tags::ECHO, value).unwrap()).collect();
    drop(asked.remove(7));
    for mut pending in asked.into_iter().rev() {
        let question = pending.question();
        let answer = pending.wait().unwrap();
        assert_eq!(answer.question(), Some(question));
        assert_eq!(number(&answer), question.cast_signed() * 4);
    }
    assert_eq!(stream.discarded(), 1, "the one that was dropped");
    let late = of_rank(&tree, 0);
    late.stop();
    let mut pending = stream.ask_async(tags::RANK, ()).unwrap();
    assert!(pending.try_take().unwrap().is_none());
    assert!(is_timeout(&pending.wait_timeout(SHORT)));
    late.signal(Signal::CONT);
    assert_eq!(number(&pending.wait_timeout(HANG).unwrap()), 6);
    let again = pending.wait().unwrap_err().to_string();
    assert!(again.ends_with("was given already; ask again"), "{again}");
    network.close().unwrap();
}

#[test]
fn a_late_part_of_an_answer_belongs_to_no_other_question() {
    let (network, _) = replying("2x2");
    let mut stream = network
        .stream(&network.everyone())
        .up("sum")
        .wave(WaveRule::Timeout { milliseconds: 100 })
        .open()
        .unwrap();
    let answer = stream.ask_timeout(tags::SLEEP, ([1_u32], NAP_MS), HANG).unwrap();
    assert!(answer.missing.iter().any(|missing| missing.ranks.contains(1)), "{answer:?}");
    // Until back-end 1 is awake again it is late for each question.
    let mut asked = 0;
    let whole = loop {
        let answer = stream.ask_timeout(tags::ECHO, 1_i64, HANG).unwrap();
        assert_eq!(number(&answer), answer.contributors.len() as i64);
        asked += 1;
        if answer.is_complete() {
            break answer;
        }
        assert!(asked < 1000, "back-end 1 is in no answer");
    };
    assert_eq!(number(&whole), 4);
    assert!(stream.discarded() >= 1, "its late part of the first answer");
    network.close().unwrap();
}

#[test]
fn a_process_that_dies_between_question_and_answer_costs_no_answer() {
    let (network, tree) = replying("2x2x2");
    let everyone = network.everyone().ranks().clone();
    let mut stream = sums(&network);
    let sum: i64 = everyone.iter().map(i64::from).sum();
    let topology = network.topology();
    let root = topology.root().rank();
    let victim = topology.children(root)[0];
    let (early, late) = ([0_u32], [7_u32]);
    let mut first = stream.ask_async(tags::SLEEP, (early, NAP_MS)).unwrap();
    let mut second = stream.ask_async(tags::SLEEP, (late, NAP_MS)).unwrap();
    assert!(first.try_take().unwrap().is_none());
    of_rank(&tree, victim).kill();
    for (question, answer) in
        [(0, first.wait_timeout(HANG)), (1, second.wait())].map(|(at, got)| (at, got.unwrap()))
    {
        assert_eq!(answer.question(), Some(question));
        assert_eq!((number(&answer), &answer.contributors), (sum, &everyone));
    }
    for value in 0..100_i64 {
        let answer = stream.ask_timeout(tags::ECHO, value, HANG).unwrap();
        assert_eq!(number(&answer), value * 8);
    }
    network.close().unwrap();
}

#[test]
fn a_question_that_no_back_end_answers_ends_with_the_next_answer() {
    let (network, _) = replying("2");
    let mut stream = sums(&network);
    let mut silent = stream.ask_async(tags::HUSH, [0_u32, 1]).unwrap();
    assert_eq!(number(&stream.ask_timeout(tags::ECHO, 3_i64, HANG).unwrap()), 6);
    let answer = silent.wait().unwrap();
    assert_eq!(answer.question(), Some(0));
    let refused = answer.value().unwrap_err().to_string();
    assert_eq!(refused, "the answer has no value; 0-1: did not answer it");
    network.close().unwrap();
}

#[test]
fn a_question_whose_answers_the_filters_make_nothing_of_has_no_value() {
    let (network, _) = replying("2x2");
    let mut stream = network.stream(&network.everyone()).up("accumulate(3)").open().unwrap();
    let mut given = Vec::new();
    for value in 1..=6_i64 {
        let answer = stream.ask_timeout(tags::ECHO, value, HANG).unwrap();
        assert!(answer.missing.is_empty());
        given.push(answer.value().ok().map(|values| values.scalar::<i64>(0).unwrap()));
    }
    assert_eq!(given, [None, None, Some(24), None, None, Some(60)]);
    network.close().unwrap();
}

#[test]
fn one_that_answers_twice_is_told() {
    let (network, _) = replying("1");
    let mut stream = network.stream(&network.everyone()).open().unwrap();
    assert_eq!(number(&stream.ask_timeout(tags::TWICE, (), HANG).unwrap()), 0);
    let told = stream.recv_timeout(HANG).unwrap();
    let told = told.value().unwrap().string(0).unwrap().to_owned();
    assert!(told.starts_with("question 0 has passed"), "{told}");
    network.close().unwrap();
}

#[test]
fn streams_without_one_answer_take_no_question() {
    let (network, _) = replying("2");
    let everyone = network.everyone();
    let mut apart = network.stream(&everyone).open().unwrap();
    let text = apart.ask(tags::ECHO, 1_i64).unwrap_err().to_string();
    assert!(text.contains("no filter makes one answer of its members'"), "{text}");
    let mut at_once = network.stream(&everyone).up("sum").wave(WaveRule::Immediate).open().unwrap();
    let text = at_once.ask_async(tags::ECHO, 1_i64).unwrap_err().to_string();
    assert!(text.contains("does not wait for its members"), "{text}");
    let mut alone = network.stream(&network.communicator([1])).open().unwrap();
    assert_eq!(number(&alone.ask_timeout(tags::ECHO, 9_i64, HANG).unwrap()), 9);
    network.close().unwrap();
}

#[test]
fn answers_that_are_not_received_do_not_let_a_question_wait_for_ever() {
    let (network, _) = replying("1");
    let mut stream = network.stream(&network.everyone()).window_bytes(4096).open().unwrap();
    stream.broadcast(tags::FLOOD, (100_u32, 1000_u32)).unwrap();
    let refused = stream.ask(tags::ECHO, 1_i64).unwrap_err();
    assert!(matches!(refused, Error::Unreceived { .. }), "{refused}");
    for _ in 0..100 {
        assert_eq!(stream.recv_timeout(HANG).unwrap().question(), None);
    }
    assert_eq!(number(&stream.ask_timeout(tags::ECHO, 2_i64, HANG).unwrap()), 2);
    network.close().unwrap();
}
