//! Any packet and any message survives a link; any harm done to a frame is refused or harmless.

use proptest::collection::vec;
use proptest::prelude::*;
use sapwood_packet::{Chunk, Header, Order, PacketRef, RankSet, Slab, Values, ValuesRef};
use sapwood_wire::limits::{CONTROL_BYTES_MAX, FRAME_BYTES_MAX, RUN_BYTES_MAX, RUN_WAVES_MAX};
use sapwood_wire::{
    Frame, PREFIX_BYTES, decode, destinations_of, encode_control, encode_head, encode_packet,
    extend_run, frame_length, may_run, run_key, run_waves_max,
};

mod random;

use random::{any_body, any_control, any_header_of_values, any_ranks, any_run, any_values};

/// What a test sends, owned.
#[derive(Clone, Debug)]
struct Sent {
    header: Header,
    contributors: RankSet,
    destinations: RankSet,
    values: Values,
}

impl Sent {
    fn packet(&self) -> PacketRef<'_> {
        PacketRef {
            header: self.header,
            format: self.values.as_ref().format(),
            contributors: self.contributors.as_ref(),
            destinations: self.destinations.as_ref(),
            chunk: None,
            more_waves: 0,
            body: self.values.as_ref().body(),
        }
    }
}

fn any_sent() -> impl Strategy<Value = Sent> {
    (any_header_of_values(), any_ranks(), any_ranks(), any_values()).prop_map(
        |(header, contributors, destinations, values)| Sent {
            header,
            contributors,
            destinations,
            values,
        },
    )
}

fn framed(packet: &PacketRef<'_>) -> Slab {
    let mut out = Slab::default();
    let length = encode_packet(&mut out, packet).expect("a short packet");
    assert_eq!(length, out.len());
    out
}

/// Harm done to a frame on its way.
#[derive(Clone, Debug)]
enum Harm {
    Flip(usize, u8),
    Number(usize, u64),
    Cut(usize),
    Extend(Vec<u8>),
    Insert(usize, u8),
    /// The prefix is made to say the frame's length again.
    Fit,
}

fn any_harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        4 => (any::<usize>(), 0_u8..8).prop_map(|(at, bit)| Harm::Flip(at, bit)),
        2 => (any::<usize>(), prop_oneof![0_u64..80, any::<u64>()])
            .prop_map(|(at, number)| Harm::Number(at, number)),
        1 => any::<usize>().prop_map(Harm::Cut),
        1 => vec(any::<u8>(), 1..24).prop_map(Harm::Extend),
        1 => (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Harm::Insert(at, byte)),
        4 => Just(Harm::Fit),
    ]
}

