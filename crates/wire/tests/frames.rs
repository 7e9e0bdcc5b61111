//! What may be on a link: a frame has one spelling, and nothing is written that is not read.

use sapwood_packet::{DIRECTIVES_MAX, Header, Order, Packet, PacketRef, RankSet, Slab, Values};
use sapwood_wire::limits::{
    AFFECTED_MAX, ANCESTORS_MAX, ATTACH_POINTS_MAX, FILE_NAME_BYTES_MAX, FILE_PART_BYTES_MAX,
    FILES_MAX, FILTERS_MAX, ORPHANS_MAX, QUESTION_BYTES_MAX, RANGES_MAX, REPLY_BYTES_MAX,
    RUN_WAVES_MAX, STATE_BYTES_MAX, TEXT_BYTES_MAX,
};
use sapwood_wire::{
    Cause, Claim, Control, FilterRequest, Frame, Policy, Ranges, RecoveryTerms, StreamRequest,
    WIRE_VERSION, WaitRule, WireError, decode, encode_control, encode_packet,
};

fn written(packet: &Packet) -> Result<Slab, WireError> {
    let mut out = Slab::default();
    encode_packet(&mut out, &packet.as_ref()).map(|_| out)
}

#[test]
fn a_control_message_has_neither_flags_nor_count() {
    let mut out = Slab::default();
    encode_control(&mut out, &Control::Shutdown).expect("a short message");
    for (at, error) in
        [(5, WireError::Kind { kind: 1 }), (6, WireError::Parts), (7, WireError::Parts)]
    {
        let mut forged = out.clone();
        forged.as_mut_bytes()[at] = 1;
        assert_eq!(decode(forged.as_bytes()), Err(error), "byte {at}");
    }
}

#[test]
fn nothing_hides_behind_the_last_directive() {
    let mut out = written(&Packet::new(1, 100, 5_i32)).expect("a short packet");
    assert!(matches!(decode(out.as_bytes()), Ok(Frame::Packet(_))));
    out.as_mut_bytes()[47] = 1;
    assert_eq!(decode(out.as_bytes()), Err(WireError::Format));
}

#[test]
fn a_packet_of_too_many_values_is_not_written() {
    let values = |count: usize| (0..count).fold(Values::new(), |values, _| values.scalar(1_u8));
    assert!(written(&Packet::new(1, 100, values(DIRECTIVES_MAX))).is_ok());
    for count in [DIRECTIVES_MAX + 1, 256, 257] {
        let error = written(&Packet::new(1, 100, values(count))).expect_err("too many");
        assert_eq!(error, WireError::Format, "{count} values");
    }
}

#[test]
fn a_void_packet_with_values_is_neither_written_nor_read() {
    let mut packet = Packet::new(1, 100, 5_i32);
    packet.header.void = true;
    assert_eq!(written(&packet).err(), Some(WireError::Parts));
    packet.header.void = false;
    let mut out = written(&packet).expect("a short packet");
    out.as_mut_bytes()[5] = 16;
    assert_eq!(decode(out.as_bytes()), Err(WireError::Parts));
}

#[test]
fn no_wave_is_behind_all_others_and_the_last_packet_is_of_no_wave() {
    let mut packet = Packet::new(1, 100, ());
    packet.header.wave = u64::MAX;
    assert_eq!(written(&packet).err(), Some(WireError::Parts));
    packet.header = Header { order: Order::Last, void: true, wave: 3, ..packet.header };
    assert_eq!(written(&packet).err(), Some(WireError::Parts));
    packet.header.wave = 0;
    assert!(written(&packet).is_ok());
    packet.header.void = false;
    assert_eq!(written(&packet).err(), Some(WireError::Parts));
}

