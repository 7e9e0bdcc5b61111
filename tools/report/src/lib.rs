//! What is shown of a profile: the live table while a program runs, and the files of a report when
//! it has ended.
//!
//! [`LiveTable`] turns a round into text of a given width. [`Report`] is everything that is known
//! at the end; [`Report::write`] leaves it in a folder:
//!
//! | file | for | what |
//! |---|---|---|
//! | `report.txt` | a reader | the facts of the job, losses, classes, the table of all events |
//! | `profile.json` | a program | the same, exact, as `docs/schema/profile-1.json` describes it |
//! | `ranks.parquet` | an analysis | every event of every rank, one row each |
//!
//! While the program runs, [`RoundsFile`] adds a line to `rounds.ndjson` for each round, and
//! [`Report::write_summary`] replaces the first two from time to time.
//!
//! [`freeze`] is what a frozen job leaves, [`scope`] what a scope gathers of events, [`why`] why a
//! job is slow or stuck, [`ends`] how its ranks ended.
//!
//! All statistics were reduced in the tree or come from rows that passed it unreduced; nothing is
//! measured here. How a terminal is repainted, and when, is not this crate's concern.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod analysis;
mod atomic;
mod communicator;
pub mod ends;
mod error;
pub mod freeze;
mod hosts;
mod intervals;
mod json;
mod load;
mod loss;
mod lost_places;
mod messages;
mod mixed_calls;
mod mpi_call;
#[cfg(feature = "parquet")]
mod parquet_rows;
mod paused;
pub mod quantity;
pub mod record;
mod report;
mod rounds_file;
pub mod scope;
pub mod stacks;
mod standstill;
mod table;
mod tallies;
mod text;
mod told_to_end;
mod uneven_calls;
mod uninitialised;
mod waits;
pub mod why;

pub use analysis::Analysis;
pub use atomic::{
    is_descriptor, is_descriptor_name, replace_named, write as write_whole, write_named,
};
pub use error::ReportError;
pub use hosts::{FirstLost, HostRanks};
pub use intervals::{Interval, Intervals};
pub use json::{FirstFacts, HostFacts, Profile, TreeFacts};
pub use loss::{Missing, Outdated};
pub use mixed_calls::{MixedCall, MixedCalls};
pub use mpi_call::kind_word;
pub use paused::PausedTracing;
pub use record::RoundRecord;
pub use report::{REPORT_FILES, Report, Tree};
pub use rounds_file::{ROUNDS_BYTES_MAX, ROUNDS_FILE, RoundsFacts, RoundsFile, RoundsReader};
/// Times as the documents and files of this crate hold them.
pub use sapwood_packet::nanoseconds;
pub use standstill::{ENDING_TIME, Entry, Episode, Standstill, Standstills};
pub use table::LiveTable;
pub use tallies::{Calls, Pair, Peers, Tallies};
pub use text::{cut, is_hidden, printable, ranks_text};
pub use told_to_end::ToldToEnd;
pub use uneven_calls::{CallCount, UnevenCalls};
pub use uninitialised::{InInit, Uninitialised};
