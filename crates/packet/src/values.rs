//! The values of a packet: built once, then read where they lie.
//!
//! Values follow one another; each starts at a multiple of 8 bytes and is padded with zeros to one.
//!
//! ```text
//! scalar        | value, 1 to 8 bytes          | 0 up to 8      |
//! array         | count u64 | elements, packed | 0 up to 8      |
//! string        | bytes u64 | bytes, no NUL    | 0 up to 8      |
//! string array  | count u64 | string | string | ...             |
//! ```

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::{
    Directive, Element, ElementType, Format, FormatRef, OutOfMemory, PacketError, Shape, Slab,
    padded,
};

/// Length of an array from which its place is not cleared first, in bytes.
const LARGE_ARRAY_BYTES: usize = 16 << 10;

/// Values being built, with the format that grows with them. Where the system has no memory for
/// one, it is left out, and [`Values::check_memory`] says so: nothing sends such values.
#[derive(Clone, Debug, Default)]
pub struct Values {
    format: Format,
    slab: Slab,
    /// What the system had no memory for: one value is missing then, and all behind it.
    lacking: Option<OutOfMemory>,
}

impl Values {
    /// No values yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// No values yet, to be built in memory that is there already.
    #[must_use]
    pub fn in_memory(mut slab: Slab) -> Self {
        slab.clear();
        Self { format: Format::empty(), slab, lacking: None }
    }

    /// Makes room for `bytes` bytes; returns whether they, and all before them, are there.
    #[inline]
    fn makes_room(&mut self, bytes: usize) -> bool {
        if self.lacking.is_none() {
            self.lacking = self.slab.try_reserve(bytes).err();
        }
        self.lacking.is_none()
    }

    /// That all values are there: the system had memory for each.
    ///
    /// # Errors
    /// [`OutOfMemory`] with the bytes that were asked for when it had none.
    #[inline]
    pub fn check_memory(&self) -> Result<(), OutOfMemory> {
        self.lacking.map_or(Ok(()), Err)
    }

    /// Adds a scalar.
    #[must_use]
    pub fn scalar<T: Element>(mut self, value: T) -> Self {
        self.format.push(Directive::new(T::TYPE, Shape::Scalar));
        if !self.makes_room(8) {
            return self;
        }
        self.slab.extend(bytemuck::bytes_of(&value));
        self.slab.pad();
        self
    }

    /// Adds an array with a 32-bit length (`%ad` and its like).
    #[must_use]
    pub fn array<T: Element>(self, elements: &[T]) -> Self {
        self.shaped(elements, Shape::Array)
    }

    /// Adds an array with a 64-bit length (`%Ad` and its like).
    #[must_use]
    pub fn large_array<T: Element>(self, elements: &[T]) -> Self {
        self.shaped(elements, Shape::LargeArray)
    }

    #[inline]
    fn shaped<T: Element>(mut self, elements: &[T], shape: Shape) -> Self {
        self.format.push(Directive::new(T::TYPE, shape));
        let bytes: &[u8] = bytemuck::cast_slice(elements);
        if !self.makes_room(8 + padded(bytes.len())) {
            return self;
        }
        if bytes.len() >= LARGE_ARRAY_BYTES {
            self.slab.extend_u64(elements.len() as u64);
            self.slab.extend(bytes);
            self.slab.pad();
            return self;
        }
        let room = self.slab.grow(8 + padded(bytes.len()));
        room[..8].copy_from_slice(&(elements.len() as u64).to_le_bytes());
        room[8..8 + bytes.len()].copy_from_slice(bytes);
        room[8 + bytes.len()..].fill(0);
        self
    }

    /// Adds a string, as bytes.
    #[must_use]
    pub fn string(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.format.push(Directive::new(ElementType::String, Shape::Scalar));
        self.push_string(bytes.as_ref());
        self
    }

    /// Adds an array of strings.
    #[must_use]
    pub fn strings<S: AsRef<[u8]>>(self, strings: &[S]) -> Self {
        self.shaped_strings(strings, Shape::Array)
    }

