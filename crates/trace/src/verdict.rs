//! Why ranks wait: those that do not come, those that differ from the majority, or a ring.
//!
//! From each place where ranks wait the waits are followed to their ends. An end is a rank that
//! does not wait itself: it is stopped, lost, has left MPI, computes, sleeps or polls. Where waits
//! lead back to themselves the calls do not fit together, and the fewest ranks that would have had
//! to act otherwise are named: on each communicator in the circle those that have not entered, or
//! that have called another operation than most of its members. Of equally few, the ranks that
//! have the least in common with the others. If that does not decide, all of the ring are named.
//! Where it is not known for which others ranks wait, as in `MPI_Waitall` for several messages, and
//! all others have stood still outside of MPI, these are named; where the requests are known, and
//! none but receives, those of their senders that do not wait, if these stand still. Where a rank
//! that has died or is stopped is an end, calls that contradict each other are named before it:
//! they were there before, and it may be only a victim of them.
//!
//! Where files of ranks cannot be read, nothing is said that these may contradict: no majority is
//! reported that they could turn, and no end of waits that may be for them alone.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use sapwood_packet::{Rank, RankSet};

use crate::deviation::{Deviation, deviations};
use crate::relation::{
    Operation, Place, Progress, Turnout, Waiting, ends_early, is_joint, members, waiting, waits,
};
use crate::standing::{CallKind, ENDING, Posture, Presence, Source, Standing};
use crate::straggler::{is_left_behind, keepers, stragglers};

/// What a rank does that others wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Its process has ended without a word.
    Lost,
    /// In `MPI_Finalize`.
    Finalizing,
    /// It has left MPI.
    Ended,
    /// It calls this function, a test or a probe, over and over, and no other.
    Polling(u32),
    /// It computes outside of MPI.
    Computing,
    /// It waits for the system outside of MPI.
    Sleeping,
    /// It waits for a lock of its process outside of MPI.
    Locked,
    /// It runs, and makes other calls.
    Running,
    /// It was never seen.
    Unseen,
    /// It waits as well, and is named among those that do.
    Waiting,
}

/// In what a rank differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// It has not entered the collective in which others wait: it has made as many there.
    Missed(u32),
    /// It is in another operation, or has been, than most members.
    Operation(Operation, Operation),
    /// It is in another operation, or has been, than those that wait, and these are not most.
    Unlike(Operation, Operation),
    /// The message for which others wait is not sent, or not taken.
    Message,
    /// It has the lock on a part of a window that others want.
    Lock,
    /// One of its other threads waits for a lock outside of MPI, and may be the one that others
    /// wait for.
    Thread,
    /// The same, and the thread that holds the lock is the one that waits in MPI.
    HeldLock,
    /// It is in a collective that all other members have left.
    Left,
    /// Others wait for it, and it is not known in what.
    Unknown,
}

/// Ranks that are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Odd {
    /// These.
    pub ranks: RankSet,
    /// What they do.
    pub doing: Doing,
    /// Where others wait for them.
    pub place: Place,
    /// In what they differ from those that wait there.
    pub difference: Difference,
    /// How long the one has done so that began first, in nanoseconds.
    pub for_ns: u64,
    /// All ranks that wait for them, also through others.
    pub held: RankSet,
}

/// What holds the waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// Ranks that do not come; they may yet, unless they are stopped or gone.
    Absent,
    /// Ranks that differ from the majority.
    Deviation,
    /// Each waits for the next one.
    Ring,
    /// Members of a communicator are in two operations, as many in the one as in the other.
    Split,
    /// All members are inside, in the same operation.
    NoneMissing,
    /// It is not known for which ranks they wait.
    Unknown,
}

/// What is found in one circle of waits.
struct CircleVerdict {
    finding: Finding,
    odd: Vec<Odd>,
    ring: Vec<Rank>,
}

impl CircleVerdict {
    const fn of(finding: Finding, odd: Vec<Odd>) -> Self {
        Self { finding, odd, ring: Vec::new() }
    }

