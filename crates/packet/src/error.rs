//! What can be wrong with a format string or with the values under it.

use alloc::string::String;
use core::fmt;

/// An error in a format string, or in reading or building values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketError {
    /// A directive is not one of the format language. Cure: spell it as in `%d %alf %s`.
    Directive {
        /// The text that was not understood.
        text: String,
        /// Its place in the format string, in bytes from 0.
        at: usize,
    },
    /// A format string with more directives than [`crate::DIRECTIVES_MAX`]. Cure: send two packets.
    TooManyDirectives {
        /// How many there were.
        count: usize,
    },
    /// A value was read as another type than it has. Cure: read what the packet's format says.
    Type {
        /// Which value, from 0.
        index: usize,
        /// The directive that was asked for.
        wanted: &'static str,
        /// The packet's whole format.
        format: String,
    },
    /// A packet has no value of that index.
    Index {
        /// The index that was asked for.
        index: usize,
        /// How many values there are.
        count: usize,
    },
    /// The bytes do not hold what the format promises: the packet was cut or forged.
    Truncated {
        /// Which value did not fit, from 0.
        index: usize,
    },
    /// Bytes are left over after the last value: the packet was forged or mixed up.
    Excess {
        /// How many bytes too many.
        bytes: usize,
    },
    /// A string holds bytes that are not UTF-8. Cure: read it as bytes.
    NotUtf8 {
        /// Which value, from 0.
        index: usize,
    },
    /// Text that should be a rank set is not one. Cure: write it as `0-3,7`.
    RankSet {
        /// The text that was not understood.
        text: String,
    },
    /// Ranges of a rank set that are out of order, touch or overlap: the packet was forged.
    RankOrder,
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directive { text, at } => write!(
                f,
                "format string: '{text}' at byte {at} is no directive; write one as in '%d %alf %s'"
            ),
            Self::TooManyDirectives { count } => write!(
                f,
                "format string: {count} directives, at most {} are allowed; send two packets",
                crate::DIRECTIVES_MAX
            ),
            Self::Type { index, wanted, format } => write!(
                f,
                "value {index} was read as {wanted}, but the packet's format is '{format}'"
            ),
            Self::Index { index, count } => {
                write!(f, "value {index} was read, but the packet has {count}")
            }
            Self::Truncated { index } => {
                write!(f, "packet is cut: value {index} does not fit into its bytes")
            }
            Self::Excess { bytes } => {
                write!(f, "packet has {bytes} bytes after its last value")
            }
            Self::NotUtf8 { index } => {
                write!(f, "value {index} is no UTF-8 text; read it as bytes")
            }
            Self::RankSet { text } => {
                write!(f, "'{text}' is no rank set; write one as in '0-3,7'")
            }
            Self::RankOrder => write!(f, "packet's rank ranges are out of order"),
        }
    }
}

impl core::error::Error for PacketError {}
