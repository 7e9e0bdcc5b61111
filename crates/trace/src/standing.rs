//! Where every rank of a job stands at one moment: in which call, on which communicator, and how
//! many collectives it has made there.
//!
//! A collective that does not return leaves no record in any ring. It is known by two things that
//! are always current: the call in progress in its rank's table, and the number of collectives
//! that its communicator has seen return. [`Standing`] has both for all ranks of the leaves below;
//! `standing_codec` carries it up the tree, `relation` says from it which ranks wait for which, and
//! [`Verdict`](crate::Verdict) why.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::Rank;

use crate::instance::Pattern;

/// In the place of a communicator's identity: the collective calls on files, which are not
/// distinguished.
pub const FILES: u64 = 1;
/// The same for calls that all processes of a window make.
pub const WINDOWS: u64 = 2;
/// The same for `MPI_Finalize`.
pub const ENDING: u64 = 3;
/// Communicators of one rank that travel, at most; the others are counted.
pub const SEATS_MAX: usize = 256;
/// Receives of one call that travel, at most; the others are counted.
pub const OPEN_RECEIVES_MAX: usize = 31;

/// Fewer tests between two moments are no loop.
const POLLS_MIN: u64 = 3;

/// What becomes of a rank's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Presence {
    /// It runs; nothing more is known.
    #[default]
    Running = 0,
    /// Outside of MPI, on a processor or ready for one.
    Computing = 1,
    /// Outside of MPI, waiting for the system.
    Sleeping = 2,
    /// Stopped by a signal or a debugger.
    Stopped = 3,
    /// It has ended without a word.
    Lost = 4,
    /// Inside of `MPI_Finalize`.
    Finalizing = 5,
    /// It has left MPI, or has ended in order.
    Ended = 6,
}

/// What kind of call a rank is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum CallKind {
    /// Another one: for which rank it waits is not known.
    #[default]
    Other = 0,
    /// A collective of a communicator that is counted there.
    Collective = 1,
    /// One that makes a communicator, window or file, and is not counted.
    Creation = 2,
    /// One that all processes of a file make.
    File = 3,
    /// One that all processes of a window make.
    Window = 4,
    /// It waits for a message.
    Receive = 5,
    /// It waits until a message is taken.
    Send = 6,
    /// It waits for requests.
    Wait = 7,
    /// A test or a probe that returns at once.
    Poll = 8,
    /// It waits for a lock on a process's part of a window.
    Lock = 9,
    /// It waits for a message, and until one that it sends is taken: which of the two is late, and
    /// the destination, are not known.
    Exchange = 10,
    /// It starts a collective that is counted on its communicator once the call has returned, for
    /// which it need not wait for others.
    CollectiveStart = 11,
}

/// The other side of a call, in the numbering of its communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// None, or not known.
    #[default]
    None,
    /// Any source.
    Any,
    /// This one: source, root or destination.
    Rank(Rank),
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standpoint {
    /// The function.
    pub function: u32,
    /// Its kind.
    pub kind: CallKind,
    /// Which ranks wait for which in it, if it is a collective.
    pub pattern: Pattern,
    /// The identity of its communicator; 0 for none.
    pub space: u64,
    /// The rank at the other end.
    pub side: Side,
    /// The rank to which it sends while it receives from `side`; none unless it is an exchange.
    pub destination: Side,
    /// The tag of its message. Of a collective, or the start of one, its [`amount`](Self::amount)
    /// and 1, or 0.
    pub tag: Option<i32>,
    /// The collective behind the request that it waits for, by its number on the communicator; 0
    /// for none.
    pub request: u32,
    /// Whether its communicator, side and tag are those of the one request that it waits for.
    pub is_request_known: bool,
}

impl Standpoint {
    /// How many bytes this rank gives in a collective, or at the start of one, that needs the same
    /// of all; none of another call, and where that is not known.
    #[must_use]
    pub fn amount(&self) -> Option<u32> {
        let tag = self.tag.filter(|_| self.is_collective())?;
        tag.cast_unsigned().checked_sub(1)
    }

    /// Whether it is a collective that is counted on its communicator, or the start of one.
    #[must_use]
    pub(crate) const fn is_collective(&self) -> bool {
        matches!(self.kind, CallKind::Collective | CallKind::CollectiveStart)
    }
}

