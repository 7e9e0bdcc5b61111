//! `quantiles`: quantiles of numbers with a bound on the relative error of every one.
//!
//! A DDSketch (Masson, Rim, Lee, "DDSketch: A Fast and Fully-Mergeable Quantile Sketch with
//! Relative-Error Guarantees", VLDB 2019, section 2): a number x > 0 is counted in bin
//! ceil(log_g x), where g = (1 + a) / (1 - a) and a is the relative error; negative numbers are
//! counted likewise by magnitude, and zeros by themselves.
//!
//! The bins are bounded. When there would be more than the bound, each two neighbours become one
//! (bin i goes to ceil(i / 2)), for all numbers alike: the *uniform collapse* of Epicoco, Melle,
//! Cafaro, Pulimeno and Morleo, "UDDSketch: Accurate Tracking of Quantiles in Data Streams" (IEEE
//! Access 8, 2020, section III). It squares g, so that the error becomes 2a / (1 + a^2), about
//! twice what it was, for every quantile, instead of unbounded for the low ones.
//! [`Quantiles::relative_error`] says what holds. With the defaults (0.01 and 2048 bins) a first
//! collapse needs magnitudes that span more than 17 powers of ten.
//!
//! How often bins collapse depends on the numbers alone: a sketch is the same, bit for bit, in
//! whatever order its parts were merged.
//!
//! Parameters: the relative error (a double from 1e-6 to 0.5, default 0.01), then the most bins (an
//! integer from 16 to 16384, default 2048). The encoded sketch, 88 bytes and 12 for each bin:
//!
//! ```text
//! %lf    relative error without collapses
//! %ud    most bins           %ud    collapses so far
//! %uld   zeros               %uld   left out: NaN and infinite
//! %lf    smallest number     %lf    largest number
//! %ad    bins of the negative numbers, ascending     %auld  their counts
//! %ad    bins of the positive numbers, ascending     %auld  their counts
//! ```

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use sapwood_packet::{Directive, ElementType, FormatRef, IntoValues, PacketRef, Values, ValuesRef};

use super::{Sketch, array, forged, is_same, parameter, raw, scalar, unlike};
use crate::{Filter, FilterError, WaveRef};

const NAME: &str = "quantiles";

const ERROR: f64 = 0.01;
const ERROR_MIN: f64 = 1e-6;
const ERROR_MAX: f64 = 0.5;
const BINS: u32 = 2048;
const BINS_MIN: u32 = 16;
/// So that a new bin never moves more than 256 KiB of others.
const BINS_MAX: u32 = 16384;
/// No bin of a double is beyond it at the smallest error: ln(2^1075) / 2e-6 < 2^29.
const INDEX_MAX: u32 = 1 << 30;
/// This many collapses take every double into one of four bins.
const COLLAPSES_MAX: u32 = 30;

const LAYOUT: [Directive; 11] = [
    scalar(ElementType::Double),
    scalar(ElementType::Uint32),
    scalar(ElementType::Uint32),
    scalar(ElementType::Uint64),
    scalar(ElementType::Uint64),
    scalar(ElementType::Double),
    scalar(ElementType::Double),
    array(ElementType::Int32),
    array(ElementType::Uint64),
    array(ElementType::Int32),
    array(ElementType::Uint64),
];

/// A bin: its index at the current number of collapses, and how many numbers are in it.
type Bin = (i32, u64);

/// Quantiles of numbers, each with a bounded relative error.
///
/// ```
/// use sapwood_filter::Quantiles;
///
/// let mut latencies = Quantiles::new(0.01)?;
/// (1..=1000).for_each(|milliseconds| latencies.add(f64::from(milliseconds)));
/// let p99 = latencies.quantile(0.99).expect("numbers");
/// assert!((p99 - 990.0).abs() <= 0.01 * 990.0);
/// # Ok::<(), sapwood_filter::FilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles {
    error: f64,
    /// ln((1 + a) / (1 - a)), what the limits of bins differ by before any collapse.
    width: f64,
    bins_max: u32,
    collapses: u32,
    zeros: u64,
    left_out: u64,
    min: f64,
    max: f64,
    negative: Vec<Bin>,
    positive: Vec<Bin>,
}

impl Quantiles {
    /// The sketch of no numbers, with that relative error and at most 2048 bins.
    ///
    /// # Errors
    /// As [`Quantiles::with_bins`].
    pub fn new(relative_error: f64) -> Result<Self, FilterError> {
        Self::with_bins(relative_error, BINS)
    }

