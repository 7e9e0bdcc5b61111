//! The leaf's side: copies what the rings of its ranks hold, and adds the calls in progress.

use sapwood_trace::{
    CallKind, Event, EventFile, EventKind, Frozen, FrozenEvent, FrozenRank, FrozenRing, FrozenSeat,
    HostClock, Posture, RANK_EVENTS_MAX, RECORD_WORDS, Record, RingCursor, Seat, Side, Space,
    Standing,
};
use sapwood_transport::monotonic_clock;

use super::FreezeQuestion;
use crate::standing::Stood;
use crate::tables::Tables;
use crate::waits::{RankEvents, facts, whole_record};

/// Records that are copied at once.
const COPIED_MAX: usize = 1024;

/// By how much the begin of a call in progress and that of a record may be apart if both are one
/// call, in nanoseconds: they are taken from different clocks.
const SAME_CALL_NS: u64 = 1_000_000;

impl Tables {
    /// The last events of the ranks that are wanted; `leaf` is the own number.
    pub(crate) fn freeze(&mut self, leaf: u32, question: &FreezeQuestion) -> Frozen {
        let world_size = self.world_size(question.clocks.world_size);
        // Before the rings: a call that returns meanwhile is in both, and found there.
        let Stood { standing, seen_ns } = self.stood(world_size, question.long_ns);
        let now_ns = monotonic_clock();
        let clock = self.waits.clock_now(leaf, &question.clocks);
        let mut frozen = Frozen { world_size, ..Frozen::default() };
        let wanted = standing.postures.iter().filter(|(rank, _)| question.wants(**rank));
        for (&rank, posture) in wanted {
            let mut sheet = Sheet::new(rank, posture, clock.clone(), now_ns);
            if let Some(events) = self.waits.events(rank) {
                sheet.read(events, question.last_ns);
            }
            sheet.add_open(posture, seen_ns[&rank], &standing);
            sheet.note_members(&standing);
            for identity in sheet.frozen.seats.keys().map(|key| key.0) {
                if let Some(name) = standing.names.get(&identity) {
                    sheet.frozen.names.insert(identity, name.clone());
                }
            }
            sheet.frozen.bound(RANK_EVENTS_MAX);
            frozen.merge(sheet.frozen);
        }
        frozen
    }
}

/// The events of one ring and when its last one ended.
struct ReadRing {
    ring: FrozenRing,
    events: Vec<FrozenEvent>,
}

/// What becomes known of one rank.
struct Sheet {
    rank: u32,
    clock: HostClock,
    /// The moment by `CLOCK_MONOTONIC`.
    now_ns: i64,
    /// The moment by the clock of the records.
    now: i64,
    /// By how much that clock is ahead of `CLOCK_MONOTONIC` on the common scale.
    skew: i64,
    frozen: Frozen,
}

impl Sheet {
    fn new(rank: u32, posture: &Posture, clock: HostClock, now_ns: i64) -> Self {
        let now = clock.common(now_ns);
        let mut frozen = Frozen::default();
        let (number, error, presence) = (clock.number, clock.error, posture.presence);
        let one = FrozenRank { presence, now, clock: number, error, ..FrozenRank::default() };
        frozen.ranks.insert(rank, one);
        Self { rank, clock, now_ns, now, skew: 0, frozen }
    }

    /// Reads all rings, and keeps the events of the last nanoseconds before the newest one's end.
    fn read(&mut self, events: &RankEvents, last_ns: u64) {
        let Ok(file) = events.header() else { return };
        let raw: Vec<(usize, RawRing)> =
            (0..file.rings()).map(|ring| (ring, RawRing::read(events, &file, ring))).collect();
        // Behind the records: those that a former communicator of a space has left are older.
        let file = events.header().unwrap_or(file);
        let spaces = events.spaces_now(&file).unwrap_or_default();
        let mut moments: Vec<(u64, u64)> =
            raw.iter().flat_map(|(_, ring)| ring.moments.iter().copied()).collect();
        moments.sort_unstable();
        moments.iter().for_each(|&(ticks, ns)| self.clock.note(ticks, ns));
        if let Some(&(ticks, ns)) = moments.last() {
            // By as much as a clock that was calibrated once has run away since.
            let read = self.clock.common(i64::try_from(ns).unwrap_or(i64::MAX));
            self.skew = self.clock.time(ticks).saturating_sub(read);
            self.now = self.clock.common(self.now_ns).saturating_add(self.skew);
        }
        let written = raw.into_iter().filter(|(_, ring)| ring.written > 0);
        let rings: Vec<(u8, ReadRing)> = written
            .filter_map(|(number, ring)| Some((u8::try_from(number).ok()?, ring)))
            .map(|(number, ring)| (number, self.converted(number, &ring, &spaces)))
            .collect();
        let ends = rings.iter().flat_map(|(_, one)| one.events.iter().map(FrozenEvent::end));
        let newest = ends.max().unwrap_or(self.now);
        self.now = self.now.max(newest);
        let begin = newest.saturating_sub_unsigned(last_ns);
        for (number, one) in rings {
            self.frozen.rings.insert((self.rank, number), one.ring);
            let those = one.events.into_iter().filter(|event| event.end() >= begin);
            self.frozen.events.extend(those);
        }
        self.note_seats(&spaces);
        if let Some(rank) = self.frozen.ranks.get_mut(&self.rank) {
            rank.now = self.now;
            rank.is_recording = file.is_recording;
            rank.is_order_lost = file.is_order_lost;
            rank.without_ring = file.without_ring;
            rank.without_space = file.without_space;
        }
    }

