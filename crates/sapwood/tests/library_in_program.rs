//! The library leaves its program alone: no threads, no signal handlers, nothing left open.

mod support;

use std::fs;
use std::time::Duration;

use sapwood::Network;
use support::{HANG, Links, is_alone, network, tags, tree_below_us, wait_until_gone};

/// What the library must leave as it was.
#[derive(Debug, PartialEq, Eq)]
struct Household {
    threads: usize,
    descriptors: usize,
    children: usize,
    /// Signals that are blocked, ignored and handled.
    signals: Vec<String>,
}

impl Household {
    fn now() -> Self {
        // The first thread may still be blocking signals, as it does while it starts this one.
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let own = std::process::id().to_string();
        let is_child = |stat: String| {
            let after_name = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
            after_name.and_then(|rest| rest.split(' ').nth(1).map(|parent| parent == own))
        };
        let stats = fs::read_dir("/proc").unwrap().flatten();
        let stats = stats.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
        Self {
            threads: fs::read_dir("/proc/self/task").unwrap().count(),
            descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
            children: stats.filter_map(is_child).filter(|is_child| *is_child).count(),
            signals: status
                .lines()
                .filter(|line| line.starts_with("Sig"))
                .filter(|line| !line.starts_with("SigQ"))
                .map(str::to_owned)
                .collect(),
        }
    }
}

fn use_it(network: &Network) {
    let mut stream = network.stream(&network.everyone()).up("count").open().unwrap();
    stream.broadcast(tags::RANK, ()).unwrap();
    assert!(stream.recv_timeout(HANG).unwrap().is_complete());
}

#[test]
fn threads_signals_descriptors_and_children_are_as_before() {
    if !is_alone("threads_signals_descriptors_and_children_are_as_before") {
        return;
    }
    support::sapwood();
    support::trial();
    let before = Household::now();
    for links in [Links::Unix, Links::EncryptedTcp] {
        for is_closed in [true, false] {
            let (network, _) = network("2x2", links);
            use_it(&network);
            let during = Household::now();
            assert_eq!((during.threads, &during.signals), (before.threads, &before.signals));
            if is_closed {
                network.close().unwrap()
            } else {
                drop(network)
            }
            assert_eq!(Household::now(), before, "{links:?}");
        }
    }
    let failed = support::builder("2x2", Links::Unix)
        .back_end(support::back_ends(&support::new_mark(), &["fail"]))
        .open();
    assert!(failed.is_err());
    drop(failed);
    assert_eq!(Household::now(), before, "after a start that failed");
}

#[test]
fn several_networks_live_beside_each_other_in_one_process() {
    let (first, first_mark) = network("2x2", Links::Unix);
    let (second, second_mark) = network("3", Links::EncryptedTcp);
    let (third, _) = network("1x1", Links::Tcp);
    let (first_tree, second_tree) = (tree_below_us(&first_mark), tree_below_us(&second_mark));
    for network in [&first, &second, &third, &first] {
        use_it(network);
    }
    drop(second);
    wait_until_gone(&second_tree);
    use_it(&third);
    use_it(&first);
    third.close().unwrap();
    use_it(&first);
    first.close().unwrap();
    wait_until_gone(&first_tree);
}

#[test]
fn two_networks_take_turns_in_one_loop() {
    let (mut first, _) = network("2", Links::Unix);
    let (second, _) = network("2", Links::Unix);
    let mut one = first.stream(&first.everyone()).up("count").open().unwrap();
    let mut two = second.stream(&second.everyone()).up("count").open().unwrap();
    one.broadcast(tags::RANK, ()).unwrap();
    two.broadcast(tags::RANK, ()).unwrap();
    assert!(!first.turn(Duration::ZERO).unwrap());
    assert!(two.recv_timeout(HANG).unwrap().is_complete());
    assert!(one.recv_timeout(HANG).unwrap().is_complete());
    first.close().unwrap();
    second.close().unwrap();
}

#[test]
fn a_descriptor_of_the_program_wakes_the_loop() {
    let (mut network, _) = network("2", Links::Unix);
    let (reader, mut writer) = std::io::pipe().unwrap();
    network.watch(&reader).unwrap();
    assert!(!network.turn(Duration::from_millis(20)).unwrap());
    std::io::Write::write_all(&mut writer, b"x").unwrap();
    let begin = std::time::Instant::now();
    while !network.turn(Duration::from_secs(1)).unwrap() {
        assert!(begin.elapsed() < HANG);
    }
    network.unwatch(&reader).unwrap();
    assert!(!network.turn(Duration::from_millis(20)).unwrap());
    network.close().unwrap();
}
