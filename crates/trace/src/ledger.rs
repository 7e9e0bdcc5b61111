//! The front-end's side: what has come up is put together over rounds, and what is whole is
//! settled: sent to the leaves, and added to the figures of the run.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::Rank;

use crate::amount::Unequal;
use crate::bypass::{BypassFigures, BypassTrace};
use crate::dropped::DroppedRings;
use crate::entered::{Entered, with_entered};
use crate::gathered::{COUNTERS, Counter, Gathered, Made, Waited};
use crate::instance::{Instance, InstanceKey, Pattern};
use crate::link::LinkFigures;
use crate::mixture::{Mixture, Unfinished};
use crate::observer::Settled;
use crate::place::{OTHERS, Outlier, PlaceFigures, PlaceKey};
use crate::tcp_flow::{TcpFigures, TcpTrace};
use crate::total::Total;

/// Entries of each kind that wait for their other part, at most.
const OPEN_MAX: usize = 1 << 17;
/// An instance is given up once one is whole that has a number higher by more than this on the same
/// communicator: what is missing of it has been overwritten. A ring has half as many records.
const PASSED_MAX: u32 = 1 << 17;
/// Numbers that are lower by more than this are those of a communicator that has begun anew.
const PASSED_FAR: u32 = 1 << 31;
/// Ends of instances that wait to be sent to the leaves, at most.
const SETTLED_MAX: usize = 1 << 18;

/// Communicators of which the first collective is kept that is mixed, or in which amounts differ,
/// and of which it is kept that processes did not call as many.
const MIXTURES_MAX: usize = 256;

/// Places that are distinguished, at most.
const PLACES_MAX: usize = 4096;

/// What is known of waits in a run so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// By rank and event; [`OTHERS`] stands for ranks that found no room.
    pub waited: BTreeMap<(Rank, u32), Waited>,
    /// By the rank for which others waited.
    pub made: BTreeMap<Rank, Made>,
    /// By [`Counter`].
    pub counters: [u64; COUNTERS],
    /// By ring, events that were overwritten before they were read.
    pub dropped: DroppedRings,
    /// By communicator and function.
    pub places: BTreeMap<PlaceKey, PlaceFigures>,
    /// By sender and receiver; [`OTHERS`] twice for those that found no room.
    pub links: BTreeMap<(Rank, Rank), LinkFigures>,
    /// By sender and receiver, what was sent over TCP.
    pub tcp: BTreeMap<(Rank, Rank), TcpFigures>,
    /// The collective to which a process came latest after the others.
    pub outlier: Option<Outlier>,
    /// Collectives of which all processes are known.
    pub collectives: u64,
    /// Of these, those of which the clocks do not tell which rank came last.
    pub undecided: u64,
    /// Of these, those in which processes called different functions, or gave different roots.
    pub mixed: u64,
    /// The first ones of these, by communicator.
    pub mixtures: BTreeMap<u64, Mixture>,
    /// By communicator, the first collective that is not mixed in which processes gave different
    /// amounts.
    pub unequal: BTreeMap<u64, Unequal>,
    /// By communicator, the first collective that is not whole.
    pub unfinished: BTreeMap<u64, Unfinished>,
    /// Communicators whose processes have ended, and had not called as many collectives.
    pub uneven: BTreeMap<u64, Total>,
    /// Collectives of which some processes never came, or are not known.
    pub incomplete: u64,
    /// Sends without a known receive.
    pub unmatched_sends: u64,
    /// Receives without a known send.
    pub unmatched_receives: u64,
    /// Of bypassed reductions, where their hops were noted.
    pub bypass: BypassFigures,
}

/// The waits of one event over the ranks that have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventWaits {
    /// Function and size class.
    pub event: u32,
    /// Ranks that have it.
    pub ranks: u32,
    /// Over all of them.
    pub sum: Waited,
    /// The longest wait of a rank, in nanoseconds.
    pub max_ns: u64,
    /// The lowest rank that has it.
    pub max_rank: Rank,
}

