//! The efficiencies of each interval between two rounds, in bounded memory.

use std::time::Duration;

use sapwood_profile::{Efficiency, Round};
use serde::{Deserialize, Serialize};

use crate::quantity;

/// The most intervals that are kept; of a longer run every second one, every fourth, and so on.
const INTERVALS_MAX: usize = 2048;

/// How well the ranks computed between two rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its end, from the start of the program, in seconds.
    pub elapsed_s: f64,
    /// Share of MPI, mean of ranks, from 0 to 1.
    pub mpi_share: f64,
    /// Load balance times communication efficiency.
    pub parallel: f64,
    /// Mean computing time over the largest one.
    pub load_balance: f64,
    /// Largest computing time over the wall time.
    pub communication: f64,
}

/// The intervals of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Intervals {
    kept: Vec<Interval>,
    /// Each interval whose number is a multiple of this power of two is kept.
    step: u32,
    seen: u64,
}

impl Intervals {
    /// Takes note of the interval that a round ends, if any rank had time in it.
    pub fn note(&mut self, elapsed: Duration, round: &Round) {
        let Some(load) = round.interval() else { return };
        let Some(efficiency) = load.efficiency() else { return };
        let Efficiency { parallel, load_balance, communication } = efficiency;
        let is_kept = self.seen.is_multiple_of(1 << self.step);
        self.seen += 1;
        if !is_kept {
            return;
        }
        let mpi_share = load.mpi_ppm.mean() / 1e6;
        let elapsed_s = elapsed.as_secs_f64();
        self.kept.push(Interval { elapsed_s, mpi_share, parallel, load_balance, communication });
        if self.kept.len() == INTERVALS_MAX {
            self.step += 1;
            let mut at = 0_usize;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
    }

    /// Those that were kept, in order.
    #[must_use]
    pub fn kept(&self) -> &[Interval] {
        &self.kept
    }

    /// How many are not kept.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.seen - self.kept.len() as u64
    }

    /// A line: the least and the most efficient one; none of fewer than two.
    pub(crate) fn line(&self) -> Option<String> {
        let by_parallel =
            |one: &&Interval, other: &&Interval| one.parallel.total_cmp(&other.parallel);
        let least = self.kept.iter().min_by(by_parallel)?;
        let most = self.kept.iter().max_by(by_parallel)?;
        let told = |one: &Interval| {
            let percent = |part: f64| quantity::percent(Some(part));
            format!(
                "{} = {} x {} at {:.1} s",
                percent(one.parallel),
                percent(one.load_balance),
                percent(one.communication),
                one.elapsed_s
            )
        };
        (self.seen > 1).then(|| {
            format!("least efficient interval {}, most efficient {}", told(least), told(most))
        })
    }
}

#[cfg(test)]
mod tests {
    use sapwood_profile::{RankProfile, TimeShare};

    use super::*;

    fn round(mpi_ns: u64) -> Round {
        let mut round = Round::new(1);
        let interval = TimeShare { wall_ns: 100, mpi_ns };
        round.add(&RankProfile { interval, ..RankProfile::new(0, 1) }).expect("a new rank");
        round
    }

    #[test]
    fn a_long_run_keeps_intervals_of_all_of_it() {
        let mut intervals = Intervals::default();
        for second in 0..10_000 {
            intervals.note(Duration::from_secs(second), &round(50));
        }
        assert!(intervals.kept().len() < INTERVALS_MAX);
        assert_eq!(intervals.left_out() + intervals.kept().len() as u64, 10_000);
        assert_eq!(intervals.kept()[0].elapsed_s, 0.0);
        let gaps = intervals.kept().windows(2).map(|pair| pair[1].elapsed_s - pair[0].elapsed_s);
        assert!(gaps.collect::<Vec<_>>().iter().all(|&gap| gap == 8.0));
    }

    #[test]
    fn an_interval_in_which_every_rank_waits_is_one() {
        let mut intervals = Intervals::default();
        intervals.note(Duration::from_secs(1), &round(100));
        let [only] = intervals.kept() else { panic!("one interval") };
        assert_eq!((only.mpi_share, only.parallel, only.load_balance), (1.0, 0.0, 1.0));
    }

    #[test]
    fn the_least_and_the_most_efficient_interval_are_told() {
        let mut intervals = Intervals::default();
        assert_eq!(intervals.line(), None);
        for (second, mpi_ns) in [(1, 20), (2, 60), (3, 10), (4, 100)] {
            intervals.note(Duration::from_secs(second), &round(mpi_ns));
        }
        let line = intervals.line().expect("some intervals");
        assert!(
            line.contains("least efficient interval 0.0 % = 100.0 % x 0.0 % at 4.0 s"),
            "{line}"
        );
        assert!(line.contains("most efficient 90.0 % = 100.0 % x 90.0 % at 3.0 s"), "{line}");
    }
}
