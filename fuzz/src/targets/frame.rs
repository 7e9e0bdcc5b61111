//! Any bytes as a frame: refused, or read and written again as the same bytes.

use sapwood_packet::{PacketRef, Slab};
use sapwood_wire::frame::head_length;
use sapwood_wire::{Frame, decode, encode_packet, extend_run, frame_length};

use super::{control, values};
use crate::{Target, memory};

/// Frames.
pub const TARGET: Target = Target { name: "frame", run, repair: Some(repair) };

fn run(input: &[u8]) {
    let frame = Slab::copy_of(input);
    let bytes = frame.as_bytes();
    let announced = frame_length(bytes);
    for end in 0..bytes.len().min(9) {
        // A prefix that is not there yet is waited for; one that is there never changes its mind.
        let early = frame_length(&bytes[..end]);
        assert!(if end < 8 { early == Ok(None) } else { early == announced });
    }
    // A caller that breaks the rule of alignment gets an error or a packet, never a panic.
    if let Some(misaligned) = Slab::copy_of(&[&[0; 4], bytes].concat()).as_bytes().get(4..) {
        let _ = decode(misaligned);
    }
    let decoded = match bytes.get(4) {
        Some(2) => memory::within(control::bytes_max(bytes.len()), || decode(bytes)),
        _ => memory::within(0, || decode(bytes)),
    };
    match decoded {
        Ok(Frame::Packet(packet)) => {
            assert_eq!(announced, Ok(Some(bytes.len())));
            check_packet(&packet, bytes);
        }
        Ok(Frame::Control(message)) => control::check(&message),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check_packet(packet: &PacketRef<'_>, bytes: &[u8]) {
    let mut again = Slab::default();
    assert_eq!(encode_packet(&mut again, packet), Ok(bytes.len()));
    assert!(again.as_bytes() == bytes, "a packet has one frame");
    assert_eq!(head_length(packet) + packet.body.len(), bytes.len());
    // Reading a chunk's values means nothing, but must not harm either.
    values::read_everything(packet.values());
    let (chunk, more_waves) = (packet.chunk, packet.more_waves);
    let owned = packet.to_packet();
    assert_eq!(PacketRef { chunk, more_waves, ..owned.as_ref() }, *packet);
    if more_waves > 0 {
        check_run(packet, bytes);
    }
    for set in [packet.contributors, packet.destinations] {
        assert_eq!(set.to_string().parse(), Ok(set.to_set()));
    }
}

/// Each wave of a run is a packet, and put together again they are the same frame.
fn check_run(run: &PacketRef<'_>, bytes: &[u8]) {
    let mut again = Slab::default();
    for index in 0..=run.more_waves {
        let wave = run.part_of_run(index, 1);
        assert_eq!(wave.header.wave, run.header.wave + u64::from(index));
        let mut alone = Slab::default();
        encode_packet(&mut alone, &wave).expect("a part of what fits");
        assert_eq!(decode(alone.as_bytes()), Ok(Frame::Packet(wave)));
        if index == 0 {
            again = alone;
        } else {
            extend_run(&mut again, 0, index, wave.body);
        }
    }
    assert!(again.as_bytes() == bytes, "a run has one frame");
}

/// Makes the length a multiple of 8 and the prefix say it.
fn repair(input: &mut Vec<u8>) {
    input.resize(input.len().next_multiple_of(8).max(16), 0);
    let length = u32::try_from(input.len()).expect("inputs are short");
    input[..4].copy_from_slice(&length.to_le_bytes());
}
