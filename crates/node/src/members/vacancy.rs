//! The places of children that are gone, and the orphans that ask for them.

use alloc::vec::Vec;
use core::time::Duration;

use sapwood_packet::{Rank, RankSet, StreamId};

use crate::interface::{Instant, LinkId, Reason};
use crate::streams::stream::Stream;

/// The place of a process that is gone.
#[derive(Debug)]
pub(crate) struct Vacancy {
    /// The process that is gone.
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
    /// Whether it was silent before it had named the members below it: if no process comes in its
    /// place, it has not started.
    pub(crate) is_starting: bool,
    /// What was seen of its end.
    pub(crate) reason: Reason,
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
    pub(crate) is_responsive: bool,
}

/// The places that are held open, and the applicants for them.
#[derive(Debug, Default)]
pub(crate) struct Vacancies {
    pub(crate) open: Vec<Vacancy>,
    /// The number of the next.
    pub(crate) next: u64,
    /// Orphans whose hello waits.
    pub(crate) applicants: Vec<Applicant>,
}

impl Vacancies {
    /// No place is held open for these any more.
    pub(crate) fn await_no_longer(&mut self, back_ends: &RankSet) {
        for vacancy in &mut self.open {
            vacancy.awaited.subtract(back_ends.as_ref());
        }
    }

    /// The back-ends that are on their way to another parent. Back-ends of a vacancy that is still
    /// starting were never reported, so they are left out.
    pub(crate) fn awaited(&self) -> RankSet {
        let mut all = RankSet::new();
        for vacancy in self.open.iter().filter(|vacancy| !vacancy.is_starting) {
            all.union_with(vacancy.awaited.as_ref());
        }
        all
    }

    /// Whether the place of a back-end is held open.
    pub(crate) fn is_held(&self, rank: Rank) -> bool {
        self.open.iter().any(|vacancy| vacancy.awaited.contains(rank))
    }

    /// A stream that has just opened waits for members that are on their way to another parent.
    pub(crate) fn await_orphans(&mut self, stream: &mut Stream) {
        for vacancy in &mut self.open {
            if stream.await_members(&vacancy.awaited, vacancy.number) {
                vacancy.waves.push((stream.id, stream.request.first_wave));
            }
        }
    }

    /// When the next place is closed though it is not filled.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.open.iter().map(|vacancy| vacancy.until).min()
    }
}
