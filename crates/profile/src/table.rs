//! Reads the table in which an MPI rank counts, as `bindings/mpi/shim/table.h` draws it.
//!
//! The table is memory that the program shares, and the program may be wrong: every offset and
//! length is checked, and a slot that makes no sense is counted and passed over. Taking the copy
//! that is read here, while the program counts on, is its reader's concern.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::array;
use core::ops::Range;

use sapwood_packet::Rank;

use crate::escape::escaped;
use crate::{
    Activity, ActivityKind, CallInProgress, Class, Condition, EventKey, Figure, Function,
    FunctionId, OpenReceiveCall, Peer, ProfileError, REGION_NAME_BYTES_MAX, RankProfile, RankState,
    SIZE_CLASSES, SizeClass, SizeHistogram, Tally, TallyKind, TimeShare,
};

/// `SWPROFIL`, as the first bytes of the table.
const MAGIC: u64 = u64::from_le_bytes(*b"SWPROFIL");
const VERSION: u32 = 5;
const HEADER_BYTES: usize = 512;
const SLOT_BYTES: usize = 64;
const LABEL_BYTES: usize = 64;
const ACTIVITY_BYTES: usize = 64;
const COMMUNICATOR_BYTES: usize = 32;
/// What a snapshot holds before its counters, and for each slot.
const SNAPSHOT_HEAD_BYTES: usize = 64;
const SNAPSHOT_SLOT_BYTES: usize = 24;
const HISTOGRAM_BYTES: usize = 8 * SIZE_CLASSES;
const TALLY_BYTES: usize = 64;
/// Of a list of open receives, of each of them, and what stands before and behind them.
const PENDING_BYTES: usize = 512;
const OPEN_RECEIVE_BYTES: usize = 16;
const PENDING_HEAD_BYTES: usize = 8;
const PENDING_SINCE: usize = 504;
/// What a communicator is called of which the table tells nothing.
const UNNAMED: &str = "a communicator";
/// Where the state of the rank lies, the code of a [`RankState`] in 32 bits.
pub const STATE_OFFSET: usize = 32;
/// Where in a slot the bytes lie that came in messages.
const RECEIVED: usize = 40;
/// Where the number of requests lies whose bytes are not known.
const UNTRACKED: usize = 368;
/// Where the number of names lies that found no room.
const NAMES_LEFT_OUT: usize = 376;
/// Where the time lies in which all threads were in MPI, since when there are several, since when
/// these are, how many they were, and whether that time counts yet.
const TOGETHER_NS: usize = 424;
const SEVERAL_SINCE: usize = 432;
const JOINED: usize = 440;
const THREADS_MOST: usize = 448;
const IS_TOGETHER: usize = 456;
/// Where an activity says whether its thread has called MPI, and what it says of one that did so
/// while no other thread that had lived.
const HAS_CALLED: usize = 60;
const ALONE: u32 = 1;
/// Where the place of a communicator has its handle once more.
const HANDLE_AGAIN: usize = 24;
/// Where the offset of the lists of open receives lies.
const PENDING_OFFSET: usize = 460;
/// Where the numbers of getrusage lie.
const USAGE: usize = 304;
/// What the table of a program with Open MPI says.
pub const OPENMPI_ABI: u32 = 1;
/// What that of a program with MPICH or its like says.
pub const MPICH_ABI: u32 = 2;
/// What that of a program with the MPI standard's ABI says.
pub const STANDARD_ABI: u32 = 3;
/// Set in the key of a region.
const REGION: u64 = 1 << 63;

/// A copy of one rank's table whose header was checked.
#[derive(Clone, Copy, Debug)]
pub struct TableReader<'a> {
    bytes: &'a [u8],
    mpi_rank: Rank,
    world_size: u32,
    state: RankState,
    slots: &'a [u8],
    names: &'a [u8],
    activities: &'a [u8],
    communicators: &'a [u8],
    histograms: &'a [u8],
    tallies: &'a [u8],
    pending: &'a [u8],
}

/// What a reader of a table knows and the table does not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// The host's monotonic clock when the copy was taken, in nanoseconds.
    pub now_ns: u64,
    /// From this time on an activity is long, in nanoseconds.
    pub long_ns: u64,
    /// The state of the rank's process.
    pub condition: Condition,
    /// When the rank's process was seen to have ended, by the same clock.
    pub ended_ns: Option<u64>,
}

