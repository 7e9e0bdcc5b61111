//! However a network ends, nothing of it is left: no process, no socket.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{
    ENDING, HANG, Links, MARK_VARIABLE, Seen, ask_until_missing, back_ends, builder, clean_command,
    marked, network, new_mark, of_rank, sapwood, tree_below_us, trial, wait_until, wait_until_gone,
};
use rustix::process::{Pid, Signal, kill_process};
use sapwood::{RankSet, Recovery, WaveRule};

const SHAPE: &str = "2x2";
/// Front-end, two communication processes, four back-ends.
const PROCESSES: usize = 7;

/// A front-end in a process of its own, once its tree stands, and all processes of it.
fn front_end(mode: &str, back_end: &str) -> (Child, Vec<Seen>) {
    let mark = new_mark();
    let mut child = clean_command(trial())
        .args(["front-end", SHAPE, mode, back_end])
        .env("SAPWOOD_NODE", sapwood())
        .env(MARK_VARIABLE, &mark)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let seen = Seen::look(child.id()).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let mut tree = marked(&mark);
    if !tree.iter().any(|process| process.pid == seen.pid) {
        tree.push(seen);
    }
    (child, tree)
}

/// Ends the front-end by a signal, or lets it end by itself, and waits until nothing is left.
fn ends(mode: &str, back_end: &str, signal: Option<Signal>) {
    let (mut child, tree) = front_end(mode, back_end);
    if let Some(signal) = signal {
        assert_eq!(tree.len(), PROCESSES, "{tree:?}");
        let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }
    wait_until("front-end ended", ENDING, || child.try_wait().unwrap().is_some());
    let took = wait_until_gone(&tree);
    println!("front-end {mode}, back-ends {back_end}, {signal:?}: nothing left after {took:?}");
}

#[test]
fn a_front_end_that_is_killed_takes_its_tree_with_it() {
    for back_end in ["serve", "sleep", "spin"] {
        ends("wait", back_end, Some(Signal::KILL));
    }
}

#[test]
fn ctrl_c_ends_the_whole_tree() {
    for back_end in ["serve", "sleep", "spin"] {
        ends("wait", back_end, Some(Signal::INT));
    }
    ends("sleep", "serve", Some(Signal::TERM));
}

#[test]
fn a_front_end_that_ends_without_a_close_leaves_nothing() {
    for mode in ["exit", "panic", "abort", "close"] {
        for back_end in ["serve", "spin"] {
            ends(mode, back_end, None);
        }
    }
}

#[test]
fn a_closed_network_leaves_nothing_whatever_its_back_ends_do() {
    for links in [Links::Unix, Links::Tcp] {
        for mode in ["serve", "sleep", "spin"] {
            let mark = new_mark();
            let network = builder(SHAPE, links).back_end(back_ends(&mark, &[mode])).open().unwrap();
            let tree = tree_below_us(&mark);
            assert_eq!(tree.len(), PROCESSES - 1);
            let begin = Instant::now();
            network.close().unwrap();
            let closed = begin.elapsed();
            wait_until_gone(&tree);
            println!("{links:?}, back-ends {mode}: closed in {closed:?}, {:?}", begin.elapsed());
        }
    }
}

#[test]
fn a_front_end_that_is_killed_while_its_tree_starts_leaves_nothing() {
    // Of 85, with the front-end.
    for count in [1, 2, 5, 10, 40, 80] {
        let mark = new_mark();
        let mut child = clean_command(trial())
            .args(["front-end", "4^3", "wait", "serve"])
            .env("SAPWOOD_NODE", sapwood())
            .env(MARK_VARIABLE, &mark)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut started = 0;
        wait_until("processes of the tree", HANG, || {
            started = marked(&mark).len();
            started >= count
        });
        child.kill().unwrap();
        child.wait().unwrap();
        let took = wait_until("nothing left", ENDING, || marked(&mark).is_empty());
        println!("killed with {started} processes: none left after {took:?}");
    }
}

#[test]
fn a_stopped_communication_process_delays_others_only_briefly() {
    let mark = new_mark();
    // It is not taken for dead, however long this lasts.
    let recovery = Recovery { silence: Duration::ZERO, ..Recovery::default() };
    let network = builder("2x2", Links::Unix)
        .recovery(recovery)
        .back_end(back_ends(&mark, &["serve"]))
        .open()
        .unwrap();
    let tree = tree_below_us(&mark);
    of_rank(&tree, 5).stop();
    let rule = WaveRule::Timeout { milliseconds: 500 };
    let mut sum = network.stream(&network.everyone()).up("sum").wave(rule).open().unwrap();
    let answer = ask_until_missing(&mut sum, &mut 0, &RankSet::range(0, 1));
    assert_eq!(answer.contributors, RankSet::range(2, 3));
    println!("{}: {}", answer.missing[0].ranks, answer.missing[0].reason);
    let begin = Instant::now();
    network.close().unwrap();
    println!("closed in {:?}", begin.elapsed());
    wait_until_gone(&tree);
}

#[test]
fn a_network_that_is_dropped_leaves_nothing() {
    let (network, mark) = network(SHAPE, Links::Unix);
    let tree = tree_below_us(&mark);
    drop(network);
    wait_until_gone(&tree);
}

#[test]
fn a_stream_may_outlive_its_network() {
    let (network, mark) = network(SHAPE, Links::Unix);
    let tree = tree_below_us(&mark);
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    network.close().unwrap();
    wait_until_gone(&tree);
    assert!(stream.broadcast(crate::support::tags::RANK, ()).is_err() || stream.recv().is_err());
}

#[test]
fn without_recovery_a_killed_communication_process_leaves_none_of_its_subtree() {
    let modes = ["serve", "sleep", "spin"];
    for (mode, binds_itself) in modes.into_iter().flat_map(|mode| [(mode, false), (mode, true)]) {
        let mark = new_mark();
        let mut program = back_ends(&mark, &[mode]);
        if binds_itself {
            program = program.binds_itself();
        }
        let network =
            builder("2^3", Links::Unix).recovery(Recovery::off()).back_end(program).open().unwrap();
        let tree = tree_below_us(&mark);
        let victim = of_rank(&tree, 9).clone();
        // Its own parent goes on to listen.
        let mut below = vec![Seen { address: None, ..victim.clone() }];
        loop {
            let is_new = |seen: &&Seen| {
                !below.iter().any(|other| other.pid == seen.pid)
                    && below.iter().any(|parent| parent.pid == seen.parent)
            };
            let Some(next) = tree.iter().find(is_new).cloned() else { break };
            below.push(next);
        }
        assert_eq!(below.len(), 7, "itself, two below it, four back-ends");
        victim.kill();
        let took = wait_until_gone(&below);
        println!("communication process killed, back-ends {mode}: subtree gone after {took:?}");
        drop(network);
        wait_until_gone(&tree);
    }
}
