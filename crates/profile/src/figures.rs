//! Figures of a rank beside its events: memory, faults, switches and processor time of its process,
//! counters of the hardware, and what its point-to-point messages have moved. Where each comes from
//! is its reader's concern; here they are numbers by name.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::{IndexedValues, Rank, RankSet, Values};

use crate::{MetricStatistics, ProfileError, columns};

/// A number that a rank has. Times are in nanoseconds, amounts since the process began
/// unless stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Figure {
    /// Resident memory at this moment, in bytes.
    ResidentBytes = 1,
    /// The largest resident memory so far, in bytes.
    ResidentBytesMax = 2,
    /// Page faults without input or output.
    MinorFaults = 3,
    /// Page faults that waited for input or output.
    MajorFaults = 4,
    /// Times at which the process gave its processor up.
    VoluntarySwitches = 5,
    /// Times at which its processor was taken from it.
    InvoluntarySwitches = 6,
    /// Processor time in the program and its libraries.
    CpuUserNs = 7,
    /// Processor time in the system.
    CpuSystemNs = 8,
    /// Processor time since counting began, over the wall time of that, in parts per million; more
    /// than a million where several threads compute.
    CpuPpm = 9,
    /// Instructions of the rank's first thread, as the hardware counts them, since it was seen.
    Instructions = 10,
    /// Its processor cycles.
    Cycles = 11,
    /// Its misses of the last cache.
    CacheMisses = 12,
    /// Bytes of the point-to-point messages that it has sent.
    SentBytes = 13,
    /// Bytes of the point-to-point messages that it has received.
    ReceivedBytes = 14,
    /// Requests whose bytes are not counted, because there was no room to follow them, or because
    /// they were freed before they completed.
    UntrackedRequests = 15,
    /// Communicators, windows and files without a name, because names of others in use took all the
    /// room.
    NamesLeftOut = 16,
    /// Threads that have called MPI, the most at a time; only where there were several.
    MpiThreads = 17,
}

impl Figure {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 17] = [
        Self::ResidentBytes,
        Self::ResidentBytesMax,
        Self::MinorFaults,
        Self::MajorFaults,
        Self::VoluntarySwitches,
        Self::InvoluntarySwitches,
        Self::CpuUserNs,
        Self::CpuSystemNs,
        Self::CpuPpm,
        Self::Instructions,
        Self::Cycles,
        Self::CacheMisses,
        Self::SentBytes,
        Self::ReceivedBytes,
        Self::UntrackedRequests,
        Self::NamesLeftOut,
        Self::MpiThreads,
    ];

    /// Its name, with the unit last.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ResidentBytes => "resident_bytes",
            Self::ResidentBytesMax => "resident_bytes_max",
            Self::MinorFaults => "minor_faults",
            Self::MajorFaults => "major_faults",
            Self::VoluntarySwitches => "voluntary_switches",
            Self::InvoluntarySwitches => "involuntary_switches",
            Self::CpuUserNs => "cpu_user_ns",
            Self::CpuSystemNs => "cpu_system_ns",
            Self::CpuPpm => "cpu_ppm",
            Self::Instructions => "instructions",
            Self::Cycles => "cycles",
            Self::CacheMisses => "cache_misses",
            Self::SentBytes => "sent_bytes",
            Self::ReceivedBytes => "received_bytes",
            Self::UntrackedRequests => "untracked_requests",
            Self::NamesLeftOut => "names_left_out",
            Self::MpiThreads => "mpi_threads",
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|figure| *figure as u8 == code)
    }
}

/// Statistics of each figure over the ranks that have it.
pub type Figures = BTreeMap<Figure, MetricStatistics>;

/// Of one rank.
pub(crate) fn of(figures: &BTreeMap<Figure, u64>, rank: Rank) -> Figures {
    let one = |(&figure, &value): (&Figure, &u64)| (figure, MetricStatistics::of(value, rank));
    figures.iter().map(one).collect()
}

pub(crate) fn merge(figures: &mut Figures, others: Figures) {
    for (figure, other) in others {
        figures.entry(figure).and_modify(|mine| mine.merge(&other)).or_insert(other);
    }
}

/// Adds the codes and the columns to a packet.
pub(crate) fn push(values: Values, figures: &Figures) -> Values {
    let codes: Vec<u8> = figures.keys().map(|&figure| figure as u8).collect();
    let metrics: Vec<&MetricStatistics> = figures.values().collect();
    columns::push(values.array(&codes), &metrics)
}

/// Reads them from the value of this index on. A figure that is not known here is left out.
pub(crate) fn read(
    values: &IndexedValues<'_>,
    first: usize,
    covered: &RankSet,
) -> Result<Figures, ProfileError> {
    let wrong = ProfileError::Contradiction { what: "figures of processes" };
    let codes: &[u8] = values.array(first)?;
    let metrics = columns::read(values, first + 1, covered, &wrong)?;
    let is_ordered = codes.windows(2).all(|pair| pair[0] < pair[1]);
    if !is_ordered || codes.len() != metrics.len() {
        return Err(wrong);
    }
    let known = codes.iter().zip(metrics);
    Ok(known.filter_map(|(&code, metric)| Some((Figure::from_code(code)?, metric))).collect())
}
