//! False answers, to see that the oracle catches them: `sapwood-storm group --lie`.

use sapwood_random::Random;

use super::oracle::Reported;

/// One in this number of answers is falsified.
const TRUE_ANSWERS: u64 = 20;
/// A virtual node that no process has.
const STRANGER: u32 = 60_000;

/// Falsifies some answers, each in one of the ways that the rules are about. Those without a value
/// name a stranger.
pub(super) fn falsify(random: &mut Random, answer: &mut Reported) {
    if answer.error.is_some() || !random.one_in(TRUE_ANSWERS) {
        return;
    }
    match (&mut answer.value, random.below(3)) {
        (Some(value), 0) => value.mixed ^= 1,
        (Some(value), 1) => value.bytes += 1,
        _ => answer.contributors.insert(STRANGER),
    }
}