#[test]
fn a_run_ends_before_the_waves_do() {
    let bodies = [0_u64; RUN_WAVES_MAX as usize];
    let values = Values::new().scalar(0_u64);
    for (wave, is_good) in [(u64::MAX - 3, true), (u64::MAX - 2, false), (u64::MAX - 1, false)] {
        let header = Header { wave, ends_wave: true, ..Header::default() };
        let run = PacketRef {
            header,
            format: values.as_ref().format(),
            more_waves: 2,
            body: bytemuck::cast_slice(&bodies[..3]),
            ..PacketRef::default()
        };
        let mut out = Slab::default();
        encode_packet(&mut out, &run).expect("a short run");
        assert_eq!(decode(out.as_bytes()).is_ok(), is_good, "from wave {wave}");
    }
}

/// What a peer gets of a message.
fn received(control: &Control) -> Result<Control, WireError> {
    let mut out = Slab::default();
    encode_control(&mut out, control)?;
    match decode(out.as_bytes())? {
        Frame::Control(control) => Ok(control),
        Frame::Packet(_) => panic!("a message is no packet"),
    }
}

#[test]
fn long_texts_are_cut_between_characters() {
    let text = |length: usize| "\u{e9}".repeat(length / 2);
    let back_ends = Ranges::default();
    let messages: [fn(String, Ranges) -> Control; 6] = [
        |reason, _| Control::Refused { reason },
        |text, _| Control::Failed { rank: 3, text },
        |text, _| Control::Notice { rank: 3, text },
        |reason, back_ends| Control::Lost { rank: 3, back_ends, reason, cause: Cause::Died },
        |reason, back_ends| Control::Fault {
            stream: 1,
            wave: Some(2),
            rank: 3,
            back_ends,
            reason,
            cause: Cause::Died,
        },
        |reason, back_ends| Control::Broken { rank: 3, back_ends, reason, cause: Cause::Died },
    ];
    for message in messages {
        let long = message(format!("x{}", text(10_000)), back_ends.clone());
        let cut = message(format!("x{}", text(TEXT_BYTES_MAX - 2)), back_ends.clone());
        assert_eq!(received(&long), Ok(cut));
        let fitting = message(text(TEXT_BYTES_MAX), back_ends.clone());
        assert_eq!(received(&fitting), Ok(fitting));
    }
}

fn open_with(up: usize, down: usize) -> Control {
    let filter = FilterRequest { name: String::new(), format: Vec::new(), parameters: Vec::new() };
    Control::Open(StreamRequest {
        stream: 1,
        members: Ranges::default(),
        up: vec![filter.clone(); up],
        down: vec![filter; down],
        wait: WaitRule::All,
        policy: Policy::Block,
        window_bytes: 1,
        height: 1,
        first_wave: 0,
        rule: None,
        at_back_ends: false,
    })
}

fn reached(points: usize, ranges: usize) -> Control {
    let point = (7, String::new(), Ranges::default());
    Control::Reached { back_ends: ranges_apart(ranges), attach_points: vec![point; points] }
}

fn ranges_apart(count: usize) -> Ranges {
    let count = u32::try_from(count).expect("fits in 32 bits");
    Ranges::from(&(0..count).map(|rank| rank * 2).collect::<RankSet>())
}

fn welcome(ancestors: usize) -> Control {
    Control::Welcome {
        parent: 1,
        rank: 2,
        back_ends: 3,
        plan: Vec::new(),
        ancestors: vec![(4, String::from("unix:@x")); ancestors],
        terms: RecoveryTerms::default(),
        is_responsive: false,
    }
}

fn ancestry(ancestors: usize) -> Control {
    Control::Ancestry { ancestors: vec![(4, String::new()); ancestors], repairs: true }
}

fn orphaned_below(between: usize) -> Control {
    let claim = Claim::Orphan { rank: 2, between: vec![7; between] };
    Control::Hello { version: WIRE_VERSION, claim, pid: 1, address: None }
}

fn file(name: usize, bytes: usize) -> Control {
    Control::File {
        name: "n".repeat(name),
        digest: [7; 32],
        total: u32::MAX,
        offset: 0,
        bytes: vec![1; bytes],
    }
}

