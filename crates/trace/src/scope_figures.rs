//! What a scope has made of its events: a line of statistics for each group, which is merged on its
//! way up.
//!
//! ```text
//!  0  %ud    version, 4
//!  1  %auld  counters, in the order of `ScopeCounter`
//!  2  %auld  groups, 9 words each: rank and function; communicator; kind in 8 bits, thread in the
//!            next 8, and number of bins; events; sum, least, most, all in nanoseconds; the sum of
//!            squares, low and high
//!  3  %auld  bins of all groups in this order, 2 words each: number of the bin; calls
//!  4  %auld  communicators that have names, and
//!  5  %as    these
//!  6  %auld  rings that have lost most events, 2 words each: rank and thread; events
//! ```

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sapwood_filter::{Emitter, Filter, FilterError, WaveRef};
use sapwood_packet::{Directive, ElementType, Rank, Shape, Values, ValuesRef};

use crate::TraceError;
use crate::dropped::{DroppedRings, RankRing};
use crate::place::OTHERS;
use crate::scope::ScopeReduction;
use crate::words::{halves, pair};

/// The name of the filter that merges the figures of a scope. It takes the most bytes of a packet
/// as `%uld`, 0 for no limit but that of groups, and as `%ud` how many groups with the largest sums
/// a packet has beside that of others, 0 for all; or nothing for neither.
pub const TRACE_SCOPE: &str = "trace-scope";
/// Groups of one packet, at most.
pub const SCOPE_GROUPS_MAX: usize = 1 << 14;

const VERSION: u32 = 4;
const WORD: Directive = Directive::new(ElementType::Uint32, Shape::Scalar);
const LONGS: Directive = Directive::new(ElementType::Uint64, Shape::Array);
const TEXTS: Directive = Directive::new(ElementType::String, Shape::Array);
const LAYOUT: [Directive; 7] = [WORD, LONGS, LONGS, LONGS, LONGS, TEXTS, LONGS];
const WRONG: TraceError = TraceError::Contradiction { what: "groups of a scope" };
const GROUP_WORDS: usize = 9;
const BIN_WORDS: usize = 2;
/// Rings of one packet, at most: those that have lost most. What the others have lost is in the
/// counter only.
const RINGS_MAX: usize = 16;
const THREAD_SHIFT: u32 = 8;
/// Bins to each power of two: a quantile is wrong by at most half of a bin, 1/32.
const BINS_BITS: u32 = 4;

/// What is counted beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum ScopeCounter {
    /// Events that were read.
    Read = 0,
    /// Of these, those that the scope selects.
    Selected = 1,
    /// Events that were overwritten before they were read.
    Dropped = 2,
    /// Readings that ended early because the share of a processor was used up.
    Throttled = 3,
    /// Groups that were folded into one because a packet had no room for them.
    Folded = 4,
    /// Time that leaves have used, in nanoseconds.
    CpuNs = 5,
    /// Ranks whose events were read.
    Ranks = 6,
    /// Ranks that do not record.
    Silent = 7,
    /// Calls of threads that have no ring.
    WithoutRing = 8,
    /// Calls on communicators for which there was no room.
    WithoutSpace = 9,
    /// Records that were there and not read when a reading ended.
    Waiting = 10,
    /// Readings that ended because the ranks did not come to where events are to be read.
    PutOff = 11,
    /// Records that were read at another moment, before they would have been overwritten.
    Overdue = 12,
    /// Records that their rank cannot have written.
    Damaged = 13,
    /// Events of scopes with a window for which windows had no room: an event was left out, or the
    /// oldest one of its group and thread.
    WithoutWindow = 14,
}

/// How many counters there are.
pub const SCOPE_COUNTERS: usize = 15;

/// Which group: what the scope does not tell apart is 0, and [`OTHERS`] for the rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScopeKey {
    /// The rank.
    pub rank: Rank,
    /// The function.
    pub function: u32,
    /// The identity of the communicator.
    pub communicator: u64,
    /// The kind.
    pub kind: u8,
    /// The thread of the rank.
    pub thread: u8,
}

impl ScopeKey {
    /// The group of all that is not distinguished any more.
    pub const OTHERS: Self =
        Self { rank: OTHERS, function: 0, communicator: 0, kind: 0, thread: 0 };
}

/// The statistics of one group, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeStatistics {
    /// Events.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The least.
    pub least: u64,
    /// The most.
    pub most: u64,
    squares: u128,
    bins: BTreeMap<u16, u64>,
}

