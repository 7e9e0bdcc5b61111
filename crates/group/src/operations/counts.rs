//! What a member has done with the parts of reductions that came to it.

use serde::{Deserialize, Serialize};

/// Whether a part of a reduction meets the member's own call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartMeets {
    /// The member has called, though its caller may have left since.
    Call,
    /// It has not.
    NoCall,
    /// It had not, and kept the part for its call, which is there now.
    LateCall,
}

/// Parts of reductions that came to a member, and how many of their payloads it has copied. What
/// is folded into a value that lies there is not copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartCount {
    /// Parts: one for each segment of what came from a member.
    pub parts: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Parts that were copied into a value.
    pub copied_parts: u64,
    /// Bytes of these.
    pub copied_bytes: u64,
}

/// The reductions of a member in figures, since it has joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReduceCounts {
    /// Parts that came after the member's own call.
    pub expected: PartCount,
    /// Those that came before it.
    pub unexpected: PartCount,
    /// Calls that leave early and were to wait for values that are almost there.
    pub grace_waits: u64,
    /// Those of them whose values have come meanwhile.
    pub grace_met: u64,
}

impl ReduceCounts {
    /// A part has come. One that was kept for the call was counted before.
    pub(super) fn note_part(&mut self, meets: PartMeets, bytes: usize) {
        if meets != PartMeets::LateCall {
            let count = self.of(meets);
            count.parts += 1;
            count.bytes += bytes as u64;
        }
    }

    /// A part was folded, and copied or not.
    pub(super) fn note_fold(&mut self, meets: PartMeets, bytes: usize, how: Folded) {
        if how == Folded::Copied {
            let count = self.of(meets);
            count.copied_parts += 1;
            count.copied_bytes += bytes as u64;
        }
    }

    fn of(&mut self, meets: PartMeets) -> &mut PartCount {
        match meets {
            PartMeets::Call => &mut self.expected,
            PartMeets::NoCall | PartMeets::LateCall => &mut self.unexpected,
        }
    }
}

/// How a value came into a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folded {
    /// It was combined with the one that was there.
    InPlace,
    /// Its bytes were copied.
    Copied,
}