/// What one rank does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Posture {
    /// Its process.
    pub presence: Presence,
    /// The call that it is in; none outside of MPI.
    pub call: Option<Standpoint>,
    /// The call in which one of its threads was when its process ended by itself, as a library does
    /// that aborts in a call; none of a rank that has not ended, or was killed.
    pub ended_in: Option<Standpoint>,
    /// How long it has been there, in nanoseconds.
    pub for_ns: u64,
    /// Calls that have returned.
    pub calls: u64,
    /// Of these, tests and probes.
    pub polls: u64,
    /// The function among these that was called most.
    pub polled: u32,
    /// For how long another thread than the one in the call has computed, or it has moved data in
    /// its call on a file, so that the rank does not wait in it; 0 if neither holds, and for a rank
    /// that is in no call.
    pub beside_ns: u64,
    /// Threads beside the one in the call that have called MPI before, are outside of it, and wait
    /// for a lock.
    pub blocked_threads: u32,
    /// Whether one of its threads waits for a lock: one that its thread in the call holds, or, of
    /// a rank that is in no call, any.
    pub is_locked: bool,
    /// Whether since the moment before it has made tests or probes, and nothing else.
    pub is_polling: bool,
    /// For how long it has not recorded its calls, in nanoseconds; 0 if it does, and where there is
    /// no file of its events.
    pub unrecorded_ns: u64,
    /// Whether its collectives were not counted for a time, so that their numbers mean nothing.
    pub is_order_lost: bool,
}

impl Posture {
    /// The call in which the rank is with all that it does; none if a thread computes beside it.
    #[must_use]
    pub fn only_call(&self) -> Option<Standpoint> {
        self.call.filter(|_| self.beside_ns == 0)
    }

    /// For how long it has done what it does, in nanoseconds: in its call, or outside of it.
    #[must_use]
    pub const fn doing_ns(&self) -> u64 {
        if self.beside_ns > 0 { self.beside_ns } else { self.for_ns }
    }
}

/// A rank's part in a communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seat {
    /// Its rank there.
    pub rank: Rank,
    /// Processes of the communicator.
    pub size: u32,
    /// Collectives that have returned, or were started.
    pub made: u32,
    /// The function of the last one; 0 for none.
    pub last_function: u32,
    /// The root of the last one.
    pub last_root: Option<Rank>,
    /// Of a window, the process there whose part the rank has locked; [`Side::Any`] for all.
    pub held: Side,
    /// Whether the rank has freed it.
    pub is_freed: bool,
    /// Whether it joins two groups.
    pub is_between: bool,
    /// Whether collectives went past the shim, one has failed there, or it was made behind a call
    /// that failed, so that the number means nothing.
    pub is_number_lost: bool,
    /// Whether the last one was of neighbours, so that it waits for some of the others only.
    pub is_last_of_neighbours: bool,
    /// Whether the last one was started, so that it may not have ended.
    pub is_last_started: bool,
}

/// A receive that had not completed when its rank entered the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenReceive {
    /// The identity of its communicator; 0 where that is not known.
    pub space: u64,
    /// The source, in the numbering of that.
    pub side: Side,
    /// Its tag; below 0 for any.
    pub tag: i32,
}

/// The requests for which a rank waits in one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenRequests {
    /// Its receives.
    pub receives: Vec<OpenReceive>,
    /// Its other requests: sends, collectives, and those that are not followed.
    pub others: u32,
    /// Whether one that completes is enough.
    pub is_any: bool,
}

/// From what it is known where ranks stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A tree has looked at their processes.
    #[default]
    Tree,
    /// The files that ranks keep, while some of them run: those that have ended have died.
    Files,
    /// The same when all have ended: what each of them did last is known, not when and how it
    /// ended.
    FilesOfEnded,
}

/// Where ranks stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Ranks of the program; 0 where that is not known.
    pub world_size: u32,
    /// What each rank does.
    pub postures: BTreeMap<Rank, Posture>,
    /// By communicator and rank of the program.
    pub seats: BTreeMap<(u64, Rank), Seat>,
    /// What communicators are called.
    pub names: BTreeMap<u64, String>,
    /// Collective calls on files and windows that have returned, by rank and function.
    pub shared: BTreeMap<(Rank, u32), (CallKind, u64)>,
    /// By rank, the requests of a call that waits for several, as far as they are known.
    pub open: BTreeMap<Rank, OpenRequests>,
    /// Communicators that found no room.
    pub left_out: u64,
    /// From what all of this is known. It does not travel.
    pub source: Source,
}

