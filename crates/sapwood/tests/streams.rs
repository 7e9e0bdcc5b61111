//! Streams over real trees: every filter, wave rule and direction, over every kind of link.

use std::time::{Duration, Instant};

use crate::support::{
    HANG, Links, ask_until_missing, late_part, network, of_rank, tags, tree_below_us,
};
use rustix::process::Signal;
use sapwood::{
    Answer, EquivalenceClasses, Error, FIRST_TAG, Network, Policy, RankSet, Recipients, Statistics,
    Stream, Values, WaveRule,
};

const SHAPES: [&str; 6] = ["1", "4", "2x4", "2^3", "1x1x1x1", "1x3"];

fn answer_of(stream: &mut Stream) -> Answer {
    stream.recv_timeout(HANG).unwrap()
}

/// Opens a stream with one filter, asks once, and gives the answer, which must be complete.
fn ask(network: &Network, filter: &str, tag: i32, values: Values) -> Answer {
    let mut stream = network.stream(&network.everyone()).up(filter).open().unwrap();
    stream.broadcast(tag, values).unwrap();
    let answer = answer_of(&mut stream);
    assert!(answer.is_complete(), "{filter}: {answer:?}");
    assert_eq!(&answer.contributors, network.everyone().ranks());
    stream.close().unwrap();
    answer
}

fn all_filters(network: &Network) {
    let count = i64::try_from(network.everyone().size()).unwrap();
    let number = |filter: &str| {
        ask(network, filter, tags::RANK, Values::new()).value().unwrap().scalar::<i64>(0).unwrap()
    };
    assert_eq!(number("sum"), count * (count - 1) / 2);
    assert_eq!((number("min"), number("max")), (0, count - 1));
    let average = ask(network, "average", tags::RANK, Values::new());
    assert_eq!(average.value().unwrap().scalar::<f64>(0), Ok((count - 1) as f64 / 2.0));
    let counted = ask(network, "count", tags::RANK, Values::new());
    assert_eq!(counted.value().unwrap().scalar::<u64>(0), Ok(count as u64));
    let texts = ask(network, "concatenate", tags::TEXT, Values::new());
    let texts: Vec<String> = texts
        .value()
        .unwrap()
        .strings(0)
        .unwrap()
        .map(|text| String::from_utf8(text.to_vec()).unwrap())
        .collect();
    assert_eq!(texts, (0..count).map(|rank| format!("rank {rank}")).collect::<Vec<_>>());
    same_and_different(network, count);
    let answer = ask(network, "statistics", tags::RANK, Values::new());
    let statistics = Statistics::read(answer.value().unwrap()).unwrap();
    let moments = statistics.elements()[0];
    let mean = (count - 1) as f64 / 2.0;
    let squares: f64 = (0..count).map(|rank| (rank as f64 - mean).powi(2)).sum();
    assert_eq!(moments.count, count as u64);
    assert!((moments.mean - mean).abs() < 1e-12, "{moments:?}");
    let deviation = (squares / count as f64).sqrt();
    assert!((moments.standard_deviation() - deviation).abs() < 1e-12, "{moments:?}");
}

fn same_and_different(network: &Network, count: i64) {
    let same = ask(network, "equivalence", tags::ECHO, Values::new().scalar(42_i32));
    let classes = EquivalenceClasses::read(same.value().unwrap()).unwrap();
    assert_eq!(classes.classes().len(), 1);
    assert_eq!(&classes.classes()[0].ranks, network.everyone().ranks());
    let different = ask(network, "equivalence", tags::RANK, Values::new());
    let classes = EquivalenceClasses::read(different.value().unwrap()).unwrap();
    assert_eq!(classes.classes().len(), count as usize);
}

fn every_shape_over(links: Links) {
    for shape in SHAPES {
        let (network, _) = network(shape, links);
        all_filters(&network);
        network.close().unwrap();
    }
}

#[test]
fn every_filter_answers_over_unix_sockets() {
    every_shape_over(Links::Unix);
}

#[test]
fn every_filter_answers_over_shared_memory() {
    every_shape_over(Links::Shm);
}

#[test]
fn every_filter_answers_over_tcp() {
    every_shape_over(Links::Tcp);
}

#[test]
fn every_filter_answers_over_encrypted_tcp() {
    every_shape_over(Links::EncryptedTcp);
}

