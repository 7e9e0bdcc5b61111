//! Numbers of each rank for a heat map: exact up to [`RANK_BINS_MAX`] ranks, and above that bins of
//! neighbouring ranks with mean and largest value.
//!
//! ```text
//!  0  %ud    version, 1
//!  1  %ud    ranks in each bin
//!  2  %aud   covered ranks
//!  3  %aud   B bins in which a covered rank is, increasing
//!  4  %aud   B numbers of covered ranks
//!  5  %auld  3 B sums, low halves: share of MPI, computing time, bytes
//!  6  %auld  their high halves
//!  7  %auld  3 B largest values
//! ```

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::{Directive, IndexedValues, RankSet, Values, ValuesRef};

use crate::codec::{LONGS, WORD, WORDS, Wide, check_format, column, push_ranks, push_wide, ranks};
use crate::load::Load;
use crate::{Part, ProfileError, RankProfile};

/// The most bins; up to this number of ranks each has its own.
pub const RANK_BINS_MAX: u32 = 512;

/// What is told of each rank.
pub const RANK_METRICS: [&str; 3] = ["mpi_ppm", "compute_ns", "bytes"];

const METRICS: usize = RANK_METRICS.len();
const VERSION: u32 = 1;
const LAYOUT: [Directive; 8] = [WORD, WORD, WORDS, WORDS, WORDS, LONGS, LONGS, LONGS];
const WRONG: ProfileError = ProfileError::Contradiction { what: "values of ranks" };

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RankBin {
    ranks: u32,
    sums: [u128; METRICS],
    largest: [u64; METRICS],
}

/// The numbers of all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankValues {
    ranks_per_bin: u32,
    covered: RankSet,
    bins: BTreeMap<u32, RankBin>,
}

impl RankValues {
    /// Of the ranks of one leaf.
    #[must_use]
    pub fn of(profiles: &[RankProfile]) -> Self {
        let world_size = profiles.first().map_or(0, |first| first.world_size);
        let ranks_per_bin = world_size.div_ceil(RANK_BINS_MAX);
        let mut values = Self { ranks_per_bin, ..Self::default() };
        for profile in profiles {
            let load = Load::of(profile.time, profile.mpi_rank);
            let bytes = profile.events.values().map(|counters| counters.bytes);
            let numbers = [
                load.map_or(0, |load| load.mpi_ppm.max()),
                load.map_or(0, |load| load.compute_ns.max()),
                bytes.fold(0, u64::saturating_add),
            ];
            let one = RankBin { ranks: 1, sums: numbers.map(u128::from), largest: numbers };
            values.covered.insert(profile.mpi_rank);
            values.add(profile.mpi_rank / ranks_per_bin.max(1), &one);
        }
        values
    }

    /// How many neighbouring ranks are in a bin; 0 as long as none has come.
    #[must_use]
    pub const fn ranks_per_bin(&self) -> u32 {
        self.ranks_per_bin
    }

    /// Of one of [`RANK_METRICS`], for a program of this size: each bin's mean and largest value;
    /// nothing where no rank is covered.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
    pub fn bins(&self, metric: usize, world_size: u32) -> Vec<Option<(f64, f64)>> {
        let count = world_size.div_ceil(self.ranks_per_bin.max(1));
        let numbers = |bin: &RankBin| {
            (bin.sums[metric] as f64 / f64::from(bin.ranks), bin.largest[metric] as f64)
        };
        (0..count.min(RANK_BINS_MAX)).map(|bin| self.bins.get(&bin).map(numbers)).collect()
    }

    fn add(&mut self, bin: u32, other: &RankBin) {
        let own = self.bins.entry(bin).or_default();
        own.ranks = own.ranks.saturating_add(other.ranks);
        for at in 0..METRICS {
            own.sums[at] = own.sums[at].saturating_add(other.sums[at]);
            own.largest[at] = own.largest[at].max(other.largest[at]);
        }
    }
}

impl Part for RankValues {
    const FILTER: &'static str = "profile-rank-values";

    fn covered(&self) -> &RankSet {
        &self.covered
    }

    fn absorb(&mut self, other: Self) -> Result<(), ProfileError> {
        if self.covered.is_empty() {
            *self = other;
            return Ok(());
        }
        if other.covered.is_empty() {
            return Ok(());
        }
        if self.ranks_per_bin != other.ranks_per_bin {
            return Err(WRONG);
        }
        self.covered.union_with(other.covered.as_ref());
        other.bins.iter().for_each(|(&bin, other)| self.add(bin, other));
        Ok(())
    }

    fn encode(&self) -> Values {
        let bins = || self.bins.values();
        let values = Values::new().scalar(VERSION).scalar(self.ranks_per_bin);
        let values = push_ranks(values, &self.covered)
            .array::<u32>(&self.bins.keys().copied().collect::<Vec<_>>())
            .array::<u32>(&bins().map(|bin| bin.ranks).collect::<Vec<_>>());
        push_wide(values, &bins().flat_map(|bin| bin.sums).collect::<Vec<_>>())
            .array::<u64>(&bins().flat_map(|bin| bin.largest).collect::<Vec<_>>())
    }

    fn decode(values: ValuesRef<'_>) -> Result<Self, ProfileError> {
        let values = &IndexedValues::new(values)?;
        check_format(values, &LAYOUT, VERSION, "values of ranks")?;
        let bins: &[u32] = values.array(3)?;
        let numbers: &[u32] = column(values, 4, bins.len())?;
        let sums = Wide::read(values, 5, METRICS * bins.len())?;
        let largest: &[u64] = column(values, 7, METRICS * bins.len())?;
        let covered = ranks(values, 2)?;
        let mut read = Self { ranks_per_bin: values.scalar(1)?, covered, bins: BTreeMap::new() };
        for (at, &bin) in bins.iter().enumerate() {
            let place = |metric| METRICS * at + metric;
            let one = RankBin {
                ranks: numbers[at],
                sums: core::array::from_fn(|metric| sums.at(place(metric))),
                largest: core::array::from_fn(|metric| largest[place(metric)]),
            };
            if one.ranks == 0 || bin >= RANK_BINS_MAX || read.bins.insert(bin, one).is_some() {
                return Err(WRONG);
            }
        }
        let all: u64 = numbers.iter().map(|&ranks| u64::from(ranks)).sum();
        if all == read.covered.len() { Ok(read) } else { Err(WRONG) }
    }
}