impl Moment {
    /// The last time of the rank: now, or the end of its process.
    #[must_use]
    pub fn last_ns(&self) -> u64 {
        self.ended_ns.map_or(self.now_ns, |ended_ns| ended_ns.min(self.now_ns))
    }
}

impl<'a> TableReader<'a> {
    /// Checks the header of a copy of a table, which is given as its 64-bit words.
    ///
    /// # Errors
    /// [`ProfileError::Table`] or [`ProfileError::Rank`], saying what is wrong;
    /// [`ProfileError::Cut`] where its end is missing.
    pub fn new(words: &'a [u64]) -> Result<Self, ProfileError> {
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let header_bytes = HEADER_BYTES as u64;
        is_whole(bytes, header_bytes)?;
        equal("magic number", words[0], MAGIC)?;
        equal("version", word(bytes, 8).into(), VERSION.into())?;
        equal("length of its header", word(bytes, 12).into(), header_bytes)?;
        // Snapshots come last and need not be in the copy.
        let snapshots = place(bytes, 384);
        let front = if snapshots == 0 { long(bytes, 208) } else { snapshots.min(long(bytes, 208)) };
        is_whole(bytes, front)?;

        let capacity = at_most("number of slots", place(bytes, 176), bytes.len() as u64 / 64)?;
        let used = at_most("number of used slots", place(bytes, 180), capacity)?;
        let slots_end = HEADER_BYTES as u64 + capacity * SLOT_BYTES as u64;
        at_most("end of its slots", slots_end, front)?;
        let names_offset = place(bytes, 184);
        at_most("end of its slots", slots_end, names_offset)?;
        let names_end = names_offset + place(bytes, 188);
        at_most("end of its names", names_end, front)?;

        let activities = place(bytes, 196);
        at_most("end of its names", names_end, activities)?;
        let communicators = activities + place(bytes, 216) * ACTIVITY_BYTES as u64;
        let end = communicators + place(bytes, 220) * COMMUNICATOR_BYTES as u64;
        at_most("end of its communicators", end, front)?;
        let block = |at: usize, size: usize| {
            let from = place(bytes, at);
            (from, from + place(bytes, at + 4) * size as u64)
        };
        let histograms = block(256, HISTOGRAM_BYTES);
        at_most("end of its communicators", end, histograms.0)?;
        let tallies = block(268, TALLY_BYTES);
        at_most("end of its histograms", histograms.1, tallies.0)?;
        at_most("end of its tallies", tallies.1, front)?;
        let pending = place(bytes, PENDING_OFFSET);
        // Tables of other programs than the shim have none.
        let lists = if pending == 0 { 0 } else { place(bytes, 216) };
        let pending_end = pending + lists * PENDING_BYTES as u64;
        at_most("end of its open receives", pending_end, front)?;

        let (mpi_rank, world_size) = (word(bytes, 16), word(bytes, 20));
        if mpi_rank >= world_size {
            return Err(ProfileError::Rank { rank: mpi_rank, world_size });
        }
        let code = word(bytes, STATE_OFFSET);
        let state = u8::try_from(code).ok().and_then(RankState::from_code);
        // A table never says of itself that its rank was lost.
        let state = state.filter(|&state| state != RankState::Lost);
        let last = RankState::Exited.code().into();
        let state = state.ok_or(wrong("state", code.into(), last))?;
        let slots_end = HEADER_BYTES + index(used) * SLOT_BYTES;
        Ok(Self {
            bytes,
            mpi_rank,
            world_size,
            state,
            slots: &bytes[HEADER_BYTES..slots_end],
            names: &bytes[index(names_offset)..index(names_end)],
            activities: &bytes[index(activities)..index(communicators)],
            communicators: &bytes[index(communicators)..index(end)],
            histograms: &bytes[index(histograms.0)..index(histograms.1)],
            tallies: &bytes[index(tallies.0)..index(tallies.1)],
            pending: &bytes[index(pending)..index(pending_end)],
        })
    }

    /// The rank in `MPI_COMM_WORLD`.
    #[must_use]
    pub const fn mpi_rank(&self) -> Rank {
        self.mpi_rank
    }

    /// The size of `MPI_COMM_WORLD`.
    #[must_use]
    pub const fn world_size(&self) -> u32 {
        self.world_size
    }

