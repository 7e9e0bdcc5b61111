//! The leaf's side: the event files of its ranks, and the answer that it makes of them when it is
//! asked.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use sapwood_profile::SizeClass;
use sapwood_trace::{
    Circumstances, Counter, Event, EventFile, EventKind, FileClock, Gathered, HEADER_WORDS,
    HostClock, Observer, READING_ERROR_NS, RECORD_WORDS, RecordBounds, RingCursor, SEATS_MAX,
    Space, Total, settled_spaces, since_words,
};
use sapwood_transport::SharedTable;

use super::calls::{CountedCalls, TimeInCalls};
use super::facts::{Facts, facts};
use super::question::Question;
use super::reading::{GATHERED_MAX, Reading};
use crate::effort::{Effort, begin_at};

/// The events of a leaf's ranks.
#[derive(Default)]
pub(crate) struct LeafWaits {
    ranks: BTreeMap<u32, RankEvents>,
    observer: Observer,
    /// Once it is known how times are compared.
    clock: Option<HostClock>,
    /// The rank that is read first: the one behind the last of which something was read.
    next: u32,
}

/// The event file of one rank.
pub(crate) struct RankEvents {
    file: Arc<SharedTable>,
    pub(super) cursors: Vec<RingCursor>,
    /// Of its communicators, by their places, those that records have named, as they were then.
    spaces: BTreeMap<usize, Space>,
    /// What the file counts by itself, as it was at the question before.
    counted: [u64; 4],
    /// Whether it was told how many collectives the rank had called when it ended.
    is_totalled: bool,
    /// Whether it was told that the rank notes hops of bypassed reductions.
    has_told_hops: bool,
    /// Whether it was told that it cannot be read any more.
    is_unreadable: bool,
    /// When it was written last, by `CLOCK_MONOTONIC`; none while its rank may write it.
    written_ns: Option<u64>,
    /// How long the calls lasted of which records were read.
    pub(super) calls: CountedCalls,
}

/// What the event file of a rank says at a moment, by one reading of its header.
#[derive(Debug, Default)]
pub(crate) struct RecordingState {
    /// Its communicators in the order of their places: the first one, those in use, and the
    /// [`SEATS_MAX`] that were freed last.
    pub(crate) spaces: Vec<Space>,
    /// Whether the numbers of their collectives mean something.
    pub(crate) is_numbered: bool,
    /// For how long it has not recorded its calls, in nanoseconds; 0 if it does.
    pub(crate) unrecorded_ns: u64,
    /// Whether collectives were not counted for a time.
    pub(crate) is_order_lost: bool,
}

fn unrecorded_ns(file: &EventFile, now_ns: u64) -> u64 {
    if file.is_recording {
        return 0;
    }
    // One that has never recorded has not done so since its file was made.
    now_ns.saturating_sub(file.paused_ns.max(file.clock.ns)).max(1)
}

