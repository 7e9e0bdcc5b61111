//! Events of programs: rings of records, which ranks wait for which, and for how long.
//!
//! A rank of an MPI program writes what it does into rings of an event file that it shares
//! ([`EventFile`], [`Record`]); a leaf of the tree reads them behind the writer's back
//! ([`RingCursor`]) and gives the events to an [`Observer`]. What it gathers of them ([`Gathered`])
//! is merged on its way up by the filter `trace-waits` ([`register`]), and put together over rounds
//! in the front-end's [`Ledger`]. That tells the leaves how each collective has ended
//! ([`Settled`]), from which each tells how long its own ranks have waited in it. A collective
//! whose processes are all at one leaf ends there: only sums go up, unless there is more to tell of
//! it, as that its processes called different functions.
//!
//! What the kernel counts of the ranks' TCP connections travels with it ([`TcpFlow`]), so that slow
//! ones are found under collectives, too ([`slow_flows`]).
//!
//! A freeze ([`Frozen`]) is the raw events of the last seconds, which the filter `trace-freeze`
//! puts side by side; [`Relations`] says which of them belong together.
//!
//! The waves of a tree are followed by the events that its processes note ([`HopTrace`]): whose
//! part came last, what each link and each process took, and which of these the answer waited for.
//!
//! The trees of bypassed reductions are followed by the hops that their processes note in the
//! ranks' event files ([`BypassHop`]), put together by reduction ([`BypassTrace`]).
//!
//! A scope ([`Scope`]) says which events are wanted and which value of them; what leaves make of
//! their ranks' events ([`ScopeFigures`]) is merged by the filter `trace-scope`. A scope over hops
//! ([`HopScope`]) does the same with the times of waves and packets in a tree, or with those of the
//! operations of a group.
//!
//! **Identity.** A collective is known by its communicator's identity, on which all its processes
//! agree, and its number on that communicator; a message by its communicator, sender, receiver and
//! tag, and its number among these. Events that were overwritten, or whose number is not known,
//! are counted and take part in nothing: no wait is a guess.
//!
//! **Waits.** The wait of a process in a collective is the time in its call before the one came
//! for which it waits: the last one, or the root, or for a root the last of the others
//! ([`Pattern`]). The wait of a receive is the time in its call before the matching send began,
//! the last of several in one call. Times of different clocks are compared within the errors of
//! these clocks only; what lies inside is counted as undecided.
//!
//! ```
//! use sapwood_trace::{Arrival, Called, Gathered, Instance, Ledger, Pattern};
//!
//! let mut ledger = Ledger::default();
//! let called = Called::without_root(17);
//! for (rank, time) in [(0, 1_000), (1, 9_000)] {
//!     let arrival = Arrival { time, rank, ..Arrival::default() };
//!     let mut gathered = Gathered::default();
//!     gathered.add_instance((7, 1), &Instance::of(called, Pattern::All, 2, arrival));
//!     ledger.absorb(gathered);
//! }
//! let settled = ledger.take_settled(10);
//! assert_eq!(settled[0].culprit.map(|culprit| culprit.rank), Some(1));
//! assert_eq!(ledger.findings().made[&1].last, 1);
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod amount;
mod bypass;
mod bypass_hop;
mod clock;
mod codec;
mod conclusion;
mod coscheduling;
mod culprit;
mod damage;
mod deviation;
mod dropped;
mod entered;
mod error;
mod event;
mod exchange;
mod file;
mod filter;
mod frozen;
mod frozen_codec;
mod frozen_instance;
mod frozen_passage;
mod gathered;
mod hops;
mod instance;
mod ledger;
mod link;
mod message;
mod mixture;
mod observer;
mod open;
mod place;
mod relation;
mod ring;
mod scope;
mod scope_figures;
mod scope_windows;
mod standing;
mod standing_codec;
mod straggler;
mod tcp_flow;
mod total;
mod verdict;
mod words;

pub use amount::Unequal;
pub use bypass::{BYPASS_EDGES_MAX, BypassEdge, BypassFigures, BypassTime, BypassTrace};
pub use bypass_hop::{BypassHop, BypassHopKind, HOP_WORDS};
pub use clock::{HostClock, READING_ERROR_NS};
pub use coscheduling::Coscheduling;
pub use culprit::{Culprit, culprits};
pub use damage::RecordBounds;
pub use dropped::{DroppedRings, RankRing};
pub use entered::Entered;
pub use error::TraceError;
pub use event::{Event, EventKind, RECORD_WORDS, Record};
pub use exchange::{Exchange, ExchangeReceived, Taken, TakerWait};
pub use file::{EventFile, FileClock, HEADER_WORDS, Space, settled_spaces, since_words, spaces};
pub use filter::{TRACE_WAITS, register};
pub use frozen::{
    FROZEN_EVENTS_MAX, Frozen, FrozenEvent, FrozenRank, FrozenRing, FrozenSeat, RANK_EVENTS_MAX,
};
pub use frozen_codec::TRACE_FREEZE;
pub use frozen_instance::{FrozenInstance, Relations};
pub use frozen_passage::{FrozenDeparture, FrozenPassage};
pub use gathered::{COUNTERS, Counter, ENTRIES_MAX, Gathered, Made, Waited};
pub use hops::{
    Blame, BlameShare, EdgeFigures, Figure, HOP_BYTES_PER_S, HopBy, HopClock, HopCollective,
    HopKey, HopLosses, HopMeasure, HopOperation, HopProcess, HopRole, HopScope, HopSource,
    HopTrace, HopTraffic, HopValue, OneWay, ProcessFigures, RECENT_EVENTS, ScopedHops,
    StreamFigures,
};
pub use instance::{Arrival, Instance, InstanceKey, Latecomer, Pattern};
pub use ledger::{EventWaits, Findings, Ledger};
pub use link::{LINK_BYTES_MIN, Link, LinkFigures, STRETCH_MESSAGES};
pub use message::{Awaited, Beside, CallKey, MessageKey, ReceivingCall, Sent, Wait, wait};
pub use mixture::{Called, Callers, Kinds, Minority, Mixture, Unfinished};
pub use observer::{Circumstances, Observer, SETTLED_WORDS, Settled};
pub use open::OpenMessages;
pub use place::{
    LateKey, LateTimes, Lateness, MESSAGES, OTHERS, Outlier, PlaceFigures, PlaceKey, PlaceWaits,
    WholeCollectives,
};
pub use relation::{Operation, Place, Waiting};
pub use ring::RingCursor;
pub use scope::{
    BYTES_PER_S, CPU_PPM, SCOPE_VALUES, Scope, ScopeBy, ScopeReduction, ScopeValue, TOP_GROUPS_MAX,
    WINDOW_MAX, matches_pattern,
};
pub use scope_figures::{
    SCOPE_COUNTERS, SCOPE_GROUPS_MAX, ScopeCounter, ScopeFigures, ScopeKey, ScopeStatistics,
    TRACE_SCOPE,
};
pub use scope_windows::{ScopeWindows, WindowOwner, WindowRule};
pub use standing::{
    CallKind, ENDING, FILES, OPEN_RECEIVES_MAX, OpenReceive, OpenRequests, Posture, Presence,
    SEATS_MAX, Seat, Side, Source, Standing, Standpoint, WINDOWS,
};
pub use standing_codec::TRACE_STANDING;
pub use tcp_flow::{SlowFlow, TcpEnds, TcpFigures, TcpFlow, TcpSocket, TcpTrace, slow_flows};
pub use total::Total;
pub use verdict::{Difference, Doing, Finding, Odd, Verdict};
