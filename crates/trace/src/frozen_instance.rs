//! Which frozen events belong together, and how long each has waited.
//!
//! Events of one collective are found by communicator and number, a message's send and its receive
//! by their channel and number, as everywhere in this crate. What lies outside of the window takes
//! part in nothing: a collective of which a process is missing accuses no rank, unless the process
//! has not come at all and others wait for it still.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::Rank;

use crate::amount::Unequal;
use crate::event::EventKind;
use crate::frozen::{Frozen, FrozenEvent};
use crate::frozen_passage::{CollectiveParts, FrozenPassage, arrival, passage};
use crate::instance::{Instance, InstanceKey, Pattern};
use crate::message::{MessageKey, Wait, wait};
use crate::mixture::{Called, Kinds};
use crate::standing::Presence;

/// Of a call that was seen for less time, its times do not tell it from the one before: the clock
/// by which it was seen is not that of the records.
const SEEN_MIN_NS: u64 = 2_000_000;

/// A collective in the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrozenInstance {
    /// Its communicator and its number there.
    pub key: InstanceKey,
    /// The function by which its first process came.
    pub function: u32,
    /// Which ranks wait for which.
    pub pattern: Pattern,
    /// Processes of the communicator.
    pub size: u32,
    /// The events of the processes that came, as places in [`Frozen::events`], by their begin.
    pub arrivals: Vec<usize>,
    /// The event of the process for which others have waited, if all have come.
    pub culprit: Option<usize>,
    /// Whether it came after one that waits for it; none where the clocks do not say.
    pub is_late: Option<bool>,
    /// What they called.
    pub kinds: Kinds,
    /// Members that have not come, where others wait for them still.
    pub absent: Vec<Rank>,
    /// How all came and left; none while one is inside, and where their calls do not fit together.
    pub passage: Option<FrozenPassage>,
    /// The bytes that those gave that have returned, where they gave different ones.
    pub unequal: Option<Unequal>,
}

impl FrozenInstance {
    /// Whether all processes have come.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.arrivals.len() as u64 >= self.size as u64
    }
}

/// What belongs together in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relations {
    /// The collectives, by their first arrival.
    pub instances: Vec<FrozenInstance>,
    /// Sends and receives of one message each, as places in [`Frozen::events`].
    pub messages: Vec<(usize, usize)>,
    /// By communicator, the first collective in which processes gave different amounts. Behind one
    /// that is mixed nothing is reported.
    pub unequal: BTreeMap<u64, Unequal>,
    /// Of each event how long it has waited for another process; none where that is not known.
    pub waits: Vec<Option<u64>>,
}

impl Relations {
    /// Of events that are sorted by their begin ([`Frozen::cut`]).
    #[must_use]
    pub fn of(frozen: &Frozen) -> Self {
        let mut found = Self { waits: alloc::vec![None; frozen.events.len()], ..Self::default() };
        found.find_instances(frozen);
        found.find_messages(frozen);
        found.find_amounts();
        found
    }

    /// Whether the calls of a collective have its number for certain. That of a call in progress is
    /// read after the call, and is the next one's if it returned in between. It is certain for the
    /// first one, for a process that has ended, and where the one before is known to have been over
    /// while this one was seen.
    #[must_use]
    pub fn is_numbered(&self, frozen: &Frozen, one: &FrozenInstance) -> bool {
        let (communicator, number) = one.key;
        let key = (communicator, number.saturating_sub(1));
        let before = self.instances.iter().filter(|before| before.key == key);
        let calls = before.flat_map(|before| &before.arrivals).map(|&at| &frozen.events[at]);
        let returned = calls.filter(|event| !event.is_open);
        let ends: BTreeMap<Rank, i64> = returned.map(|event| (event.rank, event.end())).collect();
        let is_certain = |event: &FrozenEvent| {
            let rank = frozen.ranks.get(&event.rank);
            let middle = event.begin.saturating_add_unsigned(event.span / 2);
            let follows = ends.get(&event.rank).is_some_and(|&end| end <= middle);
            number == 1
                || rank.is_some_and(|rank| rank.presence == Presence::Lost)
                || event.span >= SEEN_MIN_NS && follows
        };
        let mut open = one.arrivals.iter().map(|&at| &frozen.events[at]).filter(|one| one.is_open);
        open.all(is_certain)
    }

