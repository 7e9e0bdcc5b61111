//! Outliers: the ranks and the hosts whose values deviate most from the others', by a robust score.
//!
//! The score of a value is its distance from the median, divided by the median of all such
//! distances times 1.4826, which is the standard deviation of normal values (Iglewicz and Hoaglin,
//! "How to detect and handle outliers", 1993). One rank, however far away, changes neither. Where
//! more than half of the ranks have the same value, the mean distance times 1.2533 takes its place.
//!
//! Two trips up the tree: [`Medians`] finds the medians; they go down; [`Deviations`] takes the
//! distances from them, and keeps the largest with their ranks, exactly. Both medians are those of
//! a `kll` sketch of [`SKETCH_SIZE`]: exact up to this number of ranks, above it the place of the
//! median among all values is wrong by at most 8 / 256 of the ranks at 99 %.
//!
//! ```text
//! medians                             deviations
//!  0  %ud    version, 1                0  %ud    version, 1
//!  1  %aud   covered ranks             1  %aud   covered ranks
//!  2         3 columns of M measures   2         3 columns of M measures
//!  5  %as    M sketches of values      5  %auld  M medians
//!  6  %as    H hosts, increasing       6  %as    M sketches of distances
//!  7  %aud   M H numbers of ranks      7  %auld  M sums of distances, low halves
//!  8  %auld  M H sums, low halves      8  %auld  their high halves
//!  9  %auld  their high halves         9  %ud    the most ranks of a measure that are kept
//! 10  %uld   ranks whose hosts        10  %aud   M numbers of ranks that are
//!            found no room            11  %aud   these ranks, the furthest first
//!                                     12  %auld  their values
//!                                     13  %as    their hosts
//! ```

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use sapwood_filter::Kll;
use sapwood_packet::{Directive, IndexedValues, IntoValues, Rank, RankSet, Values, ValuesRef};

use crate::codec::{
    LONG, LONGS, NAMES, WORD, WORDS, Wide, check_format, column, embedded, push_embedded,
    push_ranks, push_wide, ranks,
};
use crate::histogram::nearest;
use crate::measure::{self, Measure};
use crate::{Part, ProfileError, RankProfile};

/// The most hosts of which sums are kept.
pub const HOSTS_MAX: usize = 4096;
/// The most ranks that are kept of each measure.
pub const OUTLIERS_MAX: usize = 64;
/// The size of the sketches: up to this number of ranks medians are exact.
pub const SKETCH_SIZE: u32 = 256;

const VERSION: u32 = 1;
const MEDIANS_LAYOUT: [Directive; 11] = [
    WORD,
    WORDS,
    measure::MEASURES[0],
    measure::MEASURES[1],
    measure::MEASURES[2],
    NAMES,
    NAMES,
    WORDS,
    LONGS,
    LONGS,
    LONG,
];
const DEVIATIONS_LAYOUT: [Directive; 14] = [
    WORD,
    WORDS,
    measure::MEASURES[0],
    measure::MEASURES[1],
    measure::MEASURES[2],
    LONGS,
    NAMES,
    LONGS,
    LONGS,
    WORD,
    WORDS,
    WORDS,
    LONGS,
    NAMES,
];
const WRONG: ProfileError = ProfileError::Contradiction { what: "outliers" };
/// The longest name of a host, in bytes; a table holds less.
const HOST_BYTES_MAX: usize = 255;

/// The standard deviation of normal values over the median of their distances from the median.
const MEDIAN_TO_DEVIATION: f64 = 1.4826;
/// The same over the mean of these distances.
const MEAN_TO_DEVIATION: f64 = 1.2533;

/// Of one measure over the ranks of one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostSum {
    /// Ranks that have the event.
    pub ranks: u32,
    /// The sum of their values.
    pub sum: u128,
}

/// The first trip: where the middle of each measure is.
#[derive(Clone, Debug, Default)]
pub struct Medians {
    covered: RankSet,
    measures: Vec<Measure>,
    sketches: Vec<Kll>,
    /// By host, one for each measure.
    hosts: BTreeMap<String, Vec<HostSum>>,
    without_host: u64,
}

