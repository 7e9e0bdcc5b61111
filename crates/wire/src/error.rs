//! The errors of bytes that are not a valid frame.

use core::fmt;

use sapwood_packet::{OutOfMemory, PacketError};

/// A peer broke the wire format; its link must be closed, since nothing after this can be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireError {
    /// A frame's length is below its header, above its limit, or no multiple of 8.
    Length {
        /// The length in the prefix, in bytes.
        bytes: usize,
    },
    /// A frame is of no known kind, or has unknown flags.
    Kind {
        /// The byte that is not known.
        kind: u8,
    },
    /// A packet's parts do not fill its frame: format, rank sets and chunk state other lengths; or
    /// a control message has a count.
    Parts,
    /// A packet's format has a byte that is no directive, more directives than
    /// [`sapwood_packet::DIRECTIVES_MAX`], or something behind its last one.
    Format,
    /// A chunk lies outside its packet, or the packet is longer than allowed.
    Chunk,
    /// The values or rank sets are broken.
    Packet(PacketError),
    /// A control message could not be read.
    Control,
    /// A message or packet that can be read may not come from this peer now.
    Unexpected {
        /// Its name, with an article if it is no message.
        what: &'static str,
    },
    /// This process has no memory for the peer's packet.
    Memory(OutOfMemory),
}

impl From<OutOfMemory> for WireError {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

impl From<PacketError> for WireError {
    fn from(error: PacketError) -> Self {
        Self::Packet(error)
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { bytes } => write!(f, "peer sent a frame with a length of {bytes} bytes"),
            Self::Kind { kind } => write!(f, "peer sent a frame of unknown kind or flags {kind}"),
            Self::Parts => f.write_str("peer sent a packet whose parts do not fill its frame"),
            Self::Format => {
                f.write_str("peer sent a packet with an unknown directive or too many of them")
            }
            Self::Chunk => f.write_str("peer sent a chunk that lies outside its packet"),
            Self::Packet(error) => write!(f, "peer sent a broken packet: {error}"),
            Self::Memory(error) => write!(f, "{error}"),
            Self::Unexpected { what } => write!(f, "peer sent {what}, which it may not send now"),
            Self::Control => f.write_str("peer sent a control message that cannot be read"),
        }
    }
}

impl core::error::Error for WireError {}
