//! Reads the rings of a leaf's ranks in turns, a piece of each, so that collectives whose processes
//! are all here are settled soon after the first of these has been read: what is open stays small.

use std::collections::BTreeMap;

use sapwood_trace::{
    BypassHop, Counter, ENTRIES_MAX, EventFile, Gathered, HostClock, Observer, RECORD_WORDS,
    RankRing, Record,
};

use super::leaf::RankEvents;
use super::whole_record::whole_record;
use crate::effort::{Effort, Turn};

/// A leaf that has gathered this many entries leaves the rest in the rings until the next question.
pub(super) const GATHERED_MAX: usize = ENTRIES_MAX / 2;
/// Hops that a leaf reads for one answer, about: of each rank as many, so that those of the same
/// reductions meet.
const HOPS_MAX: usize = 1 << 18;
/// Records that one ring of each rank gives in a turn, of all ranks together, about: as many may be
/// open at a time.
const TURN_RECORDS: usize = 1 << 13;
/// Each gives at least as many: a look at its header comes with them.
const PIECE_MIN: usize = 256;

/// One reading of the rings of a leaf's ranks.
pub(super) struct Reading<'a, 'e> {
    observer: &'a mut Observer,
    clock: &'a mut HostClock,
    effort: &'a mut Effort<'e>,
    /// Records of one ring that are read in a turn, at most.
    piece: usize,
    /// Hops of one rank that are read, about.
    hops_max: usize,
    /// The rank of which something was read last.
    last: Option<u32>,
}

/// What is still to be read of a rank.
struct OpenRank {
    rank: u32,
    file: EventFile,
    rings: Vec<OpenRing>,
    hops_left: usize,
}

/// How far a ring is read: as far as it had been written when the reading began, so that a writer
/// that is faster than the reader is not followed for ever.
#[derive(Clone, Copy)]
struct OpenRing {
    ring: usize,
    end: u64,
}

/// What has become of a piece of a ring.
enum Piece {
    /// It was read.
    Taken,
    /// There is none: the ring has been read.
    AllRead,
    /// The effort does not allow it.
    Refused,
}

impl OpenRank {
    fn new(rank: u32, file: EventFile, events: &RankEvents, hops_max: usize) -> Self {
        let rings = 0..events.cursors.len().min(file.hop_rings().end);
        let open = |ring: usize| {
            let end = events.written(ring, &file);
            (end > events.cursors[ring].position()).then_some(OpenRing { ring, end })
        };
        let rings = rings.filter_map(open).collect();
        Self { rank, file, rings, hops_left: hops_max }
    }

    /// Leaves the hops that have not been read in their rings.
    fn leave_hops(&mut self) {
        let hop_rings = self.file.hop_rings();
        self.rings.retain(|open| !hop_rings.contains(&open.ring));
    }
}

impl<'a, 'e> Reading<'a, 'e> {
    /// One of as many ranks.
    pub(super) fn new(
        observer: &'a mut Observer,
        clock: &'a mut HostClock,
        effort: &'a mut Effort<'e>,
        ranks: usize,
    ) -> Self {
        let ranks = ranks.max(1);
        let piece = effort.piece().min((TURN_RECORDS / ranks).max(PIECE_MIN));
        Self { observer, clock, effort, piece, hops_max: HOPS_MAX / ranks, last: None }
    }

    /// Reads what is new in all rings, as far as the effort allows and there is room; the rank of
    /// which something was read last.
    pub(super) fn read(
        &mut self,
        ranks: &mut BTreeMap<u32, RankEvents>,
        headers: &[(u32, EventFile)],
    ) -> Option<u32> {
        let open = |&(rank, file): &(u32, EventFile)| {
            Some(OpenRank::new(rank, file, ranks.get(&rank)?, self.hops_max))
        };
        let mut open: Vec<OpenRank> = headers.iter().filter_map(open).collect();
        while !open.is_empty() && self.has_room() {
            if !self.make_hop_room() {
                open.iter_mut().for_each(OpenRank::leave_hops);
            }
            open.retain_mut(|one| {
                let Some(events) = ranks.get_mut(&one.rank) else { return false };
                self.read_turn(events, one);
                !one.rings.is_empty()
            });
        }
        // There was no room for the rest.
        for one in &open {
            if let Some(events) = ranks.get_mut(&one.rank) {
                events.calls.note_gap();
            }
        }
        self.last
    }