    /// How far the rank was.
    #[must_use]
    pub const fn state(&self) -> RankState {
        self.state
    }

    /// Whether a thread has called `MPI_Finalize`, which has not returned. A rank whose process
    /// ended there has not finalized.
    #[must_use]
    pub fn is_finalizing(&self) -> bool {
        let mut threads = self.activities.chunks_exact(ACTIVITY_BYTES);
        self.state == RankState::Finalized && threads.any(|one| is_finalization(long(one, 0)))
    }

    /// The file name of the rank's program.
    #[must_use]
    pub fn program(&self) -> String {
        label(&self.bytes[112..112 + LABEL_BYTES])
    }

    /// The profile that the table holds. Events of which no call has returned yet are not in it.
    #[must_use]
    pub fn profile(&self) -> RankProfile {
        let mut profile = RankProfile {
            pid: word(self.bytes, 24),
            state: self.state,
            started_ns: long(self.bytes, 40),
            host: label(&self.bytes[48..48 + LABEL_BYTES]),
            program: self.program(),
            dropped: long(self.bytes, 200),
            taken_functions: word(self.bytes, 288),
            ..RankProfile::new(self.mpi_rank, self.world_size)
        };
        for slot in self.slots.chunks_exact(SLOT_BYTES) {
            let Some(key) = self.key(long(slot, 0)) else {
                profile.unreadable += 1;
                continue;
            };
            let counters = counters_at(slot, 8);
            // MPI_Finalize counts at its entry and has its time when it returns.
            let is_entered = counters.time_ns == 0 && is_finalization(long(slot, 0) >> 8);
            if counters == crate::Counters::default() || is_entered {
                continue;
            }
            let received = long(slot, RECEIVED);
            if received > 0 {
                let sum = profile.received.entry(key.clone()).or_default();
                *sum = sum.saturating_add(received);
            }
            if let Some(sizes) = self.sizes(slot) {
                profile.sizes.entry(key.clone()).or_default().merge(&sizes);
            }
            let sum = profile.events.entry(key).or_default();
            *sum = sum.plus(counters);
        }
        profile
    }

    /// How many iteration marks the rank has reached.
    #[must_use]
    pub fn marks(&self) -> u64 {
        long(self.bytes, 392)
    }

    /// Where the snapshot of a mark lies in the table, as a range of 64-bit words: its head and
    /// what can be used of it. None where the table has no snapshots.
    #[must_use]
    pub fn snapshot_words(&self, mark: u64) -> Option<Range<usize>> {
        let capacity = u64::from(word(self.bytes, 388));
        let number = index(mark.checked_rem(capacity)?);
        let slots = index(place(self.bytes, 176));
        let each = SNAPSHOT_HEAD_BYTES + slots * SNAPSHOT_SLOT_BYTES;
        let begin = index(place(self.bytes, 384)) + number * each;
        let used = SNAPSHOT_HEAD_BYTES + self.slots.len() / SLOT_BYTES * SNAPSHOT_SLOT_BYTES;
        Some(begin / 8..(begin + used) / 8)
    }

    /// The profile as it was at a mark, from a copy of that mark's snapshot; none if it is another
    /// one by now.
    #[must_use]
    pub fn profile_at(&self, mark: u64, snapshot: &[u64]) -> Option<RankProfile> {
        let snapshot: &[u8] = bytemuck::cast_slice(snapshot);
        if snapshot.len() < SNAPSHOT_HEAD_BYTES || long(snapshot, 0) != mark {
            return None;
        }
        // A snapshot does not tell sent bytes from received ones.
        let (events, received) = (BTreeMap::new(), BTreeMap::new());
        let mut profile = RankProfile { events, received, unreadable: 0, ..self.profile() };
        let used = word(snapshot, 16).try_into().unwrap_or(usize::MAX);
        let counters = snapshot[SNAPSHOT_HEAD_BYTES..].chunks_exact(SNAPSHOT_SLOT_BYTES);
        let slots = self.slots.chunks_exact(SLOT_BYTES);
        for (slot, counters) in slots.zip(counters).take(used) {
            let (key, counters) = (self.key(long(slot, 0)), counters_at(counters, 0));
            match key {
                Some(key) if counters != crate::Counters::default() => {
                    let sum = profile.events.entry(key).or_default();
                    *sum = sum.plus(counters);
                }
                Some(_) => {}
                None => profile.unreadable += 1,
            }
        }
        Some(profile)
    }

