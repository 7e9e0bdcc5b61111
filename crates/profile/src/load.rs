//! How the time of MPI ranks is divided between MPI and computing, and how evenly.
//!
//! Times run from the begin of counting, at the end of `MPI_Init`, to the moment of the round, or
//! to the end of counting. What is outside of MPI is called computing, whatever it is; a rank of
//! which several threads have called MPI is outside while one of them is. The efficiencies are
//! those of the POP project's metrics: load balance is the mean computing time over the largest
//! one, communication efficiency the largest computing time over the wall time, and parallel
//! efficiency their product.

use alloc::vec::Vec;

use sapwood_packet::{IndexedValues, Rank, RankSet, Values};

use crate::{MetricStatistics, ProfileError, columns};

/// A whole, in parts per million.
const WHOLE_PPM: u64 = 1_000_000;
const METRICS: usize = 4;
const WRONG: ProfileError = ProfileError::Contradiction { what: "division of time" };

/// How one rank has spent its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeShare {
    /// Since it began to count, in nanoseconds.
    pub wall_ns: u64,
    /// Of this, inside of MPI: all threads that have called MPI, as long as they live.
    pub mpi_ns: u64,
}

/// How the covered ranks have spent their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Time since the rank began to count, in nanoseconds.
    pub wall_ns: MetricStatistics,
    /// Time inside of MPI.
    pub mpi_ns: MetricStatistics,
    /// Time outside of MPI.
    pub compute_ns: MetricStatistics,
    /// The share of MPI in each rank's time, in parts per million.
    pub mpi_ppm: MetricStatistics,
}

/// Efficiencies, each from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency {
    /// Load balance times communication efficiency.
    pub parallel: f64,
    /// Mean computing time over the largest one.
    pub load_balance: f64,
    /// Largest computing time over the wall time.
    pub communication: f64,
}

impl TimeShare {
    /// What was spent since an earlier time; nothing where that is of another life of the table.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            wall_ns: self.wall_ns.saturating_sub(before.wall_ns),
            mpi_ns: self.mpi_ns.saturating_sub(before.mpi_ns),
        }
    }
}

impl Load {
    /// Of one rank; nothing as long as it has just begun.
    pub(crate) fn of(share: TimeShare, rank: Rank) -> Option<Self> {
        let mpi_ns = share.mpi_ns.min(share.wall_ns);
        let scaled = u128::from(mpi_ns) * u128::from(WHOLE_PPM);
        let ppm = scaled.checked_div(share.wall_ns.into())?;
        Some(Self {
            wall_ns: MetricStatistics::of(share.wall_ns, rank),
            mpi_ns: MetricStatistics::of(mpi_ns, rank),
            compute_ns: MetricStatistics::of(share.wall_ns - mpi_ns, rank),
            mpi_ppm: MetricStatistics::of(u64::try_from(ppm).unwrap_or(WHOLE_PPM), rank),
        })
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.wall_ns.merge(&other.wall_ns);
        self.mpi_ns.merge(&other.mpi_ns);
        self.compute_ns.merge(&other.compute_ns);
        self.mpi_ppm.merge(&other.mpi_ppm);
    }

    /// The efficiencies; nothing where no rank has had any time. Where none has computed, as in a
    /// deadlock, none has computed more than others: the load is balanced, and nothing else is
    /// efficient.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "fractions for the eye")]
    pub fn efficiency(&self) -> Option<Efficiency> {
        let largest = self.compute_ns.max();
        if self.wall_ns.max() == 0 {
            return None;
        }
        if largest == 0 {
            return Some(Efficiency { parallel: 0.0, load_balance: 1.0, communication: 0.0 });
        }
        let load_balance = self.compute_ns.mean() / largest as f64;
        let communication = largest as f64 / self.wall_ns.max() as f64;
        Some(Efficiency { parallel: load_balance * communication, load_balance, communication })
    }

    fn of_metrics(metrics: &[MetricStatistics; METRICS]) -> Result<Self, ProfileError> {
        let [wall_ns, mpi_ns, compute_ns, mpi_ppm] = *metrics;
        if mpi_ppm.max > WHOLE_PPM || metrics.iter().any(|one| one.ranks != wall_ns.ranks) {
            return Err(WRONG);
        }
        Ok(Self { wall_ns, mpi_ns, compute_ns, mpi_ppm })
    }

    fn metrics(&self) -> [&MetricStatistics; METRICS] {
        [&self.wall_ns, &self.mpi_ns, &self.compute_ns, &self.mpi_ppm]
    }
}

/// Adds the columns to a packet: those of the whole time, and behind them those of the interval;
/// empty ones for none.
pub(crate) fn push(values: Values, load: Option<&Load>, interval: Option<&Load>) -> Values {
    let metrics: Vec<&MetricStatistics> =
        load.into_iter().chain(load.and(interval)).flat_map(Load::metrics).collect();
    columns::push(values, &metrics)
}

/// Reads the columns from the value of this index on: of the whole time, and of the interval.
pub(crate) fn read(
    values: &IndexedValues<'_>,
    first: usize,
    covered: &RankSet,
) -> Result<(Option<Load>, Option<Load>), ProfileError> {
    let metrics = columns::read(values, first, covered, &WRONG)?;
    let (loads, []) = metrics.as_chunks::<METRICS>() else { return Err(WRONG) };
    let mut loads = loads.iter().map(Load::of_metrics);
    let (load, interval) = (loads.next().transpose()?, loads.next().transpose()?);
    if loads.next().is_some() { Err(WRONG) } else { Ok((load, interval)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(shares: &[(u64, u64)]) -> Load {
        let one = |(rank, &(wall_ns, mpi_ns)): (u32, &(u64, u64))| {
            Load::of(TimeShare { wall_ns, mpi_ns }, rank).expect("it has run")
        };
        let mut all = (0..).zip(shares).map(one);
        let mut load = all.next().expect("a rank");
        all.for_each(|other| load.merge(&other));
        load
    }

    #[test]
    fn the_efficiencies_are_those_of_pop() {
        // Computing times 80, 60, 40 and 60 of 100.
        let load = load(&[(100, 20), (100, 40), (100, 60), (100, 40)]);
        let efficiency = load.efficiency().expect("they compute");
        assert!((efficiency.load_balance - 0.75).abs() < 1e-12);
        assert!((efficiency.communication - 0.8).abs() < 1e-12);
        assert!((efficiency.parallel - 0.6).abs() < 1e-12);
        assert_eq!((load.mpi_ppm.min(), load.mpi_ppm.max_rank()), (200_000, 2));
    }

    #[test]
    fn a_rank_is_never_in_mpi_for_longer_than_it_lives() {
        let load = load(&[(100, 300)]);
        assert_eq!((load.mpi_ppm.max(), load.compute_ns.max()), (WHOLE_PPM, 0));
        let none = Efficiency { parallel: 0.0, load_balance: 1.0, communication: 0.0 };
        assert_eq!(load.efficiency(), Some(none));
        assert_eq!(Load::of(TimeShare::default(), 0), None);
    }
}
