//! How far a child's clock is ahead of this process's, between two bounds that cannot be wrong.
//!
//! Every probe that comes back is a sample. The child's echo says what its clock showed when the
//! probe was there, which was not before the probe had left here and not after the echo came back
//! here. So, with the times `sent` and `now` of this process's clock, the child's is ahead by
//! `clock - now` at least and `clock - sent` at most (F. Cristian, "Probabilistic clock
//! synchronization", Distributed Computing 3, 1989). What all samples allow together is their
//! intersection (K. Marzullo, "Maintaining the time in a distributed system", 1984); it is
//! widened with time, since clocks drift.
//!
//! The sums along the edges of a tree, for every process against the front-end, are those of P.
//! Roth, D. Arnold and B. Miller, "MRNet", SC 2003, section 4: they are added up by the process
//! that reads the records of all links.

use crate::interface::Instant;

/// Two clocks drift apart by at most this much, in nanoseconds per millisecond (100 millionths):
/// twice what quartz clocks are sold with.
const DRIFT_MAX: u64 = 100;

const MILLISECOND: u64 = 1_000_000;

/// What is known of one child's clock, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Skew {
    /// It is ahead by at least this, in nanoseconds.
    lower: i64,
    /// And by at most this.
    upper: i64,
    /// When that was known; nothing is if not set.
    at: Option<Instant>,
}

impl Skew {
    /// A probe that left at `sent` has come back at `now`; the child's clock showed `clock` when it
    /// was there.
    pub(crate) fn sample(&mut self, sent: Instant, clock: u64, now: Instant) {
        // Differences of clocks fit: each counts nanoseconds since some start.
        let (lower, upper) = (clock.wrapping_sub(now.0) as i64, clock.wrapping_sub(sent.0) as i64);
        let known = self.widened(now);
        let both = known.map(|(low, high)| (low.max(lower), high.min(upper)));
        // A clock that was set meanwhile contradicts what was known of it.
        let (lower, upper) = both.filter(|(low, high)| low <= high).unwrap_or((lower, upper));
        *self = Self { lower, upper, at: Some(now) };
    }

    /// By how much the child's clock is ahead, and by how much that may be wrong, either way.
    pub(crate) fn estimate(&self, now: Instant) -> Option<(i64, u64)> {
        let (lower, upper) = self.widened(now)?;
        let width = upper.abs_diff(lower);
        Some((lower.wrapping_add((width / 2) as i64), width.div_ceil(2).max(1)))
    }

    fn widened(&self, now: Instant) -> Option<(i64, i64)> {
        let age = now.0.saturating_sub(self.at?.0);
        let drift = (age / MILLISECOND).saturating_add(1).saturating_mul(DRIFT_MAX);
        let drift = i64::try_from(drift).unwrap_or(i64::MAX);
        Some((self.lower.saturating_sub(drift), self.upper.saturating_add(drift)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD: u64 = 5_000_000_000;

    #[test]
    fn the_truth_lies_between_the_bounds_however_uneven_the_ways_are() {
        let mut skew = Skew::default();
        assert_eq!(skew.estimate(Instant(1)), None, "nothing was asked yet");
        let mut widths = std::vec::Vec::new();
        for (number, (down, up)) in
            [(900, 100), (40, 700), (300, 300), (90, 2)].into_iter().enumerate()
        {
            let sent = Instant(number as u64 * 10_000);
            let clock = sent.0 + down + AHEAD;
            let now = Instant(sent.0 + down + up);
            skew.sample(sent, clock, now);
            let (ahead, error) = skew.estimate(now).expect("a sample");
            assert!(ahead.abs_diff(AHEAD as i64) <= error, "{ahead} {error}");
            widths.push(error);
        }
        assert!(widths[1] < 350, "the best of both ways count: {widths:?}");
        assert!(widths[3] <= widths[2], "{widths:?}");
    }

    #[test]
    fn what_was_known_long_ago_is_less_sure() {
        let mut skew = Skew::default();
        skew.sample(Instant(0), 50, Instant(100));
        let (_, soon) = skew.estimate(Instant(100)).expect("a sample");
        let (_, later) = skew.estimate(Instant(100 + 1000 * MILLISECOND)).expect("a sample");
        assert_eq!(later - soon, 1000 * DRIFT_MAX);
    }

    #[test]
    fn a_clock_that_was_set_is_believed_anew() {
        let mut skew = Skew::default();
        skew.sample(Instant(0), AHEAD + 50, Instant(100));
        skew.sample(Instant(1000), 1050, Instant(1100));
        assert_eq!(skew.estimate(Instant(1100)).map(|(ahead, _)| ahead), Some(0));
    }

    #[test]
    fn a_clock_may_be_behind() {
        let mut skew = Skew::default();
        skew.sample(Instant(AHEAD), 50, Instant(AHEAD + 100));
        let (ahead, error) = skew.estimate(Instant(AHEAD + 100)).expect("a sample");
        assert!(ahead.abs_diff(-(AHEAD as i64)) <= error);
    }
}
