//! The rank of the tool that has started a leaf, in a tree inside the job (`bindings/mpi/world`).
//!
//! The leaf outlives it. When it dies, its launcher ends the program, so that without it the first
//! rank of the program that was ended would seem to have died first. One that has died before its
//! leaf could look at it is known by its process, which is the leaf's parent no more.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::parent_id;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sapwood_launch::has_ended;
use sapwood_profile::{Cause, ToolEnd};
use sapwood_report::nanoseconds;
use sapwood_transport::{Departing, Departure};

use super::host_time::now_ns;
use super::rank_control::SETTLING;
use super::started::RANK_VARIABLES;

/// The process of the rank that has started a leaf, as `bindings/mpi/world` sets it.
const PROCESS_VARIABLE: &str = "SAPWOOD_MPI_WORLD_PROCESS";

/// The rank of the tool that has started this process.
#[derive(Debug)]
pub(crate) struct ToolRank {
    /// Its number in the job; none where its launcher does not say so.
    rank: Option<u32>,
    /// Readable when it has ended; none if it had ended before it could be looked at.
    pidfd: Option<OwnedFd>,
    departing: Departing,
    departure: Option<Departure>,
    /// When it was seen to have ended, by the monotonic clock.
    ended_ns: Option<u64>,
}

impl ToolRank {
    /// That of this process; none where the system does not let it be watched.
    pub(crate) fn own() -> Option<Self> {
        // The environment is that of the rank.
        let number = |name: &&str| std::env::var(name).ok()?.parse::<u32>().ok();
        let rank = RANK_VARIABLES.iter().find_map(number);
        let process = std::env::var(PROCESS_VARIABLE).ok().and_then(|text| text.parse().ok());
        Self::of(rank, process.unwrap_or_else(|| parent_id().cast_signed()))
    }

    /// That of this rank and process.
    fn of(rank: Option<u32>, process: i32) -> Option<Self> {
        let departing = Departing::new(process);
        let opened = pidfd_open(Pid::from_raw(process)?, PidfdFlags::empty());
        // Children of a process that has ended have another parent, and its number may be given
        // to another process.
        let is_over = parent_id().cast_signed() != process;
        let pidfd = if is_over { None } else { Some(opened.ok()?) };
        let mut tool = Self { rank, pidfd, departing, departure: None, ended_ns: None };
        if is_over {
            tool.note_end();
        }
        Some(tool)
    }

    /// What becomes readable at its end; none if that is known already.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(OwnedFd::as_fd)
    }

    fn note_end(&mut self) {
        self.ended_ns = Some(now_ns());
        self.departure = self.departing.look();
    }

    /// Notes its end. Whether that is new: from then on its descriptor stays readable.
    pub(crate) fn look(&mut self) -> bool {
        let is_new = self.ended_ns.is_none() && self.pidfd.as_ref().is_some_and(has_ended);
        if is_new {
            self.note_end();
        }
        is_new
    }

    /// How it ended; none if it has not, or the system may say it still.
    pub(crate) fn end(&mut self, is_last: bool) -> Option<ToolEnd> {
        let age_ns = now_ns().saturating_sub(self.ended_ns?);
        self.departure = self.departure.or_else(|| self.departing.look());
        let cause = match self.departure {
            Some(Departure::Code(code)) => Cause::Code(code),
            Some(Departure::Signal(number)) => Cause::Signal(number),
            None if is_last || age_ns >= nanoseconds(SETTLING) => Cause::Unknown,
            None => return None,
        };
        Some(ToolEnd { rank: self.rank, cause, age_ns })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_rank_that_has_ended_before_its_leaf_looks_is_reported_as_ended() {
        let mut child = Command::new("true").spawn().expect("a process");
        let process = child.id().cast_signed();
        child.wait().expect("its end");
        let mut tool = ToolRank::of(Some(2), process).expect("a number of a process");
        assert!(tool.descriptor().is_none() && !tool.look(), "its end is known");
        let end = tool.end(true).expect("it has ended");
        assert_eq!((end.rank, end.cause), (Some(2), Cause::Unknown));
    }

    #[test]
    fn a_rank_that_lives_is_watched() {
        let mut tool = ToolRank::of(None, parent_id().cast_signed()).expect("it lives");
        assert!(tool.descriptor().is_some() && !tool.look());
        assert_eq!(tool.end(true), None);
    }
}
