//! Values, packets and frames that are in order, made of an input's choices.

use sapwood_packet::{Chunk, Format, Header, Order, PacketRef, RankSet, Slab, Values, ValuesRef};
use sapwood_wire::{Control, encode_control, encode_packet};

use crate::source::Source;

/// Longest array that is made, in elements.
const ELEMENTS_MAX: usize = 40;
/// What a long body is, in bytes: enough for a frame that gets memory of its own.
const LONG_BYTES: usize = 20_000;

/// A few values of any types.
pub(super) fn values(source: &mut Source<'_>) -> Values {
    let count = 1 + source.below(3);
    (0..count).fold(Values::new(), |values, _| one_value(values, source))
}

fn one_value(values: Values, source: &mut Source<'_>) -> Values {
    match source.below(16) {
        0 => values.scalar(source.number() as i32),
        1 => values.scalar(source.number() as u8),
        2 => values.scalar(f64::from_bits(source.number())),
        3 => values.scalar(source.number() as i16),
        4 => values.array(&numbers(source).map(|number| number as u32).collect::<Vec<_>>()),
        5 => values.array(&numbers(source).map(|number| number as i8).collect::<Vec<_>>()),
        6 => values.array(&numbers(source).map(f32_of).collect::<Vec<_>>()),
        7 => values.large_array(&numbers(source).collect::<Vec<_>>()),
        8 => values.array(&numbers(source).map(|number| number as i64).collect::<Vec<_>>()),
        9 => values.string(source.text()),
        10 => {
            let count = source.below(5);
            let strings: Vec<String> = (0..count).map(|_| source.text()).collect();
            values.strings(&strings)
        }
        11 => values.array(&vec![source.number(); LONG_BYTES / 8]),
        _ => values.scalar(source.number() as i64),
    }
}

fn numbers<'s>(source: &'s mut Source<'_>) -> impl Iterator<Item = u64> + 's {
    let count = source.below(ELEMENTS_MAX);
    (0..count).map(|_| source.number())
}

fn f32_of(number: u64) -> f32 {
    f32::from_bits(number as u32)
}

/// A set of small ranks.
pub(super) fn ranks(source: &mut Source<'_>) -> RankSet {
    let mut set = RankSet::new();
    for _ in 0..source.below(4) {
        let first = source.below(10) as u32;
        set.insert_range(first, first + source.below(4) as u32);
    }
    set
}

/// A header whose stream and wave are likely to be open.
fn header(source: &mut Source<'_>) -> Header {
    let flags = source.byte();
    let wave = source.number();
    let is_last = flags & 76 == 76 && wave == u64::MAX;
    let order = match () {
        () if is_last => Order::Last,
        () if flags & 48 == 16 => Order::Direct,
        () if flags >> 7 != 0 && flags & 2 == 0 => Order::single(1),
        () if flags >> 7 != 0 => Order::part(1),
        () => Order::Wave,
    };
    Header {
        stream: source.below(5) as u32,
        tag: source.byte().into(),
        wave: match wave {
            _ if is_last => 0,
            0..240 => wave % 9,
            _ => wave,
        },
        origin: source.below(12) as u32,
        order,
        filtered: flags & 1 != 0,
        ends_wave: flags & 2 == 0,
        late: flags & 12 == 4,
        void: flags & 76 == 76,
    }
}

/// A frame of a packet, a chunk or a run, or of a control message; empty when there is none such.
pub(super) fn frame(source: &mut Source<'_>) -> Slab {
    let mut frame = Slab::default();
    // What cannot be encoded is no frame, which is the encoder's right.
    let _ = match source.below(4) {
        0 => source.typed::<Control>().map(|message| encode_control(&mut frame, &message).is_ok()),
        _ => Some(packet(source, &mut frame)),
    };
    frame
}

fn packet(source: &mut Source<'_>, frame: &mut Slab) -> bool {
    let header = header(source);
    let (contributors, destinations) = (ranks(source), ranks(source));
    let kind = source.below(4);
    let values = if header.void { Values::new() } else { values(source) };
    let (format, body) = values.into_parts();
    let mut packet = PacketRef {
        header,
        format: format.as_ref(),
        contributors: contributors.as_ref(),
        destinations: destinations.as_ref(),
        body: body.as_bytes(),
        ..PacketRef::default()
    };
    match kind {
        0 => run_of(source, frame, packet),
        1 => {
            // A piece of a longer packet.
            let length = body.len();
            let start = source.below(length / 8 + 1) * 8;
            let end = (start + 8 * source.below(64)).min(length);
            packet.chunk = Some(Chunk { offset: start as u64, total: length as u64 });
            packet.body = &body.as_bytes()[start..end.max(start)];
            encode_packet(frame, &packet).is_ok()
        }
        _ => encode_packet(frame, &packet).is_ok(),
    }
}

/// Several waves of one number each.
fn run_of(source: &mut Source<'_>, frame: &mut Slab, packet: PacketRef<'_>) -> bool {
    let more_waves = source.below(20) as u32;
    let mut bodies = Slab::default();
    for _ in 0..=more_waves {
        bodies.extend_u64(source.number());
    }
    let format: Format = Values::new().scalar(0_i64).into_parts().0;
    let (format, body) = (format.as_ref(), bodies.as_bytes());
    encode_packet(frame, &PacketRef { format, more_waves, body, ..packet }).is_ok()
}

/// Whether values are what their format says.
pub(super) fn are_sound(values: ValuesRef<'_>) -> bool {
    ValuesRef::parse(values.format(), values.body()).is_ok()
}