impl Default for ScopeStatistics {
    fn default() -> Self {
        let bins = BTreeMap::new();
        Self { count: 0, sum: 0, least: u64::MAX, most: 0, squares: 0, bins }
    }
}

impl ScopeStatistics {
    /// Adds the value of an event.
    pub fn add(&mut self, ns: u64) {
        self.add_to_sums(ns);
        *self.bins.entry(bin_of(ns)).or_default() += 1;
    }

    /// Adds the value of an event to all but the bins: [`ScopeStatistics::quantile`] means nothing
    /// then.
    fn add_to_sums(&mut self, ns: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(ns);
        self.least = self.least.min(ns);
        self.most = self.most.max(ns);
        self.squares = self.squares.saturating_add(u128::from(ns) * u128::from(ns));
    }

    /// Adds those of other events.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.squares = self.squares.saturating_add(other.squares);
        for (&bin, &count) in &other.bins {
            let mine = self.bins.entry(bin).or_default();
            *mine = mine.saturating_add(count);
        }
    }

    /// The mean; 0 for no events.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The variance of the population; 0 for no events. A crate without the standard library has
    /// no square root.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn variance(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let mean = self.mean();
        (self.squares as f64 / self.count as f64 - mean * mean).max(0.0)
    }

    /// The value below which this part of the events lies, in per mille; within 1/32 of it.
    #[must_use]
    pub fn quantile(&self, per_mille: u64) -> u64 {
        let wanted = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut seen = 0_u128;
        for (&bin, &count) in &self.bins {
            seen += u128::from(count);
            if seen >= wanted {
                return middle_of(bin).clamp(self.least, self.most);
            }
        }
        if self.count == 0 { 0 } else { self.most }
    }
}

/// Below this values have a bin each, from here on 16 to each power of two.
const SMALL: u64 = 2 << BINS_BITS;
const BINS: u64 = 1 << BINS_BITS;

fn bin_of(ns: u64) -> u16 {
    if ns < SMALL {
        return u16::try_from(ns).unwrap_or(u16::MAX);
    }
    let shift = u64::from(ns.ilog2() - BINS_BITS);
    let within = (ns >> shift) - BINS;
    u16::try_from(SMALL + (shift - 1) * BINS + within).unwrap_or(u16::MAX)
}

fn middle_of(bin: u16) -> u64 {
    let bin = u64::from(bin);
    let Some(beyond) = bin.checked_sub(SMALL) else { return bin };
    let shift = beyond / BINS + 1;
    let low = (BINS + beyond % BINS) << shift;
    low.saturating_add((1 << shift) / 2)
}

/// The figures of one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeFigures {
    /// By [`ScopeCounter`].
    pub counters: [u64; SCOPE_COUNTERS],
    /// The groups.
    pub groups: BTreeMap<ScopeKey, ScopeStatistics>,
    /// What communicators are called.
    pub names: BTreeMap<u64, String>,
    /// By ring, what is counted as dropped; of a packet, the rings that have lost most.
    pub dropped: DroppedRings,
}

impl ScopeFigures {
    /// Counts something.
    pub const fn count(&mut self, counter: ScopeCounter, more: u64) {
        let mine = &mut self.counters[counter as usize];
        *mine = mine.saturating_add(more);
    }

    /// What was counted.
    #[must_use]
    pub const fn counter(&self, counter: ScopeCounter) -> u64 {
        self.counters[counter as usize]
    }

    /// Counts events of a ring that were overwritten before they were read.
    pub fn count_dropped(&mut self, ring: RankRing, events: u64) {
        self.count(ScopeCounter::Dropped, events);
        self.dropped.add(ring, events);
    }

    /// Adds the value of an event to its group.
    pub fn add(&mut self, key: ScopeKey, ns: u64, reduction: ScopeReduction) {
        self.add_all(key, [ns], reduction);
    }

    /// Adds the values of several events of one group.
    pub fn add_all(
        &mut self,
        key: ScopeKey,
        values: impl IntoIterator<Item = u64>,
        reduction: ScopeReduction,
    ) {
        let group = self.groups.entry(key).or_default();
        let values = values.into_iter();
        match reduction {
            ScopeReduction::Sums => values.for_each(|ns| group.add_to_sums(ns)),
            ScopeReduction::Sketch | ScopeReduction::Top { .. } => {
                values.for_each(|ns| group.add(ns));
            }
        }
    }

