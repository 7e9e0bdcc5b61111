//! The leaf's side: reads the rings of the ranks that a scope wants, and reduces what it selects.

use std::collections::BTreeMap;

use sapwood_profile::{Function, TableReader};
use sapwood_report::nanoseconds;
use sapwood_trace::{
    Event, EventFile, EventKind, HostClock, OTHERS, RECORD_WORDS, RankRing, Record, RingCursor,
    Scope, ScopeCounter, ScopeFigures, ScopeKey, ScopeValue, ScopeWindows, Space, WindowOwner,
    WindowRule,
};

use super::ScopeQuestion;
use crate::effort::{Effort, Turn, begin_at};
use crate::waits::{RankEvents, whole_record};

/// Scopes of one run, at most; one more takes the place of the oldest.
const SCOPES_MAX: usize = 64;

/// The scopes of a run, by their numbers.
#[derive(Default)]
pub(crate) struct LeafScopes {
    by_number: BTreeMap<u32, LeafScope>,
}

/// How far one scope has come.
#[derive(Default)]
struct LeafScope {
    ranks: BTreeMap<u32, RankReader>,
    /// The last events of each group and thread, where figures are of these.
    windows: ScopeWindows,
    /// The rank that is read first: the one behind the last of which something was read.
    next: u32,
}

/// How far the rings of one rank are read.
#[derive(Default)]
struct RankReader {
    rings: Vec<RingReader>,
    /// Calls that its file has counted and not recorded, as of the question before.
    unrecorded: [u64; 2],
    /// The names that its communicators were given, by the number of their space.
    names: BTreeMap<usize, String>,
}

#[derive(Clone, Copy, Default)]
struct RingReader {
    cursor: RingCursor,
    /// The call that was read last, which may have several events.
    call: Option<ReadCall>,
}

/// A call of which an event was read.
#[derive(Clone, Copy)]
struct ReadCall {
    /// Its begin, in ticks.
    begin: u64,
    /// Its return.
    end: u64,
    /// The return of the one before; none where that is not known.
    before: Option<u64>,
    /// Whether one of its events was selected.
    is_selected: bool,
}

impl RingReader {
    /// The call of an event.
    fn call(&mut self, event: &Event) -> &mut ReadCall {
        let before = self.call;
        let is_new = before.is_none_or(|call| call.begin != event.time);
        let (begin, end) = (event.time, event.time.saturating_add(event.span));
        let new = ReadCall { begin, end, before: before.map(|call| call.end), is_selected: false };
        if is_new { self.call.insert(new) } else { self.call.get_or_insert(new) }
    }
}