    /// The sizes of what the calls of a slot moved, if it has a row for them.
    fn sizes(&self, slot: &[u8]) -> Option<SizeHistogram> {
        let row = usize::try_from(word(slot, 32)).ok()?.checked_sub(1)?;
        let row = self.histograms.chunks_exact(HISTOGRAM_BYTES).nth(row)?;
        Some(SizeHistogram::new(array::from_fn(|class| long(row, 8 * class))))
    }

    /// Whether `MPI_Comm_spawn` started the process.
    #[must_use]
    pub fn is_spawned(&self) -> bool {
        word(self.bytes, 292) != 0
    }

    /// Calls that found no tally.
    #[must_use]
    pub fn tallies_dropped(&self) -> u64 {
        long(self.bytes, 280)
    }

    /// Processor time of the process when counting began, in nanoseconds.
    #[must_use]
    pub fn started_cpu_ns(&self) -> u64 {
        long(self.bytes, 296)
    }

    /// What the process had used when counting ended, by its own account; empty before.
    #[must_use]
    pub fn usage(&self) -> BTreeMap<Figure, u64> {
        const FIGURES: [Figure; 7] = [
            Figure::CpuUserNs,
            Figure::CpuSystemNs,
            Figure::ResidentBytesMax,
            Figure::MinorFaults,
            Figure::MajorFaults,
            Figure::VoluntarySwitches,
            Figure::InvoluntarySwitches,
        ];
        let is_there = self.state != RankState::Running;
        let used = (0..).map(|place| long(self.bytes, USAGE + 8 * place));
        FIGURES.into_iter().zip(used).filter(|_| is_there).collect()
    }

    /// How many threads of the rank have called MPI, the most at a time; nothing of one.
    #[must_use]
    pub fn threads(&self) -> Option<(Figure, u64)> {
        let most = long(self.bytes, THREADS_MOST);
        (most > 1).then_some((Figure::MpiThreads, most))
    }

    /// What the rank's point-to-point messages have moved, how many requests are not in that, and
    /// how many names found no room; the last two only where there are any.
    #[must_use]
    pub fn transfers(&self) -> BTreeMap<Figure, u64> {
        let (mut sent, mut received) = (0_u64, 0_u64);
        for slot in self.slots.chunks_exact(SLOT_BYTES) {
            let is_message = |key: &EventKey| key.class() == Class::PointToPoint;
            if self.key(long(slot, 0)).as_ref().is_some_and(is_message) {
                let came = long(slot, RECEIVED);
                received = received.saturating_add(came);
                sent = sent.saturating_add(long(slot, 24).saturating_sub(came));
            }
        }
        let mut figures: BTreeMap<_, _> =
            [(Figure::SentBytes, sent), (Figure::ReceivedBytes, received)].into();
        let losses =
            [(Figure::UntrackedRequests, UNTRACKED), (Figure::NamesLeftOut, NAMES_LEFT_OUT)];
        let losses = losses.map(|(figure, at)| (figure, long(self.bytes, at)));
        figures.extend(losses.into_iter().filter(|(_, count)| *count > 0));
        figures
    }

    /// The tallies of a kind, by the labels under which they travel.
    #[must_use]
    pub fn tallies(&self, kind: TallyKind) -> BTreeMap<EventKey, crate::Counters> {
        let mut tallies = BTreeMap::new();
        for one in self.tallies.chunks_exact(TALLY_BYTES) {
            let key = long(one, 0);
            if key >> 56 != kind as u64 {
                continue;
            }
            let [code, ..] = key.to_le_bytes();
            let Some(size_class) = SizeClass::from_code(code) else { continue };
            let function = u32::try_from(key >> 8 & 0xff_ffff).unwrap_or(0);
            let name = word(one, 40).checked_sub(1).map(u64::from);
            let name = name.and_then(|offset| self.key(REGION | offset));
            let name = name.map_or_else(String::new, |name| name.name().into_owned());
            // The number of a communicator means nothing in another process.
            let address = if kind == TallyKind::Communicator { 0 } else { long(one, 8) };
            let label = Tally { function, size_class, address, name }.label();
            let sum: &mut crate::Counters = tallies.entry(EventKey::Region(label)).or_default();
            *sum = sum.plus(crate::Counters {
                count: long(one, 16),
                time_ns: long(one, 24),
                bytes: long(one, 32),
            });
        }
        tallies
    }

