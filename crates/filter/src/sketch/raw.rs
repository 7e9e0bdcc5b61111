//! What a back-end sends that has made no sketch: one number or string, or one array of them.

use sapwood_packet::{ElementType, FormatRef, Numeric, Shape, ValuesRef};

use crate::FilterError;
use crate::number::{elements, numbers, with_number};

/// One number or string of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Datum<'a> {
    Signed(i64),
    Unsigned(u64),
    Double(f64),
    Text(&'a [u8]),
}

macro_rules! numbers_into_datum {
    ($variant:ident $wide:ty: $($type:ty)*) => {$(
        impl From<$type> for Datum<'_> {
            #[inline]
            fn from(number: $type) -> Self {
                Self::$variant(<$wide>::from(number))
            }
        }
    )*};
}

numbers_into_datum! { Signed i64: i8 i16 i32 i64 }
numbers_into_datum! { Unsigned u64: u8 u16 u32 u64 }
numbers_into_datum! { Double f64: f32 f64 }

/// Whether a format is one number or array of numbers.
pub(super) fn is_numbers(format: FormatRef<'_>) -> bool {
    matches!(format.directive(0), Some(only) if format.len() == 1 && only.element.is_numeric())
}

/// Whether a format is one integer or string, or an array of them.
pub(super) fn is_items(format: FormatRef<'_>) -> bool {
    let is_fraction = |element| matches!(element, ElementType::Float | ElementType::Double);
    matches!(format.directive(0), Some(only) if format.len() == 1 && !is_fraction(only.element))
}

/// Hands out the numbers of values that are all numbers, as doubles.
pub(super) fn each_double(
    values: ValuesRef<'_>,
    mut each: impl FnMut(f64),
) -> Result<(), FilterError> {
    for value in numbers(values) {
        let (directive, bytes) = value?;
        with_number!(directive.element, Number => {
            elements::<Number>(bytes).for_each(|number: Number| each(number.to_f64()));
        }, ());
    }
    Ok(())
}

/// Hands out the numbers or strings of one value.
pub(super) fn each_datum<'a>(
    values: ValuesRef<'a>,
    mut each: impl FnMut(Datum<'a>),
) -> Result<(), FilterError> {
    match values.format().directive(0) {
        Some(only) if !only.element.is_numeric() && only.shape == Shape::Scalar => {
            each(Datum::Text(values.string_bytes(0)?));
        }
        Some(only) if !only.element.is_numeric() => {
            values.strings(0)?.for_each(|text| each(Datum::Text(text)));
        }
        _ => {
            for value in numbers(values) {
                let (directive, bytes) = value?;
                with_number!(directive.element, Number => {
                    elements::<Number>(bytes).for_each(|number: Number| each(number.into()));
                }, ());
            }
        }
    }
    Ok(())
}
