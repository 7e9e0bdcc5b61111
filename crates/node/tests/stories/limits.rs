//! What is too much is refused where it is asked for, with a reason, and holds no process up.
use crate::harness::*;
use sapwood_filter::{Emitter, Filter, FilterError, FilterSpec, Registry, WaveRef, WaveRule};
use sapwood_node::{Input, Instant, LinkId, Node, NodeError, Output, Role, Settings};
use sapwood_packet::{DIRECTIVES_MAX, Header, Packet, PacketRef, Slab, Values};
use sapwood_wire::limits::{FILTERS_MAX, TEXT_BYTES_MAX};
use sapwood_wire::{Control, encode_control, encode_packet};

fn many(count: usize) -> Values {
    (0..count).fold(Values::new(), |values, _| values.scalar(1_u8))
}

#[test]
fn a_packet_of_too_many_values_is_refused_where_it_is_sent() {
    let mut tree = Tree::of("2^2", 1);
    let everyone = tree.everyone();
    let stream = tree.stream(&everyone, "sum", WaveRule::All);
    tree.oracle.forget(stream);
    for count in [DIRECTIVES_MAX + 1, 256, 1000] {
        let sent = tree.send_values(0, stream, many(count), None);
        assert_eq!(sent, Err(NodeError::TooManyValues { count }));
        let all = sapwood_packet::Recipients::All;
        let sent =
            tree.front_end().application().broadcast(Instant(0), stream, TAG, many(count), &all);
        assert_eq!(sent, Err(NodeError::TooManyValues { count }));
    }
    // Nothing has happened: all are in the first wave.
    for rank in everyone.iter() {
        tree.send_values(rank, stream, many(DIRECTIVES_MAX), None).expect("the most there may be");
    }
    let answer = tree.one_answer();
    assert!(answer.is_complete() && answer.wave == 0, "{answer:?}");
}

#[test]
fn a_stream_that_asks_for_too_much_is_refused_where_it_is_opened() {
    let mut tree = Tree::of("2", 1);
    let everyone = tree.everyone();
    let filters = vec!["pass"; FILTERS_MAX + 1];
    let mut wanted = spec(&everyone, &filters, WaveRule::All);
    let error = tree.front_end().application().open_stream(wanted.clone());
    assert_eq!(error, Err(NodeError::RequestTooLong));
    wanted.down = std::mem::take(&mut wanted.up);
    assert_eq!(
        tree.front_end().application().open_stream(wanted.clone()),
        Err(NodeError::RequestTooLong)
    );
    let long = FilterSpec { name: "x".repeat(9 << 20), ..FilterSpec::from("sum") };
    wanted.down = vec![long];
    assert_eq!(
        tree.front_end().application().open_stream(wanted.clone()),
        Err(NodeError::RequestTooLong)
    );
    wanted.down = vec![FilterSpec::from("pass"); FILTERS_MAX];
    assert!(tree.front_end().application().open_stream(wanted).is_ok());
}

#[test]
fn a_front_end_opens_no_stream_whose_number_is_of_the_next_one() {
    let mut tree = Tree::of("2", 1);
    let everyone = tree.everyone();
    let wanted = spec(&everyone, &[], WaveRule::All);
    let opened = |tree: &mut Tree| tree.front_end().application().open_stream(wanted.clone());
    let first = opened(&mut tree).expect("the first");
    tree.front_end().application().limit_streams(first, 3);
    assert_eq!(opened(&mut tree), Ok(first + 1));
    assert_eq!(opened(&mut tree), Ok(first + 2));
    let error = opened(&mut tree).expect_err("the fourth");
    assert_eq!(error, NodeError::NoStreamLeft { count: 3 });
    assert!(error.to_string().contains("has opened 3 streams"), "{error}");
}

/// Fails in every wave, at length.
struct Talkative;