impl LeafWaits {
    /// Takes in the event file of a rank.
    ///
    /// # Errors
    /// One line when it can be neither mapped nor read, or is not one.
    pub(crate) fn admit(&mut self, rank: u32, file: OwnedFd, bytes: u64) -> Result<(), String> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let file = SharedTable::open(file, bytes).map_err(|error| error.to_string())?;
        let file = Arc::new(file);
        let mut events = RankEvents {
            file,
            cursors: Vec::new(),
            spaces: BTreeMap::new(),
            counted: [0; 4],
            is_totalled: false,
            has_told_hops: false,
            is_unreadable: false,
            written_ns: None,
            calls: CountedCalls::default(),
        };
        let header = events.header()?;
        events.cursors = vec![RingCursor::default(); header.hop_rings().end];
        events.calls = CountedCalls::of_rings(header.rings());
        self.ranks.insert(rank, events);
        Ok(())
    }

    /// Says when the file of a rank that has ended was written last, by its host's
    /// `CLOCK_MONOTONIC`; [`u64::MAX`] if that is not known.
    pub(crate) fn note_written(&mut self, rank: u32, written_ns: u64) {
        if let Some(events) = self.ranks.get_mut(&rank) {
            events.written_ns = Some(written_ns);
        }
    }

    /// How long a rank was in its calls, as far as they were read; none without an event file.
    pub(crate) fn time_in_calls(&self, rank: u32) -> Option<TimeInCalls> {
        self.ranks.get(&rank).map(|events| events.calls.time())
    }

    /// The event file of a rank.
    pub(crate) fn events(&self, rank: u32) -> Option<&RankEvents> {
        self.ranks.get(&rank)
    }

    /// A copy of the clock by which times are read now; by a rank's own calibration where it is
    /// not known which one all leaves take.
    pub(crate) fn clock_now(&mut self, leaf: u32, question: &Question) -> HostClock {
        self.set_clock(leaf, question);
        if let Some(clock) = &self.clock {
            return clock.clone();
        }
        let own = self.own_clock().unwrap_or_default();
        if !question.is_spread {
            let mut shared = HostClock::shared(own);
            shared.error = READING_ERROR_NS;
            return shared;
        }
        let mut clock = HostClock::of_host(own, leaf + 1);
        if let Some(offset) = question.offsets.iter().find(|offset| offset.leaf == leaf) {
            clock.set_offset(offset.ahead, offset.error);
        }
        clock
    }

    /// What the file of a rank says now; nothing where it has none.
    pub(crate) fn recording(&self, rank: u32, now_ns: u64) -> RecordingState {
        let events = self.ranks.get(&rank);
        let read = events.and_then(|events| Some((events, events.header().ok()?)));
        let Some((events, file)) = read else { return RecordingState::default() };
        let spaces = events.spaces_in_use(&file);
        RecordingState {
            is_numbered: spaces.is_some() && !file.is_order_lost,
            spaces: spaces.unwrap_or_default(),
            unrecorded_ns: unrecorded_ns(&file, now_ns),
            is_order_lost: file.is_order_lost,
        }
    }

    /// For how long a rank has not recorded its calls at a moment of `CLOCK_MONOTONIC`, in
    /// nanoseconds; 0 if it does, and where it has no file.
    pub(crate) fn unrecorded_ns(&self, rank: u32, now_ns: u64) -> u64 {
        let file = self.ranks.get(&rank).and_then(|events| events.header().ok());
        file.map_or(0, |file| unrecorded_ns(&file, now_ns))
    }

    /// The answer to a question, within `effort`; `leaf` is the own number.
    pub(crate) fn answer(
        &mut self,
        leaf: u32,
        question: &Question,
        mut effort: Effort<'_>,
    ) -> Gathered {
        self.set_clock(leaf, question);
        let mut headers = self.headers(question.world_size);
        let reference = headers.first().map(|(rank, file)| (*rank, file.clock));
        begin_at(&mut headers, self.next);
        if let Some(clock) = &mut self.clock {
            question.settled.iter().for_each(|one| self.observer.settle(one, clock));
            let mut reading = Reading::new(&mut self.observer, clock, &mut effort, headers.len());
            if let Some(last) = reading.read(&mut self.ranks, &headers) {
                self.next = last + 1;
            }
            for (rank, file) in &headers {
                let Some(events) = self.ranks.get_mut(rank) else { continue };
                events.count(file, self.observer.gathered());
                // What has no room now comes with the next answer.
                if self.observer.gathered().totals.len() < GATHERED_MAX {
                    events.total(*rank, file, self.observer.gathered());
                }
            }
        } else {
            self.ranks.values_mut().for_each(|events| events.calls.note_gap());
        }
        let mut gathered = self.observer.take();
        gathered.bound();
        gathered.reference = reference;
        gathered
    }

    /// What the files say now that are of a program of this size. One that cannot be read any more
    /// is counted, once.
    fn headers(&mut self, world_size: u32) -> Vec<(u32, EventFile)> {
        let mut headers = Vec::new();
        for (&rank, events) in &mut self.ranks {
            let header = events.header();
            if header.is_err() {
                events.calls.note_gap();
            }
            match header {
                Ok(file) if [0, file.world_size].contains(&world_size) => {
                    headers.push((rank, file));
                }
                Err(_) if !std::mem::replace(&mut events.is_unreadable, true) => {
                    self.observer.gathered().count(Counter::Unreadable, 1);
                }
                Ok(_) | Err(_) => {}
            }
        }
        headers
    }

    /// How times are compared: on one host by one calibration for all, else by this host's clock.
    fn set_clock(&mut self, leaf: u32, question: &Question) {
        if self.clock.is_none() {
            self.clock = match (question.is_spread, question.clock) {
                (false, shared) => shared.map(HostClock::shared),
                (true, _) => self.own_clock().map(|own| HostClock::of_host(own, leaf + 1)),
            };
        }
        let own = question.offsets.iter().find(|offset| offset.leaf == leaf);
        if let (Some(clock), Some(own)) = (&mut self.clock, own) {
            clock.set_offset(own.ahead, own.error);
        }
    }

    fn own_clock(&self) -> Option<FileClock> {
        self.ranks.values().find_map(|events| Some(events.header().ok()?.clock))
    }
}