impl Medians {
    /// Of the ranks of one leaf. The seed, such as the leaf's number, only matters beyond
    /// [`SKETCH_SIZE`] ranks.
    #[must_use]
    pub fn of(profiles: &[RankProfile], measures: &[Measure], seed: u64) -> Self {
        let sketches = measures.iter().map(|_| sketch(seed)).collect();
        let mut medians = Self { measures: measures.to_vec(), sketches, ..Self::default() };
        for profile in profiles {
            medians.covered.insert(profile.mpi_rank);
            let none = || vec![HostSum::default(); measures.len()];
            let host = medians.hosts.entry(profile.host.clone()).or_insert_with(none);
            for (at, measure) in measures.iter().enumerate() {
                let Some(value) = measure.value(profile) else { continue };
                medians.sketches[at].add(nearest(value));
                host[at].ranks += 1;
                host[at].sum += u128::from(value);
            }
        }
        medians.cut();
        medians
    }

    /// The median of each measure that a covered rank has.
    pub fn medians(&self) -> impl Iterator<Item = (&Measure, u64)> {
        let all = self.measures.iter().zip(&self.sketches);
        all.filter_map(|(measure, sketch)| Some((measure, median(sketch)?)))
    }

    /// The hosts with what their ranks have of a measure.
    pub fn hosts(&self, measure: &Measure) -> impl Iterator<Item = (&str, HostSum)> {
        let at = self.measures.iter().position(|own| own == measure);
        let sums = self.hosts.iter().filter_map(move |(host, sums)| Some((&host[..], sums[at?])));
        sums.filter(|(_, sum)| sum.ranks > 0)
    }

    /// How many ranks are on hosts that found no room.
    #[must_use]
    pub const fn ranks_without_host(&self) -> u64 {
        self.without_host
    }

    /// Leaves out the hosts that are last in order: the same whatever was merged first. Ranks are
    /// counted by the measure that most of them have.
    fn cut(&mut self) {
        while self.hosts.len() > HOSTS_MAX {
            let Some((_, sums)) = self.hosts.pop_last() else { return };
            self.without_host += sums.iter().map(|sum| u64::from(sum.ranks)).max().unwrap_or(0);
        }
    }
}

fn sketch(seed: u64) -> Kll {
    Kll::new(SKETCH_SIZE, seed).expect("the size is one that it takes")
}

/// The sketch's numbers are whole.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole and not negative"
)]
fn median(sketch: &Kll) -> Option<u64> {
    sketch.quantile(0.5).map(|median| median as u64)
}

fn sketch_values(sketches: &[Kll]) -> Vec<Values> {
    sketches.iter().map(|sketch| sketch.clone().into_values()).collect()
}

fn read_sketches(
    values: &IndexedValues<'_>,
    index: usize,
    count: usize,
    covered: &RankSet,
) -> Result<Vec<Kll>, ProfileError> {
    let (format, _) = sketch(0).into_values().into_parts();
    let read = |values: ValuesRef<'_>| Kll::from_values(values).map_err(|_| WRONG);
    let sketches = embedded(values, index, count, format.as_ref(), read)?;
    let is_right = |sketch: &Kll| {
        sketch.count() <= covered.len() && sketch.min().is_none_or(|smallest| smallest >= 0.0)
    };
    if sketches.iter().all(is_right) { Ok(sketches) } else { Err(WRONG) }
}

fn merge_sketches(own: &mut [Kll], others: &[Kll]) -> Result<(), ProfileError> {
    own.iter_mut().zip(others).try_for_each(|(own, other)| own.merge(other).map_err(|_| WRONG))
}

impl Part for Medians {
    const FILTER: &'static str = "profile-medians";

    fn covered(&self) -> &RankSet {
        &self.covered
    }

    fn absorb(&mut self, other: Self) -> Result<(), ProfileError> {
        if self.measures != other.measures {
            return Err(WRONG);
        }
        self.covered.union_with(other.covered.as_ref());
        merge_sketches(&mut self.sketches, &other.sketches)?;
        self.without_host = self.without_host.saturating_add(other.without_host);
        for (host, others) in other.hosts {
            let Some(own) = self.hosts.get_mut(&host) else {
                self.hosts.insert(host, others);
                continue;
            };
            for (own, other) in own.iter_mut().zip(others) {
                own.ranks = own.ranks.saturating_add(other.ranks);
                own.sum = own.sum.saturating_add(other.sum);
            }
        }
        self.cut();
        Ok(())
    }

