//! Where in a packet's body each value lies, in one walk; and the body of values that lie somewhere
//! else.

use std::ops::Range;

use sapwood_filter::FilterError;
use sapwood_packet::{Directive, ElementType, FormatRef, PacketError, Shape, Slab, ValuesRef};

/// Where one value lies, without its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueSpan {
    pub(crate) directive: Directive,
    /// Elements; of a string its bytes.
    pub(crate) count: u64,
    /// Its elements in the body; of an array of strings all of them, with their lengths.
    pub(crate) bytes: Range<usize>,
}

/// The places of all values of a body.
#[derive(Clone, Debug)]
pub(crate) struct ValueSpans<'a> {
    format: FormatRef<'a>,
    body: &'a [u8],
    index: usize,
    at: usize,
}

impl<'a> ValueSpans<'a> {
    pub(crate) fn of(values: ValuesRef<'a>) -> Self {
        Self { format: values.format(), body: values.body(), index: 0, at: 0 }
    }

    #[inline]
    fn span(&mut self, directive: Directive) -> Option<ValueSpan> {
        let is_string = directive.element == ElementType::String;
        let (count, start, length) = match (directive.shape, is_string) {
            (Shape::Scalar, false) => (1, self.at, directive.element.size()),
            (Shape::Scalar, true) => {
                let bytes = read_count(self.body, self.at)?;
                (bytes as u64, self.at + 8, bytes)
            }
            (_, false) => {
                let count = read_count(self.body, self.at)?;
                (count as u64, self.at + 8, count.checked_mul(directive.element.size())?)
            }
            (_, true) => {
                let count = read_count(self.body, self.at)?;
                let strings = self.body.get(self.at + 8..)?;
                (count as u64, self.at + 8, strings_length(strings, count as u64)?)
            }
        };
        let end = start.checked_add(length)?;
        self.body.get(start..end)?;
        self.at = end.checked_next_multiple_of(8)?;
        Some(ValueSpan { directive, count, bytes: start..end })
    }
}

impl Iterator for ValueSpans<'_> {
    type Item = Result<ValueSpan, FilterError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let directive = self.format.directive(self.index)?;
        let index = self.index;
        self.index += 1;
        let place = self.span(directive);
        if place.is_none() {
            self.index = usize::MAX;
        }
        Some(place.ok_or(FilterError::Values(PacketError::Truncated { index })))
    }
}

#[inline]
fn read_count(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..)?.first_chunk()?;
    usize::try_from(u64::from_le_bytes(*word)).ok()
}

/// The length of the first `count` encoded strings in `bytes`.
fn strings_length(bytes: &[u8], count: u64) -> Option<usize> {
    let mut at = 0_usize;
    for _ in 0..count {
        let length = read_count(bytes, at)?;
        at = at.checked_add(8)?.checked_add(length)?.checked_next_multiple_of(8)?;
        if at > bytes.len() {
            return None;
        }
    }
    Some(at)
}

/// What a filter says of a value that it emits: `element`, `shape` and `count`. Gives its directive
/// and how many bytes lie at its place, if they follow from that; an array of strings says itself.
pub(crate) fn check_value(
    element: u32,
    shape: u32,
    count: u64,
    bytes: u64,
) -> Result<(Directive, usize), &'static str> {
    let code = (shape << 4) | element;
    let directive = match element {
        1..=11 if shape <= 2 => u8::try_from(code).ok().and_then(Directive::from_code),
        _ => None,
    };
    let directive = directive.ok_or("emitted a value whose element or shape is none")?;
    let length = match (directive.shape, directive.element) {
        (Shape::Scalar, ElementType::String) => Some(count),
        (Shape::Scalar, element) if count == 1 => Some(element.size() as u64),
        (Shape::Scalar, _) => None,
        (_, ElementType::String) => Some(bytes),
        (_, element) => count.checked_mul(element.size() as u64),
    };
    let is_short = directive.shape != Shape::Array || u32::try_from(count).is_ok();
    match length.and_then(|length| usize::try_from(length).ok()) {
        Some(length) if length as u64 <= BODY_BYTES_MAX && is_short => Ok((directive, length)),
        _ => Err("emitted a value with an impossible count"),
    }
}

/// Longest value that a filter may emit, in bytes: that of the longest packet.
const BODY_BYTES_MAX: u64 = 1 << 30;

/// Appends a value's count, where it has one, and its elements to a body.
#[inline]
pub(crate) fn push_value(
    body: &mut Slab,
    directive: Directive,
    count: u64,
    elements: &[u8],
) -> Result<(), &'static str> {
    let is_string = directive.element == ElementType::String;
    if directive.shape != Shape::Scalar || is_string {
        body.extend_u64(count);
    }
    if directive.shape != Shape::Scalar
        && is_string
        && strings_length(elements, count) != Some(elements.len())
    {
        return Err("emitted an array of strings that is none");
    }
    body.extend(elements);
    body.pad();
    Ok(())
}

#[cfg(test)]
mod tests {
    use sapwood_packet::Values;

    use super::*;

    #[test]
    fn every_shape_lies_where_the_packet_reads_it() {
        let values = Values::new()
            .scalar(7_i32)
            .string("seven")
            .array(&[1.5_f64, 2.5])
            .strings(&["a", "", "longer than eight"])
            .large_array(&[1_u8, 2, 3]);
        let spans: Vec<ValueSpan> =
            ValueSpans::of(values.as_ref()).collect::<Result<_, _>>().expect("a whole body");
        let counts: Vec<u64> = spans.iter().map(|place| place.count).collect();
        assert_eq!(counts, [1, 5, 2, 3, 3]);
        let body = values.as_ref().body();
        assert_eq!(&body[spans[1].bytes.clone()], b"seven");
        assert_eq!(&body[spans[4].bytes.clone()], [1, 2, 3]);

        let mut again = Slab::default();
        for place in &spans {
            let elements = &body[place.bytes.clone()];
            let (element, shape) = (place.directive.element as u32, place.directive.shape as u32);
            let checked = check_value(element, shape, place.count, elements.len() as u64);
            assert_eq!(checked, Ok((place.directive, elements.len())));
            push_value(&mut again, place.directive, place.count, elements).unwrap();
        }
        assert_eq!(again.as_bytes(), body);
    }

    #[test]
    fn a_cut_body_has_no_places_beyond_its_end() {
        let values = Values::new().array(&[1.0_f64, 2.0]).string("x");
        let (format, body) = (values.as_ref().format(), values.as_ref().body());
        for length in 0..body.len() {
            let cut = ValuesRef::new(format, &body[..length / 8 * 8]);
            assert!(ValueSpans::of(cut).any(|place| place.is_err()));
        }
    }

    #[test]
    fn a_value_that_is_none_is_refused() {
        for (element, shape, count) in
            [(0, 0, 1), (12, 1, 1), (5, 3, 1), (5, 0, 2), (5, 1, 1 << 40)]
        {
            assert!(check_value(element, shape, count, 8).is_err(), "{element} {shape} {count}");
        }
        let strings = Directive::new(ElementType::String, Shape::Array);
        assert!(push_value(&mut Slab::default(), strings, 3, &[0; 16]).is_err());
    }
}
