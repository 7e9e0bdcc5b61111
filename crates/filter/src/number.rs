//! Where the numbers of a packet lie: from an element type to the Rust type, from a value to its
//! bytes.
//!
//! Bytes are read wherever they lie, aligned or not: on the machines at hand that costs nothing,
//! and the loops over them are vectorised all the same.

use core::ops::Range;

use sapwood_packet::{Directive, Element, PacketError, Shape, ValuesRef};

/// Runs `$work` with `$number` as the Rust type of a numeric element type, or `$otherwise` for
/// strings.
macro_rules! with_number {
    ($element:expr, $number:ident => $work:expr, $otherwise:expr) => {
        with_number!(@match $element, $number, $work, $otherwise,
            Int8 i8, Uint8 u8, Int16 i16, Uint16 u16, Int32 i32, Uint32 u32, Int64 i64,
            Uint64 u64, Float f32, Double f64)
    };
    (@match $element:expr, $number:ident, $work:expr, $otherwise:expr,
        $($variant:ident $type:ty),*) => {
        match $element {
            $(sapwood_packet::ElementType::$variant => {
                type $number = $type;
                $work
            })*
            sapwood_packet::ElementType::String => $otherwise,
        }
    };
}
pub(crate) use with_number;

/// Where a value of numbers lies in a body.
pub(crate) struct NumberSpan {
    /// Its elements, without count and padding.
    pub(crate) elements: Range<usize>,
    /// Where the next value begins.
    pub(crate) end: usize,
}

/// The place of the value of numbers that begins at `at`, if it lies inside the body.
#[inline]
pub(crate) fn span_of(directive: Directive, body: &[u8], at: usize) -> Option<NumberSpan> {
    let size = directive.element.size();
    let (start, length) = if directive.shape == Shape::Scalar {
        (at, size)
    } else {
        let count = u64::from_le_bytes(*body.get(at..)?.first_chunk()?);
        (at + 8, usize::try_from(count).ok()?.checked_mul(size)?)
    };
    let stop = start.checked_add(length)?;
    let end = stop.checked_next_multiple_of(8)?;
    (end <= body.len()).then_some(NumberSpan { elements: start..stop, end })
}

/// The values of a packet that holds only numbers, each with the bytes of its elements.
pub(crate) fn numbers<'a>(
    values: ValuesRef<'a>,
) -> impl Iterator<Item = Result<(Directive, &'a [u8]), PacketError>> {
    let body = values.body();
    let mut at = 0;
    values.format().directives().enumerate().map(move |(index, directive)| {
        let place = span_of(directive, body, at).ok_or(PacketError::Truncated { index })?;
        at = place.end;
        Ok((directive, &body[place.elements]))
    })
}

/// Reads packed elements one after another.
#[inline]
pub(crate) fn elements<T: Element>(bytes: &[u8]) -> impl Iterator<Item = T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned)
}
