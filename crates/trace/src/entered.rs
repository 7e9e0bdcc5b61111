//! Ranks that are in a collective, or have died there, and what they gave to it: no record says so,
//! as none is written before a call returns. Most calls with another amount than that of the others
//! end in this way, by the library's own abort.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;

use sapwood_packet::Rank;

use crate::instance::Pattern;
use crate::mixture::{Called, Kinds, Unfinished};
use crate::standing::{Posture, Presence, Side, Standing, Standpoint};
use crate::verdict::Verdict;

/// A rank that has entered a collective and does not return from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// The communicator.
    pub space: u64,
    /// The number of the collective there.
    pub number: u32,
    /// Processes of the communicator.
    pub size: u32,
    /// The rank, in `MPI_COMM_WORLD`.
    pub rank: Rank,
    /// What it called.
    pub called: Called,
    /// How many bytes it gave; none where that is not known, or need not be the same in all.
    pub bytes: Option<u32>,
}

impl Entered {
    /// Those that have died in a collective, by where ranks stood last.
    #[must_use]
    pub fn dead(standing: &Standing) -> Vec<Self> {
        let one = |(&rank, posture): (&Rank, &Posture)| {
            let call = match posture.presence {
                Presence::Lost => posture.call,
                Presence::Ended => posture.ended_in,
                _ => None,
            };
            Self::of(standing, rank, &call?)
        };
        standing.postures.iter().filter_map(one).collect()
    }

    /// Those that wait in a collective by a verdict on where ranks stood `then`, and have not
    /// returned from it since. Of others that are inside the number may be that of the next one.
    #[must_use]
    pub fn waiting(verdict: &Verdict, then: &Standing, last: &Standing) -> Vec<Self> {
        let is_inside = |one: &Self| {
            let seat = last.seats.get(&(one.space, one.rank));
            seat.is_none_or(|seat| !seat.is_number_lost && seat.made < one.number)
        };
        let ranks = verdict.waiting.iter().flat_map(|group| group.ranks.iter());
        let one = |rank| Self::of(then, rank, &then.postures.get(&rank)?.call?);
        ranks.filter_map(one).filter(is_inside).collect()
    }

    /// Of a rank that is in a call, if that is a collective of a known number, or starts one.
    fn of(standing: &Standing, rank: Rank, call: &Standpoint) -> Option<Self> {
        let seat = standing.seats.get(&(call.space, rank))?;
        let is_counted = call.is_collective()
            && call.pattern != Pattern::Unknown
            && !seat.is_number_lost
            && !seat.is_between;
        let root = match (call.pattern, call.side) {
            (Pattern::FromRoot | Pattern::ToRoot, Side::Rank(root)) => i32::try_from(root).ok()?,
            _ => -1,
        };
        is_counted.then_some(Self {
            space: call.space,
            number: seat.made.saturating_add(1),
            size: seat.size,
            rank,
            called: Called { function: call.function, root },
            bytes: call.amount(),
        })
    }
}

