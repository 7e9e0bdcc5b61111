//! Transfers down a tree, reductions up a tree, and the calls of the application that are made of
//! them; which virtual nodes they have not reached, and why.

mod agreement;
mod broken;
mod call;
mod combine;
mod counts;
mod defined;
mod deliver;
mod finished;
mod fold;
mod grace;
mod lane;
mod open;
mod part;
mod repair;
mod result;

use alloc::vec::Vec;

use sapwood_packet::RankSet;

pub(crate) use call::Pending;
pub use combine::{Element, Operation, contributions};
pub use counts::{PartCount, ReduceCounts};
pub(crate) use defined::Definitions;
pub use defined::{Definition, FoldFailed, OperationId};
pub(crate) use finished::Finished;
pub(crate) use fold::{EarlyPart, Fold};
pub(crate) use grace::Grace;
pub use grace::{GraceDelay, GraceKey};
pub(crate) use lane::Lane;
pub(crate) use open::Opening;

use crate::error::Reason;

/// Adds virtual nodes that are missing for a reason.
fn add_reason(all: &mut Vec<(RankSet, Reason)>, names: RankSet, reason: Reason) {
    if names.is_empty() {
        return;
    }
    match all.iter_mut().find(|entry| entry.1 == reason) {
        Some(entry) => entry.0.union_with(names.as_ref()),
        None => all.push((names, reason)),
    }
}

/// Gives each virtual node to the first of several causes that has it. What none has is the rest.
fn by_first_cause(
    rest: &mut RankSet,
    causes: impl IntoIterator<Item = (RankSet, Reason)>,
) -> Vec<(RankSet, Reason)> {
    let mut found = Vec::new();
    for (mut names, reason) in causes {
        names.intersect_with(rest.as_ref());
        rest.subtract(names.as_ref());
        add_reason(&mut found, names, reason);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_virtual_node_goes_to_the_first_cause_that_has_it() {
        let set = |text: &str| text.parse::<RankSet>().expect("a set");
        let causes = [
            (set("1-3"), Reason::Left),
            (set("9"), Reason::Mismatch),
            (set("2-5"), Reason::Dead),
            (set("5-7"), Reason::Left),
        ];
        let mut rest = set("0-6");
        let found = by_first_cause(&mut rest, causes);
        assert_eq!(found, [(set("1-3,6"), Reason::Left), (set("4-5"), Reason::Dead)]);
        assert_eq!(rest, set("0"));
    }
}
