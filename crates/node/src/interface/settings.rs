//! How a node begins: its role, its rank and what its process gives it.

use sapwood_filter::Registry;
use sapwood_packet::Rank;

use crate::interface::Recovery;

/// What a process is in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The root: the tool's process.
    FrontEnd,
    /// An inner process: routes and filters.
    Communication,
    /// A leaf: beside the application.
    BackEnd,
}

/// How a node begins.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What it is.
    pub role: Role,
    /// Its rank, if it knows it; a process that attaches may leave the choice to its parent.
    pub rank: Option<Rank>,
    /// Whether its parent has started it, rather than that it attaches by itself.
    pub is_started: bool,
    /// Its process id, for people.
    pub pid: u32,
    /// Where it takes connections, for people and for back-ends that attach.
    pub address: Option<alloc::string::String>,
    /// The filters that it can make.
    pub registry: Registry,
    /// What happens when processes are gone. Only a front-end's counts: it tells all others.
    pub recovery: Recovery,
}
