//! Bounded memory and fairness: slow streams, floods, large packets, very many streams.

mod support;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use sapwood::{Error, Stream, Values, WaveRule};
use support::{HANG, Links, Seen, is_alone, kilobytes, network, of_rank, tags, tree_below_us};

/// The largest resident memory of a process so far, for every process of a tree and this one, in
/// KB.
fn peaks(tree: &[Seen]) -> Vec<(String, u64)> {
    let mut peaks = vec![("front-end".to_owned(), kilobytes("self", "VmHWM"))];
    for seen in tree.iter().filter(|seen| seen.is_alive()) {
        let rank = seen.rank.map_or_else(|| "?".into(), |rank| rank.to_string());
        peaks.push((format!("rank {rank}"), seen.kilobytes("VmHWM")));
    }
    peaks
}

fn peak_of(tree: &[Seen]) -> u64 {
    peaks(tree).iter().map(|(_, peak)| *peak).max().unwrap()
}

#[test]
fn an_unread_stream_stalls_neither_its_neighbours_nor_memory() {
    if !is_alone("an_unread_stream_stalls_neither_its_neighbours_nor_memory") {
        return;
    }
    let (network, mark) = network("2x2", Links::Unix);
    let tree = tree_below_us(&mark);
    let everyone = network.everyone();
    let mut slow = network.stream(&everyone).wave(WaveRule::Immediate).open().unwrap();
    let mut fast = network.stream(&network.communicator([0, 2])).up("sum").open().unwrap();
    // 1 and 3 each send 200 MB that the front-end does not receive, and so wait for credit; 0 and 2
    // stay free.
    let flooders = [1, 3].into_iter().collect();
    slow.send_to_ranks(&flooders, tags::FLOOD, (2000_u32, 100_000_u32)).unwrap();
    let before = peaks(&tree);
    let begin = Instant::now();
    let mut waves = 0;
    while begin.elapsed() < Duration::from_secs(3) {
        fast.broadcast(tags::RANK, ()).unwrap();
        let answer = fast.recv_timeout(HANG).unwrap();
        assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(2));
        waves += 1;
    }
    println!("{waves} waves in 3 s beside a stream that is not read");
    for ((who, before), (_, after)) in before.iter().zip(peaks(&tree)) {
        println!("{who}: {before} KB before, at most {after} KB during");
        assert!(after < before + (16 << 10), "{who} holds too much");
    }
    // A late reader gets all of it, in order.
    let mut bytes = 0;
    for _ in 0..4000 {
        let answer = slow.recv_timeout(HANG).unwrap();
        bytes += answer.value().unwrap().array::<u8>(0).unwrap().len();
    }
    assert_eq!(bytes, 400_000_000);
    println!("400 MB received late; peak {} KB", peak_of(&tree));
    assert!(peak_of(&tree) < before.iter().map(|(_, peak)| *peak).max().unwrap() + (32 << 10));
    network.close().unwrap();
}

#[test]
fn a_front_end_that_sends_faster_than_back_ends_read_waits_and_holds_little() {
    if !is_alone("a_front_end_that_sends_faster_than_back_ends_read_waits_and_holds_little") {
        return;
    }
    let (network, mark) = network("2x2", Links::Unix);
    let tree = tree_below_us(&mark);
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    stream.broadcast(tags::SLEEP, ([3_u32], 1000_u32)).unwrap();
    let load = vec![7_u8; 1 << 20];
    for _ in 0..100 {
        stream.broadcast(tags::LENGTH, &load[..]).unwrap();
    }
    assert!(stream.recv_timeout(HANG).unwrap().is_complete());
    for _ in 0..100 {
        let answer = stream.recv_timeout(HANG).unwrap();
        assert_eq!(answer.value().unwrap().scalar::<u64>(0), Ok(4 * ((1 << 20) + 8)));
    }
    println!("100 MB down past a sleeping back-end: {:?}", peaks(&tree));
    assert!(peak_of(&tree) < 48 << 10);
    network.close().unwrap();
}

/// Sends an array down and sums what every back-end makes of it.
fn sum_large(stream: &mut Stream, elements: usize) {
    // Values whose sums depend on the order of addition: only one order gives the right bits.
    let load: Vec<f64> = (0..elements).map(|index| 0.1 * index as f64 + 1e-9).collect();
    stream.broadcast(tags::ADD_RANK, Values::new().array(&load)).unwrap();
    let answer = stream.recv_timeout(HANG).unwrap();
    assert!(answer.is_complete(), "{:?}", answer.missing);
    let sums = answer.value().unwrap().array::<f64>(0).unwrap();
    assert_eq!(sums.len(), elements);
    for (index, (sum, sent)) in sums.iter().zip(&load).enumerate() {
        let expected = (sent + (sent + 1.0)) + ((sent + 2.0) + (sent + 3.0));
        assert_eq!(sum.to_bits(), expected.to_bits(), "element {index}: {sum} is not {expected}");
    }
}