impl Standing {
    /// Takes in other ranks.
    pub fn merge(&mut self, other: Self) {
        self.world_size = self.world_size.max(other.world_size);
        self.postures.extend(other.postures);
        self.seats.extend(other.seats);
        for (identity, name) in other.names {
            self.add_name(identity, name);
        }
        self.shared.extend(other.shared);
        self.open.extend(other.open);
        self.left_out = self.left_out.saturating_add(other.left_out);
        self.source = self.source.max(other.source);
    }

    /// Says what a communicator is called; of several names the first in order holds, so that the
    /// order of merging does not matter.
    pub fn add_name(&mut self, identity: u64, name: String) {
        match self.names.get_mut(&identity) {
            Some(mine) if *mine <= name => {}
            Some(mine) => *mine = name,
            None => drop(self.names.insert(identity, name)),
        }
    }

    /// The members of a communicator, by their rank in the program.
    pub fn members(&self, space: u64) -> impl Iterator<Item = (Rank, &Seat)> {
        let range = (space, 0)..=(space, Rank::MAX);
        self.seats.range(range).map(|(&(_, rank), seat)| (rank, seat))
    }

    /// Ranks whose files cannot be read, so that nothing is known of them. Of one that a tree has
    /// never seen it is known that it has not come.
    #[must_use]
    pub fn unread(&self) -> usize {
        match self.source {
            Source::Tree => 0,
            Source::Files | Source::FilesOfEnded => {
                (self.world_size as usize).saturating_sub(self.postures.len())
            }
        }
    }

    /// Those among the members of a communicator, or of what stands for one: at most as many.
    #[must_use]
    pub fn unread_members(&self, space: u64) -> usize {
        let unread = self.unread();
        if unread == 0 {
            return 0;
        }
        let size = self.members(space).next().map(|(_, seat)| seat.size as usize);
        let lacking = size.map(|size| size.saturating_sub(self.members(space).count()));
        lacking.unwrap_or(unread).min(unread)
    }

    /// The rank in the program of a communicator's rank.
    #[must_use]
    pub fn member(&self, space: u64, local: Rank) -> Option<Rank> {
        self.members(space).find(|(_, seat)| seat.rank == local).map(|(rank, _)| rank)
    }

    /// Collective calls of a kind that a rank has made on files or windows.
    #[must_use]
    pub fn shared_calls(&self, rank: Rank, kind: CallKind) -> u64 {
        let range = (rank, 0)..=(rank, u32::MAX);
        let counts = self.shared.range(range).filter(|(_, one)| one.0 == kind);
        counts.map(|(_, one)| one.1).fold(0, u64::saturating_add)
    }

    /// Notes which ranks have polled since another moment.
    pub fn note_since(&mut self, before: &Self) {
        for (rank, now) in &mut self.postures {
            let Some(before) = before.postures.get(rank) else { continue };
            let calls = now.calls.saturating_sub(before.calls);
            let polls = now.polls.saturating_sub(before.polls);
            now.is_polling = polls >= POLLS_MIN && polls == calls;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_polls_if_it_makes_nothing_but_tests() {
        let of = |calls, polls| {
            let posture = Posture { calls, polls, ..Posture::default() };
            Standing { postures: [(0, posture)].into(), ..Standing::default() }
        };
        let polls = |before: (u64, u64), now: (u64, u64)| {
            let mut standing = of(now.0, now.1);
            standing.note_since(&of(before.0, before.1));
            standing.postures[&0].is_polling
        };
        assert!(polls((10, 5), (110, 105)));
        assert!(!polls((10, 5), (111, 105)), "it has made another call");
        assert!(!polls((10, 5), (10, 5)), "it has made none");
    }

    #[test]
    fn names_do_not_depend_on_the_order_of_merging() {
        let named =
            |name: &str| Standing { names: [(7, name.into())].into(), ..Standing::default() };
        let mut one = named("grid");
        one.merge(named("cart"));
        let mut other = named("cart");
        other.merge(named("grid"));
        assert_eq!(one, other);
        assert_eq!(one.names[&7], "cart");
    }
}