    const fn of_ring(ring: Vec<Rank>) -> Self {
        Self { finding: Finding::Ring, odd: Vec::new(), ring }
    }
}

/// Why ranks wait at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The main finding.
    pub finding: Finding,
    /// The ranks that are named, those that hold most others first; before all of them those whose
    /// calls did not fit before others died or were stopped.
    pub odd: Vec<Odd>,
    /// Of a ring, each waits for the one behind it; the last one for the first.
    pub ring: Vec<Rank>,
    /// All that wait.
    pub waiting: Vec<Waiting>,
    /// How long the last of them has waited, in nanoseconds.
    pub lasts_ns: u64,
    /// Ranks that were never seen.
    pub unseen: u32,
}

impl Verdict {
    /// What a moment shows; none if no rank has waited in one call for as long as this.
    #[must_use]
    pub fn of(standing: &Standing, long_ns: u64) -> Option<Self> {
        let mut waiting = waiting(standing, long_ns);
        waiting.sort_by_key(|one| (Reverse(one.ranks.len()), one.ranks.as_ref().first()));
        if waiting.is_empty() {
            return None;
        }
        let graph = Graph::of(standing, &waiting);
        let mut odd = graph.named_ends(&graph.ends, standing, long_ns);
        if standing.source == Source::FilesOfEnded {
            // Each was alone there when it ended; of one that lives its data may be on its way.
            odd.extend(graph.left_behind(standing));
        }
        let mut finding = Finding::Absent;
        let mut ring = Vec::new();
        for circle in graph.circles() {
            let found = graph.judge(standing, &circle);
            finding = if odd.is_empty() { found.finding } else { finding };
            odd.extend(found.odd);
            if ring.is_empty() {
                ring = found.ring;
            }
        }
        if odd.is_empty() && finding == Finding::Absent {
            odd = graph.named_ends(&graph.still_ends(standing, long_ns), standing, long_ns);
        }
        if odd.is_empty() && finding == Finding::Absent {
            odd = graph.named_ends(&stragglers(&waiting), standing, long_ns);
        }
        if odd.is_empty() && finding == Finding::Absent {
            odd = graph.named_idle(standing, long_ns);
        }
        if odd.is_empty() && finding == Finding::Absent {
            let is_known = waiting.iter().all(|one| one.is_known);
            finding = if is_known { Finding::NoneMissing } else { Finding::Unknown };
        }
        odd.sort_by_key(|one| (Reverse(one.held.len()), one.ranks.as_ref().first()));
        let contradicting = graph.contradicting(standing, &odd);
        if !contradicting.is_empty() {
            finding = Finding::Deviation;
            odd.splice(0..0, contradicting);
        }
        // Those that make tests have been in none of them for long.
        let long = waiting.iter().map(|one| one.shortest_ns).filter(|&ns| ns >= long_ns);
        let lasts_ns = long.min().unwrap_or(0);
        let seen = u32::try_from(standing.postures.len()).unwrap_or(u32::MAX);
        let unseen = standing.world_size.saturating_sub(seen);
        Some(Self { finding, odd, ring, waiting, lasts_ns, unseen })
    }

    /// The ranks that are named.
    #[must_use]
    pub fn culprits(&self) -> RankSet {
        let mut all: RankSet = self.ring.iter().copied().collect();
        self.odd.iter().for_each(|one| all.union_with(one.ranks.as_ref()));
        all
    }

    /// Whether all ranks waited in collectives, and these have returned since, by where the ranks
    /// stand later.
    #[must_use]
    pub fn has_passed(&self, later: &Standing) -> bool {
        let has_returned = |group: &Waiting, rank: Rank| {
            let seat = later.seats.get(&(group.place.space, rank));
            seat.is_some_and(|seat| !seat.is_number_lost && seat.made >= group.place.number)
        };
        self.waiting.iter().all(|group| {
            group.place.kind == CallKind::Collective
                && group.ranks.iter().all(|rank| has_returned(group, rank))
        })
    }

