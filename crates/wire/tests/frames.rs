//! What may be on a link: a frame has one spelling, and nothing is written that is not read.

use sapwood_packet::{DIRECTIVES_MAX, Packet, Slab, Values};
use sapwood_wire::{Control, Frame, WireError, decode, encode_control, encode_packet};

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
