//! The rank of the tool that has started a leaf, in a tree inside the job (`bindings/mpi/world`).
//!
//! The leaf outlives it. When it dies, its launcher ends the program, so that without it the first
//! rank of the program that was ended would seem to have died first.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::parent_id;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sapwood_launch::has_ended;
use sapwood_profile::{Cause, ToolEnd};
use sapwood_report::nanoseconds;
use sapwood_transport::{Departing, Departure};

use super::host_time::now_ns;
use super::rank_control::SETTLING;
use super::started::RANK_VARIABLES;

/// The rank of the tool that has started this process.
#[derive(Debug)]
pub(crate) struct ToolRank {
    /// Its number in the job; none where its launcher does not say so.
    rank: Option<u32>,
    /// Readable when it has ended.
    pidfd: OwnedFd,
    departing: Departing,
    departure: Option<Departure>,
    /// When it was seen to have ended, by the monotonic clock.
    ended_ns: Option<u64>,
}

impl ToolRank {
    /// That of this process; none where it has ended already.
    pub(crate) fn own() -> Option<Self> {
        // The environment is that of the rank.
        let number = |name: &&str| std::env::var(name).ok()?.parse::<u32>().ok();
        let rank = RANK_VARIABLES.iter().find_map(number);
        let process = parent_id().cast_signed();
        let pidfd = pidfd_open(Pid::from_raw(process)?, PidfdFlags::empty()).ok()?;
        let departing = Departing::new(process);
        Some(Self { rank, pidfd, departing, departure: None, ended_ns: None })
    }

    /// Notes its end. Whether that is new: from then on its descriptor stays readable.
    pub(crate) fn look(&mut self) -> bool {
        let is_new = self.ended_ns.is_none() && has_ended(&self.pidfd);
        if is_new {
            self.ended_ns = Some(now_ns());
            self.departure = self.departing.look();
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

impl AsFd for ToolRank {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}
