//! False answers, to see that the oracle catches them: `sapwood-storm group --lie`.

use sapwood_random::Random;

use super::oracle::Reported;
use super::value::{Digest, Given};

/// One in this number of answers is falsified.
const FALSE_ONE_IN: u64 = 4;
/// A virtual node that no process has.
const STRANGER: u32 = 60_000;

/// Falsifies some answers, each in one of the ways that the rules are about. Those without a value
/// name a stranger.
pub(super) fn falsify(random: &mut Random, answer: &mut Reported) {
    if answer.error.is_some() || !random.one_in(FALSE_ONE_IN) {
        return;
    }
    match (&mut answer.value, random.below(3)) {
        (Some(given), 0) => digest_of(given).into_iter().for_each(|digest| digest.mixed ^= 1),
        (Some(given), 1) => digest_of(given).into_iter().for_each(|digest| digest.bytes += 1),
        _ => answer.contributors.insert(STRANGER),
    }
}

/// The one that is falsified; none in a list without values.
fn digest_of(given: &mut Given) -> Option<&mut Digest> {
    match given {
        Given::Whole(digest) => Some(digest),
        Given::Parts(parts) => parts.first_mut().map(|part| &mut part.digest),
    }
}