/// The first collective of each communicator from which not all have returned, with those that are
/// inside. One whose amount is not known is compared by what it called, and has not come as far as
/// amounts go.
pub(crate) fn with_entered(
    unfinished: &BTreeMap<u64, Unfinished>,
    entered: &[Entered],
) -> BTreeMap<u64, Unfinished> {
    let mut all = unfinished.clone();
    let mut entered = entered.to_vec();
    entered.sort_by_key(|one| (one.space, one.number, one.rank));
    // One that waited in it may have died there.
    entered.dedup_by_key(|one| (one.space, one.number, one.rank));
    for one in entered {
        let count = u32::from(one.bytes.is_some());
        let kinds = Kinds::of(one.called, one.rank);
        let amounts = one.bytes.map(|bytes| Kinds::of(bytes, one.rank));
        let Entered { space, number, size, .. } = one;
        match all.entry(space) {
            Entry::Vacant(place) => {
                place.insert(Unfinished { number, size, count, kinds, amounts });
            }
            Entry::Occupied(place) if place.get().number == number => {
                let open = place.into_mut();
                open.count = open.count.saturating_add(count);
                open.kinds.merge(&kinds);
                match (&mut open.amounts, &amounts) {
                    (Some(mine), Some(theirs)) => mine.merge(theirs),
                    (mine, theirs) => *mine = mine.or(*theirs),
                }
            }
            Entry::Occupied(_) => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gathered::Gathered;
    use crate::instance::{Arrival, Instance};
    use crate::ledger::Ledger;
    use crate::standing::{CallKind, Seat};

    const ROW: u64 = 7;
    const BCAST: u32 = 4;
    const SECOND: u64 = 1_000_000_000;

    /// In the broadcast of root 0, with as many bytes.
    fn broadcast(bytes: Option<u32>) -> Standpoint {
        Standpoint {
            function: BCAST,
            kind: CallKind::Collective,
            pattern: Pattern::FromRoot,
            space: ROW,
            side: Side::Rank(0),
            tag: Some(bytes.map_or(0, |bytes| bytes + 1).cast_signed()),
            ..Standpoint::default()
        }
    }

    /// Four ranks that have made eleven collectives, or one more.
    fn job(made: [u32; 4]) -> Standing {
        let mut job = Standing { world_size: 4, ..Standing::default() };
        for (rank, made) in (0..).zip(made) {
            job.postures.insert(rank, Posture::default());
            let seat = Seat { rank, size: 4, made, ..Seat::default() };
            job.seats.insert((ROW, rank), seat);
        }
        job
    }

    fn set(job: &mut Standing, rank: Rank, posture: Posture) {
        job.postures.insert(rank, posture);
    }

    fn lost(call: Standpoint) -> Posture {
        Posture { presence: Presence::Lost, call: Some(call), ..Posture::default() }
    }

    /// What is known of these, which have returned from the twelfth with as many bytes.
    fn returned(amounts: &[(Rank, u32)]) -> Ledger {
        let mut gathered = Gathered::default();
        for &(rank, bytes) in amounts {
            let called = Called { function: BCAST, root: 0 };
            let arrival = Arrival { rank, ..Arrival::default() };
            let one = match rank {
                0 => Instance::of_root(called, Pattern::FromRoot, 4, arrival),
                _ => Instance::of(called, Pattern::FromRoot, 4, arrival),
            };
            gathered.add_instance((ROW, 12), &one.with_amount(Some(bytes)));
        }
        let mut ledger = Ledger::default();
        ledger.absorb(gathered);
        ledger
    }

    const THREE: [(Rank, u32); 3] = [(0, 80), (1, 80), (2, 80)];

    #[test]
    fn a_rank_that_died_in_a_call_is_compared_with_those_that_returned_from_it() {
        for presence in [Presence::Lost, Presence::Ended] {
            let mut job = job([12, 12, 12, 11]);
            let call = Some(broadcast(Some(72)));
            let (call, ended_in) =
                if presence == Presence::Ended { (None, call) } else { (call, None) };
            set(&mut job, 3, Posture { presence, call, ended_in, ..Posture::default() });
            let entered = Entered::dead(&job);
            let ledger = returned(&THREE);
            let told = ledger.findings().unequal_amounts_with(&entered);
            let one = told[&ROW];
            assert_eq!((one.number, one.collectives, one.culprit()), (12, 1, Some(3)));
            assert_eq!(one.minority().map(|one| (one.few.called, one.most.called)), Some((72, 80)));
            let closed = ledger.close();
            assert_eq!(closed.unequal_amounts_with(&entered), told, "when nothing more comes");
            assert!(closed.unequal_amounts().is_empty());
        }
    }

    #[test]
    fn a_rank_that_died_where_it_started_a_collective_is_compared_with_those_that_started_it() {
        let mut job = job([12, 12, 12, 11]);
        let start = Standpoint { kind: CallKind::CollectiveStart, ..broadcast(Some(72)) };
        set(&mut job, 3, lost(start));
        let told = returned(&THREE).findings().unequal_amounts_with(&Entered::dead(&job));
        assert_eq!((told[&ROW].number, told[&ROW].culprit()), (12, Some(3)));
        set(&mut job, 3, lost(Standpoint { kind: CallKind::Other, ..start }));
        assert!(Entered::dead(&job).is_empty());
    }

    #[test]
    fn ranks_from_which_none_has_returned_are_compared_with_each_other() {
        let mut job = job([11; 4]);
        for (rank, bytes) in [(0, 80), (1, 80), (2, 80), (3, 88)] {
            set(&mut job, rank, lost(broadcast(Some(bytes))));
        }
        let findings = Ledger::default().close();
        let told = findings.unequal_amounts_with(&Entered::dead(&job));
        assert_eq!((told[&ROW].number, told[&ROW].culprit()), (12, Some(3)));
        set(&mut job, 0, Posture::default());
        let told = findings.unequal_amounts_with(&Entered::dead(&job));
        assert_eq!(told[&ROW].culprit(), None, "rank 0 has not come");
    }

    #[test]
    fn where_a_call_is_not_known_to_be_of_that_number_nothing_is_told() {
        let told = |seat: fn(&mut Seat), call: Standpoint| {
            let mut job = job([12, 12, 12, 11]);
            set(&mut job, 3, lost(call));
            seat(job.seats.get_mut(&(ROW, 3)).expect("a member"));
            returned(&THREE).findings().unequal_amounts_with(&Entered::dead(&job))
        };
        let less = broadcast(Some(72));
        assert_eq!(told(|_| {}, less).len(), 1);
        assert!(told(|_| {}, broadcast(Some(80))).is_empty());
        assert!(told(|_| {}, broadcast(None)).is_empty());
        assert!(told(|seat| seat.made = 12, less).is_empty(), "it is in the next one");
        assert!(told(|seat| seat.is_number_lost = true, less).is_empty());
        assert!(told(|seat| seat.is_between = true, less).is_empty());
        let other_root = Standpoint { side: Side::Rank(2), ..less };
        assert!(told(|_| {}, other_root).is_empty(), "that is told of its root");
        let function = BCAST + 1;
        assert!(told(|_| {}, Standpoint { function, ..less }).is_empty());
    }

    #[test]
    fn of_ranks_that_live_those_are_compared_that_a_verdict_says_wait() {
        let mut there = job([12, 12, 12, 11]);
        let (call, for_ns) = (Some(broadcast(Some(72))), 3 * SECOND);
        set(&mut there, 3, Posture { call, for_ns, ..Posture::default() });
        assert!(Entered::dead(&there).is_empty());
        let verdict = Verdict::of(&there, SECOND).expect("rank 3 waits");
        let mut entered = Entered::waiting(&verdict, &there, &there);
        let ledger = returned(&THREE);
        assert_eq!(ledger.findings().unequal_amounts_with(&entered)[&ROW].culprit(), Some(3));
        set(&mut there, 3, lost(broadcast(Some(72))));
        entered.extend(Entered::dead(&there));
        assert_eq!(entered.len(), 2, "it has died where it waited");
        assert_eq!(ledger.findings().unequal_amounts_with(&entered)[&ROW].count, 4);
        let later = Entered::waiting(&verdict, &there, &job([12; 4]));
        assert!(later.is_empty(), "it has returned");
    }
}