    /// Adds an array of strings with a 64-bit length.
    #[must_use]
    pub fn large_strings<S: AsRef<[u8]>>(self, strings: &[S]) -> Self {
        self.shaped_strings(strings, Shape::LargeArray)
    }

    fn shaped_strings<S: AsRef<[u8]>>(mut self, strings: &[S], shape: Shape) -> Self {
        self.format.push(Directive::new(ElementType::String, shape));
        if !self.makes_room(8) {
            return self;
        }
        self.slab.extend_u64(strings.len() as u64);
        for string in strings {
            self.push_string(string.as_ref());
        }
        self
    }

    fn push_string(&mut self, bytes: &[u8]) {
        if !self.makes_room(8 + padded(bytes.len())) {
            return;
        }
        self.slab.extend_u64(bytes.len() as u64);
        self.slab.extend(bytes);
        self.slab.pad();
    }

    /// Adds a value that lies encoded somewhere else; `bytes` must be one value of that directive.
    pub fn push_encoded(&mut self, directive: Directive, bytes: &[u8]) {
        self.format.push(directive);
        if self.makes_room(padded(bytes.len())) {
            self.slab.extend(bytes);
            self.slab.pad();
        }
    }

    /// Forgets all values, keeping the memory.
    pub fn clear(&mut self) {
        self.format.clear();
        self.slab.clear();
        self.lacking = None;
    }

    /// Lends the values built so far.
    #[must_use]
    pub fn as_ref(&self) -> ValuesRef<'_> {
        ValuesRef { format: self.format.as_ref(), body: self.slab.as_bytes() }
    }

    /// Takes the format and the encoded values apart.
    #[must_use]
    pub fn into_parts(self) -> (Format, Slab) {
        (self.format, self.slab)
    }
}

/// Values lent from a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValuesRef<'a> {
    format: FormatRef<'a>,
    body: &'a [u8],
}

impl<'a> ValuesRef<'a> {
    /// Puts a format beside bytes that are known to hold it.
    #[must_use]
    #[inline]
    pub fn new(format: FormatRef<'a>, body: &'a [u8]) -> Self {
        Self { format, body }
    }

    /// Checks bytes that came from outside against a format.
    ///
    /// # Errors
    /// [`PacketError::Truncated`] or [`PacketError::Excess`]: the bytes hold less or more than the
    /// format.
    #[inline]
    pub fn parse(format: FormatRef<'a>, body: &'a [u8]) -> Result<Self, PacketError> {
        let mut at = 0;
        for (index, directive) in format.directives().enumerate() {
            at = end_of(directive, body, at).ok_or(PacketError::Truncated { index })?;
        }
        match body.len() - at {
            0 => Ok(Self { format, body }),
            bytes => Err(PacketError::Excess { bytes }),
        }
    }

