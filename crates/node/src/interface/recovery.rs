//! The terms on which a network deals with processes that are gone.

use core::time::Duration;

use sapwood_wire::RecoveryTerms;

use crate::interface::Role;

/// What happens when a process of the tree is gone. The front-end's terms are those of the whole
/// network: every process is told of them when it is welcomed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Whether processes whose parent is gone look for a new one. If not, they end.
    pub is_on: bool,
    /// How long a communication process looks for a new parent before it ends, and its own children
    /// look for one.
    pub orphan_limit: Duration,
    /// How long waves are held back for back-ends whose parent is gone. Those that have not come by
    /// then are named as missing; they may still come later.
    pub grace: Duration,
    /// After this much silence a communication process counts as gone, though its link is open;
    /// zero for never.
    pub silence: Duration,
    /// How long the tree waits for a front-end to come back; zero to end with it.
    pub front_end_wait: Duration,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            is_on: true,
            orphan_limit: Duration::from_secs(3),
            grace: Duration::from_secs(10),
            silence: Duration::from_secs(5),
            front_end_wait: Duration::ZERO,
        }
    }
}

impl Recovery {
    /// No recovery: what is below a process that is gone is gone, too.
    #[must_use]
    pub fn off() -> Self {
        Self { is_on: false, silence: Duration::ZERO, ..Self::default() }
    }

    /// How long a process looks for a new parent.
    pub(crate) fn search_limit(&self, role: Role) -> Duration {
        let limit = match role {
            // Whose application may have been busy for long.
            Role::BackEnd => self.orphan_limit + self.grace,
            _ => self.orphan_limit,
        };
        limit.max(self.front_end_wait)
    }

    pub(crate) fn to_terms(self) -> RecoveryTerms {
        let milliseconds = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        RecoveryTerms {
            is_on: self.is_on,
            orphan_limit: milliseconds(self.orphan_limit),
            grace: milliseconds(self.grace),
            silence: milliseconds(self.silence),
            front_end_wait: milliseconds(self.front_end_wait),
        }
    }

    pub(crate) fn from_terms(terms: RecoveryTerms) -> Self {
        let time = |milliseconds: u32| Duration::from_millis(milliseconds.into());
        Self {
            is_on: terms.is_on,
            orphan_limit: time(terms.orphan_limit),
            grace: time(terms.grace),
            silence: time(terms.silence),
            front_end_wait: time(terms.front_end_wait),
        }
    }
}