    fn encode(&self) -> Values {
        let hosts: Vec<&str> = self.hosts.keys().map(String::as_str).collect();
        let sums = || self.hosts.values().flatten();
        let values = push_ranks(Values::new().scalar(VERSION), &self.covered);
        let values = push_embedded(
            measure::push(values, self.measures.iter()),
            sketch_values(&self.sketches),
        );
        let values = values.strings(&hosts);
        let values = values.array::<u32>(&sums().map(|sum| sum.ranks).collect::<Vec<_>>());
        push_wide(values, &sums().map(|sum| sum.sum).collect::<Vec<_>>()).scalar(self.without_host)
    }

    fn decode(values: ValuesRef<'_>) -> Result<Self, ProfileError> {
        let values = &IndexedValues::new(values)?;
        check_format(values, &MEDIANS_LAYOUT, VERSION, "medians")?;
        let covered = ranks(values, 1)?;
        let measures = measure::read(values, 2)?;
        let sketches = read_sketches(values, 5, measures.len(), &covered)?;
        let hosts = values.strings(6)?;
        let count = hosts.len();
        if count > HOSTS_MAX {
            return Err(WRONG);
        }
        let numbers: &[u32] = column(values, 7, count * measures.len())?;
        let sums = Wide::read(values, 8, count * measures.len())?;
        let without_host = values.scalar(10)?;
        let mut medians =
            Self { covered, measures, sketches, hosts: BTreeMap::new(), without_host };
        for (place, host) in hosts.enumerate() {
            let first = place * medians.measures.len();
            let own = (first..first + medians.measures.len())
                .map(|at| HostSum { ranks: numbers[at], sum: sums.at(at) })
                .collect();
            medians.hosts.insert(host_name(host)?, own);
        }
        if medians.hosts.len() == count { Ok(medians) } else { Err(WRONG) }
    }
}

fn host_name(bytes: &[u8]) -> Result<String, ProfileError> {
    let name = core::str::from_utf8(bytes).ok().filter(|name| name.len() <= HOST_BYTES_MAX);
    name.map(str::to_owned).ok_or(WRONG)
}

/// A rank that is far from the median.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// The rank.
    pub rank: Rank,
    /// Its value.
    pub value: u64,
    /// Its host.
    pub host: String,
}

/// The distances of one measure from its median.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The median that was asked about.
    pub median: u64,
    sketch: Kll,
    sum: u128,
    furthest: Vec<Deviation>,
}

impl Spread {
    /// The ranks that deviate most, the furthest first; of equal distance the lowest rank.
    #[must_use]
    pub fn furthest(&self) -> &[Deviation] {
        &self.furthest
    }

    /// The median of the distances.
    #[must_use]
    pub fn median_distance(&self) -> Option<u64> {
        median(&self.sketch)
    }

    /// The score of a value; nothing when all ranks have the same.
    #[must_use]
    pub fn score(&self, value: u64) -> Option<f64> {
        #[allow(clippy::cast_precision_loss, reason = "a score for the eye")]
        let mean = self.sum as f64 / (self.sketch.count().max(1) as f64);
        score(nearest(value), nearest(self.median), nearest(self.median_distance()?), mean)
    }

    fn keep(&mut self, most: usize) {
        let median = self.median;
        self.furthest.sort_by_key(|one| (Reverse(one.value.abs_diff(median)), one.rank));
        self.furthest.truncate(most);
    }
}

/// The score of a value, with the median and the mean of all distances from the median.
#[must_use]
pub fn score(value: f64, median: f64, median_distance: f64, mean_distance: f64) -> Option<f64> {
    let deviation = if median_distance > 0.0 {
        median_distance * MEDIAN_TO_DEVIATION
    } else {
        mean_distance * MEAN_TO_DEVIATION
    };
    (deviation > 0.0).then(|| (value - median) / deviation)
}

