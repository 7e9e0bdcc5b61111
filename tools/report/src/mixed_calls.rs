//! Collectives in which ranks called different functions, or gave different roots, in words.

use sapwood_trace::{Callers, Kinds, Mixture};
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
            function: function_name(callers.called.event >> 8),
            root: u32::try_from(callers.called.root).ok(),
            count: callers.count,
            lowest: callers.lowest,
        }
    }

    /// The ranks, as far as they are known.
    fn ranks(&self) -> String {
        match self.count {
            1 => format!("rank {}", self.lowest),
            count => format!("{count} ranks (the lowest is {})", self.lowest),
        }
    }

    fn call(&self) -> String {
        match self.root {
            Some(root) => format!("{} with root {root}", self.function),
            None => self.function.clone(),
        }
    }
}

/// Whether calls of two kinds belong together all the same: a function and its form for large
/// counts, `MPI_Bcast` and `MPI_Bcast_c`, are one to MPI.
pub(crate) fn belong_together(kinds: &Kinds) -> bool {
    let Some(second) = kinds.second else { return true };
    let procedure = |callers: &Callers| {
        let name = function_name(callers.called.event >> 8);
        (name.trim_end_matches("_c").to_owned(), callers.called.root)
    };
    procedure(&kinds.first) == procedure(&second)
}

impl MixedCalls {
    /// Of a communicator of this name.
    #[must_use]
    pub fn of(communicator: String, mixture: &Mixture) -> Self {
        let minority = mixture.minority();
        let kinds = minority.map_or_else(
            || [Some(mixture.kinds.first), mixture.kinds.second],
            |(few, most)| [Some(few), Some(most)],
        );
        let calls: Vec<MixedCall> = kinds.iter().flatten().map(MixedCall::of).collect();
        let of_one = minority.filter(|(few, _)| few.count == 1 && mixture.size > 2);
        let place = match communicator.is_empty() {
            true => format!("number {}", mixture.number),
            false => format!("number {} on {communicator}", mixture.number),
        };
        let mut text = match &calls[..] {
            [few, most] if minority.is_some() => {
                let (ranks, own, common) = (few.ranks(), few.call(), most.call());
                format!("{ranks} called {own} where {} ranks called {common} ({place})", most.count)
            }
            kinds => {
                let told = |one: &MixedCall| format!("{} {}", one.ranks(), one.call());
                let mut told: Vec<String> = kinds.iter().map(told).collect();
                let counted: u32 = kinds.iter().map(|one| one.count).sum();
                match mixture.size.saturating_sub(counted) {
                    0 => {}
                    1 => told.push("1 rank something else".to_owned()),
                    rest => told.push(format!("{rest} ranks something else")),
                }
                format!("ranks did not call the same: {} ({place})", told.join(", "))
            }
        };
        if mixture.collectives > 1 {
            let more = quantity::whole(u128::from(mixture.collectives - 1));
            text += &format!("; so {more} more collectives there do not fit together");
        }
        Self {
            communicator,
            number: mixture.number,
            collectives: mixture.collectives,
            calls,
            culprit: of_one.map(|(few, _)| few.lowest),
            text,
        }
    }
}

#[cfg(test)]
mod tests {
    use sapwood_profile::Function;
    use sapwood_trace::Called;

    use super::*;

    fn mixed(calls: &[(&str, i32)], collectives: u64) -> MixedCalls {
        let kinds = |(rank, &(name, root)): (u32, &(&str, i32))| {
            let event = Function::named(name).expect("a function of MPI").id << 8;
            Kinds::of(Called { event, root }, rank)
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
        let root = mixed(&[bcast, ("MPI_Bcast", 1), bcast], 1);
        assert_eq!(
            root.text,
            "rank 1 called MPI_Bcast with root 1 where 2 ranks called MPI_Bcast with root 0 \
             (number 41 on MPI_COMM_WORLD)"
        );
    }

    #[test]
    fn the_form_for_large_counts_is_the_same_call() {
        let kinds = |one: (&str, i32), other: (&str, i32)| {
            let of = |(name, root), rank| {
                let event = Function::named(name).expect("a function of MPI").id << 8;
                Kinds::of(Called { event, root }, rank)
            };
            let mut kinds = of(one, 0);
            kinds.merge(&of(other, 1));
            kinds
        };
        assert!(belong_together(&kinds(("MPI_Bcast", 0), ("MPI_Bcast_c", 0))));
        assert!(belong_together(&kinds(("MPI_Bcast", 0), ("MPI_Bcast", 0))));
        assert!(!belong_together(&kinds(("MPI_Bcast", 0), ("MPI_Bcast_c", 1))));
        assert!(!belong_together(&kinds(("MPI_Bcast", 0), ("MPI_Gather", 0))));
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
