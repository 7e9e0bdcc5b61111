//! Communication processes are killed or stopped, and the tree goes on without them: every wave has
//! all in it, and what goes down reaches all once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::support::{
    HANG, Links, Seen, back_ends, builder, new_mark, of_rank, tags, tree_below_us, wait_until_gone,
};
use rustix::process::Signal;
use sapwood::{Event, Network, RankSet, Recovery, Stream};

fn repairing(shape: &str, links: Links, recovery: Recovery) -> (Network, Vec<Seen>) {
    let mark = new_mark();
    let network = builder(shape, links)
        .recovery(recovery)
        .back_end(back_ends(&mark, &["serve"]))
        .open()
        .unwrap();
    let tree = tree_below_us(&mark);
    (network, tree)
}

/// One request, and its answer, which all are in.
fn whole(stream: &mut Stream, everyone: &RankSet) -> Duration {
    let begin = Instant::now();
    stream.broadcast(tags::RANK, ()).unwrap();
    let answer = stream.recv_timeout(HANG).unwrap();
    assert_eq!(&answer.contributors, everyone, "{:?}", answer.missing);
    let sum: u32 = everyone.iter().sum();
    assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(i64::from(sum)));
    begin.elapsed()
}

fn inner(network: &Network) -> Vec<u32> {
    let topology = network.topology();
    let root = topology.root().rank();
    let ranks = topology.breadth_first().into_iter();
    ranks.filter(|&rank| rank != root && !topology.children(rank).is_empty()).collect()
}

#[test]
fn inner_processes_die_one_after_another_and_no_wave_lacks_anybody() {
    for links in [Links::Unix, Links::Tcp, Links::EncryptedTcp, Links::Shm] {
        let (mut network, tree) = repairing("2x2x2", links, Recovery::default());
        let everyone = network.everyone().ranks().clone();
        let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
        for victim in inner(&network) {
            whole(&mut stream, &everyone);
            of_rank(&tree, victim).kill();
            let took = whole(&mut stream, &everyone);
            println!("{links:?}: {victim} killed, whole again after {took:?}");
            whole(&mut stream, &everyone);
        }
        let mut repaired = BTreeMap::new();
        while let Some(event) = network.next_event() {
            match event {
                Event::Repaired { rank, orphans, .. } => {
                    repaired.insert(rank, orphans);
                }
                Event::Lost { .. } => panic!("no member is lost: {event:?}"),
                _ => {}
            }
        }
        assert_eq!(repaired.len(), 6, "{repaired:?}");
        network.close().unwrap();
        wait_until_gone(&tree);
    }
}

#[test]
fn a_stopped_process_is_replaced_and_may_come_back() {
    let recovery = Recovery { silence: Duration::from_secs(2), ..Recovery::default() };
    let (network, tree) = repairing("2x2x2", Links::Unix, recovery);
    let everyone = network.everyone().ranks().clone();
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    whole(&mut stream, &everyone);
    let victim = of_rank(&tree, inner(&network)[0]);
    victim.stop();
    let took = whole(&mut stream, &everyone);
    println!("stopped: whole again after {took:?}");
    victim.signal(Signal::CONT);
    for _ in 0..50 {
        whole(&mut stream, &everyone);
    }
    network.close().unwrap();
    wait_until_gone(&tree);
}

#[test]
fn a_stopped_back_end_outlives_the_process_that_has_started_it() {
    let (network, tree) = repairing("2x2", Links::Unix, Recovery::default());
    let everyone = network.everyone().ranks().clone();
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    whole(&mut stream, &everyone);
    let stopped = of_rank(&tree, 0);
    stopped.stop();
    let starter = of_rank(&tree, inner(&network)[0]);
    starter.kill();
    // The kernel hangs up on a stopped process whose starter ends.
    while starter.is_alive() {
        assert!(stream.recv_timeout(Duration::from_millis(10)).is_err(), "nothing was asked");
    }
    stopped.signal(Signal::CONT);
    whole(&mut stream, &everyone);
    network.close().unwrap();
    wait_until_gone(&tree);
}

#[test]
fn a_front_end_that_is_gone_ends_a_tree_that_was_repaired() {
    let (network, tree) = repairing("2x2x2", Links::Unix, Recovery::default());
    let everyone = network.everyone().ranks().clone();
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    of_rank(&tree, inner(&network)[0]).kill();
    whole(&mut stream, &everyone);
    drop(stream);
    drop(network);
    wait_until_gone(&tree);
}
