//! Why an event file or a packet could not be read.

use alloc::string::String;
use core::fmt;

use sapwood_packet::PacketError;

/// An error of one file or packet. It never concerns the process that reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// The file is not one of this version, or is damaged. Cure: use shim and tree of one release.
    File {
        /// What is wrong with it.
        what: &'static str,
        /// The value that was found.
        found: u64,
        /// What should be there, or its upper limit.
        wanted: u64,
    },
    /// The file ends before what its header announces: it was copied in part, or cut.
    Cut {
        /// The bytes that it has.
        bytes: u64,
        /// Those that it should have, at least.
        wanted: u64,
    },
    /// A packet is of another format.
    Format {
        /// The packet's format.
        format: String,
    },
    /// A packet's values contradict each other: it was forged, or a leaf has a fault.
    Contradiction {
        /// Which of its values.
        what: &'static str,
    },
    /// A packet's values could not be read.
    Values(PacketError),
}

impl From<PacketError> for TraceError {
    fn from(error: PacketError) -> Self {
        Self::Values(error)
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { what, found, wanted } => write!(
                f,
                "event file: {what} is {found}, not {wanted}; use shim and tree of one release"
            ),
            Self::Cut { bytes, wanted } => {
                write!(f, "event file: it is cut: it has {bytes} bytes of {wanted}")
            }
            Self::Format { format } => {
                write!(f, "waits: a packet of format '{format}' holds none")
            }
            Self::Contradiction { what } => {
                write!(f, "waits: the {what} of a packet contradict each other")
            }
            Self::Values(error) => write!(f, "waits: {error}"),
        }
    }
}

impl core::error::Error for TraceError {}
