//! `histogram`: how many numbers are in each of some bins of equal width.
//!
//! **Fixed bins** have limits that the stream gives: bin i of c holds the numbers from
//! `low + i * (high - low) / c` to below the next limit. Numbers below `low` and from `high` on are
//! counted as under and over.
//!
//! **Self-choosing bins** have limits that the numbers give: their width is a power of two, each
//! begins at a multiple of it, and it is the smallest for which the bound on bins suffices. When a
//! number comes that would need more, each two bins become one, so that every number is counted in
//! the right bin for ever; only -infinity and infinity are under and over. The bins depend on the
//! smallest and the largest number alone: the histogram is the same, bit for bit, in whatever order
//! its parts were merged. (A few numbers far away make bins wide: `quantiles` has no such trouble.)
//!
//! NaN are left out and counted. Counts are exact.
//!
//! Parameters: none or one integer, the most bins of self-choosing ones, from 2 to 4096 (default
//! 64); or three for fixed bins: low, high, and their number, from 1 to 65536. The encoded sketch,
//! 72 bytes and 8 for each bin:
//!
//! ```text
//! %ud    most bins; 0 when they are fixed
//! %lf    low    %lf  high       of fixed bins, else 0
//! %d     e      %ld  first      of self-choosing bins: bin i begins at (first + i) 2^e
//! %uld   under  %uld  over      %uld   NaN left out
//! %auld  the counts
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use sapwood_packet::{Directive, ElementType, FormatRef, IntoValues, PacketRef, Values, ValuesRef};

use super::{Sketch, array, forged, is_same, parameter, raw, scalar, unlike};
use crate::{Filter, FilterError, WaveRef};

const NAME: &str = "histogram";

const BINS: u32 = 64;
/// Most bins of fixed ones, and of self-choosing ones, which may have to be moved for a new one.
const FIXED_MAX: u32 = 65536;
const CHOSEN_MAX: u32 = 4096;
const TAKES_PARAMETERS: &str =
    "nothing, or the most bins (2 to 4096), or low, high and the number of bins (1 to 65536)";
/// No bin is further from zero than this many widths: limits are exact doubles then.
const FIRST_MAX: i64 = 1 << 52;
/// The exponent of the smallest double, and one at which no double is in bins but -1 and 0.
const EXPONENTS: [i32; 2] = [-1074, 1024];

const LAYOUT: [Directive; 9] = [
    scalar(ElementType::Uint32),
    scalar(ElementType::Double),
    scalar(ElementType::Double),
    scalar(ElementType::Int32),
    scalar(ElementType::Int64),
    scalar(ElementType::Uint64),
    scalar(ElementType::Uint64),
    scalar(ElementType::Uint64),
    array(ElementType::Uint64),
];

/// Where the bins are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limits {
    Fixed { low: f64, high: f64 },
    Chosen { bins_max: u32, exponent: i32, first: i64 },
}

/// How many numbers are in one bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HistogramBin {
    /// The smallest number that it may hold.
    pub low: f64,
    /// What its numbers are below.
    pub high: f64,
    /// How many there are.
    pub count: u64,
}

/// How many numbers are in each of some bins.
///
/// ```
/// use sapwood_filter::Histogram;
///
/// let mut ages = Histogram::self_choosing(4)?;
/// [3.0, 14.0, 15.0, 9.0, 2.5].into_iter().for_each(|age| ages.add(age));
/// let bins: Vec<_> = ages.bins().map(|bin| (bin.low, bin.count)).collect();
/// assert_eq!(bins, [(0.0, 2), (4.0, 0), (8.0, 1), (12.0, 2)]);
/// # Ok::<(), sapwood_filter::FilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    limits: Limits,
    under: u64,
    over: u64,
    left_out: u64,
    counts: Vec<u64>,
}

impl Histogram {
    /// An empty histogram of `bins` bins of equal width from `low` to `high`.
    ///
    /// # Errors
    /// [`FilterError::Parameters`] when the limits are not finite or not in order, or the bins are
    /// not from 1 to 65536.
    pub fn fixed(low: f64, high: f64, bins: u32) -> Result<Self, FilterError> {
        let is_range = low < high && (high - low).is_finite();
        if !is_range || !(1..=FIXED_MAX).contains(&bins) {
            return Err(FilterError::Parameters { name: NAME, takes: TAKES_PARAMETERS });
        }
        let counts = alloc::vec![0; bins as usize];
        Ok(Self { counts, ..Self::empty(Limits::Fixed { low, high }) })
    }

    /// An empty histogram of at most this many bins, whose limits follow from the numbers.
    ///
    /// # Errors
    /// [`FilterError::Parameters`] when the bins are not from 2 to 4096.
    pub fn self_choosing(bins_max: u32) -> Result<Self, FilterError> {
        if !(2..=CHOSEN_MAX).contains(&bins_max) {
            return Err(FilterError::Parameters { name: NAME, takes: TAKES_PARAMETERS });
        }
        Ok(Self::empty(Limits::Chosen { bins_max, exponent: EXPONENTS[0], first: 0 }))
    }