    /// What the rank's threads do: those that are inside a call, or if none is the one that left
    /// its last call most recently. Nothing of a rank whose profile is complete and whose process
    /// has ended; see [`RankState`].
    #[must_use]
    pub fn activities(&self, moment: Moment) -> Vec<Activity> {
        let inside = self.numbered_entries().filter(|(_, one)| is_inside(one));
        let inside = inside.map(|(place, one)| {
            let Activity { kind, peer, for_ns } = self.activity(one, moment);
            let communicator = self.awaited(place, one, peer).unwrap_or(kind.communicator);
            Activity { kind: ActivityKind { communicator, ..kind }, peer, for_ns }
        });
        let inside: Vec<_> = inside.collect();
        if inside.is_empty() { self.outside(moment).into_iter().collect() } else { inside }
    }

    /// Of the rank's threads that are outside of MPI, what the one does that left its last call
    /// most recently.
    #[must_use]
    pub fn outside(&self, moment: Moment) -> Option<Activity> {
        let outside = self.entries_outside().map(|one| self.activity(one, moment));
        outside.min_by_key(|activity| activity.for_ns)
    }

    /// The calls that the rank's threads are in.
    #[must_use]
    pub fn calls(&self, moment: Moment) -> Vec<CallInProgress> {
        let inside = self.numbered_entries().filter(|(_, one)| is_inside(one));
        let calls = inside.filter_map(|(place, one)| {
            let function = u32::try_from(long(one, 0)).ok()?;
            let since = long(one, 8);
            let list = self.list_of(place, since);
            let tag = word(one, 28).cast_signed();
            Some(CallInProgress {
                function,
                handle: long(one, 16),
                peer: self.peer(word(one, 24).cast_signed()),
                destination: self.peer(word(one, 44).cast_signed()),
                tag: (tag != i32::MIN).then_some(tag),
                for_ns: moment.last_ns().saturating_sub(self.nanoseconds(since)),
                request: (long(one, 48) == since && since != 0).then(|| word(one, 56)),
                open: list.map_or_else(Vec::new, |list| self.open_receives(list)),
                others: list.map_or(0, |list| word(list, 4)),
            })
        });
        calls.collect()
    }

    fn open_receives(&self, list: &[u8]) -> Vec<OpenReceiveCall> {
        let count = usize::try_from(word(list, 0)).unwrap_or(usize::MAX);
        let receives = list[PENDING_HEAD_BYTES..PENDING_SINCE].chunks_exact(OPEN_RECEIVE_BYTES);
        let receives = receives.take(count).map(|one| OpenReceiveCall {
            handle: long(one, 0),
            peer: self.peer(word(one, 8).cast_signed()),
            tag: word(one, 12).cast_signed(),
        });
        receives.collect()
    }

    /// The threads that have called MPI and are outside of it, by their numbers in the system.
    pub fn threads_outside(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.entries_outside().map(|one| word(one, 40))
    }

    /// The words of the table that say in which function each thread is; 0 outside of MPI.
    pub fn call_words(&self) -> impl Iterator<Item = usize> + use<> {
        let begin = index(place(self.bytes, 196)) / 8;
        (begin..begin + self.activities.len() / 8).step_by(ACTIVITY_BYTES / 8)
    }

    /// The threads that are in a call of MPI, by their numbers in the system.
    pub fn threads_inside(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.entries_inside().map(|one| word(one, 40))
    }

    /// The entries of the threads that are in a call of MPI.
    fn entries_inside(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.entries().filter(|one| is_inside(one))
    }

    /// The entries of the threads that have called MPI and are outside of it.
    fn entries_outside(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.entries().filter(|one| !is_inside(one))
    }

    /// The entries that are a thread's.
    fn entries(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.numbered_entries().map(|(_, one)| one)
    }

