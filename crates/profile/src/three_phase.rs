//! Histograms in three phases: the extremes go up, come down again as limits, and what the leaves
//! have counted in equal bins between them goes up and is merged.
//!
//! The algorithm is that of Nataraj, Malony, Morris, Arnold and Miller, "A framework for scalable,
//! parallel performance monitoring" (2010). All three phases are of one moment: a leaf keeps the
//! profiles of which it gave the extremes until it is asked to count them. Rounds are independent,
//! so that one may be in its third phase while the next begins. Counts and limits are integers:
//! the histogram is the same to the bit whatever the shape of the tree.
//!
//! A rank whose leaf answered in the first phase and not in the third one is not in the counts,
//! and the difference of the covered ranks names it. One whose leaf came late to the first phase
//! may lie outside of the limits; such values are counted as under and over.
//!
//! ```text
//! extremes                        counts
//!  0  %ud    version, 1            0  %ud    version, 1
//!  1  %aud   covered ranks         1  %aud   covered ranks
//!  2         3 columns of          2  %auld  L groups
//!            M measures            3         3 columns of L measures
//!  5  %aud   M numbers of ranks    6  %auld  L lower limits
//!  6  %auld  M smallest values     7  %auld  L upper limits
//!  7  %auld  M largest values      8  %aud   L numbers of bins
//!                                  9  %auld  L numbers of values below
//!                                 10  %auld  L numbers of values above
//!                                 11  %auld  the bins' counts, limits after limits
//! ```

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use sapwood_packet::{Directive, IndexedValues, RankSet, Values, ValuesRef};

use crate::codec::{LONGS, WORD, WORDS, check_format, column, push_ranks, ranks};
use crate::measure::{self, Measure};
use crate::{Part, ProfileError, RankProfile};

/// The most bins of one histogram.
pub const BINS_MAX: u32 = 1024;
/// The most bins of all histograms of one packet.
pub const ALL_BINS_MAX: u64 = 1 << 20;

const VERSION: u32 = 1;
const EXTREMES_LAYOUT: [Directive; 8] = [
    WORD,
    WORDS,
    measure::MEASURES[0],
    measure::MEASURES[1],
    measure::MEASURES[2],
    WORDS,
    LONGS,
    LONGS,
];
const COUNTS_LAYOUT: [Directive; 12] = [
    WORD,
    WORDS,
    LONGS,
    measure::MEASURES[0],
    measure::MEASURES[1],
    measure::MEASURES[2],
    LONGS,
    LONGS,
    WORDS,
    LONGS,
    LONGS,
    LONGS,
];
const WRONG: ProfileError = ProfileError::Contradiction { what: "bins" };
const OTHERS: ProfileError = ProfileError::Contradiction { what: "limits of histograms" };

/// How many ranks have a measure, and its smallest and largest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Ranks that have the event.
    pub ranks: u32,
    /// The smallest value.
    pub low: u64,
    /// The largest value.
    pub high: u64,
}

/// The first phase: the extremes of some measures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extremes {
    covered: RankSet,
    ranges: BTreeMap<Measure, Range>,
}

impl Extremes {
    /// Of the ranks of one leaf.
    #[must_use]
    pub fn of(profiles: &[RankProfile], measures: &[Measure]) -> Self {
        let mut extremes = Self::default();
        for profile in profiles {
            extremes.covered.insert(profile.mpi_rank);
        }
        for measure in measures {
            let values = profiles.iter().filter_map(|profile| measure.value(profile));
            let ranges = values.map(|value| Range { ranks: 1, low: value, high: value });
            if let Some(range) = ranges.reduce(Range::and) {
                extremes.ranges.insert(measure.clone(), range);
            }
        }
        extremes
    }

    /// The measures that a covered rank has, with their ranges.
    pub fn ranges(&self) -> impl Iterator<Item = (&Measure, Range)> {
        self.ranges.iter().map(|(measure, &range)| (measure, range))
    }

    /// The limits that follow from them, of histograms over all ranks.
    #[must_use]
    pub fn limits(&self, bins: impl Fn(&Measure) -> u32) -> Vec<Limits> {
        let limits = self.ranges.iter().map(|(measure, range)| Limits {
            group: 0,
            bins: bins(measure),
            measure: measure.clone(),
            low: range.low,
            high: range.high,
        });
        limits.collect()
    }
}

impl Range {
    fn and(self, other: Self) -> Self {
        Self {
            ranks: self.ranks.saturating_add(other.ranks),
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }
}

impl Part for Extremes {
    const FILTER: &'static str = "profile-extremes";

