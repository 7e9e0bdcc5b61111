//! What the threads of MPI ranks do at one moment: calls that have not returned, and the same over
//! many ranks.
//!
//! A rank tells in its table which call each of its threads is inside, since when, with which rank,
//! and in which region. Folded over ranks, activities of one kind are one entry with the set of
//! ranks: a hang of a thousand ranks is two lines, those that wait and those that do not come.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sapwood_packet::{Rank, RankSet};

use crate::{Function, FunctionId};

/// The most kinds of activities that a round holds: those that sort first.
pub const ACTIVITY_KINDS_MAX: usize = 1024;

/// The system's view of a rank's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Condition {
    /// Inside of MPI, where it waits or works, or not known.
    #[default]
    Unknown = 0,
    /// Outside of MPI, on a processor or ready for one.
    Computing = 1,
    /// Outside of MPI, and waiting for the system: input, output, a lock, a timer.
    Sleeping = 2,
    /// Stopped by a signal or a debugger.
    Stopped = 3,
    /// Its process has ended without notice; the activity is its last one.
    Lost = 4,
}

impl Condition {
    /// The condition that a number stands for.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Unknown,
            1 => Self::Computing,
            2 => Self::Sleeping,
            3 => Self::Stopped,
            4 => Self::Lost,
            _ => return None,
        })
    }

    /// Its name; nothing for [`Condition::Unknown`].
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Computing => "computing",
            Self::Sleeping => "sleeping",
            Self::Stopped => "stopped",
            Self::Lost => "lost",
        }
    }
}

/// The other side of a call, in the numbering of its communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Peer {
    /// The call has none, or `MPI_PROC_NULL`, or this side is `MPI_ROOT`.
    #[default]
    None,
    /// `MPI_ANY_SOURCE`.
    Any,
    /// Source, root, destination or target.
    Rank(Rank),
}

/// A kind of activity, by which ranks are folded together.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActivityKind {
    /// The function that has not returned; none outside of MPI.
    pub function: Option<FunctionId>,
    /// Whether it has lasted longer than the front-end has asked about.
    pub is_long: bool,
    /// The state of the process.
    pub condition: Condition,
    /// The communicator: `MPI_COMM_WORLD`, the name that the program gave it, or its size; empty
    /// for functions without one.
    pub communicator: String,
    /// The innermost open region; empty for none.
    pub region: String,
}

impl ActivityKind {
    /// The function's name; nothing outside of MPI.
    #[must_use]
    pub fn function_name(&self) -> Option<String> {
        let id = self.function?;
        Some(Function::of(id).map_or_else(|| format!("MPI function {id}"), |f| f.name.to_owned()))
    }
}

impl fmt::Display for ActivityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.function_name() {
            Some(name) => f.write_str(&name)?,
            None => f.write_str("outside MPI")?,
        }
        if !self.communicator.is_empty() {
            write!(f, " on {}", self.communicator)?;
        }
        if !self.region.is_empty() {
            write!(f, " in region {}", self.region)?;
        }
        Ok(())
    }
}

/// What one thread of a rank does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Its kind.
    pub kind: ActivityKind,
    /// The rank at the other end.
    pub peer: Peer,
    /// For how long, in nanoseconds.
    pub for_ns: u64,
}

/// A call of one thread that has not returned, as its process knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallInProgress {
    /// The function.
    pub function: FunctionId,
    /// The handle of its communicator; 0 for none.
    pub handle: u64,
    /// The rank at the other end.
    pub peer: Peer,
    /// The rank to which it sends, if it is a call that sends one message and receives another:
    /// then `peer` is the source. Of other calls it says nothing.
    pub destination: Peer,
    /// The tag of its message.
    pub tag: Option<i32>,
    /// For how long, in nanoseconds.
    pub for_ns: u64,
    /// Where it waits for one request: the number of the collective that this is on the
    /// communicator, 0 for another one. Communicator, peer and tag are those of the request.
    pub request: Option<u32>,
    /// Where it waits for several: the receives that were open when it began.
    pub open: Vec<OpenReceiveCall>,
    /// Requests for which it waits beside these.
    pub others: u32,
}

/// A receive that had not completed when its thread entered the call that completes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenReceiveCall {
    /// The handle of its communicator.
    pub handle: u64,
    /// The source.
    pub peer: Peer,
    /// Its tag, as the program gave it.
    pub tag: i32,
}

/// The ranks of one kind of activity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivityStatistics {
    /// These ranks.
    pub ranks: RankSet,
    /// Their peers, in the communicator's numbering.
    pub peers: RankSet,
    /// Whether a rank takes a message from any source.
    pub any_peer: bool,
    /// How long the one lasts that began first, in nanoseconds.
    pub longest_ns: u64,
    /// The rank of that one; the lowest of several.
    pub longest_rank: Rank,
    /// How long the one lasts that began last, in nanoseconds.
    pub shortest_ns: u64,
}

