//! Which members of a stream are gone, by cause.
//!
//! Owns how the losses of single processes become few entries. What is known of each loss is with
//! `turn`, how an answer names those that it lacks with `outbound`.

use alloc::vec::Vec;

use sapwood_packet::{RankSet, StreamId};
use sapwood_wire::Cause;

use crate::api::application::Application;
use crate::interface::Missing;

/// What is said of members that are gone when their losses have been forgotten.
const FORGOTTEN: &str = "gone; there were too many losses to keep the reason of each";

impl Application<'_> {
    /// Why the members of a stream that are gone are gone: one entry for each cause, as of
    /// [`Missing::fold`], and no member in two.
    #[must_use]
    pub fn missing_members(&self, stream: StreamId) -> Vec<Missing> {
        let Some(open) = self.node.streams.get(stream) else { return Vec::new() };
        let mut left = open.members.clone();
        let mut gone = taken(&mut left, self.node.turn.losses.latest_first());
        if !left.is_empty() && self.is_deserted(stream) {
            gone.push(Missing::new(left, Cause::Other, FORGOTTEN));
        }
        Missing::fold(&gone)
    }
}

/// The losses of these members, each member with the first that names it.
fn taken<'a>(members: &mut RankSet, losses: impl Iterator<Item = &'a Missing>) -> Vec<Missing> {
    let mut gone = Vec::new();
    for lost in losses {
        let mut ranks = lost.ranks.clone();
        ranks.intersect_with(members.as_ref());
        if !ranks.is_empty() {
            members.subtract(ranks.as_ref());
            gone.push(Missing { ranks, ..lost.clone() });
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::*;

    fn lost(ranks: RankSet, cause: Cause, reason: &str) -> Missing {
        Missing::new(ranks, cause, reason)
    }

    fn closed(rank: u32) -> Missing {
        let reason = format!("back-end {rank} is gone: connection closed");
        lost(RankSet::range(rank, rank), Cause::Died, &reason)
    }

    fn lines(members: RankSet, losses: &[Missing]) -> Vec<String> {
        let mut left = members;
        let gone = Missing::fold(&taken(&mut left, losses.iter()));
        gone.iter().map(|part| format!("{}: {}", part.ranks, part.reason)).collect()
    }

    #[test]
    fn losses_of_one_cause_are_one_entry() {
        let losses: Vec<Missing> = (0..4000).rev().map(closed).collect();
        assert_eq!(lines(RankSet::range(10, 5000), &losses), ["10-3999: connection closed"]);
        assert_eq!(
            lines(RankSet::range(7, 7), &losses),
            ["7: back-end 7 is gone: connection closed"],
            "alone it keeps its words"
        );
    }

    #[test]
    fn other_causes_are_entries_of_their_own() {
        let left = |rank: u32| {
            lost(RankSet::range(rank, rank), Cause::Left, &format!("back-end {rank} has left"))
        };
        let subtree = lost(
            RankSet::range(6, 9),
            Cause::Killed { signal: 9 },
            "communication process 20 is gone: connection closed; killed by signal 9",
        );
        let losses = [closed(1), left(2), subtree.clone(), closed(4), left(5)];
        let subtree = format!("6-9: {}", subtree.reason);
        let expected = ["1,4: connection closed", "2,5: has left", subtree.as_str()];
        assert_eq!(lines(RankSet::range(0, 9), &losses), expected);
    }

    #[test]
    fn what_differs_otherwise_is_told_by_its_cause() {
        let reset = "back-end 3 is gone: connection reset";
        let losses = [closed(1), lost(RankSet::range(3, 3), Cause::Died, reset), closed(2)];
        let expected = "1-3: is gone; the first: connection closed";
        assert_eq!(lines(RankSet::range(0, 9), &losses), [expected]);
    }

    #[test]
    fn a_member_that_was_lost_twice_has_the_reason_that_comes_first() {
        let subtree =
            lost(RankSet::range(1, 2), Cause::Silent, "communication process 9 was silent");
        let expected =
            ["1-2: communication process 9 was silent", "3: back-end 3 is gone: connection closed"];
        let losses = [subtree, closed(2), closed(3)];
        assert_eq!(lines(RankSet::range(0, 9), &losses), expected);
    }
}
