//! The ranks that may be waited for in a call for several requests, as `MPI_Waitall`.
//!
//! Known are the receives that were open when a rank entered the call. Which of these have
//! completed since is not known before it returns, so that a rank may wait for each of their
//! senders, and surely waits for none of them.

use alloc::collections::{BTreeMap, BTreeSet};

use sapwood_packet::{Rank, RankSet};

use crate::standing::{OpenRequests, Side, Standing};

/// The messages for which ranks wait that wait alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenMessages {
    /// The communicator of all; 0 if they are on several, or where it is not known.
    pub space: u64,
    /// Their tags, but for those of any.
    pub tags: BTreeSet<i32>,
    /// Whether the ranks wait for no other request, and all ranks that may send are known.
    pub is_complete: bool,
}

impl OpenMessages {
    /// Takes in those of another rank.
    pub(crate) fn merge(&mut self, other: Self) {
        if self.space != other.space {
            self.space = 0;
        }
        self.tags.extend(other.tags);
        self.is_complete &= other.is_complete;
    }
}

/// The ranks that may send what one waits for.
pub(crate) struct Senders {
    pub(crate) ranks: RankSet,
    pub(crate) messages: OpenMessages,
}

/// The members of a communicator by their ranks there. None are known of one between two groups,
/// where a number may be a rank in either.
#[derive(Default)]
struct SpaceMembers {
    by_rank: BTreeMap<Rank, Rank>,
    /// Whether the communicator has no others.
    are_all: bool,
}

impl SpaceMembers {
    fn of(standing: &Standing, space: u64) -> Self {
        let mut by_rank = BTreeMap::new();
        let mut size = 0;
        for (rank, seat) in standing.members(space) {
            if seat.is_between {
                return Self::default();
            }
            by_rank.insert(seat.rank, rank);
            size = seat.size as usize;
        }
        let are_all = size > 0 && by_rank.len() >= size;
        Self { by_rank, are_all }
    }
}

/// The members of communicators, each of which is looked at once.
#[derive(Default)]
pub(crate) struct Members {
    by_space: BTreeMap<u64, SpaceMembers>,
}

impl Members {
    /// Those that are to send the messages for which a rank waits, without itself.
    pub(crate) fn senders(
        &mut self,
        standing: &Standing,
        rank: Rank,
        open: &OpenRequests,
    ) -> Senders {
        // What comes from no process has ended.
        let receives = open.receives.iter().filter(|one| one.side != Side::None);
        let first = receives.clone().next().map_or(0, |one| one.space);
        let is_one = receives.clone().all(|one| one.space == first);
        let tags = receives.clone().map(|one| one.tag).filter(|&tag| tag >= 0);
        let mut messages = OpenMessages {
            space: if is_one { first } else { 0 },
            tags: tags.collect(),
            is_complete: open.others == 0,
        };
        let mut ranks = RankSet::new();
        for receive in receives {
            let members = self.of(standing, receive.space);
            match receive.side {
                Side::Rank(local) => match members.by_rank.get(&local) {
                    Some(&sender) => ranks.insert(sender),
                    None => messages.is_complete = false,
                },
                Side::Any => {
                    members.by_rank.values().for_each(|&sender| ranks.insert(sender));
                    messages.is_complete &= members.are_all;
                }
                Side::None => {}
            }
        }
        let ranks = ranks.difference(RankSet::range(rank, rank).as_ref());
        Senders { ranks, messages }
    }

    fn of(&mut self, standing: &Standing, space: u64) -> &SpaceMembers {
        self.by_space.entry(space).or_insert_with(|| SpaceMembers::of(standing, space))
    }
}