    fn empty(limits: Limits) -> Self {
        Self { limits, under: 0, over: 0, left_out: 0, counts: Vec::new() }
    }

    /// Adds a number. A NaN is only counted ([`Histogram::left_out`]).
    pub fn add(&mut self, number: f64) {
        if number.is_nan() {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        let slot = match self.limits {
            Limits::Fixed { low, .. } if number < low => &mut self.under,
            Limits::Fixed { high, .. } if number >= high => &mut self.over,
            Limits::Fixed { low, high } => {
                let at = fixed_bin(number, low, high, self.counts.len());
                &mut self.counts[at]
            }
            Limits::Chosen { .. } if number == f64::NEG_INFINITY => &mut self.under,
            Limits::Chosen { .. } if number == f64::INFINITY => &mut self.over,
            Limits::Chosen { exponent, .. } => {
                let exponent = exponent.max(least_exponent(number));
                let (first, exponent) = self.widen(bin_of(number, exponent), 1, exponent);
                let at = (bin_of(number, exponent) - first) as usize;
                &mut self.counts[at]
            }
        };
        *slot = slot.saturating_add(1);
    }

    /// Takes in another histogram of the same bins or, when they are self-choosing, the same bound.
    ///
    /// # Errors
    /// [`FilterError::Failed`] when they differ.
    pub fn merge(&mut self, other: &Self) -> Result<(), FilterError> {
        match (self.limits, other.limits) {
            (Limits::Fixed { .. }, Limits::Fixed { .. })
                if self.limits == other.limits && self.counts.len() == other.counts.len() =>
            {
                for (mine, other) in self.counts.iter_mut().zip(&other.counts) {
                    *mine = mine.saturating_add(*other);
                }
            }
            (
                Limits::Chosen { bins_max: mine, .. },
                Limits::Chosen { bins_max, exponent, first },
            ) if mine == bins_max => self.merge_chosen(&other.counts, exponent, first),
            _ => return Err(unlike(NAME, "other bins")),
        }
        self.under = self.under.saturating_add(other.under);
        self.over = self.over.saturating_add(other.over);
        self.left_out = self.left_out.saturating_add(other.left_out);
        Ok(())
    }

    /// The bins from low to high; of self-choosing ones, from the first to the last that holds a
    /// number.
    pub fn bins(&self) -> impl ExactSizeIterator<Item = HistogramBin> {
        let limit = |at: usize| match self.limits {
            Limits::Fixed { high, .. } if at == self.counts.len() => high,
            Limits::Fixed { low, high } => fixed_limit(at, low, high, self.counts.len()),
            #[allow(clippy::cast_precision_loss)]
            Limits::Chosen { exponent, first, .. } => {
                libm::scalbn((first + at as i64) as f64, exponent)
            }
        };
        let bins = self.counts.iter().enumerate();
        bins.map(move |(at, &count)| HistogramBin { low: limit(at), high: limit(at + 1), count })
    }

    /// How many numbers are below all bins.
    #[must_use]
    pub fn under(&self) -> u64 {
        self.under
    }

    /// How many numbers are above all bins.
    #[must_use]
    pub fn over(&self) -> u64 {
        self.over
    }

    /// How many NaN were left out.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// How many numbers there are, in bins, under and over.
    #[must_use]
    pub fn count(&self) -> u64 {
        let outside = self.under.saturating_add(self.over);
        self.counts.iter().fold(outside, |count, bin| count.saturating_add(*bin))
    }

    /// Reads an encoded histogram, of the filter or of [`IntoValues::into_values`].
    ///
    /// # Errors
    /// [`FilterError::Format`] when the format is another, [`FilterError::Values`] or
    /// [`FilterError::Failed`] when the values do not fit together.
    pub fn from_values(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        Self::read(values)
    }

    /// Makes room for `count` bins from `first` on, which are of a width that is not smaller than
    /// the present one; gives the first bin and the exponent that there are now.
    fn widen(&mut self, first: i64, count: usize, exponent: i32) -> (i64, i32) {
        let Limits::Chosen { bins_max, exponent: before, first: mine } = self.limits else {
            return (0, 0);
        };
        let is_empty = self.counts.is_empty();
        let (mut low, mut high) = (first, first + count as i64 - 1);
        let mut halvings = (exponent - before) as u32;
        if !is_empty {
            low = low.min(halved(mine, halvings));
            high = high.max(halved(mine + self.counts.len() as i64 - 1, halvings));
        }
        let mut exponent = exponent;
        while high - low >= i64::from(bins_max) {
            (low, high, halvings, exponent) = (low >> 1, high >> 1, halvings + 1, exponent + 1);
        }
        let length = (high - low + 1) as usize;
        if !is_empty && halvings == 0 && low == mine {
            self.counts.resize(length, 0);
        } else {
            let mut counts = alloc::vec![0; length];
            add_counts(&mut counts, low, &self.counts, mine, halvings);
            self.counts = counts;
            self.limits = Limits::Chosen { bins_max, exponent, first: low };
        }
        (low, exponent)
    }

    fn merge_chosen(&mut self, counts: &[u64], exponent: i32, first: i64) {
        let Limits::Chosen { exponent: mine, .. } = self.limits else { return };
        if counts.is_empty() {
            return;
        }
        let common = if self.counts.is_empty() { exponent } else { mine.max(exponent) };
        let halvings = (common - exponent) as u32;
        let last = first + counts.len() as i64 - 1;
        let (low, high) = (halved(first, halvings), halved(last, halvings));
        let (low, common) = self.widen(low, (high - low + 1) as usize, common);
        add_counts(&mut self.counts, low, counts, first, (common - exponent) as u32);
    }
}

/// The index of a bin after this many merges of neighbouring bins.
fn halved(index: i64, halvings: u32) -> i64 {
    index >> halvings.min(63)
}

/// Adds counts of bins that begin at `first`, after this many halvings, to those that begin at
/// `low`.
fn add_counts(counts: &mut [u64], low: i64, other: &[u64], first: i64, halvings: u32) {
    for (index, &count) in (first..).zip(other) {
        let slot = &mut counts[(halved(index, halvings) - low) as usize];
        *slot = slot.saturating_add(count);
    }
}

/// The bin of a number between the limits. What rounding may do is put right, so that it always is
/// the bin whose limits hold the number.
fn fixed_bin(number: f64, low: f64, high: f64, bins: usize) -> usize {
    #[allow(clippy::cast_precision_loss)]
    let share = (number - low) / (high - low) * bins as f64;
    let mut at = (share as usize).min(bins - 1);
    while at > 0 && number < fixed_limit(at, low, high, bins) {
        at -= 1;
    }
    while at + 1 < bins && number >= fixed_limit(at + 1, low, high, bins) {
        at += 1;
    }
    at
}

#[allow(clippy::cast_precision_loss)]
fn fixed_limit(at: usize, low: f64, high: f64, bins: usize) -> f64 {
    low + at as f64 * ((high - low) / bins as f64)
}

/// Whether doubles can be in bins from there on: none is further away than 2^1024, or than
/// [`FIRST_MAX`] widths.
fn is_near(first: i64, bins: usize, exponent: i32) -> bool {
    let limit = FIRST_MAX.min(1 << (EXPONENTS[1] - exponent).min(62));
    (-limit..limit).contains(&first) && bins as i64 <= limit - first
}

/// The smallest exponent at which a number's bin is no further away than [`FIRST_MAX`].
fn least_exponent(number: f64) -> i32 {
    // 2^(magnitude - 1) <= |number| < 2^magnitude
    let (_, magnitude) = libm::frexp(number);
    if number == 0.0 { EXPONENTS[0] } else { (magnitude - 52).max(EXPONENTS[0]) }
}

/// floor(number / 2^exponent). The division is exact unless the quotient is too small for a double,
/// and then only its sign matters.
fn bin_of(number: f64, exponent: i32) -> i64 {
    let quotient = libm::scalbn(number, -exponent);
    if quotient == 0.0 && number < 0.0 { -1 } else { libm::floor(quotient) as i64 }
}

impl IntoValues for Histogram {
    fn append_to(self, values: Values) -> Values {
        let (bins_max, low, high, exponent, first) = match self.limits {
            Limits::Fixed { low, high } => (0, low, high, 0, 0),
            Limits::Chosen { bins_max, exponent, first } => (bins_max, 0.0, 0.0, exponent, first),
        };
        values
            .scalar(bins_max)
            .scalar(low)
            .scalar(high)
            .scalar(exponent)
            .scalar(first)
            .scalar(self.under)
            .scalar(self.over)
            .scalar(self.left_out)
            .array(&self.counts)
    }
}

impl Sketch for Histogram {
    const NAME: &'static str = NAME;
    const TAKES: &'static str = "one number, one array of numbers, or its own histograms";
    type Parameters = Self;

