//! How a rank of the tool ended, in a tree inside the job (`--in-world`).

use std::time::Duration;

use sapwood_launch::Signal;
use sapwood_profile::{Cause, ToolEnd};

use super::cause_text::cause_text;

/// The end of a rank that is the tool's and none of the program's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ToolDeath {
    /// Its number in the job, if that is known.
    rank: Option<u32>,
    pub(super) cause: Cause,
    /// From the start of the program.
    pub(super) elapsed: Duration,
}

impl ToolDeath {
    /// As it was reported in answer to a question of this time of the program.
    pub(super) fn of(end: ToolEnd, asked: Duration) -> Self {
        let elapsed = asked.saturating_sub(Duration::from_nanos(end.age_ns));
        Self { rank: end.rank, cause: end.cause, elapsed }
    }

    /// The one of two ranks that died first: leaves report them in any order, and again. Ends in
    /// order are no deaths.
    pub(super) fn or_first(self, other: Self) -> Self {
        match (self.is_in_order(), other.is_in_order()) {
            (true, false) => other,
            (false, true) => self,
            _ if other.rank != self.rank && other.elapsed < self.elapsed => other,
            _ => self,
        }
    }

    pub(super) fn is_in_order(self) -> bool {
        self.cause == Cause::Code(0)
    }

    /// Whether it died of itself, and not by a signal with which a launcher ends ranks.
    pub(super) fn is_by_itself(self) -> bool {
        match self.cause {
            Cause::Signal(number) => {
                ![Signal::KILL.as_raw(), Signal::TERM.as_raw()].contains(&number)
            }
            Cause::Code(code) => code != 0,
            Cause::Abort(_) => true,
            Cause::Unknown => false,
        }
    }

    /// What is said of it behind the ends that came of it.
    pub(super) fn text(self) -> String {
        let rank = match self.rank {
            Some(rank) => format!("rank {rank} of the job, which is the tool's (--in-world),"),
            None => "a rank of the tool (--in-world)".to_owned(),
        };
        format!("; {rank} had died before: {}", cause_text(self.cause))
    }
}
