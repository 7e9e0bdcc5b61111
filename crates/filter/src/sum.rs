//! `sum`: the sum of numbers, element by element.
//!
//! Integers wrap on overflow, as in C: send 64 bits where a sum may grow. Floating-point numbers
//! are added in the order of the children, so a wave gives the same bits each time, but another
//! tree may round differently. Whether a NaN keeps its payload is not defined.

use alloc::boxed::Box;

use sapwood_packet::{Numeric, ValuesRef};

use crate::fold::{FoldFilter, Operation};
use crate::{Filter, FilterError};

struct Sum;

impl Operation for Sum {
    const NAME: &'static str = "sum";

    #[inline]
    fn combine<T: Numeric>(mine: T, other: T) -> T {
        mine.plus(other)
    }
}

/// Makes the filter; it takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    FoldFilter::<Sum>::make(parameters)
}
