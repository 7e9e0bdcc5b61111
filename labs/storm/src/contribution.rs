//! What a back-end sends in the storm, and what must come of it.
//!
//! Owns the streams of the storm ([`Kind`]), the values of a back-end in a wave, and the value that
//! an answer must have for the contributors that it states. A back-end's numbers depend on its
//! rank, the stream and the wave, so that an answer with a packet of another wave, of another
//! back-end or with one of them twice has a wrong value.

use sapwood::{Answer, Rank, RankSet, Tag, Values, Wave, WaveRule};
use sapwood_random::mix;

/// The tag of requests and answers.
pub(super) const TAG: Tag = 100;

/// Elements of a packet on the streams that are folded.
const FOLDED_ELEMENTS: i64 = 8;

/// Elements of a packet on the stream of large sums: 1.28 MB, cut into ten chunks.
const LARGE_ELEMENTS: i64 = 160_000;

/// A back-end's packet on the concatenating stream has one to this many elements.
const CONCATENATED_ELEMENTS_MAX: u64 = 3;

/// How long a wave of the stream of maxima may wait for the last back-ends.
const WAIT_MILLISECONDS: u32 = 400;

/// A stream of the storm: what becomes of the packets of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// They are added.
    Sum,
    /// The largest elements, of those that have come in time.
    Max,
    /// They follow one another.
    Concatenate,
    /// Each goes to the front-end by itself.
    Single,
    /// Large arrays are added, chunk by chunk.
    LargeSum,
}

impl Kind {
    /// All of them; a request names its stream by its place here.
    pub(super) const ALL: [Self; 5] =
        [Self::Sum, Self::Max, Self::Concatenate, Self::Single, Self::LargeSum];

    /// Those of small packets, at the same places.
    pub(super) const SMALL: [Self; 4] = [Self::Sum, Self::Max, Self::Concatenate, Self::Single];

    /// Its name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::LargeSum => "large_sum",
            other => other.filter(),
        }
    }

    /// One request of this many on small streams is one here, too.
    pub(super) fn requests_per_wave(self) -> u64 {
        if self == Self::LargeSum { 40 } else { 1 }
    }

    /// How many waves that many requests have asked for.
    pub(super) fn waves(self, requests: u64) -> u64 {
        requests.div_ceil(self.requests_per_wave())
    }

    /// The filter's name.
    pub(super) fn filter(self) -> &'static str {
        match self {
            Self::Sum | Self::LargeSum => "sum",
            Self::Max => "max",
            Self::Concatenate => "concatenate",
            Self::Single => "null",
        }
    }

    /// When a wave of the stream is complete.
    pub(super) fn wave_rule(self) -> WaveRule {
        match self {
            Self::Sum | Self::LargeSum | Self::Concatenate => WaveRule::All,
            Self::Max => WaveRule::Timeout { milliseconds: WAIT_MILLISECONDS },
            Self::Single => WaveRule::Immediate,
        }
    }

    /// What a back-end sends in a wave.
    pub(super) fn values(self, rank: Rank, wave: Wave) -> Values {
        Values::new().array(&self.elements(rank, wave))
    }

    fn elements(self, rank: Rank, wave: Wave) -> Vec<i64> {
        let seed = mix(u64::from(rank) << 40 ^ (self as u64) << 36 ^ wave.wrapping_add(1));
        // Small enough that a sum over all back-ends of a large network stays exact.
        let first = (seed >> 32) as i64;
        match self {
            Self::Sum | Self::Max => (first..first + FOLDED_ELEMENTS).collect(),
            Self::LargeSum => (first..first + LARGE_ELEMENTS).collect(),
            Self::Concatenate => vec![first; 1 + (seed % CONCATENATED_ELEMENTS_MAX) as usize],
            Self::Single => vec![i64::from(rank), wave as i64, first],
        }
    }

    /// Compares an answer that has a value with what its contributors have sent.
    pub(super) fn check(self, answer: &Answer) -> Result<(), String> {
        let expected = self.expected(&answer.contributors, answer.wave);
        let found: Result<Vec<i64>, _> = answer.value().and_then(|values| {
            let elements = values.array::<i64>(0)?;
            Ok(elements.to_vec())
        });
        match found {
            Ok(found) if found == expected => Ok(()),
            Ok(found) => {
                Err(format!("the value is {} and not {}", in_short(&found), in_short(&expected)))
            }
            Err(error) => Err(format!("the value cannot be read: {error}")),
        }
    }

    /// The elements of an answer to which exactly these back-ends have contributed.
    pub(super) fn expected(self, contributors: &RankSet, wave: Wave) -> Vec<i64> {
        let mut parts = contributors.iter().map(|rank| self.elements(rank, wave));
        let fold = |parts: &mut dyn Iterator<Item = Vec<i64>>, with: fn(i64, i64) -> i64| {
            parts.reduce(|left, right| left.iter().zip(&right).map(|(l, r)| with(*l, *r)).collect())
        };
        match self {
            Self::Sum | Self::LargeSum => {
                fold(&mut parts, |left, right| left + right).unwrap_or_default()
            }
            Self::Max => fold(&mut parts, i64::max).unwrap_or_default(),
            Self::Concatenate | Self::Single => parts.flatten().collect(),
        }
    }
}

fn in_short(elements: &[i64]) -> String {
    let first: Vec<String> = elements.iter().take(3).map(i64::to_string).collect();
    format!("{} elements from {}", elements.len(), first.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_is_in_it_twice_changes_the_value() {
        let ranks: RankSet = [3, 4].into_iter().collect();
        let right = Kind::Sum.expected(&ranks, 7);
        let twice: Vec<i64> =
            right.iter().zip(Kind::Sum.elements(4, 7)).map(|(sum, more)| sum + more).collect();
        assert_ne!(right, twice);
        assert_eq!(right.len(), 8);
    }

    #[test]
    fn no_two_waves_or_ranks_or_streams_send_the_same() {
        let mut seen = std::collections::BTreeSet::new();
        for kind in Kind::SMALL {
            for rank in 0..64 {
                for wave in 0..64 {
                    assert!(seen.insert(kind.elements(rank, wave)), "{kind:?} {rank} {wave}");
                }
            }
        }
    }
}