    /// A ring by the common clock, without events of a peer that their communicator does not have.
    fn converted(&self, number: u8, raw: &RawRing, spaces: &[Space]) -> ReadRing {
        let event = |event: &Event| {
            let space = spaces.get(event.space).filter(|space| space.since <= event.time);
            if space.is_some_and(|space| !space.has_peer_of(event)) {
                return None;
            }
            let known = facts(event.function);
            Some(FrozenEvent {
                rank: self.rank,
                thread: number,
                function: known.procedure,
                kind: Some(event.kind),
                pattern: known.pattern,
                is_open: false,
                communicator: space.map_or(0, |space| space.identity),
                sequence: event.sequence,
                peer: event.peer,
                tag: event.tag,
                members: event.members,
                begin: self.clock.time(event.time),
                span: self.clock.span(event.span),
            })
        };
        let events: Vec<FrozenEvent> = raw.events.iter().filter_map(event).collect();
        let ring = FrozenRing {
            written: raw.written,
            overwritten: raw.overwritten,
            oldest: events.iter().map(|event| event.begin).min().unwrap_or(self.now),
            left_out: 0,
            damaged: raw.damaged + (raw.events.len() - events.len()) as u64,
        };
        ReadRing { ring, events }
    }

    /// The communicators of the events.
    fn note_seats(&mut self, spaces: &[Space]) {
        let used: std::collections::BTreeSet<u64> =
            self.frozen.events.iter().map(|event| event.communicator).collect();
        for space in spaces.iter().filter(|space| used.contains(&space.identity)) {
            let seat = FrozenSeat {
                rank: space.rank,
                size: space.size,
                is_between: space.is_between,
                is_number_lost: space.is_number_lost,
                made: space.made,
            };
            self.frozen.seats.insert((space.identity, self.rank), seat);
        }
    }

    /// The communicators in which other ranks may have events, so that it is known which are
    /// absent.
    fn note_members(&mut self, standing: &Standing) {
        let own = standing.seats.iter().filter(|((_, rank), _)| *rank == self.rank);
        for (key, seat) in own.filter(|(_, seat)| !seat.is_freed) {
            self.frozen.seats.entry(*key).or_insert(frozen_seat(seat));
        }
    }

    /// Adds the call in which the rank was seen at a moment of `CLOCK_MONOTONIC`.
    fn add_open(&mut self, posture: &Posture, seen_ns: i64, standing: &Standing) {
        let Some(call) = posture.call else { return };
        let seat = standing.seats.get(&(call.space, self.rank));
        let counted = seat.filter(|seat| !seat.is_number_lost);
        let next = counted.map_or(0, |seat| seat.made.saturating_add(1));
        let (kind, sequence) = match call.kind {
            CallKind::Collective => (Some(EventKind::Collective), next),
            CallKind::Wait if call.request > 0 => {
                (Some(EventKind::CollectiveCompleted), call.request)
            }
            CallKind::Receive | CallKind::Exchange => (Some(EventKind::Receive), 0),
            CallKind::Send => (Some(EventKind::Send), 0),
            _ => (None, 0),
        };
        let seen = self.clock.common(seen_ns).saturating_add(self.skew);
        let open = FrozenEvent {
            rank: self.rank,
            function: call.function,
            kind,
            pattern: call.pattern,
            is_open: true,
            communicator: call.space,
            sequence,
            peer: match call.side {
                Side::Rank(rank) => i32::try_from(rank).unwrap_or(-1),
                Side::Any | Side::None => -1,
            },
            tag: call.tag.unwrap_or(0),
            begin: seen.saturating_sub_unsigned(posture.for_ns),
            span: posture.for_ns,
            ..FrozenEvent::default()
        };
        if self.frozen.events.iter().any(|event| is_same_call(event, &open)) {
            return;
        }
        if let Some(seat) = seat {
            self.frozen.seats.entry((call.space, self.rank)).or_insert(frozen_seat(seat));
        }
        let thread = self.thread_of(&open);
        self.frozen.events.push(FrozenEvent { thread, ..open });
    }

