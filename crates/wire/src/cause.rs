//! Why a back-end is missing, for programs; the words for people travel beside it.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Why a back-end is missing from an answer, or a process from the network. The numbers on the wire
/// are in the order of the variants, so that a new one is added after the last.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[non_exhaustive]
pub enum Cause {
    /// None of the others.
    #[default]
    Other,
    /// It has left the network on purpose.
    Left,
    /// Its link has closed, and no process knows how it ended.
    Died,
    /// It has ended by itself.
    Exited {
        /// Its exit status.
        status: u32,
    },
    /// A signal has ended it.
    Killed {
        /// The signal's number.
        signal: u32,
    },
    /// It was silent for longer than the network's limit, and its link was torn.
    Silent,
    /// It has never connected.
    NeverStarted,
    /// It did not answer within the time of the stream's waves.
    Late,
    /// It is there, and has sent nothing in this wave.
    Skipped,
    /// It was given up, and has come back since.
    Away,
    /// A filter failed on what it sent, or could not be made.
    FilterFailed,
    /// It has broken the rules of the network, which does not deal with it any more.
    Refused,
    /// A process had no memory for its values.
    OutOfMemory,
}

impl Cause {
    /// Its name without its number, for formats that programs read.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Left => "left",
            Self::Died => "died",
            Self::Exited { .. } => "exited",
            Self::Killed { .. } => "killed",
            Self::Silent => "silent",
            Self::NeverStarted => "never-started",
            Self::Late => "late",
            Self::Skipped => "skipped",
            Self::Away => "away",
            Self::FilterFailed => "filter-failed",
            Self::Refused => "refused",
            Self::OutOfMemory => "out-of-memory",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exited { status } => return write!(f, "exited with status {status}"),
            Self::Killed { signal } => return write!(f, "killed by signal {signal}"),
            Self::Other => "missing",
            Self::Left => "has left",
            Self::Died => "is gone",
            Self::Silent => "was silent for too long",
            Self::NeverStarted => "has never started",
            Self::Late => "did not answer in time",
            Self::Skipped => "sent nothing",
            Self::Away => "was away",
            Self::FilterFailed => "a filter failed",
            Self::Refused => "broke the protocol",
            Self::OutOfMemory => "out of memory",
        })
    }
}

/// The causes by their codes, which other languages and formats use.
const BY_CODE: [Cause; 13] = [
    Cause::Other,
    Cause::Left,
    Cause::Died,
    Cause::Exited { status: 0 },
    Cause::Killed { signal: 0 },
    Cause::Silent,
    Cause::NeverStarted,
    Cause::Late,
    Cause::Skipped,
    Cause::Away,
    Cause::FilterFailed,
    Cause::Refused,
    Cause::OutOfMemory,
];

impl Cause {
    /// Its code, which is its number on the wire.
    #[must_use]
    pub fn code(self) -> u32 {
        let is_same =
            |other: &Self| core::mem::discriminant(other) == core::mem::discriminant(&self);
        BY_CODE.iter().position(is_same).unwrap_or_default() as u32
    }

    /// Its exit status or signal; 0 for causes without one.
    #[must_use]
    pub const fn detail(self) -> u32 {
        match self {
            Self::Exited { status } => status,
            Self::Killed { signal } => signal,
            _ => 0,
        }
    }

    /// The cause of this code, with its exit status or signal; [`Cause::Other`] for a code that
    /// there is not.
    #[must_use]
    pub fn of(code: u32, detail: u32) -> Self {
        match BY_CODE.get(code as usize).copied().unwrap_or_default() {
            Self::Exited { .. } => Self::Exited { status: detail },
            Self::Killed { .. } => Self::Killed { signal: detail },
            cause => cause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_numbers_on_the_wire_and_come_back() {
        for (code, &cause) in BY_CODE.iter().enumerate() {
            let mut bytes = [0_u8; 8];
            let bytes = postcard::to_slice(&cause, &mut bytes).expect("it is short");
            assert_eq!((usize::from(bytes[0]), cause.code() as usize), (code, code), "{cause:?}");
            let detailed = Cause::of(cause.code(), 9);
            assert_eq!(Cause::of(detailed.code(), detailed.detail()), detailed);
        }
        assert_eq!(Cause::of(4, 9), Cause::Killed { signal: 9 });
        assert_eq!(Cause::of(77, 9), Cause::Other);
    }
}