    /// Whether another one says the same, but for the times.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let named = |one: &Self| -> Vec<(RankSet, Difference)> {
            one.odd.iter().map(|odd| (odd.ranks.clone(), odd.difference)).collect()
        };
        let places = |one: &Self| -> Vec<(Place, RankSet)> {
            one.waiting.iter().map(|group| (group.place, group.ranks.clone())).collect()
        };
        self.finding == other.finding
            && self.ring == other.ring
            && named(self) == named(other)
            && places(self) == places(other)
    }
}

/// Groups of ranks that wait, and the groups for which they do.
struct Graph<'a> {
    groups: &'a [Waiting],
    /// Those that each one waits for and that do not wait.
    ends: Vec<RankSet>,
    /// The same of those that each one may wait for, too.
    may_ends: Vec<RankSet>,
    /// All groups that each one waits for, also through others.
    reach: Vec<BTreeSet<usize>>,
    /// The same with the groups that each one may wait for, too.
    may_reach: Vec<BTreeSet<usize>>,
}

impl<'a> Graph<'a> {
    fn of(standing: &Standing, groups: &'a [Waiting]) -> Self {
        let mut group_of = BTreeMap::new();
        for (number, group) in groups.iter().enumerate() {
            group_of.extend(group.ranks.iter().map(|rank| (rank, number)));
        }
        let mut next = vec![BTreeSet::new(); groups.len()];
        let mut ends = vec![RankSet::new(); groups.len()];
        let mut may_next = next.clone();
        let mut may_ends = ends.clone();
        for (number, group) in groups.iter().enumerate() {
            for target in group.targets.iter() {
                match group_of.get(&target) {
                    Some(&other) => _ = next[number].insert(other),
                    None => ends[number].insert(target),
                }
            }
            for target in group.also.iter() {
                match group_of.get(&target) {
                    // It may have come long ago, so that nothing is concluded from this.
                    Some(_) if group.open.is_some() => {}
                    Some(&other) => _ = may_next[number].insert(other),
                    None => may_ends[number].insert(target),
                }
            }
            // A rank that was never seen is one of those that a communicator lacks; of kept files
            // only the files may be lost.
            let is_seen_by_tree = standing.source == Source::Tree;
            let is_unseen_late = !group.is_known && group.targets.is_empty() && is_seen_by_tree;
            if is_unseen_late && is_all(standing, &group.place) {
                let all = RankSet::range(0, standing.world_size.saturating_sub(1));
                let seen: RankSet = standing.postures.keys().copied().collect();
                ends[number].union_with(all.difference(seen.as_ref()).as_ref());
            }
        }
        let reach = (0..groups.len()).map(|from| reached(&next, from)).collect();
        may_next.iter_mut().zip(next).for_each(|(may, certain)| may.extend(certain));
        let may_reach = (0..groups.len()).map(|from| reached(&may_next, from)).collect();
        Self { groups, ends, may_ends, reach, may_reach }
    }

    /// Ranks of these that do not wait and that others wait for, by what they do.
    fn named_ends(&self, ends: &[RankSet], standing: &Standing, long_ns: u64) -> Vec<Odd> {
        let mut named: BTreeMap<(Doing, Place, Difference), Odd> = BTreeMap::new();
        let mut all = RankSet::new();
        let mut common: BTreeMap<Place, bool> = BTreeMap::new();
        ends.iter().for_each(|ends| all.union_with(ends.as_ref()));
        for rank in all.iter() {
            let direct = (0..self.groups.len()).filter(|&one| ends[one].contains(rank));
            let Some(first) = direct.max_by_key(|&one| self.groups[one].ranks.len()) else {
                continue;
            };
            let place = self.groups[first].place;
            let doing = doing(standing, rank, long_ns);
            let is_common = || *common.entry(place).or_insert_with(|| is_common(standing, &place));
            let difference = difference(standing, rank, &place, is_common);
            let for_ns = standing.postures.get(&rank).map_or(0, Posture::doing_ns);
            let held = self.held(&RankSet::range(rank, rank));
            let one = named.entry((doing, place, difference)).or_insert_with(|| Odd {
                ranks: RankSet::new(),
                doing,
                place,
                difference,
                for_ns,
                held: RankSet::new(),
            });
            one.ranks.insert(rank);
            one.for_ns = one.for_ns.max(for_ns);
            one.held.union_with(held.as_ref());
        }
        named.into_values().collect()
    }

