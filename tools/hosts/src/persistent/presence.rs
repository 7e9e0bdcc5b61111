//! Which hosts of a tree are there.

use sapwood::RankSet;

use crate::absence::everyone;

/// The hosts of a tree that are there, and those that are not, as they were looked at last.
pub(crate) struct Presence {
    everyone: RankSet,
    there: RankSet,
    missing: RankSet,
}

impl Presence {
    /// Of a tree with this number of hosts, none of which is known to be there yet.
    pub(crate) fn new(hosts: usize) -> Self {
        Self { everyone: everyone(hosts), there: RankSet::new(), missing: everyone(hosts) }
    }

    /// These are there now. In most turns they are those of the turn before.
    pub(crate) fn note(&mut self, there: RankSet) {
        if there != self.there {
            self.missing = self.everyone.difference(there.as_ref());
            self.there = there;
        }
    }

    pub(crate) fn there(&self) -> &RankSet {
        &self.there
    }

    pub(crate) fn missing(&self) -> &RankSet {
        &self.missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_ones_are_known_whenever_others_are_there() {
        let mut presence = Presence::new(4);
        assert_eq!((presence.there(), presence.missing()), (&RankSet::new(), &everyone(4)));
        for (first, last, missing) in [(0, 3, ""), (0, 3, ""), (1, 2, "0,3"), (0, 2, "3")] {
            presence.note(RankSet::range(first, last));
            assert_eq!(presence.there(), &RankSet::range(first, last));
            assert_eq!(presence.missing(), &missing.parse::<RankSet>().unwrap());
        }
    }
}
