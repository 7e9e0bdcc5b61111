//! Statistics over ranks, in integers: exact, and the same whatever was merged first.

use sapwood_packet::Rank;

use crate::{Counters, Metric};

/// The statistics of one metric of one event over the ranks that have the event.
///
/// Sums and sums of squares are 128 bits wide and stay at the largest number instead of starting
/// again from 0, which keeps their addition associative too. A sum cannot come there; a sum of
/// squares comes there when, say, 65,536 ranks each count 2^56 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricStatistics {
    pub(crate) ranks: u32,
    pub(crate) sum: u128,
    pub(crate) squares: u128,
    pub(crate) min: u64,
    pub(crate) min_rank: Rank,
    pub(crate) max: u64,
    pub(crate) max_rank: Rank,
}

impl MetricStatistics {
    /// Of the value of one rank.
    #[must_use]
    #[inline]
    pub fn of(value: u64, rank: Rank) -> Self {
        let sum = u128::from(value);
        let squares = sum * sum;
        Self { ranks: 1, sum, squares, min: value, min_rank: rank, max: value, max_rank: rank }
    }

    /// Merges the statistics over other ranks.
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        self.ranks = self.ranks.saturating_add(other.ranks);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        (self.min, self.min_rank) = (self.min, self.min_rank).min((other.min, other.min_rank));
        if other.max > self.max || (other.max == self.max && other.max_rank < self.max_rank) {
            (self.max, self.max_rank) = (other.max, other.max_rank);
        }
    }

    /// How many ranks have the event; at least one.
    #[must_use]
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The sum over these ranks.
    #[must_use]
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The sum of the squares over these ranks.
    #[must_use]
    pub const fn squares(&self) -> u128 {
        self.squares
    }

    /// The smallest value.
    #[must_use]
    pub const fn min(&self) -> u64 {
        self.min
    }

    /// The lowest rank that has the smallest value.
    #[must_use]
    pub const fn min_rank(&self) -> Rank {
        self.min_rank
    }

    /// The largest value.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// The lowest rank that has the largest value.
    #[must_use]
    pub const fn max_rank(&self) -> Rank {
        self.max_rank
    }

    /// The mean over the ranks that have the event.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
    pub fn mean(&self) -> f64 {
        self.sum as f64 / f64::from(self.ranks)
    }

    /// The standard deviation of these ranks' values themselves: the divisor is the number of ranks
    /// that have the event, not one less, since these ranks are no sample of others.
    ///
    /// The sum of the squared differences from the mean is computed in integers, so that nothing
    /// cancels however small it is beside the values. Nothing when the sum of squares has come to
    /// the largest number.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "exact until the last step")]
    pub fn standard_deviation(&self) -> Option<f64> {
        if self.squares == u128::MAX {
            return None;
        }
        let ranks = u128::from(self.ranks);
        // With sum = q ranks + r, the sum of squared differences is
        // squares - sum^2 / ranks = (squares - q^2 ranks - 2 q r) - r^2 / ranks.
        let rest = self.sum % ranks;
        let whole = self.squares.saturating_sub(self.square_of_sum_over_ranks());
        let variance = match whole.checked_mul(ranks) {
            Some(scaled) => scaled.saturating_sub(rest * rest) as f64 / (ranks * ranks) as f64,
            None => whole as f64 / ranks as f64,
        };
        Some(libm::sqrt(variance))
    }

    /// How far the largest value is above the mean, as a fraction of the mean: 0 when all ranks
    /// have the same; nothing when all have 0.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a fraction for the eye")]
    pub fn imbalance(&self) -> Option<f64> {
        (self.sum > 0).then(|| self.max as f64 / self.mean() - 1.0)
    }

    /// `sum^2 / ranks` without its fraction `r^2 / ranks`; never above the sum of squares.
    fn square_of_sum_over_ranks(&self) -> u128 {
        let ranks = u128::from(self.ranks);
        let (quotient, rest) = (self.sum / ranks, self.sum % ranks);
        let square = quotient.saturating_mul(quotient).saturating_mul(ranks);
        square.saturating_add(quotient.saturating_mul(2 * rest))
    }

    /// Whether values of this many ranks can have these statistics, as far as a cheap check shows.
    pub(crate) fn is_plausible(&self) -> bool {
        // Of one rank nothing needs to be divided, and there are as many of these as ranks.
        if self.ranks == 1 {
            return *self == Self::of(self.min, self.min_rank);
        }
        let ranks = u128::from(self.ranks);
        self.ranks > 0
            && self.min <= self.max
            && (self.min < self.max || self.min_rank == self.max_rank)
            && u128::from(self.min) * ranks <= self.sum
            && self.sum <= u128::from(self.max) * ranks
            && self.square_of_sum_over_ranks() <= self.squares
            && self.squares <= self.sum.saturating_mul(u128::from(self.max))
    }
}

