//! Filters that never return, in trees of real processes.

#[path = "support/sleeper.rs"]
mod sleeper;
use std::time::Duration;

use crate::support::{
    HANG, back_ends, new_mark, tags, topology, tree_below_us, trial, wait_until_gone,
};
use sapwood::{Event, Network, RankSet, TransportKind};
use sleeper::{SLEEPER, filters};

const SHAPE: &str = "2x2";
/// The sum of the ranks of its back-ends.
const SUM: i64 = 6;

/// A tree whose processes know the filter, and its mark.
fn sleepy(limit: Duration) -> (Network, String) {
    let mark = new_mark();
    let network = Network::builder(topology(SHAPE))
        .node_program(trial())
        .transport(TransportKind::Unix)
        .registry(filters())
        .filter_limit(limit)
        .back_end(back_ends(&mark, &["serve"]))
        .open()
        .unwrap();
    (network, mark)
}

/// Asks on a stream of sums, `count` times.
fn neighbours_go_on(network: &Network, count: usize) {
    let mut sums = network.stream(&network.everyone()).up("sum").open().unwrap();
    for _ in 0..count {
        sums.broadcast(tags::RANK, ()).unwrap();
        let answer = sums.recv_timeout(HANG).unwrap();
        assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(SUM));
    }
}

#[test]
fn a_filter_that_never_returns_is_given_up_and_delays_no_other() {
    let (mut network, mark) = sleepy(Duration::from_millis(200));
    let tree = tree_below_us(&mark);
    let everyone: RankSet = network.everyone().ranks().clone();
    let mut asleep = network.stream(&network.everyone()).up(SLEEPER).open().unwrap();
    for _ in 0..2 {
        asleep.broadcast(tags::RANK, ()).unwrap();
        neighbours_go_on(&network, 20);
        let answer = asleep.recv_timeout(HANG).unwrap();
        let mut missing = RankSet::new();
        for part in &answer.missing {
            missing.union_with(part.ranks.as_ref());
            let reason = "filter 'trial-sleeper' of stream 1 has run for 200 ms and is given up";
            assert!(part.reason.contains(reason), "{answer:?}");
        }
        assert_eq!(missing, everyone);
    }
    let mut is_told = false;
    while let Some(event) = network.next_event() {
        is_told |= matches!(event, Event::FilterFailed { stream: 1, .. });
    }
    assert!(is_told);
    network.close().unwrap();
    let took = wait_until_gone(&tree);
    println!("nothing left after {took:?}");
}

#[test]
fn a_network_ends_while_a_filter_is_at_work() {
    let (network, mark) = sleepy(Duration::ZERO);
    let tree = tree_below_us(&mark);
    let mut asleep = network.stream(&network.everyone()).up(SLEEPER).open().unwrap();
    asleep.broadcast(tags::RANK, ()).unwrap();
    neighbours_go_on(&network, 20);
    assert!(asleep.recv_timeout(Duration::from_millis(50)).is_err(), "it never answers");
    network.close().unwrap();
    // Within the time that an ending may take: the end does not wait for the filter.
    wait_until_gone(&tree);
}
