//! Where every rank stands, asked when ranks wait for long: which call it is in, and how many
//! collectives it has made on each of its communicators. What that says is `sapwood-trace`'s.

mod deadline;
mod inquiry;
mod leaf;
mod movers;
mod said_verdicts;
mod watch;

use sapwood::{FIRST_TAG, Tag};

pub(crate) use deadline::Deadline;
use inquiry::StandingInquiry;
pub(crate) use leaf::Stood;
pub(crate) use watch::{Held, STANDING_DEADLINE, StandingWatch, long_waits};

/// Asks where the ranks stand, by the values of [`question`](super::leaf::question). The answer is
/// a [`sapwood_trace::Standing`].
pub(crate) const STANDING: Tag = FIRST_TAG + 10;