#[test]
fn every_type_of_number_is_summed_as_scalar_and_as_array() {
    let (network, _) = network("2x4", Links::Unix);
    macro_rules! check {
        ($($code:literal $type:ty),*) => {$(
            for (filter, expected) in [("sum", 36 as $type), ("min", 1 as $type), ("max", 8 as $type)] {
                let answer = ask(&network, filter, tags::TYPED, Values::new().scalar::<u32>($code));
                let values = answer.value().unwrap();
                assert_eq!(values.scalar::<$type>(0), Ok(expected), "{filter} of {}", values.format());
                assert_eq!(values.array::<$type>(1), Ok(&[expected; 3][..]), "{filter}");
            }
            let answer = ask(&network, "average", tags::TYPED, Values::new().scalar::<u32>($code));
            assert_eq!(answer.value().unwrap().scalar::<f64>(0), Ok(4.5));
        )*};
    }
    check!(0 i8, 1 u8, 2 i16, 3 u16, 4 i32, 5 u32, 6 i64, 7 u64, 8 f32, 9 f64);
    network.close().unwrap();
}

#[test]
fn a_hundred_streams_are_asked_together_and_answer_in_any_order() {
    let (network, _) = network("2x4", Links::Unix);
    let filters = ["sum", "min", "max", "count"];
    let mut streams: Vec<Stream> = (0..100)
        .map(|index| {
            network.stream(&network.everyone()).up(filters[index % filters.len()]).open().unwrap()
        })
        .collect();
    for round in 0..3 {
        for (index, stream) in streams.iter_mut().enumerate() {
            stream.broadcast(tags::ECHO, index as u64 + round).unwrap();
        }
        for (index, stream) in streams.iter_mut().enumerate().rev() {
            let answer = answer_of(stream);
            let sent = index as u64 + round;
            let expected = [8 * sent, sent, sent, 8][index % filters.len()];
            assert_eq!(answer.value().unwrap().scalar::<u64>(0), Ok(expected), "stream {index}");
            assert_eq!(answer.wave, round);
        }
    }
    network.close().unwrap();
}

#[test]
fn a_communicator_of_some_back_ends_is_answered_by_just_these() {
    let (network, _) = network("2x4", Links::Unix);
    for ranks in [vec![0, 2, 4, 6], vec![3], vec![4, 5, 6, 7], vec![3, 4], vec![7, 0]] {
        let some = network.communicator(ranks.iter().copied());
        assert_eq!(some.size(), ranks.len() as u64);
        let mut stream = network.stream(&some).up("sum").open().unwrap();
        for _ in 0..3 {
            stream.broadcast(tags::RANK, ()).unwrap();
            let answer = answer_of(&mut stream);
            assert!(answer.is_complete());
            assert_eq!(&answer.contributors, some.ranks());
            let sum: u32 = ranks.iter().sum();
            assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(i64::from(sum)));
        }
    }
    let strangers = network.communicator([0, 8]);
    let error = network.stream(&strangers).open().err().unwrap();
    let text = "rank 8 is not a connected back-end; take them from Network::everyone()";
    assert_eq!(error.to_string(), text);
    let empty = network.communicator([]);
    assert!(network.stream(&empty).open().is_err());
    network.close().unwrap();
}

#[test]
fn a_packet_to_one_rank_is_answered_by_that_rank() {
    let (network, _) = network("2x4", Links::Unix);
    let everyone = network.everyone();
    let mut stream = network.stream(&everyone).wave(WaveRule::Immediate).open().unwrap();
    for rank in (0..8).rev() {
        stream.send_to(rank, tags::TEXT, ()).unwrap();
        let answer = answer_of(&mut stream);
        assert_eq!(answer.contributors, RankSet::range(rank, rank));
        assert_eq!(answer.value().unwrap().string(0), Ok(format!("rank {rank}").as_str()));
        assert_eq!(answer.packet.unwrap().header.origin, rank);
    }
    let some: RankSet = [1, 6].into_iter().collect();
    stream.send_to_ranks(&some, tags::RANK, ()).unwrap();
    let mut came = RankSet::new();
    for _ in 0..2 {
        came.union_with(answer_of(&mut stream).contributors.as_ref());
    }
    assert_eq!(came, some);
    let error = stream.send_to(8, tags::RANK, ()).unwrap_err();
    assert_eq!(error.to_string(), "rank 8 is no member of this stream");
    // The answer to the packet after them is the next one, so nothing arrived.
    stream.send_to_ranks(RankSet::new(), tags::TEXT, ()).unwrap();
    stream.try_send_to_ranks(RankSet::new(), tags::TEXT, ()).unwrap();
    stream.send_to_ranks(Recipients::All, tags::RANK, ()).unwrap();
    let mut came = RankSet::new();
    for _ in 0..8 {
        let answer = answer_of(&mut stream);
        answer.value().unwrap().scalar::<i64>(0).unwrap();
        came.union_with(answer.contributors.as_ref());
    }
    assert_eq!(came, RankSet::range(0, 7));
    network.close().unwrap();
}