    fn find_instances(&mut self, frozen: &Frozen) {
        let mut open: BTreeMap<InstanceKey, CollectiveParts> = BTreeMap::new();
        for (at, event) in frozen.events.iter().enumerate() {
            let seat = frozen.seats.get(&(event.communicator, event.rank));
            let is_known = seat.is_some_and(|seat| !seat.is_between) && event.sequence > 0;
            if !event.is_collective() || !is_known || is_unordered(frozen, event.rank) {
                continue;
            }
            let parts = open.entry((event.communicator, event.sequence)).or_default();
            match event.kind {
                Some(EventKind::CollectiveCompleted) => parts.completions.push(at),
                _ => parts.arrivals.push(at),
            }
        }
        for (key, parts) in open {
            let Some(instance) = instance(frozen, key, &parts) else { continue };
            let waiting = parts.arrivals.iter().chain(&parts.completions);
            for &at in waiting {
                self.waits[at] = waited(frozen, &instance, at);
            }
            self.instances.push(instance);
        }
        self.instances.sort_by_key(|one| (one.arrivals.first().copied(), one.key));
    }

    fn find_amounts(&mut self) {
        let mut mixed: BTreeMap<u64, u32> = BTreeMap::new();
        for one in self.instances.iter().filter(|one| one.kinds.second.is_some()) {
            let first = mixed.entry(one.key.0).or_insert(one.key.1);
            *first = one.key.1.min(*first);
        }
        let told = self.instances.iter().filter_map(|one| Some((one.key.0, one.unequal?)));
        for (communicator, unequal) in told {
            if mixed.get(&communicator).is_none_or(|&first| unequal.number < first) {
                self.unequal.entry(communicator).or_default().add(&unequal);
            }
        }
    }

    fn find_messages(&mut self, frozen: &Frozen) {
        let mut sends: BTreeMap<MessageKey, usize> = BTreeMap::new();
        let mut receives: Vec<(MessageKey, usize)> = Vec::new();
        for (at, event) in frozen.events.iter().enumerate().filter(|(_, one)| !one.is_open) {
            let Some(seat) = frozen.seats.get(&(event.communicator, event.rank)) else { continue };
            let Ok(peer) = Rank::try_from(event.peer) else { continue };
            let key = |source, destination| MessageKey {
                communicator: event.communicator,
                source,
                destination,
                tag: event.tag,
                number: event.sequence,
            };
            match event.kind {
                Some(EventKind::Send | EventKind::SendStarted) => {
                    sends.insert(key(seat.rank, peer), at);
                }
                Some(EventKind::Receive | EventKind::ReceiveCompleted) => {
                    receives.push((key(peer, seat.rank), at));
                }
                _ => {}
            }
        }
        for (key, receive) in receives {
            let Some(&send) = sends.get(&key) else { continue };
            self.messages.push((send, receive));
            let (sent, awaited) = (&frozen.events[send], &frozen.events[receive]);
            self.waits[receive] =
                known(wait(&arrival(frozen, awaited), awaited.span, &arrival(frozen, sent)));
            if sent.kind == Some(EventKind::Send) && awaited.kind == Some(EventKind::Receive) {
                self.waits[send] =
                    known(wait(&arrival(frozen, sent), sent.span, &arrival(frozen, awaited)));
            }
        }
    }
}

fn is_unordered(frozen: &Frozen, rank: Rank) -> bool {
    frozen.ranks.get(&rank).is_none_or(|one| one.is_order_lost)
}

fn known(wait: Wait) -> Option<u64> {
    match wait {
        Wait::Known(ns, _) => Some(ns),
        Wait::Undecided => None,
    }
}

fn is_root(frozen: &Frozen, event: &FrozenEvent) -> bool {
    let seat = frozen.seats.get(&(event.communicator, event.rank));
    seat.is_some_and(|seat| event.peer >= 0 && seat.rank == event.peer.cast_unsigned())
}