    /// Those that each group may wait for, too, and that do not wait. Of those that are to send one
    /// of several messages all, if they stand still: one that does not may be about to send.
    fn still_ends(&self, standing: &Standing, long_ns: u64) -> Vec<RankSet> {
        let is_still = |rank: Rank| {
            let posture = standing.postures.get(&rank);
            posture.is_some_and(|posture| stands_still(posture, long_ns))
        };
        let ends = self.groups.iter().zip(&self.may_ends).map(|(group, ends)| {
            let is_told = group.open.as_ref().is_none_or(|open| {
                open.is_complete && standing.source == Source::Tree && ends.iter().all(is_still)
            });
            if is_told { ends.clone() } else { RankSet::new() }
        });
        ends.collect()
    }

    /// Where it is not known for which others ranks wait, those that do not wait, if all of these
    /// have stood still for this time and they are not most: none but they can act.
    fn named_idle(&self, standing: &Standing, long_ns: u64) -> Vec<Odd> {
        let waiting: RankSet = self.groups.iter().flat_map(|group| group.ranks.iter()).collect();
        let idle = standing.postures.iter().filter(|(rank, _)| !waiting.contains(**rank));
        let is_still = idle.clone().all(|(_, posture)| stands_still(posture, long_ns));
        let idle: RankSet = idle.map(|(&rank, _)| rank).collect();
        let is_seen = standing.source == Source::Tree
            && standing.postures.len() >= standing.world_size as usize;
        if !is_seen || !is_still || idle.len() > waiting.len() {
            return Vec::new();
        }
        let ends = |group: &Waiting| match &group.open {
            _ if !waits_for_any(group) => RankSet::new(),
            Some(open) if open.is_complete => {
                let mut senders = idle.clone();
                senders.intersect_with(group.also.as_ref());
                senders
            }
            _ => idle.clone(),
        };
        let ends: Vec<RankSet> = self.groups.iter().map(ends).collect();
        let held = self.groups.iter().zip(&ends).filter(|(_, ends)| !ends.is_empty());
        let held: RankSet = held.flat_map(|(group, _)| group.ranks.iter()).collect();
        let named = self.named_ends(&ends, standing, long_ns);
        named.into_iter().map(|one| Odd { held: held.clone(), ..one }).collect()
    }

    /// Ranks that are in a collective which all other members have left.
    fn left_behind(&self, standing: &Standing) -> Vec<Odd> {
        let groups = self.groups.iter().filter(|group| is_left_behind(standing, group));
        let named = groups.map(|group| {
            let ranks = keepers(standing, group);
            self.named(standing, ranks, group.place, Difference::Left)
        });
        named.collect()
    }

    /// All ranks that wait for some, also through others.
    fn held(&self, ranks: &RankSet) -> RankSet {
        let those_that = |wait_for: fn(&Waiting) -> &RankSet| -> BTreeSet<usize> {
            let is_one =
                |&one: &usize| wait_for(&self.groups[one]).as_ref().intersects(ranks.as_ref());
            (0..self.groups.len()).filter(is_one).collect()
        };
        let (mut direct, mut reach) = (those_that(|group| &group.targets), &self.reach);
        if direct.is_empty() {
            (direct, reach) = (those_that(|group| &group.also), &self.may_reach);
        }
        let mut held = RankSet::new();
        for (number, group) in self.groups.iter().enumerate() {
            if direct.contains(&number) || !reach[number].is_disjoint(&direct) {
                held.union_with(group.ranks.as_ref());
            }
        }
        held.difference(ranks.as_ref())
    }