    /// The thread that makes a call: one of which no recorded call ends after its begin.
    fn thread_of(&self, open: &FrozenEvent) -> u8 {
        let is_free = |thread: u8| {
            let events = self.frozen.events.iter().filter(|event| event.thread == thread);
            let last = events.map(FrozenEvent::end).max();
            last.is_none_or(|end| end <= open.begin.saturating_add_unsigned(SAME_CALL_NS))
        };
        let threads = self.frozen.rings.keys().map(|key| key.1);
        threads.into_iter().find(|&thread| is_free(thread)).unwrap_or(0)
    }
}

fn frozen_seat(seat: &Seat) -> FrozenSeat {
    let &Seat { rank, size, is_between, is_number_lost, made, .. } = seat;
    FrozenSeat { rank, size, is_between, is_number_lost, made }
}

/// Whether a call in progress has returned since it was seen, and was recorded.
///
/// Its number does not say so alone: the communicator may be read after it has returned, and then
/// the number is that of the next one. So a record of the number before is looked at by its time,
/// and so are calls without a number. One of the same call lasts beyond the middle of the time for
/// which it was seen; one of the call before has ended when that time begins. Of calls that were
/// seen for less than twice [`SAME_CALL_NS`] the times do not tell.
fn is_same_call(event: &FrozenEvent, open: &FrozenEvent) -> bool {
    if event.function != open.function {
        return false;
    }
    if open.kind == Some(EventKind::Collective) && open.sequence > 0 {
        if event.communicator != open.communicator {
            return false;
        }
        if event.sequence == open.sequence {
            return true;
        }
        if event.sequence.checked_add(1) != Some(open.sequence) {
            return false;
        }
    }
    let middle = open.begin.saturating_add_unsigned(open.span / 2);
    event.begin.abs_diff(open.begin) <= SAME_CALL_NS && event.end() > middle
}

/// A ring, in the clock of its file.
#[derive(Default)]
struct RawRing {
    events: Vec<Event>,
    /// Ticks and nanoseconds.
    moments: Vec<(u64, u64)>,
    written: u64,
    overwritten: u64,
    damaged: u64,
}

impl RawRing {
    /// Reads what is there at this moment, and follows its writer no further.
    fn read(events: &RankEvents, file: &EventFile, ring: usize) -> Self {
        let written = events.written(ring, file);
        let mut raw = Self { written, ..Self::default() };
        let mut cursor = RingCursor::default();
        let bounds = events.bounds(file);
        let mut at = 0;
        while at < written {
            let (records, lost) = events.copy(&mut cursor, ring, file, COPIED_MAX);
            raw.overwritten = raw.overwritten.saturating_add(lost);
            if records.is_empty() {
                break;
            }
            let (records, _) = records.as_chunks::<RECORD_WORDS>();
            at = at.saturating_add(lost).saturating_add(records.len() as u64);
            for record in records {
                match whole_record(*record, &bounds) {
                    Some(Record::Clock(ticks, ns)) => raw.moments.push((ticks, ns)),
                    Some(Record::Event(event)) => raw.events.push(event),
                    None => raw.damaged += 1,
                }
            }
        }
        raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(kind: EventKind, sequence: u32, begin: i64) -> FrozenEvent {
        let (communicator, span) = (5, 10_000_000);
        FrozenEvent {
            kind: Some(kind),
            function: 3,
            communicator,
            sequence,
            begin,
            span,
            ..FrozenEvent::default()
        }
    }

    #[test]
    fn a_call_that_has_returned_meanwhile_is_not_told_twice() {
        let is_same = |recorded, open| is_same_call(&recorded, &open);
        let collective = |sequence, begin| call(EventKind::Collective, sequence, begin);
        assert!(is_same(collective(4, 100), collective(4, 5_000_000)));
        // It returned before its communicator was read: its number is that of the next one.
        assert!(is_same(collective(3, 100), collective(4, 900_000)));
        assert!(!is_same(collective(3, 100), collective(4, 10_000_000)));
        assert!(!is_same(collective(2, 100), collective(4, 900_000)), "of another thread");
        let short = FrozenEvent { span: 600_000, ..collective(3, 100) };
        assert!(!is_same(short, collective(4, 700_000)), "the call before");
        let receive = |begin| call(EventKind::Receive, 0, begin);
        assert!(is_same(receive(100), receive(900_000)));
        assert!(!is_same(receive(100), receive(20_000_000)));
    }

    #[test]
    fn an_open_call_is_of_a_thread_that_is_free() {
        let clock = HostClock::default();
        let mut sheet = Sheet::new(2, &Posture::default(), clock, 50_000_000);
        for thread in [0, 1] {
            sheet.frozen.rings.insert((2, thread), FrozenRing::default());
        }
        sheet.frozen.events.push(call(EventKind::Receive, 1, 25_000_000));
        assert_eq!(sheet.thread_of(&call(EventKind::Receive, 0, 30_000_000)), 1);
        assert_eq!(sheet.thread_of(&call(EventKind::Receive, 0, 40_000_000)), 0);
    }
}
