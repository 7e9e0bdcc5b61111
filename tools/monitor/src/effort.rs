//! What reading events may cost the ranks of a leaf: how much of a processor it may use, and at
//! which moments.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use sapwood_command_line::shares::share;
use sapwood_profile::{Class, Function};
use sapwood_trace::{Coscheduling, EventFile, EventKind};
use sapwood_transport::SharedTable;

/// The share of a processor for waits in millionths, if none is given; the option has it in words.
const CPU_PPM: u32 = 100_000;
/// A leaf gets at least this time of a processor.
const CPU_NS_MIN: u64 = 50_000;
/// A reading waits no longer than this for its moments, and the next one of its leaf only when as
/// much time has passed: a leaf answers other questions, too.
const PATIENCE: Duration = Duration::from_millis(50);
/// Between two looks whether one has come.
const LOOK_EVERY: Duration = Duration::from_micros(20);
/// Records that are copied at once: between looking at the head of a ring and looking again.
const PIECE_MAX: usize = 1024;
/// The same where each piece waits for its moment: some 10 us of work.
const PIECE: usize = 256;
/// The last records of a ring that are looked at for a collective.
const LAST_RECORDS: u64 = 16;

/// What reading events of waits may cost, as options.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct WaitsEffort {
    /// When leaves read the events of waits: at 'any' time, while a rank is 'waiting' in a
    /// collective, or after all ranks of a leaf were 'released' from one.
    #[arg(long = "waits-when", value_name = "WHEN", default_value = "any", requires = "command",
          value_parser = str::parse::<Coscheduling>)]
    when: Coscheduling,
    /// Maximum share of a processor that each leaf uses to read them while the program runs.
    #[arg(long = "waits-cpu", value_name = "SHARE", default_value = "10%", requires = "command",
          value_parser = share)]
    cpu_ppm: u32,
}

/// Without limits: for a program that has ended.
pub(crate) const UNLIMITED: WaitsEffort =
    WaitsEffort { when: Coscheduling::Any, cpu_ppm: u32::MAX };

impl Default for WaitsEffort {
    fn default() -> Self {
        Self { when: Coscheduling::Any, cpu_ppm: CPU_PPM }
    }
}

impl WaitsEffort {
    /// When events are read.
    pub(crate) fn when(self) -> Coscheduling {
        self.when
    }

    /// The share of a time, at least as much as reading a little takes.
    pub(crate) fn cpu_ns(self, time: Duration) -> u64 {
        cpu_ns(self.cpu_ppm, time)
    }
}

/// The nanoseconds of a share of a processor, in millionths, in a time: at least as many as reading
/// a little takes.
pub(crate) fn cpu_ns(ppm: u32, time: Duration) -> u64 {
    let ns = time.as_nanos().saturating_mul(ppm.into()) / 1_000_000;
    u64::try_from(ns).unwrap_or(u64::MAX).max(CPU_NS_MIN)
}

/// When a leaf may wait for a moment again.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    again: Option<Instant>,
}

impl Patience {
    /// How long a reading that begins now may wait.
    fn until(&self, now: Instant) -> Instant {
        if self.again.is_some_and(|again| now < again) { now } else { now + PATIENCE }
    }

    /// Notes that a reading has waited until now.
    fn note_wait(&mut self, now: Instant) {
        self.again = Some(now + PATIENCE);
    }
}

/// Turns ranks in ascending order so that the first is `next`, or the one behind it. Where the time
/// does not suffice for all, it is another rank's turn the next time.
pub(crate) fn begin_at<T>(ranks: &mut [(u32, T)], next: u32) {
    let first = ranks.partition_point(|(rank, _)| *rank < next);
    ranks.rotate_left(first);
}

/// What one reading may use.
pub(crate) struct Effort<'a> {
    when: Coscheduling,
    ranks: Vec<WatchedRank<'a>>,
    patience: &'a mut Patience,
    /// When it no longer waits for a moment.
    until: Instant,
    begun: Duration,
    /// The processor time of this thread at which its share is used up.
    cpu_until: Duration,
}

/// What may be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Records may be read.
    Now,
    /// They must be, whatever the ranks do: they would be overwritten.
    Overdue,
    /// No moment has come: the rest is for the next reading.
    PutOff,
    /// The share of a processor is used up.
    Throttled,
}