fn large_packets_over(links: Links) {
    let (network, mark) = network("2x2", links);
    let tree = tree_below_us(&mark);
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    for elements in [1, 16_384, 16_415, 16_416, 100_001] {
        sum_large(&mut stream, elements);
    }
    println!("{links:?}, before large packets: {:?}", peaks(&tree));
    let begin = Instant::now();
    for _ in 0..2 {
        sum_large(&mut stream, 4 << 20);
    }
    println!("{links:?}: twice 32 MB down and up in {:?}", begin.elapsed());
    println!("{links:?}, peaks: {:?}", peaks(&tree));
    for seen in tree.iter().filter(|seen| seen.rank.is_some_and(|rank| rank > 4)) {
        assert!(seen.kilobytes("VmHWM") < 32 << 10, "large packets flow through in chunks");
    }
    network.close().unwrap();
}

#[test]
fn large_packets_are_summed_bit_by_bit_over_unix_sockets() {
    if is_alone("large_packets_are_summed_bit_by_bit_over_unix_sockets") {
        large_packets_over(Links::Unix);
    }
}

#[test]
fn large_packets_are_summed_bit_by_bit_over_encrypted_tcp() {
    if is_alone("large_packets_are_summed_bit_by_bit_over_encrypted_tcp") {
        large_packets_over(Links::EncryptedTcp);
    }
}

#[test]
fn a_large_packet_passes_filters_that_need_it_whole() {
    let (network, _) = network("2x2", Links::Unix);
    let load: Vec<i64> = (0..1 << 18).collect();
    for filter in ["equivalence", "concatenate", "count", "statistics"] {
        let mut stream = network.stream(&network.everyone()).up(filter).open().unwrap();
        stream.broadcast(tags::ECHO, Values::new().array(&load)).unwrap();
        let answer = stream.recv_timeout(HANG).unwrap();
        assert!(answer.is_complete(), "{filter}: {:?}", answer.missing);
    }
    let mut each = network.stream(&network.everyone()).wave(WaveRule::Immediate).open().unwrap();
    each.broadcast(tags::ECHO, Values::new().array(&load)).unwrap();
    for _ in 0..4 {
        let answer = each.recv_timeout(HANG).unwrap();
        assert_eq!(answer.value().unwrap().array::<i64>(0).unwrap(), load);
    }
    network.close().unwrap();
}

#[test]
fn a_thousand_streams_have_one_wave_each() {
    if !is_alone("a_thousand_streams_have_one_wave_each") {
        return;
    }
    let (network, mark) = network("2x2", Links::Unix);
    let tree = tree_below_us(&mark);
    let before = peaks(&tree);
    let everyone = network.everyone();
    let mut streams: Vec<Stream> =
        (0..1000).map(|_| network.stream(&everyone).up("sum").open().unwrap()).collect();
    for (index, stream) in streams.iter_mut().enumerate() {
        stream.broadcast(tags::ECHO, index as i64).unwrap();
    }
    for (index, stream) in streams.iter_mut().enumerate() {
        let answer = stream.recv_timeout(HANG).unwrap();
        assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(4 * index as i64));
    }
    for ((who, before), (_, after)) in before.iter().zip(peaks(&tree)) {
        println!("{who}: {before} KB before, {after} KB with a thousand streams");
    }
    drop(streams);
    let mut last = network.stream(&everyone).up("sum").open().unwrap();
    last.broadcast(tags::RANK, ()).unwrap();
    assert!(last.recv_timeout(HANG).unwrap().is_complete());
    network.close().unwrap();
}

#[test]
fn a_stopped_back_end_blocks_only_sends_that_wait() {
    let (network, mark) = network("2x2", Links::Unix);
    let tree = tree_below_us(&mark);
    let everyone = network.everyone();
    let stream = network.stream(&everyone).wave(WaveRule::Immediate).window_bytes(1024);
    let mut stream = stream.open().unwrap();
    let stopped = of_rank(&tree, 3);
    stopped.stop();
    // More than the windows of two levels hold.
    let (mut questions, mut answers) = (0, 0);
    loop {
        match stream.try_broadcast(tags::RANK, ()) {
            Ok(()) => questions += 1,
            // The others have answered all, and so nothing makes room any more.
            Err(_) if answers == 3 * questions => break,
            // They may only be slow.
            Err(_) => {
                let answer = stream.recv_timeout(HANG).unwrap();
                assert!(!answer.contributors.contains(3), "{}", answer.contributors);
                answers += 1;
            }
        }
        assert!(questions < 1000, "{questions} questions go to one that reads none");
    }
    let full = stream.try_broadcast(tags::RANK, ());
    assert!(matches!(full, Err(Error::WouldWait { stream: id }) if id == stream.id()));
    assert!(!stream.has_room().unwrap());
    // There is room on the way to the others, and it comes back as they read.
    let others = [0, 1].into_iter().collect();
    for _ in 0..50 {
        stream.try_send_to_ranks(&others, tags::RANK, ()).unwrap();
        for _ in 0..2 {
            let answer = stream.recv_timeout(HANG).unwrap();
            assert!(answer.contributors.iter().all(|rank| rank < 2), "{}", answer.contributors);
        }
    }
    stopped.signal(Signal::CONT);
    let until = Instant::now() + HANG;
    while let Err(error) = stream.try_broadcast(tags::RANK, ()) {
        assert!(matches!(error, Error::WouldWait { .. }) && Instant::now() < until, "{error}");
        stream.recv_timeout(Duration::from_millis(10)).ok();
    }
    network.close().unwrap();
}
