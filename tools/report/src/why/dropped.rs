//! Which rings have lost most events, so that it is seen whether it is those of one rank or of all.

use sapwood_trace::Findings;
use serde::{Deserialize, Serialize};

use crate::quantity::{counted, whole};

/// Rings that are told.
const RINGS_MAX: usize = 3;

/// A ring of a rank of which events were overwritten before they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedRing {
    /// The rank.
    pub rank: u32,
    /// The number of the thread that writes it, in the rank.
    pub thread: u32,
    /// How many.
    pub events: u64,
}

impl DroppedRing {
    /// Those that have lost most, the first one most.
    pub(super) fn most_of(findings: &Findings) -> Vec<Self> {
        let most = findings.dropped.most(RINGS_MAX).into_iter();
        most.map(|(ring, events)| Self { rank: ring.rank, thread: ring.thread, events }).collect()
    }
}

/// What stands behind the number of all that were overwritten; nothing where no ring is known.
pub(super) fn rings_text(findings: &Findings) -> String {
    let most = DroppedRing::most_of(findings);
    if most.is_empty() {
        return String::new();
    }
    let told = most.iter().map(|one| {
        format!("{} of rank {} (thread {})", whole(one.events.into()), one.rank, one.thread)
    });
    let told = told.collect::<Vec<_>>().join(", ");
    match findings.dropped.len() - most.len() {
        0 => format!(": {told}"),
        more => format!(": {told}, the rest of {}", counted(more as u128, "other rings")),
    }
}
