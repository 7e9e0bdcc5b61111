//! What of a stream runs in a job.

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// The upward filters.
    Up,
    /// The downward filters.
    Down,
    /// The synchronisation rule.
    Rule,
}
