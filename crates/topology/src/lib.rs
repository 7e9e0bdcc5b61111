//! The shape of the tree: the parent, host and rank of each process.
//!
//! A user says a shape in a few characters (`"4^3"`), in the notation of MRNet's topology generator
//! (`"b:4^3"`, `"k:2@16"`, `"g:2:3,5"`) or in a topology file. This crate turns each of them into
//! one [`Topology`]: every process with its role, host, rank, parent and children. From it the
//! crate cuts the [`Subtree`] that one child receives, draws the tree, counts it and predicts with
//! a published model what a wave through it costs.
//!
//! ```
//! use sapwood_topology::{Hosts, Shape, Topology};
//!
//! let shape: Shape = "4^3".parse()?;
//! let topology = Topology::from_shape(&shape, &Hosts::local());
//! assert_eq!(topology.back_end_count(), 64);
//! assert_eq!(topology.root().rank(), 64); // back-ends come first: 0..64
//! # Ok::<(), sapwood_topology::Error>(())
//! ```
//!
//! The crate is pure: it opens no file, resolves no host name and starts nothing. The caller
//! reads a topology file and hands its text to [`Topology::from_file_text`].
//!
//! What lives where: `shape` holds the shapes and their sizes, `spec` their text form, `hosts`
//! the placement on hosts, `ranks` the numbering, `tree` the finished [`Topology`], `subtree`
//! the plan for one child, `mrnet_file` the file format, `draw` the pictures, `cost` the model,
//! `advise` the choice of a tree, `nodeset` the language for sets of host names, `hostfile` the
//! files that list hosts.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod advise;
mod cost;
mod draw;
mod error;
mod hostfile;
mod hosts;
mod limits;
mod mrnet_file;
mod nodeset;
mod on_hosts;
mod over_hosts;
mod ranks;
mod regrown;
mod shape;
mod spec;
mod statistics;
mod subtree;
mod switches;
mod tree;

pub use advise::{Candidate, Kind, Pattern, Site, advise, judge};
pub use cost::{LogGp, Prediction, compare};
pub use draw::{DRAWN_CHILDREN_MAX, DRAWN_LINES_MAX};
pub use error::Error;
pub use hostfile::{HostList, SLOTS_MAX, uncommented};
pub use hosts::{HostName, Hosts, Placement};
pub use limits::{DEPTH_MAX, FAN_OUT_MAX, HOST_INDEX_MAX, HOST_NAME_BYTES_MAX, NODES_MAX};
pub use nodeset::{Folding, Groups, NODESET_NAME_BYTES_MAX, NODESET_NAMES_MAX, NoGroups, NodeSet};
pub use shape::Shape;
pub use statistics::{LevelCount, Statistics};
pub use subtree::{PlannedNode, Subtree};
pub use switches::Switches;
pub use tree::{Ancestors, Node, Role, Topology};

/// The number of a process in one tree.
///
/// Back-ends have ranks `0..N` from left to right, the front-end has rank `N`, communication
/// processes have `N+1..` in breadth-first order.
pub type Rank = u32;
