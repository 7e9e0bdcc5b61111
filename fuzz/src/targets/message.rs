//! Any control message that its type allows: written, and read as itself.

use sapwood_packet::{RankSet, Slab};
use sapwood_wire::{Control, Frame, Ranges, decode, encode_control};

use super::control;
use crate::source::Source;
use crate::{Target, memory};

/// Control messages, made from their types.
pub const TARGET: Target = Target { name: "message", run, repair: None };

fn run(input: &[u8]) {
    let mut source = Source::new(input);
    while !source.is_empty() {
        if let Some(ranges) = source.typed::<Ranges>() {
            check_ranges(&ranges);
        }
        if let Some(message) = source.typed::<Control>() {
            check_message(&message);
        }
    }
}

fn check_message(message: &Control) {
    let mut frame = Slab::default();
    let Ok(length) = encode_control(&mut frame, message) else { return };
    let read = memory::within(control::bytes_max(length), || decode(frame.as_bytes()));
    // Texts for people are cut where they are written; everything else comes back as it was.
    let Ok(Frame::Control(read)) = read else { panic!("{message:?} was written: {read:?}") };
    control::check(&read);
    if length < sapwood_wire::limits::TEXT_BYTES_MAX {
        assert_eq!(read, *message);
    }
}

fn check_ranges(ranges: &Ranges) {
    match ranges.to_set() {
        Ok(set) => assert_eq!(Ranges::from(&set), *ranges, "a set has one way to be written"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let everybody = RankSet::range(0, u32::MAX);
    assert_eq!(Ranges::from(&everybody).to_set(), Ok(everybody));
}
