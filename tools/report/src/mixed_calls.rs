//! Collectives in which ranks called different functions, or gave different roots, in words.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use sapwood_trace::{Callers, Minority, Mixture};
use serde::{Deserialize, Serialize};

use crate::mpi_call::function_name;
use crate::quantity;

/// A communicator on which ranks did not call the same, from one collective on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MixedCalls {
    /// What the communicator is called.
    pub communicator: String,
    /// The number of the first such collective there.
    pub number: u32,
    /// Such collectives.
    pub collectives: u64,
    /// The calls of that first one, at most two kinds: that of the minority first, or without a
    /// majority in the order of functions.
    pub calls: Vec<MixedCall>,
    /// The rank that called another thing than all others; null where several did.
    pub culprit: Option<u32>,
    /// The same in words.
    pub text: String,
}

/// Ranks that called the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MixedCall {
    /// The function.
    pub function: String,
    /// The root that they gave, as its rank in the communicator; null for none.
    pub root: Option<u32>,
    /// How many they are.
    pub count: u32,
    /// The lowest of them.
    pub lowest: u32,
}

impl MixedCall {
    fn of(callers: &Callers) -> Self {
        Self {
            function: function_name(callers.called.function),
            root: u32::try_from(callers.called.root).ok(),
            count: callers.count,
            lowest: callers.lowest,
        }
    }

    fn ranks(&self) -> String {
        ranks(self.count, self.lowest)
    }

    fn call(&self) -> String {
        match self.root {
            Some(root) => format!("{} with root {root}", self.function),
            None => self.function.clone(),
        }
    }
}

/// Ranks of which the number and the lowest one are known.
pub(crate) fn ranks(count: u32, lowest: u32) -> String {
    match count {
        1 => format!("rank {lowest}"),
        count => format!("{count} ranks (the lowest is {lowest})"),
    }
}

/// On which communicator, as far as it has a name.
pub(crate) fn on(communicator: &str) -> String {
    if communicator.is_empty() { String::new() } else { format!(" on {communicator}") }
}

/// Which collective on which communicator.
pub(crate) fn place(number: u32, communicator: &str) -> String {
    format!("number {number}{}", on(communicator))
}

/// What ranks did by kinds, and that as many others did another thing.
pub(crate) fn list(told: impl Iterator<Item = String>, others: u32, other: &str) -> String {
    let rest = match others {
        0 => None,
        1 => Some(format!("1 rank {other}")),
        others => Some(format!("{others} ranks {other}")),
    };
    told.chain(rest).collect::<Vec<_>>().join(", ")
}

/// That there were more than the first one that is told; none if there were not.
pub(crate) fn more_collectives(all: u64) -> Option<String> {
    match all.saturating_sub(1) {
        0 => None,
        1 => Some("1 more collective there".to_owned()),
        more => Some(format!("{} more collectives there", quantity::whole(more.into()))),
    }
}

/// The most communicators that an answer has.
pub(crate) const LISTED_MAX: usize = 16;
/// The most of these that are printed.
const TOLD_MAX: usize = 3;

/// Communicators on which ranks did not call the same, those with most such collectives first;
/// `name` gives what one of an identity and a size is called.
pub(crate) fn mixed_calls(
    found: &BTreeMap<u64, Mixture>,
    name: impl Fn(u64, u32) -> String,
) -> Vec<MixedCalls> {
    let mut all: Vec<_> = found.iter().collect();
    all.sort_by_key(|(space, one)| (Reverse(one.collectives), **space));
    let told = |(&space, one): (&u64, &Mixture)| MixedCalls::of(name(space, one.size), one);
    all.into_iter().take(LISTED_MAX).map(told).collect()
}

impl MixedCalls {
    /// Of a communicator of this name.
    #[must_use]
    pub fn of(communicator: String, mixture: &Mixture) -> Self {
        let place = place(mixture.number, &communicator);
        let (calls, culprit, mut text) = match mixture.kinds.minority(mixture.size) {
            Some(minority @ Minority { few, most }) => {
                let (few, most) = (MixedCall::of(&few), MixedCall::of(&most));
                let (ranks, own, common) = (few.ranks(), few.call(), most.call());
                let text = format!(
                    "{ranks} called {own} where {} ranks called {common} ({place})",
                    most.count
                );
                (vec![few, most], minority.culprit(), text)
            }
            None => {
                let calls: Vec<_> = mixture.kinds.iter().map(MixedCall::of).collect();
                let told = calls.iter().map(|one| format!("{} {}", one.ranks(), one.call()));
                let named: u32 = calls.iter().map(|one| one.count).sum();
                let told = list(told, mixture.size.saturating_sub(named), "something else");
                let text = format!("ranks did not call the same: {told} ({place})");
                (calls, None, text)
            }
        };
        if let Some(more) = more_collectives(mixture.collectives) {
            let does = if mixture.collectives == 2 { "does" } else { "do" };
            text += &format!("; so {more} {does} not fit together");
        }
        let Mixture { number, collectives, .. } = *mixture;
        Self { communicator, number, collectives, calls, culprit, text }
    }
}

