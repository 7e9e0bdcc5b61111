//! The ways in which ranks that wait for one another do not fit together: per collective those
//! that have not entered it or call another operation, per message the other side.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;

use sapwood_packet::{Rank, RankSet};

use crate::relation::{Operation, Place, Progress, Waiting, members};
use crate::standing::{CallKind, Standing};

/// One way in which ranks do not fit together.
#[derive(Clone, Debug)]
pub(crate) struct Deviation {
    /// Where.
    pub(crate) place: Place,
    /// The ranks that would have had to act otherwise.
    pub(crate) odd: RankSet,
    /// What most members call, if some call another operation.
    pub(crate) common: Option<Operation>,
    /// Whether no operation is that of most.
    pub(crate) is_split: bool,
    /// Whether members whose files cannot be read change nothing of it.
    pub(crate) is_sure: bool,
    /// Ranks that wait there for these.
    waiters: u64,
    /// What the odd ones have in common with other ranks that wait: their communicator, and its
    /// function.
    company: (usize, usize),
}

impl Deviation {
    /// The less, the better it explains. That calls contradict those of most members is an error
    /// of the program whatever comes of it; a rank that is absent may be so as its victim.
    pub(crate) fn weight(&self) -> (bool, u64, (usize, usize), Reverse<u64>) {
        (!self.is_mismatch(), self.odd.len(), self.company, Reverse(self.waiters))
    }

    /// Whether some members call another operation than most do.
    pub(crate) const fn is_mismatch(&self) -> bool {
        self.common.is_some() && !self.is_split
    }
}

/// The deviations of ranks that wait for one another; `all` are those that wait anywhere.
pub(crate) fn deviations(
    standing: &Standing,
    inside: &[&Waiting],
    all: &[Waiting],
) -> Vec<Deviation> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    // Which of its two messages holds an exchange is not known.
    let known = inside.iter().filter(|group| group.place.kind != CallKind::Exchange);
    for group in known {
        let Place { space, number, .. } = group.place;
        let is_joint = number > 0 && !is_crossed(group, inside);
        if is_joint && !seen.insert((space, number)) {
            continue;
        }
        let mut one = if is_joint {
            joint(standing, group, inside, all)
        } else {
            Deviation {
                place: group.place,
                odd: group.targets.clone(),
                common: None,
                is_split: false,
                is_sure: number == 0 || standing.unread_members(space) == 0,
                waiters: group.ranks.len(),
                company: (0, 0),
            }
        };
        if !one.odd.is_empty() {
            one.company = company(&one.odd, all);
            found.push(one);
        }
    }
    found
}

/// Whether a group waits for ranks that wait in the same place, as those do that are in one call
/// on two windows: each group lacks the other, and both have made as many calls.
fn is_crossed(group: &Waiting, inside: &[&Waiting]) -> bool {
    let targets = group.targets.as_ref();
    inside.iter().any(|one| one.place == group.place && one.ranks.as_ref().intersects(targets))
}

/// Of a collective.
fn joint(standing: &Standing, group: &Waiting, inside: &[&Waiting], all: &[Waiting]) -> Deviation {
    let Place { space, number, .. } = group.place;
    let is_here = |one: &Waiting| one.place.space == space && one.place.number == number;
    let mut by_operation: BTreeMap<Operation, RankSet> = BTreeMap::new();
    for rank in members(standing, space) {
        if let Some(operation) = operation(standing, rank, space, number) {
            by_operation.entry(operation).or_default().insert(rank);
        }
    }
    let unread = standing.unread_members(space) as u64;
    let waiters = |odd: &RankSet| {
        let here = all.iter().filter(|one| is_here(one));
        here.map(|one| one.ranks.difference(odd.as_ref()).len()).sum()
    };
    if by_operation.len() < 2 {
        let mut odd = RankSet::new();
        for one in inside.iter().filter(|one| is_here(one)) {
            odd.union_with(one.targets.as_ref());
            odd.union_with(one.also.as_ref());
        }
        let waiters = waiters(&odd);
        let (place, common, is_split, is_sure) = (group.place, None, false, unread == 0);
        return Deviation { place, odd, common, is_split, is_sure, waiters, company: (0, 0) };
    }
    let most = by_operation.values().map(RankSet::len).max().unwrap_or(0);
    let mut largest = by_operation.iter().filter(|(_, ranks)| ranks.len() == most);
    let common = largest.next().map(|(operation, _)| *operation);
    let is_split = largest.next().is_some();
    let others = by_operation.iter().filter(|(operation, _)| Some(**operation) != common);
    let second = others.map(|(_, ranks)| ranks.len()).max().unwrap_or(0);
    let is_sure = unread == 0 || most > second + unread;
    let mut odd = RankSet::new();
    for (operation, ranks) in &by_operation {
        if is_split || Some(*operation) != common {
            odd.union_with(ranks.as_ref());
        }
    }
    // The place of those that are in the right one.
    let fits = |one: &&Waiting| is_here(one) && Some(one.place.operation()) == common;
    let place = all.iter().find(fits).map_or(group.place, |one| one.place);
    let waiters = waiters(&odd);
    Deviation { place, odd, common, is_split, is_sure, waiters, company: (0, 0) }
}

/// The operation with which a rank is, or was, in a collective, if that is known.
pub(crate) fn operation(
    standing: &Standing,
    rank: Rank,
    space: u64,
    number: u32,
) -> Option<Operation> {
    Progress::of(standing, space, rank).operation(number)
}

/// How many others wait on the communicators of some ranks, and in their functions there.
fn company(odd: &RankSet, all: &[Waiting]) -> (usize, usize) {
    let (mut on_communicator, mut in_function) = (0, 0);
    for rank in odd.iter() {
        let Some(own) = all.iter().find(|one| one.ranks.contains(rank)) else { continue };
        for other in all {
            let others = usize::try_from(other.ranks.len()).unwrap_or(usize::MAX)
                - usize::from(other.ranks.contains(rank));
            if other.place.space == own.place.space {
                on_communicator += others;
                in_function += others * usize::from(other.place.function == own.place.function);
            }
        }
    }
    (on_communicator, in_function)
}