/// The second trip: how far ranks are from the medians.
#[derive(Clone, Debug, Default)]
pub struct Deviations {
    covered: RankSet,
    most: usize,
    spreads: Vec<(Measure, Spread)>,
}

impl Deviations {
    /// Of the ranks of one leaf; at most `most` ranks are kept of each measure, and at most
    /// [`OUTLIERS_MAX`].
    #[must_use]
    pub fn of(
        profiles: &[RankProfile],
        medians: &[(Measure, u64)],
        most: usize,
        seed: u64,
    ) -> Self {
        let most = most.min(OUTLIERS_MAX);
        let spread = |(measure, median): &(Measure, u64)| {
            let mut spread =
                Spread { median: *median, sketch: sketch(seed), sum: 0, furthest: Vec::new() };
            for profile in profiles {
                let Some(value) = measure.value(profile) else { continue };
                let distance = value.abs_diff(*median);
                spread.sketch.add(nearest(distance));
                spread.sum += u128::from(distance);
                let (rank, host) = (profile.mpi_rank, profile.host.clone());
                spread.furthest.push(Deviation { rank, value, host });
            }
            spread.keep(most);
            (measure.clone(), spread)
        };
        let spreads = medians.iter().map(spread).collect();
        let covered = profiles.iter().map(|profile| profile.mpi_rank).collect();
        Self { covered, most, spreads }
    }

    /// The spreads of all measures.
    #[must_use]
    pub fn spreads(&self) -> &[(Measure, Spread)] {
        &self.spreads
    }
}

impl Part for Deviations {
    const FILTER: &'static str = "profile-deviations";

    fn covered(&self) -> &RankSet {
        &self.covered
    }

    fn absorb(&mut self, other: Self) -> Result<(), ProfileError> {
        let question = |one: &Self| -> Vec<(Measure, u64)> {
            one.spreads.iter().map(|(measure, spread)| (measure.clone(), spread.median)).collect()
        };
        if self.most != other.most || question(self) != question(&other) {
            return Err(WRONG);
        }
        self.covered.union_with(other.covered.as_ref());
        for ((_, own), (_, other)) in self.spreads.iter_mut().zip(other.spreads) {
            own.sketch.merge(&other.sketch).map_err(|_| WRONG)?;
            own.sum = own.sum.saturating_add(other.sum);
            own.furthest.extend(other.furthest);
            own.keep(self.most);
        }
        Ok(())
    }

    fn encode(&self) -> Values {
        let spreads = || self.spreads.iter().map(|(_, spread)| spread);
        let furthest = || spreads().flat_map(|spread| &spread.furthest);
        let values = push_ranks(Values::new().scalar(VERSION), &self.covered);
        let values = measure::push(values, self.spreads.iter().map(|(measure, _)| measure))
            .array::<u64>(&spreads().map(|spread| spread.median).collect::<Vec<_>>());
        let sketches = spreads().map(|spread| spread.sketch.clone().into_values()).collect();
        let values = push_embedded(values, sketches);
        let values = push_wide(values, &spreads().map(|spread| spread.sum).collect::<Vec<_>>());
        let count = |spread: &Spread| u32::try_from(spread.furthest.len()).unwrap_or(u32::MAX);
        values
            .scalar(u32::try_from(self.most).unwrap_or(u32::MAX))
            .array::<u32>(&spreads().map(count).collect::<Vec<_>>())
            .array::<u32>(&furthest().map(|one| one.rank).collect::<Vec<_>>())
            .array::<u64>(&furthest().map(|one| one.value).collect::<Vec<_>>())
            .strings(&furthest().map(|one| one.host.as_str()).collect::<Vec<_>>())
    }

