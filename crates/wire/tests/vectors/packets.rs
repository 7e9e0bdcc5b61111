//! Packets of the golden vectors: from fields to a packet and back.

use std::fmt::Write;

use sapwood_packet::{Chunk, Format, Header, Order, PacketRef, RankSet, Slab};

use super::{Record, from_hex, line, to_hex, values};

/// A packet or chunk that owns its parts.
pub struct Parts {
    header: Header,
    format: Format,
    contributors: RankSet,
    destinations: RankSet,
    chunk: Option<Chunk>,
    more_waves: u32,
    body: Slab,
}

impl Parts {
    /// The packet that a vector describes.
    pub fn of(record: &Record) -> Self {
        let flag = |name: &str| record.field("flags").split(' ').any(|flag| flag == name);
        let header = Header {
            stream: number(record, "stream"),
            tag: number(record, "tag"),
            wave: number(record, "wave"),
            origin: number(record, "origin"),
            order: order(record),
            filtered: flag("filtered"),
            ends_wave: flag("ends_wave"),
            late: flag("late"),
            void: flag("void"),
        };
        let chunk = record.field("chunk").split_once(' ').map(|(offset, total)| Chunk {
            offset: offset.parse().expect("a chunk's offset is a number"),
            total: total.parse().expect("a chunk's total is a number"),
        });
        let more_waves = match record.fields("run").next() {
            Some(_) => number(record, "run"),
            None => 0,
        };
        let format: Format = number(record, "format");
        let body = match chunk {
            Some(_) => Slab::copy_of(&from_hex(record.field("body"))),
            None => {
                let texts: Vec<&str> = record.fields("value").collect();
                let mut body = Slab::default();
                // A run has the values of all its waves, in order.
                for texts in texts.chunks(texts.len().div_ceil(more_waves as usize + 1).max(1)) {
                    let (built, values) = values::built(&format, texts).into_parts();
                    assert_eq!(built, format, "{}: values of the format", record.name());
                    body.extend(values.as_bytes());
                }
                body
            }
        };
        let contributors = number(record, "contributors");
        let destinations = number(record, "destinations");
        Self { header, format, contributors, destinations, chunk, more_waves, body }
    }

    /// Lends it.
    pub fn as_ref(&self) -> PacketRef<'_> {
        PacketRef {
            header: self.header,
            format: self.format.as_ref(),
            contributors: self.contributors.as_ref(),
            destinations: self.destinations.as_ref(),
            chunk: self.chunk,
            more_waves: self.more_waves,
            body: self.body.as_bytes(),
        }
    }
}

fn number<T: std::str::FromStr>(record: &Record, key: &str) -> T {
    let text = record.field(key);
    text.parse().unwrap_or_else(|_| panic!("{}: {key} is not '{text}'", record.name()))
}

/// `wave`, `single 3`, `part 1`, `direct` or `last`.
fn order(record: &Record) -> Order {
    let text = record.field("order");
    let (name, number) = text.split_once(' ').unwrap_or((text, ""));
    match (name, number.parse()) {
        ("wave", Err(_)) => Order::Wave,
        ("single", Ok(number)) => Order::Single(number),
        ("part", Ok(index)) => Order::Part(index),
        ("direct", Err(_)) => Order::Direct,
        ("last", Err(_)) => Order::Last,
        _ => panic!("{}: no order is '{text}'", record.name()),
    }
}

fn order_text(order: Order) -> String {
    match order {
        Order::Wave => "wave".into(),
        Order::Single(number) => format!("single {number}"),
        Order::Part(index) => format!("part {index}"),
        Order::Direct => "direct".into(),
        Order::Last => "last".into(),
    }
}

/// The lines that describe a packet.
pub fn description(packet: &PacketRef<'_>) -> String {
    let header = &packet.header;
    let flags = [
        (header.filtered, "filtered"),
        (header.ends_wave, "ends_wave"),
        (header.late, "late"),
        (packet.chunk.is_some(), "chunk"),
        (header.void, "void"),
        (packet.more_waves > 0, "run"),
    ];
    let flags: Vec<_> = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
    let chunk = packet.chunk.map(|chunk| format!("{} {}", chunk.offset, chunk.total));
    let mut text = String::new();
    for (key, value) in [
        ("stream", header.stream.to_string()),
        ("tag", header.tag.to_string()),
        ("wave", header.wave.to_string()),
        ("origin", header.origin.to_string()),
        ("order", order_text(header.order)),
        ("flags", flags.join(" ")),
        ("contributors", packet.contributors.to_string()),
        ("destinations", packet.destinations.to_string()),
        ("chunk", chunk.unwrap_or_default()),
    ] {
        text += &line(key, &value);
    }
    if packet.more_waves > 0 {
        text += &line("run", &packet.more_waves.to_string());
    }
    text += &line("format", &packet.format.to_string());
    if packet.chunk.is_some() {
        text += &line("body", &to_hex(packet.body));
    } else {
        let waves = (0..=packet.more_waves).map(|wave| packet.part_of_run(wave, 1));
        for value in waves.flat_map(|wave| values::texts(wave.values())) {
            write!(text, "{}", line("value", &value)).expect("a string takes all text");
        }
    }
    text
}