    /// Takes in those of other ranks.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counters.iter_mut().zip(other.counters) {
            *mine = mine.saturating_add(theirs);
        }
        for (key, one) in &other.groups {
            self.groups.entry(*key).or_default().merge(one);
        }
        for (&identity, name) in &other.names {
            // Of several names the first in order holds, so that the order of merging is the same.
            match self.names.get_mut(&identity) {
                Some(mine) if *mine <= *name => {}
                Some(mine) => mine.clone_from(name),
                None => drop(self.names.insert(identity, name.clone())),
            }
        }
        self.dropped.merge(&other.dropped);
    }

    /// Folds groups with small sums into one of others, until these have at most this many bytes.
    /// Sums stay right, only whose they are is not known any more.
    pub fn bound(&mut self, bytes_max: u64) {
        let bytes = |one: &ScopeStatistics| 8 * (GROUP_WORDS + BIN_WORDS * one.bins.len()) as u64;
        let mut total: u64 = self.groups.values().map(bytes).sum();
        if total <= bytes_max && self.groups.len() <= SCOPE_GROUPS_MAX {
            return;
        }
        for key in self.smallest_first() {
            if total <= bytes_max && self.groups.len() <= SCOPE_GROUPS_MAX {
                break;
            }
            let before = self.groups.get(&ScopeKey::OTHERS).map_or(0, bytes);
            let Some(one) = self.fold(key) else { continue };
            total = total - bytes(&one) - before + bytes(&self.groups[&ScopeKey::OTHERS]);
            self.count(ScopeCounter::Folded, 1);
        }
        self.forget_names();
    }

    /// Keeps this number of groups, those with the largest sums, and folds all others into one. It
    /// is what the scope asks for: not counted as a lack of space.
    pub fn keep_largest(&mut self, groups: u32) {
        let kept = usize::try_from(groups).unwrap_or(usize::MAX);
        if self.groups.len() <= kept {
            return;
        }
        let keys = self.smallest_first();
        let folded = keys.len().saturating_sub(kept);
        for &key in &keys[..folded] {
            self.fold(key);
        }
        if folded > 0 {
            self.forget_names();
        }
    }

    /// The groups but that of others, those with the smallest sums first. Of equal sums the order
    /// of keys decides, so that all processes of a tree choose the same.
    fn smallest_first(&self) -> Vec<ScopeKey> {
        let told_apart = self.groups.iter().filter(|(key, _)| **key != ScopeKey::OTHERS);
        let mut by_sum: Vec<(u64, ScopeKey)> =
            told_apart.map(|(key, one)| (one.sum, *key)).collect();
        by_sum.sort_unstable();
        by_sum.into_iter().map(|(_, key)| key).collect()
    }

    /// Merges a group into that of others; what it was.
    fn fold(&mut self, key: ScopeKey) -> Option<ScopeStatistics> {
        let one = self.groups.remove(&key)?;
        self.groups.entry(ScopeKey::OTHERS).or_default().merge(&one);
        Some(one)
    }

    /// Removes names that no group has any more.
    fn forget_names(&mut self) {
        let named: BTreeSet<u64> = self.groups.keys().map(|key| key.communicator).collect();
        self.names.retain(|identity, _| named.contains(identity));
    }

    /// As the values of a packet.
    #[must_use]
    pub fn encode(&self) -> Values {
        let (mut groups, mut bins) = (Vec::new(), Vec::new());
        for (key, one) in &self.groups {
            let count = u32::try_from(one.bins.len()).unwrap_or(u32::MAX);
            groups.extend([pair(key.rank, key.function), key.communicator]);
            let codes = u32::from(key.kind) | u32::from(key.thread) << THREAD_SHIFT;
            groups.extend([pair(codes, count), one.count, one.sum, one.least, one.most]);
            groups.extend(halves_of(one.squares));
            bins.extend(one.bins.iter().flat_map(|(&bin, &count)| [bin.into(), count]));
        }
        let named: Vec<u64> = self.names.keys().copied().collect();
        let names: Vec<&str> = self.names.values().map(String::as_str).collect();
        let lost = self.dropped.most(RINGS_MAX).into_iter();
        let rings: Vec<u64> =
            lost.flat_map(|(ring, events)| DroppedRings::row(ring, events)).collect();
        let head = Values::new().scalar(VERSION).array(&self.counters);
        head.array(&groups).array(&bins).array(&named).strings(&names).array(&rings)
    }

    /// Reads the values of a packet.
    ///
    /// # Errors
    /// [`TraceError::Format`] when they are another thing, else what is wrong with them.
    pub fn decode(values: ValuesRef<'_>) -> Result<Self, TraceError> {
        let fits = values.format().directives().eq(LAYOUT);
        if !fits || values.scalar::<u32>(0)? != VERSION {
            return Err(TraceError::Format { format: values.format().to_string() });
        }
        let counters: &[u64] = values.array(1)?;
        let counters = *<&[u64; SCOPE_COUNTERS]>::try_from(counters).map_err(|_| WRONG)?;
        let mut read = Self { counters, ..Self::default() };
        let (groups, rest) = values.array::<u64>(2)?.as_chunks::<GROUP_WORDS>();
        let (mut bins, odd) = values.array::<u64>(3)?.as_chunks::<BIN_WORDS>();
        if !rest.is_empty() || !odd.is_empty() || groups.len() > 2 * SCOPE_GROUPS_MAX {
            return Err(WRONG);
        }
        for &[whom, communicator, codes, count, sum, least, most, low, high] in groups {
            let ((rank, function), (codes, own)) = (halves(whom), halves(codes));
            let [kind, thread] = u16::try_from(codes).map_err(|_| WRONG)?.to_le_bytes();
            let own = usize::try_from(own).map_err(|_| WRONG)?;
            let (mine, others) = bins.split_at_checked(own).ok_or(WRONG)?;
            bins = others;
            let mut one = ScopeStatistics { count, sum, least, most, ..ScopeStatistics::default() };
            one.squares = u128::from(low) | u128::from(high) << 64;
            for &[bin, count] in mine {
                let bin = u16::try_from(bin).ok().filter(|&bin| bin <= bin_of(u64::MAX));
                one.bins.insert(bin.ok_or(WRONG)?, count);
            }
            let key = ScopeKey { rank, function, communicator, kind, thread };
            if one.bins.len() != own || read.groups.insert(key, one).is_some() {
                return Err(WRONG);
            }
        }
        let named: &[u64] = values.array(4)?;
        for (&identity, name) in named.iter().zip(values.strings(5)?) {
            read.names.insert(identity, String::from_utf8_lossy(name).into_owned());
        }
        read.dropped = DroppedRings::decode(values.array(6)?, RINGS_MAX).ok_or(WRONG)?;
        if bins.is_empty() { Ok(read) } else { Err(WRONG) }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the halves are what is taken")]
const fn halves_of(wide: u128) -> [u64; 2] {
    [wide as u64, (wide >> 64) as u64]
}

pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    let wrong = |_| FilterError::Parameters {
        name: TRACE_SCOPE,
        takes: "the most bytes of a packet, %uld, and the most groups, %ud, or nothing",
    };
    let (bytes_max, groups_max): (u64, u32) = match parameters.is_empty() {
        true => (0, 0),
        false => (parameters.scalar(0).map_err(wrong)?, parameters.scalar(1).map_err(wrong)?),
    };
    let bytes_max = if bytes_max == 0 { u64::MAX } else { bytes_max };
    Ok(Box::new(TraceScope { bytes_max, groups_max: (groups_max > 0).then_some(groups_max) }))
}

