//! An integer or a string, as sets and heavy hitters hold them, and the three arrays that many of
//! them are encoded as.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sapwood_packet::{ElementType, Values, ValuesRef, padded};

use super::raw::{self, Datum};
use super::{array, forged};
use crate::FilterError;

/// An integer of 64 bits with or without sign, or a string.
///
/// Integers are equal when their values are, whatever type they were sent as. They are ordered by
/// value and come before all strings, which are ordered by their bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Item(Kind);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Negative(i64),
    Natural(u64),
    Text(Box<[u8]>),
}

impl Item {
    /// The integer, if it is one; always between `i64::MIN` and `u64::MAX`.
    #[must_use]
    pub fn integer(&self) -> Option<i128> {
        match self.0 {
            Kind::Negative(number) => Some(number.into()),
            Kind::Natural(number) => Some(number.into()),
            Kind::Text(_) => None,
        }
    }

    /// The bytes of the string, if it is one.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        if let Kind::Text(bytes) = &self.0 { Some(bytes) } else { None }
    }

    /// The string as text, if it is one and is UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        core::str::from_utf8(self.bytes()?).ok()
    }

    /// What it takes in a packet, in bytes.
    pub(super) fn encoded_bytes(&self) -> usize {
        self.bytes().map_or(8, |bytes| 8 + padded(bytes.len()))
    }

    /// The item that was sent, unless it is a double.
    #[inline]
    fn from_datum(datum: Datum<'_>) -> Option<Self> {
        match datum {
            Datum::Signed(number) => Some(number.into()),
            Datum::Unsigned(number) => Some(number.into()),
            Datum::Double(_) => None,
            Datum::Text(bytes) => Some(bytes.into()),
        }
    }
}

/// Hands out the integers and strings of one value, or of one array of them; doubles are none.
pub(super) fn each(values: ValuesRef<'_>, mut each: impl FnMut(Item)) -> Result<(), FilterError> {
    raw::each_datum(values, |datum| Item::from_datum(datum).into_iter().for_each(&mut each))
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Negative(number) => number.fmt(f),
            Kind::Natural(number) => number.fmt(f),
            Kind::Text(bytes) => f.pad(&String::from_utf8_lossy(bytes)),
        }
    }
}

macro_rules! integers_into_item {
    ($wide:ty: $($type:ty)*) => {$(
        impl From<$type> for Item {
            #[inline]
            fn from(number: $type) -> Self {
                let number = <$wide>::from(number);
                let negative = i64::try_from(number).ok().filter(|number| *number < 0);
                Self(negative.map_or(Kind::Natural(number as u64), Kind::Negative))
            }
        }
    )*};
}

integers_into_item! { i64: i8 i16 i32 i64 }
integers_into_item! { u64: u8 u16 u32 u64 }

impl From<&[u8]> for Item {
    fn from(bytes: &[u8]) -> Self {
        Self(Kind::Text(bytes.into()))
    }
}

impl From<&str> for Item {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl From<&String> for Item {
    fn from(text: &String) -> Self {
        text.as_bytes().into()
    }
}

impl From<String> for Item {
    fn from(text: String) -> Self {
        Self(Kind::Text(text.into_bytes().into()))
    }
}

/// How items are encoded: the negative integers, the other integers, the strings.
pub(super) const COLUMNS: [sapwood_packet::Directive; 3] =
    [array(ElementType::Int64), array(ElementType::Uint64), array(ElementType::String)];

/// Adds sorted items to values.
pub(super) fn append<'a>(values: Values, items: impl Iterator<Item = &'a Item>) -> Values {
    let (mut negatives, mut naturals, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        match &item.0 {
            Kind::Negative(number) => negatives.push(*number),
            Kind::Natural(number) => naturals.push(*number),
            Kind::Text(bytes) => texts.push(&bytes[..]),
        }
    }
    values.array(&negatives).array(&naturals).strings(&texts)
}

/// Reads the items whose columns begin at that value; they must be sorted and all different.
pub(super) fn decode(
    name: &str,
    values: ValuesRef<'_>,
    first: usize,
) -> Result<Vec<Item>, FilterError> {
    let negatives = values.array::<i64>(first)?;
    let naturals = values.array::<u64>(first + 1)?;
    let texts = values.strings(first + 2)?;
    if negatives.iter().any(|&number| number >= 0) {
        return Err(forged(name, "an integer in the wrong column"));
    }
    let mut items = Vec::with_capacity(negatives.len() + naturals.len() + texts.len());
    items.extend(negatives.iter().map(|&number| Item::from(number)));
    items.extend(naturals.iter().map(|&number| Item::from(number)));
    items.extend(texts.map(Item::from));
    if items.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(forged(name, "items that are not sorted"));
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::Item;

    #[test]
    fn an_integer_is_the_same_item_whatever_its_type() {
        assert_eq!(Item::from(7_i8), Item::from(7_u64));
        assert_eq!(Item::from(-7_i8), Item::from(-7_i64));
        assert_ne!(Item::from(-1_i64), Item::from(u64::MAX));
        assert_eq!(Item::from(u64::MAX).integer(), Some(u64::MAX.into()));
    }

    #[test]
    fn items_are_ordered_by_value_integers_first() {
        let mut items = [
            Item::from("bark"),
            Item::from(u64::MAX),
            Item::from(""),
            Item::from(i64::MIN),
            Item::from(0_u8),
            Item::from(-1_i32),
        ];
        items.sort();
        let text = items.map(|item| std::string::ToString::to_string(&item)).join(" ");
        assert_eq!(text, "-9223372036854775808 -1 0 18446744073709551615  bark");
    }
}
