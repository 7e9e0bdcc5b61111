//! The way of waves through a tree, out of the events that its processes note.
//!
//! A *passage* is one question with its answer, or one wave that was sent unasked. Its events are
//! joined over all processes by stream and number, and give:
//!
//! - per process and child: in which order the parts came, how long each lay there before the last
//!   one came (arrival wait), and how much longer than the fastest a packet took to each child
//!   (departure wait);
//! - per link: the latency up and down, by clocks that are aligned, and the two-way latency out of
//!   four time stamps, for which no clocks need be aligned: the time from sending the question to
//!   the answer at the parent, less the time from question to answer at the child;
//! - over the whole tree: which links and processes the answer waited for. The time of an answer is
//!   cut along the path of the parts that came last into parts that add up to it.
//!
//! A scope ([`HopScope`]) selects and groups these times, and has figures of its own.
//!
//! Source: L. A. Bongo, O. J. Anshus, J. M. Bjorndalen, "Collective communication performance
//! analysis within the communication system", Euro-Par 2004 (load-balance and statistics monitors,
//! latencies out of the time stamps of both ends).

mod figures;
mod passage;
mod scope;
mod trace;
mod traffic;

pub use figures::{
    Blame, BlameShare, EdgeFigures, Figure, HopLosses, OneWay, ProcessFigures, RECENT_EVENTS,
    StreamFigures,
};
pub use passage::{HopClock, HopProcess};
pub use scope::{HOP_BYTES_PER_S, HopBy, HopKey, HopMeasure, HopScope, HopValue, ScopedHops};
pub use trace::HopTrace;
pub use traffic::{HopCollective, HopOperation, HopRole, HopSource, HopTraffic};
