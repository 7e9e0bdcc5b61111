//! The offsets of the clocks of a network's processes from the front-end's.
//!
//! Every process measures its children's clocks against its own, with the heartbeats that it sends
//! in any case; one wave of telemetry collects the results, and they are summed here along each
//! path from the front-end (P. Roth, D. Arnold and B. Miller, "MRNet: A Software-Based
//! Multicast/Reduction Network for Scalable Tools", SC 2003, section 4). The front-end so exchanges
//! messages with its own children only, however many processes there are.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sapwood_packet::{Rank, RankSet};
use sapwood_topology::Role;

use crate::{Result, Status};

/// One process's clock beside the front-end's.
///
/// A process's own clock is the system's monotonic one (`CLOCK_MONOTONIC`), which no one sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The process.
    pub rank: Rank,
    /// What it is.
    pub role: Role,
    /// Its host.
    pub host: String,
    /// By how much its own clock is ahead of the front-end's, in nanoseconds.
    pub ahead: i64,
    /// The error bound, in either direction. It is a guarantee and no estimate, as long as two
    /// clocks do not drift apart by more than 100 millionths.
    pub error: u64,
    /// The same as `ahead` for the wall clocks of both hosts (`CLOCK_REALTIME`), as they were set a
    /// moment ago.
    pub wall_ahead: i64,
}

/// The clocks of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The known ones, the front-end's first, each process before its subtree.
    pub known: Vec<Clock>,
    /// Processes with unknown clocks: they, or a process above them, have not answered.
    pub unknown: RankSet,
    taken: Instant,
}

/// By how much a clock runs faster than the front-end's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The process.
    pub rank: Rank,
    /// In millionths: microseconds a second.
    pub rate: f64,
    /// By how much that may be wrong, either way.
    pub error: f64,
}

impl Status {
    /// The clocks of the processes that have answered. The bounds become closer with each status
    /// query: it is one more sample of every link.
    #[must_use]
    pub fn clocks(&self) -> Clocks {
        let mut known: Vec<Clock> = Vec::with_capacity(self.nodes.len());
        let mut places: BTreeMap<Rank, usize> = BTreeMap::new();
        let mut unknown = RankSet::new();
        let own_wall = self.root().record.as_ref().map_or(0, |record| record.wall);
        for node in &self.nodes {
            let above = node.parent.and_then(|parent| places.get(&parent)).map(|&at| &known[at]);
            let skew = match (node.parent, above, node.link.and_then(|link| link.skew)) {
                (None, ..) => Some((0, 0)),
                (_, Some(above), Some((ahead, error))) => {
                    Some((above.ahead.saturating_add(ahead), above.error.saturating_add(error)))
                }
                _ => None,
            };
            let (Some((ahead, error)), Some(record)) = (skew, &node.record) else {
                unknown.insert(node.rank);
                continue;
            };
            let wall_ahead = ahead.saturating_add(record.wall.saturating_sub(own_wall));
            let (rank, role, host) = (node.rank, node.role, record.host.clone());
            places.insert(rank, known.len());
            known.push(Clock { rank, role, host, ahead, error, wall_ahead });
        }
        Clocks { known, unknown, taken: Instant::now() }
    }
}

impl Clocks {
    /// Measures with this many status queries, at least one: each is a sample of every link.
    pub(crate) fn after(questions: u32, mut ask: impl FnMut() -> Result<Status>) -> Result<Self> {
        for _ in 1..questions {
            ask()?;
        }
        Ok(ask()?.clocks())
    }

    /// A process's clock.
    #[must_use]
    pub fn of(&self, rank: Rank) -> Option<&Clock> {
        self.known.iter().find(|clock| clock.rank == rank)
    }

    /// How long after others these were taken.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Duration {
        self.taken.saturating_duration_since(earlier.taken)
    }

    /// How the clocks that are known in both have drifted since, in the order of these. The error
    /// becomes smaller with the time between.
    #[must_use]
    pub fn drift_since(&self, earlier: &Self) -> Vec<Drift> {
        let seconds = self.since(earlier).as_secs_f64();
        if seconds <= 0.0 {
            return Vec::new();
        }
        let drift = |clock: &Clock| {
            let before = earlier.of(clock.rank)?;
            let millionths = |nanoseconds: f64| nanoseconds * 1e-3 / seconds;
            Some(Drift {
                rank: clock.rank,
                rate: millionths(clock.ahead.saturating_sub(before.ahead) as f64),
                error: millionths(clock.error.saturating_add(before.error) as f64),
            })
        };
        self.known.iter().filter_map(drift).collect()
    }
}