impl RankEvents {
    /// Its header as it is now.
    ///
    /// # Errors
    /// One line that says what is wrong with it.
    pub(crate) fn header(&self) -> Result<EventFile, String> {
        let header = self.file.copy_words(0..HEADER_WORDS.min(self.file.words()));
        let header = header.map_err(|error| error.to_string())?;
        EventFile::read(&header, self.file.words()).map_err(|error| error.to_string())
    }

    /// Its communicators as they are now; none where they cannot be read.
    pub(crate) fn spaces_now(&self, file: &EventFile) -> Option<Vec<Space>> {
        self.spaces_in(file.spaces())
    }

    /// Those in use, and the latest of those that are freed. A file has places for tens of
    /// thousands, of which only the words are looked at that tell these from others.
    fn spaces_in_use(&self, file: &EventFile) -> Option<Vec<Space>> {
        let mut places = BTreeSet::new();
        let mut freed = Vec::new();
        for (place, since_word) in since_words(file.spaces()).enumerate() {
            let since = self.file.load_word(since_word)?;
            let is_freed = self.file.load_word(file.space(place).start)? == 0;
            match is_freed && place != 0 {
                true if since == u64::MAX => {}
                true => freed.push((since, place)),
                false => {
                    places.insert(place);
                }
            }
        }
        if freed.len() > SEATS_MAX {
            freed.select_nth_unstable_by_key(SEATS_MAX, |one| Reverse(*one));
            freed.truncate(SEATS_MAX);
        }
        places.extend(freed.into_iter().map(|(_, place)| place));
        let places: Vec<usize> = places.into_iter().collect();
        let mut spaces = Vec::with_capacity(places.len());
        for run in places.chunk_by(|one, next| one + 1 == *next) {
            let (Some(&first), Some(&last)) = (run.first(), run.last()) else { continue };
            spaces.extend(self.spaces_in(file.space(first).start..file.space(last).end)?);
        }
        Some(spaces)
    }

    /// The communicators of these words. One that gives its space to another one meanwhile is
    /// empty.
    fn spaces_in(&self, range: Range<usize>) -> Option<Vec<Space>> {
        let sinces = || -> Vec<u64> {
            since_words(range.clone()).filter_map(|word| self.file.load_word(word)).collect()
        };
        let before = sinces();
        let words = self.file.copy_words(range.clone()).ok()?;
        // Behind the words: had one of them changed, this would be seen.
        fence(Ordering::Acquire);
        Some(settled_spaces(&before, &words, &sinces()))
    }

    /// Whether the space of an event is still that of the communicator of which it is a record;
    /// `space` was read at some time.
    pub(crate) fn is_of(&self, event: &Event, space: &Space, file: &EventFile) -> bool {
        let now = since_words(file.space(event.space)).next();
        let now = now.and_then(|word| self.file.load_word(word));
        now.is_none_or(|since| since == space.since) && space.since <= event.time
    }

    /// The file itself, to look at beside.
    pub(crate) fn share(&self) -> Arc<SharedTable> {
        Arc::clone(&self.file)
    }

    /// Between which times its records lie.
    pub(crate) fn bounds(&self, file: &EventFile) -> RecordBounds {
        match self.written_ns {
            Some(written_ns) => RecordBounds::new(file.clock, written_ns),
            None => RecordBounds::of_live(file.clock),
        }
    }

    /// How many records a ring has had.
    pub(crate) fn written(&self, ring: usize, file: &EventFile) -> u64 {
        self.file.load_word(file.head(ring)).unwrap_or(0)
    }

