//! Times for the table and the picture, in the form of all reports.

use sapwood_report::quantity;

/// A time in nanoseconds, as `1.50 ms`.
pub(crate) fn time(ns: u64) -> String {
    quantity::time(ns as f64)
}
