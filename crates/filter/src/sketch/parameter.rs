//! The parameters of a sketch's filter: one number each, of any type that holds it.

use sapwood_packet::{ElementType, Numeric, Shape, ValuesRef};

use crate::number::{elements, with_number};

/// The parameters, if they are single numbers and at most `most`.
pub(super) fn are_numbers(parameters: ValuesRef<'_>, most: usize) -> bool {
    let is_number = |directive: sapwood_packet::Directive| {
        directive.shape == Shape::Scalar && directive.element.is_numeric()
    };
    parameters.len() <= most && parameters.format().directives().all(is_number)
}

/// The parameter of that place as a double.
pub(super) fn double(parameters: ValuesRef<'_>, index: usize) -> Option<f64> {
    let (directive, bytes) = parameters.encoded(index).ok()?;
    let bytes = bytes.get(..directive.element.size())?;
    with_number!(directive.element, Number => {
        elements::<Number>(bytes).next().map(|number: Number| number.to_f64())
    }, None)
}

/// The parameter of that place, if it is an integer between `least` and `most`.
pub(super) fn integer(
    parameters: ValuesRef<'_>,
    index: usize,
    [least, most]: [u32; 2],
) -> Option<u32> {
    let (directive, _) = parameters.encoded(index).ok()?;
    if matches!(directive.element, ElementType::Float | ElementType::Double) {
        return None;
    }
    // Every integer between the two is a double, and no other integer is taken for one of them.
    let number = double(parameters, index)?;
    (f64::from(least) <= number && number <= f64::from(most)).then_some(number as u32)
}

/// The only parameter of a filter: an integer between two, or nothing for the default.
pub(super) fn only_integer(
    parameters: ValuesRef<'_>,
    default: u32,
    bounds: [u32; 2],
) -> Option<u32> {
    if parameters.is_empty() {
        return Some(default);
    }
    if are_numbers(parameters, 1) { integer(parameters, 0, bounds) } else { None }
}