    /// Sets of groups that wait for one another and for no other.
    fn circles(&self) -> Vec<BTreeSet<usize>> {
        let mut circles = BTreeSet::new();
        for (number, reach) in self.may_reach.iter().enumerate() {
            let leads_back = |&other: &usize| self.may_reach[other].contains(&number);
            let has_end = reach
                .iter()
                .any(|&other| !self.ends[other].is_empty() || !self.may_ends[other].is_empty());
            if reach.contains(&number) && reach.iter().all(leads_back) && !has_end {
                circles.insert(reach.clone());
            }
        }
        circles.into_iter().collect()
    }

    /// The ranks of a circle that are to be named.
    fn judge(&self, standing: &Standing, circle: &BTreeSet<usize>) -> CircleVerdict {
        let inside: Vec<&Waiting> = circle.iter().map(|&one| &self.groups[one]).collect();
        if let Some(holder) = self.lock_holders(standing, &inside) {
            return CircleVerdict::of(Finding::Deviation, vec![holder]);
        }
        let all = deviations(standing, &inside, self.groups);
        let best = all.iter().filter(|one| one.is_sure).map(Deviation::weight).min();
        // With the files that cannot be read it may be the one that explains more.
        let is_rival = |one: &Deviation| {
            let is_more = one.common.is_some();
            let is_less = best.is_none_or(|best| best.0 && (is_more || one.odd.len() <= best.1));
            !one.is_sure && is_less
        };
        if all.iter().any(is_rival) {
            return CircleVerdict::of(Finding::Unknown, Vec::new());
        }
        let Some(best) = best else {
            return CircleVerdict::of_ring(self.ring(circle));
        };
        let is_tied = all.iter().filter(|one| one.odd.len() == best.1).count() > 1;
        let mut least = all.into_iter().filter(|one| one.is_sure && one.weight() == best);
        let (first, second) = (least.next(), least.next());
        let is_mismatch = first.as_ref().is_some_and(Deviation::is_mismatch);
        if let Some(blocked) = self.blocked(standing, &inside, is_tied).filter(|_| !is_mismatch) {
            return CircleVerdict::of(Finding::Deviation, vec![blocked]);
        }
        let Some(one) = first.filter(|_| second.is_none()) else {
            return CircleVerdict::of_ring(self.ring(circle));
        };
        let finding = if one.is_split { Finding::Split } else { Finding::Deviation };
        CircleVerdict::of(finding, self.deviating(standing, &one))
    }

    /// Ranks that do not fit together with others, by the way in which they do not.
    fn deviating(&self, standing: &Standing, one: &Deviation) -> Vec<Odd> {
        let mut named: BTreeMap<Difference, RankSet> = BTreeMap::new();
        for rank in one.odd.iter() {
            let unlike = one.common.and_then(|common| {
                Some(Difference::Operation(operation(standing, rank, &one.place)?, common))
            });
            let difference =
                unlike.unwrap_or_else(|| difference(standing, rank, &one.place, || false));
            named.entry(difference).or_default().insert(rank);
        }
        let held = self.held(&one.odd);
        let odd = named.into_iter().map(|(difference, ranks)| Odd {
            held: held.clone(),
            ..self.named(standing, ranks, one.place, difference)
        });
        odd.collect()
    }

    /// Where others have died or are stopped, ranks that called another operation than most in a
    /// collective that not all have left, but for those that are named with it already.
    fn contradicting(&self, standing: &Standing, named: &[Odd]) -> Vec<Odd> {
        if !named.iter().any(|one| matches!(one.doing, Doing::Lost | Doing::Stopped)) {
            return Vec::new();
        }
        // Of a rank that has lost its number, or is in a call that is not counted with the
        // collectives of its communicator, it is not known in which of these it is.
        let is_counted = |space: u64, rank: Rank| {
            let posture = standing.postures.get(&rank);
            let call = posture.and_then(|posture| posture.call).filter(|call| call.space == space);
            !Progress::of(standing, space, rank).is_number_lost
                && call.is_none_or(|call| is_collective(call.kind) || !is_joint(call.kind))
        };
        let is_sure = |group: &&Waiting| {
            let Place { kind, space, .. } = group.place;
            let members = members(standing, space);
            is_collective(kind) && members.into_iter().all(|rank| is_counted(space, rank))
        };
        let groups: Vec<&Waiting> = self.groups.iter().filter(is_sure).collect();
        let is_named = |one: &Odd| {
            named.iter().any(|told| {
                (told.place.space, told.place.number) == (one.place.space, one.place.number)
                    && matches!(told.difference, Difference::Operation(..) | Difference::Unlike(..))
                    && told.ranks.as_ref().intersects(one.ranks.as_ref())
            })
        };
        let found = deviations(standing, &groups, self.groups);
        let mismatches = found.iter().filter(|one| one.is_mismatch() && one.is_sure);
        let odd = mismatches.flat_map(|one| self.deviating(standing, one));
        odd.filter(|one| !is_named(one)).collect()
    }

