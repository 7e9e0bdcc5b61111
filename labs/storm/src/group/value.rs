//! What members of a storming group are asked, and what each gives to it.
//!
//! Owns [`Ask`]. All values are made from the storm's seed, the operation's number and the virtual
//! node with which a process has joined, so that a value of another operation, a contribution that
//! is in a sum twice, and a segment at another's place are all seen.

use std::fmt;

use sapwood::{Rank, RankSet};
use sapwood_random::mix;
use serde_json::{Value, json};

use super::collective::Collective;

/// The length of an element of a sum, in bytes.
pub(super) const ELEMENT_BYTES: usize = 8;
/// Bytes are up to one less than this longer than a sum: the last word need not be whole.
const ODD_BYTES: u64 = 8;
/// How many bits of a number are left away, so that sums over all members do not overflow.
const FIRST_BITS_LESS: u32 = 28;
const STEP_BITS_LESS: u32 = 44;
/// Values from this length on travel in several segments, but for those of a gather on their way
/// up.
const SEVERAL_SEGMENTS_BYTES: usize = 64 << 10;

/// One operation, as all members are asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub collective: Collective,
    /// By which the calls of different members are matched.
    pub number: u64,
    pub root: Rank,
    /// The virtual node that gets what is sent to one; otherwise the root.
    pub to: Rank,
    /// How many virtual nodes the group has at the begin, from 0 on.
    pub members: u32,
    /// The length of a contribution to a sum; others depend on it.
    pub bytes: usize,
    /// Of the storm.
    pub seed: u64,
}

impl Ask {
    /// As a line of a member's input.
    pub(super) fn line(&self) -> String {
        let Self { collective, number, root, to, members, bytes, seed } = self;
        format!("{} {number} {root} {to} {members} {bytes} {seed}\n", collective.name())
    }

    /// Reads such a line.
    pub(super) fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        Some(Self {
            collective: Collective::ALL.into_iter().find(|each| each.name() == name)?,
            number: words.next()?.parse().ok()?,
            root: words.next()?.parse().ok()?,
            to: words.next()?.parse().ok()?,
            members: words.next()?.parse().ok()?,
            bytes: words.next()?.parse().ok()?,
            seed: words.next()?.parse().ok()?,
        })
    }

    /// Whether one of its values travels in several segments.
    pub(super) fn has_several_segments(&self) -> bool {
        self.length() >= SEVERAL_SEGMENTS_BYTES
    }

    /// What the root gives to all, or to one virtual node.
    pub(super) fn payload(&self) -> Vec<u8> {
        self.text(self.root, None)
    }

    /// The bytes that a process gives to all alike, or to a virtual node.
    pub(super) fn text(&self, from: Rank, to: Option<Rank>) -> Vec<u8> {
        let length = self.length() + (self.number % ODD_BYTES) as usize;
        let mut bytes = Vec::with_capacity(length + ELEMENT_BYTES);
        let first = self.mixed(from);
        let first = to.map_or(first, |to| mix(first ^ (u64::from(to) + 1)));
        let mut word = 0_u64;
        while bytes.len() < length {
            bytes.extend_from_slice(&mix(first.wrapping_add(word)).to_le_bytes());
            word += 1;
        }
        bytes.truncate(length);
        bytes
    }

    /// What a process adds to a sum.
    pub(super) fn numbers(&self, name: Rank) -> Vec<i64> {
        self.sum(&RankSet::range(name, name))
    }

    /// What a process gives to an operation that members define: odd, so that no product of them
    /// forgets a factor.
    pub(super) fn odd_numbers(&self, name: Rank) -> Vec<i64> {
        self.numbers(name).into_iter().map(|number| number | 1).collect()
    }

    /// The sum over exactly these.
    pub(super) fn sum(&self, names: &RankSet) -> Vec<i64> {
        let (mut first, mut step) = (0_i64, 0_i64);
        for name in names.iter() {
            let mixed = self.mixed(name);
            first += (mixed >> FIRST_BITS_LESS) as i64;
            step += (mix(mixed) >> STEP_BITS_LESS) as i64;
        }
        let count = match self.collective {
            Collective::ReduceScatter => self.block() * self.members as usize,
            _ => self.length() / ELEMENT_BYTES,
        };
        (0..count).map(|index| first + index as i64 * step).collect()
    }

    /// How many elements of a sum each virtual node gets, where each gets a block.
    pub(super) fn block(&self) -> usize {
        (self.bytes / ELEMENT_BYTES / self.members.max(1) as usize).max(1)
    }

    /// The length of a contribution, but for the bytes of a word that is not whole.
    fn length(&self) -> usize {
        (self.bytes / self.collective.share() / ELEMENT_BYTES).max(1) * ELEMENT_BYTES
    }

    fn mixed(&self, name: Rank) -> u64 {
        mix(mix(self.seed ^ self.number << 20) ^ u64::from(name) << 40)
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collective, number, root, bytes, .. } = self;
        write!(f, "{} {number} of {bytes} bytes at {root}", collective.name())?;
        match collective {
            Collective::Send => write!(f, " to {}", self.to),
            _ => Ok(()),
        }
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

    /// As a member tells it to the storm.
    pub(super) fn told(self) -> Value {
        json!({ "bytes": self.bytes, "digest": self.mixed })
    }

    /// What a member has told; none if it is no digest.
    pub(super) fn read(told: &Value) -> Option<Self> {
        let bytes = usize::try_from(told["bytes"].as_u64()?).ok()?;
        Some(Self { bytes, mixed: told["digest"].as_u64()? })
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

/// One of several values in an answer, with the virtual node that the answer names for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub name: Rank,
    pub digest: Digest,
}

/// What an answer gives to a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Whole(Digest),
    Parts(Vec<Part>),
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: Ask = Ask {
        collective: Collective::Allreduce,
        number: 12,
        root: 3,
        to: 3,
        members: 4,
        bytes: 4096,
        seed: 7,
    };

    fn added(left: &[i64], right: &[i64]) -> Vec<i64> {
        left.iter().zip(right).map(|(left, right)| left + right).collect()
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for collective in Collective::ALL {
            let ask = Ask { collective, ..ASK };
            assert_eq!(Ask::read(&ask.line()), Some(ask));
        }
        assert_eq!(Ask::read("barrier 1 2 2 3 4 5"), None);
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
    fn blocks_make_up_the_sum_whatever_its_length() {
        for bytes in [8, 64, 4096, 4104] {
            let ask = Ask { collective: Collective::ReduceScatter, members: 5, bytes, ..ASK };
            assert_eq!(ask.numbers(1).len(), ask.block() * 5, "{bytes}");
            assert!(ask.block() > 0);
        }
    }

    #[test]
    fn each_process_has_other_bytes_for_each_virtual_node() {
        let ask = Ask { collective: Collective::AllToAll, ..ASK };
        let texts = [ask.text(1, Some(2)), ask.text(2, Some(1)), ask.text(1, Some(1))];
        assert!(texts.iter().all(|text| text.len() == 256 + 4));
        assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2]);
        assert_ne!(ask.text(1, None), ask.text(1, Some(0)));
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