    fn covered(&self) -> &RankSet {
        &self.covered
    }

    fn absorb(&mut self, other: Self) -> Result<(), ProfileError> {
        self.covered.union_with(other.covered.as_ref());
        for (measure, range) in other.ranges {
            self.ranges.entry(measure).and_modify(|own| *own = own.and(range)).or_insert(range);
        }
        Ok(())
    }

    fn encode(&self) -> Values {
        let ranges = || self.ranges.values();
        let values = push_ranks(Values::new().scalar(VERSION), &self.covered);
        measure::push(values, self.ranges.keys())
            .array::<u32>(&ranges().map(|range| range.ranks).collect::<Vec<_>>())
            .array::<u64>(&ranges().map(|range| range.low).collect::<Vec<_>>())
            .array::<u64>(&ranges().map(|range| range.high).collect::<Vec<_>>())
    }

    fn decode(values: ValuesRef<'_>) -> Result<Self, ProfileError> {
        let values = &IndexedValues::new(values)?;
        check_format(values, &EXTREMES_LAYOUT, VERSION, "extremes of measures")?;
        let mut extremes = Self { covered: ranks(values, 1)?, ranges: BTreeMap::new() };
        let measures = measure::read(values, 2)?;
        let count = measures.len();
        let numbers: &[u32] = column(values, 5, count)?;
        let (lows, highs): (&[u64], &[u64]) =
            (column(values, 6, count)?, column(values, 7, count)?);
        for (at, measure) in measures.into_iter().enumerate() {
            let range = Range { ranks: numbers[at], low: lows[at], high: highs[at] };
            let is_right = range.low <= range.high
                && range.ranks > 0
                && u64::from(range.ranks) <= extremes.covered.len();
            if !is_right || extremes.ranges.insert(measure, range).is_some() {
                return Err(ProfileError::Contradiction { what: "extremes" });
            }
        }
        Ok(extremes)
    }
}

/// Where the bins of one histogram lie: the second phase brings them down.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limits {
    /// 0 for all ranks, else the class whose ranks alone are counted ([`crate::ClassId`]).
    pub group: u64,
    /// What is counted.
    pub measure: Measure,
    /// The smallest value.
    pub low: u64,
    /// The largest value, which is in the last bin.
    pub high: u64,
    /// How many bins of equal width there are, from 1 to [`BINS_MAX`].
    pub bins: u32,
}

impl Limits {
    /// The bin of a value between the limits. All values are in the last one when the limits are
    /// the same.
    #[must_use]
    pub fn bin(&self, value: u64) -> Option<u32> {
        let (place, width) = (value.checked_sub(self.low)?, self.high.checked_sub(self.low)?);
        if place >= width {
            return (place == width).then_some(self.bins - 1);
        }
        // Below the number of bins, since the place is below the width.
        let bin = u128::from(place) * u128::from(self.bins) / u128::from(width);
        u32::try_from(bin).ok()
    }

    fn is_right(&self) -> bool {
        self.low <= self.high && (1..=BINS_MAX).contains(&self.bins)
    }
}

/// How many ranks are in each of the bins of one histogram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BinCounts {
    /// Values below the lower limit.
    pub under: u64,
    /// Values above the upper limit.
    pub over: u64,
    /// The bins' counts.
    pub bins: Vec<u64>,
}

/// The third phase: the counts between the limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    covered: RankSet,
    histograms: BTreeMap<Limits, BinCounts>,
}

impl Counts {
    /// Of the ranks of one leaf; `group` gives the class of each, where classes are asked for.
    #[must_use]
    pub fn of(
        profiles: &[RankProfile],
        limits: &[Limits],
        group: impl Fn(&RankProfile) -> u64,
    ) -> Self {
        let mut counts = Self::default();
        let groups: Vec<u64> = profiles.iter().map(group).collect();
        for profile in profiles {
            counts.covered.insert(profile.mpi_rank);
        }
        for limits in limits {
            let mut one = BinCounts { bins: vec![0; limits.bins as usize], ..BinCounts::default() };
            for (profile, &group) in profiles.iter().zip(&groups) {
                if limits.group != 0 && limits.group != group {
                    continue;
                }
                let Some(value) = limits.measure.value(profile) else { continue };
                match limits.bin(value) {
                    Some(bin) => one.bins[bin as usize] += 1,
                    None if value < limits.low => one.under += 1,
                    None => one.over += 1,
                }
            }
            counts.histograms.insert(limits.clone(), one);
        }
        counts
    }

    /// The histograms.
    pub fn histograms(&self) -> impl Iterator<Item = (&Limits, &BinCounts)> {
        self.histograms.iter()
    }
}

