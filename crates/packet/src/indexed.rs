//! Values that are read by index many times.
//!
//! Owns where each value starts. [`ValuesRef`] keeps nothing and finds a value by walking over
//! those before it, and over each string of an array of strings: cheap for a few values, and not
//! for a packet of fifty arrays.

use alloc::vec::Vec;

use crate::{Directive, Element, FormatRef, PacketError, Strings, ValuesRef};

/// Values with the place of each, so that one is read in constant time.
#[derive(Clone, Debug)]
pub struct IndexedValues<'a> {
    values: ValuesRef<'a>,
    starts: Vec<usize>,
}

impl<'a> IndexedValues<'a> {
    /// Walks over all values once.
    ///
    /// # Errors
    /// [`PacketError::Truncated`] where the bytes hold less than the format.
    pub fn new(values: ValuesRef<'a>) -> Result<Self, PacketError> {
        let mut starts = Vec::with_capacity(values.len());
        let mut at = 0;
        for index in 0..values.len() {
            starts.push(at);
            at += values.encoded_at(index, at)?.1.len();
        }
        Ok(Self { values, starts })
    }

    /// What the values are.
    #[must_use]
    pub fn format(&self) -> FormatRef<'a> {
        self.values.format()
    }

    fn encoded(&self, index: usize) -> Result<(Directive, &'a [u8]), PacketError> {
        let count = self.starts.len();
        let start = self.starts.get(index).ok_or(PacketError::Index { index, count })?;
        self.values.encoded_at(index, *start)
    }

    /// Reads a scalar.
    ///
    /// # Errors
    /// As [`ValuesRef::scalar`].
    pub fn scalar<T: Element>(&self, index: usize) -> Result<T, PacketError> {
        self.values.scalar_in(index, self.encoded(index)?)
    }

    /// Reads an array of either length, in place.
    ///
    /// # Errors
    /// As [`ValuesRef::array`].
    pub fn array<T: Element>(&self, index: usize) -> Result<&'a [T], PacketError> {
        self.values.array_in(index, self.encoded(index)?)
    }

    /// Reads an array of strings of either length.
    ///
    /// # Errors
    /// As [`ValuesRef::strings`].
    pub fn strings(&self, index: usize) -> Result<Strings<'a>, PacketError> {
        self.values.strings_in(index, self.encoded(index)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;

    #[test]
    fn a_value_by_its_place_is_the_value_by_its_index() {
        let values = Values::new().scalar(7_u32).strings(&["a", "longer"]).array(&[1_u64, 2]);
        let plain = values.as_ref();
        let indexed = IndexedValues::new(plain).unwrap();
        assert_eq!(indexed.scalar::<u32>(0), plain.scalar::<u32>(0));
        assert!(indexed.strings(1).unwrap().eq(plain.strings(1).unwrap()));
        assert_eq!(indexed.array::<u64>(2), plain.array::<u64>(2));
        for beyond in [3, 9] {
            let error = PacketError::Index { index: beyond, count: 3 };
            assert_eq!(indexed.array::<u64>(beyond), Err(error.clone()));
            assert_eq!(plain.array::<u64>(beyond), Err(error));
        }
        assert_eq!(indexed.array::<u32>(2), plain.array::<u32>(2), "another type");
    }

    #[test]
    fn values_that_are_cut_off_are_refused() {
        let values = Values::new().array(&[1_u64, 2]);
        let plain = values.as_ref();
        let cut = ValuesRef::new(plain.format(), &plain.body()[..16]);
        assert!(matches!(IndexedValues::new(cut), Err(PacketError::Truncated { index: 0 })));
    }
}