    /// The same with their places among all.
    fn numbered_entries(&self) -> impl Iterator<Item = (usize, &'a [u8])> + use<'a> {
        let entries = self.activities.chunks_exact(ACTIVITY_BYTES).enumerate();
        entries.filter(|(_, one)| word(one, 40) != 0)
    }

    /// What the thread of this place has listed for the call that it entered then, if anything.
    fn list_of(&self, place: usize, since: u64) -> Option<&'a [u8]> {
        let list = self.pending.chunks_exact(PENDING_BYTES).nth(place);
        list.filter(|list| since != 0 && long(list, PENDING_SINCE) == since)
    }

    /// The communicator of the persistent collective for which a thread waits, and what has made
    /// its request; none of a call that waits for another one.
    fn awaited(&self, place: usize, entry: &[u8], peer: Peer) -> Option<String> {
        let since = long(entry, 8);
        let is_of_one_request = |list: &&[u8]| word(list, 0) == 0 && long(entry, 48) == since;
        // A list that changes while it is copied may be that of the call before.
        let list = self.list_of(place, since).filter(is_of_one_request)?;
        let one = &list[PENDING_HEAD_BYTES..];
        let maker = Function::of(word(one, 0))?.name;
        let name = self.given_name(word(one, 8)).or_else(|| title_by_size(word(one, 4)));
        let name = with_groups(name.as_deref().unwrap_or(UNNAMED), word(one, 12), peer);
        let told = format!("{name} (for {maker})");
        // What is longer finds no place in a round.
        Some(if told.len() <= REGION_NAME_BYTES_MAX { told } else { name })
    }

    /// How the rank has spent its time until this moment, or until its process or its counting
    /// ended. `MPI_Init` is before the begin, a call that has not returned counts as far as it has
    /// come. A rank of which several threads have called MPI is in MPI while all of them that live
    /// are.
    #[must_use]
    pub fn time(&self, moment: Moment) -> TimeShare {
        let started = long(self.bytes, 40);
        let threads = self.activities.chunks_exact(ACTIVITY_BYTES);
        // When it entered or left its last call.
        let last = threads.clone().map(|one| self.nanoseconds(long(one, 8))).max().unwrap_or(0);
        let begun = threads.filter(|one| long(one, 0) != 0);
        let begun: Vec<u64> = begun.map(|one| self.nanoseconds(long(one, 8))).collect();
        // A finalized rank may still be inside of MPI_Finalize.
        let is_outside = self.state != RankState::Running && begun.is_empty();
        let end = if is_outside { last } else { moment.last_ns().max(last) };
        let in_progress = if long(self.bytes, SEVERAL_SINCE) == 0 {
            begun.iter().map(|&begun| end.saturating_sub(begun)).fold(0, u64::saturating_add)
        } else {
            self.together_ns(end)
        };
        let mpi_ns = self.returned_ns().saturating_add(in_progress);
        TimeShare { wall_ns: end.saturating_sub(started), mpi_ns }
    }

    /// The time in MPI of the calls that have returned.
    fn returned_ns(&self) -> u64 {
        if word(self.bytes, IS_TOGETHER) != 0 {
            return long(self.bytes, TOGETHER_NS);
        }
        let times = self.slots.chunks_exact(SLOT_BYTES).filter_map(|slot| {
            let is_call = long(slot, 0) & REGION == 0 && !is_initialisation(long(slot, 0));
            is_call.then(|| long(slot, 16))
        });
        times.fold(0, u64::saturating_add)
    }

    /// Of a rank of which several threads have called MPI, the time in MPI of calls that have not
    /// returned: since the last of these threads entered, if all are inside, and what a call of
    /// the first one had lasted when the second one came.
    fn together_ns(&self, end_ns: u64) -> u64 {
        let time_at = |at| self.nanoseconds(long(self.bytes, at));
        let callers = || self.entries().filter(|one| word(one, HAS_CALLED) != 0);
        let begun = |one: &[u8]| self.nanoseconds(long(one, 8));
        let several_ns = time_at(SEVERAL_SINCE).min(end_ns);
        // Another one may have entered its first call before it was one of several.
        let alone = callers().filter(|one| is_inside(one) && word(one, HAS_CALLED) == ALONE);
        let alone = alone.map(begun);
        let alone = alone.map(|begun| several_ns.saturating_sub(begun)).max().unwrap_or(0);
        let is_together = callers().next().is_some() && callers().all(is_inside);
        let since = callers().map(begun).fold(time_at(JOINED), u64::max);
        let together = if is_together { end_ns.saturating_sub(since) } else { 0 };
        alone.saturating_add(together)
    }

