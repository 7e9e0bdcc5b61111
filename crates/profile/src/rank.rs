//! The profile of one MPI rank.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sapwood_packet::Rank;

use crate::{Activity, EventKey, Figure, SizeHistogram, TimeShare};

/// The metrics of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Calls that returned, or regions that ended.
    Count,
    /// Inclusive time, in nanoseconds.
    TimeNs,
    /// Bytes, by the rules of `bindings/mpi/functions.table`; 0 for regions.
    Bytes,
}

impl Metric {
    /// All of them, in the order in which they lie everywhere.
    pub const ALL: [Self; 3] = [Self::Count, Self::TimeNs, Self::Bytes];

    /// Its name, as in every output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "calls",
            Self::TimeNs => "time_ns",
            Self::Bytes => "bytes",
        }
    }
}

/// What one rank counted of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls that returned, or regions that ended.
    pub count: u64,
    /// Inclusive time of these, in nanoseconds.
    pub time_ns: u64,
    /// Bytes that these moved; of a function that sends and receives both.
    pub bytes: u64,
}

impl Counters {
    /// The counter of a metric.
    #[must_use]
    pub const fn metric(self, metric: Metric) -> u64 {
        match metric {
            Metric::Count => self.count,
            Metric::TimeNs => self.time_ns,
            Metric::Bytes => self.bytes,
        }
    }

    /// The sum of both; it stays at the largest number instead of starting again from 0.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            time_ns: self.time_ns.saturating_add(other.time_ns),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

/// How far an MPI rank is with its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum RankState {
    /// It counts.
    #[default]
    Running = 1,
    /// It called `MPI_Finalize`; the profile is complete once that has returned.
    Finalized = 2,
    /// It ended without `MPI_Finalize`, in order; the profile is complete.
    Exited = 3,
    /// It ended without notice, as by `kill -9`, or inside of `MPI_Finalize`; the profile has its
    /// counts until then. A table does not hold this value: the monitor that sees the process end
    /// sets it.
    Lost = 4,
}

impl RankState {
    /// The state of a code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Running),
            2 => Some(Self::Finalized),
            3 => Some(Self::Exited),
            4 => Some(Self::Lost),
            _ => None,
        }
    }

    /// Its code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finalized => "finalized",
            Self::Exited => "exited",
            Self::Lost => "lost",
        }
    }
}

impl fmt::Display for RankState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What one MPI rank has counted so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankProfile {
    /// Its rank in `MPI_COMM_WORLD`.
    pub mpi_rank: Rank,
    /// The size of `MPI_COMM_WORLD`.
    pub world_size: u32,
    /// Its process.
    pub pid: u32,
    /// How far it is.
    pub state: RankState,
    /// When it began to count, in nanoseconds of its host's monotonic clock.
    pub started_ns: u64,
    /// The host that it runs on.
    pub host: String,
    /// Its program's file name, without folder.
    pub program: String,
    /// Events that it could not count: the table was full, or an end of a region had no begin.
    pub dropped: u64,
    /// Slots of its table that made no sense, because the program wrote over them.
    pub unreadable: u64,
    /// Its counts.
    pub events: BTreeMap<EventKey, Counters>,
    /// Of their bytes, those that came in point-to-point messages.
    pub received: BTreeMap<EventKey, u64>,
    /// What its threads do at this moment. Rows do not hold it.
    pub activities: Vec<Activity>,
    /// How it has spent its time so far. Rows do not hold it, nor what follows.
    pub time: TimeShare,
    /// The part of this since the round before.
    pub interval: TimeShare,
    /// Sizes of what its events moved.
    pub sizes: BTreeMap<EventKey, SizeHistogram>,
    /// Its figures.
    pub figures: BTreeMap<Figure, u64>,
    /// MPI functions that a tool in front of the shim takes, so that their calls are not counted.
    pub taken_functions: u32,
}

impl RankProfile {
    /// A rank that runs and has not counted anything.
    #[must_use]
    pub fn new(mpi_rank: Rank, world_size: u32) -> Self {
        Self {
            mpi_rank,
            world_size,
            pid: 0,
            state: RankState::Running,
            started_ns: 0,
            host: String::new(),
            program: String::new(),
            dropped: 0,
            unreadable: 0,
            events: BTreeMap::new(),
            received: BTreeMap::new(),
            activities: Vec::new(),
            time: TimeShare::default(),
            interval: TimeShare::default(),
            sizes: BTreeMap::new(),
            figures: BTreeMap::new(),
            taken_functions: 0,
        }
    }
}