/// A rank whose calls decide when events are read.
pub(crate) struct WatchedRank<'a> {
    table: &'a SharedTable,
    /// The words of its table that say in which function each thread is.
    calls: &'a [usize],
    events: Arc<SharedTable>,
    file: EventFile,
    /// How many records of each ring have been looked at.
    seen: Vec<u64>,
    /// Whether it has returned from a collective since the last piece.
    has_returned: bool,
}

/// Whether a thread of a rank is in a collective, by its table and the words of that which say in
/// which function each thread is.
pub(crate) fn is_in_collective(table: &SharedTable, calls: &[usize]) -> bool {
    let functions = calls.iter().filter_map(|&word| table.load_word(word));
    functions
        .filter_map(|word| u32::try_from(word).ok())
        .any(|id| Function::of(id).is_some_and(|function| function.class == Class::Collective))
}

impl<'a> WatchedRank<'a> {
    /// A rank with its table, the words of it that say in which function each thread is, and its
    /// events.
    pub(crate) fn new(
        table: &'a SharedTable,
        calls: &'a [usize],
        events: Arc<SharedTable>,
        file: EventFile,
    ) -> Self {
        let written = |ring| events.load_word(file.head(ring)).unwrap_or(0);
        let seen = (0..file.rings()).map(written).collect();
        Self { table, calls, events, file, seen, has_returned: false }
    }

    /// Whether a thread of it is in a collective.
    fn waits(&self) -> bool {
        is_in_collective(self.table, self.calls)
    }

    /// Looks whether it has returned from a collective since it was looked at.
    fn look(&mut self) {
        for (ring, seen) in self.seen.iter_mut().enumerate() {
            let head = self.events.load_word(self.file.head(ring)).unwrap_or(0);
            let first = (*seen).max(head.saturating_sub(LAST_RECORDS));
            for number in first..head {
                // The third word of a record has its kind.
                let word = self.events.load_word(self.file.record(ring, number).start + 2);
                let [_, _, kind, ..] = word.unwrap_or(0).to_le_bytes();
                self.has_returned |= matches!(
                    EventKind::from_code(kind),
                    Some(EventKind::Collective | EventKind::CollectiveCompleted)
                );
            }
            *seen = head;
        }
    }
}

impl<'a> Effort<'a> {
    /// A reading that begins now.
    pub(crate) fn new(
        when: Coscheduling,
        cpu: Duration,
        ranks: Vec<WatchedRank<'a>>,
        patience: &'a mut Patience,
    ) -> Self {
        let begun = processor_time();
        let until = patience.until(Instant::now());
        Self { when, ranks, patience, until, begun, cpu_until: begun.saturating_add(cpu) }
    }

    /// How many records may be copied at once.
    pub(crate) fn piece(&self) -> usize {
        if self.when == Coscheduling::Any { PIECE_MAX } else { PIECE }
    }

    /// Waits for a moment to read the next piece of a ring of this number of records, of which
    /// `unread` are new.
    pub(crate) fn turn(&mut self, unread: u64, ring_records: usize) -> Turn {
        if processor_time() >= self.cpu_until {
            return Turn::Throttled;
        }
        if self.when == Coscheduling::Any {
            return Turn::Now;
        }
        if unread > ring_records as u64 / 2 {
            return Turn::Overdue;
        }
        if self.is_moment() {
            return Turn::Now;
        }
        let waits = Instant::now() < self.until;
        let turn = self.wait();
        // One that may only look does not put off the next that may wait.
        if waits {
            self.patience.note_wait(Instant::now());
        }
        turn
    }

    /// Looks for a moment again and again, which takes time of a processor, too.
    fn wait(&mut self) -> Turn {
        loop {
            if Instant::now() >= self.until {
                return Turn::PutOff;
            }
            if processor_time() >= self.cpu_until {
                return Turn::Throttled;
            }
            sleep(LOOK_EVERY);
            if self.is_moment() {
                return Turn::Now;
            }
        }
    }

