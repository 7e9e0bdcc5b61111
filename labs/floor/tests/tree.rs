//! Whole trees of the floor: their sums, their failures, and that none of them leaves a process.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::surroundings::clean_command;
use rustix::process::{Pid, Signal, kill_process};
use sapwood_floor::process::Pinned;
use sapwood_floor::{Error, Floor, Load, Place, Plan, Shape, Transport};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sapwood-floor");

/// How long a test looks for something that must happen; none needs a noticeable part of it.
const PATIENCE: Duration = Duration::from_secs(20);

fn plan(fan_outs: &[usize], transport: Transport) -> Plan {
    Plan {
        shape: Shape::new(fan_outs).unwrap(),
        transport,
        cpu: None,
        program: PROGRAM.into(),
        deadline: PATIENCE,
    }
}

fn tree(fan_outs: &[usize], transport: Transport) -> Floor {
    Floor::start_plan(&plan(fan_outs, transport)).unwrap()
}

fn is_node(pid: u32) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command.windows(10).any(|word| word == b"floor-node")
}

fn send(signal: Signal, pid: u32) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

fn assert_gone(processes: &[u32]) {
    assert!(!processes.is_empty());
    for &pid in processes {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "process {pid} is still there");
    }
}

/// Every experiment compares every element of every sum, so an `Ok` says that the sums are right.
fn sums_are_right(transport: Transport) {
    for fan_out in [1, 2, 4] {
        for depth in 1..=3 {
            let fan_outs = vec![fan_out; depth];
            let mut floor = tree(&fan_outs, transport);
            let processes = floor.process_ids();
            let round_trip = floor.round_trip(64, 3, 1).unwrap();
            assert_eq!(round_trip.samples_us.len(), 3);
            floor.round_trip(300_008, 2, 0).unwrap();
            let pipelined = floor.pipelined(64, 130).unwrap();
            assert_eq!(pipelined.waves, 130);
            floor.pipelined(65_536, 5).unwrap();
            floor.round_trip(8, 1, 0).unwrap();
            let ended = floor.finish().unwrap();
            let leaves = ended.iter().filter(|node| node.place == Place::Leaf).count();
            assert_eq!(leaves, fan_out.pow(depth as u32));
            assert_eq!(ended.len(), processes.len());
            assert_gone(&processes);
        }
    }
}

#[test]
fn sums_are_right_over_unix_sockets() {
    sums_are_right(Transport::Unix);
}

#[test]
fn sums_are_right_over_tcp() {
    sums_are_right(Transport::Tcp);
}

#[test]
fn an_uneven_list_of_fan_outs_and_unbatched_leaves_sum_right() {
    let mut floor = tree(&[3, 1, 2], Transport::Unix);
    floor.pipelined_by(16, 100, 1).unwrap();
    floor.pipelined_by(16, 100, 7).unwrap();
    assert_eq!(floor.finish().unwrap().len(), 3 + 3 + 6);
}

#[test]
fn bytes_in_bulk_arrive_both_ways() {
    for fan_outs in [&[3][..], &[2, 2]] {
        let mut floor = tree(fan_outs, Transport::Unix);
        for load in [
            Load { packet_bytes: 1 << 20, packets: 1 },
            Load { packet_bytes: 200_008, packets: 7 },
            Load { packet_bytes: 8, packets: 3 },
        ] {
            floor.bulk_down(load).unwrap();
            floor.bulk_up(load).unwrap();
            floor.bulk_sum(load.packet_bytes).unwrap();
        }
        assert!(floor.bulk_down(Load { packet_bytes: 12, packets: 1 }).is_err());
        floor.round_trip(64, 1, 0).unwrap();
        floor.finish().unwrap();
    }
}

#[test]
fn a_pinned_tree_gives_its_core_back() {
    let before = fs::read_to_string("/proc/thread-self/status").unwrap();
    let cpu = Pinned::first_allowed().unwrap();
    let mut floor =
        Floor::start_plan(&Plan { cpu: Some(cpu), ..plan(&[2, 2], Transport::Unix) }).unwrap();
    let allowed = |status: &str| {
        let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list")).unwrap();
        line.split_whitespace().last().unwrap().to_string()
    };
    for pid in floor.process_ids() {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert_eq!(allowed(&status), cpu.to_string());
    }
    floor.round_trip(64, 3, 0).unwrap();
    floor.finish().unwrap();
    let after = fs::read_to_string("/proc/thread-self/status").unwrap();
    assert_eq!(allowed(&after), allowed(&before));
}

#[test]
fn a_dropped_tree_leaves_nothing() {
    let floor = tree(&[2, 2, 2], Transport::Unix);
    let processes = floor.process_ids();
    assert!(processes.iter().all(|&pid| is_node(pid)));
    drop(floor);
    assert_gone(&processes);
}

