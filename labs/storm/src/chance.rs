//! The storm's chance: the same seed gives the same choices in the same order.

use std::time::Duration;

use super::contribution::mixed;

/// A sequence of numbers out of a seed (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Chance {
    state: u64,
}

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.state)
    }

    /// A number below `end`, which is above 0 and far below 2^32.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (((self.next() >> 32) * end as u64) >> 32) as usize
    }

    /// One of them, if there is one.
    pub(super) fn one_of<'a, T>(&mut self, things: &'a [T]) -> Option<&'a T> {
        (!things.is_empty()).then(|| &things[self.below(things.len())])
    }

    /// A time between the two, in milliseconds; short ones are as frequent as long ones on a
    /// logarithmic scale, so that the range may be wide.
    pub(super) fn time(&mut self, least_ms: f64, most_ms: f64) -> Duration {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        Duration::from_secs_f64(least_ms * (most_ms / least_ms).powf(share) / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_choices() {
        let choices = |seed| {
            let mut chance = Chance::new(seed);
            (0..50).map(|_| (chance.below(7), chance.time(1.0, 1e3))).collect::<Vec<_>>()
        };
        assert_eq!(choices(3), choices(3));
        assert_ne!(choices(3), choices(4));
        assert!(choices(3).iter().all(|(number, _)| *number < 7));
        let bounds = Duration::from_millis(1)..=Duration::from_secs(1);
        assert!(choices(3).iter().all(|(_, time)| bounds.contains(time)));
    }
}