/// The instance of these events.
fn instance(frozen: &Frozen, key: InstanceKey, parts: &CollectiveParts) -> Option<FrozenInstance> {
    let arrivals = &parts.arrivals;
    let first = &frozen.events[*arrivals.first()?];
    let size = frozen.seats.get(&(key.0, first.rank))?.size;
    let one = |&at: &usize| {
        let event = &frozen.events[at];
        let arrival = arrival(frozen, event);
        let called = Called { function: event.function, root: event.peer };
        let one = if is_root(frozen, event) {
            Instance::of_root(called, first.pattern, size, arrival)
        } else {
            Instance::of(called, first.pattern, size, arrival)
        };
        one.with_amount(event.amount())
    };
    let all = merged(arrivals.iter().map(one))?;
    let culprit = all.latecomer().filter(|_| all.is_whole() && size > 1);
    let is_of = |rank: Rank| arrivals.iter().copied().find(|&at| frozen.events[at].rank == rank);
    let is_waited = arrivals.iter().any(|&at| frozen.events[at].is_open);
    let absent = if all.is_whole() || !is_waited {
        Vec::new()
    } else {
        absent(frozen, key, size, |rank| is_of(rank).is_some())
    };
    // The number of a call that has not returned may be that of the next one.
    let returned = arrivals.iter().filter(|at| !frozen.events[**at].is_open);
    let returned = merged(returned.map(one)).filter(|_| !all.is_mixed);
    Some(FrozenInstance {
        key,
        function: first.function,
        pattern: first.pattern,
        size,
        culprit: culprit.and_then(|one| is_of(one.arrival.rank)),
        is_late: culprit.and_then(|one| one.is_late),
        kinds: all.kinds,
        absent,
        passage: passage(frozen, size, parts).filter(|_| !all.is_mixed),
        unequal: returned.and_then(|one| Unequal::of(key, &one)),
        arrivals: arrivals.clone(),
    })
}

fn merged(mut all: impl Iterator<Item = Instance>) -> Option<Instance> {
    let mut first = all.next()?;
    all.for_each(|one| first.merge(&one));
    Some(first)
}

/// Members that have not come to a collective. None where not all members were looked at, or where
/// the numbers of some mean nothing: one of these may be absent as well.
fn absent(
    frozen: &Frozen,
    (communicator, number): InstanceKey,
    size: u32,
    has_come: impl Fn(Rank) -> bool,
) -> Vec<Rank> {
    let members = frozen.seats.range((communicator, 0)..=(communicator, Rank::MAX));
    let members: Vec<(Rank, u32)> = members
        .filter(|((_, rank), seat)| !seat.is_number_lost && !is_unordered(frozen, *rank))
        .map(|(&(_, rank), seat)| (rank, seat.made))
        .collect();
    if members.len() < size as usize {
        return Vec::new();
    }
    // What it did at that time may not be recorded, or be older than the window: then the count
    // of its collectives tells.
    let is_absent = |&(rank, made): &(Rank, u32)| made < number && !has_come(rank);
    members.into_iter().filter(is_absent).map(|(rank, _)| rank).collect()
}

/// How long a call of a collective has waited.
fn waited(frozen: &Frozen, instance: &FrozenInstance, at: usize) -> Option<u64> {
    let event = &frozen.events[at];
    if event.kind == Some(EventKind::CollectiveStarted) {
        return None;
    }
    let is_root = is_root(frozen, event);
    let may_wait = match instance.pattern {
        Pattern::All => true,
        Pattern::FromRoot => !is_root,
        Pattern::ToRoot => is_root,
        Pattern::Unknown => return None,
    };
    if !may_wait && (instance.is_whole() || event.is_open) {
        return Some(0);
    }
    if event.is_open && !instance.absent.is_empty() {
        return Some(event.span);
    }
    let culprit = &frozen.events[instance.culprit?];
    if culprit.rank == event.rank {
        return Some(0);
    }
    known(wait(&arrival(frozen, event), event.span, &arrival(frozen, culprit)))
}

#[cfg(test)]
pub(crate) mod tests {
    use alloc::vec;

    use super::*;
    use crate::frozen::{FrozenRank, FrozenSeat};

    const WORLD: u64 = 9;

    pub(crate) fn window(events: &[FrozenEvent], size: u32) -> (Frozen, Relations) {
        let mut frozen = Frozen { events: events.to_vec(), ..Frozen::default() };
        for rank in 0..size {
            let now = 1_000;
            frozen.ranks.insert(rank, FrozenRank { now, ..FrozenRank::default() });
            let seat = FrozenSeat { rank, size, ..FrozenSeat::default() };
            frozen.seats.insert((WORLD, rank), seat);
        }
        frozen.cut(1_000);
        let relations = Relations::of(&frozen);
        (frozen, relations)
    }

