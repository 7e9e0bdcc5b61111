//! `heavy-hitters`: the integers or strings that come most often, with a bound on how often each
//! came.
//!
//! Misra and Gries, "Finding repeated elements" (Science of Computer Programming 2, 1982), in the
//! form that merges: Agarwal, Cormode, Huang, Phillips, Wei, Yi, "Mergeable Summaries" (PODS 2012,
//! section 3). There are at most k counters. When there are more, the (k + 1)-th largest count is
//! taken off every counter, and those that are left with nothing go.
//!
//! **Error.** The sketch carries the sum E of what was taken off. An item with a counter c came at
//! least c and at most c + E times, one without at most E times. Each time at least k + 1 counters
//! lose, so that E <= (n - sum of counters) / (k + 1) for n items, in whatever order they were
//! merged: **every item that came more than n / (k + 1) times is there**. Which others are, and the
//! exact E, may depend on the tree's shape. As long as there are no more than k different items all
//! counts are exact (E = 0).
//!
//! Parameter: k, an integer from 1 to 65536, default 64. The encoded sketch, 64 bytes, 16 for each
//! integer, and for each string 16 and its bytes:
//!
//! ```text
//! %ud    k                      %uld   items                 %uld   E
//! %ald   negative integers      %auld  other integers        %as    strings, each sorted
//! %auld  their counters, in the order of the three arrays
//! ```

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::cmp::Reverse;

use sapwood_packet::{Directive, ElementType, FormatRef, IntoValues, PacketRef, Values, ValuesRef};

use super::item::{self, Item};
use super::{Sketch, array, failed, forged, is_same, parameter, raw, scalar, unlike};
use crate::{Filter, FilterError, WaveRef};

const NAME: &str = "heavy-hitters";

const K: u32 = 64;
const K_BOUNDS: [u32; 2] = [1, 65536];
const TAKES_PARAMETERS: &str = "one integer, the number of counters, from 1 to 65536";

const LAYOUT: [Directive; 7] = [
    scalar(ElementType::Uint32),
    scalar(ElementType::Uint64),
    scalar(ElementType::Uint64),
    item::COLUMNS[0],
    item::COLUMNS[1],
    item::COLUMNS[2],
    array(ElementType::Uint64),
];

/// An item that came often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hitter {
    /// The item.
    pub item: Item,
    /// How often it came at least.
    pub at_least: u64,
    /// How often it came at most.
    pub at_most: u64,
}

/// The items that come most often, with bounds on their counts.
///
/// ```
/// use sapwood_filter::HeavyHitters;
///
/// let mut lines = HeavyHitters::new(8)?;
/// ["disk full", "disk full", "link down"].into_iter().for_each(|line| lines.add(line));
/// let first = &lines.hitters()[0];
/// assert_eq!((first.item.text(), first.at_least), (Some("disk full"), 2));
/// assert_eq!(lines.error(), 0);
/// # Ok::<(), sapwood_filter::FilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeavyHitters {
    k: u32,
    count: u64,
    error: u64,
    /// While items are added there may be twice as many as k, so that few of them pay for a cut.
    counters: BTreeMap<Item, u64>,
}

impl HeavyHitters {
    /// The sketch of nothing, with at most k counters.
    ///
    /// # Errors
    /// [`FilterError::Parameters`] when k is not from 1 to 65536.
    pub fn new(k: u32) -> Result<Self, FilterError> {
        if !(K_BOUNDS[0]..=K_BOUNDS[1]).contains(&k) {
            return Err(FilterError::Parameters { name: NAME, takes: TAKES_PARAMETERS });
        }
        Ok(Self { k, count: 0, error: 0, counters: BTreeMap::new() })
    }

    /// Adds an item that came once.
    pub fn add(&mut self, item: impl Into<Item>) {
        self.add_times(item, 1);
    }

    /// Adds `times` occurrences of an item.
    pub fn add_times(&mut self, item: impl Into<Item>, times: u64) {
        // More than 2^64 items cannot be counted.
        let times = times.min(u64::MAX - self.count);
        if times == 0 {
            return;
        }
        self.count += times;
        let counter = self.counters.entry(item.into()).or_default();
        *counter = counter.saturating_add(times);
        if self.counters.len() > 2 * self.k as usize {
            self.cut();
        }
    }

    /// Takes in another sketch of the same k.
    ///
    /// # Errors
    /// [`FilterError::Failed`] when the other's k differs, or both hold more than 2^64 items.
    pub fn merge(&mut self, other: &Self) -> Result<(), FilterError> {
        self.absorb(other.clone())
    }

    /// The items with a counter: at most k, the most frequent first, equally frequent ones sorted.
    #[must_use]
    pub fn hitters(&self) -> Vec<Hitter> {
        let cut = self.to_cut();
        let mut hitters: Vec<Hitter> = cut
            .counters
            .into_iter()
            .map(|(item, count)| Hitter {
                item,
                at_least: count,
                at_most: count.saturating_add(cut.error),
            })
            .collect();
        hitters.sort_by_key(|hitter| Reverse(hitter.at_least));
        hitters
    }

    /// E: how much more often than its counter an item may have come; at most `count() / (k + 1)`.
    #[must_use]
    pub fn error(&self) -> u64 {
        self.to_cut().error
    }