struct TraceScope {
    bytes_max: u64,
    groups_max: Option<u32>,
}

impl Filter for TraceScope {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, others @ ..] = wave.packets else { return Ok(()) };
        let mut figures = ScopeFigures::decode(first.values()).map_err(failed)?;
        for other in others {
            figures.merge(&ScopeFigures::decode(other.values()).map_err(failed)?);
        }
        if let Some(groups) = self.groups_max {
            figures.keep_largest(groups);
        }
        figures.bound(self.bytes_max);
        out.emit(first.header.tag, figures.encode());
        Ok(())
    }
}

#[cold]
fn failed(error: TraceError) -> FilterError {
    FilterError::Failed(format!("filter '{TRACE_SCOPE}': {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(groups: &[(Rank, &[u64])]) -> ScopeFigures {
        let mut figures = ScopeFigures::default();
        for (rank, values) in groups {
            let thread = u8::try_from(*rank).expect("a few ranks");
            let key = ScopeKey { rank: *rank, function: 17, communicator: 7, kind: 1, thread };
            let one = figures.groups.entry(key).or_default();
            values.iter().for_each(|&ns| one.add(ns));
            figures.count(ScopeCounter::Selected, values.len() as u64);
        }
        figures.names.insert(7, "MPI_COMM_WORLD".into());
        figures
    }

    #[test]
    fn statistics_are_those_of_all_values() {
        let mut one = ScopeStatistics::default();
        (1..=1_000).for_each(|ns| one.add(ns * 1_000));
        assert_eq!((one.count, one.least, one.most), (1_000, 1_000, 1_000_000));
        assert!((one.mean() - 500_500.0).abs() < 1e-6);
        // (n^2 - 1) / 12 of the steps.
        assert!((one.variance() / 1e6 - 83_333.25).abs() < 1.0);
        let median = one.quantile(500);
        assert!(median.abs_diff(500_000) <= 500_000 / 32, "{median}");
        assert!(one.quantile(1_000).abs_diff(1_000_000) <= 1_000_000 / 32);
        assert_eq!(ScopeStatistics::default().quantile(500), 0);
    }

    #[test]
    fn a_bin_holds_what_is_near_its_middle() {
        for ns in [0, 1, 31, 32, 33, 63, 64, 1_000, 1 << 40, u64::MAX / 3, u64::MAX] {
            let middle = middle_of(bin_of(ns));
            assert!(middle.abs_diff(ns) <= ns / 32, "{ns}: {middle}");
        }
        assert!((0..2_000_u64).all(|ns| bin_of(ns) <= bin_of(ns + 1)));
    }

    #[test]
    fn figures_are_read_as_they_were_written() {
        for one in [ScopeFigures::default(), figures(&[(0, &[5, 900]), (3, &[1 << 50])])] {
            assert_eq!(ScopeFigures::decode(one.encode().as_ref()), Ok(one));
        }
        let wrong = Values::new().scalar(VERSION).array(&[0_u64; SCOPE_COUNTERS]);
        // A code beyond kind and thread, and a bin that is promised and not there.
        let beyond = wrong.clone().array(&[0, 0, pair(1 << 16, 0), 0, 0, 0, 0, 0, 0]);
        let rest = |values: Values| {
            values.array::<u64>(&[]).array::<u64>(&[]).strings::<&str>(&[]).array::<u64>(&[])
        };
        assert_eq!(ScopeFigures::decode(rest(beyond).as_ref()), Err(WRONG));
        let wrong = wrong.array(&[pair(1, 1); GROUP_WORDS]);
        assert_eq!(ScopeFigures::decode(rest(wrong).as_ref()), Err(WRONG));
    }

    #[test]
    fn a_packet_has_the_rings_that_have_lost_most_events() {
        let ring = |rank| RankRing { rank, thread: 1 };
        let mut one = figures(&[(0, &[5])]);
        (0..20_u32).for_each(|rank| one.count_dropped(ring(rank), u64::from(rank + 1)));
        one.count_dropped(ring(20), 0);
        let read = ScopeFigures::decode(one.encode().as_ref()).expect("as written");
        assert_eq!(read.counter(ScopeCounter::Dropped), 210);
        assert_eq!(read.dropped.most(20), one.dropped.most(RINGS_MAX));
        let mut both = read.clone();
        both.merge(&read);
        assert_eq!(both.dropped.most(1), [(ring(19), 40)]);
        let many: Vec<u64> = (0..17).flat_map(|ring| [ring, 1]).collect();
        let values = Values::new().scalar(VERSION).array(&[0_u64; SCOPE_COUNTERS]);
        let values = values.array::<u64>(&[]).array::<u64>(&[]).array::<u64>(&[]);
        let values = values.strings::<&str>(&[]).array(&many);
        assert_eq!(ScopeFigures::decode(values.as_ref()), Err(WRONG));
    }

    #[test]
    fn what_has_no_room_is_folded_and_counted_and_sums_stay() {
        let mut all = figures(&[(0, &[5; 9]), (1, &[7; 2]), (2, &[9])]);
        all.bound(2 * 8 * (GROUP_WORDS + BIN_WORDS) as u64 + 8 * BIN_WORDS as u64);
        assert_eq!(all.counter(ScopeCounter::Folded), 2);
        assert_eq!((all.groups.len(), all.groups[&ScopeKey::OTHERS].count), (2, 3));
        assert_eq!(all.groups[&ScopeKey::OTHERS].sum, 2 * 7 + 9);
        all.bound(0);
        assert_eq!((all.groups.len(), all.groups[&ScopeKey::OTHERS].count), (1, 12));
        assert!(all.names.is_empty());
    }
}