    pub(crate) fn collective(rank: Rank, sequence: u32, begin: i64, span: u64) -> FrozenEvent {
        let (kind, communicator) = (Some(EventKind::Collective), WORLD);
        let event = FrozenEvent {
            rank,
            kind,
            communicator,
            sequence,
            begin,
            span,
            ..FrozenEvent::default()
        };
        FrozenEvent { function: 7, peer: -1, ..event }
    }

    fn waits_of(frozen: &Frozen, relations: &Relations, rank: Rank) -> Vec<Option<u64>> {
        let of_rank = frozen.events.iter().zip(&relations.waits);
        of_rank.filter(|(event, _)| event.rank == rank).map(|(_, &wait)| wait).collect()
    }

    #[test]
    fn all_wait_for_the_last_one() {
        let events = [collective(0, 1, 10, 95), collective(1, 1, 100, 5), collective(2, 1, 60, 44)];
        let (frozen, relations) = window(&events, 3);
        let [instance] = &relations.instances[..] else { panic!("one collective") };
        assert_eq!(instance.culprit.map(|at| frozen.events[at].rank), Some(1));
        assert!(
            instance.is_whole() && instance.is_late == Some(true) && instance.absent.is_empty()
        );
        let waits = |rank| waits_of(&frozen, &relations, rank);
        assert_eq!([waits(0), waits(1), waits(2)], [[Some(90)], [Some(0)], [Some(40)]]);
    }

    #[test]
    fn who_has_not_come_is_absent_while_others_wait() {
        let open = |rank| FrozenEvent { is_open: true, ..collective(rank, 2, 400, 600) };
        let (frozen, relations) = window(&[open(0), open(2), collective(1, 1, 300, 5)], 3);
        let last = relations.instances.last().expect("two collectives");
        assert_eq!((last.absent.as_slice(), last.culprit), ([1].as_slice(), None));
        assert_eq!(waits_of(&frozen, &relations, 0), [Some(600)]);
        // Of a part of a collective that is over nothing is claimed.
        assert_eq!(waits_of(&frozen, &relations, 1), [None]);
        assert!(relations.instances[0].absent.is_empty());
    }

    #[test]
    fn a_rank_that_has_made_a_collective_is_not_absent_from_it_though_it_was_not_recorded() {
        let open = |rank, sequence| {
            let one = collective(rank, sequence, 400, 600);
            FrozenEvent { is_open: true, pattern: Pattern::ToRoot, peer: 0, ..one }
        };
        let (mut frozen, _) = window(&[open(0, 2), open(2, 34)], 4);
        for (rank, made) in [(0, 1), (1, 1), (2, 33), (3, 2)] {
            frozen.seats.get_mut(&(WORLD, rank)).expect("a seat").made = made;
        }
        let absent = |frozen: &Frozen, number| {
            let found = Relations::of(frozen).instances;
            found.into_iter().find(|one| one.key.1 == number).map(|one| one.absent)
        };
        assert_eq!(absent(&frozen, 2), Some(vec![1]), "ranks 2 and 3 have sent their parts");
        assert_eq!(absent(&frozen, 34), Some(vec![0, 1, 3]));
        frozen.ranks.get_mut(&3).expect("a rank").is_order_lost = true;
        assert_eq!(absent(&frozen, 2), Some(vec![]), "rank 3 may be absent as well");
        frozen.ranks.get_mut(&3).expect("a rank").is_order_lost = false;
        frozen.seats.get_mut(&(WORLD, 3)).expect("a seat").is_number_lost = true;
        assert_eq!(absent(&frozen, 2), Some(vec![]), "the same");
    }

    #[test]
    fn a_root_that_waits_for_others_is_told_from_those_that_do_not() {
        let to_root = |rank, begin, span| FrozenEvent {
            pattern: Pattern::ToRoot,
            peer: 0,
            ..collective(rank, 1, begin, span)
        };
        let (frozen, relations) = window(&[to_root(0, 10, 95), to_root(1, 100, 5)], 2);
        assert_eq!(waits_of(&frozen, &relations, 0), [Some(90)]);
        assert_eq!(waits_of(&frozen, &relations, 1), [Some(0)]);
    }

