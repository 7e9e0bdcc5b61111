//! Malformed frames of the golden vectors: a good frame, named, and what was done to it.
//!
//! Changes are `set OFFSET BYTES`, `insert OFFSET BYTES`, `remove OFFSET COUNT` and `fit`, which
//! makes the prefix say the frame's new length; they are done in order.

use super::{FILES, Record, encoded, from_hex, records, text};

/// The malformed frame that a vector describes.
pub fn changed(record: &Record) -> Vec<u8> {
    let mut bytes = match record.field("of") {
        "nothing" => Vec::new(),
        name => original(name),
    };
    for change in record.fields("change") {
        apply(&mut bytes, change);
    }
    bytes
}

fn original(name: &str) -> Vec<u8> {
    let found = FILES[..2].iter().find_map(|file| {
        let record = records(&text(file)).into_iter().find(|record| record.name() == name)?;
        Some(encoded(file, &record))
    });
    found.unwrap_or_else(|| panic!("there is no vector '{name}'"))
}

fn apply(bytes: &mut Vec<u8>, change: &str) {
    let mut words = change.splitn(3, ' ');
    let verb = words.next().unwrap_or_default();
    let at: usize = words.next().map_or(0, |at| at.parse().expect("an offset is a number"));
    let argument = words.next().unwrap_or_default();
    match verb {
        "set" => {
            let new = from_hex(argument);
            bytes[at..at + new.len()].copy_from_slice(&new);
        }
        "insert" => drop(bytes.splice(at..at, from_hex(argument))),
        "remove" => {
            let count: usize = argument.parse().expect("a count is a number");
            bytes.drain(at..at + count);
        }
        "fit" => {
            let length = u32::try_from(bytes.len()).expect("a vector is short");
            bytes[..4].copy_from_slice(&length.to_le_bytes());
        }
        _ => panic!("'{change}' is no change"),
    }
}
