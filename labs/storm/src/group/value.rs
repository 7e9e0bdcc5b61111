//! What members of a storming group are asked, what each gives to it, and what must come of it.
//!
//! Owns [`Ask`]. All values are made from the storm's seed, the operation's number and the virtual
//! node, so that a value of another operation, a contribution that is in a sum twice, and a segment
//! at another's place are all seen.

use std::fmt;

use sapwood::{Rank, RankSet};
use sapwood_random::mix;

/// The length of an element of a sum, in bytes.
const ELEMENT_BYTES: usize = 8;
/// A broadcast is up to one less than this longer than a sum: its last word need not be whole.
const ODD_BYTES: u64 = 8;
/// How many bits of a number are left away, so that sums over all members do not overflow.
const FIRST_BITS_LESS: u32 = 28;
const STEP_BITS_LESS: u32 = 44;

/// The operations of a group that the storm tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Collective {
    /// The root's bytes go to all.
    Broadcast,
    /// The root gets the sum of all.
    Reduce,
    /// All get the sum of all, which the root has made.
    Allreduce,
}

impl Collective {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Broadcast, Self::Reduce, Self::Allreduce];

    /// Its name in lines and reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
        }
    }
}

/// One operation, as all members are asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub collective: Collective,
    /// By which the calls of different members are matched.
    pub number: u64,
    pub root: Rank,
    /// The length of a contribution to a sum; a broadcast may be a few bytes longer.
    pub bytes: usize,
    /// Of the storm.
    pub seed: u64,
}

impl Ask {
    /// As a line of a member's input.
    pub(super) fn line(&self) -> String {
        let Self { collective, number, root, bytes, seed } = self;
        format!("{} {number} {root} {bytes} {seed}\n", collective.name())
    }

    /// Reads such a line.
    pub(super) fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        Some(Self {
            collective: Collective::ALL.into_iter().find(|each| each.name() == name)?,
            number: words.next()?.parse().ok()?,
            root: words.next()?.parse().ok()?,
            bytes: words.next()?.parse().ok()?,
            seed: words.next()?.parse().ok()?,
        })
    }

    /// What the root broadcasts.
    pub(super) fn payload(&self) -> Vec<u8> {
        let length = self.bytes + (self.number % ODD_BYTES) as usize;
        let mut bytes = Vec::with_capacity(length + ELEMENT_BYTES);
        let first = self.mixed(self.root);
        let mut word = 0_u64;
        while bytes.len() < length {
            bytes.extend_from_slice(&mix(first.wrapping_add(word)).to_le_bytes());
            word += 1;
        }
        bytes.truncate(length);
        bytes
    }

    /// What a virtual node adds to a sum.
    pub(super) fn numbers(&self, name: Rank) -> Vec<i64> {
        self.sum(&RankSet::range(name, name))
    }

    /// The sum over exactly these virtual nodes.
    pub(super) fn sum(&self, names: &RankSet) -> Vec<i64> {
        let (mut first, mut step) = (0_i64, 0_i64);
        for name in names.iter() {
            let mixed = self.mixed(name);
            first += (mixed >> FIRST_BITS_LESS) as i64;
            step += (mix(mixed) >> STEP_BITS_LESS) as i64;
        }
        let count = self.bytes / ELEMENT_BYTES;
        (0..count).map(|index| first + index as i64 * step).collect()
    }

    fn mixed(&self, name: Rank) -> u64 {
        mix(mix(self.seed ^ self.number << 20) ^ u64::from(name) << 40)
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collective, number, root, bytes, .. } = self;
        write!(f, "{} {number} of {bytes} bytes at {root}", collective.name())
    }
}

/// A value in short: its length, and a number on which each of its bytes and their order have an
/// effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest {
    pub bytes: usize,
    pub mixed: u64,
}

impl Digest {
    /// That of bytes.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        let mut mixed = 0_u64;
        for chunk in bytes.chunks(ELEMENT_BYTES) {
            let mut word = [0; ELEMENT_BYTES];
            word[..chunk.len()].copy_from_slice(chunk);
            mixed = mix(mixed.wrapping_add(1) ^ u64::from_le_bytes(word));
        }
        Self { bytes: bytes.len(), mixed }
    }

    /// That of numbers as a group carries them: little-endian.
    pub(super) fn of_numbers(numbers: &[i64]) -> Self {
        let mut mixed = 0_u64;
        for number in numbers {
            mixed = mix(mixed.wrapping_add(1) ^ *number as u64);
        }
        Self { bytes: numbers.len() * ELEMENT_BYTES, mixed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: Ask =
        Ask { collective: Collective::Allreduce, number: 12, root: 3, bytes: 4096, seed: 7 };

    fn added(left: &[i64], right: &[i64]) -> Vec<i64> {
        left.iter().zip(right).map(|(left, right)| left + right).collect()
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for collective in Collective::ALL {
            let ask = Ask { collective, ..ASK };
            assert_eq!(Ask::read(&ask.line()), Some(ask));
        }
        assert_eq!(Ask::read("barrier 1 2 3 4"), None);
        assert_eq!(Ask::read("reduce 1 2 3"), None);
    }

    #[test]
    fn a_sum_is_that_of_its_contributions_and_shows_one_that_is_missing_or_doubled() {
        let names: RankSet = [1, 2, 9].into_iter().collect();
        let all = added(&added(&ASK.numbers(1), &ASK.numbers(2)), &ASK.numbers(9));
        assert_eq!(ASK.sum(&names), all);
        assert_eq!(all.len(), 512);
        assert_ne!(ASK.sum(&names), added(&ASK.numbers(1), &ASK.numbers(2)));
        assert_ne!(ASK.sum(&names), added(&all, &ASK.numbers(9)));
    }

    #[test]
    fn a_digest_tells_each_byte_the_length_and_the_order() {
        let ask = Ask { collective: Collective::Broadcast, ..ASK };
        let payload = ask.payload();
        assert_eq!(payload.len(), 4100);
        let right = Digest::of_bytes(&payload);
        for at in [0, 7, 2048, 4099] {
            let mut wrong = payload.clone();
            wrong[at] ^= 1;
            assert_ne!(Digest::of_bytes(&wrong), right, "byte {at}");
        }
        assert_ne!(Digest::of_bytes(&payload[..4099]), right);
        let mut swapped = payload.clone();
        swapped[..2048].rotate_left(1024);
        assert_ne!(Digest::of_bytes(&swapped), right);
        assert_ne!(Ask { number: 20, ..ask }.payload(), payload);
    }

    #[test]
    fn numbers_and_their_bytes_have_one_digest() {
        let numbers = ASK.numbers(5);
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!(Digest::of_numbers(&numbers), Digest::of_bytes(&bytes));
    }
}