    /// The sketch of no numbers, with that relative error and at most this many bins.
    ///
    /// # Errors
    /// [`FilterError::Parameters`] when the error is not from 1e-6 to 0.5, or the bins are not from
    /// 16 to 16384.
    pub fn with_bins(relative_error: f64, bins_max: u32) -> Result<Self, FilterError> {
        let is_error = (ERROR_MIN..=ERROR_MAX).contains(&relative_error);
        if !is_error || !(BINS_MIN..=BINS_MAX).contains(&bins_max) {
            return Err(FilterError::Parameters { name: NAME, takes: TAKES_PARAMETERS });
        }
        Ok(Self {
            error: relative_error,
            width: libm::log((1.0 + relative_error) / (1.0 - relative_error)),
            bins_max,
            collapses: 0,
            zeros: 0,
            left_out: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            negative: Vec::new(),
            positive: Vec::new(),
        })
    }

    /// Adds a number. NaN and infinite ones are only counted ([`Quantiles::left_out`]).
    pub fn add(&mut self, number: f64) {
        if !number.is_finite() {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        self.min = self.min.min(number);
        self.max = self.max.max(number);
        if number == 0.0 {
            self.zeros = self.zeros.saturating_add(1);
            return;
        }
        let magnitude = libm::fabs(number);
        let index = libm::ceil(libm::log(magnitude) / self.width) as i32;
        let index = collapsed(index, self.collapses);
        let bins = if number < 0.0 { &mut self.negative } else { &mut self.positive };
        match bins.binary_search_by_key(&index, |bin| bin.0) {
            Ok(at) => bins[at].1 = bins[at].1.saturating_add(1),
            Err(at) => {
                bins.insert(at, (index, 1));
                self.shrink();
            }
        }
    }

    /// Takes in another sketch of the same relative error.
    ///
    /// # Errors
    /// [`FilterError::Failed`] when it was made with another one.
    pub fn merge(&mut self, other: &Self) -> Result<(), FilterError> {
        if self.error.to_bits() != other.error.to_bits() {
            return Err(unlike(
                NAME,
                &format!("relative error {} for {}", other.error, self.error),
            ));
        }
        while self.collapses < other.collapses {
            self.collapse();
        }
        let more = self.collapses - other.collapses;
        self.negative = merged(&self.negative, &other.negative, more);
        self.positive = merged(&self.positive, &other.positive, more);
        self.zeros = self.zeros.saturating_add(other.zeros);
        self.left_out = self.left_out.saturating_add(other.left_out);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.shrink();
        Ok(())
    }

    /// The number of which a share `q` of all is smaller: that at place floor(q * (count - 1)) of
    /// all numbers in order, counted from 0. Within [`Quantiles::relative_error`] of the truth;
    /// nothing for no numbers. `q` below 0 counts as 0, above 1 as 1.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let last = self.count().checked_sub(1)?;
        let mut place = ((q.clamp(0.0, 1.0) * last as f64) as u64).min(last);
        let zeros = [(0.0, self.zeros)];
        let negative = self.negative.iter().rev().map(|bin| (-self.middle(bin.0), bin.1));
        let positive = self.positive.iter().map(|bin| (self.middle(bin.0), bin.1));
        for (number, count) in negative.chain(zeros).chain(positive) {
            match place.checked_sub(count) {
                Some(rest) => place = rest,
                // The exact extremes can only reduce the error.
                None => return Some(number.clamp(self.min, self.max)),
            }
        }
        Some(self.max)
    }

    /// The bound on the relative error of every quantile: that asked for, unless bins collapsed.
    /// Rounding of logarithms adds less than 1e-12.
    #[must_use]
    pub fn relative_error(&self) -> f64 {
        if self.collapses == 0 { self.error } else { libm::tanh(self.width() / 2.0) }
    }

    /// How many numbers are in it.
    #[must_use]
    pub fn count(&self) -> u64 {
        let bins = self.negative.iter().chain(&self.positive);
        bins.fold(self.zeros, |count, bin| count.saturating_add(bin.1))
    }