    /// What the values are.
    #[must_use]
    pub fn format(self) -> FormatRef<'a> {
        self.format
    }

    /// The encoded values.
    #[must_use]
    pub fn body(self) -> &'a [u8] {
        self.body
    }

    /// How many values there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.format.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.format.is_empty()
    }

    /// The encoded bytes of one value with its directive, padding included. O(index).
    ///
    /// # Errors
    /// [`PacketError::Index`] when there is no such value.
    pub fn encoded(self, index: usize) -> Result<(Directive, &'a [u8]), PacketError> {
        let mut at = 0;
        for before in 0..index.min(self.len()) {
            at += self.encoded_at(before, at)?.1.len();
        }
        self.encoded_at(index, at)
    }

    /// The same as [`ValuesRef::encoded`] of a value that is known to start at a place.
    pub(crate) fn encoded_at(
        self,
        index: usize,
        at: usize,
    ) -> Result<(Directive, &'a [u8]), PacketError> {
        let no_such = || PacketError::Index { index, count: self.format.len() };
        let directive = self.format.directive(index).ok_or_else(no_such)?;
        let end = end_of(directive, self.body, at).ok_or(PacketError::Truncated { index })?;
        Ok((directive, &self.body[at..end]))
    }

    fn mismatch(self, index: usize, wanted: &'static str) -> PacketError {
        PacketError::Type { index, wanted, format: self.format.to_string() }
    }

    /// Reads a scalar.
    ///
    /// # Errors
    /// [`PacketError::Type`] when the value is another thing, [`PacketError::Index`] when there is
    /// none.
    pub fn scalar<T: Element>(self, index: usize) -> Result<T, PacketError> {
        self.scalar_in(index, self.encoded(index)?)
    }

    #[inline]
    pub(crate) fn scalar_in<T: Element>(
        self,
        index: usize,
        (directive, bytes): (Directive, &'a [u8]),
    ) -> Result<T, PacketError> {
        if directive != Directive::new(T::TYPE, Shape::Scalar) {
            return Err(self.mismatch(index, T::DIRECTIVE));
        }
        Ok(bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()]))
    }

    /// Reads an array of either length, in place.
    ///
    /// # Errors
    /// As [`ValuesRef::scalar`].
    pub fn array<T: Element>(self, index: usize) -> Result<&'a [T], PacketError> {
        self.array_in(index, self.encoded(index)?)
    }

    #[inline]
    pub(crate) fn array_in<T: Element>(
        self,
        index: usize,
        (directive, bytes): (Directive, &'a [u8]),
    ) -> Result<&'a [T], PacketError> {
        if directive.element != T::TYPE || directive.shape == Shape::Scalar {
            return Err(self.mismatch(index, "an array of that type"));
        }
        let count = read_count(bytes, 0).ok_or(PacketError::Truncated { index })?;
        let elements = &bytes[8..8 + count * size_of::<T>()];
        bytemuck::try_cast_slice(elements).map_err(|_| PacketError::Truncated { index })
    }

    /// Reads a string as bytes.
    ///
    /// # Errors
    /// As [`ValuesRef::scalar`].
    pub fn string_bytes(self, index: usize) -> Result<&'a [u8], PacketError> {
        let (directive, bytes) = self.encoded(index)?;
        if directive != Directive::new(ElementType::String, Shape::Scalar) {
            return Err(self.mismatch(index, "%s"));
        }
        let length = read_count(bytes, 0).ok_or(PacketError::Truncated { index })?;
        Ok(&bytes[8..8 + length])
    }

    /// Reads a string as text.
    ///
    /// # Errors
    /// As [`ValuesRef::scalar`], and [`PacketError::NotUtf8`].
    pub fn string(self, index: usize) -> Result<&'a str, PacketError> {
        core::str::from_utf8(self.string_bytes(index)?).map_err(|_| PacketError::NotUtf8 { index })
    }

    /// Reads an array of strings.
    ///
    /// # Errors
    /// As [`ValuesRef::scalar`].
    pub fn strings(self, index: usize) -> Result<Strings<'a>, PacketError> {
        self.strings_in(index, self.encoded(index)?)
    }

    #[inline]
    pub(crate) fn strings_in(
        self,
        index: usize,
        (directive, bytes): (Directive, &'a [u8]),
    ) -> Result<Strings<'a>, PacketError> {
        if directive.element != ElementType::String || directive.shape == Shape::Scalar {
            return Err(self.mismatch(index, "%as"));
        }
        let left = read_count(bytes, 0).ok_or(PacketError::Truncated { index })?;
        Ok(Strings { bytes: &bytes[8..], left })
    }

    /// A copy that owns its bytes.
    #[must_use]
    pub fn to_values(self) -> Values {
        let mut values = Values { format: self.format.to_format(), ..Values::default() };
        if values.makes_room(self.body.len()) {
            values.slab.extend(self.body);
        }
        values
    }
}

/// The strings of an array, as bytes, one after another.
#[derive(Clone, Debug)]
pub struct Strings<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let length = read_count(self.bytes, 0)?;
        let string = self.bytes.get(8..8 + length)?;
        self.bytes = self.bytes.get(padded(8 + length)..)?;
        Some(string)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Strings<'_> {}

