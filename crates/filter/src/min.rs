//! `min`: the smallest of numbers, element by element.
//!
//! A NaN is no answer to "which is the smallest?": it is ignored unless all children sent one. Of
//! numbers that compare equal (0.0 and -0.0) the one of the first child is kept.

use alloc::boxed::Box;

use sapwood_packet::{Numeric, ValuesRef};

use crate::fold::{FoldFilter, Operation};
use crate::{Filter, FilterError};

struct Min;

impl Operation for Min {
    const NAME: &'static str = "min";

    #[inline]
    #[allow(clippy::eq_op)]
    fn combine<T: Numeric>(mine: T, other: T) -> T {
        // Only a NaN differs from itself.
        if other < mine || mine != mine { other } else { mine }
    }
}

/// Makes the filter; it takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    FoldFilter::<Min>::make(parameters)
}
