//! `bit-and`: the bits that all back-ends have set, integer by integer.

use alloc::boxed::Box;

use sapwood_packet::{ElementType, Numeric, ValuesRef};

use crate::fold::{FoldFilter, Operation};
use crate::{Filter, FilterError, bit_or};

struct BitAnd;

impl Operation for BitAnd {
    const NAME: &'static str = "bit-and";
    const TAKES: &'static str = bit_or::TAKES;

    fn is_defined_on(element: ElementType) -> bool {
        bit_or::is_integer(element)
    }

    #[inline]
    fn combine<T: Numeric>(mine: T, other: T) -> T {
        bit_or::by_bytes(mine, other, |mine, other| mine & other)
    }
}

/// Makes the filter; it takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    FoldFilter::<BitAnd>::make(parameters)
}