    fn is_moment(&mut self) -> bool {
        match self.when {
            Coscheduling::Any => true,
            Coscheduling::Waiting => self.ranks.iter().any(WatchedRank::waits),
            Coscheduling::Released => {
                self.ranks.iter_mut().for_each(WatchedRank::look);
                let is_moment = self.ranks.iter().all(|rank| rank.has_returned);
                if is_moment {
                    self.ranks.iter_mut().for_each(|rank| rank.has_returned = false);
                }
                is_moment
            }
        }
    }

    /// The processor time that it has used.
    pub(crate) fn used(&self) -> Duration {
        processor_time().saturating_sub(self.begun)
    }
}

/// What this thread has used of a processor: on a busy machine it is not charged for waiting.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use sapwood_trace::HEADER_WORDS;

    use super::*;

    const RECORDS: usize = 16;
    /// Of the one ring.
    const HEAD: usize = HEADER_WORDS;
    const WORDS: usize = HEAD + 8 + RECORDS * 4;

    /// The memory of a rank that this test writes.
    struct Rank {
        file: File,
        table: SharedTable,
        events: Arc<SharedTable>,
    }

    impl Rank {
        fn new() -> Self {
            let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
            let file = File::from(memfd_create("events", flags).expect("memory"));
            // The table has one thread, in the word behind the ring.
            file.set_len((WORDS as u64 + 1) * 8).expect("its size");
            fcntl_add_seals(&file, SealFlags::SHRINK).expect("its seal");
            let mut header = [0_u64; HEADER_WORDS];
            header[0] = u64::from_le_bytes(*b"SWEVENTS");
            header[1] = 1 | 256 << 32;
            header[2] = 1 << 32;
            header[9] = 1 << 32;
            header[10] = RECORDS as u64 | (HEAD as u64 * 8) << 32;
            let map = || {
                let copy = file.try_clone().expect("a descriptor");
                SharedTable::map(copy.into(), (WORDS + 1) * 8).expect("it is sealed")
            };
            let (table, events) = (map(), Arc::new(map()));
            let rank = Self { file, table, events };
            (0..).zip(header).for_each(|(at, word)| rank.write(at, word));
            rank
        }

        fn write(&self, word: usize, value: u64) {
            self.file.write_all_at(&value.to_le_bytes(), word as u64 * 8).expect("memory");
        }

        /// Has it be in this function, or outside of MPI.
        fn enter(&self, function: Option<&str>) {
            let id = function.and_then(Function::named).map_or(0, |function| function.id);
            self.write(WORDS, id.into());
        }

        /// Has it return from this call, its first.
        fn return_from(&self, kind: EventKind) {
            self.write(HEAD + 8 + 2, (kind as u64) << 16);
            self.write(HEAD, 1);
        }

        fn watched(&self) -> WatchedRank<'_> {
            const CALLS: &[usize] = &[WORDS];
            let header = self.events.copy_words(0..HEADER_WORDS).expect("its header");
            let file = EventFile::read(&header, WORDS + 1).expect("an event file");
            let events = Arc::clone(&self.events);
            let (calls, seen) = (CALLS, vec![0]);
            WatchedRank { table: &self.table, calls, events, file, seen, has_returned: false }
        }
    }

    /// The turn of a reading of two ranks that is given no time to wait for one.
    fn turn(when: Coscheduling, ranks: &[Rank; 2], unread: u64) -> Turn {
        let ranks = ranks.iter().map(Rank::watched).collect();
        let mut patience = Patience::default();
        let mut effort = Effort::new(when, Duration::from_secs(60), ranks, &mut patience);
        effort.until = Instant::now();
        effort.turn(unread, RECORDS)
    }

    #[test]
    fn events_are_read_while_a_rank_waits_in_a_collective() {
        let ranks = [Rank::new(), Rank::new()];
        let waiting = || turn(Coscheduling::Waiting, &ranks, 1);
        assert_eq!(waiting(), Turn::PutOff, "all compute");
        ranks[1].enter(Some("MPI_Recv"));
        assert_eq!(waiting(), Turn::PutOff, "a receive is no collective");
        ranks[1].enter(Some("MPI_Allreduce"));
        assert_eq!(waiting(), Turn::Now);
        assert_eq!(turn(Coscheduling::Released, &ranks, 1), Turn::PutOff, "it has not returned");
    }

    #[test]
    fn events_are_read_after_all_ranks_were_released() {
        let ranks = [Rank::new(), Rank::new()];
        let released = || turn(Coscheduling::Released, &ranks, 1);
        ranks[0].return_from(EventKind::Collective);
        assert_eq!(released(), Turn::PutOff, "one is still inside");
        ranks[1].return_from(EventKind::Receive);
        assert_eq!(released(), Turn::PutOff, "a receive is no collective");
        ranks[1].return_from(EventKind::CollectiveCompleted);
        assert_eq!(released(), Turn::Now);
        let both = ranks.iter().map(Rank::watched).collect();
        let mut patience = Patience::default();
        let minute = Duration::from_secs(60);
        let mut effort = Effort::new(Coscheduling::Released, minute, both, &mut patience);
        assert_eq!(effort.turn(1, RECORDS), Turn::Now);
        effort.until = Instant::now();
        assert_eq!(effort.turn(1, RECORDS), Turn::PutOff, "each release is for one piece");
    }

    #[test]
    fn a_ring_that_is_half_full_is_read_and_a_share_that_is_used_up_ends_all() {
        let ranks = [Rank::new(), Rank::new()];
        for when in [Coscheduling::Waiting, Coscheduling::Released] {
            assert_eq!(turn(when, &ranks, RECORDS as u64 / 2), Turn::PutOff);
            assert_eq!(turn(when, &ranks, RECORDS as u64 / 2 + 1), Turn::Overdue);
        }
        assert_eq!(turn(Coscheduling::Any, &ranks, 1), Turn::Now);
        for when in Coscheduling::ALL {
            let mut patience = Patience::default();
            let mut effort = Effort::new(when, Duration::ZERO, Vec::new(), &mut patience);
            assert_eq!(effort.turn(RECORDS as u64, RECORDS), Turn::Throttled);
        }
    }

    #[test]
    fn ranks_are_read_in_turn() {
        let begun_at = |next| {
            let mut ranks = [(2, ()), (5, ()), (7, ())];
            begin_at(&mut ranks, next);
            ranks.map(|(rank, ())| rank)
        };
        assert_eq!(begun_at(0), [2, 5, 7]);
        assert_eq!(begun_at(3), [5, 7, 2]);
        assert_eq!(begun_at(7), [7, 2, 5]);
        assert_eq!(begun_at(8), [2, 5, 7]);
    }

    #[test]
    fn a_share_that_is_used_up_ends_the_wait_for_a_moment() {
        let ranks = [Rank::new(), Rank::new()];
        let mut patience = Patience { again: None };
        let watched = ranks.iter().map(Rank::watched).collect();
        let share = Duration::from_micros(500);
        let mut effort = Effort::new(Coscheduling::Waiting, share, watched, &mut patience);
        effort.until = Instant::now() + Duration::from_secs(600);
        assert_eq!(effort.turn(1, RECORDS), Turn::Throttled, "all compute for ten minutes");
    }

    #[test]
    fn a_reading_after_one_that_has_waited_looks_once() {
        let ranks = [Rank::new(), Rank::new()];
        let again = Some(Instant::now() + Duration::from_secs(600));
        let mut patience = Patience { again };
        let mut turn = || {
            let watched = ranks.iter().map(Rank::watched).collect();
            let minute = Duration::from_secs(60);
            let mut effort = Effort::new(Coscheduling::Waiting, minute, watched, &mut patience);
            assert!(effort.until <= Instant::now());
            effort.turn(1, RECORDS)
        };
        assert_eq!(turn(), Turn::PutOff);
        ranks[0].enter(Some("MPI_Allreduce"));
        assert_eq!(turn(), Turn::Now);
        assert_eq!(patience.again, again, "one that only looks puts none off");
        let mut patience = Patience::default();
        let begun = Instant::now();
        assert_eq!(patience.until(begun), begun + PATIENCE, "none has waited");
        patience.note_wait(begun);
        assert_eq!(patience.until(begun + PATIENCE / 2), begun + PATIENCE / 2);
        assert_eq!(patience.until(begun + PATIENCE), begun + 2 * PATIENCE);
    }
}
