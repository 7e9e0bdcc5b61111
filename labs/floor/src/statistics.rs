//! Medians, spreads and ratios of repeated runs.
//!
//! Owns how the benchmarks condense repetitions, so that Sapwood's figures and the floor's are
//! condensed by the same lines. A figure is never one run: it is the median over runs with the
//! smallest and the largest beside it. A ratio is taken between runs that were *neighbours in
//! time*, run by run, and only then condensed: on a shared machine the load changes between the
//! first pair and the last, and a ratio of two medians would mix moments that have nothing to do
//! with each other.

use serde::{Deserialize, Serialize};

/// Smallest, middle and largest of some runs, in the unit of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Smallest sample.
    pub min: f64,
    /// Median sample; the mean of the two middle ones where their number is even.
    pub median: f64,
    /// Largest sample.
    pub max: f64,
    /// Number of samples.
    pub runs: usize,
}

impl Spread {
    /// Condenses samples; `None` where there are none or one is not finite.
    pub fn of(samples: &[f64]) -> Option<Spread> {
        let sorted = sorted(samples)?;
        Some(Spread {
            min: sorted[0],
            median: middle(&sorted),
            max: sorted[sorted.len() - 1],
            runs: sorted.len(),
        })
    }
}

/// Median of the samples; `None` where there are none or one is not finite.
pub fn median(samples: &[f64]) -> Option<f64> {
    sorted(samples).map(|sorted| middle(&sorted))
}

/// The sample at `fraction` (0.0 to 1.0) of the sorted samples, by nearest rank: 0.9 gives the
/// value that nine tenths of the samples do not exceed. `None` as for [`median`], or for a fraction
/// outside.
pub fn quantile(samples: &[f64], fraction: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&fraction) {
        return None;
    }
    let sorted = sorted(samples)?;
    let rank = (fraction * sorted.len() as f64).ceil() as usize;
    Some(sorted[rank.clamp(1, sorted.len()) - 1])
}

/// Ratio of paired runs: `measured[i] / floor[i]` for each pair, condensed.
///
/// Pair `i` must have been taken one right after the other, in the same placement. `None` where the
/// numbers of runs differ, there are none, or a floor is not above zero.
pub fn ratio(measured: &[f64], floor: &[f64]) -> Option<Spread> {
    if measured.len() != floor.len() || floor.iter().any(|&value| value <= 0.0) {
        return None;
    }
    let ratios: Vec<f64> =
        measured.iter().zip(floor).map(|(measured, floor)| measured / floor).collect();
    Spread::of(&ratios)
}

/// A median and the interval in which that of the population lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianInterval {
    /// The median of the samples.
    pub median: f64,
    /// The lower end: a sample.
    pub low: f64,
    /// The upper end: a sample.
    pub high: f64,
    /// Number of samples.
    pub samples: usize,
}

/// The median and the narrowest symmetric pair of samples that encloses the population's median
/// with 95 % confidence, whatever the distribution (order statistics: the number of samples below
/// the median is binomial). With fewer than six samples the extremes, which is less than 95 %.
pub fn median_interval(samples: &[f64]) -> Option<MedianInterval> {
    let sorted = sorted(samples)?;
    let count = sorted.len();
    // Probability that at most `outside` of the samples lie below the median.
    let mut outside = 0;
    let mut term = 0.5_f64.powi(count.try_into().unwrap_or(i32::MAX));
    let mut tail = term;
    while outside + 1 < count.div_ceil(2) {
        term *= (count - outside) as f64 / (outside + 1) as f64;
        if 2.0 * (tail + term) > 0.05 {
            break;
        }
        tail += term;
        outside += 1;
    }
    Some(MedianInterval {
        median: middle(&sorted),
        low: sorted[outside],
        high: sorted[count - 1 - outside],
        samples: count,
    })
}

fn sorted(samples: &[f64]) -> Option<Vec<f64>> {
    if samples.is_empty() || samples.iter().any(|sample| !sample.is_finite()) {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_names_the_ends_and_the_middle() {
        let spread = Spread::of(&[3.0, 1.0, 2.0, 10.0]).unwrap();
        assert_eq!(spread, Spread { min: 1.0, median: 2.5, max: 10.0, runs: 4 });
        assert_eq!(median(&[5.0]), Some(5.0));
    }

    #[test]
    fn a_quantile_is_a_sample_that_was_taken() {
        let samples: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(quantile(&samples, 0.9), Some(9.0));
        assert_eq!(quantile(&samples, 0.0), Some(1.0));
        assert_eq!(quantile(&samples, 1.0), Some(10.0));
        assert_eq!(quantile(&samples, 1.1), None);
    }

    #[test]
    fn ratios_are_taken_pair_by_pair() {
        // The machine was twice as slow during the second pair: the ratio does not notice.
        let spread = ratio(&[110.0, 220.0, 120.0], &[100.0, 200.0, 100.0]).unwrap();
        assert!((spread.median - 1.1).abs() < 1e-12);
        assert!((spread.max - 1.2).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_condensed_from_nothing() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(median(&[f64::NAN]), None);
        assert_eq!(ratio(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(ratio(&[1.0], &[0.0]), None);
    }

    #[test]
    fn the_interval_of_a_median_has_the_samples_that_tables_give() {
        let samples: Vec<f64> = (1..=15).map(f64::from).collect();
        let interval = median_interval(&samples).unwrap();
        // Conover, Practical Nonparametric Statistics: the 4th and the 12th of 15.
        assert_eq!((interval.low, interval.median, interval.high), (4.0, 8.0, 12.0));
        let few = median_interval(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((few.low, few.median, few.high), (1.0, 2.0, 3.0));
        assert_eq!(median_interval(&[]), None);
    }
}
