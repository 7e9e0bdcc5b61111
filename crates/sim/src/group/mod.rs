//! Groups of real [`sapwood_group::Member`]s on a virtual clock, over a modelled network.
//!
//! The network follows LogP with different latencies (Culler and others, PPoPP'93; Bhat,
//! Raghavendra and Prasanna's heterogeneous form): clusters, network cards and wide-area pipes of
//! finite bandwidth, probes with noise. Schedules draw faults and operations from a seed, and an
//! oracle judges what the members deliver and answer.

mod connection;
mod folding;
mod layout;
mod oracle;
mod queue;
mod reference;
mod schedule;
mod trial;
mod turnover;
mod wire;
mod world;

pub use folding::{CIRCLE, LINES};
pub use layout::{Busy, Network};
pub use oracle::Breach;
pub use queue::Overfull;
pub use reference::{near_optimal, static_completion};
pub use schedule::{Verdict, run_schedule, run_schedule_of_defining, run_schedule_of_taking};
pub use trial::{Start, TimedBroadcast, Trial, Unsteady};
pub use turnover::Turnover;
pub use world::{GroupWorld, ObservedEvent};