impl Findings {
    /// A counter.
    #[must_use]
    pub const fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }

    fn note_mixed(&mut self, (communicator, number): InstanceKey, one: &Instance) {
        self.mixed += 1;
        let has_room = self.mixtures.len() < MIXTURES_MAX;
        let is_told = one.kinds.second.is_some();
        if is_told && (has_room || self.mixtures.contains_key(&communicator)) {
            let mixture = self.mixtures.entry(communicator).or_default();
            mixture.add(number, one.size, &one.kinds);
        }
    }

    fn note_unequal(&mut self, key: InstanceKey, one: &Instance) {
        let Some(unequal) = Unequal::of(key, one) else { return };
        if self.unequal.len() < MIXTURES_MAX || self.unequal.contains_key(&key.0) {
            self.unequal.entry(key.0).or_default().add(&unequal);
        }
    }

    /// By communicator, the first collective in which processes gave different amounts, of those
    /// from which some have not returned, too. Behind one that is mixed nothing is reported: there
    /// the calls of processes meet others than they should.
    #[must_use]
    pub fn unequal_amounts(&self) -> BTreeMap<u64, Unequal> {
        self.unequal_amounts_with(&[])
    }

    /// The same with what ranks gave that do not return from a collective.
    #[must_use]
    pub fn unequal_amounts_with(&self, entered: &[Entered]) -> BTreeMap<u64, Unequal> {
        let mut all = self.unequal.clone();
        for (&space, one) in &with_entered(&self.unfinished, entered) {
            if let Some(unequal) = Unequal::of_unfinished(one) {
                all.entry(space).or_default().add(&unequal);
            }
        }
        all.retain(|space, one| {
            self.mixtures.get(space).is_none_or(|mixture| one.number < mixture.number)
        });
        all
    }

    /// The waits of each event, by its number.
    #[must_use]
    pub fn events(&self) -> Vec<EventWaits> {
        let mut events: BTreeMap<u32, EventWaits> = BTreeMap::new();
        for (&(rank, event), one) in &self.waited {
            let all = events.entry(event).or_insert(EventWaits { event, ..EventWaits::default() });
            all.sum.merge(one);
            if rank == OTHERS {
                continue;
            }
            all.ranks += 1;
            if all.ranks == 1 || one.wait_ns > all.max_ns {
                (all.max_ns, all.max_rank) = (one.wait_ns, rank);
            }
        }
        events.into_values().collect()
    }

    /// The waits of a rank in all events.
    #[must_use]
    pub fn of_rank(&self, rank: Rank) -> Waited {
        let mut all = Waited::default();
        self.waited.range((rank, 0)..=(rank, u32::MAX)).for_each(|(_, one)| all.merge(one));
        all
    }
}

/// What is open, and what was found.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    open: Gathered,
    settled: Vec<Settled>,
    findings: Findings,
    bypass: BypassTrace,
    tcp: TcpTrace,
}

impl Ledger {
    /// What was found so far.
    #[must_use]
    pub const fn findings(&self) -> &Findings {
        &self.findings
    }

    /// The clock by which all files of one host are read.
    #[must_use]
    pub const fn reference(&self) -> Option<(Rank, crate::FileClock)> {
        self.open.reference
    }

    /// Takes what has come; whether anything new was in it.
    pub fn absorb(&mut self, mut gathered: Gathered) -> bool {
        let is_new = !gathered.is_empty();
        self.findings.bypass.merge(&core::mem::take(&mut gathered.bypass));
        core::mem::take(&mut gathered.hops).iter().for_each(|hop| self.bypass.take(hop));
        self.findings.bypass.merge(&self.bypass.take_figures());
        let sockets = core::mem::take(&mut gathered.sockets);
        let left_out = self.tcp.take(sockets, &mut self.findings.tcp);
        gathered.count(Counter::TcpLeftOut, left_out);
        // The first reference holds: what has been converted stays so.
        let reference = self.open.reference.or(gathered.reference);
        self.open.merge(gathered);
        self.open.reference = reference;
        self.settle();
        self.settle_totals();
        self.give_up_passed();
        self.give_up(OPEN_MAX);
        self.collect();
        self.note_unfinished();
        is_new
    }