#[test]
fn the_networks_own_tags_are_refused() {
    let (network, _) = network("2", Links::Unix);
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    for tag in [FIRST_TAG - 1, 1, 0, -1, i32::MIN] {
        for error in [
            stream.broadcast(tag, 1_i64).unwrap_err(),
            stream.try_broadcast(tag, 1_i64).unwrap_err(),
            stream.send_to(0, tag, 1_i64).unwrap_err(),
            stream.send_to_ranks(RankSet::range(0, 1), tag, 1_i64).unwrap_err(),
            stream.try_send_to_ranks(RankSet::range(0, 1), tag, 1_i64).unwrap_err(),
        ] {
            let expected =
                format!("tag {tag} is the network's own; an application's begin at {FIRST_TAG}");
            assert!(matches!(error, Error::Misuse(_)) && error.to_string() == expected, "{error}");
        }
    }
    stream.broadcast(tags::ECHO, 4_i64).unwrap();
    assert_eq!(answer_of(&mut stream).value().unwrap().scalar::<i64>(0), Ok(8));
    network.close().unwrap();
}

#[test]
fn both_directions_are_busy_at_once_and_nothing_is_lost() {
    let (network, _) = network("2x2", Links::Unix);
    let everyone = network.everyone();
    let mut up = network.stream(&everyone).up("count").open().unwrap();
    let mut echo = network.stream(&everyone).up("sum").open().unwrap();
    up.broadcast(tags::FLOOD, (2000_u32, 100_u32)).unwrap();
    for number in 0..500_i64 {
        echo.broadcast(tags::ECHO, number).unwrap();
    }
    for number in 0..500_i64 {
        let answer = answer_of(&mut echo);
        assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(4 * number));
    }
    for wave in 0..2000 {
        let answer = answer_of(&mut up);
        assert_eq!((answer.wave, answer.is_complete()), (wave, true));
    }
    network.close().unwrap();
}

#[test]
fn a_closed_stream_is_closed_at_both_ends_and_harms_no_other() {
    let (network, _) = network("2x2", Links::Unix);
    let everyone = network.everyone();
    let mut closed = network.stream(&everyone).up("sum").open().unwrap();
    closed.broadcast(tags::FLOOD, (1000_u32, 1000_u32)).unwrap();
    let number = closed.id();
    closed.close().unwrap();
    let mut open = network.stream(&everyone).up("equivalence").open().unwrap();
    assert_ne!(open.id(), number);
    open.broadcast(tags::SEND_ON, number).unwrap();
    let answer = answer_of(&mut open);
    assert!(answer.is_complete());
    let classes = EquivalenceClasses::read(answer.value().unwrap()).unwrap();
    assert_eq!(classes.classes().len(), 1);
    let said = classes.classes()[0].values.as_ref().string(0).unwrap().to_owned();
    assert_eq!(said, format!("stream {number} is not open; open it first"));
    network.close().unwrap();
}

#[test]
fn a_wave_with_a_time_limit_goes_without_the_late_and_names_them() {
    let (network, mark) = network("2x2", Links::Unix);
    let tree = tree_below_us(&mark);
    let rule = WaveRule::Timeout { milliseconds: 500 };
    let mut stream = network.stream(&network.everyone()).up("sum").wave(rule).open().unwrap();
    let (mut next, none) = (0, RankSet::new());
    assert!(ask_until_missing(&mut stream, &mut next, &none).is_complete());
    let stopped = of_rank(&tree, 3);
    stopped.stop();
    let answer = ask_until_missing(&mut stream, &mut next, &RankSet::range(3, 3));
    assert_eq!(answer.contributors, RankSet::range(0, 2));
    assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(3));
    assert_eq!(answer.missing.len(), 1);
    assert_eq!(answer.missing[0].ranks, RankSet::range(3, 3));
    assert!(!answer.missing[0].reason.is_empty());
    println!("missing: {}: {}", answer.missing[0].ranks, answer.missing[0].reason);
    stopped.signal(Signal::CONT);
    let late = late_part(&mut stream, answer.wave, 3);
    assert_eq!(late.value().unwrap().scalar::<i64>(0), Ok(3));
    let answer = ask_until_missing(&mut stream, &mut next, &none);
    assert!(answer.is_complete(), "{answer:?}");
    network.close().unwrap();
}

