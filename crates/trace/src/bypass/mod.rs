//! Hops of bypassed reductions: events of the tree in which `libsapwood-bypass` folds the operands
//! of a communicator, read from the ranks' rings ([`crate::BypassHop`]), put together by reduction
//! ([`BypassTrace`]), and what each edge of these trees has taken ([`BypassFigures`]).
//!
//! The processes of such a reduction share one host and its clock, so that all times are compared
//! as they are. What is known of one reduction lies in the rings of all its ranks: the process
//! that folds a late part notes that for the place of another one. Only reductions of which every
//! hop is known count. They are summed up where all their hops have met: at a leaf if it has all of
//! their ranks, else further up. Until then the hops travel on.

mod figures;
mod trace;

pub use figures::{BYPASS_EDGES_MAX, BypassEdge, BypassFigures, BypassTime};
pub use trace::BypassTrace;
pub(crate) use trace::settle_whole;
