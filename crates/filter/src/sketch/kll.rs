//! `kll`: quantiles of numbers with a bound on the error in rank.
//!
//! Karnin, Lang, Liberty, "Optimal Quantile Approximation in Streams" (FOCS 2016, sections 2 to 4):
//! numbers lie on levels, those of level h standing for 2^h numbers each. Level h of H has room for
//! k (2/3)^(H-1-h), at least 2. When all levels together are too full, the lowest one that is over
//! its room is *compacted*: sorted, and every second number, even or odd ones by a random bit, goes
//! to the next level. Two sketches are merged level by level and then compacted (section 3.1).
//!
//! **Error.** A compaction of level h changes the rank of any number by 0 or, either way with the
//! same chance, by 2^h. The sketch carries the sum V of the squares of all those steps. By
//! Hoeffding's inequality a rank is wrong by more than t with a chance of at most
//! 2 exp(-t^2 / 2V); [`Kll::rank_error`] solves that for t. Whatever the order of merges, V is at
//! most 6 (n / k)^2 for n numbers (the sum of section 3, with the rooms above), so that the share
//! of the ranks by which one is wrong is below sqrt(12 ln(2 / d)) / k except with a chance of d:
//! 8 / k at 99 %. What V gives is smaller mostly.
//!
//! **Random bits** come from a seed: of the stream, the wave and the rank of the process in the
//! filter, and of the caller's in [`Kll::new`]. The same packets give the same sketch again;
//! another shape of tree gives another sketch, of the same bound.
//!
//! Parameter: k, an integer from 8 to 65535, default 200. The encoded sketch, at most about 24 k +
//! 1,100 bytes (5 KB for 200):
//!
//! ```text
//! %ud    k                      %uld   numbers               %uld   left out: NaN
//! %lf    V                      %uld   state of the random bits
//! %lf    smallest number        %lf    largest number
//! %aud   numbers on each level  %alf   the numbers, level after level
//! ```

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use sapwood_packet::{Directive, ElementType, FormatRef, IntoValues, PacketRef, Values, ValuesRef};
use sapwood_random::{STEP, mix};

use super::{Sketch, array, forged, is_same, parameter, raw, scalar, unlike};
use crate::{Filter, FilterError, WaveRef};

const NAME: &str = "kll";

const K: u32 = 200;
const K_BOUNDS: [u32; 2] = [8, 65535];
const TAKES_PARAMETERS: &str = "one integer, k, from 8 to 65535";
/// Least room of a level, in numbers.
const ROOM_MIN: usize = 2;
/// More levels would stand for more than 2^64 numbers.
const LEVELS_MAX: usize = 64;

const LAYOUT: [Directive; 9] = [
    scalar(ElementType::Uint32),
    scalar(ElementType::Uint64),
    scalar(ElementType::Uint64),
    scalar(ElementType::Double),
    scalar(ElementType::Uint64),
    scalar(ElementType::Double),
    scalar(ElementType::Double),
    array(ElementType::Uint32),
    array(ElementType::Double),
];

/// Quantiles of numbers with a bounded error in rank.
///
/// ```
/// use sapwood_filter::Kll;
///
/// let mut sizes = Kll::new(200, 7)?;
/// (0..100_000).for_each(|size| sizes.add(f64::from(size)));
/// let median = sizes.quantile(0.5).expect("numbers");
/// assert!((median - 50_000.0).abs() <= sizes.rank_error(1e-9));
/// # Ok::<(), sapwood_filter::FilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Kll {
    k: u32,
    count: u64,
    left_out: u64,
    /// V: the sum of the squares of the weights of all compactions.
    variance: f64,
    generator: u64,
    min: f64,
    max: f64,
    /// Level h stands for 2^h numbers by each of its own; there is at least one level.
    levels: Vec<Vec<f64>>,
    /// Numbers on all levels, and the room of all.
    size: usize,
    room: usize,
}

impl Kll {
    /// The sketch of no numbers. Let every process use a seed of its own, such as its rank.
    ///
    /// # Errors
    /// [`FilterError::Parameters`] when k is not from 8 to 65535.
    pub fn new(k: u32, seed: u64) -> Result<Self, FilterError> {
        if !(K_BOUNDS[0]..=K_BOUNDS[1]).contains(&k) {
            return Err(FilterError::Parameters { name: NAME, takes: TAKES_PARAMETERS });
        }
        let mut sketch = Self {
            k,
            count: 0,
            left_out: 0,
            variance: 0.0,
            generator: mix(seed),
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            levels: Vec::new(),
            size: 0,
            room: 0,
        };
        sketch.grow();
        Ok(sketch)
    }

