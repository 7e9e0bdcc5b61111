//! Freezing a job: the raw events of its ranks' last seconds, on request or on a trigger.
//!
//! A freeze reads the rings from their oldest record on with cursors of its own, so that it takes
//! nothing from the stream of waits. Calls that have not returned come from the ranks' tables. What
//! is made of the answers is `sapwood-report`'s.

mod leaf;
mod question;
mod watch;

use sapwood::{FIRST_TAG, Tag};

pub(crate) use question::FreezeQuestion;
pub(crate) use watch::{Asked, FreezeWatch};

/// Asks for the events of the last seconds: a [`FreezeQuestion`]. The answer is a
/// [`sapwood_trace::Frozen`].
pub(crate) const FREEZE: Tag = FIRST_TAG + 11;
