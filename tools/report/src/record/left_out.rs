//! Which numbers settings have left out: one that is 0 there was not counted.

use sapwood_packet::{Rank, RankSet};

use super::{RoundRecord, Settings};

/// What settings have ranks count. The ranks in them are read once.
#[derive(Clone, Debug)]
pub struct Counting<'a> {
    settings: Option<&'a Settings>,
    /// The ranks that count; none where all do.
    ranks: Option<RankSet>,
}

impl<'a> Counting<'a> {
    /// Of these settings; all is counted where there are none.
    #[must_use]
    pub fn of(settings: Option<&'a Settings>) -> Self {
        let ranks = settings.and_then(|settings| settings.ranks.parse::<RankSet>().ok());
        Self { settings, ranks: ranks.filter(|ranks| !ranks.is_empty()) }
    }

    /// What is left out of the numbers of one rank.
    #[must_use]
    pub fn of_rank(&self, rank: Rank) -> LeftOut<'a> {
        let counts = self.ranks.as_ref().is_none_or(|ranks| ranks.contains(rank));
        let ranks = if counts { LeftOutRanks::None } else { LeftOutRanks::All };
        LeftOut { settings: self.settings, ranks }
    }

    /// What is left out of the sums over some ranks.
    #[must_use]
    pub fn of_ranks(&self, covered: &RankSet) -> LeftOut<'a> {
        let ranks = match &self.ranks {
            None => LeftOutRanks::None,
            Some(ranks) if !covered.as_ref().intersects(ranks.as_ref()) => LeftOutRanks::All,
            Some(ranks) if covered.as_ref().is_within(ranks.as_ref()) => LeftOutRanks::None,
            Some(_) => LeftOutRanks::Some,
        };
        LeftOut { settings: self.settings, ranks }
    }
}

/// How many of some ranks do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftOutRanks {
    None,
    Some,
    All,
}

/// What is left out of the numbers of some ranks.
#[derive(Clone, Copy, Debug)]
pub struct LeftOut<'a> {
    settings: Option<&'a Settings>,
    ranks: LeftOutRanks,
}

impl<'a> LeftOut<'a> {
    /// Of the ranks whose counts are in a record.
    #[must_use]
    pub fn of(record: &'a RoundRecord) -> Self {
        let covered = record.covered.parse::<RankSet>().unwrap_or_default();
        Counting::of(record.settings.as_ref()).of_ranks(&covered)
    }

    /// Whether a number of the events of a function class is left out, `calls`, `time` or
    /// `bytes`: by its group, that of the class, or because none of the ranks counts.
    #[must_use]
    pub fn has(&self, class: &str, number: &str) -> bool {
        self.ranks == LeftOutRanks::All
            || self.settings.is_some_and(|settings| settings.leaves_out(class, number))
    }

    /// Whether some of the ranks do not count, so that what these have called since is not known.
    #[must_use]
    pub fn has_ranks(&self) -> bool {
        self.ranks != LeftOutRanks::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_left_out_by_its_group_its_class_and_the_ranks() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let settings = Settings {
            groups: names(&["collective", "calls", "time"]),
            groups_known: names(&["collective", "regions", "calls", "time", "bytes"]),
            ranks: "0-3".to_owned(),
            ..Settings::default()
        };
        let counting = Counting::of(Some(&settings));
        let one = counting.of_rank(3);
        assert!(!one.has("collective", "calls") && !one.has_ranks());
        assert!(one.has("collective", "bytes") && one.has("region", "calls"));
        assert!(counting.of_rank(4).has("collective", "calls"));
        let some = counting.of_ranks(&RankSet::range(2, 9));
        assert!(!some.has("collective", "calls") && some.has_ranks());
        assert!(!counting.of_ranks(&RankSet::range(1, 2)).has_ranks());
        assert!(counting.of_ranks(&RankSet::range(4, 9)).has("collective", "calls"));
        let all = Counting::of(None).of_rank(9);
        assert!(!all.has("region", "bytes") && !all.has_ranks());
    }
}
