//! The names of control messages, for people: of one that has been read, and of one of which only
//! the number has come.

use crate::Control;
use crate::frame::{PREFIX_BYTES, is_control};

/// One list for both, in the order of the variants.
macro_rules! names {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        impl Control {
            /// Its name, as in `docs/wire.md`.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name { .. } => stringify!($name),)*
                }
            }
        }
    };
}

names! {
    Hello Welcome Refused Reached Failed Lost Open Close Fault Credit Acknowledge Shutdown Leaving
    Probe Echo Rejoin Resume Resumed Dissolve Ancestry Broken Repaired Question Reply State
    Superseded File Referred Notice
}

/// The name of the control message whose frame begins with these bytes, before it is read; `None`
/// for a packet, and while too little has come. One of an unknown number is refused where it is
/// read.
#[must_use]
pub fn control_name(frame: &[u8]) -> Option<&'static str> {
    if !is_control(frame) {
        return None;
    }
    // A number of 7 bits a byte, the lowest first.
    let (mut number, mut shift) = (0_u32, 0_u32);
    for &byte in frame.get(PREFIX_BYTES..)?.iter().take(5) {
        number |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Some(NAMES.get(number as usize).copied().unwrap_or("an unknown message"));
        }
        shift += 7;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Claim, encode_control};
    use sapwood_packet::Slab;

    #[test]
    fn a_message_has_the_same_name_before_and_after_it_is_read() {
        let claim = Claim::Visitor;
        let hello = Control::Hello { version: 2, claim, pid: 1, address: None };
        let file = Control::File {
            name: "x".into(),
            digest: [0; 32],
            total: 1,
            offset: 0,
            bytes: [1].into(),
        };
        let superseded = Control::Superseded { ranks: crate::Ranges::default() };
        let messages = [hello, Control::Shutdown, Control::Resumed, superseded, file];
        for message in messages {
            let mut frame = Slab::default();
            encode_control(&mut frame, &message).expect("short");
            assert_eq!(control_name(frame.as_bytes()), Some(message.name()));
            assert_eq!(control_name(&frame.as_bytes()[..8]), None);
        }
    }

    #[test]
    fn a_number_that_is_spelled_too_long_is_the_same_number() {
        let mut frame = [0_u8; 16];
        frame[..9].copy_from_slice(&[16, 0, 0, 0, 2, 0, 0, 0, 0x8b]);
        assert_eq!(control_name(&frame), Some("Shutdown"));
        frame[8] = 0x7f;
        assert_eq!(control_name(&frame), Some("an unknown message"));
    }
}