    /// How many numbers were left out because they are NaN or infinite.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The smallest number, exactly.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        (self.min <= self.max).then_some(self.min)
    }

    /// The largest number, exactly.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        (self.min <= self.max).then_some(self.max)
    }

    /// Reads an encoded sketch, of the filter or of [`IntoValues::into_values`].
    ///
    /// # Errors
    /// [`FilterError::Format`] when the format is another, [`FilterError::Values`] or
    /// [`FilterError::Failed`] when the values do not fit together.
    pub fn from_values(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        Self::read(values)
    }

    /// The logarithm of what the limits of two neighbouring bins differ by.
    fn width(&self) -> f64 {
        libm::scalbn(self.width, self.collapses as i32)
    }

    /// The number that is within the relative error of all in a bin: 2 g^i / (g + 1).
    fn middle(&self, index: i32) -> f64 {
        let width = self.width();
        let below = (f64::from(index) - 1.0) * width;
        libm::exp(below + core::f64::consts::LN_2 - libm::log1p(libm::exp(-width)))
    }

    fn shrink(&mut self) {
        while self.negative.len() + self.positive.len() > self.bins_max as usize {
            self.collapse();
        }
    }

    fn collapse(&mut self) {
        for bins in [&mut self.negative, &mut self.positive] {
            *bins = merged(&[], bins, 1);
        }
        self.collapses += 1;
    }
}

/// The index of a bin after this many further collapses: ceil(index / 2^collapses).
fn collapsed(index: i32, collapses: u32) -> i32 {
    -(-index >> collapses)
}

/// Bins of both, the other's after this many further collapses.
fn merged(mine: &[Bin], other: &[Bin], collapses: u32) -> Vec<Bin> {
    let mut bins: Vec<Bin> = Vec::with_capacity(mine.len() + other.len());
    let mut push = |(index, count): Bin| match bins.last_mut() {
        Some(last) if last.0 == index => last.1 = last.1.saturating_add(count),
        _ => bins.push((index, count)),
    };
    let mut mine = mine.iter().copied().peekable();
    for &(index, count) in other {
        let index = collapsed(index, collapses);
        while let Some(bin) = mine.next_if(|bin| bin.0 <= index) {
            push(bin);
        }
        push((index, count));
    }
    mine.for_each(push);
    bins
}

impl IntoValues for Quantiles {
    fn append_to(self, values: Values) -> Values {
        let indices = |bins: &[Bin]| bins.iter().map(|bin| bin.0).collect::<Vec<_>>();
        let counts = |bins: &[Bin]| bins.iter().map(|bin| bin.1).collect::<Vec<_>>();
        values
            .scalar(self.error)
            .scalar(self.bins_max)
            .scalar(self.collapses)
            .scalar(self.zeros)
            .scalar(self.left_out)
            .scalar(self.min)
            .scalar(self.max)
            .array(&indices(&self.negative))
            .array(&counts(&self.negative))
            .array(&indices(&self.positive))
            .array(&counts(&self.positive))
    }
}

const TAKES_PARAMETERS: &str =
    "a relative error from 1e-6 to 0.5 and, if wanted, the most bins, 16 to 16384";

impl Sketch for Quantiles {
    const NAME: &'static str = NAME;
    const TAKES: &'static str = "one number, one array of numbers, or its own sketches";
    type Parameters = Self;

    fn parameters(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        let wrong = FilterError::Parameters { name: NAME, takes: TAKES_PARAMETERS };
        if !parameter::are_numbers(values, 2) {
            return Err(wrong);
        }
        let error = if values.is_empty() { Some(ERROR) } else { parameter::double(values, 0) };
        let bins = match values.len() {
            2 => parameter::integer(values, 1, [BINS_MIN, BINS_MAX]),
            _ => Some(BINS),
        };
        match (error, bins) {
            (Some(error), Some(bins)) => Self::with_bins(error, bins),
            _ => Err(wrong),
        }
    }

    fn begin(parameters: &Self, _: &WaveRef<'_>) -> Self {
        parameters.clone()
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
        let mut sketch = Self::with_bins(values.scalar(0)?, values.scalar(1)?)
            .map_err(|_| forged(NAME, "an error or a bound that is out of range"))?;
        sketch.collapses = values.scalar(2)?;
        sketch.zeros = values.scalar(3)?;
        sketch.left_out = values.scalar(4)?;
        sketch.negative = decode_bins(values.array(7)?, values.array(8)?)?;
        sketch.positive = decode_bins(values.array(9)?, values.array(10)?)?;
        if sketch.collapses > COLLAPSES_MAX
            || sketch.negative.len() + sketch.positive.len() > sketch.bins_max as usize
        {
            return Err(forged(NAME, "more bins or collapses than can be"));
        }
        if sketch.count() > 0 {
            (sketch.min, sketch.max) = (values.scalar(5)?, values.scalar(6)?);
            let is_finite = sketch.min.is_finite() && sketch.max.is_finite();
            if !is_finite || sketch.min > sketch.max {
                return Err(forged(NAME, "no smallest or largest number"));
            }
        }
        Ok(sketch)
    }