/// Reads a count that lies at a place, if it is there and a length of this machine.
fn read_count(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at.checked_add(8)?)?;
    usize::try_from(u64::from_le_bytes(word.try_into().ok()?)).ok()
}

/// Where the value that starts at `at` ends, padding included, if it lies inside the bytes.
#[inline]
fn end_of(directive: Directive, bytes: &[u8], at: usize) -> Option<usize> {
    let end = match (directive.shape, directive.element) {
        (Shape::Scalar, ElementType::String) => {
            at.checked_add(8)?.checked_add(read_count(bytes, at)?)?
        }
        (Shape::Scalar, _) => at + 8,
        (shape, ElementType::String) => return end_of_strings(shape, bytes, at),
        (shape, element) => {
            let count = read_count(bytes, at)?;
            if shape == Shape::Array && u32::try_from(count).is_err() {
                return None;
            }
            at.checked_add(8)?.checked_add(count.checked_mul(element.size())?)?
        }
    };
    let end = end.checked_next_multiple_of(8)?;
    (end <= bytes.len()).then_some(end)
}

fn end_of_strings(shape: Shape, bytes: &[u8], at: usize) -> Option<usize> {
    let count = read_count(bytes, at)?;
    // Every string takes at least 8 bytes, so a forged count ends here and not in a long loop.
    if count > bytes.len() / 8 || (shape == Shape::Array && u32::try_from(count).is_err()) {
        return None;
    }
    let string = Directive::new(ElementType::String, Shape::Scalar);
    let mut end = at + 8;
    for _ in 0..count {
        end = end_of(string, bytes, end)?;
    }
    Some(end)
}

/// What can be sent as the values of a packet.
pub trait IntoValues {
    /// Adds itself behind the values built so far.
    #[must_use]
    fn append_to(self, values: Values) -> Values;

    /// Alone, as a packet's values.
    #[must_use]
    fn into_values(self) -> Values
    where
        Self: Sized,
    {
        self.append_to(Values::new())
    }
}

impl IntoValues for Values {
    fn append_to(self, mut values: Values) -> Values {
        if values.format == Format::empty() {
            return self;
        }
        values.lacking = values.lacking.or(self.lacking);
        for (index, directive) in self.format.as_ref().directives().enumerate() {
            if let Ok((_, bytes)) = self.as_ref().encoded(index) {
                values.push_encoded(directive, bytes);
            }
        }
        values
    }
}

impl IntoValues for () {
    fn append_to(self, values: Values) -> Values {
        values
    }
}

impl IntoValues for &str {
    fn append_to(self, values: Values) -> Values {
        values.string(self)
    }
}

impl IntoValues for String {
    fn append_to(self, values: Values) -> Values {
        values.string(self)
    }
}

impl IntoValues for &[String] {
    fn append_to(self, values: Values) -> Values {
        values.strings(self)
    }
}

impl IntoValues for &[&str] {
    fn append_to(self, values: Values) -> Values {
        values.strings(self)
    }
}

macro_rules! numbers_into_values {
    ($($type:ty)*) => {$(
        impl IntoValues for $type {
            fn append_to(self, values: Values) -> Values {
                values.scalar(self)
            }
        }
        impl IntoValues for &[$type] {
            fn append_to(self, values: Values) -> Values {
                values.array(self)
            }
        }
        impl IntoValues for Vec<$type> {
            fn append_to(self, values: Values) -> Values {
                values.array(&self)
            }
        }
        impl<const N: usize> IntoValues for [$type; N] {
            fn append_to(self, values: Values) -> Values {
                values.array(&self)
            }
        }
    )*};
}

numbers_into_values! { i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 }

macro_rules! tuples_into_values {
    ($(($($name:ident $place:tt),+))*) => {$(
        impl<$($name: IntoValues),+> IntoValues for ($($name,)+) {
            fn append_to(self, values: Values) -> Values {
                $(let values = self.$place.append_to(values);)+
                values
            }
        }
    )*};
}

tuples_into_values! { (A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) }