fn harm(frame: &mut Vec<u8>, harm: &Harm) {
    let count = frame.len();
    match harm {
        Harm::Flip(at, bit) if count > 0 => frame[at % count] ^= 1 << bit,
        Harm::Number(at, number) if count >= 8 => {
            let at = at % (count / 8) * 8;
            frame[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        Harm::Cut(at) => frame.truncate(at % (count + 1)),
        Harm::Extend(bytes) => frame.extend(bytes),
        Harm::Insert(at, byte) => {
            let at = at % (count + 1) / 8 * 8;
            frame.splice(at..at, [*byte; 8]);
        }
        Harm::Fit if count >= 8 => {
            frame.resize(count.next_multiple_of(8), 0);
            let length = u32::try_from(frame.len()).expect("a short frame");
            frame[..4].copy_from_slice(&length.to_le_bytes());
        }
        _ => {}
    }
}

/// Bytes from outside are refused, or are exactly what their contents are written as.
fn refused_or_exact(bytes: &[u8]) -> Result<(), TestCaseError> {
    let bytes = Slab::copy_of(bytes);
    match decode(bytes.as_bytes()) {
        Ok(Frame::Packet(packet)) => {
            let again = framed(&packet);
            prop_assert_eq!(again.as_bytes(), bytes.as_bytes());
        }
        Ok(Frame::Control(message)) => {
            // A number in a message may be spelled too long, so only its meaning is kept.
            let mut again = Slab::default();
            encode_control(&mut again, &message).expect("it came in a frame");
            prop_assert!(again.len() <= bytes.len());
            prop_assert_eq!(decode(again.as_bytes()), Ok(Frame::Control(message)));
        }
        Err(error) => prop_assert!(!error.to_string().is_empty()),
    }
    Ok(())
}

/// Several waves in a row whose values are alike, as one back-end sends them.
#[derive(Clone, Debug)]
struct SentRun {
    header: Header,
    contributors: RankSet,
    destinations: RankSet,
    waves: Vec<Values>,
}

impl SentRun {
    fn wave(&self, index: usize) -> PacketRef<'_> {
        let header = Header { wave: self.header.wave + index as u64, ..self.header };
        PacketRef {
            header,
            format: self.waves[index].as_ref().format(),
            contributors: self.contributors.as_ref(),
            destinations: self.destinations.as_ref(),
            body: self.waves[index].as_ref().body(),
            ..PacketRef::default()
        }
    }

    /// The values of all waves, one behind another.
    fn bodies(&self) -> Slab {
        let mut bodies = Slab::default();
        self.waves.iter().for_each(|wave| bodies.extend(wave.as_ref().body()));
        bodies
    }

    fn whole<'a>(&'a self, bodies: &'a Slab) -> PacketRef<'a> {
        let more_waves = u32::try_from(self.waves.len() - 1).expect("a run is short");
        PacketRef { more_waves, body: bodies.as_bytes(), ..self.wave(0) }
    }
}

fn any_sent_run() -> impl Strategy<Value = SentRun> {
    (any_header_of_values(), any_ranks(), any_ranks(), any_run()).prop_map(
        |(header, contributors, destinations, waves)| {
            let wave = header.wave.min(u64::MAX - waves.len() as u64);
            let order = match header.order {
                Order::Single(_) => header.order,
                _ => Order::Wave,
            };
            let header = Header { wave, order, ends_wave: true, late: false, ..header };
            SentRun { header, contributors, destinations, waves }
        },
    )
}

proptest! {
    #[test]
    fn a_run_grows_wave_by_wave_into_the_frame_of_the_whole(
        run in any_sent_run(),
        before in any_sent(),
    ) {
        let mut link = framed(&before.packet());
        let start = link.len();
        encode_packet(&mut link, &run.wave(0)).expect("a short packet");
        for index in 1..run.waves.len() {
            // As often as it is looked at, it is one whole frame.
            prop_assert!(decode(Slab::copy_of(&link.as_bytes()[start..]).as_bytes()).is_ok());
            let length = link.len();
            let body = run.waves[index].as_ref().body();
            let grown = extend_run(&mut link, start, index as u32, body);
            prop_assert_eq!(link.len(), length + grown);
        }
        let bodies = run.bodies();
        let whole = framed(&run.whole(&bodies));
        prop_assert_eq!(&link.as_bytes()[start..], whole.as_bytes());
        let before = framed(&before.packet());
        prop_assert_eq!(&link.as_bytes()[..start], before.as_bytes());
        prop_assert_eq!(frame_length(whole.as_bytes()), Ok(Some(whole.len())));
    }

    #[test]
    fn a_run_arrives_as_the_waves_that_were_sent(
        run in any_sent_run(),
        cut in any::<prop::sample::Index>(),
    ) {
        let bodies = run.bodies();
        let frame = framed(&run.whole(&bodies));
        let Ok(Frame::Packet(packet)) = decode(frame.as_bytes()) else {
            return Err(TestCaseError::fail("a run is a packet"));
        };
        prop_assert_eq!(packet, run.whole(&bodies));
        for index in 0..run.waves.len() {
            prop_assert_eq!(packet.part_of_run(index as u32, 1), run.wave(index));
        }
        // Cut anywhere, both parts are frames again.
        let waves = run.waves.len() as u32;
        let first = 1 + cut.index(run.waves.len() - 1) as u32;
        for part in [packet.part_of_run(0, first), packet.part_of_run(first, waves - first)] {
            let frame = framed(&part);
            prop_assert_eq!(decode(frame.as_bytes()), Ok(Frame::Packet(part)));
        }
    }

    #[test]
    fn waves_form_a_run_when_they_are_numbers_of_one_length(values in any_values(), run in any_run()) {
        let format = values.as_ref().format();
        let mut directives = format.directives();
        let is_number = directives.next().is_some_and(|first| first.element.is_numeric());
        prop_assert_eq!(may_run(format), is_number && format.len() == 1);
        let (format, body) = (run[0].as_ref().format(), run[0].as_ref().body());
        prop_assert!(may_run(format));
        let most = run_waves_max(body.len());
        prop_assert!(most == 0 || most.is_power_of_two() && (2..=RUN_WAVES_MAX).contains(&most));
        prop_assert!(most as usize * body.len() <= RUN_BYTES_MAX);
        for wave in &run {
            prop_assert_eq!(run_key(format, wave.as_ref().body()), run_key(format, body));
        }
    }

    #[test]
    fn a_harmed_run_is_refused_or_another_packet(
        run in any_sent_run(),
        harms in vec(any_harm(), 1..4),
    ) {
        let bodies = run.bodies();
        let mut frame = framed(&run.whole(&bodies)).as_bytes().to_vec();
        harms.iter().for_each(|each| harm(&mut frame, each));
        refused_or_exact(&frame)?;
    }

    #[test]
    fn a_packet_arrives_as_it_was_sent(sent in any_sent()) {
        let frame = framed(&sent.packet());
        prop_assert_eq!(frame_length(frame.as_bytes()), Ok(Some(frame.len())));
        match decode(frame.as_bytes()) {
            Ok(Frame::Packet(packet)) => {
                prop_assert_eq!(packet, sent.packet());
                prop_assert!((packet.body.as_ptr() as usize).is_multiple_of(8), "read in place");
                let owned = packet.to_packet();
                prop_assert_eq!(owned.as_ref(), sent.packet());
            }
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn the_destinations_of_a_frame_are_known_without_its_values(
        run in any_sent_run(),
        sent in any_sent(),
        bytes in vec(any::<u8>(), 0..80),
    ) {
        let bodies = run.bodies();
        let chunk = Some(Chunk { offset: 0, total: 8 });
        let packets =
            [sent.packet(), run.whole(&bodies), PacketRef { chunk, body: &[0; 8], ..sent.packet() }];
        for packet in packets {
            let mut head = Slab::default();
            encode_head(&mut head, &packet).expect("a short packet");
            prop_assert_eq!(destinations_of(head.as_bytes()), packet.destinations);
            let frame = framed(&packet);
            prop_assert_eq!(destinations_of(frame.as_bytes()), packet.destinations);
        }
        // Whatever bytes these are, they are looked at without harm.
        let found = destinations_of(Slab::copy_of(&bytes).as_bytes()).ranges().len();
        prop_assert!(found <= bytes.len() / 8);
    }

    #[test]
    fn a_packet_arrives_in_any_chunks(
        sent in any_sent(),
        body in any_body(),
        cuts in vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let whole = sent.values.array(&body).string("end");
        let (format, body) = (whole.as_ref().format(), whole.as_ref().body());
        let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(body.len() / 8) * 8).collect();
        places.extend([0, body.len()]);
        places.sort_unstable();
        places.dedup();
        let mut arrived = Slab::of_length(body.len());
        for place in places.windows(2) {
            let chunk = Chunk { offset: place[0] as u64, total: body.len() as u64 };
            let header = sent.header;
            let (contributors, destinations) = (sent.contributors.as_ref(), sent.destinations.as_ref());
            let part = PacketRef {
                header, format, contributors, destinations, chunk: Some(chunk), more_waves: 0,
                body: &body[place[0]..place[1]],
            };
            let frame = framed(&part);
            prop_assert_eq!(decode(frame.as_bytes()), Ok(Frame::Packet(part)));
            arrived.as_mut_bytes()[place[0]..place[1]].copy_from_slice(part.body);
        }
        prop_assert_eq!(ValuesRef::parse(format, arrived.as_bytes()), Ok(whole.as_ref()));
    }

    #[test]
    fn a_control_message_arrives_as_it_was_sent(message in any_control()) {
        let mut frame = Slab::default();
        let length = encode_control(&mut frame, &message).expect("a short message");
        prop_assert_eq!(frame_length(frame.as_bytes()), Ok(Some(length)));
        prop_assert_eq!(decode(frame.as_bytes()), Ok(Frame::Control(message)));
    }

    #[test]
    fn frames_behind_one_another_are_told_apart(
        sent in any_sent(),
        message in any_control(),
    ) {
        let mut link = framed(&sent.packet());
        let first = link.len();
        encode_control(&mut link, &message).expect("a short message");
        let end = encode_packet(&mut link, &sent.packet()).map(|length| link.len() - length);
        let end = end.expect("a short packet");
        let bytes = link.as_bytes();
        prop_assert_eq!(frame_length(bytes), Ok(Some(first)));
        prop_assert_eq!(frame_length(&bytes[first..]), Ok(Some(end - first)));
        prop_assert_eq!(decode(&bytes[first..end]), Ok(Frame::Control(message)));
        prop_assert_eq!(decode(&bytes[end..]), Ok(Frame::Packet(sent.packet())));
    }

    #[test]
    fn a_harmed_packet_is_refused_or_another_packet(
        sent in any_sent(),
        harms in vec(any_harm(), 1..4),
    ) {
        let mut frame = framed(&sent.packet()).as_bytes().to_vec();
        harms.iter().for_each(|each| harm(&mut frame, each));
        refused_or_exact(&frame)?;
    }

    #[test]
    fn a_harmed_message_is_refused_or_another_message(
        message in any_control(),
        harms in vec(any_harm(), 1..4),
    ) {
        let mut frame = Slab::default();
        encode_control(&mut frame, &message).expect("a short message");
        let mut frame = frame.as_bytes().to_vec();
        harms.iter().for_each(|each| harm(&mut frame, each));
        refused_or_exact(&frame)?;
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_exact(
        mut bytes in vec(prop_oneof![3 => Just(0_u8), 2 => 0_u8..40, 1 => any::<u8>()], 0..200),
        kind in 1_u8..3,
        fits in any::<bool>(),
    ) {
        if fits && bytes.len() > 4 {
            bytes[4] = kind;
            harm(&mut bytes, &Harm::Fit);
        }
        refused_or_exact(&bytes)?;
    }

    #[test]
    fn a_length_is_known_from_the_prefix_alone(
        length in prop_oneof![any::<u32>(), (0_u32..3_000_000).prop_map(|words| words * 8)],
        kind in prop_oneof![4 => 1_u8..3, 1 => any::<u8>()],
        rest in vec(any::<u8>(), 0..20),
    ) {
        let bytes: Vec<u8> = length.to_le_bytes().into_iter().chain([kind]).chain(rest).collect();
        let found = frame_length(&bytes);
        if bytes.len() < PREFIX_BYTES {
            prop_assert_eq!(&found, &Ok(None));
        } else {
            prop_assert_eq!(&found, &frame_length(&bytes[..PREFIX_BYTES]));
            let most = if kind == 1 { FRAME_BYTES_MAX } else { CONTROL_BYTES_MAX };
            let least = if kind == 1 { 40 } else { 16 };
            let bytes = length as usize;
            let good = (1..=2).contains(&kind)
                && (least..=most).contains(&bytes)
                && bytes.is_multiple_of(8);
            prop_assert_eq!(found.is_ok(), good);
            if let Ok(found) = found {
                prop_assert_eq!(found, Some(bytes));
            }
        }
    }
}