/// The statistics of one event over the ranks that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventStatistics {
    /// Calls that returned, or regions that ended.
    pub count: MetricStatistics,
    /// Inclusive time, in nanoseconds.
    pub time_ns: MetricStatistics,
    /// Bytes moved.
    pub bytes: MetricStatistics,
}

impl EventStatistics {
    /// Of the counters of one rank.
    #[must_use]
    pub fn of(counters: Counters, rank: Rank) -> Self {
        Self {
            count: MetricStatistics::of(counters.count, rank),
            time_ns: MetricStatistics::of(counters.time_ns, rank),
            bytes: MetricStatistics::of(counters.bytes, rank),
        }
    }

    /// Merges the statistics over other ranks.
    pub fn merge(&mut self, other: &Self) {
        self.count.merge(&other.count);
        self.time_ns.merge(&other.time_ns);
        self.bytes.merge(&other.bytes);
    }

    /// How many ranks have the event.
    #[must_use]
    pub const fn ranks(&self) -> u32 {
        self.count.ranks
    }

    /// The statistics of a metric.
    #[must_use]
    pub const fn metric(&self, metric: Metric) -> &MetricStatistics {
        match metric {
            Metric::Count => &self.count,
            Metric::TimeNs => &self.time_ns,
            Metric::Bytes => &self.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(values: &[u64]) -> MetricStatistics {
        let each = values.iter().zip(0..).map(|(&value, rank)| MetricStatistics::of(value, rank));
        each.reduce(|mut all, one| {
            all.merge(&one);
            all
        })
        .expect("some values")
    }

    #[test]
    fn the_deviation_is_that_of_the_ranks_themselves() {
        let statistics = over(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(statistics.mean(), 5.0);
        assert_eq!(statistics.standard_deviation(), Some(2.0));
        assert_eq!(statistics.imbalance(), Some(0.8));
        assert_eq!((statistics.min(), statistics.min_rank()), (2, 0));
        assert_eq!((statistics.max(), statistics.max_rank()), (9, 7));
    }

    #[test]
    fn a_small_deviation_of_large_values_is_not_lost() {
        let year_ns = 31_536_000_000_000_000;
        let statistics = over(&[year_ns, year_ns + 2, year_ns, year_ns + 2]);
        assert_eq!(statistics.standard_deviation(), Some(1.0));
        assert_eq!(over(&[u64::MAX; 1]).standard_deviation(), Some(0.0));
        assert_eq!(over(&[1, 2]).standard_deviation(), Some(0.5));
    }

    #[test]
    fn of_equal_extremes_the_lowest_rank_is_named() {
        let statistics = over(&[5, 9, 5, 9]);
        assert_eq!((statistics.min_rank(), statistics.max_rank()), (0, 1));
        assert_eq!(over(&[0, 0]).imbalance(), None);
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let statistics = over(&[u64::MAX; 5]);
        assert_eq!(statistics.squares(), u128::MAX);
        assert_eq!(statistics.sum(), 5 * u128::from(u64::MAX));
        assert!(statistics.is_plausible());
        assert_eq!(statistics.standard_deviation(), None, "a wrong one would be worse");
    }
}
