//! Any bytes as a control message: refused, or the same message after it was written again.

use sapwood_packet::Slab;
use sapwood_wire::{Control, Frame, decode, encode_control};

use crate::{Target, memory};

/// Control messages, without their prefix.
pub const TARGET: Target = Target { name: "control", run, repair: None };

/// What the lists of a message may cost whose length is bounded by a count: filters and attach
/// points.
const LIST_BYTES_MAX: usize = 16 << 20;
/// What each further byte of a message may cost, in bytes: a range of 2 bytes takes 8, and lists
/// double.
const BYTES_PER_BYTE_MAX: usize = 16;

/// What reading a message of that length may allocate, in bytes.
#[must_use]
pub fn bytes_max(length: usize) -> usize {
    LIST_BYTES_MAX + BYTES_PER_BYTE_MAX * length
}

fn run(input: &[u8]) {
    let length = (8 + input.len()).next_multiple_of(8).max(16);
    let mut frame = Slab::of_length(length);
    let bytes = frame.as_mut_bytes();
    bytes[..4].copy_from_slice(&u32::try_from(length).expect("inputs are short").to_le_bytes());
    bytes[4] = 2;
    bytes[8..8 + input.len()].copy_from_slice(input);
    if let Ok(decoded) = memory::within(bytes_max(length), || decode(frame.as_bytes())) {
        let Frame::Control(message) = decoded else { panic!("kind 2 is a control message") };
        check(&message);
    }
}

/// A message that was read can be written, and is then read as itself.
pub(super) fn check(message: &Control) {
    let mut frame = Slab::default();
    let length = encode_control(&mut frame, message).expect("it came in a frame");
    assert_eq!(length, frame.len());
    assert_eq!(decode(frame.as_bytes()), Ok(Frame::Control(message.clone())));
}