impl Filter for Talkative {
    fn transform(&mut self, _: &WaveRef<'_>, _: &mut Emitter) -> Result<(), FilterError> {
        Err(FilterError::Failed("\u{e9} ".repeat(100_000)))
    }
}

#[test]
fn a_long_reason_is_cut_on_its_way() {
    let registry = Registry::built_in().with("talkative", |_| Ok(Box::new(Talkative)));
    let mut tree = Tree::with_filters("2^2", 3, registry);
    tree.schedule.widen();
    let everyone = tree.everyone();
    let stream = tree.stream(&everyone, "talkative", WaveRule::All);
    tree.all_send(&everyone, stream);
    let answer = tree.one_answer();
    assert!(answer.packet.is_none() && missing_ranks(&answer) == everyone);
    for missing in &answer.missing {
        let length = missing.reason.len();
        assert!((TEXT_BYTES_MAX - 2..=TEXT_BYTES_MAX).contains(&length), "{length}");
    }
}

/// Makes a packet that no frame can carry.
struct Lavish;

impl Filter for Lavish {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let count = if wave.wave == 1 { DIRECTIVES_MAX + 1 } else { 2 };
        out.emit(TAG, many(count));
        Ok(())
    }
}

#[test]
fn a_filter_that_makes_too_many_values_fails_its_wave_and_no_other() {
    each_seed("a_filter_that_makes_too_many", 4, |seed| {
        for shape in ["1", "2^2", "8"] {
            let registry = Registry::built_in().with("lavish", |_| Ok(Box::new(Lavish)));
            let mut tree = Tree::with_filters(shape, seed, registry);
            let everyone = tree.everyone();
            let stream = tree.stream(&everyone, "lavish", WaveRule::All);
            for _ in 0..3 {
                tree.all_send(&everyone, stream);
            }
            let answers = tree.answers();
            let whole: Vec<bool> = answers.iter().map(|answer| answer.is_complete()).collect();
            assert_eq!(whole, [true, false, true], "{shape}");
            let reason = &answers[1].missing[0].reason;
            assert!(reason.contains("more than 64 values"), "{reason}");
        }
    });
}

/// A back-end whose parent has welcomed it and opened a stream, and what it has hung up.
fn told_by_parent(packet: &PacketRef<'_>) -> (Node, bool) {
    let mut node = Node::new(Settings {
        role: Role::BackEnd,
        rank: Some(0),
        is_started: true,
        pid: 1,
        address: None,
        registry: Registry::built_in(),
        recovery: sapwood_node::Recovery::off(),
    });
    let (now, link) = (Instant(1), LinkId(0));
    node.handle_input(now, Input::ParentUp { link });
    let mut bytes = Slab::default();
    let welcome = Control::Welcome {
        parent: 1,
        rank: 0,
        back_ends: 1,
        plan: Vec::new(),
        ancestors: Vec::new(),
        terms: Default::default(),
        is_responsive: false,
    };
    encode_control(&mut bytes, &welcome).expect("short");
    encode_packet(&mut bytes, packet).expect("short");
    node.handle_input(now, Input::Bytes { link, bytes: bytes.as_bytes() });
    let mut hangs_up = false;
    while let Some(output) = node.poll_output() {
        hangs_up |= matches!(output, Output::Hangup(_));
    }
    (node, hangs_up)
}

#[test]
fn a_parent_that_sends_a_run_is_no_parent() {
    let packet = Packet::new(1, TAG, 5_u64);
    let (node, hangs_up) = told_by_parent(&packet.as_ref());
    assert!(!hangs_up && node.rank() == Some(0), "a packet of an unknown stream is let pass");
    let header = Header { ends_wave: true, ..packet.header };
    let bodies = [packet.body().as_bytes(); 3].concat();
    let bodies = Slab::copy_of(&bodies);
    let run = PacketRef { header, more_waves: 2, body: bodies.as_bytes(), ..packet.as_ref() };
    let (_, hangs_up) = told_by_parent(&run);
    assert!(hangs_up, "runs go up only");
}
