//! The floor of Sapwood's benchmarks: a tree of plain *blocking* processes.
//!
//! A round trip of 200 us means nothing by itself on a shared virtual machine. It means something
//! beside the time that the simplest honest program takes for the same work, at the same moment, in
//! the same placement. This crate is that program: one process per node, one blocking socket per
//! edge, no streams, no credit, no deadlines in the nodes, no recovery, no authentication.
//!
//! - [`Floor`] starts a tree and measures round trips, streamed waves and bytes in bulk on it;
//! - [`startup`] measures how fast the same number of processes can be started and connect once;
//! - [`statistics`] condenses repeated runs and pairs them into ratios;
//! - [`process`] places and measures processes, Sapwood's own included.
//!
//! The nodes are the calling program again, with hidden arguments, so that program begins with
//! [`run_hidden`]:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use sapwood_floor::{Floor, Transport};
//!
//! fn main() -> ExitCode {
//!     let arguments: Vec<_> = std::env::args_os().skip(1).collect();
//!     if let Some(ended) = sapwood_floor::run_hidden(&arguments) {
//!         return ended;
//!     }
//!     let measured = Floor::start(&[4, 4], Transport::Unix, Some(0))
//!         .and_then(|mut floor| floor.round_trip(64, 1000, 100));
//!     match measured {
//!         Ok(round_trip) => println!("{:.1} us", round_trip.median_us()),
//!         Err(error) => eprintln!("{error}"),
//!     }
//!     ExitCode::SUCCESS
//! }
//! ```
//!
//! What the figures show and what they do not: `labs/README.md`.

#![deny(missing_docs)]

mod bulk;
mod error;
mod experiment;
mod link;
mod node;
mod packet;
pub mod process;
mod shape;
pub mod startup;
pub mod statistics;
mod tree;

use std::ffi::OsString;
use std::process::ExitCode;

pub use bulk::Transfer;
pub use error::Error;
pub use experiment::{PACKETS_PER_WRITE, Pipelined, ROUNDS_MAX, RoundTrip, WRITE_BYTES_MAX};
pub use link::Transport;
pub use packet::{
    ANSWER_PAYLOAD_BYTES_MAX, BULK_PACKET_BYTES_MAX, COMMAND_PAYLOAD_BYTES, HEADER_BYTES, Load,
};
pub use shape::{Shape, TREE_LEVELS_MAX, TREE_PROCESSES_MAX};
pub use tree::{EXPERIMENT_DEADLINE, Floor, NodeUsage, Place, Plan};

/// Runs this process as a part of a floor if its arguments (without the program's name) say so:
/// `floor-node ...` is a node of a tree, `floor-connect NAME` a process of the start-up experiment.
/// `None` for any other arguments. Call it first in `main`, before anything opens a descriptor.
pub fn run_hidden(arguments: &[OsString]) -> Option<ExitCode> {
    let (first, rest) = arguments.split_first()?;
    match first.to_str()? {
        node::NODE_ARGUMENT => Some(node::run(rest)),
        startup::CONNECT_ARGUMENT => Some(startup::connect(rest)),
        _ => None,
    }
}