    /// Notes the first collective of each communicator that is not whole.
    fn note_unfinished(&mut self) {
        let unfinished = &mut self.findings.unfinished;
        unfinished.clear();
        for (&(communicator, number), one) in &self.open.instances {
            if unfinished.len() < MIXTURES_MAX && one.pattern != Pattern::Unknown {
                let Instance { size, count, kinds, amounts, .. } = *one;
                let first = Unfinished { number, size, count, kinds, amounts };
                unfinished.entry(communicator).or_insert(first);
            }
        }
    }

    /// Adds to what was found the sums that have come.
    fn collect(&mut self) {
        let found = &mut self.findings;
        for (mine, theirs) in found.counters.iter_mut().zip(&mut self.open.counters) {
            *mine = mine.saturating_add(core::mem::take(theirs));
        }
        found.dropped.merge(&core::mem::take(&mut self.open.dropped));
        for (key, one) in core::mem::take(&mut self.open.waited) {
            found.waited.entry(key).or_default().merge(&one);
        }
        for (ends, one) in core::mem::take(&mut self.open.links) {
            found.links.entry(ends).or_default().add(&one);
        }
        for (rank, one) in core::mem::take(&mut self.open.made) {
            found.made.entry(rank).or_default().merge(&one);
        }
        for ((place, culprit, waiter), one) in core::mem::take(&mut self.open.placed) {
            let figures = place_in(&mut found.places, place);
            figures.waits.entry((culprit, waiter)).or_default().merge(&one);
        }
        for (place, one) in core::mem::take(&mut self.open.wholes) {
            found.collectives = found.collectives.saturating_add(one.collectives);
            found.undecided = found.undecided.saturating_add(one.undecided);
            let figures = place_in(&mut found.places, place);
            figures.size = figures.size.max(one.size);
            figures.collectives = figures.collectives.saturating_add(one.collectives);
        }
        for ((place, rank, class), times) in core::mem::take(&mut self.open.late) {
            let figures = place_in(&mut found.places, place);
            figures.late.entry(rank).or_default().add_times(class, &times);
        }
        found.outlier = found.outlier.max(self.open.outlier.take());
    }

    /// Takes out what is whole; the sums that it leaves are collected with those that have come.
    fn settle(&mut self) {
        let Self { open, settled, findings: found, .. } = self;
        let mut instances = core::mem::take(&mut open.instances);
        instances.retain(|&key, one| {
            if !one.is_whole() {
                return true;
            }
            if one.is_mixed {
                found.note_mixed(key, one);
            }
            found.note_unequal(key, one);
            // Else it is compared only: its waits are not known, and no leaf waits for its end.
            if one.pattern != Pattern::Unknown {
                settled.push(open.conclude(key, one));
            }
            false
        });
        open.instances = instances;
    }

    /// Takes out the communicators of which all processes have ended, or nothing can be said.
    fn settle_totals(&mut self) {
        let found = &mut self.findings;
        self.open.totals.retain(|&communicator, one| {
            if one.is_uneven() && found.uneven.len() < MIXTURES_MAX {
                found.uneven.insert(communicator, *one);
            } else if one.is_uneven() {
                found.counters[Counter::LeftOut as usize] += 1;
            }
            !one.is_whole() && !one.is_unlike()
        });
        while self.open.totals.len() > OPEN_MAX {
            self.open.totals.pop_last();
            found.counters[Counter::LeftOut as usize] += 1;
        }
    }

