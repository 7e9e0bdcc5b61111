//! A tree of processes that asks every process of a job, and returns one merged answer with the
//! missing processes named.
//!
//! The front-end opens a [`Network`] over a [`Topology`], opens [`Stream`]s to sets of back-ends,
//! sends packets down and receives [`Answer`]s. A back-end is a [`BackEnd`]: it receives packets
//! and sends its own up, where filters in the tree combine them.
//!
//! ```no_run
//! use sapwood::{Network, Program, Tag};
//!
//! const SAMPLE: Tag = 100;
//!
//! fn main() -> sapwood::Result<()> {
//!     let mut network = Network::open("4^2".parse()?, Program::new("./worker"))?;
//!     let mut load = network.stream(&network.everyone()).up("sum").open()?;
//!     load.broadcast(SAMPLE, 5_i32)?;
//!     let answer = load.recv()?;
//!     println!("{} from {}", answer.value()?.scalar::<i32>(0)?, answer.contributors);
//!     network.close()
//! }
//! ```
//!
//! The library installs no signal handler. It starts threads only for filters and rules that are
//! loaded from files or are slow, and one for each [`Group`]. A network and what comes from it stay
//! on the thread that made them.
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod address_file;
mod answer;
mod asking;
mod attach_file;
mod back_end;
mod clocks;
mod draft;
mod error;
mod extension;
mod group;
mod inquiry;
mod join;
mod join_file;
mod launcher;
mod network;
mod program;
mod resumption;
mod shared;
mod starting;
mod status;
mod stream;
mod visible;

pub use address_file::AddressFile;
pub use answer::Answer;
pub use asking::PendingAnswer;
pub use attach_file::{AttachFile, join};
pub use back_end::{BackEnd, Received};
pub use clocks::{Clock, Clocks, Drift};
pub use error::{Error, Result, StartFailure};
pub use extension::{serve, serve_until};
pub use group::{
    BypassCount, Delivery, Group, GroupAnswer, GroupBuilder, GroupFailure, GroupMember,
    GroupOperation, GroupRequest, Number, ask_group, key_from_environment, trace_member,
};
pub use inquiry::Question;
pub use join_file::Attach;
pub use launcher::{Launcher, StartCommand};
pub use network::{Communicator, Network, NetworkBuilder};
pub use program::{Program, node_program};
pub use sapwood_extension::with_extensions;
pub use sapwood_extension::{FilterFile, PATH_VARIABLE as FILTER_PATH_VARIABLE};
pub use sapwood_filter::{
    AnySketch, CLASS_CONTENT_BYTES_MAX, Class, Classes, Distinct, Emitter, EquivalenceClass,
    EquivalenceClasses, Filter, FilterError, FilterSpec, Fold, HeavyHitters, Histogram,
    HistogramBin, Hitter, Item, ItemSet, Kll, Moments, PrefixNode, PrefixTree, Quantiles, Registry,
    Statistics, TopEntry, TopK, TopNumber, WaveRef, WaveRule,
};
pub use sapwood_filter::{Arrivals, FilterSource, ShippedFile, Synchronisation, Verdict};
pub use sapwood_group::status as group_status;
pub use sapwood_group::{
    CastId, Element, FoldId, GROUP_HOPS_MAX, GroupHop, GroupHopCursor, GroupHopKind,
    GroupHopOperation, GroupHopQuestion, MemberHops, MemberId, Operation as Reduction, OperationId,
    PartCount, Reason, ReduceCounts, Refusal, TreeKind,
    limits::NAMES_MAX as GROUP_NAMES_MAX,
    message::Life,
    trees::{Step, UnknownTree, Why},
};
pub use sapwood_launch::{own_process_id, run_launch_agent};
pub use sapwood_node::{
    AffectedWaves, ArrivalSums, AttachPoint, Cause, ChildSums, Event, FILTER_LIMIT, HOP_EVENTS,
    HOP_EVENTS_MAX, HopEvent, HopForm, HopKind, HopQuestion, HopWave, HopWaves, LastArrival,
    LinkRecord, Missing, NodeError, NodeRecord, PartArrival, Policy, ProcessHops, Records,
    Recovery, StreamSums,
};
pub use sapwood_packet::{
    FIRST_TAG, Format, IntoValues, OutOfMemory, Packet, PacketError, Rank, RankSet, Recipients,
    StreamId, Tag, Values, ValuesRef, Wave,
};
pub use sapwood_runtime::{
    KEY_VARIABLE, LOG_FILE_VARIABLE, LOG_VARIABLE, TracedMember, TransportKind,
};
pub use sapwood_topology::{Hosts, Role, Shape, Topology};
pub use sapwood_transport::Key;
pub use status::{Health, NodeStatus, Status};
pub use stream::{Stream, StreamBuilder};
pub use visible::{
    NetworkName, PreparedName, VisibleNetwork, existing_runtime_folder, runtime_folder,
};