    #[test]
    fn a_receive_waits_for_its_send() {
        let message = |rank, kind, peer, begin, span| FrozenEvent {
            kind: Some(kind),
            peer,
            tag: 4,
            ..collective(rank, 1, begin, span)
        };
        let receive = message(0, EventKind::Receive, 1, 10, 60);
        let send = message(1, EventKind::SendStarted, 0, 50, 1);
        let (frozen, relations) = window(&[receive, send], 2);
        assert_eq!(relations.messages, [(1, 0)]);
        assert_eq!(waits_of(&frozen, &relations, 0), [Some(40)]);
        assert_eq!(waits_of(&frozen, &relations, 1), [None]);
    }

    fn giving(rank: Rank, sequence: u32, bytes: i32) -> FrozenEvent {
        let begin = i64::from(sequence) * 100;
        FrozenEvent { tag: bytes + 1, ..collective(rank, sequence, begin, 50) }
    }

    #[test]
    fn the_first_collective_with_unequal_amounts_is_told_for_each_communicator() {
        let given = [(1, 80), (2, 72), (3, 96)];
        let all = (0..3).flat_map(|rank| given.map(|(number, bytes)| (rank, number, bytes)));
        let bytes_of = |rank, number, bytes| if rank == 1 && number > 1 { 8 } else { bytes };
        let mut events: Vec<FrozenEvent> = all
            .map(|(rank, number, bytes)| giving(rank, number, bytes_of(rank, number, bytes)))
            .collect();
        let (_, relations) = window(&events, 3);
        let told = relations.unequal[&WORLD];
        assert_eq!((told.number, told.collectives, told.culprit()), (2, 2, Some(1)));
        let few = told.minority().expect("one of three").few;
        assert_eq!((few.called, few.lowest), (8, 1));
        // Behind calls that do not fit together nothing is told.
        events[0].function = 8;
        assert!(window(&events, 3).1.unequal.is_empty());
        events[0].function = 7;
        events.iter_mut().for_each(|event| event.tag = 81);
        assert!(window(&events, 3).1.unequal.is_empty(), "all gave 80 bytes");
    }

    #[test]
    fn the_amount_of_a_rank_that_has_not_returned_or_is_not_in_the_window_is_not_guessed() {
        let open = FrozenEvent { is_open: true, ..giving(2, 1, 72) };
        let (_, relations) = window(&[giving(0, 1, 80), giving(1, 1, 80), open], 3);
        assert!(relations.unequal.is_empty());
        let (_, relations) = window(&[giving(0, 1, 80), giving(1, 1, 72), open], 3);
        let told = relations.unequal[&WORLD];
        assert_eq!((told.count, told.minority(), told.culprit()), (2, None, None));
    }

    #[test]
    fn the_number_of_a_call_in_progress_is_certain_if_the_one_before_was_over() {
        const LONG: u64 = 10_000_000;
        let is_numbered = |before: FrozenEvent, begin, span, presence| {
            let open = FrozenEvent { is_open: true, ..collective(1, 2, begin, span) };
            let others = [collective(0, 1, 0, 1_000), collective(0, 2, 2_000, 10)];
            let (mut frozen, relations) = window(&[others[0], others[1], before, open], 2);
            frozen.ranks.get_mut(&1).expect("a rank").presence = presence;
            let found = relations.instances.iter().find(|one| one.key.1 == 2).expect("it was seen");
            relations.is_numbered(&frozen, found)
        };
        let before = collective(1, 1, 0, 1_000);
        assert!(is_numbered(before, 2_000, LONG, Presence::Running));
        assert!(!is_numbered(before, 2_000, 1_000, Presence::Running), "too short");
        let same = collective(1, 1, 0, LONG);
        assert!(!is_numbered(same, 100, LONG, Presence::Running), "it has returned since");
        assert!(!is_numbered(collective(1, 3, 0, 10), 2_000, LONG, Presence::Running), "unknown");
        assert!(is_numbered(before, 2_000, 0, Presence::Lost), "it moves no more");
    }

    #[test]
    fn numbers_that_mean_nothing_match_nothing() {
        let mut frozen = Frozen { events: [collective(0, 1, 1, 2)].into(), ..Frozen::default() };
        let seat = FrozenSeat { rank: 0, size: 2, ..FrozenSeat::default() };
        frozen.seats.insert((WORLD, 0), seat);
        frozen.ranks.insert(0, FrozenRank { is_order_lost: true, ..FrozenRank::default() });
        assert!(Relations::of(&frozen).instances.is_empty());
    }
}
