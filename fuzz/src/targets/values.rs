//! Any bytes as values under any format: refused, or every reader gets what the format says.
//!
//! An input is a count, as many codes, zeros up to a multiple of 8, and the body.

use sapwood_packet::{
    Directive, Element, ElementType, FormatRef, PacketError, Shape, Slab, Values, ValuesRef,
};

use crate::{Target, memory};

/// Values.
pub const TARGET: Target = Target { name: "values", run, repair: None };

fn run(input: &[u8]) {
    let Some((&count, rest)) = input.split_first() else { return };
    let Some(codes) = rest.get(..usize::from(count)) else { return };
    let Some(format) = FormatRef::from_codes(codes) else { return };
    let body = input.get((1 + codes.len()).next_multiple_of(8)..).unwrap_or_default();
    let body = Slab::copy_of(body);
    match memory::within(0, || ValuesRef::parse(format, body.as_bytes())) {
        Ok(values) => {
            for index in 0..values.len().min(TRIED_VALUES_MAX) {
                check_value(values, index);
            }
            check_rebuilt(values);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // A chunk's bytes were never checked against the format; reading them must not harm.
    read_everything(ValuesRef::new(format, body.as_bytes()));
}

/// How many values of a packet are read: the cost of one grows with its place.
const TRIED_VALUES_MAX: usize = 8;
/// Readers of another type are tried under formats up to this length: their error spells it.
const SPELLED_DIRECTIVES_MAX: usize = 3;

/// Calls every reader for the first values and for one too many.
pub(super) fn read_everything(values: ValuesRef<'_>) {
    for index in (0..values.len().min(TRIED_VALUES_MAX)).chain([values.len()]) {
        let _ = values.encoded(index);
        let _ = (values.string(index), values.string_bytes(index));
        if let Ok(strings) = values.strings(index) {
            // The count of bytes that were not checked may be anything.
            let _ = strings.take(1 << 12).map(<[u8]>::len).sum::<usize>();
        }
        read_as::<i8>(values, index);
        read_as::<u8>(values, index);
        read_as::<i16>(values, index);
        read_as::<u16>(values, index);
        read_as::<i32>(values, index);
        read_as::<u32>(values, index);
        read_as::<i64>(values, index);
        read_as::<u64>(values, index);
        read_as::<f32>(values, index);
        read_as::<f64>(values, index);
    }
}

fn read_as<T: Element>(values: ValuesRef<'_>, index: usize) {
    if values.len() > SPELLED_DIRECTIVES_MAX
        && values.format().directive(index).is_some_and(|own| own.element != T::TYPE)
    {
        return;
    }
    let _ = (values.scalar::<T>(index), values.array::<T>(index));
}

/// Exactly the readers of its own directive succeed, and they see the encoded bytes.
fn check_value(values: ValuesRef<'_>, index: usize) {
    let (directive, encoded) = values.encoded(index).expect("parsed values are there");
    assert!(encoded.len().is_multiple_of(8));
    if directive.element == ElementType::String {
        check_strings(values, index, directive, encoded);
    } else {
        assert!(values.string_bytes(index).is_err() && values.strings(index).is_err());
    }
    let readers = [
        check_as::<i8>,
        check_as::<u8>,
        check_as::<i16>,
        check_as::<u16>,
        check_as::<i32>,
        check_as::<u32>,
        check_as::<i64>,
        check_as::<u64>,
        check_as::<f32>,
        check_as::<f64>,
    ];
    for check in readers {
        check(values, index, directive, encoded);
    }
}

fn check_as<T: Element>(values: ValuesRef<'_>, index: usize, own: Directive, encoded: &[u8]) {
    if values.len() > SPELLED_DIRECTIVES_MAX && own.element != T::TYPE {
        return;
    }
    let scalar = own == Directive::new(T::TYPE, Shape::Scalar);
    assert_eq!(values.scalar::<T>(index).is_ok(), scalar);
    match values.array::<T>(index) {
        Ok(elements) => {
            assert!(own.element == T::TYPE && own.shape != Shape::Scalar);
            assert!(std::ptr::eq(elements.as_ptr().cast(), encoded[8..].as_ptr()), "read in place");
            assert_eq!((8 + size_of_val(elements)).next_multiple_of(8), encoded.len());
        }
        Err(error) => {
            assert!(own.element != T::TYPE || own.shape == Shape::Scalar);
            assert!(matches!(error, PacketError::Type { .. }));
        }
    }
}

fn check_strings(values: ValuesRef<'_>, index: usize, own: Directive, encoded: &[u8]) {
    if own.shape == Shape::Scalar {
        let bytes = values.string_bytes(index).expect("a string");
        assert_eq!((8 + bytes.len()).next_multiple_of(8), encoded.len());
        assert_eq!(values.string(index).is_ok(), std::str::from_utf8(bytes).is_ok());
        return;
    }
    let strings = values.strings(index).expect("an array of strings");
    let count = strings.len();
    let lengths: Vec<usize> = strings.map(<[u8]>::len).collect();
    assert_eq!(lengths.len(), count, "as many strings as were counted");
    let bytes: usize = lengths.iter().map(|length| (8 + length).next_multiple_of(8)).sum();
    assert_eq!(8 + bytes, encoded.len());
}

/// Values put together from their parts are the same.
fn check_rebuilt(values: ValuesRef<'_>) {
    let mut rebuilt = Values::new();
    for index in 0..values.len() {
        let (directive, encoded) = values.encoded(index).expect("parsed values are there");
        rebuilt.push_encoded(directive, encoded);
    }
    assert_eq!(rebuilt.as_ref(), values);
    assert_eq!(values.to_values().as_ref(), values);
}
