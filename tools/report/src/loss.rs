//! Which ranks a round lacks and why; which ended without a word.

use sapwood_packet::RankSet;
use sapwood_profile::Round;
use serde::{Deserialize, Serialize};

/// What is said of ranks of which nothing was ever heard.
const NOTHING_ARRIVED: &str =
    "no profile arrived; they run on hosts that are not watched (--hosts), or without the shim";

/// MPI ranks that are missing for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// These ranks.
    pub ranks: RankSet,
    /// Why; part of one line, as `back-end 3 closed its connection`.
    pub reason: String,
}

/// No round came after the program's end: all counts are those of an earlier time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outdated {
    /// The time of the counts, in seconds after the start of the program; none where no round came
    /// at all.
    pub as_of_s: Option<f64>,
    /// Why there is no later round.
    pub reason: String,
}

impl Outdated {
    /// A line for people.
    pub(crate) fn line(&self) -> String {
        match self.as_of_s {
            Some(seconds) => {
                format!(
                    "all counts are from {seconds:.1} s, as no later round arrived: {}",
                    self.reason
                )
            }
            None => format!("no round arrived: {}", self.reason),
        }
    }
}

/// The ranks that a round does not cover, each once: with the first reason that is given for it, or
/// with the plain fact. A rank that came after all is not among them.
pub(crate) fn losses(round: &Round, given: &[Missing]) -> Vec<Missing> {
    let mut left = round.missing();
    let mut losses = Vec::new();
    for missing in given {
        let mut ranks = missing.ranks.clone();
        ranks.intersect_with(left.as_ref());
        left.subtract(ranks.as_ref());
        if !ranks.is_empty() {
            losses.push(Missing { ranks, reason: missing.reason.clone() });
        }
    }
    if !left.is_empty() {
        losses.push(Missing { ranks: left, reason: NOTHING_ARRIVED.to_string() });
    }
    losses
}

#[cfg(test)]
mod tests {
    use sapwood_profile::RankProfile;

    use super::*;

    #[test]
    fn every_missing_rank_is_named_once() {
        let mut round = Round::new(8);
        for rank in [0, 1, 5] {
            round.add(&RankProfile::new(rank, 8)).expect("a new rank");
        }
        let missing = |ranks: &str, reason: &str| Missing {
            ranks: ranks.parse().expect("a rank set"),
            reason: reason.to_string(),
        };
        let given = [missing("1-3", "host b is gone"), missing("3-4", "host c is gone")];
        let expected = [
            missing("2-3", "host b is gone"),
            missing("4", "host c is gone"),
            missing("6-7", NOTHING_ARRIVED),
        ];
        assert_eq!(losses(&round, &given), expected);
    }
}
