//! Which ranks are to be named: those that made the others wait clearly more often and longer than
//! their share. One comes last in every collective; that alone accuses no rank.

use alloc::vec::Vec;
use core::cmp::Reverse;

use sapwood_packet::Rank;

use crate::gathered::Made;
use crate::ledger::Findings;
use crate::place::OTHERS;

/// Fewer calls that others waited in say nothing.
const TIMES_MIN: u64 = 10;
/// The others have waited at least this part of the run for it, on the mean: one hundredth.
const PART_OF_RUN: u64 = 100;

/// A rank that made the others wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Culprit {
    /// The rank.
    pub rank: Rank,
    /// What it did.
    pub made: Made,
    /// Its share of the calls in which a rank was waited for, from 0 to 1.
    pub share_of_times: f64,
    /// Its share of the time that was waited, from 0 to 1.
    pub share_of_time: f64,
}

/// The culprits of a run of this size that has lasted this long, those that others waited for most
/// first.
///
/// A rank is named if both its shares are a third of the way from an equal share to all: of two
/// ranks two thirds, of four a half, of many a third; and if the others have waited for it at
/// least a hundredth of the run.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "shares are compared roughly")]
pub fn culprits(findings: &Findings, world_size: u32, elapsed_ns: u64) -> Vec<Culprit> {
    let times = |made: &Made| made.last + made.sends + made.receives;
    let all_times: u64 = findings.made.values().map(times).sum();
    let all_time: u128 = findings.made.values().map(|made| u128::from(made.total_ns())).sum();
    let equal = 1.0 / f64::from(world_size.max(1));
    let least = equal + (1.0 - equal) / 3.0;
    let others = u64::from(world_size.saturating_sub(1).max(1));
    let mut named = Vec::new();
    for (&rank, made) in findings.made.iter().filter(|(rank, _)| **rank != OTHERS) {
        let share_of_times = times(made) as f64 / all_times.max(1) as f64;
        let share_of_time = made.total_ns() as f64 / all_time.max(1) as f64;
        let is_often = times(made) >= TIMES_MIN && share_of_times >= least;
        let is_long = made.total_ns() / others >= (elapsed_ns / PART_OF_RUN).max(1);
        if is_often && is_long && share_of_time >= least {
            named.push(Culprit { rank, made: *made, share_of_times, share_of_time });
        }
    }
    named.sort_by_key(|one| (Reverse(one.made.total_ns()), one.rank));
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(made: &[(u64, u64)]) -> Findings {
        let mut findings = Findings::default();
        for (rank, &(last, collective_ns)) in (0..).zip(made) {
            findings.made.insert(rank, Made { last, collective_ns, ..Made::default() });
        }
        findings
    }

    fn named(made: &[(u64, u64)], elapsed_ns: u64) -> Vec<Rank> {
        let size = u32::try_from(made.len()).expect("few");
        culprits(&findings(made), size, elapsed_ns).iter().map(|one| one.rank).collect()
    }

    #[test]
    fn the_rank_that_is_waited_for_is_named() {
        assert_eq!(named(&[(5, 10), (90, 3_000), (5, 20), (0, 0)], 10_000), [1]);
        assert_eq!(named(&[(90, 3_000), (10, 10)], 10_000), [0]);
    }

    #[test]
    fn no_rank_is_named_where_all_come_last_alike_or_little_is_waited() {
        assert_eq!(named(&[(25, 900), (24, 1_000), (26, 950), (25, 970)], 10_000), []);
        assert_eq!(named(&[(50, 900), (50, 1_000)], 10_000), []);
        // Often last, but by nothing.
        assert_eq!(named(&[(99, 30), (1, 0)], 10_000), []);
        // One long wait is no habit.
        assert_eq!(named(&[(50, 9_000), (50, 10)], 10_000), []);
        assert_eq!(named(&[(9, 9_000), (0, 0)], 10_000), []);
        assert_eq!(named(&[], 10_000), []);
    }
}