impl LeafScopes {
    /// The answer to a question, from the events of these ranks, within `effort`; `words` gives a
    /// rank's table, in which its communicators have their names.
    pub(crate) fn answer<'a>(
        &mut self,
        question: &ScopeQuestion,
        effort: Effort<'_>,
        ranks: impl Iterator<Item = (u32, &'a RankEvents)>,
        words: impl Fn(u32) -> Option<Vec<u64>>,
    ) -> ScopeFigures {
        if !self.by_number.contains_key(&question.number) {
            while self.by_number.len() >= SCOPES_MAX {
                self.by_number.pop_first();
            }
        }
        let one = self.by_number.entry(question.number).or_default();
        let figures = ScopeFigures::default();
        let mut reading = Reading { scope: &question.scope, effort, figures };
        let names_are_needed =
            question.scope.by.communicator || !question.scope.communicators.is_empty();
        let those = ranks.filter(|(rank, _)| question.scope.wants_rank(*rank));
        let mut those: Vec<(u32, &RankEvents)> = those.collect();
        begin_at(&mut those, one.next);
        for (number, events) in those {
            let Ok(file) = events.header() else { continue };
            reading.figures.count(ScopeCounter::Ranks, 1);
            if !file.is_recording && events.written(0, &file) == 0 {
                reading.figures.count(ScopeCounter::Silent, 1);
            }
            let spaces = events.spaces_now(&file).unwrap_or_default();
            let reader = one.ranks.entry(number).or_default();
            if names_are_needed && let Some(words) = words(number) {
                reader.note_names(&spaces, &words);
            }
            let now = [file.without_ring, file.without_space];
            let counters = [ScopeCounter::WithoutRing, ScopeCounter::WithoutSpace];
            for ((counter, now), before) in counters.into_iter().zip(now).zip(reader.unrecorded) {
                reading.figures.count(counter, now.saturating_sub(before));
            }
            reader.unrecorded = now;
            if reading.rank(number, events, &file, &spaces, reader, &mut one.windows) {
                one.next = number + 1;
            }
            let unread = |(ring, state): (usize, &RingReader)| {
                events.written(ring, &file).saturating_sub(state.cursor.position())
            };
            let unread = reader.rings.iter().enumerate().map(unread).sum();
            reading.figures.count(ScopeCounter::Waiting, unread);
        }
        let Reading { mut figures, effort, .. } = reading;
        one.windows.add_to(&mut figures, question.scope.reduction);
        if let Some(groups) = question.scope.part_groups_max() {
            figures.keep_largest(groups);
        }
        figures.bound(question.bytes_max);
        figures.count(ScopeCounter::CpuNs, nanoseconds(effort.used()));
        figures
    }
}

impl RankReader {
    fn note_names(&mut self, spaces: &[Space], words: &[u64]) {
        let Ok(table) = TableReader::new(words) else { return };
        for (number, space) in spaces.iter().enumerate() {
            let is_world = || number == 0 && space.size > 0;
            let name = table.given_name(space.name);
            let name = name.or_else(|| is_world().then(|| "MPI_COMM_WORLD".to_owned()));
            match name {
                Some(name) => self.names.insert(number, name),
                // Of a former communicator of this space.
                None => self.names.remove(&number),
            };
        }
    }
}

/// Whether an event is the start of a persistent receive: it numbers the message, and is no call
/// that waits.
fn is_start(event: &Event) -> bool {
    let name = Function::of(event.function).map_or("", |function| function.name);
    event.kind == EventKind::ReceiveCompleted && name.starts_with("MPI_Start")
}

/// One reading of all rings for one scope.
struct Reading<'a> {
    scope: &'a Scope,
    effort: Effort<'a>,
    figures: ScopeFigures,
}

/// Whose events are read.
struct Source<'a> {
    rank: u32,
    ring: usize,
    events: &'a RankEvents,
    file: &'a EventFile,
    spaces: &'a [Space],
    names: &'a BTreeMap<usize, String>,
    clock: &'a HostClock,
}