fn rejoining(back_ends: usize, covers: usize, former: usize) -> Control {
    Control::Rejoin {
        back_ends: ranges_apart(back_ends),
        covers: ranges_apart(covers),
        former: ranges_apart(former),
        files: vec![[3; 32]; former.min(FILES_MAX)],
    }
}

fn repaired(orphans: usize, back_ends: usize, streams: usize) -> Control {
    Control::Repaired {
        rank: 1,
        adopter: 2,
        orphans: vec![3; orphans],
        back_ends: ranges_apart(back_ends),
        waves: vec![(4, 5, 6); streams],
    }
}

fn state(directives: usize, bytes: usize, absorbed: usize) -> Control {
    Control::State {
        stream: 1,
        filter: 2,
        wave: 3,
        format: vec![4; directives],
        values: vec![5; bytes],
        absorbed: ranges_apart(absorbed),
    }
}

#[test]
fn repairs_and_visits_larger_than_any_network_needs_are_refused() {
    for (message, is_good) in [
        (welcome(ANCESTORS_MAX), true),
        (welcome(ANCESTORS_MAX + 1), false),
        (ancestry(ANCESTORS_MAX), true),
        (ancestry(ANCESTORS_MAX + 1), false),
        (orphaned_below(ANCESTORS_MAX), true),
        (orphaned_below(ANCESTORS_MAX + 1), false),
        (rejoining(RANGES_MAX, RANGES_MAX, 0), true),
        (rejoining(0, RANGES_MAX, RANGES_MAX), true),
        (rejoining(RANGES_MAX + 1, 0, 0), false),
        (rejoining(0, RANGES_MAX + 1, 0), false),
        (rejoining(0, 0, RANGES_MAX + 1), false),
        (Control::Superseded { ranks: ranges_apart(RANGES_MAX) }, true),
        (Control::Superseded { ranks: ranges_apart(RANGES_MAX + 1) }, false),
        (repaired(ORPHANS_MAX, RANGES_MAX, AFFECTED_MAX), true),
        (repaired(ORPHANS_MAX + 1, 0, 0), false),
        (repaired(0, RANGES_MAX + 1, 0), false),
        (repaired(0, 0, AFFECTED_MAX + 1), false),
        (Control::Question { bytes: vec![1; QUESTION_BYTES_MAX] }, true),
        (Control::Question { bytes: vec![1; QUESTION_BYTES_MAX + 1] }, false),
        (Control::Reply { is_last: true, bytes: vec![1; REPLY_BYTES_MAX] }, true),
        (Control::Reply { is_last: true, bytes: vec![1; REPLY_BYTES_MAX + 1] }, false),
        (state(DIRECTIVES_MAX, STATE_BYTES_MAX, RANGES_MAX), true),
        (state(DIRECTIVES_MAX + 1, 0, 0), false),
        (state(0, STATE_BYTES_MAX + 1, 0), false),
        (state(0, 0, RANGES_MAX + 1), false),
        (file(FILE_NAME_BYTES_MAX, FILE_PART_BYTES_MAX), true),
        (file(FILE_NAME_BYTES_MAX + 1, 1), false),
        (file(1, FILE_PART_BYTES_MAX + 1), false),
        (file(1, 0), false),
    ] {
        match received(&message) {
            Ok(received) => assert!(is_good && received == message),
            Err(error) => assert!(!is_good && error == WireError::Control),
        }
    }
}

#[test]
fn lists_that_are_longer_than_any_network_needs_are_refused() {
    for (message, is_good) in [
        (open_with(FILTERS_MAX, FILTERS_MAX), true),
        (open_with(FILTERS_MAX + 1, 0), false),
        (open_with(0, FILTERS_MAX + 1), false),
        (reached(ATTACH_POINTS_MAX, 0), true),
        (reached(ATTACH_POINTS_MAX + 1, 0), false),
        (reached(0, RANGES_MAX), true),
        (reached(0, RANGES_MAX + 1), false),
    ] {
        match received(&message) {
            Ok(received) => assert!(is_good && received == message),
            Err(error) => assert!(!is_good && error == WireError::Control),
        }
    }
}
