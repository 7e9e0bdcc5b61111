//! Why a table, a round or rows could not be read or put together.

use alloc::string::String;
use core::fmt;

use sapwood_packet::{PacketError, Rank, RankSet};

/// An error of a profile. It concerns one table or one packet, never the process that reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileError {
    /// A table's header is not one of this version. Cause: the program runs with another Sapwood's
    /// shim, or overwrote the table. Cure: use shim and tree of one release.
    Table {
        /// What is wrong with it.
        what: &'static str,
        /// The value that was found.
        found: u64,
        /// What should be there, or its upper limit.
        wanted: u64,
    },
    /// A table ends before what its header announces: its file was copied in part, or cut.
    Cut {
        /// The bytes that it has.
        bytes: u64,
        /// Those that it should have, at least.
        wanted: u64,
    },
    /// A packet is not of the format that is read. Cure: give the stream to leaves only.
    Format {
        /// What should have been in it.
        wanted: &'static str,
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
    /// The same MPI ranks are in two rounds that should be merged, so that they would count twice.
    /// Cure: let each table be read by one leaf only.
    CountedTwice {
        /// These ranks.
        ranks: RankSet,
    },
    /// Rounds or profiles of programs of different size meet on one stream.
    WorldSize {
        /// The size of the round so far.
        round: u32,
        /// The other size.
        other: u32,
    },
    /// An MPI rank is not smaller than the program's number of ranks.
    Rank {
        /// The rank.
        rank: Rank,
        /// The number of ranks.
        world_size: u32,
    },
    /// More kinds of events than [`crate::EVENTS_MAX`]. Cure: do not build the names of regions out
    /// of changing numbers.
    TooManyEvents {
        /// How many there are.
        count: usize,
    },
}

impl From<PacketError> for ProfileError {
    fn from(error: PacketError) -> Self {
        Self::Values(error)
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table { what, found, wanted } => write!(
                f,
                "profile table: {what} is {found}, not {wanted}; use shim and tree of one release"
            ),
            Self::Cut { bytes, wanted } => {
                write!(f, "profile table: it is cut: it has {bytes} bytes of {wanted}")
            }
            Self::Format { wanted, format } => {
                write!(f, "profile: a packet of format '{format}' is no {wanted}")
            }
            Self::Contradiction { what } => {
                write!(f, "profile: the {what} of a packet contradict each other")
            }
            Self::Values(error) => write!(f, "profile: {error}"),
            Self::CountedTwice { ranks } => write!(
                f,
                "profile: MPI ranks {ranks} were reported twice in one round; \
                 let each table be read by one leaf only"
            ),
            Self::WorldSize { round, other } => write!(
                f,
                "profile: programs of {round} and of {other} MPI ranks meet in one round; \
                 watch one program per tree"
            ),
            Self::Rank { rank, world_size } => {
                write!(f, "profile: MPI rank {rank} in a program of {world_size} ranks")
            }
            Self::TooManyEvents { count } => write!(
                f,
                "profile: {count} kinds of events, at most {} are kept; \
                 do not build names of regions out of changing numbers",
                crate::EVENTS_MAX
            ),
        }
    }
}

impl core::error::Error for ProfileError {}