    /// How many items were added.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Reads an encoded sketch, of the filter or of [`IntoValues::into_values`].
    ///
    /// # Errors
    /// [`FilterError::Format`] when the format is another, [`FilterError::Values`] or
    /// [`FilterError::Failed`] when the values do not fit together.
    pub fn from_values(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        Self::read(values)
    }

    fn to_cut(&self) -> Self {
        let mut cut = self.clone();
        cut.cut();
        cut
    }

    /// Leaves at most k counters.
    fn cut(&mut self) {
        let k = self.k as usize;
        if self.counters.len() <= k {
            return;
        }
        let mut counts: Vec<u64> = self.counters.values().copied().collect();
        let (_, &mut less, _) = counts.select_nth_unstable_by_key(k, |&count| Reverse(count));
        self.counters.retain(|_, counter| {
            *counter = counter.saturating_sub(less);
            *counter > 0
        });
        self.error = self.error.saturating_add(less);
    }
}

impl IntoValues for HeavyHitters {
    fn append_to(mut self, values: Values) -> Values {
        self.cut();
        let values = values.scalar(self.k).scalar(self.count).scalar(self.error);
        let counters: Vec<u64> = self.counters.values().copied().collect();
        item::append(values, self.counters.keys()).array(&counters)
    }
}

impl Sketch for HeavyHitters {
    const NAME: &'static str = NAME;
    const TAKES: &'static str = "one integer or string, one array of them, or its own sketches";
    type Parameters = Self;

    fn parameters(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        Self::new(parameter::only_integer(values, K, K_BOUNDS).unwrap_or(0))
    }

    fn begin(parameters: &Self, _: &WaveRef<'_>) -> Self {
        parameters.clone()
    }

    fn is_layout(format: FormatRef<'_>) -> bool {
        is_same(format, &LAYOUT)
    }

    fn is_raw(format: FormatRef<'_>) -> bool {
        raw::is_items(format)
    }

    fn add_raw(&mut self, packet: &PacketRef<'_>) -> Result<(), FilterError> {
        item::each(packet.values(), |item| self.add(item))
    }

    fn decode(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        let mut sketch = Self::new(values.scalar(0)?)
            .map_err(|_| forged(NAME, "a number of counters that is out of range"))?;
        (sketch.count, sketch.error) = (values.scalar(1)?, values.scalar(2)?);
        let items = item::decode(NAME, values, 3)?;
        let counters = values.array::<u64>(6)?;
        if items.len() != counters.len() || items.len() > sketch.k as usize {
            return Err(forged(NAME, "another number of counters than of items"));
        }
        // What E promises, said without division: counters + E (k + 1) <= n.
        let counted: u128 = counters.iter().copied().map(u128::from).sum();
        let taken_off = u128::from(sketch.error) * (u128::from(sketch.k) + 1);
        if counters.contains(&0) || counted + taken_off > u128::from(sketch.count) {
            return Err(forged(NAME, "counters that are zero or more than its items"));
        }
        sketch.counters = items.into_iter().zip(counters.iter().copied()).collect();
        Ok(sketch)
    }

    fn absorb(&mut self, mut other: Self) -> Result<(), FilterError> {
        if self.k != other.k {
            return Err(unlike(NAME, &format!("{} counters for {}", other.k, self.k)));
        }
        let too_many = || failed(NAME, "more than 2^64 items in one sketch");
        self.count = self.count.checked_add(other.count).ok_or_else(too_many)?;
        self.error = self.error.saturating_add(other.error);
        if self.counters.len() < other.counters.len() {
            core::mem::swap(&mut self.counters, &mut other.counters);
        }
        for (item, times) in other.counters {
            let counter = self.counters.entry(item).or_default();
            *counter = counter.saturating_add(times);
        }
        self.cut();
        Ok(())
    }
}

/// Makes the filter; its parameter is the number of counters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    super::make::<HeavyHitters>(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_more_often_than_its_share_is_found() {
        let mut sketch = HeavyHitters::new(4).expect("k");
        for step in 0..1000_u32 {
            // 300 times 1, 250 times "two", and 450 others once each.
            match step % 20 {
                0..6 => sketch.add(1_u8),
                6..11 => sketch.add("two"),
                _ => sketch.add(step + 1000),
            }
        }
        assert_eq!(sketch.count(), 1000);
        assert!(sketch.error() <= 200, "{}", sketch.error());
        let hitters = sketch.hitters();
        assert!(hitters.len() <= 4);
        for (item, times) in [(Item::from(1), 300), (Item::from("two"), 250)] {
            let hitter = hitters.iter().find(|hitter| hitter.item == item).expect("a hitter");
            assert!((hitter.at_least..=hitter.at_most).contains(&times), "{hitter:?}");
        }
    }

    #[test]
    fn few_different_items_are_counted_exactly() {
        let (mut left, mut right) =
            (HeavyHitters::new(3).expect("k"), HeavyHitters::new(3).expect("k"));
        ["elm", "ash", "elm"].into_iter().for_each(|tree| left.add(tree));
        right.add_times("oak", 5);
        right.add_times("ash", 0);
        left.merge(&right).expect("the same k");
        let text = |hitter: &Hitter| format!("{} {}", hitter.item, hitter.at_most);
        let hitters: Vec<_> = left.hitters().iter().map(text).collect();
        assert_eq!((hitters.join(", "), left.error()), ("oak 5, elm 2, ash 1".into(), 0));
        assert!(left.merge(&HeavyHitters::new(4).expect("k")).is_err());
    }
}