#[test]
fn a_stream_without_synchronisation_brings_every_packet_by_itself() {
    let (network, _) = network("2x4", Links::Unix);
    let everyone = network.everyone();
    let mut stream = network.stream(&everyone).wave(WaveRule::Immediate).open().unwrap();
    stream.broadcast(tags::SPIN, [5_u32]).unwrap();
    let mut came = RankSet::new();
    for _ in 0..7 {
        let answer = answer_of(&mut stream);
        assert_eq!((answer.contributors.len(), answer.missing.len()), (1, 0));
        came.union_with(answer.contributors.as_ref());
    }
    assert_eq!(came, "0-4,6-7".parse().unwrap());
    assert!(matches!(
        stream.recv_timeout(Duration::from_millis(50)),
        Err(Error::Timeout { what: "answer", .. })
    ));
    network.close().unwrap();
}

#[test]
fn an_unknown_filter_and_mixed_values_are_answered_with_the_reason() {
    let (network, _) = network("2x2", Links::Unix);
    let everyone = network.everyone();
    let error = network.stream(&everyone).up("summ").open().err().unwrap();
    assert!(error.to_string().starts_with("filter 'summ' is not known; use one of: "), "{error}");
    let mut stream = network.stream(&everyone).up("sum").open().unwrap();
    stream.broadcast(tags::MIX, [2_u32]).unwrap();
    let answer = answer_of(&mut stream);
    println!("{}", answer.value().map_or_else(|error| error.to_string(), |_| "a value".into()));
    assert!(!answer.is_complete());
    let named = answer.missing.iter().fold(RankSet::new(), |mut all, missing| {
        all.union_with(missing.ranks.as_ref());
        all
    });
    assert!(named.contains(2), "{answer:?}");
    assert!(answer.missing.iter().any(|missing| missing.reason.contains("sum")), "{answer:?}");
    stream.broadcast(tags::RANK, ()).unwrap();
    let answer = answer_of(&mut stream);
    assert!(answer.is_complete(), "the stream goes on: {answer:?}");
    network.close().unwrap();
}

#[test]
fn a_stream_may_drop_the_oldest_instead_of_waiting() {
    let (network, _) = network("2x2", Links::Unix);
    let everyone = network.everyone();
    let mut stream = network
        .stream(&everyone)
        .wave(WaveRule::Immediate)
        .policy(Policy::DropOldest)
        .window_bytes(4096)
        .open()
        .unwrap();
    let mut other = network.stream(&everyone).up("count").open().unwrap();
    stream.broadcast(tags::FLOOD, (5000_u32, 256_u32)).unwrap();
    other.broadcast(tags::RANK, ()).unwrap();
    assert!(answer_of(&mut other).is_complete());
    // What a back-end sends stays in order: nothing of its flood comes behind a reply to a later
    // request. Such a reply may be dropped like any other packet.
    let (mut came, mut ended, begin) = (0, RankSet::new(), Instant::now());
    while &ended != everyone.ranks() {
        assert!(begin.elapsed() < HANG, "only {ended} have ended");
        stream.broadcast(tags::RANK, ()).unwrap();
        while let Ok(answer) = stream.recv_timeout(Duration::from_millis(50)) {
            match answer.value().unwrap().scalar::<i64>(0) {
                Ok(_) => ended.union_with(answer.contributors.as_ref()),
                Err(_) => came += 1,
            }
        }
    }
    println!("{came} of 20000 packets came, the others were dropped on their way");
    assert!(came > 0 && came < 20_000);
    network.close().unwrap();
}

#[test]
fn tags_and_values_of_any_kind_come_back_as_they_were_sent() {
    let (network, _) = network("2x2", Links::EncryptedTcp);
    let everyone = network.everyone();
    let mut stream = network.stream(&everyone).up("equivalence").open().unwrap();
    let values = Values::new()
        .scalar(-7_i8)
        .scalar(u64::MAX)
        .array(&[1.5_f64, -0.0, f64::INFINITY])
        .large_array::<i16>(&[])
        .string("")
        .string([0_u8, 255, 10])
        .strings(&["a", "", "ccc"]);
    stream.broadcast(FIRST_TAG, values.clone()).unwrap();
    let answer = answer_of(&mut stream);
    let classes = EquivalenceClasses::read(answer.value().unwrap()).unwrap();
    assert_eq!(classes.classes().len(), 1);
    assert_eq!(classes.classes()[0].values.as_ref(), values.as_ref());
    network.close().unwrap();
}
