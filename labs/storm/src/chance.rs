//! What the storm draws beside plain numbers: the same seed gives the same choices in the same
//! order.

use std::time::Duration;

use sapwood_random::Random;

/// One of them, if there is one.
pub(super) fn one_of<'a, T>(random: &mut Random, things: &'a [T]) -> Option<&'a T> {
    (!things.is_empty()).then(|| random.choose(things))
}

/// A time between the two, in milliseconds; short ones are as frequent as long ones on a
/// logarithmic scale, so that the range may be wide.
pub(super) fn time(random: &mut Random, least_ms: f64, most_ms: f64) -> Duration {
    let factor = (most_ms / least_ms).powf(random.fraction());
    Duration::from_secs_f64(least_ms * factor / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_choices() {
        let choices = |seed| {
            let mut random = Random::new(seed);
            let draw = |_| (*one_of(&mut random, &[1, 2, 3]).unwrap(), time(&mut random, 1.0, 1e3));
            (0..50).map(draw).collect::<Vec<_>>()
        };
        assert_eq!(choices(3), choices(3));
        assert_ne!(choices(3), choices(4));
        let bounds = Duration::from_millis(1)..=Duration::from_secs(1);
        assert!(choices(3).iter().all(|(_, time)| bounds.contains(time)));
        assert_eq!(one_of::<u8>(&mut Random::new(3), &[]), None);
    }
}
