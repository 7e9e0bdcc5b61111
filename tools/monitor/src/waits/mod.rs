//! Which ranks wait for which: the events of the ranks' event files, gathered by the leaves and put
//! together by the front-end. How they are matched is `sapwood-trace`'s.
//!
//! Each question tells the leaves how the collectives of earlier answers have ended; with the next
//! answer they tell how long their ranks have waited in them. Collectives whose processes are all
//! at one leaf end there.

mod calls;
mod facts;
mod inquiry;
mod kinds;
mod leaf;
mod question;
mod reading;
mod whole_record;

pub(crate) use calls::TimeInCalls;
pub(crate) use facts::facts;
pub(crate) use inquiry::{WaitsInquiry, WaitsNews, offsets};
pub(crate) use leaf::{LeafWaits, RankEvents};
pub(crate) use question::{Question, WAITS, WaitsQuestion};
pub(crate) use whole_record::whole_record;

/// The variable that has ranks record from the start.
pub(crate) const VARIABLE: &str = "SAPWOOD_MPI_WAITS";
/// The variable that says how large a ring is.
pub(crate) const RING_VARIABLE: &str = "SAPWOOD_MPI_RING_BYTES";
/// The variable that has ranks note hops of bypassed reductions while they record.
pub(crate) const HOPS_VARIABLE: &str = "SAPWOOD_MPI_HOPS";
