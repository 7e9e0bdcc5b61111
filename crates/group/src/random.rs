//! Numbers that repeat with the seed, for probes of random members.

use sapwood_random::Random;

/// The generator of a member.
pub(crate) fn of_seed(seed: u64) -> Random {
    Random::new(seed ^ 0x5eed_6a0b_0000_0001)
}

/// A span of about this length: a fifth more or less.
pub(crate) fn around(random: &mut Random, span: u64) -> u64 {
    span - span / 5 + random.below(span / 5 * 2 + 1)
}
