//! Reading and rewriting of the golden vectors in `conformance/vectors`, for the test and for the
//! example that writes them. `conformance/README.md` describes the files.
//!
//! A file is paragraphs of `key: value` lines. What a packet or message is stands in its fields;
//! the last field, `frame`, is what this project's encoder makes of them.

#![allow(dead_code)] // The test and the example each use their part.

use std::path::PathBuf;

use sapwood_packet::{PacketError, Slab};
use sapwood_wire::{Control, WireError, encode_control, encode_packet};

pub mod changes;
pub mod packets;
pub mod values;

/// The files, in the order in which they are written: the malformed frames are made of the others.
pub const FILES: [&str; 3] = ["packets.txt", "controls.txt", "malformed.txt"];

/// One vector.
pub struct Record {
    lines: Vec<(String, String)>,
}

impl Record {
    /// The value of the first field of that name.
    pub fn field(&self, key: &str) -> &str {
        let found = self.lines.iter().find(|(name, _)| name == key);
        found.map_or_else(|| panic!("'{}' has no {key}", self.name()), |(_, value)| value)
    }

    /// The values of all fields of that name, in order.
    pub fn fields<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// What the vector is called; the first line of its paragraph.
    pub fn name(&self) -> &str {
        &self.lines[0].1
    }

    /// Its bytes as the file has them.
    pub fn frame(&self) -> Vec<u8> {
        from_hex(self.field("frame"))
    }

    /// The lines that describe it, without its name and frame.
    pub fn description(&self) -> String {
        let described = |(key, _): &&(String, String)| key != "name" && key != "frame";
        self.lines.iter().filter(described).map(|(key, value)| line(key, value)).collect()
    }
}

/// One line of a file, without trailing space.
pub fn line(key: &str, value: &str) -> String {
    format!("{}\n", format!("{key}: {value}").trim_end())
}

/// Where a file of vectors lies.
pub fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/vectors").join(file)
}

/// The text of a file.
pub fn text(file: &str) -> String {
    std::fs::read_to_string(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// All vectors of a file's text.
pub fn records(text: &str) -> Vec<Record> {
    text.split("\n\n").filter_map(record).collect()
}

fn record(paragraph: &str) -> Option<Record> {
    let lines: Vec<_> = paragraph
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split_once(':').unwrap_or_else(|| panic!("'{line}' is no field")))
        .map(|(key, value)| (key.to_owned(), value.trim().to_owned()))
        .collect();
    let (key, name) = lines.first()?;
    assert_eq!(key, "name", "a vector begins with its name, not with '{name}'");
    Some(Record { lines })
}

/// The text with every frame written anew from the fields above it.
pub fn rewritten(file: &str, text: &str) -> String {
    let paragraphs = text.trim_end().split("\n\n").map(|paragraph| {
        let Some(record) = record(paragraph) else { return format!("{paragraph}\n") };
        let fields = paragraph.lines().filter(|line| !line.starts_with("frame:"));
        let fields: String = fields.map(|line| format!("{line}\n")).collect();
        fields + &line("frame", &to_hex(&encoded(file, &record)))
    });
    paragraphs.collect::<Vec<_>>().join("\n")
}

/// What the encoder makes of a vector's fields.
pub fn encoded(file: &str, record: &Record) -> Vec<u8> {
    let mut out = Slab::default();
    let length = match file {
        "packets.txt" => {
            let parts = packets::Parts::of(record);
            encode_packet(&mut out, &parts.as_ref()).expect("a packet of the vectors fits a frame")
        }
        "controls.txt" => {
            encode_control(&mut out, &control_of(record)).expect("a message fits a frame")
        }
        _ => return changes::changed(record),
    };
    assert_eq!(length, out.len(), "the encoder gives the length that it wrote");
    out.as_bytes().to_vec()
}

/// The control message that a vector describes.
pub fn control_of(record: &Record) -> Control {
    let json = record.field("control");
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{}: {error}", record.name()))
}

/// The name of an error as the vectors spell it.
pub fn error_name(error: &WireError) -> String {
    let name = |debug: String| {
        debug.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
    };
    let packet = |error: &PacketError| name(format!("{error:?}"));
    match error {
        WireError::Packet(error) => format!("Packet({})", packet(error)),
        error => name(format!("{error:?}")),
    }
}

/// Bytes as two digits each.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes from two digits each; spaces between them are allowed.
pub fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').collect();
    assert!(digits.len().is_multiple_of(2), "'{text}' has half a byte");
    let pair = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("hex digits are ASCII");
        u8::from_str_radix(pair, 16).unwrap_or_else(|_| panic!("'{pair}' is no byte"))
    };
    digits.chunks(2).map(pair).collect()
}