/// Lines for these, of which the first few are told.
pub(crate) fn wrong_lines<'a>(all: impl ExactSizeIterator<Item = &'a str>) -> Vec<String> {
    let count = all.len();
    let mut lines: Vec<String> = all.take(TOLD_MAX).map(|text| format!("wrong: {text}")).collect();
    if let Some(more @ 1..) = count.checked_sub(TOLD_MAX) {
        let more = quantity::counted(more as u128, "more communicators");
        lines.push(format!("wrong: the same on {more}, at least"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use sapwood_profile::Function;
    use sapwood_trace::{Called, Kinds};

    use super::*;

    fn mixed(calls: &[(&str, i32)], collectives: u64) -> MixedCalls {
        let kinds = |(rank, &(name, root)): (u32, &(&str, i32))| {
            let function = Function::named(name).expect("a function of MPI").id;
            Kinds::of(Called { function, root }, rank)
        };
        let mut all = (0..).zip(calls).map(kinds);
        let mut first = all.next().expect("a call");
        all.for_each(|one| first.merge(&one));
        let size = u32::try_from(calls.len()).expect("few");
        let mixture = Mixture { number: 41, size, kinds: first, collectives };
        MixedCalls::of("MPI_COMM_WORLD".to_owned(), &mixture)
    }

    #[test]
    fn the_rank_that_did_otherwise_is_named() {
        let (bcast, sum) = (("MPI_Bcast", 0), ("MPI_Allreduce", -1));
        let one = mixed(&[bcast, bcast, sum, bcast], 79);
        assert_eq!(
            one.text,
            "rank 2 called MPI_Allreduce where 3 ranks called MPI_Bcast with root 0 (number 41 on \
             MPI_COMM_WORLD); so 78 more collectives there do not fit together"
        );
        assert_eq!(one.culprit, Some(2));
        let twice = mixed(&[bcast, bcast, sum], 2).text;
        assert!(twice.ends_with("; so 1 more collective there does not fit together"), "{twice}");
        let root = mixed(&[bcast, ("MPI_Bcast", 1), bcast], 1);
        assert_eq!(
            root.text,
            "rank 1 called MPI_Bcast with root 1 where 2 ranks called MPI_Bcast with root 0 \
             (number 41 on MPI_COMM_WORLD)"
        );
    }

    #[test]
    fn without_a_majority_no_rank_is_accused() {
        let (bcast, sum, barrier) = (("MPI_Bcast", 0), ("MPI_Allreduce", -1), ("MPI_Barrier", -1));
        let halves = mixed(&[sum, bcast, sum, bcast], 1);
        let start = "ranks did not call the same: 2 ranks (the lowest is ";
        assert!(halves.text.starts_with(start), "{}", halves.text);
        assert_eq!((halves.culprit, halves.calls.len()), (None, 2));
        let three = mixed(&[bcast, bcast, sum, barrier], 1);
        assert!(three.text.contains(", 2 ranks something else ("), "{}", three.text);
        assert_eq!(three.culprit, None);
        let roots = mixed(&[bcast, ("MPI_Bcast", 1), bcast, ("MPI_Bcast", 1)], 1);
        assert_eq!(
            roots.text,
            "ranks did not call the same: 2 ranks (the lowest is 0) MPI_Bcast with root 0, 2 ranks \
             (the lowest is 1) MPI_Bcast with root 1 (number 41 on MPI_COMM_WORLD)"
        );
        let two = mixed(&[bcast, sum], 1);
        assert_eq!((two.culprit, two.calls.len()), (None, 2));
        let several = mixed(&[bcast, sum, sum, bcast, bcast], 1);
        assert!(several.text.starts_with("2 ranks (the lowest is 1) called MPI_Allreduce"));
        assert_eq!(several.culprit, None);
    }
}
