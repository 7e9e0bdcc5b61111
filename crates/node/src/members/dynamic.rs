//! Members that are not in the plan: back-ends beyond the ranks that are kept for them, and
//! communication processes that join a tree which stands already.
//!
//! Every process that takes them gives out ranks of a block of its own, so that no process has to
//! be asked, and no rank is given twice, not even after its bearer has left. The block follows from
//! the giver's own rank ([`DYNAMIC_RANKS_BEGIN`]):
//!
//! | giver | block |
//! |---|---|
//! | a process of the topology, of rank `r` | 4096 ranks from `2^31 + 4096 r` on |
//! | a process that has joined one of these | the 255 ranks behind its own |
//! | a process that has joined one of those | the 15 ranks behind its own |
//!
//! Back-ends take ranks from the front of the block. A process that joins takes a part of it from
//! the end: its own rank and those that it may give.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet};
use sapwood_wire::Ranges;

use crate::interface::{AttachPoint, DYNAMIC_RANKS_BEGIN, DYNAMIC_RANKS_PER_PROCESS, Role};
use crate::members::children::Child;
use crate::members::membership::Membership;
use crate::turn::Turn;

/// A process that joins takes this part of its parent's block.
const JOINED_SHARE: u32 = 16;

/// The smallest block from which a process that joins is given a part.
const DIVISIBLE_MIN: u32 = JOINED_SHARE * JOINED_SHARE;

/// The ranks that a process may still give.
#[derive(Debug)]
pub(crate) struct DynamicRanks {
    next: Rank,
    /// How many are left from there.
    left: u32,
    /// The part of it that a process takes which joins; 0 where none may.
    share: u32,
    /// What such a process is told of the tree.
    plan: Vec<u8>,
}

impl DynamicRanks {
    /// The block of the process of this rank; none for a rank beyond those of the table above.
    pub(crate) fn of(rank: Rank, plan: Vec<u8>) -> Option<Self> {
        let (next, left, whole) = match rank.checked_sub(DYNAMIC_RANKS_BEGIN) {
            None => {
                let first = rank.checked_mul(DYNAMIC_RANKS_PER_PROCESS)?;
                let first = first.checked_add(DYNAMIC_RANKS_BEGIN)?;
                (first, DYNAMIC_RANKS_PER_PROCESS, DYNAMIC_RANKS_PER_PROCESS)
            }
            Some(number) => {
                let first = DYNAMIC_RANKS_PER_PROCESS / JOINED_SHARE;
                let second = first / JOINED_SHARE;
                let whole = [first, second].into_iter().find(|whole| number % whole == 0)?;
                (rank + 1, whole - 1, whole)
            }
        };
        let share = if whole >= DIVISIBLE_MIN { whole / JOINED_SHARE } else { 0 };
        Some(Self { next, left, share, plan })
    }

    /// A rank for a back-end.
    fn take_one(&mut self) -> Option<Rank> {
        self.left = self.left.checked_sub(1)?;
        self.next += 1;
        Some(self.next - 1)
    }

    /// A rank for a process that joins, with those behind it that it may give itself.
    fn take_share(&mut self) -> Option<Rank> {
        if self.share == 0 {
            return None;
        }
        self.left = self.left.checked_sub(self.share)?;
        Some(self.next + self.left)
    }
}

impl Membership {
    /// A communication process comes by itself.
    pub(crate) fn admit_joining(&mut self, turn: &mut Turn) -> Result<Rank, String> {
        let is_root = turn.settings.role == Role::FrontEnd;
        let Some(dynamic_ranks) = &mut self.dynamic_ranks else {
            return Err("this network takes no further processes".to_string());
        };
        if !is_root && self.height < 2 {
            return Err("there is no level below this process: join another".to_string());
        }
        let no_share = || "this process has no ranks left for one more process".to_string();
        let rank = dynamic_ranks.take_share().ok_or_else(no_share)?;
        let child = Child::awaited(RankSet::new(), dynamic_ranks.plan.clone());
        self.children.insert(rank, child);
        // Only the root can grow: those below it have told their height to no parent.
        self.height = self.height.max(2);
        Ok(rank)
    }
}

/// Attach points as a message tells them.
pub(crate) fn to_wire(points: Vec<AttachPoint>) -> Vec<(Rank, String, Ranges)> {
    let point = |point: AttachPoint| (point.parent, point.address, Ranges::from(&point.ranks));
    points.into_iter().map(point).collect()
}

impl Membership {
    /// A fresh rank for a back-end that has none.
    pub(crate) fn admit_dynamic(&mut self) -> Result<Rank, String> {
        let no_rank = || "no rank is free for one more back-end here".to_string();
        let dynamic_ranks = self.dynamic_ranks.as_mut().ok_or_else(no_rank)?;
        dynamic_ranks
            .take_one()
            .ok_or_else(|| "this process has given all of its ranks".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_gives_its_block_from_both_ends() {
        let mut dynamic_ranks = DynamicRanks::of(5, Vec::new()).expect("a rank of a topology");
        let begin = DYNAMIC_RANKS_BEGIN + 5 * 4096;
        assert_eq!(
            (dynamic_ranks.take_one(), dynamic_ranks.take_one()),
            (Some(begin), Some(begin + 1))
        );
        assert_eq!(dynamic_ranks.take_share(), Some(begin + 3840));
        assert_eq!(dynamic_ranks.take_share(), Some(begin + 3584));
        for _ in 0..13 {
            assert!(dynamic_ranks.take_share().is_some());
        }
        assert_eq!(dynamic_ranks.take_share(), None, "the last part is not whole any more");
        let rest = (0..).map_while(|_| dynamic_ranks.take_one()).count();
        assert_eq!(rest, 254);
    }

    #[test]
    fn blocks_of_processes_that_have_joined_lie_within_their_parents() {
        let mut parent = DynamicRanks::of(7, Vec::new()).expect("a rank of a topology");
        let child = parent.take_share().expect("a whole block");
        let mut dynamic_ranks =
            DynamicRanks::of(child, Vec::new()).expect("a rank that was given to a process");
        assert_eq!(dynamic_ranks.take_one(), Some(child + 1));
        let grandchild = dynamic_ranks.take_share().expect("a whole block");
        assert_eq!(grandchild, child + 240);
        let mut last = DynamicRanks::of(grandchild, Vec::new()).expect("a rank that was given");
        assert_eq!(last.take_share(), None);
        let all: Vec<Rank> = (0..).map_while(|_| last.take_one()).collect();
        assert_eq!(
            (all.len(), all.first(), all.last()),
            (15, Some(&(child + 241)), Some(&(child + 255)))
        );
    }

    #[test]
    fn a_rank_too_high_for_a_block_takes_no_guests() {
        assert!(DynamicRanks::of((1 << 19) - 1, Vec::new()).is_some());
        assert!(DynamicRanks::of(1 << 19, Vec::new()).is_none());
        assert!(DynamicRanks::of(DYNAMIC_RANKS_BEGIN + 1, Vec::new()).is_none());
    }
}