#[test]
fn a_killed_inner_process_ends_the_next_round_trip() {
    for transport in [Transport::Unix, Transport::Tcp] {
        let mut floor = tree(&[2, 2, 2], transport);
        let processes = floor.process_ids();
        // Parents come before their children: the second process is an inner node of level 2.
        send(Signal::KILL, processes[1]);
        let error = floor.round_trip(64, 1000, 0).unwrap_err();
        assert!(matches!(error, Error::Link { .. }), "{error}");
        assert!(error.to_string().contains("was killed by signal 9"), "{error}");
        assert!(matches!(floor.round_trip(64, 1, 0), Err(Error::Broken)));
        assert_gone(&processes);
    }
}

#[test]
fn a_leaf_killed_under_load_ends_the_stream() {
    let mut floor = tree(&[2, 2], Transport::Unix);
    let processes = floor.process_ids();
    let leaf = processes[processes.len() - 1];
    let killer = thread::spawn(move || send(Signal::KILL, leaf));
    let error = floor.pipelined(64, u64::MAX).unwrap_err();
    killer.join().unwrap();
    assert!(error.to_string().contains("was killed by signal 9"), "{error}");
    assert_gone(&processes);
}

#[test]
fn a_stopped_process_runs_into_the_deadline() {
    let mut floor = tree(&[2, 2], Transport::Unix);
    let processes = floor.process_ids();
    send(Signal::STOP, processes[0]);
    // Not from the start on, which may take longer where there is other work.
    floor.limit_waits(Duration::from_millis(300)).unwrap();
    let error = floor.round_trip(64, 1, 0).unwrap_err();
    assert!(matches!(error, Error::DeadlinePassed { .. }), "{error}");
    assert_gone(&processes);
}

#[test]
fn a_stream_longer_than_the_deadline_is_cut() {
    let mut floor = tree(&[2], Transport::Unix);
    floor.limit_waits(Duration::from_millis(300)).unwrap();
    let error = floor.pipelined(64, u64::MAX).unwrap_err();
    assert!(matches!(error, Error::DeadlinePassed { .. }), "{error}");
}

#[test]
fn nothing_outlives_a_killed_host() {
    let mut host = clean_command(PROGRAM)
        .args(["--topology", "2x2", "--experiment", "pipelined", "--rounds", "1000000000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let children = format!("/proc/{0}/task/{0}/children", host.id());
    let until = Instant::now() + PATIENCE;
    let nodes = loop {
        let text = fs::read_to_string(&children).unwrap();
        let nodes: Vec<u32> = text.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        if nodes.len() == 6 && nodes.iter().all(|&pid| is_node(pid)) {
            break nodes;
        }
        assert!(Instant::now() < until, "the tree never came up");
        thread::sleep(Duration::from_millis(5));
    };
    host.kill().unwrap();
    host.wait().unwrap();
    while nodes.iter().any(|&pid| is_node(pid)) {
        assert!(Instant::now() < until, "a node outlived its host");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_cannot_be_measured_is_refused_and_harms_nothing() {
    let mut floor = tree(&[2], Transport::Unix);
    for bytes in [0, 7, 12, usize::MAX - 7] {
        assert!(matches!(floor.round_trip(bytes, 1, 0), Err(Error::Argument(_))));
        assert!(matches!(floor.pipelined(bytes, 1), Err(Error::Argument(_))));
    }
    assert!(matches!(floor.round_trip(8, 0, 0), Err(Error::Argument(_))));
    assert!(matches!(floor.pipelined(8, 0), Err(Error::Argument(_))));
    floor.round_trip(8, 1, 0).unwrap();
    floor.finish().unwrap();
}

#[test]
fn a_program_that_is_no_floor_is_named() {
    let start = |program: &str| {
        let plan = Plan { program: program.into(), ..plan(&[2, 2], Transport::Unix) };
        Floor::start_plan(&plan).map(drop)
    };
    let absent = start("/nonexistent/floor").unwrap_err();
    assert!(absent.to_string().contains("/nonexistent/floor"), "{absent}");
    assert!(matches!(start("/bin/false"), Err(Error::Link { .. })));
}

#[test]
fn hidden_arguments_by_hand_are_refused() {
    let wrong: [&[&str]; 6] = [
        &["floor-node"],
        &["floor-node", "leaf", "0", "0"],
        &["floor-node", "leaf", "987", "0"],
        &["floor-node", "inner", "3", "3"],
        &["floor-node", "inner", "-1", "x"],
        &["floor-connect"],
    ];
    for arguments in wrong {
        let output = clean_command(PROGRAM).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}
