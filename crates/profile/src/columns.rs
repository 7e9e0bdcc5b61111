//! Statistics of a few numbers over ranks as columns of a packet: nine arrays of one length.
//!
//! ```text
//!  0  %aud   numbers of ranks
//!  1  %auld  sums, low halves
//!  2  %auld  their high halves; empty when all are 0
//!  3  %auld  sums of squares, low halves
//!  4  %auld  their high halves; empty when all are 0
//!  5  %auld  smallest values
//!  6  %auld  largest values
//!  7  %aud   lowest ranks that have the smallest value
//!  8  %aud   lowest ranks that have the largest value
//! ```

use alloc::vec::Vec;

use sapwood_packet::{IndexedValues, RankSet, Values};

use crate::codec::{Wide, column, push_wide};
use crate::{MetricStatistics, ProfileError};

/// Adds the columns of these numbers.
pub(crate) fn push(values: Values, metrics: &[&MetricStatistics]) -> Values {
    let longs = |of: fn(&MetricStatistics) -> u64| -> Vec<u64> {
        metrics.iter().map(|metric| of(metric)).collect()
    };
    let words = |of: fn(&MetricStatistics) -> u32| -> Vec<u32> {
        metrics.iter().map(|metric| of(metric)).collect()
    };
    let wide = |of: fn(&MetricStatistics) -> u128| -> Vec<u128> {
        metrics.iter().map(|metric| of(metric)).collect()
    };
    let values = values.array(&words(MetricStatistics::ranks));
    let values = push_wide(values, &wide(MetricStatistics::sum));
    push_wide(values, &wide(MetricStatistics::squares))
        .array(&longs(MetricStatistics::min))
        .array(&longs(MetricStatistics::max))
        .array(&words(MetricStatistics::min_rank))
        .array(&words(MetricStatistics::max_rank))
}

/// Reads the columns from the value of this index on: as many numbers as there are, each checked as
/// far as is easily seen. `wrong` is the error if they are forged.
pub(crate) fn read(
    values: &IndexedValues<'_>,
    first: usize,
    covered: &RankSet,
    wrong: &ProfileError,
) -> Result<Vec<MetricStatistics>, ProfileError> {
    let ranks: &[u32] = values.array(first)?;
    let count = ranks.len();
    let sums = Wide::read(values, first + 1, count)?;
    let squares = Wide::read(values, first + 3, count)?;
    let mins: &[u64] = column(values, first + 5, count)?;
    let maxs: &[u64] = column(values, first + 6, count)?;
    let min_ranks: &[u32] = column(values, first + 7, count)?;
    let max_ranks: &[u32] = column(values, first + 8, count)?;
    let metric = |at: usize| {
        let one = MetricStatistics {
            ranks: ranks[at],
            sum: sums.at(at),
            squares: squares.at(at),
            min: mins[at],
            min_rank: min_ranks[at],
            max: maxs[at],
            max_rank: max_ranks[at],
        };
        let is_known = covered.contains(one.min_rank) && covered.contains(one.max_rank);
        let is_right = is_known && one.is_plausible() && u64::from(one.ranks) <= covered.len();
        if is_right { Ok(one) } else { Err(wrong.clone()) }
    };
    (0..count).map(metric).collect()
}