    /// Gives up what all processes of a communicator have left far behind, so that it does not
    /// gather where calls are overwritten again and again.
    fn give_up_passed(&mut self) {
        let mut passed = Vec::new();
        for (&(space, _), one) in &self.open.wholes {
            let [from, to] = [PASSED_FAR, PASSED_MAX].map(|below| one.last.saturating_sub(below));
            let those = self.open.instances.range((space, from)..(space, to));
            passed.extend(those.map(|(key, _)| *key));
        }
        passed.into_iter().for_each(|key| self.give_up_instance(key));
    }

    fn give_up_instance(&mut self, key: InstanceKey) {
        let removed = self.open.instances.remove(&key);
        if let Some(one) = removed.filter(|one| one.pattern != Pattern::Unknown) {
            self.findings.incomplete += 1;
            self.findings.note_unequal(key, &one);
            // So that its leaves wait no longer.
            self.settled.push(Settled { key, pattern: one.pattern, culprit: None });
        }
    }

    /// Gives up the oldest of what is open, down to fewer than as many.
    fn give_up(&mut self, most: usize) {
        for key in oldest(&self.open.instances, most, |_, one| one.first.time) {
            self.give_up_instance(key);
        }
        let open = &mut self.open;
        for key in oldest(&open.sends, most, |_, one| one.begin.time) {
            open.sends.remove(&key);
            self.findings.unmatched_sends += 1;
        }
        for key in oldest(&open.receives, most, |_, one| one.begin.time) {
            if let Some(one) = open.receives.remove(&key) {
                self.findings.unmatched_receives += u64::from(one.members > 0);
            }
        }
        for key in oldest(&open.calls, most, |_, one| one.call.begin.time) {
            // Their other receives are counted by themselves.
            open.calls.remove(&key);
        }
        for key in oldest(&open.exchanges, most, |key, _| key.1) {
            // The missing half is a message of which one side is not known, and counted as that,
            // or there was none: with `MPI_PROC_NULL`.
            open.exchanges.remove(&key);
        }
        // Leaves forget by themselves what they are not told.
        let excess = self.settled.len().saturating_sub(SETTLED_MAX);
        self.settled.drain(..excess);
    }

    /// The ends of instances that are to be sent to the leaves, at most as many.
    pub fn take_settled(&mut self, most: usize) -> Vec<Settled> {
        if self.settled.len() <= most {
            return core::mem::take(&mut self.settled);
        }
        self.settled.drain(..most).collect()
    }

    /// Whether ends of instances wait to be sent.
    #[must_use]
    pub fn has_settled(&self) -> bool {
        !self.settled.is_empty()
    }

    /// Nothing more will come: what is open is counted.
    #[must_use]
    pub fn close(mut self) -> Findings {
        // The amounts of these stay where ranks are added to them that never return.
        for (&communicator, one) in &self.findings.unfinished {
            if let Some(open) = self.open.instances.get_mut(&(communicator, one.number)) {
                open.amounts = None;
            }
        }
        self.give_up(0);
        self.findings.bypass.merge(&self.bypass.close());
        self.findings
    }

    /// The same as of now, of a run that goes on.
    #[must_use]
    pub fn snapshot(&self) -> Findings {
        self.findings.clone()
    }
}

/// The figures of a place; those of all others together where there are too many.
fn place_in(places: &mut BTreeMap<PlaceKey, PlaceFigures>, place: PlaceKey) -> &mut PlaceFigures {
    let has_room = places.len() < PLACES_MAX || places.contains_key(&place);
    places.entry(if has_room { place } else { (0, 0) }).or_default()
}

/// The keys of the oldest entries, if there are more than as many: a quarter more than need be.
fn oldest<K: Copy, V>(map: &BTreeMap<K, V>, most: usize, time: impl Fn(&K, &V) -> i64) -> Vec<K> {
    if map.len() <= most {
        return Vec::new();
    }
    let mut keys: Vec<(i64, K)> = map.iter().map(|(key, one)| (time(key, one), *key)).collect();
    keys.sort_by_key(|(time, _)| *time);
    keys.truncate(keys.len() - most + most / 4);
    keys.into_iter().map(|(_, key)| key).collect()
}
