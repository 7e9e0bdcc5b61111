//! How a run's generators of random numbers begin: what they draw follows from its seed.

use sapwood_random::Random;

/// The generator of a seed.
pub(crate) fn of_seed(seed: u64) -> Random {
    let mut random = Random::new(seed ^ 0x5eed_5a9d_0000_0001);
    // All recorded seeds were drawn without the first number.
    random.next_u64();
    random
}

/// A generator of its own, so that what one part draws does not move what another draws.
pub(crate) fn split(random: &mut Random) -> Random {
    of_seed(random.next_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_seeds_go_on_meaning_the_same() {
        let mut random = of_seed(7);
        let mut part = split(&mut random);
        assert_eq!(
            [random.next_u64(), random.below(1000), part.next_u64()],
            [13_926_777_545_157_548_889, 343, 12_244_144_690_965_197_251]
        );
    }
}
