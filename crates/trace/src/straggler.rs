//! Ranks that are inside of a collective in which none is missing, while others have gone on: these
//! wait for them elsewhere, or had left the collective when all processes ended.

use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet};

use crate::instance::Pattern;
use crate::relation::{Progress, Turnout, Waiting, is_joint, members};
use crate::standing::{CallKind, Standing};

/// For each group that waits, those of its targets that wait for none themselves.
pub(crate) fn stragglers(groups: &[Waiting]) -> Vec<RankSet> {
    let mut inside = RankSet::new();
    for group in groups.iter().filter(|group| misses_none(group)) {
        inside.union_with(group.ranks.as_ref());
    }
    let awaited = |group: &Waiting| {
        let mut awaited = group.targets.clone();
        awaited.intersect_with(inside.as_ref());
        awaited
    };
    groups.iter().map(awaited).collect()
}

/// Whether all other members have left the collective in which a group is.
pub(crate) fn is_left_behind(standing: &Standing, group: &Waiting) -> bool {
    if group.place.kind != CallKind::Collective || !misses_none(group) {
        return false;
    }
    let (space, number) = (group.place.space, group.place.number);
    let all = members(standing, space);
    let mut others = all.into_iter().filter(|&rank| !group.ranks.contains(rank)).peekable();
    others.peek().is_some()
        && others.all(|rank| {
            let progress = Progress::of(standing, space, rank);
            progress.part(number, group.place.operation()) == Turnout::Passed
        })
}

/// Those of a group that is left behind which keep it there. A root that gathers from the others
/// waits for those that are inside with it, and for none once they have left.
pub(crate) fn keepers(standing: &Standing, group: &Waiting) -> RankSet {
    let root = group.place.operation().root;
    let root = root.and_then(|root| standing.member(group.place.space, root));
    let gathers = |rank: &Rank| {
        let call = standing.postures.get(rank).and_then(|posture| posture.call);
        group.ranks.contains(*rank) && call.is_some_and(|call| call.pattern == Pattern::ToRoot)
    };
    let Some(root) = root.filter(gathers) else { return group.ranks.clone() };
    let others = group.ranks.difference(RankSet::range(root, root).as_ref());
    if others.is_empty() { group.ranks.clone() } else { others }
}

/// Whether a group is in a collective call that all members have entered or left.
fn misses_none(group: &Waiting) -> bool {
    is_joint(group.place.kind)
        && group.place.number > 0
        && group.is_known
        && group.targets.is_empty()
        && group.also.is_empty()
}