    fn parameters(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        let wrong = FilterError::Parameters { name: NAME, takes: TAKES_PARAMETERS };
        if values.len() < 2 {
            let bins = parameter::only_integer(values, BINS, [2, CHOSEN_MAX]);
            return Self::self_choosing(bins.unwrap_or(0));
        }
        if values.len() != 3 || !parameter::are_numbers(values, 3) {
            return Err(wrong);
        }
        let limits = (parameter::double(values, 0), parameter::double(values, 1));
        match (limits, parameter::integer(values, 2, [1, FIXED_MAX])) {
            ((Some(low), Some(high)), Some(bins)) => Self::fixed(low, high, bins),
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
        let counts = values.array::<u64>(8)?;
        let out_of_range = |_| forged(NAME, "limits or bins that are out of range");
        let mut histogram = match values.scalar::<u32>(0)? {
            0 => {
                let bins = u32::try_from(counts.len()).unwrap_or(0);
                Self::fixed(values.scalar(1)?, values.scalar(2)?, bins).map_err(out_of_range)?
            }
            bins_max => Self::self_choosing(bins_max).map_err(out_of_range)?,
        };
        if let Limits::Chosen { bins_max, exponent, first } = &mut histogram.limits
            && !counts.is_empty()
        {
            (*exponent, *first) = (values.scalar(3)?, values.scalar(4)?);
            let is_inside = (EXPONENTS[0]..=EXPONENTS[1]).contains(exponent)
                && counts.len() <= *bins_max as usize
                && is_near(*first, counts.len(), *exponent);
            if !is_inside || counts.first() == Some(&0) || counts.last() == Some(&0) {
                return Err(forged(NAME, "bins that are out of range"));
            }
        }
        histogram.counts.clear();
        histogram.counts.extend_from_slice(counts);
        histogram.under = values.scalar(5)?;
        histogram.over = values.scalar(6)?;
        histogram.left_out = values.scalar(7)?;
        Ok(histogram)
    }

    fn absorb(&mut self, other: Self) -> Result<(), FilterError> {
        self.merge(&other)
    }
}

/// Makes the filter; its parameters are the bins.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    super::make::<Histogram>(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(bins_max: u32, numbers: &[f64]) -> Histogram {
        let mut histogram = Histogram::self_choosing(bins_max).expect("bins");
        numbers.iter().for_each(|&number| histogram.add(number));
        histogram
    }

