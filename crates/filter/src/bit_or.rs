//! `bit-or`: the bits that any back-end has set, integer by integer. What it has in common with
//! `bit-and` is here too.

use alloc::boxed::Box;

use sapwood_packet::{ElementType, Numeric, ValuesRef};

use crate::fold::{FoldFilter, Operation};
use crate::{Filter, FilterError};

/// What filters of bits work on.
pub(crate) const TAKES: &str = "integers and arrays of integers";

struct BitOr;

impl Operation for BitOr {
    const NAME: &'static str = "bit-or";
    const TAKES: &'static str = TAKES;

    fn is_defined_on(element: ElementType) -> bool {
        is_integer(element)
    }

    #[inline]
    fn combine<T: Numeric>(mine: T, other: T) -> T {
        by_bytes(mine, other, |mine, other| mine | other)
    }
}

/// Whether numbers of a type are made of bits.
pub(crate) fn is_integer(element: ElementType) -> bool {
    element.is_numeric() && !matches!(element, ElementType::Float | ElementType::Double)
}

/// Combines two numbers byte by byte; the compiler makes whole words of it.
#[inline]
pub(crate) fn by_bytes<T: Numeric>(mut mine: T, other: T, combine: fn(u8, u8) -> u8) -> T {
    let bytes = bytemuck::bytes_of_mut(&mut mine).iter_mut();
    bytes.zip(bytemuck::bytes_of(&other)).for_each(|(mine, other)| *mine = combine(*mine, *other));
    mine
}

/// Makes the filter; it takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    FoldFilter::<BitOr>::make(parameters)
}
