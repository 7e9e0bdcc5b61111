//! Trees whose links are in shared memory: they are where both ends can, and a tree is the same
//! tree.

use std::fs;
use std::time::Duration;

use crate::support::{
    HANG, Links, Seen, back_ends, builder, network, new_mark, of_rank, tags, tree_below_us,
    wait_until, wait_until_gone,
};
use sapwood::{Event, Network, Recovery};

/// How the memory of a link is called in a process.
const NAME: &str = "memfd:sapwood-link";

/// How many links in shared memory a process has.
fn shared_links(process: &str) -> usize {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    maps.lines().filter(|line| line.contains(NAME)).count()
}

/// How many KB of such memory a process has touched.
fn touched_kilobytes(seen: &Seen) -> u64 {
    let maps = fs::read_to_string(format!("/proc/{}/smaps", seen.pid)).unwrap_or_default();
    let mut is_link = false;
    let mut sum = 0;
    for line in maps.lines() {
        match line.strip_prefix("Rss:") {
            Some(figure) if is_link => {
                let figure = figure.split_whitespace().next().unwrap();
                sum += figure.parse::<u64>().unwrap();
            }
            _ if line.contains('-') && line.contains(' ') && !line.contains(": ") => {
                is_link = line.contains(NAME);
            }
            _ => {}
        }
    }
    sum
}

fn sum_of_ranks(network: &Network) {
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    let count = i64::try_from(network.everyone().size()).unwrap();
    for _ in 0..20 {
        stream.broadcast(tags::RANK, ()).unwrap();
        let answer = stream.recv_timeout(HANG).unwrap();
        assert!(answer.is_complete(), "{answer:?}");
        assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(count * (count - 1) / 2));
    }
    stream.close().unwrap();
}

#[test]
fn every_link_of_a_tree_on_one_host_is_in_shared_memory() {
    for (shape, links_of_each) in [("1x1", [1, 2]), ("2x2", [1, 3]), ("1x1x1", [1, 2])] {
        let (network, mark) = network(shape, Links::Shm);
        let tree = tree_below_us(&mark);
        let back_ends = u32::try_from(network.everyone().size()).unwrap();
        for seen in &tree {
            let is_inner = seen.rank.is_some_and(|rank| rank >= back_ends);
            let found = shared_links(&seen.pid.to_string());
            assert_eq!(found, links_of_each[usize::from(is_inner)], "{shape}, {:?}", seen.rank);
        }
        sum_of_ranks(&network);
        network.close().unwrap();
        wait_until_gone(&tree);
    }
}

#[test]
fn a_tree_of_the_usual_fan_out_answers() {
    let (network, mark) = network("8x2", Links::Shm);
    let tree = tree_below_us(&mark);
    sum_of_ranks(&network);
    network.close().unwrap();
    wait_until_gone(&tree);
}

#[test]
fn an_encrypted_tree_stays_on_sockets() {
    let mark = new_mark();
    let network = builder("2x2", Links::Shm)
        .encryption(true)
        .back_end(back_ends(&mark, &["serve"]))
        .open()
        .unwrap();
    let tree = tree_below_us(&mark);
    assert!(tree.iter().all(|seen| shared_links(&seen.pid.to_string()) == 0));
    sum_of_ranks(&network);
    network.close().unwrap();
}

#[test]
fn packets_larger_than_a_ring_go_both_ways() {
    let (network, _) = network("1x2", Links::Shm);
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    for length in [1_usize, 30_000, 1 << 20] {
        let load: Vec<f64> = (0..length).map(|number| number as f64).collect();
        stream.broadcast(tags::ADD_RANK, &load[..]).unwrap();
        let answer = stream.recv_timeout(HANG).unwrap();
        let values = answer.value().unwrap();
        let sums = values.array::<f64>(0).unwrap();
        assert_eq!(sums.len(), length);
        assert!(sums.iter().zip(&load).all(|(sum, one)| *sum == 2.0 * one + 1.0));
    }
    network.close().unwrap();
}

#[test]
fn an_inner_process_that_dies_under_load_costs_no_member() {
    for shape in ["2x2x2", "1x1x1", "1x3"] {
        let mark = new_mark();
        let mut network = builder(shape, Links::Shm)
            .recovery(Recovery::default())
            .back_end(back_ends(&mark, &["serve"]))
            .open()
            .unwrap();
        let tree = tree_below_us(&mark);
        let everyone = network.everyone().ranks().clone();
        let victim = network.topology().children(network.topology().root().rank())[0];
        let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
        // More than a ring holds, and a wave under way ahead of the one that is received.
        let load = vec![1.0_f64; 50_000];
        const WAVES: usize = 40;
        let count = everyone.len() as f64;
        let expected = count + count * (count - 1.0) / 2.0;
        stream.broadcast(tags::ADD_RANK, &load[..]).unwrap();
        for wave in 0..WAVES {
            stream.broadcast(tags::ADD_RANK, &load[..]).unwrap();
            if wave == WAVES / 2 {
                of_rank(&tree, victim).kill();
            }
            let answer = stream.recv_timeout(HANG).unwrap();
            assert_eq!(answer.contributors, everyone, "{shape}: {:?}", answer.missing);
            let values = answer.value().unwrap();
            let sums = values.array::<f64>(0).unwrap();
            assert!(sums.len() == load.len() && sums.iter().all(|sum| *sum == expected));
        }
        while let Some(event) = network.next_event() {
            assert!(!matches!(event, Event::Lost { .. }), "{shape}: {event:?}");
        }
        network.close().unwrap();
        wait_until_gone(&tree);
    }
}

#[test]
fn a_quiet_tree_gives_the_pages_of_its_rings_back() {
    let (mut network, mark) = network("1x2", Links::Shm);
    let tree = tree_below_us(&mark);
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    let load = vec![1.0_f64; 200_000];
    for _ in 0..4 {
        stream.broadcast(tags::ADD_RANK, &load[..]).unwrap();
        stream.recv_timeout(HANG).unwrap();
    }
    let touched = || tree.iter().map(touched_kilobytes).max().unwrap();
    assert!(touched() > 400, "{} KB", touched());
    wait_until("pages given back", HANG, || {
        network.turn(Duration::from_millis(100)).unwrap();
        touched() < 200
    });
    sum_of_ranks(&network);
    network.close().unwrap();
}
