//! Communicators on which ranks did not call as many collectives before they ended, in words.

use std::cmp::Reverse;

use sapwood_trace::{Callers, Findings, Minority, Total};
use serde::{Deserialize, Serialize};

use crate::mixed_calls::{LISTED_MAX, on, ranks};

/// A communicator on which ranks did not call as many collectives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnevenCalls {
    /// What the communicator is called.
    pub communicator: String,
    /// The ranks by how many they called, at most two kinds: that of the minority first, or without
    /// a majority the one that called fewer.
    pub calls: Vec<CallCount>,
    /// The rank that called more, or fewer, than all others; null where several did.
    pub culprit: Option<u32>,
    /// The same in words.
    pub text: String,
}

/// Ranks that called as many collectives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCount {
    /// How many.
    pub collectives: u32,
    /// How many ranks.
    pub count: u32,
    /// The lowest of them.
    pub lowest: u32,
}

impl CallCount {
    const fn of(callers: &Callers<u32>) -> Self {
        Self { collectives: callers.called, count: callers.count, lowest: callers.lowest }
    }
}

/// Communicators on which ranks did not call as many collectives, but for those on which they did
/// not call the same, either: there it follows from that. `name` gives what one of an identity and
/// a size is called.
pub(crate) fn uneven_calls(
    findings: &Findings,
    name: impl Fn(u64, u32) -> String,
) -> Vec<UnevenCalls> {
    let is_told = |(space, _): &(&u64, &Total)| !findings.mixtures.contains_key(space);
    let mut all: Vec<(&u64, &Total)> = findings.uneven.iter().filter(is_told).collect();
    // Those of which it is known which ranks did otherwise, and the largest, come first.
    all.sort_by_key(|(space, one)| (one.minority().is_none(), Reverse(one.size), **space));
    all.into_iter()
        .take(LISTED_MAX)
        .map(|(&space, one)| UnevenCalls::of(name(space, one.size), one))
        .collect()
}

impl UnevenCalls {
    /// Of a communicator of this name.
    #[must_use]
    pub fn of(communicator: String, total: &Total) -> Self {
        let place = on(&communicator);
        if let Some(minority @ Minority { few, most }) = total.minority() {
            let collectives = if few.called == 1 { "collective" } else { "collectives" };
            let text = format!(
                "{} called {} {collectives}{place} where {} ranks called {}, so that not all of \
                 these fit together",
                ranks(few.count, few.lowest),
                few.called,
                most.count,
                most.called
            );
            let culprit = minority.culprit();
            let calls = vec![CallCount::of(&few), CallCount::of(&most)];
            return Self { communicator, calls, culprit, text };
        }
        let calls: Vec<CallCount> = total.kinds.iter().map(CallCount::of).collect();
        let told =
            |one: &CallCount| format!("{} {}", ranks(one.count, one.lowest), one.collectives);
        let mut told: Vec<String> = calls.iter().map(told).collect();
        let counted: u32 = calls.iter().map(|one| one.count).sum();
        if total.size > counted {
            told.push("others more".to_owned());
        }
        let told = told.join(", ");
        let text = format!("ranks did not call as many collectives{place}: {told}");
        Self { communicator, calls, culprit: None, text }
    }
}

#[cfg(test)]
mod tests {
    use sapwood_trace::{Kinds, Mixture, Space};

    use super::*;

    fn total(made: &[u32]) -> Total {
        let size = u32::try_from(made.len()).expect("few");
        let of = |(rank, &made): (u32, &u32)| {
            Total::of(&Space { size, made, ..Space::default() }, rank).expect("is counted")
        };
        let mut all = (0..).zip(made).map(of);
        let mut first = all.next().expect("a rank");
        all.for_each(|one| first.merge(&one));
        first
    }

    #[test]
    fn the_rank_that_left_one_out_is_named() {
        let one = UnevenCalls::of("MPI_COMM_WORLD".to_owned(), &total(&[21, 21, 20, 21]));
        assert_eq!(
            one.text,
            "rank 2 called 20 collectives on MPI_COMM_WORLD where 3 ranks called 21, so that not \
             all of these fit together"
        );
        assert_eq!((one.culprit, one.calls.len()), (Some(2), 2));
    }

    #[test]
    fn without_a_majority_no_rank_is_accused() {
        let halves = UnevenCalls::of(String::new(), &total(&[21, 20]));
        let text = "ranks did not call as many collectives: rank 1 20, rank 0 21";
        assert_eq!((&*halves.text, halves.culprit), (text, None));
        let three = UnevenCalls::of(String::new(), &total(&[21, 20, 22, 20]));
        assert!(three.text.ends_with(": 2 ranks (the lowest is 1) 20, rank 0 21, others more"));
    }

    #[test]
    fn a_communicator_on_which_calls_do_not_fit_is_told_once() {
        let mut findings = Findings::default();
        findings.uneven.insert(7, total(&[3, 4, 4]));
        let told = |findings: &Findings| uneven_calls(findings, |_, _| "row".to_owned()).len();
        assert_eq!(told(&findings), 1);
        let kinds = Kinds::default();
        let mixture = Mixture { number: 2, size: 3, kinds, collectives: 1 };
        findings.mixtures.insert(7, mixture);
        assert_eq!(told(&findings), 0);
    }
}
