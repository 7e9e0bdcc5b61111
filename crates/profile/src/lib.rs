//! Profiles of programs: the counts of each MPI rank, and their statistics over all ranks.
//!
//! An MPI rank counts in a table that it shares; [`TableReader`] decodes a copy of it into a
//! [`RankProfile`]: [`Counters`] per [`EventKey`]. A leaf of the tree folds the profiles of its MPI
//! ranks into a [`Round`], and the filter `profile-statistics` ([`register`]) merges rounds on
//! their way up. At the end [`RankRows`] carries the profiles themselves, unreduced.
//!
//! Further parts of a round have filters of their own ([`Part`]): histograms in three phases
//! ([`Extremes`], [`Counts`]) and as sketches ([`HistogramSketches`]), function classes
//! ([`Classification`]), outliers ([`Medians`], [`Deviations`]) and numbers of each rank
//! ([`RankValues`]).
//!
//! A round holds integers only: numbers of ranks, sums, sums of squares, extremes. Integer addition
//! is associative and commutative, so that the front-end's round is the same to the bit whatever
//! the shape of the tree; means and standard deviations are computed from it where they are shown.
//!
//! Ranks are here always MPI ranks, numbered as in `MPI_COMM_WORLD`. Where tables come from, when
//! they are read and how a round is shown is not this crate's concern.
//!
//! ```
//! use sapwood_profile::{Counters, EventKey, RankProfile, Round};
//!
//! let mut round = Round::new(2);
//! for (rank, time_ns) in [(0, 300), (1, 500)] {
//!     let mut profile = RankProfile::new(rank, 2);
//!     let event = EventKey::Region("solve".into());
//!     profile.events.insert(event, Counters { count: 1, time_ns, bytes: 0 });
//!     round.add(&profile)?;
//! }
//! let (event, statistics) = &round.events()[0];
//! assert_eq!(event.to_string(), "solve");
//! assert_eq!(statistics.time_ns.sum(), 800);
//! assert_eq!(statistics.time_ns.mean(), 400.0);
//! assert_eq!(statistics.time_ns.standard_deviation(), Some(100.0));
//! assert_eq!(statistics.time_ns.max_rank(), 1);
//! # Ok::<(), sapwood_profile::ProfileError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod activity;
mod activity_codec;
mod class;
mod classification;
mod codec;
mod columns;
mod delta;
mod delta_filter;
mod error;
mod escape;
mod event;
mod figures;
mod filter;
mod function;
mod histogram;
mod load;
mod measure;
mod merging;
mod outliers;
mod rank;
mod rank_values;
mod report;
mod round;
mod rows;
mod sizes;
mod statistics;
mod table;
mod tally;
mod three_phase;

pub use activity::{
    ACTIVITY_KINDS_MAX, Activities, Activity, ActivityKind, ActivityStatistics, CallInProgress,
    Condition, OpenReceiveCall, Peer,
};
pub use class::{Class, ClassTotal};
pub use classification::{CLASSES_MAX, ClassId, Classification, LEFT_OUT_MAX, RankClass, Scheme};
pub use delta::{RoundHistory, delta_base};
pub use delta_filter::PROFILE_CHANGES;
pub use error::ProfileError;
pub use event::{EventKey, REGION_NAME_BYTES_MAX, SizeClass};
pub use figures::{Figure, Figures};
pub use filter::{PROFILE_STATISTICS, register};
pub use function::{Function, FunctionId};
pub use histogram::{HistogramSketches, SKETCH_BINS, SketchBins};
pub use load::{Efficiency, Load, TimeShare};
pub use measure::{MEASURES_MAX, Measure, push_measures, read_measures};
pub use merging::Part;
pub use outliers::{
    Deviation, Deviations, HOSTS_MAX, HostSum, Medians, OUTLIERS_MAX, SKETCH_SIZE, Spread,
    push_medians, read_medians, score,
};
pub use rank::{Counters, Metric, RankProfile, RankState};
pub use rank_values::{RANK_BINS_MAX, RANK_METRICS, RankValues};
pub use report::{
    Cause, END_KINDS_MAX, EndKind, EndStatistics, PROGRAMS_MAX, RANK_REPORTS, RankReport, ToolEnd,
    add_programs,
};
pub use round::{EVENTS_MAX, Round};
pub use rows::{RankRow, RankRows};
pub use sizes::{SIZE_CLASSES, SizeHistogram};
pub use statistics::{EventStatistics, MetricStatistics};
pub use table::{MPICH_ABI, Moment, OPENMPI_ABI, STANDARD_ABI, STATE_OFFSET, TableReader};
pub use tally::{Tally, TallyKind};
pub use three_phase::{
    ALL_BINS_MAX, BINS_MAX, BinCounts, Counts, Extremes, Limits, Range, push_limits, read_limits,
};
