//! The search of a process for a new parent, while it has none.

use alloc::string::String;
use core::time::Duration;

use sapwood_packet::RankSet;

use crate::interface::{Instant, LinkId};

/// What an orphan is doing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Connecting to the ancestor at this position.
    Connecting { index: usize },
    /// Waiting for its answer.
    Asking { index: usize, link: LinkId },
    /// Waiting before it begins anew.
    Pausing,
}

/// The search for a new parent.
#[derive(Debug)]
pub(crate) struct Search {
    /// When it began, or came nearer to its end.
    pub(crate) since: Instant,
    pub(crate) step: Step,
    pub(crate) until: Instant,
    pub(crate) pause: Duration,
    pub(crate) reason: String,
    /// The processes between this one and the ancestor that was asked last.
    pub(crate) between: RankSet,
    /// Whether no process took connections where the front-end was.
    pub(crate) is_root_gone: bool,
    /// The position of the nearest ancestor that this process was referred to.
    pub(crate) nearest: Option<usize>,
}

impl Search {
    /// When something is to be done.
    pub(crate) fn deadline(&self) -> Instant {
        self.until
    }
}