    fn activity(&self, bytes: &[u8], moment: Moment) -> Activity {
        let function = u32::try_from(long(bytes, 0)).unwrap_or(0);
        let function = (function != 0).then_some(function);
        let for_ns = moment.last_ns().saturating_sub(self.nanoseconds(long(bytes, 8)));
        let is_inside = function.is_some();
        let peer = if is_inside { self.peer(word(bytes, 24).cast_signed()) } else { Peer::None };
        let region = match self.key(long(bytes, 32)) {
            Some(EventKey::Region(name)) => name,
            _ => String::new(),
        };
        let condition = match moment.condition {
            // Libraries wait in many ways; what matters inside is only which thread cannot go on.
            Condition::Computing | Condition::Sleeping if is_inside => Condition::Unknown,
            condition => condition,
        };
        let kind = ActivityKind {
            function,
            is_long: for_ns >= moment.long_ns,
            condition,
            communicator: match function {
                Some(function) => self.place_of(function, long(bytes, 16), peer),
                None => String::new(),
            },
            region,
        };
        Activity { kind, peer, for_ns }
    }

    /// On what a call is made: the communicator, or the window or file that has a name.
    fn place_of(&self, function: FunctionId, handle: u64, peer: Peer) -> String {
        if let Some(name) = self.communicator_with(handle, peer) {
            return name;
        }
        // These make a file or a window, and are called on a communicator.
        let makers = ["MPI_File_open", "MPI_Win_create", "MPI_Win_allocate"];
        let is_maker = |name: &str| makers.iter().any(|maker| name.starts_with(maker));
        let function = Function::of(function).filter(|function| !is_maker(function.name));
        match function.map(|function| function.class) {
            Some(Class::File) => String::new(),
            Some(Class::Rma) => "a window".to_owned(),
            _ => UNNAMED.to_owned(),
        }
    }

    /// What the table tells of a communicator, window or file; none of one that it has no place
    /// for.
    fn known(&self, handle: u64) -> Option<&[u8]> {
        let mut known = self.communicators.chunks_exact(COMMUNICATOR_BYTES);
        // What was copied while another one took the place may be of both.
        known.find(|one| {
            handle != 0 && long(one, 0) == handle && [0, handle].contains(&long(one, HANDLE_AGAIN))
        })
    }

    /// The name that a communicator, window or file was given, by its handle.
    #[must_use]
    pub fn name_of(&self, handle: u64) -> Option<String> {
        self.given_name(word(self.known(handle)?, 12))
    }

    /// The communicator of a call with this peer, whose number may be one of another group; none
    /// where the table tells nothing of it.
    fn communicator_with(&self, handle: u64, peer: Peer) -> Option<String> {
        let known = self.known(handle);
        let name = self.title(handle, known);
        let between = known.map_or(0, |one| word(one, 16));
        if between != 0 && matches!(peer, Peer::Rank(_)) {
            return Some(with_groups(name.as_deref().unwrap_or(UNNAMED), between, peer));
        }
        name
    }

    /// The monotonic clock at a time of the table's own clock.
    fn nanoseconds(&self, ticks: u64) -> u64 {
        let (origin, origin_ns) = (long(self.bytes, 224), long(self.bytes, 232));
        let later = u128::from(ticks.saturating_sub(origin)) * u128::from(long(self.bytes, 240));
        origin_ns.saturating_add(u64::try_from(later >> 32).unwrap_or(u64::MAX))
    }

    /// The name that a communicator, window or file was given, by its place among the names, from
    /// 1.
    #[must_use]
    pub fn given_name(&self, name: u32) -> Option<String> {
        match self.key(REGION | u64::from(name.checked_sub(1)?))? {
            EventKey::Region(name) => Some(name),
            EventKey::Function { .. } => None,
        }
    }

    /// What a communicator is called, by its handle.
    #[must_use]
    pub fn communicator(&self, handle: u64) -> String {
        self.title(handle, self.known(handle)).unwrap_or_else(|| UNNAMED.to_owned())
    }

