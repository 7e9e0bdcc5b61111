//! Collectives in which ranks gave different amounts of data where MPI needs the same of all, in
//! words.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use sapwood_trace::{Callers, Entered, Findings, Minority, Unequal};
use serde::{Deserialize, Serialize};

use crate::mixed_calls::{LISTED_MAX, list, more_collectives, place, ranks};
use crate::mpi_call::function_name;
use crate::quantity;

/// A communicator on which ranks gave different amounts in a collective.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnequalAmounts {
    /// What the communicator is called.
    pub communicator: String,
    /// The number of the first such collective there.
    pub number: u32,
    /// Its function.
    pub function: String,
    /// Such collectives.
    pub collectives: u64,
    /// The amounts of that first one, at most two: that of the minority first, or without a
    /// majority the smaller one.
    pub amounts: Vec<GivenAmount>,
    /// The rank that gave another amount than all others; null where several did, or it is not
    /// known of all ranks what they gave.
    pub culprit: Option<u32>,
    /// The same in words.
    pub text: String,
}

/// Ranks that gave the same amount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenAmount {
    /// How many bytes.
    pub bytes: u32,
    /// How many ranks.
    pub count: u32,
    /// The lowest of them.
    pub lowest: u32,
}

impl GivenAmount {
    const fn of(callers: &Callers<u32>) -> Self {
        Self { bytes: callers.called, count: callers.count, lowest: callers.lowest }
    }

    fn ranks(&self) -> String {
        ranks(self.count, self.lowest)
    }

    fn amount(&self) -> String {
        match self.bytes {
            1 => "1 byte".to_owned(),
            bytes => format!("{} bytes", quantity::whole(bytes.into())),
        }
    }
}

/// Communicators on which ranks gave different amounts, those with most such collectives first;
/// some have entered collectives and do not return. `name` gives what one of an identity and a size
/// is called.
pub(super) fn unequal_amounts(
    findings: &Findings,
    entered: &[Entered],
    name: impl Fn(u64, u32) -> String,
) -> Vec<UnequalAmounts> {
    told_amounts(findings.unequal_amounts_with(entered), name)
}

/// The same of collectives by communicator.
pub(crate) fn told_amounts(
    found: BTreeMap<u64, Unequal>,
    name: impl Fn(u64, u32) -> String,
) -> Vec<UnequalAmounts> {
    let mut all: Vec<(u64, Unequal)> = found.into_iter().collect();
    all.sort_by_key(|(space, one)| (Reverse(one.collectives), *space));
    let told = |(space, one): (u64, Unequal)| UnequalAmounts::of(name(space, one.size), &one);
    all.into_iter().take(LISTED_MAX).map(told).collect()
}

impl UnequalAmounts {
    /// Of a communicator of this name.
    fn of(communicator: String, unequal: &Unequal) -> Self {
        let function = function_name(unequal.function);
        let place = format!("{function} {}", place(unequal.number, &communicator));
        let (amounts, mut text) = match unequal.minority() {
            Some(Minority { few, most }) => {
                let (few, most) = (GivenAmount::of(&few), GivenAmount::of(&most));
                let (who, own, common) = (few.ranks(), few.amount(), most.amount());
                let text =
                    format!("{place}: {who} gave {own} where {} ranks gave {common}", most.count);
                (vec![few, most], text)
            }
            None => {
                let amounts: Vec<_> = unequal.amounts.iter().map(GivenAmount::of).collect();
                let told = amounts.iter().map(|one| format!("{} {}", one.ranks(), one.amount()));
                let named: u32 = amounts.iter().map(|one| one.count).sum();
                let told = list(told, unequal.count.saturating_sub(named), "another amount");
                (amounts, format!("{place}: ranks did not give the same amount: {told}"))
            }
        };
        if let Some(more) = more_collectives(unequal.collectives) {
            text += &format!("; amounts differ in {more}");
        }
        let Unequal { number, collectives, .. } = *unequal;
        let culprit = unequal.culprit();
        Self { communicator, number, function, collectives, amounts, culprit, text }
    }
}

#[cfg(test)]
mod tests {
    use sapwood_profile::Function;
    use sapwood_trace::Kinds;

    use super::*;

    fn told(size: u32, amounts: &[u32], collectives: u64) -> UnequalAmounts {
        let function = Function::named("MPI_Allreduce").expect("a function of MPI").id;
        let mut all = (0..).zip(amounts).map(|(rank, &bytes)| Kinds::of(bytes, rank));
        let mut kinds = all.next().expect("an amount");
        all.for_each(|one| kinds.merge(&one));
        let count = u32::try_from(amounts.len()).expect("few");
        let one = Unequal { number: 12, function, size, count, amounts: kinds, collectives };
        UnequalAmounts::of("row".to_owned(), &one)
    }

    #[test]
    fn the_rank_that_gave_another_amount_is_named() {
        let one = told(4, &[80, 80, 72, 80], 1);
        assert_eq!(
            one.text,
            "MPI_Allreduce number 12 on row: rank 2 gave 72 bytes where 3 ranks gave 80 bytes"
        );
        assert_eq!((one.culprit, one.amounts[0].bytes, one.amounts[1].count), (Some(2), 72, 3));
        let more = told(4, &[1, 8_000, 8_000, 8_000], 19);
        assert_eq!(
            more.text,
            "MPI_Allreduce number 12 on row: rank 0 gave 1 byte where 3 ranks gave 8,000 bytes; \
             amounts differ in 18 more collectives there"
        );
        let several = told(5, &[80, 72, 72, 80, 80], 1);
        assert!(several.text.contains(": 2 ranks (the lowest is 1) gave 72"), "{}", several.text);
        assert_eq!(several.culprit, None);
    }

    #[test]
    fn without_a_majority_no_rank_is_accused() {
        let halves = told(4, &[80, 72, 80, 72], 2);
        assert_eq!(
            halves.text,
            "MPI_Allreduce number 12 on row: ranks did not give the same amount: 2 ranks (the \
             lowest is 1) 72 bytes, 2 ranks (the lowest is 0) 80 bytes; amounts differ in 1 more \
             collective there"
        );
        assert_eq!((halves.culprit, halves.amounts.len()), (None, 2));
        let three = told(4, &[80, 72, 80, 96], 1);
        assert!(three.text.ends_with(" 80 bytes, 1 rank another amount"), "{}", three.text);
        let open = told(3, &[80, 72], 1);
        assert_eq!((open.culprit, open.amounts[0].bytes), (None, 72));
    }
}
