//! The ranks for which a child may speak, and how long its messages may be.

use sapwood_packet::{Rank, RankSet, RankSetRef};
use sapwood_wire::limits::{ANCESTORS_MAX, CONTROL_BYTES_MAX, STATE_BYTES_MAX, TEXT_BYTES_MAX};

use crate::interface::DYNAMIC_RANKS_BEGIN;

/// Most ranges of back-ends that were not planned in one set: beyond those of the plan, a set in a
/// control message has no more.
pub(crate) const DYNAMIC_RANGES_MAX: usize = 1 << 16;

/// Most ranges of processes that one back-end has left.
pub(crate) const FORMER_RANGES_MAX: usize = 4096;

/// What one range takes in a control message at most, in bytes.
pub(crate) const RANGE_BYTES: usize = 10;

/// What a message takes at most besides its sets, texts, lists and values, in bytes.
pub(crate) const FIXED_BYTES: usize = 4096;

/// What an attach point takes, in bytes.
pub(crate) const ENTRY_BYTES: usize = 256;

/// What those of processes that were not planned take at most, in bytes.
pub(crate) const JOINED_BYTES: usize = 1 << 20;

/// How far a child that was an orphan has come in being taken in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It is no orphan, or has told all.
    #[default]
    Settled,
    /// It has been welcomed, and has to say what it brings.
    Welcomed,
    /// It tells how far its streams are.
    Resuming,
}

/// The ranks for which a child may speak.
#[derive(Clone, Debug, Default)]
pub(crate) struct Authority {
    /// The planned back-ends of its subtree, itself if it is one. Empty for a process that has
    /// joined: it brings only back-ends that were not planned.
    pub(crate) domain: RankSet,
    /// Whether it is a back-end: it speaks for itself alone.
    pub(crate) is_back_end: bool,
    pub(crate) stage: Stage,
    /// Whether it has committed a breach.
    pub(crate) is_distrusted: bool,
    /// How many notices it has sent.
    pub(crate) notices: u32,
}

impl Authority {
    /// Whether all of these back-ends may be below it, or be it. Any communication process may
    /// bring back-ends that were not planned.
    pub(crate) fn speaks_for(&self, back_ends: RankSetRef<'_>) -> bool {
        if self.is_back_end {
            return back_ends.is_within(self.domain.as_ref());
        }
        let (planned, rest) = split_at_dynamic(back_ends);
        rest.first().is_none_or(|range| is_dynamic(range[0]))
            && planned.is_within(self.domain.as_ref())
    }

    /// Most ranges that a set of back-ends of its subtree has.
    pub(crate) fn ranges_max(&self) -> usize {
        let planned = usize::try_from(self.domain.len()).unwrap_or(usize::MAX);
        planned.saturating_add(if self.is_back_end { 0 } else { DYNAMIC_RANGES_MAX })
    }

    /// What lists with an entry for each process of its subtree take at most, in bytes.
    pub(crate) fn lists_max(&self) -> usize {
        let planned = usize::try_from(self.domain.len()).unwrap_or(usize::MAX);
        let processes = planned.saturating_mul(ANCESTORS_MAX);
        processes.saturating_mul(ENTRY_BYTES).saturating_add(JOINED_BYTES)
    }

    /// How long a message of that name may be, in bytes.
    pub(crate) fn length_max(&self, name: &str) -> usize {
        let sets = |sets: usize| sets.saturating_mul(self.ranges_max() * RANGE_BYTES);
        let most = match name {
            "Rejoin" => sets(3).saturating_add(FORMER_RANGES_MAX * RANGE_BYTES + FIXED_BYTES),
            _ if self.is_back_end => FIXED_BYTES + TEXT_BYTES_MAX,
            // Attach points, orphans or streams: some for each process.
            "Reached" | "Repaired" => sets(1).saturating_add(self.lists_max()),
            "State" => sets(1).saturating_add(STATE_BYTES_MAX + FIXED_BYTES),
            "Lost" | "Broken" | "Fault" | "Superseded" | "Failed" | "Notice" => {
                sets(1).saturating_add(TEXT_BYTES_MAX + FIXED_BYTES)
            }
            _ => FIXED_BYTES,
        };
        most.min(CONTROL_BYTES_MAX)
    }
}

/// The ranges of planned back-ends, and those that reach beyond.
pub(crate) fn split_at_dynamic(set: RankSetRef<'_>) -> (RankSetRef<'_>, &[[Rank; 2]]) {
    let ranges = set.ranges();
    let (planned, rest) = ranges.split_at(ranges.partition_point(|r| r[1] < DYNAMIC_RANKS_BEGIN));
    (RankSetRef::from_ranges(planned).unwrap_or_default(), rest)
}

pub(crate) fn is_dynamic(rank: Rank) -> bool {
    rank >= DYNAMIC_RANKS_BEGIN
}
