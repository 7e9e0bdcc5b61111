//! Which members are missing, and why: processes are killed while the front-end waits for them.

use std::time::{Duration, Instant};

use crate::support::{
    ENDING, HANG, Links, back_ends, builder, network, new_mark, of_rank, tags, tree_below_us,
    wait_until_gone,
};
use rustix::process::Signal;
use sapwood::{Answer, Error, Event, RankSet, Recovery, Stream};

fn missing(answer: &Answer) -> RankSet {
    let mut all = RankSet::new();
    for missing in &answer.missing {
        all.union_with(missing.ranks.as_ref());
    }
    all
}

/// Asks while some back-ends are busy for ever, kills a process, and gives the answer of a tree
/// that does not repair itself.
fn answer_after_kill(shape: &str, links: Links, busy: &[u32], victim: u32) -> Answer {
    let mark = new_mark();
    let network = builder(shape, links)
        .recovery(Recovery::off())
        .back_end(back_ends(&mark, &["serve"]))
        .open()
        .unwrap();
    let tree = tree_below_us(&mark);
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    stream.broadcast(tags::SPIN, busy).unwrap();
    let error = stream.recv_timeout(Duration::from_millis(200)).unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    of_rank(&tree, victim).kill();
    let killed = Instant::now();
    let answer = stream.recv_timeout(ENDING).unwrap();
    println!(
        "{shape} {links:?}, rank {victim} killed: answer after {:.1} ms; {}",
        killed.elapsed().as_secs_f64() * 1e3,
        answer.missing[0].reason
    );
    goes_on(&mut stream, &answer);
    network.close().unwrap();
    wait_until_gone(&tree);
    answer
}

/// The waves after a loss are answered by those that are left, and name the lost as well.
fn goes_on(stream: &mut Stream, first: &Answer) {
    for _ in 0..3 {
        stream.broadcast(tags::RANK, ()).unwrap();
        let answer = stream.recv_timeout(HANG).unwrap();
        assert_eq!(answer.contributors, first.contributors);
        assert_eq!(missing(&answer), missing(first));
        let sum: u32 = answer.contributors.iter().sum();
        assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(i64::from(sum)));
    }
}

#[test]
fn a_killed_back_end_is_named_at_once() {
    for links in [Links::Unix, Links::Tcp, Links::EncryptedTcp, Links::Shm] {
        let answer = answer_after_kill("2x4", links, &[5], 5);
        assert_eq!(missing(&answer), RankSet::range(5, 5));
        assert_eq!(answer.contributors, "0-4,6-7".parse().unwrap());
        assert!(answer.missing[0].reason.contains("back-end 5"), "{answer:?}");
    }
}

#[test]
fn without_recovery_a_killed_communication_process_takes_its_whole_subtree_with_it() {
    for links in [Links::Unix, Links::Tcp, Links::Shm] {
        // The front-end is rank 8, the communication processes are 9 and 10.
        let answer = answer_after_kill("2x4", links, &[4, 5, 6, 7], 10);
        assert_eq!(missing(&answer), RankSet::range(4, 7));
        assert!(answer.missing[0].reason.contains("communication process 10"), "{answer:?}");
        // In 2^3 the ranks below the front-end 8 are 9 and 10, and below these 11 to 14.
        let answer = answer_after_kill("2^3", links, &[2], 12);
        assert_eq!(missing(&answer), RankSet::range(2, 3));
    }
}

#[test]
fn a_back_end_that_ends_by_itself_is_named_like_one_that_is_killed() {
    let (mut network, _) = network("4", Links::Unix);
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    stream.broadcast(tags::DIE, [1_u32, 2]).unwrap();
    let answer = stream.recv_timeout(ENDING).unwrap();
    assert_eq!(missing(&answer), RankSet::range(1, 2));
    assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(3));
    goes_on(&mut stream, &answer);
    let mut lost = RankSet::new();
    while let Some(event) = network.next_event() {
        if let Event::Lost { back_ends, .. } = event {
            lost.union_with(back_ends.as_ref());
        }
    }
    assert_eq!(lost, RankSet::range(1, 2));
    assert_eq!(network.everyone().ranks(), &"0,3".parse().unwrap());
    network.close().unwrap();
}

#[test]
fn when_all_are_gone_no_member_is_left_to_answer() {
    for shape in ["4", "2x2", "1x1x1"] {
        let (network, mark) = network(shape, Links::Unix);
        let tree = tree_below_us(&mark);
        let everyone = network.everyone();
        let mut stream = network.stream(&everyone).up("sum").open().unwrap();
        let all: Vec<u32> = everyone.ranks().iter().collect();
        stream.broadcast(tags::DIE, all).unwrap();
        let begin = Instant::now();
        // The wave that they died in may still be answered: without a value and without
        // contributors.
        let error = loop {
            match stream.recv_timeout(ENDING) {
                Ok(answer) => assert!(answer.value().is_err() && answer.contributors.is_empty()),
                Err(error) => break error,
            }
        };
        println!("{shape}: {:.1} ms: {error}", begin.elapsed().as_secs_f64() * 1e3);
        let Error::NoMemberLeft { missing } = &error else { panic!("{error}") };
        let named = missing.iter().fold(RankSet::new(), |mut all, part| {
            all.union_with(part.ranks.as_ref());
            all
        });
        assert_eq!(&named, everyone.ranks());
        assert!(matches!(stream.recv(), Err(Error::NoMemberLeft { .. })));
        let error = network.stream(&everyone).open().err().unwrap();
        assert!(error.to_string().contains("connected back-end"), "{error}");
        network.close().unwrap();
        wait_until_gone(&tree);
    }
}

#[test]
fn a_receive_with_a_time_limit_ends_in_time_and_a_later_one_has_the_answer() {
    let (network, mark) = network("2x2", Links::Unix);
    let tree = tree_below_us(&mark);
    let mut stream = network.stream(&network.everyone()).up("count").open().unwrap();
    assert!(stream.try_recv().unwrap().is_none());
    let stopped = of_rank(&tree, 0);
    stopped.stop();
    stream.broadcast(tags::RANK, ()).unwrap();
    let error = stream.recv_timeout(Duration::from_millis(100)).unwrap_err();
    assert_eq!(error.to_string(), "no answer within 100 ms");
    stopped.signal(Signal::CONT);
    assert!(stream.recv_timeout(HANG).unwrap().is_complete());
    network.close().unwrap();
}

#[test]
fn answers_that_came_before_a_death_are_all_received() {
    let (network, mark) = network("2x2", Links::Unix);
    let tree = tree_below_us(&mark);
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    stream.broadcast(tags::FLOOD, (100_u32, 8_u32)).unwrap();
    stream.broadcast(tags::DIE, [3_u32]).unwrap();
    stream.broadcast(tags::RANK, ()).unwrap();
    for wave in 0..100 {
        let answer = stream.recv_timeout(HANG).unwrap();
        assert_eq!((answer.wave, answer.is_complete()), (wave, true), "{answer:?}");
    }
    for _ in 0..2 {
        let answer = stream.recv_timeout(HANG).unwrap();
        assert_eq!(missing(&answer), RankSet::range(3, 3));
    }
    network.close().unwrap();
    wait_until_gone(&tree);
}