    fn decode(values: ValuesRef<'_>) -> Result<Self, ProfileError> {
        let values = &IndexedValues::new(values)?;
        check_format(values, &DEVIATIONS_LAYOUT, VERSION, "deviations")?;
        let covered = ranks(values, 1)?;
        let measures = measure::read(values, 2)?;
        let count = measures.len();
        let medians: &[u64] = column(values, 5, count)?;
        let sketches = read_sketches(values, 6, count, &covered)?;
        let sums = Wide::read(values, 7, count)?;
        let most = values.scalar::<u32>(9)? as usize;
        let lengths: &[u32] = column(values, 10, count)?;
        let far: &[Rank] = values.array(11)?;
        let far_values: &[u64] = column(values, 12, far.len())?;
        let hosts: Vec<String> = values.strings(13)?.map(host_name).collect::<Result<_, _>>()?;
        let length: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
        let fits = hosts.len() == far.len() && length == far.len() as u64 && most <= OUTLIERS_MAX;
        if !fits || far.iter().any(|&rank| !covered.contains(rank)) {
            return Err(WRONG);
        }
        let one = |((&rank, &value), host)| Deviation { rank, value, host };
        let mut far = far.iter().zip(far_values).zip(hosts).map(one);
        let spreads = measures.into_iter().zip(sketches).enumerate();
        let spreads = spreads.map(|(at, (measure, sketch))| {
            let furthest = far.by_ref().take(lengths[at] as usize).collect();
            (measure, Spread { median: medians[at], sketch, sum: sums.at(at), furthest })
        });
        let spreads: Vec<_> = spreads.collect();
        let is_cut = |(_, spread): &(Measure, Spread)| spread.furthest.len() <= most;
        if spreads.iter().all(is_cut) { Ok(Self { covered, most, spreads }) } else { Err(WRONG) }
    }
}

/// Adds the question about deviations: five values.
pub fn push_medians(values: Values, medians: &[(Measure, u64)], most: u32) -> Values {
    let numbers: Vec<u64> = medians.iter().map(|(_, median)| *median).collect();
    let measures = medians.iter().map(|(measure, _)| measure);
    measure::push(values.scalar(most), measures).array(&numbers)
}

/// Reads it from the value of this index on.
///
/// # Errors
/// [`ProfileError`] when it is none.
pub fn read_medians(
    values: ValuesRef<'_>,
    first: usize,
) -> Result<(Vec<(Measure, u64)>, u32), ProfileError> {
    let values = &IndexedValues::new(values)?;
    let measures = measure::read(values, first + 1)?;
    let medians: &[u64] = column(values, first + 4, measures.len())?;
    let medians = measures.into_iter().zip(medians.iter().copied()).collect();
    Ok((medians, values.scalar(first)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counters, EventKey, Metric};

    fn values(numbers: &[u64]) -> (Vec<RankProfile>, Measure) {
        let event = EventKey::Region("solve".to_owned());
        let world_size = u32::try_from(numbers.len()).expect("a small program");
        let one = |(&time_ns, rank)| {
            let mut profile = RankProfile::new(rank, world_size);
            let counters = Counters { count: 1, time_ns, bytes: 0 };
            profile.events.insert(event.clone(), counters);
            profile
        };
        let profiles = numbers.iter().zip(0..).map(one).collect();
        (profiles, Measure { event, metric: Metric::TimeNs })
    }

    fn deviations(numbers: &[u64]) -> Spread {
        let (profiles, measure) = values(numbers);
        let medians = Medians::of(&profiles, &[measure], 0);
        let medians: Vec<_> =
            medians.medians().map(|(measure, median)| (measure.clone(), median)).collect();
        Deviations::of(&profiles, &medians, 2, 0).spreads[0].1.clone()
    }

    #[test]
    fn the_furthest_rank_is_named_and_does_not_hide_itself() {
        let spread = deviations(&[100, 101, 99, 102, 98, 100, 5000, 40]);
        assert_eq!(spread.median, 100);
        let ranks: Vec<_> = spread.furthest().iter().map(|one| one.rank).collect();
        assert_eq!(ranks, [6, 7]);
        assert_eq!(spread.median_distance(), Some(1));
        assert_eq!(spread.score(5000), Some(4900.0 / MEDIAN_TO_DEVIATION));
        assert!(spread.score(40) < Some(0.0), "it is below the median");
    }

    #[test]
    fn one_rank_beside_equal_ones_has_a_score_too() {
        let spread = deviations(&[7, 7, 7, 7, 17]);
        assert_eq!(spread.median_distance(), Some(0));
        assert_eq!(spread.score(17), Some(10.0 / (2.0 * MEAN_TO_DEVIATION)));
        assert_eq!(deviations(&[7, 7]).score(7), None, "no rank deviates");
    }
}
