//! Times of several files on one time line.
//!
//! All processes of one host share the counter of its processors: there one file's calibration
//! serves for all, and times differ by nothing but ticks. Between hosts the system's monotonic
//! clocks are compared, whose offsets the tree measures; each file then says again and again which
//! tick is which nanosecond, and times in between are interpolated.

use alloc::vec::Vec;

use crate::file::FileClock;

/// Moments that are kept; of more, every second one is.
const MOMENTS_MAX: usize = 256;
/// By how much a time may be off between two moments that were read by both clocks, in
/// nanoseconds.
pub const READING_ERROR_NS: u64 = 5_000;

/// One host's ticks as nanoseconds of the common clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostClock {
    scale: u64,
    /// Ticks and nanoseconds, increasing; at least one.
    moments: Vec<(u64, u64)>,
    is_steady: bool,
    /// By how much the host's clock is ahead of the common one.
    ahead: i64,
    /// By how much that may be off.
    pub error: u64,
    /// Its number; times of one clock are exact to one another.
    pub number: u32,
}

impl HostClock {
    /// Of a run on one host, by the calibration of one of its files.
    #[must_use]
    pub fn shared(clock: FileClock) -> Self {
        let moments = [(clock.ticks, clock.ns)].into();
        Self { scale: clock.scale, moments, is_steady: true, ..Self::default() }
    }

    /// Of one host of several.
    #[must_use]
    pub fn of_host(clock: FileClock, number: u32) -> Self {
        Self { is_steady: false, number, error: u64::MAX / 4, ..Self::shared(clock) }
    }

    /// Sets how far it is from the common clock.
    pub const fn set_offset(&mut self, ahead: i64, error: u64) {
        self.ahead = ahead;
        self.error = error.saturating_add(READING_ERROR_NS);
    }

    /// Takes a moment that was read by both clocks.
    pub fn note(&mut self, ticks: u64, ns: u64) {
        let is_later = self.moments.last().is_none_or(|last| ticks > last.0 && ns > last.1);
        if self.is_steady || !is_later {
            return;
        }
        if self.moments.len() == MOMENTS_MAX {
            let mut place = 0;
            self.moments.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
        self.moments.push((ticks, ns));
    }

    /// A time of the common clock, in nanoseconds.
    #[must_use]
    pub fn time(&self, ticks: u64) -> i64 {
        let after = self.moments.partition_point(|moment| moment.0 <= ticks);
        let (from, scale) = match self.moments.get(after.saturating_sub(1)..) {
            Some(&[from, to, ..]) if after > 0 => (from, rate(from, to)),
            Some(&[from, ..]) => {
                let first = self.moments.first().copied().unwrap_or(from);
                (from, if first.0 < from.0 { rate(first, from) } else { self.scale })
            }
            _ => return 0,
        };
        let ns = i128::from(from.1) + scaled(ticks, from.0, scale) - i128::from(self.ahead);
        i64::try_from(ns).unwrap_or(i64::MAX)
    }

    /// The time of the common clock that is this one of the host's `CLOCK_MONOTONIC`, both in
    /// nanoseconds.
    #[must_use]
    pub const fn common(&self, ns: i64) -> i64 {
        ns.saturating_sub(self.ahead)
    }

    /// A number of ticks in nanoseconds.
    #[must_use]
    pub fn span(&self, ticks: u64) -> u64 {
        u64::try_from(scaled(ticks, 0, self.scale)).unwrap_or(u64::MAX)
    }
}

fn scaled(ticks: u64, from: u64, scale: u64) -> i128 {
    // A forged file may have any numbers.
    (i128::from(ticks) - i128::from(from)).saturating_mul(scale.into()) >> 32
}

fn rate(from: (u64, u64), to: (u64, u64)) -> u64 {
    let ticks = u128::from(to.0 - from.0).max(1);
    u64::try_from((u128::from(to.1 - from.1) << 32) / ticks).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of 2 GHz.
    fn file() -> FileClock {
        FileClock { ticks: 1_000, ns: 5_000, scale: 1 << 31, is_cycles: true }
    }

    #[test]
    fn ticks_of_one_host_are_converted_alike_before_and_after_the_calibration() {
        let clock = HostClock::shared(file());
        assert_eq!((clock.time(1_000), clock.time(3_000), clock.time(0)), (5_000, 6_000, 4_500));
        assert_eq!(clock.span(2_000), 1_000);
    }

    #[test]
    fn between_moments_of_both_clocks_times_are_interpolated() {
        let mut clock = HostClock::of_host(file(), 3);
        clock.set_offset(500, 100);
        assert_eq!(clock.error, 100 + READING_ERROR_NS);
        // The rate was calibrated wrongly by a tenth.
        clock.note(21_000, 16_000);
        let is_about = |clock: &HostClock, ticks, ns: i64| (clock.time(ticks) - ns).abs() <= 1;
        assert!(is_about(&clock, 11_000, 10_500 - 500));
        clock.note(41_000, 27_000);
        assert!(is_about(&clock, 31_000, 21_500 - 500));
        // Beyond the last one by the rate of all.
        assert!(is_about(&clock, 61_000, 38_000 - 500));
        assert_eq!(clock.common(27_000), 26_500);
        clock.note(30_000, 1);
        assert!(is_about(&clock, 61_000, 38_000 - 500));
    }

    #[test]
    fn times_stay_in_order_though_a_clock_steps() {
        let mut clock = HostClock::of_host(file(), 3);
        clock.note(21_000, 15_000);
        // A second forward, then back to before all others, and on from there.
        clock.note(21_002, 1_000_015_000);
        clock.note(41_000, 2_000);
        clock.note(61_000, 1_000_035_000);
        // The counter steps back.
        clock.note(30_000, 1_000_045_000);
        let times: Vec<i64> = (0..80).map(|thousands| clock.time(1_000 * thousands)).collect();
        assert!(times.is_sorted(), "{times:?}");
        assert_eq!((clock.time(21_000), clock.time(61_000)), (15_000, 1_000_035_000));
    }

    #[test]
    fn many_moments_are_thinned_and_stay_in_order() {
        let mut clock = HostClock::of_host(file(), 3);
        for at in 1..10_000_u64 {
            clock.note(1_000 + at * 2_000, 5_000 + at * 1_000);
        }
        assert!(clock.moments.len() <= MOMENTS_MAX);
        assert_eq!(clock.time(1_000 + 8_000), 5_000 + 4_000);
    }
}
