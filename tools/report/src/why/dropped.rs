//! Which rings have lost most events, so that it is seen whether it is those of one rank or of all.

use sapwood_trace::{DroppedRings, Findings};
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
        Self::of(&findings.dropped, RINGS_MAX)
    }

    /// The same of other events, at most as many.
    pub(crate) fn of(dropped: &DroppedRings, count: usize) -> Vec<Self> {
        let most = dropped.most(count).into_iter();
        most.map(|(ring, events)| Self { rank: ring.rank, thread: ring.thread, events }).collect()
    }

    /// How many events of which ring, for people.
    pub(crate) fn text(&self) -> String {
        format!("{} of rank {} (thread {})", whole(self.events.into()), self.rank, self.thread)
    }
}

/// What stands behind the number of all that were overwritten; nothing where no ring is known.
pub(super) fn rings_text(findings: &Findings) -> String {
    let most = DroppedRing::most_of(findings);
    if most.is_empty() {
        return String::new();
    }
    let told = most.iter().map(DroppedRing::text).collect::<Vec<_>>().join(", ");
    match findings.dropped.len() - most.len() {
        0 => format!(": {told}"),
        more => format!(": {told}, the rest of {}", counted(more as u128, "other rings")),
    }
}