impl Part for Counts {
    const FILTER: &'static str = "profile-bins";

    fn covered(&self) -> &RankSet {
        &self.covered
    }

    fn absorb(&mut self, other: Self) -> Result<(), ProfileError> {
        if self.covered.is_empty() {
            *self = other;
            return Ok(());
        }
        // A leaf without ranks, or without the profiles of the round, has nothing to count.
        if other.covered.is_empty() {
            return Ok(());
        }
        if !self.histograms.keys().eq(other.histograms.keys()) {
            return Err(OTHERS);
        }
        self.covered.union_with(other.covered.as_ref());
        for (own, other) in self.histograms.values_mut().zip(other.histograms.values()) {
            own.under = own.under.saturating_add(other.under);
            own.over = own.over.saturating_add(other.over);
            for (own, other) in own.bins.iter_mut().zip(&other.bins) {
                *own = own.saturating_add(*other);
            }
        }
        Ok(())
    }

    fn encode(&self) -> Values {
        let values = push_ranks(Values::new().scalar(VERSION), &self.covered);
        let counts = || self.histograms.values();
        let bins: Vec<u64> = counts().flat_map(|one| one.bins.iter().copied()).collect();
        push_limits(values, self.histograms.keys())
            .array::<u64>(&counts().map(|one| one.under).collect::<Vec<_>>())
            .array::<u64>(&counts().map(|one| one.over).collect::<Vec<_>>())
            .array(&bins)
    }

    fn decode(values: ValuesRef<'_>) -> Result<Self, ProfileError> {
        let values = &IndexedValues::new(values)?;
        check_format(values, &COUNTS_LAYOUT, VERSION, "counts in bins")?;
        let mut counts = Self { covered: ranks(values, 1)?, histograms: BTreeMap::new() };
        let limits = limits_of(values, 2)?;
        let under: &[u64] = column(values, 9, limits.len())?;
        let over: &[u64] = column(values, 10, limits.len())?;
        let mut rest: &[u64] = values.array(11)?;
        for (at, limits) in limits.into_iter().enumerate() {
            let (bins, others) = rest.split_at_checked(limits.bins as usize).ok_or(WRONG)?;
            rest = others;
            let one = BinCounts { under: under[at], over: over[at], bins: bins.to_vec() };
            let all = bins
                .iter()
                .fold(one.under.saturating_add(one.over), |sum, count| sum.saturating_add(*count));
            if all > counts.covered.len() || counts.histograms.insert(limits, one).is_some() {
                return Err(WRONG);
            }
        }
        if rest.is_empty() { Ok(counts) } else { Err(WRONG) }
    }
}

/// Adds limits: seven values.
pub fn push_limits<'a>(values: Values, limits: impl Iterator<Item = &'a Limits>) -> Values {
    let limits: Vec<&Limits> = limits.collect();
    let longs = |of: fn(&Limits) -> u64| limits.iter().map(|one| of(one)).collect::<Vec<_>>();
    let values = values.array(&longs(|one| one.group));
    measure::push(values, limits.iter().map(|one| &one.measure))
        .array(&longs(|one| one.low))
        .array(&longs(|one| one.high))
        .array(&limits.iter().map(|one| one.bins).collect::<Vec<_>>())
}

/// Reads limits from the value of this index on, in order.
///
/// # Errors
/// [`ProfileError`] when they are none, or have more bins than [`ALL_BINS_MAX`].
pub fn read_limits(values: ValuesRef<'_>, first: usize) -> Result<Vec<Limits>, ProfileError> {
    limits_of(&IndexedValues::new(values)?, first)
}

fn limits_of(values: &IndexedValues<'_>, first: usize) -> Result<Vec<Limits>, ProfileError> {
    let measures = measure::read(values, first + 1)?;
    let count = measures.len();
    let groups: &[u64] = column(values, first, count)?;
    let (lows, highs): (&[u64], &[u64]) =
        (column(values, first + 4, count)?, column(values, first + 5, count)?);
    let bins: &[u32] = column(values, first + 6, count)?;
    if bins.iter().map(|&bins| u64::from(bins)).sum::<u64>() > ALL_BINS_MAX {
        return Err(WRONG);
    }
    let limits = measures.into_iter().enumerate().map(|(at, measure)| {
        let (group, low, high, bins) = (groups[at], lows[at], highs[at], bins[at]);
        let limits = Limits { group, measure, low, high, bins };
        limits.is_right().then_some(limits)
    });
    limits.collect::<Option<_>>().ok_or(WRONG)
}
