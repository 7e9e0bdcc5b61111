//! Calls that send end though back-ends are gone that had not read yet.

use std::time::{Duration, Instant};

use crate::support::{
    HANG, Links, Seen, back_ends, builder, new_mark, of_rank, tags, tree_below_us,
};
use rustix::process::{Pid, Signal, kill_process};
use sapwood::{Error, Event, Network, Recovery, Stream, WaveRule};

/// More than a process keeps of a stream.
const LOAD_BYTES: usize = 1_100_000;

/// How a back-end goes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    Killed,
    Leaves,
}

fn signal(process: &Seen, signal: Signal) {
    kill_process(Pid::from_raw(process.pid.cast_signed()).unwrap(), signal).unwrap();
}

/// A network whose calls end with an error when they hang.
fn network_that_tells(shape: &str, links: Links, recovery: Recovery) -> (Network, Vec<Seen>) {
    let mark = new_mark();
    let network = builder(shape, links).recovery(recovery).back_end(back_ends(&mark, &["serve"]));
    let begin = Instant::now();
    let network = network.interrupt(move || begin.elapsed() > HANG).open().unwrap();
    (network, tree_below_us(&mark))
}

/// Rank 0 goes, and has not read what was sent last, unlike those that do not share its parent;
/// the front-end does nothing meanwhile.
fn lose_first(network: &mut Network, stream: &mut Stream, tree: &[Seen], manner: Manner) {
    let first = of_rank(tree, 0);
    signal(first, Signal::STOP);
    if manner == Manner::Leaves {
        let mut word = network.stream(&network.communicator([0])).open().unwrap();
        word.broadcast(tags::LEAVE, vec![0_u32]).unwrap();
        network.flush().unwrap();
    }
    stream.broadcast(tags::LENGTH, vec![7_u8; LOAD_BYTES]).unwrap();
    network.flush().unwrap();
    for rank in apart_from_first(network) {
        assert_eq!(stream.recv_timeout(HANG).unwrap().contributors.len(), 1);
        let mut pause = network.stream(&network.communicator([rank])).open().unwrap();
        // What it has read is told with the second of these answers at the latest.
        for _ in 0..2 {
            pause.broadcast(tags::SLEEP, (vec![rank], 100_u32)).unwrap();
            pause.recv_timeout(HANG).unwrap();
        }
    }
    // A process that is stopped is killed at once, and leaves when it goes on.
    signal(first, if manner == Manner::Killed { Signal::KILL } else { Signal::CONT });
    crate::support::wait_until("rank 0 gone", HANG, || !first.is_alive());
}

/// The back-ends that do not wait for rank 0: no process is above both but the front-end.
fn apart_from_first(network: &Network) -> Vec<u32> {
    let topology = network.topology();
    let front_end = topology.root().rank();
    let below: Vec<u32> = match topology.parent(0).map(|parent| parent.rank()) {
        Some(parent) if parent != front_end => topology.children(parent).to_vec(),
        _ => vec![0],
    };
    topology.back_ends().filter(|rank| !below.contains(rank)).collect()
}

/// Waits until the front-end says that rank 0 is lost.
fn hear_of_the_loss(network: &mut Network) {
    let begin = Instant::now();
    loop {
        while let Some(event) = network.next_event() {
            if matches!(&event, Event::Lost { back_ends, .. } if back_ends.contains(0)) {
                return;
            }
        }
        assert!(begin.elapsed() < HANG, "rank 0 is not told of as lost");
        network.turn(Duration::from_millis(100)).unwrap();
    }
}

fn a_broadcast_goes_on(shape: &str, links: Links, recovery: Recovery, manner: Manner) {
    println!("{shape} over {links:?}, rank 0 {manner:?}, recovery on: {}", recovery.is_on);
    let (mut network, tree) = network_that_tells(shape, links, recovery);
    let mut stream = network.stream(&network.everyone());
    stream = stream.wave(WaveRule::Immediate);
    let mut stream = stream.open().unwrap();
    lose_first(&mut network, &mut stream, &tree, manner);
    let waiting = stream.members().size() - 1 - apart_from_first(&network).len() as u64;
    for _ in 0..waiting {
        assert!(!stream.recv_timeout(HANG).unwrap().contributors.contains(0));
    }
    for _ in 0..4 {
        stream.broadcast(tags::LENGTH, vec![7_u8; LOAD_BYTES]).unwrap();
        for _ in 1..stream.members().size() {
            let answer = stream.recv_timeout(HANG).unwrap();
            assert!(!answer.contributors.contains(0), "{answer:?}");
        }
    }
    hear_of_the_loss(&mut network);
    stream.broadcast(tags::LENGTH, vec![7_u8; LOAD_BYTES]).unwrap();
    network.close().unwrap();
}

#[test]
fn a_broadcast_goes_on_when_a_back_end_has_gone_that_had_not_read() {
    for links in [Links::Unix, Links::Tcp, Links::Shm] {
        for shape in ["2", "2x2", "3"] {
            for manner in [Manner::Killed, Manner::Leaves] {
                a_broadcast_goes_on(shape, links, Recovery::default(), manner);
            }
        }
    }
    a_broadcast_goes_on("2", Links::Unix, Recovery::off(), Manner::Killed);
}

#[test]
fn a_send_to_a_stream_without_members_says_so() {
    for (shape, links) in [("1", Links::Unix), ("1", Links::Tcp), ("1x1", Links::Unix)] {
        for manner in [Manner::Killed, Manner::Leaves] {
            println!("{shape} over {links:?}, rank 0 {manner:?}");
            let (mut network, tree) = network_that_tells(shape, links, Recovery::default());
            let stream = network.stream(&network.everyone()).wave(WaveRule::Immediate);
            let mut stream = stream.open().unwrap();
            lose_first(&mut network, &mut stream, &tree, manner);
            let sent = (0..8).map(|_| stream.broadcast(tags::LENGTH, vec![7_u8; LOAD_BYTES]));
            let ended = sent.filter_map(Result::err).next();
            if let Some(error) = ended {
                assert!(matches!(error, Error::NoMemberLeft { .. }), "{error}");
            }
            assert!(matches!(stream.recv(), Err(Error::NoMemberLeft { .. })));
            for sent in [
                stream.broadcast(tags::RANK, ()),
                stream.try_broadcast(tags::RANK, ()),
                stream.send_to(0, tags::RANK, ()),
            ] {
                assert!(matches!(sent, Err(Error::NoMemberLeft { .. })), "{sent:?}");
            }
            network.close().unwrap();
        }
    }
}
