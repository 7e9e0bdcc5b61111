//! The back-ends that are known to be gone, and why.

use alloc::vec::Vec;

use sapwood_packet::RankSet;

use crate::interface::{Missing, Reason};

/// The most losses whose reasons are kept.
const LOSSES_MAX: usize = 4096;

/// The most ranges of ranks in them.
const RANGES_MAX: usize = 1 << 18;

/// What is known of back-ends that are gone. Every answer names them with these reasons.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    known: Vec<Missing>,
    /// Losses that the parent may not know of: a new one is told.
    pub(crate) unreported: Vec<Missing>,
    /// Back-ends that were lost and have come back.
    pub(crate) have_been_absent: RankSet,
}

impl Losses {
    /// All back-ends that are known to be gone.
    pub(crate) fn ranks(&self) -> RankSet {
        let mut all = RankSet::new();
        for lost in &self.known {
            all.union_with(lost.ranks.as_ref());
        }
        all
    }

    /// Why back-ends are gone, latest first.
    pub(crate) fn latest_first(&self) -> impl Iterator<Item = &Missing> {
        self.known.iter().rev()
    }

    pub(crate) fn add(&mut self, ranks: RankSet, reason: Reason) {
        self.known.push(reason.of(ranks));
        bound(&mut self.known);
    }

    /// A loss that is to be told to the parent.
    pub(crate) fn add_unreported(&mut self, ranks: RankSet, reason: Reason) {
        self.unreported.push(reason.of(ranks));
        bound(&mut self.unreported);
    }

    /// Back-ends that are there again are not explained as gone.
    pub(crate) fn forget(&mut self, back_ends: &RankSet) {
        for lost in &mut self.known {
            let mut back = lost.ranks.clone();
            back.intersect_with(back_ends.as_ref());
            self.have_been_absent.union_with(back.as_ref());
            lost.ranks.subtract(back_ends.as_ref());
        }
        self.known.retain(|lost| !lost.ranks.is_empty());
    }
}

/// Forgets the oldest losses until those that are left are few, and of few ranges.
fn bound(losses: &mut Vec<Missing>) {
    let ranges = |lost: &Missing| lost.ranks.as_ref().ranges().len();
    let mut held: usize = losses.iter().map(ranges).sum();
    while losses.len() > LOSSES_MAX || held > RANGES_MAX && losses.len() > 1 {
        held -= ranges(&losses.remove(0));
    }
}
