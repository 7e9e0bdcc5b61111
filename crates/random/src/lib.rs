//! Numbers that look random and repeat with their seed.
//!
//! Owns [`Random`], the SplitMix64 of Steele, Lea and Flood ("Fast Splittable Pseudorandom Number
//! Generators", OOPSLA 2014), and its output function [`mix`]; beside it the hash [`fnv1a`].
//! Recorded seeds of the simulator mean the same for as long as these numbers do, and hashes of
//! names go over the wire, so that they never change. None of them is a secret: keys come from the
//! operating system.
//!
//! ```
//! use sapwood_random::Random;
//!
//! let mut random = Random::new(7);
//! let mut ranks = [0, 1, 2, 3];
//! random.shuffle(&mut ranks);
//! assert!(ranks.contains(random.choose(&ranks)));
//! assert!(random.below(6) < 6);
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

/// What the state grows by at each number: 2^64 divided by the golden ratio, made odd.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number of which each bit depends on all bits of another; different numbers have different ones
/// (mix64variant13, figure 14 of the paper).
#[must_use]
pub const fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The FNV-1a hash of bytes, 64 bits (by Fowler, Noll and Vo): the same in every process and
/// release. Its upper bits depend little on the last bytes.
#[must_use]
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A generator of 2^64 numbers, after which it repeats.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The numbers of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number below a bound; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of a product needs no division. Some numbers are more frequent than
        // others, by at most the bound divided by 2^64.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from the first to the last, both included.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// An index into a list of this length; 0 for a length of 0.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// True once in `count` times on average.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// A number from 0 to 1, without 1.
    pub fn fraction(&mut self) -> f64 {
        // As many bits as a double has.
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of these.
    ///
    /// # Panics
    /// If there is none.
    pub fn choose<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }

    /// Brings a list into one of all orders (Fisher and Yates).
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.index(last + 1));
        }
    }

    /// Fills memory with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.next_u64().to_le_bytes()[..part.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_generator() {
        // By `splitmix64.c` of Vigna, with the seed 1234567, and by Java's `SplittableRandom(0)`.
        let mut random = Random::new(1_234_567);
        for expected in [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ] {
            assert_eq!(random.next_u64(), expected);
        }
        let mut random = Random::new(0);
        let first = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!(first.map(|_: u64| random.next_u64()), first);
    }

    #[test]
    fn hashes_are_those_that_were_published() {
        // By the test vectors of the hash's authors (`test_fnv.c`).
        for (text, expected) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fnv1a(text.bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn numbers_repeat_with_the_seed_and_differ_between_seeds() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [random.next_u64(), random.next_u64(), random.below(1000)]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn bounds_hold_and_are_reached() {
        let mut random = Random::new(1);
        let (mut seen, mut ones) = ([false; 5], 0);
        for _ in 0..1000 {
            assert!(random.below(3) < 3);
            seen[random.between(5, 9) as usize - 5] = true;
            assert!((0.0..1.0).contains(&random.fraction()));
            ones += u32::from(random.one_in(10));
        }
        assert_eq!(seen, [true; 5]);
        assert!((50..200).contains(&ones), "{ones}");
        assert_eq!((random.below(0), random.index(0), random.between(4, 4)), (0, 0, 4));
    }

    #[test]
    fn a_list_is_shuffled_and_loses_nothing() {
        let mut random = Random::new(2);
        let mut list: [usize; 100] = core::array::from_fn(|at| at);
        random.shuffle(&mut list);
        assert!((0..100).any(|at| list[at] != at));
        assert!((0..100).all(|at| list.contains(&at)));
        assert!(list.contains(random.choose(&list)));
        random.shuffle(&mut [0_u8; 0]);
    }

    #[test]
    fn bytes_are_those_of_the_numbers_in_order() {
        let mut bytes = [0; 11];
        Random::new(0).fill(&mut bytes);
        assert_eq!(bytes[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
        assert_eq!(bytes[8..], 0x6e78_9e6a_a1b9_65f4_u64.to_le_bytes()[..3]);
    }
}