    #[test]
    fn fixed_bins_count_what_is_below_and_above_them() {
        let mut histogram = Histogram::fixed(0.0, 0.3, 3).expect("limits");
        let numbers = [-0.1, 0.0, 0.1, 0.2, 0.25, 0.3, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        numbers.into_iter().for_each(|number| histogram.add(number));
        let counts: Vec<_> = histogram.bins().map(|bin| bin.count).collect();
        // 3 * 0.1 is more than 0.3: the second limit is 0.2 and the last is as given.
        assert_eq!(counts, [1, 1, 2]);
        assert_eq!((histogram.under(), histogram.over(), histogram.left_out()), (2, 2, 1));
        assert_eq!(histogram.count(), 8);
        assert_eq!(histogram.bins().last().map(|bin| bin.high), Some(0.3));
    }

    #[test]
    fn every_number_lies_within_the_limits_of_its_bin() {
        let numbers: Vec<f64> = (-500..500).map(|step| f64::from(step) * 0.37 + 11.0).collect();
        for bins in [7, 10, 1000] {
            let mut histogram = Histogram::fixed(-100.1, 123.4, bins).expect("limits");
            numbers.iter().for_each(|&number| histogram.add(number));
            for bin in histogram.bins() {
                let inside = numbers.iter().filter(|&&n| bin.low <= n && n < bin.high).count();
                assert_eq!(bin.count, inside as u64);
            }
        }
    }

    #[test]
    fn self_chosen_bins_are_as_narrow_as_the_bound_allows() {
        let one: Vec<_> = chosen(2, &[5.0]).bins().collect();
        assert_eq!((one.len(), one[0].low, one[0].count), (1, 5.0, 1));
        let wide: Vec<_> = chosen(4, &[-3.0, 0.5, 4.0, 7.9]).bins().collect();
        let found: Vec<_> = wide.iter().map(|bin| (bin.low, bin.high, bin.count)).collect();
        assert_eq!(found, [(-4.0, 0.0, 1), (0.0, 4.0, 1), (4.0, 8.0, 2)]);
    }

    #[test]
    fn the_order_of_numbers_of_any_size_does_not_matter() {
        let numbers =
            [f64::MAX, -f64::MAX, 5e-324, -5e-324, 0.0, 1.0, 1.5, -1e-300, 1e17, f64::INFINITY];
        let all = chosen(8, &numbers);
        let mut turned = numbers;
        turned.reverse();
        assert_eq!(all, chosen(8, &turned));
        for cut in 0..numbers.len() {
            let mut merged = chosen(8, &numbers[..cut]);
            merged.merge(&chosen(8, &numbers[cut..])).expect("the same bound");
            assert_eq!(merged, all, "{cut}");
        }
        let values = all.clone().into_values();
        assert_eq!(Histogram::from_values(values.as_ref()), Ok(all));
    }
}