    fn absorb(&mut self, other: Self) -> Result<(), FilterError> {
        self.merge(&other)
    }
}

fn decode_bins(indices: &[i32], counts: &[u64]) -> Result<Vec<Bin>, FilterError> {
    let is_sorted = indices.windows(2).all(|pair| pair[0] < pair[1]);
    let is_inside = indices.iter().all(|index| index.unsigned_abs() <= INDEX_MAX);
    if indices.len() != counts.len() || !is_sorted || !is_inside || counts.contains(&0) {
        return Err(forged(NAME, "bins that are not in order"));
    }
    Ok(indices.iter().copied().zip(counts.iter().copied()).collect())
}

/// Makes the filter; its parameters are the relative error and the most bins.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    super::make::<Quantiles>(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quantile_of_many_magnitudes_is_within_the_error() {
        let mut sketch = Quantiles::new(0.01).expect("parameters");
        let numbers: Vec<f64> = (-400..=400).map(|step| f64::from(step).powi(5)).collect();
        numbers.iter().rev().for_each(|&number| sketch.add(number));
        for (place, &exact) in numbers.iter().enumerate() {
            let found = sketch.quantile((place as f64 + 0.5) / 800.0).expect("numbers");
            assert!((found - exact).abs() <= 0.01 * exact.abs() + 1e-12, "{found} for {exact}");
        }
        assert_eq!((sketch.min(), sketch.max()), (Some(-400_f64.powi(5)), Some(400_f64.powi(5))));
        assert_eq!(sketch.relative_error(), 0.01);
    }

    #[test]
    fn the_smallest_and_largest_doubles_have_bins() {
        let mut sketch = Quantiles::with_bins(ERROR_MIN, BINS_MIN).expect("parameters");
        for number in [f64::MAX, f64::MIN, 5e-324, -5e-324, f64::MIN_POSITIVE] {
            sketch.add(number);
        }
        let error = sketch.relative_error();
        let near = |a: f64, b: f64| (a - b).abs() <= 1.001 * error * b.abs();
        assert!(near(sketch.quantile(0.0).expect("numbers"), f64::MIN));
        assert!(near(sketch.quantile(1.0).expect("numbers"), f64::MAX));
    }

    #[test]
    fn bins_that_collapse_say_what_is_lost() {
        let mut sketch = Quantiles::with_bins(0.01, 64).expect("parameters");
        let numbers: Vec<f64> = (0..1000).map(|step| 1.05_f64.powi(step)).collect();
        numbers.iter().for_each(|&number| sketch.add(number));
        let error = sketch.relative_error();
        assert!(error > 0.1 && error < 0.6, "{error}");
        for (place, &exact) in numbers.iter().enumerate() {
            let found = sketch.quantile((place as f64 + 0.5) / 999.0).expect("numbers");
            assert!((found - exact).abs() <= error * exact * 1.000_001, "{found} for {exact}");
        }
    }

    #[test]
    fn what_is_no_number_is_left_out_and_counted() {
        let mut sketch = Quantiles::new(0.01).expect("parameters");
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY]
            .into_iter()
            .for_each(|number| sketch.add(number));
        assert_eq!((sketch.count(), sketch.left_out()), (0, 3));
        assert_eq!((sketch.quantile(0.5), sketch.min()), (None, None));
    }

    #[test]
    fn sketches_of_other_errors_are_refused() {
        let mut sketch = Quantiles::new(0.01).expect("parameters");
        let error = sketch.merge(&Quantiles::new(0.02).expect("parameters")).expect_err("another");
        assert_eq!(
            std::string::ToString::to_string(&error),
            "filter 'quantiles': a sketch with relative error 0.02 for 0.01 arrived; \
             make it with the parameters of the stream"
        );
        assert!(Quantiles::new(0.0).is_err() && Quantiles::new(f64::NAN).is_err());
    }
}
