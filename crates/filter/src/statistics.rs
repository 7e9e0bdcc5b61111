//! `statistics`: per element, over all back-ends, their count, mean and standard deviation, and the
//! smallest and largest value with the rank that sent it.
//!
//! Every back-end sends one number, or one array of numbers of the same length as all others. The
//! filter computes in doubles and gives seven values, each array as long as the back-ends' (1 for a
//! number):
//!
//! ```text
//! %auld   count of back-ends
//! %alf    mean
//! %alf    m2, the sum of squared differences from the mean
//! %alf    smallest value      %aud   lowest rank that sent it
//! %alf    largest value       %aud   lowest rank that sent it
//! ```
//!
//! [`Statistics`] reads them. What the filter gives it also takes, so that it works at every node
//! of a tree. Two nodes' moments are merged by the pairwise update of Chan, Golub and LeVeque,
//! "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (Stanford
//! STAN-CS-79-773, 1979), equations 2.1: it never subtracts two large sums, and so keeps its digits
//! however far the mean is from zero. Merging counts of one it is Welford's rule.
//!
//! A NaN makes mean and deviation NaN; it is neither smallest nor largest unless all are NaN. A
//! packet that is no output of this filter counts as one value, that of its lowest contributor.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sapwood_packet::{
    Directive, ElementType, FormatRef, Numeric, PacketRef, Rank, Shape, Slab, ValuesRef,
    try_reserve,
};

use crate::number::{elements, numbers, with_number};
use crate::registry::no_parameters;
use crate::{Emitter, Filter, FilterError, WaveRef};

const NAME: &str = "statistics";

const COUNTS: Directive = Directive::new(ElementType::Uint64, Shape::Array);
const DOUBLES: Directive = Directive::new(ElementType::Double, Shape::Array);
const RANKS: Directive = Directive::new(ElementType::Uint32, Shape::Array);

/// The values that the filter gives.
const LAYOUT: [Directive; 7] = [COUNTS, DOUBLES, DOUBLES, DOUBLES, RANKS, DOUBLES, RANKS];

/// The statistics of one element over some back-ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// How many back-ends sent it.
    pub count: u64,
    /// The mean of their values.
    pub mean: f64,
    /// The sum of the squared differences from the mean.
    pub m2: f64,
    /// The smallest value.
    pub min: f64,
    /// The lowest rank that sent the smallest value.
    pub min_rank: Rank,
    /// The largest value.
    pub max: f64,
    /// The lowest rank that sent the largest value.
    pub max_rank: Rank,
}

impl Moments {
    /// Of one value of one back-end.
    #[must_use]
    #[inline]
    pub fn of(value: f64, rank: Rank) -> Self {
        let m2 = if value.is_nan() { f64::NAN } else { 0.0 };
        Self { count: 1, mean: value, m2, min: value, min_rank: rank, max: value, max_rank: rank }
    }

    /// Merges the statistics over other back-ends.
    #[inline]
    #[allow(clippy::cast_precision_loss)]
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let count = self.count.saturating_add(other.count);
        let delta = other.mean - self.mean;
        let share = other.count as f64 / count as f64;
        self.mean += delta * share;
        self.m2 += other.m2 + delta * delta * self.count as f64 * share;
        self.count = count;
        if precedes(other.min < self.min, [other.min, self.min], [other.min_rank, self.min_rank]) {
            (self.min, self.min_rank) = (other.min, other.min_rank);
        }
        if precedes(other.max > self.max, [other.max, self.max], [other.max_rank, self.max_rank]) {
            (self.max, self.max_rank) = (other.max, other.max_rank);
        }
    }

    /// The standard deviation of these values themselves (the divisor is `count`);
    /// NaN for no values.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn standard_deviation(&self) -> f64 {
        libm::sqrt(self.m2 / self.count as f64)
    }

    /// The standard deviation of what these values are a sample of (the divisor is `count - 1`);
    /// nothing for fewer than two values.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn sample_standard_deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| libm::sqrt(self.m2 / (self.count - 1) as f64))
    }
}

/// Whether the other extreme takes the place of mine: when it is beyond it, when mine is NaN and it
/// is not, or when both are the same and its rank is lower.
#[inline]
fn precedes(is_beyond: bool, [other, mine]: [f64; 2], [other_rank, my_rank]: [Rank; 2]) -> bool {
    let is_lower = other_rank < my_rank;
    is_beyond || (other == mine && is_lower) || (mine.is_nan() && (!other.is_nan() || is_lower))
}

/// Keeps the moments of the wave at hand, for their memory only.
#[derive(Default)]
struct StatisticsFilter {
    moments: Vec<Moments>,
}

/// Makes the filter; it takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    no_parameters(NAME, parameters)?;
    Ok(Box::new(StatisticsFilter::default()))
}

impl Filter for StatisticsFilter {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, others @ ..] = wave.packets else { return Ok(()) };
        self.moments.clear();
        try_reserve(&mut self.moments, element_count(first))?;
        each_moments(first, |_, moments| self.moments.push(moments))?;
        for other in others {
            let mut count = 0;
            each_moments(other, |index, moments| {
                count += 1;
                if let Some(mine) = self.moments.get_mut(index) {
                    mine.merge(&moments);
                }
            })?;
            if count != self.moments.len() {
                return Err(FilterError::mixed(NAME, first.values(), other.values()));
            }
        }
        let length = size_of_val(&self.moments[..]);
        out.emit_built(first.header.tag, LAYOUT.into_iter().collect(), length, |bytes| {
            let moments = &self.moments[..];
            write_column(bytes, moments, |moments| moments.count.to_le_bytes());
            write_column(bytes, moments, |moments| moments.mean.to_le_bytes());
            write_column(bytes, moments, |moments| moments.m2.to_le_bytes());
            write_column(bytes, moments, |moments| moments.min.to_le_bytes());
            write_column(bytes, moments, |moments| moments.min_rank.to_le_bytes());
            write_column(bytes, moments, |moments| moments.max.to_le_bytes());
            write_column(bytes, moments, |moments| moments.max_rank.to_le_bytes());
            Ok(())
        })
    }
}