    /// The communicator of an event.
    ///
    /// # Errors
    /// As what the event is counted: its process has not said what the communicator is, or another
    /// one has its space by now.
    fn space(&mut self, event: &Event, file: &EventFile) -> Result<Space, Counter> {
        let number = event.space;
        if let Some(known) = self.spaces.get(&number).filter(|one| self.is_of(event, one, file)) {
            return Ok(*known);
        }
        // The header may be older than the records that are read behind it.
        let file = match file.space(number).is_empty() {
            true => self.header().unwrap_or(*file),
            false => *file,
        };
        let read = self.spaces_in(file.space(number));
        let read = read.ok_or(Counter::LeftOut)?;
        let now = read.first().copied().ok_or(Counter::Damaged)?;
        self.spaces.insert(number, now);
        self.is_of(event, &now, &file).then_some(now).ok_or(Counter::Former)
    }

    /// Copies the next records of a ring that are whole, at most `most`; and how many were
    /// overwritten.
    pub(crate) fn copy(
        &self,
        cursor: &mut RingCursor,
        ring: usize,
        file: &EventFile,
        most: usize,
    ) -> (Vec<u64>, u64) {
        let plan = cursor.plan(self.written(ring, file), file.ring_records(), most);
        let planned = usize::try_from(plan.end - plan.start).unwrap_or(most);
        let mut words = Vec::with_capacity(planned * RECORD_WORDS);
        for number in plan.clone() {
            if self.file.append_words(file.record(ring, number), &mut words).is_err() {
                return (Vec::new(), 0);
            }
        }
        // What was overwritten meanwhile is seen by where the writer is now.
        fence(Ordering::Acquire);
        let now = self.written(ring, file);
        let begin = plan.start;
        let (good, lost) = cursor.take(plan, now, file.ring_records());
        let skipped = usize::try_from(good.start - begin).unwrap_or(usize::MAX);
        words.drain(..(skipped.saturating_mul(RECORD_WORDS)).min(words.len()));
        (words, lost)
    }

    /// Gives the observer an event of this rank, from one of its rings.
    pub(super) fn observe(
        &mut self,
        rank: u32,
        ring: usize,
        file: &EventFile,
        event: &Event,
        observer: &mut Observer,
        clock: &HostClock,
    ) {
        // How long it took is known also where nothing else of it is.
        self.calls.note(ring, event, clock);
        let is_collective = matches!(
            event.kind,
            EventKind::Collective | EventKind::CollectiveStarted | EventKind::CollectiveCompleted
        );
        if is_collective && (file.is_order_lost || event.sequence == 0) {
            return observer.gathered().count(Counter::Unordered, 1);
        }
        let space = match self.space(event, file) {
            Ok(space) => space,
            Err(counter) => return observer.gathered().count(counter, 1),
        };
        if !space.has_peer_of(event) {
            return observer.gathered().count(Counter::Damaged, 1);
        }
        let Facts { procedure, pattern, has_communicator, beside, .. } = facts(event.function);
        let size_class = match has_communicator {
            true => space.size.max(1).next_power_of_two().trailing_zeros(),
            false => SizeClass::NONE.code().into(),
        };
        let word = event.function << 8 | size_class;
        let about = Circumstances { rank, space, event: word, procedure, pattern, beside };
        observer.observe(event, &about, clock);
    }

    /// What the file counts by itself.
    fn count(&mut self, file: &EventFile, gathered: &mut Gathered) {
        let now = [file.without_ring, file.without_space, file.unsure, file.without_hop_ring];
        if !file.is_recording || file.without_ring > self.counted[0] {
            self.calls.note_gap();
        }
        let counters = [
            Counter::WithoutRing,
            Counter::WithoutSpace,
            Counter::Unsure,
            Counter::HopsWithoutRing,
        ];
        for ((counter, now), before) in counters.into_iter().zip(now).zip(self.counted) {
            gathered.count(counter, now.saturating_sub(before));
        }
        self.counted = now;
        let has_hops = !file.hop_rings().is_empty();
        if has_hops && !std::mem::replace(&mut self.has_told_hops, true) {
            gathered.count(Counter::HopRanks, 1);
        }
    }