    fn has_room(&mut self) -> bool {
        self.observer.gathered().open_entries() < GATHERED_MAX
    }

    /// Sums up whole reductions where many hops wait; whether there is room for others.
    fn make_hop_room(&mut self) -> bool {
        let gathered = self.observer.gathered();
        if gathered.hops.len() >= GATHERED_MAX {
            gathered.settle_hops();
        }
        gathered.hops.len() < ENTRIES_MAX
    }

    /// Reads a piece of each ring of a rank.
    fn read_turn(&mut self, events: &mut RankEvents, one: &mut OpenRank) {
        let mut place = 0;
        while let Some(&open) = one.rings.get(place) {
            if !self.has_room() {
                return;
            }
            match self.read_piece(events, one, open) {
                Piece::Taken => place += 1,
                Piece::AllRead => {
                    one.rings.remove(place);
                }
                Piece::Refused => one.rings.clear(),
            }
        }
    }

    fn read_piece(
        &mut self,
        events: &mut RankEvents,
        one: &mut OpenRank,
        OpenRing { ring, end }: OpenRing,
    ) -> Piece {
        let file = &one.file;
        let has_hops = file.hop_rings().contains(&ring);
        let mut cursor = events.cursors[ring];
        let unread = events.written(ring, file).saturating_sub(cursor.position());
        let left = usize::try_from(end.saturating_sub(cursor.position())).unwrap_or(usize::MAX);
        if unread == 0 || left == 0 || has_hops && one.hops_left == 0 {
            return Piece::AllRead;
        }
        let hops_now = self.observer.gathered().hops.len();
        let hop_room = ENTRIES_MAX.saturating_sub(hops_now).min(one.hops_left);
        if has_hops && hop_room == 0 {
            // The next turn makes room, or leaves it.
            return Piece::Taken;
        }
        let turn = self.effort.turn(unread, file.ring_records());
        let refused = match turn {
            Turn::Throttled => Some(Counter::Throttled),
            Turn::PutOff => Some(Counter::PutOff),
            Turn::Now | Turn::Overdue => None,
        };
        if let Some(counter) = refused {
            self.observer.gathered().count(counter, 1);
            events.calls.note_gap();
            return Piece::Refused;
        }
        self.last = Some(one.rank);
        let most = self.piece.min(left).min(if has_hops { hop_room } else { left });
        let (words, lost) = events.copy(&mut cursor, ring, file, most);
        events.cursors[ring] = cursor;
        if has_hops {
            self.observer.gathered().count(Counter::HopsDropped, lost);
        } else {
            let thread = u32::try_from(ring).unwrap_or(u32::MAX);
            self.count_dropped(events, RankRing { rank: one.rank, thread }, lost);
        }
        let (records, _) = words.as_chunks::<RECORD_WORDS>();
        if turn == Turn::Overdue {
            self.observer.gathered().count(Counter::Overdue, records.len() as u64);
        }
        match records {
            [] => return Piece::AllRead,
            _ if has_hops => {
                one.hops_left = one.hops_left.saturating_sub(records.len());
                take_hops(records, self.observer.gathered());
            }
            _ => self.observe(events, one, ring, records),
        }
        Piece::Taken
    }

    /// Counts records of calls that were overwritten.
    fn count_dropped(&mut self, events: &mut RankEvents, of: RankRing, lost: u64) {
        if lost > 0 {
            events.calls.note_gap();
        }
        self.observer.gathered().count_dropped(of, lost);
    }

