//! Which member carries which virtual node, by ranges: what a name space costs depends on the
//! ranges that members claim, not on its size.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use sapwood_packet::{Rank, RankSet, RankSetRef};

use crate::identity::MemberId;

/// Ranges of virtual nodes that do not overlap, with their members.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    /// By the first virtual node of the range.
    ranges: BTreeMap<Rank, Claim>,
}

#[derive(Clone, Copy, Debug)]
struct Claim {
    last: Rank,
    owner: MemberId,
    epoch: u32,
}

/// Virtual nodes that one member carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnedRange {
    pub(super) first: Rank,
    pub(super) last: Rank,
    pub(super) owner: MemberId,
    /// The epoch of its claim.
    pub(super) epoch: u32,
}

impl Owners {
    /// The member that carries a virtual node.
    pub(super) fn owner(&self, name: Rank) -> Option<MemberId> {
        self.within(name, name).next().map(|range| range.owner)
    }

    /// What members carry of a range, in order.
    pub(super) fn within(&self, first: Rank, last: Rank) -> impl Iterator<Item = OwnedRange> + '_ {
        let before = self.ranges.range(..first).next_back();
        let all = before.into_iter().chain(self.ranges.range(first..=last));
        all.filter(move |(_, claim)| claim.last >= first).map(move |(&begin, claim)| OwnedRange {
            first: begin.max(first),
            last: claim.last.min(last),
            owner: claim.owner,
            epoch: claim.epoch,
        })
    }

    /// What members carry of some virtual nodes, in order.
    pub(super) fn of<'a>(&'a self, names: RankSetRef<'a>) -> impl Iterator<Item = OwnedRange> + 'a {
        names.ranges().iter().flat_map(|&[first, last]| self.within(first, last))
    }

    /// A member claims virtual nodes; of two that claim one the higher epoch has it, and of one
    /// epoch the smaller member.
    pub(super) fn claim(&mut self, names: RankSetRef<'_>, id: MemberId, epoch: u32) {
        let mut kept = RankSet::new();
        let wins = |range: &OwnedRange| (Reverse(range.epoch), range.owner) < (Reverse(epoch), id);
        for range in self.of(names).filter(wins) {
            kept.insert_range(range.first, range.last);
        }
        let claimed = names.to_set().difference(kept.as_ref());
        self.remove(claimed.as_ref());
        for &[first, last] in claimed.as_ref().ranges() {
            self.ranges.insert(first, Claim { last, owner: id, epoch });
        }
    }

    /// No member carries these virtual nodes any more.
    pub(super) fn remove(&mut self, names: RankSetRef<'_>) {
        for &[first, last] in names.ranges() {
            let begins: Vec<Rank> = {
                let before = self.ranges.range(..first).next_back();
                let all = before.into_iter().chain(self.ranges.range(first..=last));
                all.filter(|(_, claim)| claim.last >= first).map(|(&begin, _)| begin).collect()
            };
            for begin in begins {
                let Some(claim) = self.ranges.remove(&begin) else { continue };
                if begin < first {
                    self.ranges.insert(begin, Claim { last: first - 1, ..claim });
                }
                if claim.last > last {
                    self.ranges.insert(last + 1, claim);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(owners: &Owners) -> Vec<(Rank, Rank, u64)> {
        let all = owners.within(0, Rank::MAX);
        all.map(|range| (range.first, range.last, range.owner.0)).collect()
    }

    fn names(text: &str) -> RankSet {
        text.parse().unwrap()
    }

    #[test]
    fn a_large_name_space_takes_one_entry_for_each_range() {
        let mut owners = Owners::default();
        owners.claim(names("0-16777215").as_ref(), MemberId(9), 0);
        owners.claim(names("5,100-199").as_ref(), MemberId(2), 0);
        owners.claim(names("150-250").as_ref(), MemberId(5), 0);
        let all =
            [(0, 4, 9), (5, 5, 2), (6, 99, 9), (100, 199, 2), (200, 250, 5), (251, 16_777_215, 9)];
        assert_eq!(owned(&owners), all);
        assert_eq!(owners.owner(16_777_215), Some(MemberId(9)));
        assert_eq!(owners.owner(16_777_216), None);
    }

    #[test]
    fn the_higher_epoch_has_the_name_whoever_comes_first() {
        for order in [[0, 1], [1, 0]] {
            let claims = [("0-9", 2, 0), ("4-6", 7, 1)];
            let mut owners = Owners::default();
            for (text, id, epoch) in order.map(|at: usize| claims[at]) {
                owners.claim(names(text).as_ref(), MemberId(id), epoch);
            }
            assert_eq!(owned(&owners), [(0, 3, 2), (4, 6, 7), (7, 9, 2)]);
        }
    }

    #[test]
    fn what_is_removed_is_cut_out_of_ranges() {
        let mut owners = Owners::default();
        owners.claim(names("0-9,20-29").as_ref(), MemberId(1), 0);
        owners.remove(names("3-4,8-21,29-4294967295").as_ref());
        assert_eq!(owned(&owners), [(0, 2, 1), (5, 7, 1), (22, 28, 1)]);
        owners.remove(names("0-4294967295").as_ref());
        assert_eq!(owned(&owners), []);
    }
}
