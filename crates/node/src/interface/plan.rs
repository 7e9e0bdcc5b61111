//! What a node is told of the tree: its children, and the processes that take connections.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet};

/// A child that this node is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildPlan {
    /// Its rank.
    pub rank: Rank,
    /// The back-ends of its subtree; itself alone when it is one.
    pub back_ends: RankSet,
    /// What it will be told, as the topology encodes it; empty for a back-end.
    pub plan: Vec<u8>,
}

/// A process that back-ends may connect to by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachPoint {
    /// The process's rank.
    pub parent: Rank,
    /// Where it takes connections.
    pub address: String,
    /// The ranks that are kept for members that join.
    pub ranks: RankSet,
}

/// The first rank that a topology never has.
pub const DYNAMIC_RANKS_BEGIN: Rank = 1 << 31;

/// How many ranks a process of the topology may give to members that were not planned.
pub const DYNAMIC_RANKS_PER_PROCESS: u32 = 4096;