    /// How many collectives a rank has called that has come to `MPI_Finalize`; once.
    fn total(&mut self, rank: u32, file: &EventFile, gathered: &mut Gathered) {
        if self.is_totalled || !file.is_finalized || file.is_order_lost {
            return;
        }
        let Some(spaces) = self.spaces_now(file) else { return };
        self.is_totalled = true;
        for space in &spaces {
            if let Some(total) = Total::of(space, rank) {
                gathered.add_total(space.identity, &total);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use std::time::Duration;

    use sapwood_trace::{Coscheduling, ENTRIES_MAX, WholeCollectives};

    use crate::effort::Patience;
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    use super::*;

    /// Where the first communicator of an [`event_file`] is.
    const SPACE: u64 = HEADER_WORDS as u64;

    fn effort(patience: &mut Patience) -> Effort<'_> {
        Effort::new(Coscheduling::Any, Duration::from_secs(60), Vec::new(), patience)
    }

    const fn words(spaces: u64) -> u64 {
        SPACE + spaces * 8 + 8 + 16 * RECORD_WORDS as u64
    }

    /// The event file of rank 0 of 1, with this many communicators and a ring of 16 records.
    fn event_file(spaces: u64) -> File {
        let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
        let file = File::from(memfd_create("events", flags).expect("memory"));
        file.set_len(words(spaces) * 8).expect("its size");
        fcntl_add_seals(&file, SealFlags::SHRINK).expect("its seal");
        write(&file, 0, u64::from_le_bytes(*b"SWEVENTS"));
        write(&file, 1, 1 | 256 << 32);
        write(&file, 2, 1 << 32);
        write(&file, 8, spaces << 32);
        write(&file, 9, spaces | 1 << 32);
        write(&file, 10, 16 | ((SPACE + spaces * 8) * 8) << 32);
        file
    }

    fn write(file: &File, word: u64, value: u64) {
        file.write_all_at(&value.to_le_bytes(), word * 8).expect("memory");
    }

    fn admitted(file: &File, spaces: u64) -> LeafWaits {
        let mut waits = LeafWaits::default();
        let copy = file.try_clone().expect("a descriptor");
        waits.admit(0, copy.into(), words(spaces) * 8).expect("an event file");
        waits
    }

    #[test]
    fn a_file_that_cannot_be_read_any_more_is_counted_once() {
        let file = event_file(1);
        let mut waits = admitted(&file, 1);
        assert_eq!([0, 1, 2].map(|world_size| waits.headers(world_size).len()), [1, 1, 0]);
        write(&file, 0, 0);
        assert!(waits.headers(1).is_empty() && waits.headers(1).is_empty());
        assert_eq!(waits.observer.take().counters[Counter::Unreadable as usize], 1);
    }

    #[test]
    fn an_answer_has_no_more_sums_than_a_packet_may_have() {
        let mut waits = LeafWaits::default();
        let whole = WholeCollectives { size: 1, collectives: 1, ..WholeCollectives::default() };
        let places = ENTRIES_MAX as u64 + 9;
        for communicator in 1..=places {
            waits.observer.gathered().add_whole((communicator, 1), &whole);
        }
        let mut patience = Patience::default();
        let gathered = waits.answer(0, &Question::default(), effort(&mut patience));
        assert!(gathered.wholes.len() <= ENTRIES_MAX + 1, "{}", gathered.wholes.len());
        let sum: u64 = gathered.wholes.values().map(|one| one.collectives).sum();
        assert_eq!(sum, places);
    }

    #[test]
    fn hops_are_read_from_their_own_rings_and_unknown_ones_are_counted() {
        let file = event_file(1);
        let hops_at = words(1);
        let length = hops_at + 8 + 16 * RECORD_WORDS as u64;
        file.set_len(length * 8).expect("its size");
        write(&file, 15, 5);
        write(&file, 16, 1);
        let mut waits = LeafWaits::default();
        let copy = file.try_clone().expect("a descriptor");
        waits.admit(0, copy.into(), length * 8).expect("an event file");
        // Twenty records in a ring of sixteen, of which the last but one is of another release.
        for number in 0..20_u64 {
            let kind = if number == 18 { 99 } else { 1 };
            let at = hops_at + 8 + number % 16 * RECORD_WORDS as u64;
            let record = [100 + number, 7, kind | 4 << 16 | number << 32, 0];
            (at..).zip(record).for_each(|(word, value)| write(&file, word, value));
        }
        write(&file, hops_at, 20);
        let question = Question { clock: Some(FileClock::default()), ..Question::default() };
        let mut patience = Patience::default();
        let counters = [
            Counter::HopsDropped,
            Counter::HopsUnknown,
            Counter::HopsWithoutRing,
            Counter::HopRanks,
            Counter::Dropped,
        ];
        let told = |gathered: &Gathered| counters.map(|one| gathered.counters[one as usize]);
        let first = waits.answer(0, &question, effort(&mut patience));
        let times: Vec<u64> = first.hops.iter().map(|hop| hop.time).collect();
        // The place that is perhaps being written is not read.
        assert_eq!(times, (105..118).chain([119]).collect::<Vec<_>>());
        assert_eq!(told(&first), [5, 1, 5, 1, 0]);
        let second = waits.answer(0, &question, effort(&mut patience));
        assert!(second.hops.is_empty() && told(&second) == [0; 5], "each is read once");
    }

    #[test]
    fn a_record_is_not_of_the_communicator_that_got_the_place_of_its_own() {
        let file = event_file(1);
        let mut waits = admitted(&file, 1);
        let events = waits.ranks.get_mut(&0).expect("the rank");
        let header = events.header().expect("an event file");
        let mut identity_at = |time| {
            let kind = EventKind::Collective;
            let (span, function, space, members, sequence, peer, tag) = (5, 3, 0, 1, 1, -1, 0);
            let event = Event { time, span, function, space, kind, members, sequence, peer, tag };
            events.space(&event, &header).map(|space| space.identity)
        };
        let give = |identity, since| {
            write(&file, SPACE + 1, identity);
            write(&file, SPACE + 7, since);
        };
        let former = Err(Counter::Former);
        give(7, 0);
        assert_eq!(identity_at(50), Ok(7));
        give(9, 100);
        assert_eq!((identity_at(50), identity_at(150)), (former, Ok(9)));
        give(11, u64::MAX);
        assert_eq!(identity_at(150), former, "it is changed at this moment");
        give(11, 200);
        assert_eq!((identity_at(150), identity_at(250)), (former, Ok(11)));
    }

    #[test]
    fn an_event_of_a_former_communicator_is_counted_as_that() {
        let file = event_file(1);
        let mut waits = admitted(&file, 1);
        write(&file, SPACE + 7, 100);
        let events = waits.ranks.get_mut(&0).expect("the rank");
        let header = events.header().expect("an event file");
        let clock = HostClock::shared(header.clock);
        for space in [0, 9] {
            let (kind, time, span, function) = (EventKind::Collective, 50, 5, 3);
            let (members, sequence, peer, tag) = (1, 1, -1, 0);
            let event = Event { time, span, function, space, kind, members, sequence, peer, tag };
            events.observe(0, 0, &header, &event, &mut waits.observer, &clock);
        }
        let counters = waits.observer.take().counters;
        let told = [Counter::Former, Counter::Damaged].map(|one| counters[one as usize]);
        assert_eq!(told, [1, 1], "another one has its place, and there is no such place");
    }

    #[test]
    fn of_many_communicators_those_in_use_and_the_latest_freed_ones_are_read() {
        let most = SEATS_MAX as u64;
        let spaces = 3 * most;
        let file = event_file(spaces);
        let waits = admitted(&file, spaces);
        // Identities are places plus 1; all are freed but the first and the last but one of them.
        for place in 0..spaces {
            write(&file, SPACE + place * 8, u64::from([0, spaces - 2].contains(&place)));
            write(&file, SPACE + place * 8 + 1, place + 1);
        }
        // One that had the place of another, and one that is changed at this moment.
        write(&file, SPACE + 2 * 8 + 7, 44);
        write(&file, SPACE + (spaces - 1) * 8 + 7, u64::MAX);
        let RecordingState { spaces: read, is_numbered, .. } = waits.recording(0, 0);
        let identities: Vec<u64> = read.iter().map(|space| space.identity).collect();
        let latest = (spaces - 2 - (most - 1)..spaces - 1).map(|place| place + 1);
        assert_eq!(identities, [1, 3].into_iter().chain(latest).collect::<Vec<_>>());
        assert!(is_numbered && read[1].since == 44);
    }
}
