//! Which of three ways the packets of a wave take: folded, passed on, or given to a filter.

use sapwood_filter::{Chain, Filter};

/// How the packets of a wave become what goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// They are folded as they come.
    Fold,
    /// Each goes on as it is.
    Pass,
    /// A filter makes new ones of them.
    Transform,
}

impl Route {
    pub(crate) fn of(up: &Chain) -> Self {
        match (up.is_pass(), up.as_fold()) {
            (true, _) => Self::Pass,
            (false, Some(_)) if !up.is_offloaded() => Self::Fold,
            (false, _) => Self::Transform,
        }
    }
}
