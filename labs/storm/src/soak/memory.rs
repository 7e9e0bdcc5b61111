//! The memory of processes over time: samples, and whether they grow.
//!
//! A process may fill its buffers at first; from then on its memory must be flat. A line is laid
//! through the samples of the last two thirds by least squares, and what it rises over that time
//! must stay below a bound: an allowance and a share of the whole. What a burst has taken a node
//! gives back to the allocator, which keeps some of it from the system: about as much as two of
//! the largest pieces of memory that were ever freed. That is what the allowance is for. In half an
//! hour it is far below what one byte per wave comes to.

use std::fs;
use std::time::Duration;

use sapwood::Rank;

/// The first part of the time is not judged.
const JUDGED_FROM: f64 = 1.0 / 3.0;

/// What memory may rise over the judged time, in KiB, and in relation to its mean.
const ALLOWANCE_KIB: f64 = 2.0 * 1024.0;
/// The same while buffers still grow to the longest burst of the first minutes, in KiB.
const FIRST_ALLOWANCE_KIB: f64 = 5.0 * 1024.0;
const FIRST_MINUTES: Duration = Duration::from_secs(600);
const ALLOWED_SHARE: f64 = 0.02;

/// Memory of a process at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub at: Duration,
    /// Resident, with what it shares.
    pub resident_kib: u32,
    /// Resident and its own.
    pub private_kib: u32,
}

/// One process and its samples.
#[derive(Debug)]
pub(super) struct History {
    pub rank: Rank,
    pub role: &'static str,
    pid: u32,
    pub samples: Vec<Sample>,
}

/// How one kind of memory went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    pub first_kib: u32,
    pub last_kib: u32,
    pub max_kib: u32,
    /// Of the fitted line over the judged time.
    pub rise_kib: f64,
    pub kib_per_hour: f64,
    /// What the rise may be.
    pub bound_kib: f64,
}

impl Trend {
    pub(super) fn is_flat(&self) -> bool {
        self.rise_kib <= self.bound_kib
    }
}

impl History {
    /// Without samples; with room for that many, so that keeping them costs no memory later.
    pub(super) fn new(rank: Rank, role: &'static str, pid: u32, samples_max: usize) -> Self {
        let filler = Sample { at: Duration::MAX, resident_kib: 1, private_kib: 1 };
        let mut samples = vec![filler; samples_max];
        samples.clear();
        Self { rank, role, pid, samples }
    }

    /// Looks at the process now; says whether there was one.
    pub(super) fn sample(&mut self, at: Duration) -> bool {
        let Ok(text) = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid)) else {
            return false;
        };
        let kib = |name: &str| -> u32 {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        let private_kib = kib("Private_Clean:") + kib("Private_Dirty:");
        let resident_kib = kib("Rss:");
        if self.samples.len() < self.samples.capacity() {
            self.samples.push(Sample { at, resident_kib, private_kib });
        }
        // The memory of a process that has just ended is empty.
        resident_kib > 0
    }

    pub(super) fn resident(&self) -> Option<Trend> {
        trend(&self.samples, |sample| sample.resident_kib)
    }

    pub(super) fn private(&self) -> Option<Trend> {
        trend(&self.samples, |sample| sample.private_kib)
    }
}

fn trend(samples: &[Sample], kib: fn(&Sample) -> u32) -> Option<Trend> {
    let (first, last) = (samples.first()?, samples.last()?);
    let from = last.at.mul_f64(JUDGED_FROM);
    let points: Vec<(f64, f64)> = samples
        .iter()
        .filter(|sample| sample.at >= from)
        .map(|sample| (sample.at.as_secs_f64(), f64::from(kib(sample))))
        .collect();
    let mean = points.iter().map(|(_, kib)| kib).sum::<f64>() / points.len() as f64;
    let slope = slope(&points)?;
    let is_short = last.at < FIRST_MINUTES;
    let allowance_kib = if is_short { FIRST_ALLOWANCE_KIB } else { ALLOWANCE_KIB };
    Some(Trend {
        first_kib: kib(first),
        last_kib: kib(last),
        max_kib: samples.iter().map(kib).max().unwrap_or(0),
        rise_kib: slope * (last.at - from).as_secs_f64(),
        kib_per_hour: slope * 3600.0,
        bound_kib: allowance_kib + ALLOWED_SHARE * mean,
    })
}

/// The slope of the line through the points, by least squares; none if they have no extent.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let common: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    (spread > 0.0).then(|| common / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(kib: impl Fn(u32) -> u32) -> Vec<Sample> {
        let sample = |second| Sample {
            at: Duration::from_secs(u64::from(second)),
            resident_kib: 0,
            private_kib: kib(second),
        };
        (0..=90).map(sample).collect()
    }

    fn judged(samples: &[Sample]) -> Trend {
        trend(samples, |sample| sample.private_kib).expect("they have an extent")
    }

    #[test]
    fn memory_that_grows_at_first_and_then_stays_is_flat() {
        let trend = judged(&samples(|second| 1000 + 100 * second.min(25)));
        assert!(trend.is_flat());
        assert_eq!((trend.first_kib, trend.last_kib, trend.max_kib), (1000, 3500, 3500));
    }

    #[test]
    fn a_leak_is_seen() {
        let trend = judged(&samples(|second| 1000 + 100 * second));
        assert!((trend.rise_kib - 6000.0).abs() < 1e-6);
        assert!((trend.kib_per_hour - 360_000.0).abs() < 1e-6);
        assert!(!trend.is_flat());
    }

    #[test]
    fn samples_of_one_moment_say_nothing() {
        assert!(trend(&samples(|_| 1)[..1], |sample| sample.private_kib).is_none());
    }
}