    /// Ranks that wait while they have a lock for which others wait.
    fn lock_holders(&self, standing: &Standing, inside: &[&Waiting]) -> Option<Odd> {
        let lock = inside.iter().find(|one| one.place.kind == CallKind::Lock)?;
        Some(self.named(standing, lock.targets.clone(), lock.place, Difference::Lock))
    }

    /// Ranks of a circle that have another thread that waits for a lock, if not all have: a lock
    /// that the thread in the call holds, or, where nothing else decides, any.
    fn blocked(&self, standing: &Standing, inside: &[&Waiting], is_tied: bool) -> Option<Odd> {
        let all: RankSet = inside.iter().flat_map(|one| one.ranks.iter()).collect();
        let those = |has: fn(&Posture) -> bool| -> Option<RankSet> {
            let has = |rank: &Rank| standing.postures.get(rank).is_some_and(has);
            let some: RankSet = all.iter().filter(has).collect();
            (!some.is_empty() && some.len() < all.len()).then_some(some)
        };
        let (blocked, difference) = match those(|posture| posture.is_locked) {
            Some(ranks) => (ranks, Difference::HeldLock),
            None if is_tied => (those(|posture| posture.blocked_threads > 0)?, Difference::Thread),
            None => return None,
        };
        let waits_for = |one: &&&Waiting| one.targets.as_ref().intersects(blocked.as_ref());
        let place = inside.iter().find(waits_for)?.place;
        Some(self.named(standing, blocked, place, difference))
    }

    /// Ranks of a circle that are to be named.
    fn named(
        &self,
        standing: &Standing,
        ranks: RankSet,
        place: Place,
        difference: Difference,
    ) -> Odd {
        let posture = |rank| standing.postures.get(&rank).map_or(0, |posture| posture.for_ns);
        let for_ns = ranks.iter().map(posture).max().unwrap_or(0);
        let held = self.held(&ranks);
        Odd { ranks, doing: Doing::Waiting, place, difference, for_ns, held }
    }

    /// One way around a circle.
    fn ring(&self, circle: &BTreeSet<usize>) -> Vec<Rank> {
        let mut path = Vec::new();
        let first = circle.iter().filter_map(|&one| self.groups[one].ranks.as_ref().first()).min();
        let Some(mut rank) = first else { return path };
        while !path.contains(&rank) {
            path.push(rank);
            let group = circle.iter().find(|&&one| self.groups[one].ranks.contains(rank));
            let targets = group.map(|&one| &self.groups[one].targets);
            let Some(next) = targets
                .and_then(|targets| targets.iter().find(|target| self.is_inside(circle, *target)))
            else {
                break;
            };
            rank = next;
        }
        let begin = path.iter().position(|&one| one == rank).unwrap_or(0);
        path.split_off(begin)
    }

    fn is_inside(&self, circle: &BTreeSet<usize>, rank: Rank) -> bool {
        circle.iter().any(|&one| self.groups[one].ranks.contains(rank))
    }
}

/// Whether a rank that does not wait makes nothing but tests, or has been outside of MPI for this
/// time, or will not go on.
fn stands_still(posture: &Posture, long_ns: u64) -> bool {
    match posture.presence {
        Presence::Stopped | Presence::Lost | Presence::Finalizing | Presence::Ended => true,
        _ if posture.is_polling => true,
        Presence::Computing | Presence::Sleeping => {
            posture.only_call().is_none() && posture.doing_ns() >= long_ns
        }
        Presence::Running => false,
    }
}

