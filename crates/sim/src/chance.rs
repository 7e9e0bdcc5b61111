//! A repeatable random generator: its numbers follow from its seed.

/// A source of numbers that look random and repeat with the seed (SplitMix64, Steele, Lea and
/// Flood, OOPSLA'14).
#[derive(Clone, Debug)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// The numbers of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring first numbers.
        let mut chance = Self { state: seed ^ 0x5eed_5a9d_0000_0001 };
        chance.next_number();
        chance
    }

    /// A generator of its own, so that what one part draws does not move what another draws.
    pub fn split(&mut self) -> Self {
        Self::new(self.next_number())
    }

    /// The next number.
    pub fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of a product is spread evenly enough, and needs no division.
        ((u128::from(self.next_number()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from the first to the last, both included.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// An index into a list of this length, which is not empty.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// True once in `count` times on average.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// One of these, which are not none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_repeat_with_the_seed_and_differ_between_seeds() {
        let draw = |seed| {
            let mut chance = Chance::new(seed);
            [chance.next_number(), chance.next_number(), chance.below(1000)]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn bounds_hold() {
        let mut chance = Chance::new(1);
        for _ in 0..1000 {
            assert!(chance.below(3) < 3);
            assert!((5..=9).contains(&chance.between(5, 9)));
        }
        assert_eq!(chance.below(0), 0);
    }
}
