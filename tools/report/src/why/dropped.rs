//! Which rings have lost most events, so that it is seen whether it is those of one rank or of all.

use sapwood_trace::{DroppedRings, Findings};
use serde::{Deserialize, Serialize};

use crate::quantity::whole;

/// Rings that a line names, at most; JSON of a scope has all that a packet had.
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
    fn text(&self) -> String {
        format!("{} of rank {} (thread {})", whole(self.events.into()), self.rank, self.thread)
    }

    /// What stands behind the number of all events that were overwritten; nothing without a ring.
    /// How many other rings there are is not known: a packet has no room for all.
    pub(crate) fn told(rings: &[Self]) -> String {
        let told = rings.iter().take(RINGS_MAX).map(Self::text).collect::<Vec<_>>().join(", ");
        match rings.len() {
            0 => String::new(),
            1..=RINGS_MAX => format!(": {told}"),
            _ => format!(": {told}, the rest of other rings"),
        }
    }
}
