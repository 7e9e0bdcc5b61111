//! Iterations of the program that some ranks of a leaf have reached; `marks` fills and sends them.

use std::collections::BTreeMap;

use sapwood_profile::RankProfile;

/// Iterations that wait for a leaf's slower ranks; of more, the oldest go without these.
pub(crate) const WAITING_MAX: usize = 64;

/// Iterations of which some ranks of a leaf have come.
#[derive(Debug, Default)]
pub(crate) struct Iterations {
    pub(crate) waiting: BTreeMap<u64, Vec<RankProfile>>,
    /// The last one that was sent.
    pub(crate) sent: u64,
}