    /// Adds a number. A NaN, or one after 2^64 others, is only counted ([`Kll::left_out`]).
    pub fn add(&mut self, number: f64) {
        if number.is_nan() || self.count == u64::MAX {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        self.min = self.min.min(number);
        self.max = self.max.max(number);
        self.count += 1;
        self.levels[0].push(number);
        self.size += 1;
        self.compress();
    }

    /// Takes in another sketch of the same k. The random bits are this one's.
    ///
    /// # Errors
    /// [`FilterError::Failed`] when the other's k differs, or both hold more than 2^64 numbers.
    pub fn merge(&mut self, other: &Self) -> Result<(), FilterError> {
        if self.k != other.k {
            return Err(unlike(NAME, &format!("k = {} for {}", other.k, self.k)));
        }
        let too_many = || super::failed(NAME, "more than 2^64 numbers in one sketch");
        self.count = self.count.checked_add(other.count).ok_or_else(too_many)?;
        self.left_out = self.left_out.saturating_add(other.left_out);
        self.variance = (self.variance + other.variance).min(f64::MAX);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        while self.levels.len() < other.levels.len() {
            self.grow();
        }
        for (mine, other) in self.levels.iter_mut().zip(&other.levels) {
            mine.extend_from_slice(other);
            self.size += other.len();
        }
        self.compress();
        Ok(())
    }

    /// The number of which a share `q` of all is smaller: one whose place among all numbers in
    /// order is within [`Kll::rank_error`] of floor(q * (count - 1)). Nothing for no numbers. `q`
    /// below 0 counts as 0, above 1 as 1.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let last = self.count.checked_sub(1)?;
        if q <= 0.0 {
            return Some(self.min);
        }
        let mut place = ((q.clamp(0.0, 1.0) * last as f64) as u64).min(last);
        if place == last {
            return Some(self.max);
        }
        let mut weighted = self.weighted();
        weighted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        for (number, weight) in weighted {
            match place.checked_sub(weight) {
                Some(rest) => place = rest,
                None => return Some(number),
            }
        }
        Some(self.max)
    }

    /// How many numbers are at most `number`, within [`Kll::rank_error`].
    #[must_use]
    pub fn rank(&self, number: f64) -> u64 {
        let weighted = self.weighted();
        let below = weighted.iter().filter(|(other, _)| *other <= number);
        below.fold(0, |rank, (_, weight)| rank.saturating_add(*weight))
    }

    /// How far a rank that the sketch gives may be from the truth, in numbers: further only with a
    /// chance of `chance`, from 0 to 1. It is 0 as long as nothing was compacted.
    #[must_use]
    pub fn rank_error(&self, chance: f64) -> f64 {
        if self.variance == 0.0 {
            return 0.0;
        }
        libm::sqrt(2.0 * self.variance * libm::log(2.0 / chance.clamp(f64::MIN_POSITIVE, 1.0)))
    }

    /// How many numbers are in it.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many NaN were left out.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The smallest number, exactly.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest number, exactly.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// Reads an encoded sketch, of the filter or of [`IntoValues::into_values`].
    ///
    /// # Errors
    /// [`FilterError::Format`] when the format is another, [`FilterError::Values`] or
    /// [`FilterError::Failed`] when the values do not fit together.
    pub fn from_values(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        Self::read(values)
    }

    /// Every number with how many it stands for.
    fn weighted(&self) -> Vec<(f64, u64)> {
        let levels = self.levels.iter().enumerate();
        let weighted = levels.flat_map(|(h, level)| level.iter().map(move |&n| (n, 1_u64 << h)));
        weighted.collect()
    }

    /// The capacity of a level for the present number of levels.
    fn room_of(&self, level: usize) -> usize {
        let below_top = (self.levels.len() - 1 - level) as i32;
        let room = libm::ceil(f64::from(self.k) * libm::pow(2.0 / 3.0, f64::from(below_top)));
        (room as usize).max(ROOM_MIN)
    }

    fn grow(&mut self) {
        self.levels.push(Vec::new());
        self.room = (0..self.levels.len()).map(|level| self.room_of(level)).sum();
    }

    /// Compacts until all levels together are within their room.
    fn compress(&mut self) {
        while self.size > self.room {
            // Were every level within its room, all together would be.
            let full = (0..self.levels.len()).find(|&h| self.levels[h].len() > self.room_of(h));
            let Some(full) = full else { return };
            if full + 1 == self.levels.len() {
                self.grow();
            }
            self.compact(full);
        }
    }

    fn compact(&mut self, level: usize) {
        let mut numbers = core::mem::take(&mut self.levels[level]);
        numbers.sort_unstable_by(f64::total_cmp);
        // A number without partner stays; all others are halved.
        let single = if numbers.len() % 2 == 1 { numbers.pop() } else { None };
        self.generator = self.generator.wrapping_add(STEP);
        let odd = (mix(self.generator) & 1) as usize;
        let kept = numbers.iter().copied().skip(odd).step_by(2);
        self.levels[level + 1].extend(kept);
        self.size -= numbers.len() / 2;
        self.variance += libm::scalbn(1.0, 2 * level as i32);
        numbers.clear();
        numbers.extend(single);
        self.levels[level] = numbers;
    }
}