    /// What a communicator is called of which the table tells this.
    fn title(&self, handle: u64, known: Option<&[u8]>) -> Option<String> {
        if handle == 0 {
            return Some(String::new());
        }
        if let Some(name) = known.and_then(|one| self.given_name(word(one, 12))) {
            return Some(name);
        }
        if handle == long(self.bytes, 248) {
            return Some("MPI_COMM_WORLD".to_owned());
        }
        known.and_then(|one| title_by_size(word(one, 8)))
    }

    /// A peer as the program gave it; the numbers of `MPI_ANY_SOURCE`, `MPI_PROC_NULL` and
    /// `MPI_ROOT` are each MPI's own.
    fn peer(&self, number: i32) -> Peer {
        let any_source = if word(self.bytes, 28) == MPICH_ABI { -2 } else { -1 };
        match u32::try_from(number) {
            Ok(rank) => Peer::Rank(rank),
            Err(_) if number == any_source => Peer::Any,
            Err(_) => Peer::None,
        }
    }

    /// The event of a slot's key.
    fn key(&self, key: u64) -> Option<EventKey> {
        if key & REGION == 0 {
            return EventKey::from_word(u32::try_from(key).ok()?);
        }
        let offset = usize::try_from(key & !REGION).ok()?;
        let name = self.names.get(offset..)?;
        // A name starts where another ends; anything else would be the tail of one.
        let starts = offset == 0 || self.names[offset - 1] == 0;
        let end = name.iter().position(|&byte| byte == 0)?;
        EventKey::from_name(escaped(&name[..end]).as_bytes()).filter(|_| starts)
    }
}

/// What a communicator without a name is called, by its class of sizes.
fn title_by_size(class: u32) -> Option<String> {
    let (first, last) = SizeClass::from_code(u8::try_from(class).ok()?)?.sizes()?;
    Some(match (first, last) {
        (1, 1) => "a communicator of 1 rank".to_owned(),
        _ if first == last => format!("a communicator of {first} ranks"),
        _ => format!("a communicator of {first}-{last} ranks"),
    })
}

/// What a communicator of this name is called where a call has this peer; `between` is not 0 of one
/// that has two groups.
fn with_groups(name: &str, between: u32, peer: Peer) -> String {
    match peer {
        Peer::Rank(_) if between != 0 => format!("{name} (peers are of its other group)"),
        _ => name.to_owned(),
    }
}

/// Whether the key is of the function in which counting begins.
fn is_initialisation(key: u64) -> bool {
    matches!(name_of(key >> 8), Some("MPI_Init" | "MPI_Init_thread"))
}

/// Whether the thread of an activity is in a function of MPI.
fn is_inside(activity: &[u8]) -> bool {
    u32::try_from(long(activity, 0)).is_ok_and(|function| function != 0)
}

/// Whether the number is of the function in which counting ends.
fn is_finalization(function: u64) -> bool {
    name_of(function) == Some("MPI_Finalize")
}

fn name_of(function: u64) -> Option<&'static str> {
    Function::of(u32::try_from(function).ok()?).map(|function| function.name)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn counters_at(bytes: &[u8], at: usize) -> crate::Counters {
    crate::Counters {
        count: long(bytes, at),
        time_ns: long(bytes, at + 8),
        bytes: long(bytes, at + 16),
    }
}

/// An offset or length in the header, wide enough to be added to others.
fn place(bytes: &[u8], at: usize) -> u64 {
    word(bytes, at).into()
}

/// An offset that was found to be inside the table.
fn index(place: u64) -> usize {
    usize::try_from(place).expect("a place inside memory is a length of this machine")
}

/// A name that is padded with NUL, with what is no UTF-8 replaced.
fn label(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned().trim().to_owned()
}

fn wrong(what: &'static str, found: u64, wanted: u64) -> ProfileError {
    ProfileError::Table { what, found, wanted }
}

fn is_whole(bytes: &[u8], wanted: u64) -> Result<(), ProfileError> {
    let bytes = bytes.len() as u64;
    if bytes >= wanted { Ok(()) } else { Err(ProfileError::Cut { bytes, wanted }) }
}

fn equal(what: &'static str, found: u64, wanted: u64) -> Result<(), ProfileError> {
    if found == wanted { Ok(()) } else { Err(wrong(what, found, wanted)) }
}

fn at_most(what: &'static str, found: u64, limit: u64) -> Result<u64, ProfileError> {
    if found <= limit { Ok(found) } else { Err(wrong(what, found, limit)) }
}