/// Whether a group waits for others, and it is not known for which. A call of another kind may wait
/// for none.
fn waits_for_any(group: &Waiting) -> bool {
    let waits = matches!(
        group.place.kind,
        CallKind::Wait | CallKind::Collective | CallKind::Creation | CallKind::Receive
    );
    waits && !group.is_known && group.targets.is_empty() && group.place.space != ENDING
}

fn is_collective(kind: CallKind) -> bool {
    kind == CallKind::Collective
}

fn reached(next: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let mut is_seen = vec![false; next.len()];
    let mut open: Vec<usize> = next[from].iter().copied().collect();
    while let Some(one) = open.pop() {
        if !core::mem::replace(&mut is_seen[one], true) {
            open.extend(next[one].iter().copied());
        }
    }
    is_seen.into_iter().enumerate().filter(|(_, is_seen)| *is_seen).map(|(one, _)| one).collect()
}

/// Whether a place is of all ranks of the program.
fn is_all(standing: &Standing, place: &Place) -> bool {
    let mut members = standing.members(place.space);
    standing.world_size > 0 && members.any(|(_, seat)| seat.size == standing.world_size)
}

fn doing(standing: &Standing, rank: Rank, long_ns: u64) -> Doing {
    let Some(posture) = standing.postures.get(&rank) else { return Doing::Unseen };
    match posture.presence {
        Presence::Stopped => Doing::Stopped,
        Presence::Lost => Doing::Lost,
        Presence::Finalizing if ends_early(standing) => Doing::Finalizing,
        Presence::Ended => Doing::Ended,
        _ if posture.is_polling => Doing::Polling(posture.polled),
        _ if waits(posture, long_ns) => Doing::Waiting,
        Presence::Computing if posture.only_call().is_none() => Doing::Computing,
        Presence::Sleeping if posture.call.is_none() && posture.is_locked => Doing::Locked,
        Presence::Sleeping if posture.call.is_none() => Doing::Sleeping,
        _ => Doing::Running,
    }
}

/// In what a rank differs from those that wait for it at a place; `is_common` says whether their
/// operation is that of most.
fn difference(
    standing: &Standing,
    rank: Rank,
    place: &Place,
    is_common: impl FnOnce() -> bool,
) -> Difference {
    if place.kind == CallKind::Lock {
        return Difference::Lock;
    }
    if place.number == 0 {
        let is_message = !matches!(place.side, crate::standing::Side::None);
        return if is_message { Difference::Message } else { Difference::Unknown };
    }
    if !standing.postures.contains_key(&rank) {
        return Difference::Unknown;
    }
    let progress = Progress::of(standing, place.space, rank);
    match progress.part(place.number, place.operation()) {
        // It is there, or may be, and does not go on.
        Turnout::Inside | Turnout::Unknown => Difference::Unknown,
        Turnout::Differs(own) if is_common() => Difference::Operation(own, place.operation()),
        Turnout::Differs(own) => Difference::Unlike(own, place.operation()),
        // How many it has made says nothing then.
        Turnout::Passed | Turnout::Absent if progress.is_number_lost => Difference::Unknown,
        Turnout::Passed | Turnout::Absent => Difference::Missed(progress.made),
    }
}

/// Whether more members of a place are inside of its operation than are, or were, in another one,
/// or may be by files that cannot be read.
fn is_common(standing: &Standing, place: &Place) -> bool {
    let (mut same, mut others) = (0, standing.unread_members(place.space));
    for rank in members(standing, place.space) {
        match Progress::of(standing, place.space, rank).part(place.number, place.operation()) {
            Turnout::Differs(_) => others += 1,
            Turnout::Inside => same += 1,
            Turnout::Passed | Turnout::Absent | Turnout::Unknown => {}
        }
    }
    same > others
}

/// The operation with which a rank is, or was, in the collective of a place.
fn operation(standing: &Standing, rank: Rank, place: &Place) -> Option<Operation> {
    crate::deviation::operation(standing, rank, place.space, place.number)
}
