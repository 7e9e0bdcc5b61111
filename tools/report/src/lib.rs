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
//! All statistics were reduced in the tree or come from rows that passed it unreduced; nothing is
//! measured here. How a terminal is repainted, and when, is not this crate's concern.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod atomic;
mod error;
mod json;
mod load;
mod loss;
#[cfg(feature = "parquet")]
mod parquet_rows;
pub mod quantity;
mod report;
mod standstill;
mod table;
mod text;

pub use error::ReportError;
pub use loss::Missing;
pub use report::{Report, Tree};
pub use standstill::{Entry, Episode, Standstill, Standstills};
pub use table::LiveTable;
