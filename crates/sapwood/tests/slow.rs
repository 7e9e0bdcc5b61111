//! Processes that are slow or stopped for longer than any time limit: they come back without loss.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::{
    HANG, Links, MARK_VARIABLE, back_ends, builder, marked, new_mark, of_rank, tags, tree_below_us,
    trial, wait_until, wait_until_gone,
};
use rustix::process::Signal;
use sapwood::{Event, Network, Program, RankSet, Recovery};

/// After this long a process that has not joined is late. On a machine with other work, too, one
/// has joined by then.
const START: Duration = Duration::from_secs(8);

/// A pipe with a name, which goes with the test.
struct Door(PathBuf);

impl Door {
    fn new(mark: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sapwood-door-{mark}"));
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        Self(path)
    }

    /// The tests' back-ends, of which that of one rank does not begin before the door is opened.
    fn back_ends(&self, mark: &str, rank: u32) -> Program {
        let (door, trial) = (self.0.display(), trial().display());
        let script = format!(
            "[ \"$SAPWOOD_RANK\" != {rank} ] || read -r word < '{door}'; exec '{trial}' back-end serve"
        );
        Program::new("/bin/sh").variable(MARK_VARIABLE, mark).argument("-c").argument(script)
    }

    /// Lets the waiting threads go on.
    fn open(&self) {
        let mut door = fs::OpenOptions::new().write(true).open(&self.0).unwrap();
        door.write_all(b"go on\n").unwrap();
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Waits for an event of this kind.
fn await_event(network: &mut Network, what: &str, mut is_it: impl FnMut(&Event) -> bool) {
    let until = Instant::now() + HANG;
    let mut seen = Vec::new();
    loop {
        while let Some(event) = network.next_event() {
            if is_it(&event) {
                return;
            }
            seen.push(event);
        }
        let left = until.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "{what}: not within {HANG:?}; there were {seen:?}");
        network.turn(left).unwrap();
    }
}

/// One request to all, and its answer: all are in it.
fn assert_whole(network: &Network) {
    let everyone = network.everyone();
    let mut stream = network.stream(&everyone).up("count").open().unwrap();
    stream.broadcast(tags::RANK, ()).unwrap();
    let answer = stream.recv_timeout(HANG).unwrap();
    assert_eq!(&answer.contributors, everyone.ranks(), "{:?}", answer.missing);
}

#[test]
fn a_back_end_that_starts_too_slowly_joins_when_it_is_ready() {
    for (shape, recovery) in [("4", Recovery::default()), ("2x2", Recovery::off())] {
        let mark = new_mark();
        let door = Door::new(&mark);
        let mut network = builder(shape, Links::Unix)
            .recovery(recovery)
            .back_end(door.back_ends(&mark, 3))
            .startup_timeout(START)
            .allow_missing()
            .open()
            .unwrap();
        network.wait_for_back_ends(3, HANG).unwrap();
        assert_eq!(network.everyone().ranks(), &RankSet::range(0, 2), "{shape}");
        await_event(
            &mut network,
            "failure",
            |event| matches!(event, Event::StartFailed { rank: 3, text } if text.contains("has not joined")),
        );
        door.open();
        let last = RankSet::range(3, 3);
        await_event(
            &mut network,
            "news",
            |event| matches!(event, Event::Joined { back_ends } if *back_ends == last),
        );
        assert_eq!(network.everyone().size(), 4);
        assert_whole(&network);
        let tree = tree_below_us(&mark);
        network.close().unwrap();
        wait_until_gone(&tree);
    }
}

#[test]
fn a_back_end_that_never_gets_ready_ends_with_the_network() {
    let mark = new_mark();
    let door = Door::new(&mark);
    let mut network = builder("2x2", Links::Unix)
        .back_end(door.back_ends(&mark, 3))
        .startup_timeout(START)
        .allow_missing()
        .open()
        .unwrap();
    network.wait_for_back_ends(3, HANG).unwrap();
    assert_eq!(network.everyone().size(), 3);
    let tree = tree_below_us(&mark);
    network.close().unwrap();
    wait_until_gone(&tree);
    wait_until("nothing left", HANG, || marked(&mark).is_empty());
}

/// Everything is over in ten seconds, and a process that is only slow is not taken for dead.
fn short() -> Recovery {
    let seconds = Duration::from_secs;
    Recovery {
        silence: seconds(2),
        orphan_limit: seconds(2),
        grace: seconds(5),
        ..Recovery::default()
    }
}

#[test]
fn a_back_end_that_was_stopped_beyond_all_limits_with_its_parent_comes_back_without_loss() {
    let mark = new_mark();
    let network =
        builder("2x2", Links::Unix).recovery(short()).back_end(back_ends(&mark, &["serve"])).open();
    let mut network = network.unwrap();
    let tree = tree_below_us(&mark);
    let everyone = network.everyone();
    let mut stream = network.stream(&everyone).up("count").open().unwrap();
    stream.broadcast(tags::RANK, ()).unwrap();
    assert!(stream.recv_timeout(HANG).unwrap().is_complete());
    // A parent that ended would have the kernel resume it.
    let (stopped, parent) = (of_rank(&tree, 0), of_rank(&tree, 5));
    for process in [stopped, parent] {
        process.stop();
    }
    let first = RankSet::range(0, 0);
    let is_lost =
        |event: &Event| matches!(event, Event::Lost { back_ends, .. } if *back_ends == first);
    await_event(&mut network, "loss", is_lost);
    stream.broadcast(tags::RANK, ()).unwrap();
    assert_eq!(stream.recv_timeout(HANG).unwrap().contributors, RankSet::range(1, 3));
    stopped.signal(Signal::CONT);
    parent.signal(Signal::CONT);
    let is_back =
        |event: &Event| matches!(event, Event::Joined { back_ends } if *back_ends == first);
    await_event(&mut network, "return", is_back);
    assert_whole(&network);
    // What it was asked meanwhile has come to it: its late part is there.
    let late = stream.recv_timeout(HANG).unwrap();
    assert!(late.is_late && late.contributors == first, "{late:?}");
    drop(stream);
    network.close().unwrap();
    wait_until_gone(&tree);
}
