//! Trees that measure nothing: binomial, static, list.

use alloc::vec::Vec;

use super::{Share, Terrain};
use crate::identity::MemberId;

/// The children of a head of `1 + members.len()` in a binomial tree, the largest share first.
pub(super) fn binomial(members: &[MemberId]) -> Vec<Share> {
    let count = members.len() + 1;
    let mut shares = Vec::new();
    let mut step = count.next_power_of_two();
    while step > 1 {
        step /= 2;
        if step < count {
            shares.push(members[step - 1..(2 * step - 1).min(members.len())].to_vec());
        }
    }
    shares
}

/// One chain: the rest of the own cluster, then the other clusters in turn.
pub(super) fn list(terrain: &Terrain<'_>, members: &[MemberId]) -> Vec<Share> {
    if members.is_empty() {
        return Vec::new();
    }
    let here = terrain.site(terrain.me);
    let mut chain = members.to_vec();
    chain.sort_by_key(|&member| {
        let site = terrain.site(member);
        (site != here, site)
    });
    Vec::from([chain])
}

/// One edge to the first member of each other cluster, then binomial in the own one.
pub(super) fn clustered(terrain: &Terrain<'_>, members: &[MemberId]) -> Vec<Share> {
    let here = terrain.site(terrain.me);
    let (near, far): (Vec<MemberId>, Vec<MemberId>) =
        members.iter().partition(|&&member| terrain.site(member) == here);
    let mut sites: Vec<(u32, Share)> = Vec::new();
    for member in far {
        let site = terrain.site(member);
        match sites.iter_mut().find(|entry| entry.0 == site) {
            Some(entry) => entry.1.push(member),
            None => sites.push((site, Vec::from([member]))),
        }
    }
    // The farthest first, as far as the distance is known.
    let distance = |share: &Share| {
        let clusters = terrain.clusters;
        let ends = clusters.label(terrain.me).zip(clusters.label(share[0]));
        ends.and_then(|(from, to)| clusters.round_trip(from, to)).unwrap_or(0)
    };
    sites.sort_by_key(|(site, share)| (core::cmp::Reverse(distance(share)), *site));
    let mut shares: Vec<Share> = sites.into_iter().map(|entry| entry.1).collect();
    shares.extend(binomial(&near));
    shares
}

impl Terrain<'_> {
    fn site(&self, member: MemberId) -> u32 {
        self.view.record(member).map_or(0, |record| record.site)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(count: u64) -> Vec<MemberId> {
        (1..=count).map(MemberId).collect()
    }

    #[test]
    fn a_binomial_head_of_eight_has_three_children_with_all_others() {
        let shares = binomial(&ids(7));
        let heads: Vec<u64> = shares.iter().map(|share| share[0].0).collect();
        assert_eq!(heads, [4, 2, 1]);
        assert_eq!(shares.iter().map(Vec::len).sum::<usize>(), 7);
    }

    #[test]
    fn every_count_of_members_is_split_without_remainder() {
        for count in 0..40 {
            let mut all: Vec<MemberId> = binomial(&ids(count)).concat();
            all.sort_unstable();
            assert_eq!(all, ids(count));
        }
    }
}