/// Writes one array of the layout.
fn write_column<const SIZE: usize>(
    bytes: &mut Slab,
    moments: &[Moments],
    bytes_of: impl Fn(&Moments) -> [u8; SIZE],
) {
    bytes.extend_u64(moments.len() as u64);
    let start = bytes.len();
    bytes.set_length(start + moments.len() * SIZE);
    let slots = bytes.as_mut_bytes()[start..].chunks_exact_mut(SIZE);
    slots.zip(moments).for_each(|(slot, moments)| slot.copy_from_slice(&bytes_of(moments)));
    bytes.pad();
}

/// How many moments a packet has at most.
fn element_count(packet: &PacketRef<'_>) -> usize {
    if packet.header.filtered && is_layout(packet.format) {
        return packet.values().array::<u64>(0).map_or(0, <[u64]>::len);
    }
    let directive = packet.format.directive(0).filter(|directive| directive.element.is_numeric());
    directive.map_or(0, |directive| packet.body.len() / directive.element.size())
}

/// Hands out the moments of each element of a packet, with the element's index.
fn each_moments(
    packet: &PacketRef<'_>,
    mut each: impl FnMut(usize, Moments),
) -> Result<(), FilterError> {
    if packet.header.filtered && is_layout(packet.format) {
        let columns = Columns::read(packet.values())?;
        (0..columns.counts.len()).for_each(|index| each(index, columns.moments(index)));
        return Ok(());
    }
    let takes = "one number or one array of numbers";
    let rank = packet
        .contributors
        .first()
        .ok_or_else(|| failed("a packet has no contributors; use it on the way up"))?;
    match packet.format.directive(0) {
        Some(directive) if packet.format.len() == 1 && directive.element.is_numeric() => {}
        _ => return Err(FilterError::format(NAME, takes, packet.format)),
    }
    for value in numbers(packet.values()) {
        let (directive, bytes) = value?;
        with_number!(directive.element, Number => {
            for (index, number) in elements::<Number>(bytes).enumerate() {
                each(index, Moments::of(number.to_f64(), rank));
            }
        }, ());
    }
    Ok(())
}

fn is_layout(format: FormatRef<'_>) -> bool {
    format.directives().eq(LAYOUT)
}

#[cold]
fn failed(reason: &str) -> FilterError {
    FilterError::Failed(alloc::format!("filter '{NAME}': {reason}"))
}

/// The filter's output where it lies; all columns are equally long.
struct Columns<'a> {
    counts: &'a [u64],
    means: &'a [f64],
    m2s: &'a [f64],
    mins: &'a [f64],
    min_ranks: &'a [Rank],
    maxs: &'a [f64],
    max_ranks: &'a [Rank],
}

impl<'a> Columns<'a> {
    fn read(values: ValuesRef<'a>) -> Result<Self, FilterError> {
        let columns = Self {
            counts: values.array(0)?,
            means: values.array(1)?,
            m2s: values.array(2)?,
            mins: values.array(3)?,
            min_ranks: values.array(4)?,
            maxs: values.array(5)?,
            max_ranks: values.array(6)?,
        };
        let doubles = [columns.means, columns.m2s, columns.mins, columns.maxs];
        let ranks = [columns.min_ranks, columns.max_ranks];
        let count = columns.counts.len();
        if doubles.iter().any(|column| column.len() != count)
            || ranks.iter().any(|column| column.len() != count)
        {
            return Err(failed("a packet has columns of different lengths"));
        }
        Ok(columns)
    }

    fn moments(&self, index: usize) -> Moments {
        Moments {
            count: self.counts[index],
            mean: self.means[index],
            m2: self.m2s[index],
            min: self.mins[index],
            min_rank: self.min_ranks[index],
            max: self.maxs[index],
            max_rank: self.max_ranks[index],
        }
    }
}

/// The statistics that the filter `statistics` computed, element by element.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    moments: Vec<Moments>,
}

impl Statistics {
    /// Reads the values of a packet that the filter has made.
    ///
    /// # Errors
    /// [`FilterError::Format`] when the format is another, [`FilterError::Values`] or
    /// [`FilterError::Failed`] when the values do not fit together.
    pub fn read(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        if !is_layout(values.format()) {
            let takes = "its own output '%auld %alf %alf %alf %aud %alf %aud' to be read";
            return Err(FilterError::format(NAME, takes, values.format()));
        }
        let columns = Columns::read(values)?;
        let indices = 0..columns.counts.len();
        Ok(Self { moments: indices.map(|index| columns.moments(index)).collect() })
    }

    /// The statistics of every element, in the order of the sent array.
    #[must_use]
    pub fn elements(&self) -> &[Moments] {
        &self.moments
    }

    /// [`Moments::standard_deviation`] of an element, if there is one of that index.
    #[must_use]
    pub fn standard_deviation(&self, index: usize) -> Option<f64> {
        self.moments.get(index).map(Moments::standard_deviation)
    }

    /// [`Moments::sample_standard_deviation`] of an element, if there is one of that index and it
    /// was sent at least twice.
    #[must_use]
    pub fn sample_standard_deviation(&self, index: usize) -> Option<f64> {
        self.moments.get(index)?.sample_standard_deviation()
    }
}