impl Reading<'_> {
    /// Reads the rings of a rank, as far as the effort allows; whether it allowed anything.
    fn rank(
        &mut self,
        rank: u32,
        events: &RankEvents,
        file: &EventFile,
        spaces: &[Space],
        reader: &mut RankReader,
        windows: &mut ScopeWindows,
    ) -> bool {
        let clock = HostClock::shared(file.clock);
        let bounds = events.bounds(file);
        reader.rings.resize(file.rings(), RingReader::default());
        let RankReader { rings, names, .. } = reader;
        let mut is_read = false;
        for (ring, state) in rings.iter_mut().enumerate() {
            let source = Source { rank, ring, events, file, spaces, names, clock: &clock };
            let head = events.written(ring, file);
            let mut left = head.saturating_sub(state.cursor.position());
            // What is written meanwhile is for the next question.
            while left > 0 {
                let turn = self.effort.turn(left, file.ring_records());
                let counter = match turn {
                    Turn::Throttled => Some(ScopeCounter::Throttled),
                    Turn::PutOff => Some(ScopeCounter::PutOff),
                    Turn::Now | Turn::Overdue => None,
                };
                if let Some(counter) = counter {
                    self.figures.count(counter, 1);
                    return is_read;
                }
                is_read = true;
                let most = self.effort.piece();
                let (records, lost) = events.copy(&mut state.cursor, ring, file, most);
                let thread = u32::try_from(ring).unwrap_or(u32::MAX);
                self.figures.count_dropped(RankRing { rank, thread }, lost);
                if lost > 0 {
                    state.call = None;
                }
                let (records, _) = records.as_chunks::<RECORD_WORDS>();
                if records.is_empty() && lost == 0 {
                    break;
                }
                if turn == Turn::Overdue {
                    self.figures.count(ScopeCounter::Overdue, records.len() as u64);
                }
                left = left.saturating_sub(lost.saturating_add(records.len() as u64));
                for record in records {
                    let event = match whole_record(*record, &bounds) {
                        Some(Record::Event(event)) => event,
                        Some(Record::Clock(..)) => continue,
                        None => {
                            self.figures.count(ScopeCounter::Damaged, 1);
                            continue;
                        }
                    };
                    if !is_start(&event) {
                        self.event(&event, &source, state, windows);
                    }
                }
            }
        }
        true
    }

    fn event(
        &mut self,
        event: &Event,
        source: &Source<'_>,
        state: &mut RingReader,
        windows: &mut ScopeWindows,
    ) {
        let known = source.spaces.get(event.space);
        let space = known.filter(|space| source.events.is_of(event, space, source.file));
        if space.is_some_and(|space| !space.has_peer_of(event)) {
            self.figures.count(ScopeCounter::Damaged, 1);
            return;
        }
        self.figures.count(ScopeCounter::Read, 1);
        let call = state.call(event);
        let span = source.clock.span(event.span);
        // One that was not there yet has no name either.
        let is_former = known.is_some() && space.is_none();
        let name = source.names.get(&event.space).filter(|_| !is_former);
        let name = name.map_or("", String::as_str);
        // A call that completes several requests, or sends and receives, has an event for each.
        if call.is_selected
            || !self.scope.wants(event.function, event.kind, span)
            || !self.scope.wants_communicator(name)
        {
            return;
        }
        let value = match (self.scope.value, call.before) {
            (ScopeValue::Span, _) => span,
            (ScopeValue::Gap, Some(returned)) => {
                source.clock.span(event.time.saturating_sub(returned))
            }
            (ScopeValue::Gap, None) => return,
        };
        call.is_selected = true;
        self.figures.count(ScopeCounter::Selected, 1);
        let by = self.scope.by;
        let key = ScopeKey {
            rank: if by.rank { source.rank } else { OTHERS },
            function: if by.function { event.function } else { 0 },
            communicator: space.filter(|_| by.communicator).map_or(0, |space| space.identity),
            kind: if by.kind { event.kind as u8 } else { 0 },
            thread: if by.thread { u8::try_from(source.ring).unwrap_or(u8::MAX) } else { 0 },
        };
        if by.communicator && !name.is_empty() {
            self.figures.names.entry(key.communicator).or_insert_with(|| name.to_owned());
        }
        let owner = WindowOwner { key, rank: source.rank, ring: source.ring };
        let rule = WindowRule { window: self.scope.window, reduction: self.scope.reduction };
        windows.add(owner, value, rule, &mut self.figures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: u64, span: u64) -> Event {
        let kind = EventKind::Collective;
        Event { time, span, function: 3, space: 0, kind, members: 1, sequence: 1, peer: -1, tag: 0 }
    }

    #[test]
    fn the_events_of_one_call_are_told_from_those_of_the_next() {
        let mut reader = RingReader::default();
        assert_eq!(reader.call(&event(100, 10)).before, None);
        reader.call(&event(100, 10)).is_selected = true;
        assert!(reader.call(&event(100, 10)).is_selected, "the second event of this call");
        let next = reader.call(&event(150, 5));
        assert_eq!((next.before, next.is_selected), (Some(110), false));
        assert_eq!(reader.call(&event(150, 5)).before, Some(110));
    }
}