    fn observe(
        &mut self,
        events: &mut RankEvents,
        one: &OpenRank,
        ring: usize,
        records: &[[u64; RECORD_WORDS]],
    ) {
        // Behind the records: if the order was lost before one of them, the header says so.
        let file = events.header().unwrap_or(one.file);
        let bounds = events.bounds(&file);
        for record in records {
            match whole_record(*record, &bounds) {
                Some(Record::Clock(ticks, ns)) => self.clock.note(ticks, ns),
                Some(Record::Event(event)) => {
                    events.observe(one.rank, ring, &file, &event, self.observer, self.clock);
                }
                None => {
                    events.calls.note_gap();
                    self.observer.gathered().count(Counter::Damaged, 1);
                }
            }
        }
    }
}

/// Hops of bypassed reductions, whose times are those of the host.
fn take_hops(records: &[[u64; RECORD_WORDS]], gathered: &mut Gathered) {
    let known = records.iter().filter_map(|record| BypassHop::decode(*record));
    let before = gathered.hops.len();
    gathered.hops.extend(known);
    let taken = gathered.hops.len() - before;
    gathered.count(Counter::HopsUnknown, (records.len() - taken) as u64);
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::time::Duration;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use sapwood_profile::Function;
    use sapwood_trace::{Coscheduling, EventKind, FileClock, HEADER_WORDS, Made, WholeCollectives};

    use super::*;
    use crate::effort::Patience;
    use crate::waits::{LeafWaits, Question};

    /// Of the only communicator.
    const IDENTITY: u64 = 7;
    const SPACE: u64 = HEADER_WORDS as u64;
    /// Of the only ring.
    const HEAD: u64 = SPACE + 8;
    const RECORDS: u64 = 1 << 16;
    const RING_WORDS: u64 = 8 + RECORDS * RECORD_WORDS as u64;
    const CALLS: u32 = 40_000;
    /// Each has seven hops, more of all together than may wait.
    const REDUCTIONS: u32 = 16_000;
    const CLOCK: FileClock = FileClock { ticks: 0, ns: 0, scale: 1 << 32, is_cycles: true };

    fn allreduce() -> u32 {
        Function::named("MPI_Allreduce").expect("every MPI has it").id
    }

    fn write(file: &File, word: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        file.write_all_at(&bytes, word * 8).expect("memory");
    }

    /// The file of a rank of `size` with one ring, and as many of hops.
    fn event_file(rank: u32, size: u32, hop_rings: u64) -> (File, u64) {
        let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
        let file = File::from(memfd_create("events", flags).expect("memory"));
        let bytes = (HEAD + (1 + hop_rings) * RING_WORDS) * 8;
        file.set_len(bytes).expect("its size");
        fcntl_add_seals(&file, SealFlags::SHRINK).expect("its seal");
        let (own, all) = (u64::from(rank), u64::from(size) << 32);
        write(&file, 0, &[u64::from_le_bytes(*b"SWEVENTS"), 1 | 256 << 32, own | all, 1 << 32]);
        write(&file, 7, &[CLOCK.scale, 1 << 32, 1 | 1 << 32, RECORDS | (HEAD * 8) << 32]);
        write(&file, 16, &[hop_rings]);
        write(&file, SPACE, &[1, IDENTITY, all, own]);
        (file, bytes)
    }

    /// Has a rank of `size` call as many reductions, one each microsecond; each rank comes 10 ns
    /// after the one below it.
    fn admit(waits: &mut LeafWaits, rank: u32, size: u32, calls: u32) {
        let (file, bytes) = event_file(rank, size, 0);
        let own = u64::from(rank);
        let record = |number: u32| {
            let time = u64::from(number) * 1_000 + own * 10;
            let what = (EventKind::Collective as u64) << 16 | u64::from(number) << 32;
            [time, 500 << 16 | u64::from(allreduce()), what, 0xffff_ffff]
        };
        let records: Vec<u64> = (1..=calls).flat_map(record).collect();
        write(&file, HEAD + 8, &records);
        write(&file, HEAD, &[calls.into()]);
        waits.admit(rank, file.into(), bytes).expect("an event file");
    }

    /// Has both ranks of reductions note their hops; `size` is that of their communicator.
    fn admit_hops(waits: &mut LeafWaits, size: u32) {
        let (one, root) = (1 | 1 << 32, 4 << 8);
        let own: &[[u64; 2]] = &[[1, 0], [3 | root, 0], [5, 0]];
        let other: &[[u64; 2]] = &[[1, one], [3, one], [2, 1 << 32], [5, one]];
        for (rank, hops) in [(0, own), (1, other)] {
            let (file, bytes) = event_file(rank, size, 1);
            let mut records = Vec::new();
            for number in 1..=u64::from(REDUCTIONS) {
                for [what, whom] in hops {
                    let what = what | u64::from(size) << 16 | number << 32;
                    records.extend([number * 10, IDENTITY, what, *whom]);
                }
            }
            write(&file, HEAD + RING_WORDS + 8, &records);
            write(&file, HEAD + RING_WORDS, &[u64::from(REDUCTIONS) * hops.len() as u64]);
            waits.admit(rank, file.into(), bytes).expect("an event file");
        }
    }

    /// What the leaf answers with this share of a processor.
    fn answer(waits: &mut LeafWaits, when: Coscheduling, cpu: Duration) -> Gathered {
        let question = Question { clock: Some(CLOCK), ..Question::default() };
        let mut patience = Patience::default();
        waits.answer(0, &question, Effort::new(when, cpu, Vec::new(), &mut patience))
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn of_collectives_of_ranks_at_one_leaf_only_sums_go_up() {
        let mut waits = LeafWaits::default();
        (0..2).for_each(|rank| admit(&mut waits, rank, 2, CALLS));
        let gathered = answer(&mut waits, Coscheduling::Any, MINUTE);
        assert_eq!(gathered.open_entries(), 0, "more than one answer may have open");
        let calls = u64::from(CALLS);
        let whole = WholeCollectives { size: 2, collectives: calls, undecided: 0, last: CALLS };
        assert_eq!(gathered.wholes[&(IDENTITY, allreduce())], whole);
        let made = Made { last: calls, collective_ns: calls * 10, ..Made::default() };
        assert_eq!((gathered.made.len(), gathered.made[&1]), (1, made));
        assert_eq!(gathered.counters[Counter::Events as usize], 2 * calls);
        assert!(answer(&mut waits, Coscheduling::Any, MINUTE).is_empty(), "each is read once");
    }

    #[test]
    fn a_wait_for_several_messages_is_one_wait() {
        let number = |name| Function::named(name).expect("every MPI has it").id;
        let record = |(time, span, name, kind, sequence): (u64, u64, _, EventKind, u64)| {
            let timing = span << 16 | u64::from(number(name));
            // From rank 1, or to it; tag 0.
            [time, timing, (kind as u64) << 16 | 2 << 24 | sequence << 32, 1]
        };
        let records: Vec<u64> = [
            (1_000, 500, "MPI_Waitall", EventKind::ReceiveCompleted, 1),
            (1_000, 500, "MPI_Waitall", EventKind::ReceiveCompleted, 2),
            (3_000, 70, "MPI_Recv", EventKind::Receive, 3),
            (4_000, 900, "MPI_Isend", EventKind::SendStarted, 1),
            (6_000, 8, "MPI_Send", EventKind::Send, 2),
        ]
        .into_iter()
        .flat_map(record)
        .collect();
        let mut waits = LeafWaits::default();
        let (file, bytes) = event_file(0, 2, 0);
        write(&file, HEAD + 8, &records);
        write(&file, HEAD, &[5]);
        waits.admit(0, file.into(), bytes).expect("an event file");
        answer(&mut waits, Coscheduling::Any, MINUTE);
        let time = waits.time_in_calls(0).expect("an event file");
        assert_eq!((time.called_ns, time.waited_ns), (0, 578));
    }

    #[test]
    fn what_was_overwritten_is_counted_by_ring() {
        let mut waits = LeafWaits::default();
        admit(&mut waits, 0, 2, 1);
        let (file, bytes) = event_file(1, 2, 0);
        write(&file, HEAD, &[RECORDS + 12]);
        waits.admit(1, file.into(), bytes).expect("an event file");
        let gathered = answer(&mut waits, Coscheduling::Any, MINUTE);
        let lost = gathered.counters[Counter::Dropped as usize];
        assert!(lost >= 12, "{lost}");
        assert_eq!(gathered.dropped.most(2), [(RankRing { rank: 1, thread: 0 }, lost)]);
    }

    #[test]
    fn where_there_is_no_room_for_all_each_rank_is_read_as_far_as_the_others() {
        let mut waits = LeafWaits::default();
        // The third rank is elsewhere, so that all are open.
        (0..2).for_each(|rank| admit(&mut waits, rank, 3, CALLS));
        let first = answer(&mut waits, Coscheduling::Any, MINUTE);
        assert!((GATHERED_MAX..CALLS as usize).contains(&first.open_entries()));
        let alone = first.instances.values().filter(|one| one.count == 1).count();
        assert!(alone <= 1_024, "{alone} of one rank only");
        let second = answer(&mut waits, Coscheduling::Any, MINUTE);
        let read = [first, second].map(|one| one.counters[Counter::Events as usize]);
        assert_eq!(read.iter().sum::<u64>(), 2 * u64::from(CALLS));
    }

    #[test]
    fn hops_that_are_settled_make_room_and_others_stay_in_the_rings() {
        let (mut whole, mut open) = (LeafWaits::default(), LeafWaits::default());
        admit_hops(&mut whole, 2);
        let all = answer(&mut whole, Coscheduling::Any, MINUTE);
        assert_eq!((all.bypass.instances, all.hops.len()), (REDUCTIONS.into(), 0));
        // The third rank is elsewhere.
        admit_hops(&mut open, 3);
        let answers = [(); 2].map(|()| answer(&mut open, Coscheduling::Any, MINUTE));
        let rest = 7 * REDUCTIONS as usize - ENTRIES_MAX;
        assert_eq!(answers.each_ref().map(|one| one.hops.len()), [ENTRIES_MAX, rest]);
        for one in [all].iter().chain(&answers) {
            assert_eq!(one.counters[Counter::HopsLeftOut as usize], 0);
        }
    }

    #[test]
    fn a_share_that_is_used_up_is_counted_for_each_rank_that_is_not_read() {
        let mut waits = LeafWaits::default();
        (0..3).for_each(|rank| admit(&mut waits, rank, 3, if rank == 1 { 0 } else { 9 }));
        let gathered = answer(&mut waits, Coscheduling::Any, Duration::ZERO);
        let told = [Counter::Throttled, Counter::Events].map(|one| gathered.counters[one as usize]);
        assert_eq!(told, [2, 0]);
    }

    #[test]
    fn a_ring_that_is_more_than_half_full_is_read_while_another_is_put_off() {
        let mut waits = LeafWaits::default();
        (0..2).for_each(|rank| admit(&mut waits, rank, 2, if rank == 0 { CALLS } else { 9 }));
        let gathered = answer(&mut waits, Coscheduling::Waiting, MINUTE);
        let overdue = gathered.counters[Counter::Overdue as usize];
        let most = u64::from(CALLS) - RECORDS / 2;
        assert!((most..most + 256).contains(&overdue), "{overdue} are read");
        assert_eq!(gathered.counters[Counter::PutOff as usize], 2);
        let next = answer(&mut waits, Coscheduling::Any, MINUTE);
        assert_eq!(next.counters[Counter::Events as usize], u64::from(CALLS) - overdue + 9);
    }
}
