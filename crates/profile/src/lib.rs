//! Profiles of programs: the counts of each MPI rank, and their statistics over all ranks.
//!
//! An MPI rank counts in a table that it shares; [`TableReader`] decodes a copy of it into a
//! [`RankProfile`]: [`Counters`] per [`EventKey`]. A leaf of the tree folds the profiles of its MPI
//! ranks into a [`Round`], and the filter `profile-statistics` ([`register`]) merges rounds on
//! their way up. At the end [`RankRows`] carries the profiles themselves, unreduced.
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
mod codec;
mod error;
mod event;
mod filter;
mod function;
mod load;
mod rank;
mod round;
mod rows;
mod statistics;
mod table;

pub use activity::{
    ACTIVITY_KINDS_MAX, Activities, Activity, ActivityKind, ActivityStatistics, Condition, Peer,
};
pub use class::{Class, ClassTotal};
pub use error::ProfileError;
pub use event::{EventKey, REGION_NAME_BYTES_MAX, SizeClass};
pub use filter::{PROFILE_STATISTICS, register};
pub use function::{Function, FunctionId};
pub use load::{Efficiency, Load, TimeShare};
pub use rank::{Counters, Metric, RankProfile, RankState};
pub use round::{EVENTS_MAX, Round};
pub use rows::{RankRow, RankRows};
pub use statistics::{EventStatistics, MetricStatistics};
pub use table::{Moment, TableReader};
