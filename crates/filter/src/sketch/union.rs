//! `union`: the set of all integers and strings that were sent, sorted.
//!
//! The set is bounded, in items and in bytes: when there is more, the items that are first in order
//! are kept, and the set says that it is not complete. An item that is in the answer was sent, and
//! one that is not and stands before the last of them was not. Which items are kept depends on the
//! items alone: the set is the same in whatever order its parts were merged.
//!
//! Parameter: the most items, an integer from 1 to 2^24, default 65536. The items take at most 4
//! MiB ([`SET_BYTES_MAX`]). The encoded set, 40 bytes, 8 for each integer, and for each string 8
//! and its bytes:
//!
//! ```text
//! %ud    most items             %uc    1 if the set is complete, else 0
//! %ald   negative integers      %auld  other integers         %as    strings, each sorted
//! ```

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;

use sapwood_packet::{Directive, ElementType, FormatRef, IntoValues, PacketRef, Values, ValuesRef};

use super::item::{self, Item};
use super::{Sketch, forged, is_same, parameter, raw, scalar, unlike};
use crate::{Filter, FilterError, WaveRef};

const NAME: &str = "union";

const ITEMS: u32 = 65536;
const ITEMS_BOUNDS: [u32; 2] = [1, 1 << 24];
const TAKES_PARAMETERS: &str = "one integer, the most items, from 1 to 16777216";

/// Most bytes that the items of a set take in a packet: 8 for an integer, 8 and its bytes, padded
/// to 8, for a string.
pub const SET_BYTES_MAX: usize = 4 << 20;

const LAYOUT: [Directive; 5] = [
    scalar(ElementType::Uint32),
    scalar(ElementType::Uint8),
    item::COLUMNS[0],
    item::COLUMNS[1],
    item::COLUMNS[2],
];

/// A sorted, bounded set of integers and strings.
///
/// ```
/// use sapwood_filter::ItemSet;
///
/// let mut users = ItemSet::new(100)?;
/// ["root", "ada", "root"].into_iter().for_each(|user| users.add(user));
/// assert!(users.is_complete());
/// assert_eq!(users.iter().filter_map(|user| user.text()).collect::<Vec<_>>(), ["ada", "root"]);
/// # Ok::<(), sapwood_filter::FilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemSet {
    items_max: u32,
    is_complete: bool,
    bytes: usize,
    items: BTreeSet<Item>,
}

impl ItemSet {
    /// The empty set that holds at most this many items.
    ///
    /// # Errors
    /// [`FilterError::Parameters`] when the bound is not from 1 to 2^24.
    pub fn new(items_max: u32) -> Result<Self, FilterError> {
        if !(ITEMS_BOUNDS[0]..=ITEMS_BOUNDS[1]).contains(&items_max) {
            return Err(FilterError::Parameters { name: NAME, takes: TAKES_PARAMETERS });
        }
        Ok(Self { items_max, is_complete: true, bytes: 0, items: BTreeSet::new() })
    }

    /// Adds an item.
    pub fn add(&mut self, item: impl Into<Item>) {
        let item = item.into();
        let bytes = item.encoded_bytes();
        if self.items.insert(item) {
            self.bytes += bytes;
            self.cut();
        }
    }

    /// Adds all items of another set of the same bound.
    ///
    /// # Errors
    /// [`FilterError::Failed`] when the other's bound differs.
    pub fn merge(&mut self, other: &Self) -> Result<(), FilterError> {
        self.absorb(other.clone())
    }

    /// The items: integers by value, then strings by their bytes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Item> {
        self.items.iter()
    }

    /// Whether an item is in it.
    #[must_use]
    pub fn contains(&self, item: impl Into<Item>) -> bool {
        self.items.contains(&item.into())
    }

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether nothing was cut off at the end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Reads an encoded set, of the filter or of [`IntoValues::into_values`].
    ///
    /// # Errors
    /// [`FilterError::Format`] when the format is another, [`FilterError::Values`] or
    /// [`FilterError::Failed`] when the values do not fit together.
    pub fn from_values(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        Self::read(values)
    }

    /// Keeps the longest run of first items that is within the bounds.
    fn cut(&mut self) {
        while self.items.len() > self.items_max as usize || self.bytes > SET_BYTES_MAX {
            let Some(last) = self.items.pop_last() else { return };
            self.bytes -= last.encoded_bytes();
            self.is_complete = false;
        }
    }
}

impl IntoValues for ItemSet {
    fn append_to(self, values: Values) -> Values {
        let values = values.scalar(self.items_max).scalar(u8::from(self.is_complete));
        item::append(values, self.items.iter())
    }
}

impl Sketch for ItemSet {
    const NAME: &'static str = NAME;
    const TAKES: &'static str = "one integer or string, one array of them, or its own sets";
    type Parameters = Self;

    fn parameters(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        Self::new(parameter::only_integer(values, ITEMS, ITEMS_BOUNDS).unwrap_or(0))
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
        let mut set = Self::new(values.scalar(0)?)
            .map_err(|_| forged(NAME, "a bound that is out of range"))?;
        set.is_complete = match values.scalar::<u8>(1)? {
            0 => false,
            1 => true,
            _ => return Err(forged(NAME, "a mark that is neither 0 nor 1")),
        };
        let items = item::decode(NAME, values, 2)?;
        set.bytes = items.iter().map(Item::encoded_bytes).sum();
        if items.len() > set.items_max as usize || set.bytes > SET_BYTES_MAX {
            return Err(forged(NAME, "more than its bound"));
        }
        set.items = items.into_iter().collect();
        Ok(set)
    }

    fn absorb(&mut self, mut other: Self) -> Result<(), FilterError> {
        if self.items_max != other.items_max {
            let what = format!("at most {} items for {}", other.items_max, self.items_max);
            return Err(unlike(NAME, &what));
        }
        self.is_complete &= other.is_complete;
        // Two sorted sets, which are built anew in one pass.
        self.items.append(&mut other.items);
        self.bytes = self.items.iter().map(Item::encoded_bytes).sum();
        self.cut();
        Ok(())
    }
}

/// Makes the filter; its parameter is the most items.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    super::make::<ItemSet>(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_is_full_keeps_the_first_items_whatever_comes_first() {
        let set = |numbers: &[i32]| {
            let mut set = ItemSet::new(3).expect("a bound");
            numbers.iter().for_each(|&number| set.add(number));
            set
        };
        assert!(set(&[9, 9, -4, 2]).is_complete());
        let full = set(&[9, -4, 7, 2, 8]);
        assert_eq!(full, set(&[2, 7, 8, 9, -4]));
        let text: alloc::vec::Vec<_> = full.iter().filter_map(Item::integer).collect();
        assert_eq!((text, full.is_complete()), (alloc::vec![-4, 2, 7], false));
        let mut merged = set(&[9, 7]);
        merged.merge(&set(&[-4, 8, 2])).expect("the same bound");
        assert_eq!(merged, full);
    }

    #[test]
    fn a_set_is_bounded_in_bytes_too() {
        let mut set = ItemSet::new(100).expect("a bound");
        let long = |letter: &str| letter.repeat(SET_BYTES_MAX / 2 - 100);
        ["c", "a", "b"].into_iter().for_each(|letter| set.add(long(letter)));
        assert_eq!((set.len(), set.is_complete()), (2, false));
        assert!(set.contains(long("b")) && !set.contains(long("c")));
        set.add("z".repeat(SET_BYTES_MAX));
        assert_eq!(set.len(), 2);
    }
}