impl ActivityStatistics {
    fn of(rank: Rank, activity: &Activity) -> Self {
        let peers = match activity.peer {
            Peer::Rank(peer) => RankSet::range(peer, peer),
            Peer::None | Peer::Any => RankSet::new(),
        };
        Self {
            ranks: RankSet::range(rank, rank),
            peers,
            any_peer: activity.peer == Peer::Any,
            longest_ns: activity.for_ns,
            longest_rank: rank,
            shortest_ns: activity.for_ns,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.ranks.union_with(other.ranks.as_ref());
        self.peers.union_with(other.peers.as_ref());
        self.any_peer |= other.any_peer;
        // The longest, and of equal ones the lowest rank: the order of merging does not matter.
        let is_longer = other.longest_ns > self.longest_ns
            || (other.longest_ns == self.longest_ns && other.longest_rank < self.longest_rank);
        if is_longer {
            (self.longest_ns, self.longest_rank) = (other.longest_ns, other.longest_rank);
        }
        self.shortest_ns = self.shortest_ns.min(other.shortest_ns);
    }
}

/// The activities of some ranks, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activities {
    pub(crate) kinds: BTreeMap<ActivityKind, ActivityStatistics>,
    pub(crate) is_cut: bool,
}

impl Activities {
    /// All kinds with their ranks, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&ActivityKind, &ActivityStatistics)> {
        self.kinds.iter()
    }

    /// Whether there are more kinds than [`ACTIVITY_KINDS_MAX`].
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The ranks of all kinds for which this is true.
    pub fn ranks(&self, is_wanted: impl Fn(&ActivityKind) -> bool) -> RankSet {
        let mut ranks = RankSet::new();
        for (_, statistics) in self.kinds.iter().filter(|(kind, _)| is_wanted(kind)) {
            ranks.union_with(statistics.ranks.as_ref());
        }
        ranks
    }

    pub(crate) fn add(&mut self, rank: Rank, activity: &Activity) {
        let one = ActivityStatistics::of(rank, activity);
        self.merge_kind(activity.kind.clone(), one);
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.is_cut |= other.is_cut;
        for (kind, statistics) in other.kinds {
            self.merge_kind(kind, statistics);
        }
    }

    fn merge_kind(&mut self, kind: ActivityKind, statistics: ActivityStatistics) {
        match self.kinds.get_mut(&kind) {
            Some(mine) => mine.merge(&statistics),
            None => drop(self.kinds.insert(kind, statistics)),
        }
        // Those that sort first are kept everywhere, so that none of them is kept in part.
        while self.kinds.len() > ACTIVITY_KINDS_MAX {
            self.kinds.pop_last();
            self.is_cut = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn activity(function: Option<&str>, peer: Peer, for_ns: u64) -> Activity {
        let function = function.map(|name| Function::named(name).expect("every MPI has it").id);
        let kind = ActivityKind { function, ..ActivityKind::default() };
        Activity { kind, peer, for_ns }
    }

    fn fold(order: &[Rank], activities: &[Activity]) -> Activities {
        let mut all = Activities::default();
        for &rank in order {
            let mut one = Activities::default();
            one.add(rank, &activities[rank as usize]);
            all.merge(one);
        }
        all
    }

    #[test]
    fn ranks_inside_one_call_are_one_entry_whatever_the_order() {
        let activities = [
            activity(Some("MPI_Recv"), Peer::Rank(1), 700),
            activity(Some("MPI_Recv"), Peer::Rank(2), 700),
            activity(None, Peer::None, 650),
            activity(Some("MPI_Recv"), Peer::Any, 300),
        ];
        let all = fold(&[0, 1, 2, 3], &activities);
        assert_eq!(all, fold(&[3, 1, 0, 2], &activities));
        let entries: Vec<_> = all.iter().collect();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].0.to_string(), "outside MPI");
        let (kind, receiving) = entries[1];
        assert_eq!(kind.to_string(), "MPI_Recv");
        assert_eq!(receiving.ranks.to_string(), "0-1,3");
        assert_eq!(receiving.peers.to_string(), "1-2");
        assert!(receiving.any_peer);
        assert_eq!((receiving.longest_ns, receiving.longest_rank), (700, 0));
        assert_eq!(receiving.shortest_ns, 300);
        assert_eq!(all.ranks(|kind| kind.function.is_none()).to_string(), "2");
    }

    #[test]
    fn of_too_many_kinds_those_that_sort_first_are_whole() {
        let named = |rank: Rank| {
            let region = format!("region {:05}", rank / 2);
            let kind = ActivityKind { region, ..ActivityKind::default() };
            Activity { kind, peer: Peer::None, for_ns: 1 }
        };
        let ranks = 2 * ACTIVITY_KINDS_MAX as u32 + 10;
        let activities: Vec<_> = (0..ranks).map(named).collect();
        let forward: Vec<_> = (0..ranks).collect();
        let backward: Vec<_> = (0..ranks).rev().collect();
        let all = fold(&forward, &activities);
        assert!(all.is_cut() && all.iter().count() == ACTIVITY_KINDS_MAX);
        assert_eq!(all, fold(&backward, &activities));
        assert!(all.iter().all(|(_, statistics)| statistics.ranks.len() == 2));
    }
}
