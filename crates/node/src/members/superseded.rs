//! Processes whose orphans have been taken in: what they have kept must not be used any more.

use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet};

use crate::members::authority::is_dynamic;
use crate::members::children::Children;

/// Most groups of processes that are distinguished by the ranks that they speak for.
const SUPERSEDERS_MAX: usize = 1024;

/// The superseded processes, even when the orphans have left since, and which children said so.
#[derive(Debug, Default)]
pub(crate) struct Superseded {
    pub(crate) ranks: RankSet,
    /// The ranks that were named, and those for which the naming children spoke.
    by: Vec<(RankSet, RankSet)>,
}

impl Superseded {
    /// Remembers the superseded ranks, and those for which the naming children spoke.
    pub(crate) fn note(&mut self, ranks: &RankSet, domain: &RankSet) {
        if ranks.is_empty() {
            return;
        }
        let list = &mut self.by;
        let at = list.iter().position(|(by, _)| by == domain).unwrap_or_else(|| {
            if list.len() == SUPERSEDERS_MAX {
                // No two processes are distinguished any more.
                let all = core::mem::take(list).into_iter();
                let mut whole = RankSet::new();
                all.for_each(|(_, ranks)| whole.union_with(ranks.as_ref()));
                list.push((RankSet::new(), whole));
            }
            list.push((domain.clone(), RankSet::new()));
            list.len() - 1
        });
        list[at].1.union_with(ranks.as_ref());
    }

    /// Whether a child was named as superseded by children that could know.
    pub(crate) fn contains(&self, rank: Rank, children: &Children) -> bool {
        let own =
            children.get(rank).map(|child| child.authority.domain.clone()).unwrap_or_default();
        let could_know = |by: &RankSet| {
            by.as_ref().last().is_none_or(is_dynamic)
                || own.is_empty()
                || by.as_ref().intersects(own.as_ref())
        };
        self.by.iter().any(|(by, ranks)| ranks.contains(rank) && could_know(by))
    }
}