impl IntoValues for Kll {
    fn append_to(self, values: Values) -> Values {
        // Levels are as long as there is memory for; their sum is below 2^32.
        let sizes: Vec<u32> = self.levels.iter().map(|level| level.len() as u32).collect();
        values
            .scalar(self.k)
            .scalar(self.count)
            .scalar(self.left_out)
            .scalar(self.variance)
            .scalar(self.generator)
            .scalar(self.min)
            .scalar(self.max)
            .array(&sizes)
            .array(&self.levels.concat())
    }
}

impl Sketch for Kll {
    const NAME: &'static str = NAME;
    const TAKES: &'static str = "one number, one array of numbers, or its own sketches";
    type Parameters = Self;

    fn parameters(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        let k = parameter::only_integer(values, K, K_BOUNDS);
        Self::new(k.unwrap_or(0), 0)
    }

    fn begin(parameters: &Self, wave: &WaveRef<'_>) -> Self {
        let mut sketch = parameters.clone();
        let parts = [u64::from(wave.stream), wave.wave, u64::from(wave.rank)];
        let seed = parts.into_iter().fold(0, |seed, part| mix(seed ^ part).wrapping_add(STEP));
        sketch.generator = mix(seed);
        sketch
    }

    fn is_layout(format: FormatRef<'_>) -> bool {
        is_same(format, &LAYOUT)
    }

    fn is_raw(format: FormatRef<'_>) -> bool {
        raw::is_numbers(format)
    }

    fn add_raw(&mut self, packet: &PacketRef<'_>) -> Result<(), FilterError> {
        raw::each_double(packet.values(), |number| self.add(number))
    }

    fn decode(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        let mut sketch = Self::new(values.scalar(0)?, 0)
            .map_err(|_| forged(NAME, "a k that is out of range"))?;
        sketch.count = values.scalar(1)?;
        sketch.left_out = values.scalar(2)?;
        sketch.variance = values.scalar(3)?;
        sketch.generator = values.scalar(4)?;
        (sketch.min, sketch.max) = (values.scalar(5)?, values.scalar(6)?);
        let (sizes, mut rest) = (values.array::<u32>(7)?, values.array::<f64>(8)?);
        if sizes.is_empty() || sizes.len() > LEVELS_MAX || rest.iter().any(|n| n.is_nan()) {
            return Err(forged(NAME, "too many levels, or none, or a NaN"));
        }
        let is_empty = sketch.count == 0;
        let is_ordered = sketch.min <= sketch.max || is_empty;
        if !sketch.variance.is_finite() || sketch.variance < 0.0 || !is_ordered {
            return Err(forged(NAME, "no error, or no smallest or largest number"));
        }
        let mut count = 0_u128;
        for (h, &size) in sizes.iter().enumerate() {
            let (numbers, others) = rest
                .split_at_checked(size as usize)
                .ok_or_else(|| forged(NAME, "fewer numbers than on its levels"))?;
            if h > 0 {
                sketch.grow();
            }
            sketch.levels[h].extend_from_slice(numbers);
            sketch.size += numbers.len();
            count += u128::from(size) << h;
            rest = others;
        }
        if !rest.is_empty() || count != u128::from(sketch.count) {
            return Err(forged(NAME, "other numbers than it counts"));
        }
        if is_empty {
            (sketch.min, sketch.max) = (f64::INFINITY, f64::NEG_INFINITY);
        }
        Ok(sketch)
    }

    fn absorb(&mut self, other: Self) -> Result<(), FilterError> {
        self.merge(&other)
    }
}

/// Makes the filter; its parameter is k.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    super::make::<Kll>(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_numbers_are_kept_as_they_are() {
        let mut sketch = Kll::new(8, 1).expect("k");
        [3.0, -1.0, 2.0, f64::NAN].into_iter().for_each(|number| sketch.add(number));
        assert_eq!(sketch.rank_error(0.01), 0.0);
        assert_eq!([0.0, 0.5, 1.0].map(|q| sketch.quantile(q)), [Some(-1.0), Some(2.0), Some(3.0)]);
        assert_eq!((sketch.count(), sketch.left_out(), sketch.rank(2.5)), (3, 1, 2));
    }

    #[test]
    fn the_sum_of_squares_stays_below_its_bound_and_the_size_too() {
        for k in [8, 50, 200] {
            let mut sketch = Kll::new(k, 5).expect("k");
            for step in 0..200_000_u32 {
                sketch.add(f64::from(step.wrapping_mul(2_654_435_761)));
            }
            let share = 200_000.0 / f64::from(k);
            assert!(sketch.variance <= 6.0 * share * share, "k = {k}: {}", sketch.variance);
            assert!(sketch.size <= 3 * k as usize + 2 * sketch.levels.len(), "k = {k}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_sketch() {
        let sketch = |seed| {
            let mut sketch = Kll::new(20, seed).expect("k");
            (0..5000).for_each(|step| sketch.add(f64::from(step * 7 % 1000)));
            sketch
        };
        assert_eq!(sketch(3), sketch(3));
        assert_ne!(sketch(3).levels, sketch(4).levels);
    }
}
