//! The places of children that are gone, and the orphans that ask for them.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use sapwood_packet::{Rank, RankSet, StreamId};

use crate::interface::{Instant, LinkId};

/// The place of a process that is gone.
#[derive(Debug)]
pub(crate) struct Vacancy {
    /// Who is gone.
    pub(crate) rank: Rank,
    /// Its back-ends that have not come back.
    pub(crate) awaited: RankSet,
    /// Those that have.
    pub(crate) returned: RankSet,
    /// The children of its that have been taken in.
    pub(crate) orphans: Vec<Rank>,
    /// Back-ends that come after this are late.
    pub(crate) until: Instant,
    /// How long that is in all; zero when no process can come any more.
    pub(crate) grace: Duration,
    /// Whether it is a back-end itself, whose link has closed.
    pub(crate) is_back_end: bool,
    /// Whether it was silent before it had told who is below it: if no process comes in its place,
    /// it has not started.
    pub(crate) is_starting: bool,
    /// What was seen of its end.
    pub(crate) reason: String,
    /// Its number, by which streams know the slots that it had.
    pub(crate) number: u64,
    /// The first wave of each stream that it had not ended.
    pub(crate) waves: Vec<(StreamId, u64)>,
}

/// In which manner a child has gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) is_back_end: bool,
    /// Its link is open, or was.
    pub(crate) was_silent: bool,
    /// It was silent while it started others.
    pub(crate) is_starting: bool,
}

/// An orphan whose hello waits.
#[derive(Debug)]
pub(crate) struct Applicant {
    pub(crate) link: LinkId,
    pub(crate) rank: Rank,
    pub(crate) between: Vec<Rank>,
    pub(crate) pid: u32,
    pub(crate) keeps_time: bool,
}
