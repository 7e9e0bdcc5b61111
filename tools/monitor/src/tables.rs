//! The tables of a leaf's MPI ranks: taking them in as ranks come, reading them when asked.
//!
//! A rank hands its table over once and keeps the connection open as long as it lives. The table
//! stays mapped when the rank is gone, so that what it counted survives it.

mod kept;

use sapwood_command_line::exit::complain;
use sapwood_report::nanoseconds;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use sapwood::{StreamId, Values, Wave};
use sapwood_profile::{
    Activity, Condition, Counters, EventKey, Figure, Moment, RankProfile, RankRows, RankState,
    Round, RoundHistory, TableReader, TallyKind, TimeShare,
};
use sapwood_trace::{Coscheduling, Gathered, ScopeFigures};
use sapwood_transport::{
    ControlPage, SharedTable, TableAccepted, TableListener, TableOffer, TablePeer,
};

use super::condition::Conditions;
use super::control::request::RunSettings;
use super::effort::{Effort, Patience, WatchedRank, is_in_collective};
use super::file_use::{FileUse, is_on_file};
use super::hardware::Hardware;
use super::host_time::now_ns;
use super::iterations::Iterations;
use super::places::{Place, PlaceQuestion};
use super::presence::{Attachable, Presence};
use super::rank_control::RankControl;
use super::scope::{LeafScopes, ScopeQuestion};
use super::started::StartedRanks;
use super::tcp_links::{TcpJob, TcpLinks, TcpSeat};
use super::thread_use::ThreadUse;
use super::tool_rank::ToolRank;
use super::usage;
use super::waits::{LeafWaits, WaitsQuestion};
pub(crate) use kept::{KeptError, KeptRank, KeptTime};

/// Connections that have not offered a table yet; others wait until these have. With those of the
/// ranks they are fewer than the descriptors that a process may have on most machines.
const ARRIVING_MAX: usize = 256;
/// For how long such a connection keeps its place where there is none for others.
const ARRIVING_TIME: Duration = Duration::from_secs(10);
/// What a leaf says of ranks that it cannot take in, at most; the rest is counted by the front-end
/// as missing.
const NOTES_MAX: usize = 16;
/// Other users whose processes a leaf tells of, at most.
const FOREIGN_USERS_MAX: usize = 8;

/// All tables of one leaf.
pub(crate) struct Tables {
    listener: Option<TableListener>,
    /// In the order in which they have come.
    arriving: Vec<ArrivingPeer>,
    has_closed_silent: bool,
    pub(crate) ranks: BTreeMap<u32, RankTable>,
    notes: usize,
    foreign: ForeignUsers,
    /// What the front-end has asked of the ranks.
    pub(crate) settings: Option<RunSettings>,
    pub(crate) iterations: Iterations,
    /// Where iterations are sent, and the size of the program if it is known.
    pub(crate) marks_stream: Option<(StreamId, u32)>,
    /// The rounds of a running program that were sent.
    sent: RoundHistory,
    /// Processes that announced themselves and are not watched.
    unwatched: u32,
    /// The events of the ranks.
    pub(crate) waits: LeafWaits,
    /// How far scopes have read them.
    pub(crate) scopes: LeafScopes,
    /// When a reading of them may wait for a moment again.
    patience: Patience,
    /// What they send over TCP.
    tcp: TcpLinks,
    /// Ranks that have not come yet.
    started: StartedRanks,
    /// The rank of the tool that has started this leaf, in a tree inside the job.
    pub(crate) tool_rank: Option<ToolRank>,
}

/// A connection that has not offered a table yet.
struct ArrivingPeer {
    peer: TablePeer,
    since: Instant,
}

/// The table of one rank.
pub(crate) struct RankTable {
    /// The connection to its process; none when that has ended.
    pub(crate) peer: Option<Presence>,
    pub(crate) table: SharedTable,
    pub(crate) control: RankControl,
    world_size: u32,
    is_noted: bool,
    /// When its process ended without a word.
    lost_at: Option<Instant>,
    /// What the system last said of its process.
    figures: BTreeMap<Figure, u64>,
    hardware: Hardware,
    conditions: Conditions,
    thread_use: ThreadUse,
    file_use: FileUse,
    /// Whether it moved data in a call on a file when its profile was read last.
    is_moving_data: bool,
    /// How it had spent its time at the round before.
    before: TimeShare,
    /// The words of its table that say in which function each thread is, once they were read.
    call_words: OnceCell<Vec<usize>>,
    /// The file name of its program, once it was read.
    program: OnceCell<String>,
}

/// What was read of a rank.
pub(crate) struct ReadRank {
    pub(crate) profile: RankProfile,
    /// The table that says so, without its snapshots.
    pub(crate) words: Vec<u64>,
    /// The moment just before it was copied.
    pub(crate) now_ns: u64,
}

/// Other users whose processes have come to a leaf.
#[derive(Debug, Default)]
struct ForeignUsers(BTreeSet<u32>);

impl ForeignUsers {
    /// What is to be said of a process of another user that has come; once for each user.
    fn line(&mut self, user: u32) -> Option<String> {
        let is_new = self.0.len() < FOREIGN_USERS_MAX && self.0.insert(user);
        is_new.then(|| {
            format!(
                "a process of user {user} asked to be watched; it is not; start the program as the \
                 user of sapwood"
            )
        })
    }
}

/// What a rank says of itself and its table; `bindings/mpi/shim/handover.h` draws it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hello {
    world_rank: u32,
    world_size: u32,
    pid: u32,
    table_bytes: u64,
    /// Whether `MPI_Comm_spawn` started it.
    is_spawned: bool,
    /// Of its event file; 0 none.
    events_bytes: u64,
}

impl Hello {
    fn parse(bytes: &[u8; 64]) -> Result<Self, String> {
        let word = |at: usize| bytes[at..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        if bytes[..8] != *b"SWHELLO1" || word(8) != 3 {
            return Err(
                "MPI shim and sapwood are of different releases; rebuild the shim with 'make shim'"
                    .to_string(),
            );
        }
        let long = |at: usize| bytes[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        let hello = Self {
            world_rank: word(12),
            world_size: word(16),
            pid: word(20),
            table_bytes: long(24),
            is_spawned: word(32) != 0,
            events_bytes: long(40),
        };
        if hello.world_rank >= hello.world_size {
            return Err(format!("the shim announced rank {} of {} ranks", word(12), word(16)));
        }
        Ok(hello)
    }
}

impl Tables {
    /// Waits for ranks under an abstract name.
    ///
    /// # Errors
    /// When the name is taken.
    pub(crate) fn bind(name: &str) -> sapwood_transport::Result<Self> {
        let listener = Some(TableListener::bind(name)?);
        Ok(Self { listener, ..Self::without_listener() })
    }

    /// Has them look for ranks of the job that have not come, by what its leaves have in common in
    /// their names.
    pub(crate) fn expect_ranks_of(&mut self, base: &str) {
        self.started = StartedRanks::of_job(base);
    }

    /// To which no ranks come.
    fn without_listener() -> Self {
        Self {
            listener: None,
            arriving: Vec::new(),
            has_closed_silent: false,
            ranks: BTreeMap::new(),
            notes: 0,
            foreign: ForeignUsers::default(),
            settings: None,
            iterations: Iterations::default(),
            marks_stream: None,
            sent: RoundHistory::new(),
            unwatched: 0,
            waits: LeafWaits::default(),
            scopes: LeafScopes::default(),
            patience: Patience::default(),
            tcp: TcpLinks::default(),
            started: StartedRanks::default(),
            tool_rank: None,
        }
    }

    /// Where ranks come.
    pub(crate) fn listener(&self) -> Option<&TableListener> {
        self.listener.as_ref()
    }

    /// Takes in ranks that have come and notices those that have gone. `watch` is told of each new
    /// connection.
    pub(crate) fn look(&mut self, mut watch: impl FnMut(&dyn AsFd)) {
        self.accept(&mut watch);
        let mut waiting = Vec::new();
        for mut one in std::mem::take(&mut self.arriving) {
            match one.peer.receive() {
                Ok(None) => waiting.push(one),
                Ok(Some(offer)) => self.admit(one.peer, offer),
                Err(error) => {
                    let pid = one.peer.credentials().process;
                    self.note(&format!("process {pid} is not observed: {error}"));
                }
            }
        }
        self.arriving.extend(waiting);
        self.close_silent();
        for rank in self.ranks.values_mut() {
            if rank.peer.as_mut().is_some_and(Presence::is_over) {
                rank.peer = None;
                rank.lost_at = rank.is_unfinished().then(Instant::now);
                rank.control.note_closed();
            }
        }
    }

    fn accept(&mut self, watch: &mut impl FnMut(&dyn AsFd)) {
        while self.arriving.len() < ARRIVING_MAX {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok(TableAccepted::Peer(peer)) => {
                    watch(&peer);
                    self.arriving.push(ArrivingPeer { peer, since: Instant::now() });
                }
                Ok(TableAccepted::Empty) => return,
                Ok(TableAccepted::ForeignUser(who)) => {
                    if let Some(line) = self.foreign.line(who.user) {
                        self.note(&line);
                    }
                }
                Ok(TableAccepted::Exhausted) => {
                    self.listener = None;
                    self.note(
                        "too many open files; further ranks are not observed; raise 'ulimit -n'",
                    );
                }
                Err(error) => {
                    self.listener = None;
                    self.note(&format!("further ranks are not observed: {error}"));
                }
            }
        }
    }

    /// Closes connections that have offered nothing for long where ranks may wait for their places.
    fn close_silent(&mut self) {
        let oldest = self.arriving.first().filter(|_| self.arriving.len() >= ARRIVING_MAX);
        let Some(oldest) = oldest.filter(|one| one.since.elapsed() >= ARRIVING_TIME) else {
            return;
        };
        let pid = oldest.peer.credentials().process;
        let before = self.arriving.len();
        self.arriving.retain(|one| one.since.elapsed() < ARRIVING_TIME);
        let closed = before - self.arriving.len();
        if !std::mem::replace(&mut self.has_closed_silent, true) {
            self.note(&format!(
                "no rank was announced within {} s by {closed} of {before} connections, the first \
                 of them of process {pid}; such connections are closed, as ranks may wait for a \
                 place",
                ARRIVING_TIME.as_secs()
            ));
        }
    }

    fn admit(&mut self, peer: TablePeer, offer: TableOffer) {
        let hello = match Hello::parse(&offer.hello) {
            Ok(hello) => hello,
            Err(reason) => {
                let pid = peer.credentials().process;
                return self.note(&format!("process {pid} is not observed: {reason}"));
            }
        };
        let Hello { world_rank, world_size, pid, table_bytes, is_spawned, events_bytes } = hello;
        if is_spawned {
            // The report says how many.
            self.unwatched += 1;
            return;
        }
        if self.ranks.contains_key(&world_rank) {
            self.unwatched += 1;
            return self.note(&format!(
                "process {pid} is not observed: rank {world_rank} is already observed, so it is of a \
                 second program"
            ));
        }
        // A size beyond this machine's memory is refused as any other that is too large.
        let table_bytes = usize::try_from(table_bytes).unwrap_or(usize::MAX);
        match SharedTable::open(offer.descriptor, table_bytes) {
            Ok(table) => {
                // A page that cannot be mapped leaves a rank that is not controlled.
                let page = offer.control.and_then(|page| ControlPage::map(page).ok());
                let process = peer.credentials().process;
                let control = RankControl::new(page, process);
                self.set_new(world_rank, &control);
                let rank = RankTable::new(Presence::Connected(peer), table, control, world_size);
                self.ranks.insert(world_rank, rank);
                if let Some(events) = offer.events {
                    self.admit_events(world_rank, events, events_bytes);
                }
            }
            Err(error) => self.note(&format!("rank {world_rank} is not observed: {error}")),
        }
    }

    /// Takes in the event file of a rank whose table is here.
    fn admit_events(&mut self, rank: u32, file: OwnedFd, bytes: u64) {
        if let Err(error) = self.waits.admit(rank, file, bytes) {
            self.note(&format!("the waits of rank {rank} are not observed: {error}"));
        }
    }

    /// Attaches to a rank that was started without leaves. Its end is looked for at each question.
    pub(crate) fn adopt(&mut self, rank: Attachable) {
        let Attachable {
            process, world_rank, world_size, table_bytes, table, events, pidfd, ..
        } = rank;
        if self.ranks.contains_key(&world_rank) {
            return self.note(&format!(
                "process {process} is not observed: rank {world_rank} is already observed"
            ));
        }
        match SharedTable::map(table.into(), usize::try_from(table_bytes).unwrap_or(usize::MAX)) {
            Ok(table) => {
                // Nothing is handed over to one that attaches; a page may have been left open.
                let control = RankControl::new(None, process);
                let peer = Presence::Attached { process, pidfd };
                let rank = RankTable::new(peer, table, control, world_size);
                self.ranks.insert(world_rank, rank);
                if let Some(events) = events {
                    let bytes = events.metadata().map_or(0, |file| file.len());
                    self.admit_events(world_rank, events.into(), bytes);
                }
            }
            Err(error) => self.note(&format!("rank {world_rank} is not observed: {error}")),
        }
    }

    /// The size of the program: as the front-end knows it, or as the first rank here says; 0 before
    /// that has come.
    pub(crate) fn world_size(&self, known: u32) -> u32 {
        let first = || self.ranks.values().next().map_or(0, |rank| rank.world_size);
        if known == 0 { first() } else { known }
    }

    /// The figures of a scope.
    pub(crate) fn scope(&mut self, question: &ScopeQuestion) -> ScopeFigures {
        let world_size = self.world_size(question.world_size);
        let Self { ranks, waits, scopes, patience, .. } = self;
        let watched = watched(question.scope.when, world_size, ranks, waits);
        let cpu = Duration::from_nanos(question.cpu_ns);
        let effort = Effort::new(question.scope.when, cpu, watched, patience);
        let those = ranks.iter().filter(|(_, rank)| rank.world_size == world_size);
        let those = those.filter_map(|(&rank, _)| Some((rank, waits.events(rank)?)));
        scopes.answer(question, effort, those, |rank| ranks.get(&rank)?.words().ok())
    }

    /// Which ranks wait for which; `leaf` is the own number.
    pub(crate) fn waits(&mut self, leaf: u32, asked: &WaitsQuestion) -> Gathered {
        let world_size = self.world_size(asked.question.world_size);
        let Self { ranks, waits, patience, tcp, .. } = self;
        let watched = watched(asked.when, world_size, ranks, waits);
        let cpu = Duration::from_nanos(asked.cpu_ns);
        let effort = Effort::new(asked.when, cpu, watched, patience);
        // Before the records are read: a collective that ends meanwhile is among these.
        let in_collective = in_collective(ranks);
        let mut gathered = waits.answer(leaf, &asked.question, effort);
        let seat = |(&rank, one): (&u32, &RankTable)| {
            let process = one.peer.as_ref()?.process();
            let calls = waits.time_in_calls(rank)?;
            let is_in_collective = in_collective.contains(&rank);
            Some(TcpSeat { rank, process, calls, is_in_collective })
        };
        let seats: Vec<TcpSeat> = ranks.iter().filter_map(seat).collect();
        let job = TcpJob { world_size, is_spread: asked.question.is_spread };
        tcp.read(job, &seats, &mut gathered);
        gathered
    }

    /// The ranks that have come to this host, and those started there.
    pub(crate) fn place(&mut self, asked: &PlaceQuestion) -> Place {
        let Self { ranks, started, .. } = self;
        let has_come = |rank: u32| ranks.contains_key(&rank) || asked.come.contains(rank);
        let started = started.look(has_come);
        let ranks = self.ranks.keys().copied().collect();
        let age = |since: &Instant| nanoseconds(since.elapsed());
        let lost = self
            .ranks
            .iter()
            .filter_map(|(number, rank)| rank.lost_at.as_ref().map(|since| (*number, age(since))));
        let (host, lost) = (sapwood_launch::own_host_name(), lost.collect());
        Place { question: asked.number, host, ranks, lost, started }
    }

    /// The statistics over all ranks that have come, as they are now. `world_size` is 0 as long as
    /// the front-end does not know it.
    pub(crate) fn round(&mut self, world_size: u32, long_ns: u64) -> Round {
        let world_size = self.world_size(world_size);
        let mut round = Round::new(world_size);
        round.add_unwatched(self.unwatched);
        for mut profile in self.profiles(world_size, long_ns) {
            if let Some(rank) = self.ranks.get_mut(&profile.mpi_rank) {
                let before = std::mem::replace(&mut rank.before, profile.time);
                profile.interval = profile.time.since(before);
            }
            if let Err(error) = round.add(&profile) {
                self.note(&format!("rank {} is left out: {error}", profile.mpi_rank));
            }
        }
        round
    }

    /// The processes of all ranks that have come; none of those that have ended.
    pub(crate) fn processes(&self) -> Vec<(u32, Option<i32>)> {
        let process = |rank: &RankTable| rank.peer.as_ref().map(Presence::process);
        self.ranks.iter().map(|(&number, rank)| (number, process(rank))).collect()
    }

    /// The same as the values of a packet: what has changed since the round of the base, if this
    /// leaf was in it.
    pub(crate) fn changes(
        &mut self,
        world_size: u32,
        long_ns: u64,
        wave: Wave,
        base: Option<Wave>,
    ) -> Values {
        let round = self.round(world_size, long_ns);
        let values = self.sent.encode(&round, base);
        self.sent.keep(wave, base, round);
        values
    }

    /// What the ranks have tallied of a kind, as profiles whose events are the tallies.
    pub(crate) fn tallies(&self, kind: TallyKind) -> Vec<RankProfile> {
        let of = |(&number, rank): (&u32, &RankTable)| {
            let words = rank.words().ok()?;
            let table = TableReader::new(&words).ok()?;
            let events: BTreeMap<EventKey, Counters> = table.tallies(kind);
            let dropped = table.tallies_dropped();
            Some(RankProfile { events, dropped, ..RankProfile::new(number, rank.world_size) })
        };
        self.ranks.iter().filter_map(of).collect()
    }

    /// The profiles of all ranks that have come.
    pub(crate) fn rows(&mut self, world_size: u32, long_ns: u64) -> RankRows {
        let profiles = self.profiles(world_size, long_ns);
        RankRows::new(profiles).unwrap_or_else(|error| {
            self.note(&format!("no rows: {error}"));
            RankRows::default()
        })
    }

    /// The profiles of all ranks that have come and are of a program of this size.
    pub(crate) fn profiles(&mut self, world_size: u32, long_ns: u64) -> Vec<RankProfile> {
        let mut notes = Vec::new();
        let mut profiles = Vec::new();
        let mut ranks = std::mem::take(&mut self.ranks);
        for (number, rank) in &mut ranks {
            let read = rank.profile(world_size, long_ns).map(|mut profile| {
                if !self.tells_activities(*number) {
                    profile.activities.clear();
                }
                // The rank under which it came is the one that no other rank has.
                RankProfile { mpi_rank: *number, ..profile }
            });
            match read {
                Ok(profile) => profiles.push(profile),
                Err(reason) if !std::mem::replace(&mut rank.is_noted, true) => {
                    notes.push(format!("rank {number} is left out: {reason}"));
                }
                Err(_) => {}
            }
        }
        self.ranks = ranks;
        notes.iter().for_each(|note| self.note(note));
        profiles
    }

    /// Standard error of a leaf goes up the tree, to where the user looks.
    fn note(&mut self, text: &str) {
        self.notes += 1;
        if self.notes <= NOTES_MAX {
            complain(text);
        }
    }
}

/// The ranks of a program of this size whose calls decide when events are read; none where they
/// are read at any time. One whose process has ended makes no more calls.
fn watched<'a>(
    when: Coscheduling,
    world_size: u32,
    ranks: &'a BTreeMap<u32, RankTable>,
    waits: &LeafWaits,
) -> Vec<WatchedRank<'a>> {
    if when == Coscheduling::Any {
        return Vec::new();
    }
    let runs = |rank: &RankTable| rank.peer.is_some() && rank.world_size == world_size;
    let watched = ranks.iter().filter(|(_, rank)| runs(rank)).map(|(number, rank)| {
        let events = waits.events(*number)?;
        let file = events.header().ok()?;
        Some(WatchedRank::new(&rank.table, rank.call_words()?, events.share(), file))
    });
    watched.flatten().collect()
}

/// The ranks that run and are in a collective, and those of which that cannot be seen.
fn in_collective(ranks: &BTreeMap<u32, RankTable>) -> BTreeSet<u32> {
    let may_be = |rank: &RankTable| {
        rank.call_words().is_none_or(|calls| is_in_collective(&rank.table, calls))
    };
    let those = ranks.iter().filter(|(_, rank)| rank.peer.is_some() && may_be(rank));
    those.map(|(&number, _)| number).collect()
}

impl RankTable {
    fn new(peer: Presence, table: SharedTable, control: RankControl, world_size: u32) -> Self {
        Self {
            hardware: Hardware::of(peer.process()),
            peer: Some(peer),
            ..Self::without_process(table, control, world_size)
        }
    }

    /// Of a process that has ended.
    fn without_process(table: SharedTable, control: RankControl, world_size: u32) -> Self {
        Self {
            hardware: Hardware::default(),
            peer: None,
            table,
            control,
            world_size,
            is_noted: false,
            lost_at: None,
            figures: BTreeMap::new(),
            conditions: Conditions::default(),
            thread_use: ThreadUse::default(),
            file_use: FileUse::default(),
            is_moving_data: false,
            before: TimeShare::default(),
            call_words: OnceCell::new(),
            program: OnceCell::new(),
        }
    }

    /// The file name of its program; none while it is no table.
    pub(crate) fn program(&self) -> Option<&str> {
        self.once(&self.program, |table| table.program()).map(String::as_str)
    }

    /// The words of its table that say in which function each thread is; none while it is no table.
    fn call_words(&self) -> Option<&[usize]> {
        self.once(&self.call_words, |table| table.call_words().collect()).map(Vec::as_slice)
    }

    /// What does not change in its table, read once; none while it is no table.
    fn once<'a, T>(
        &self,
        known: &'a OnceCell<T>,
        read: impl FnOnce(&TableReader<'_>) -> T,
    ) -> Option<&'a T> {
        if known.get().is_none() {
            let words = self.words().ok()?;
            let value = read(&TableReader::new(&words).ok()?);
            return Some(known.get_or_init(|| value));
        }
        known.get()
    }

    /// Whether its table says that it counts, or that it is inside of `MPI_Finalize`: if its
    /// process has ended, it was lost there.
    fn is_unfinished(&self) -> bool {
        let Ok(words) = self.words() else { return false };
        TableReader::new(&words).is_ok_and(|table| is_unfinished(&table))
    }

    /// A copy of the table without its snapshots, which come last.
    pub(crate) fn words(&self) -> Result<Vec<u64>, String> {
        let header = self.table.load_word(384 / 8).unwrap_or(0);
        let snapshots = usize::try_from(header & u64::from(u32::MAX)).unwrap_or(0) / 8;
        let end = if snapshots == 0 { self.table.words() } else { snapshots };
        self.table.copy_words(0..end.min(self.table.words())).map_err(|error| error.to_string())
    }

    /// Its process; none once that has ended.
    pub(crate) fn process(&self) -> Option<i32> {
        self.peer.as_ref().map(|peer| peer.process())
    }

    /// What the rank has counted.
    fn profile(&mut self, world_size: u32, long_ns: u64) -> Result<RankProfile, String> {
        self.read(world_size, long_ns).map(|read| read.profile)
    }

    /// What the rank has counted, with the table that says so. Whether it lives was seen before its
    /// table is read, so that a table that says "running" behind a closed connection is of a rank
    /// that was killed.
    pub(crate) fn read(&mut self, world_size: u32, long_ns: u64) -> Result<ReadRank, String> {
        if self.world_size != world_size {
            return Err(format!(
                "its program has {} ranks, and one with {world_size} is watched; watch one program \
                 at a time",
                self.world_size
            ));
        }
        let process = self.process();
        // Of a process that has ended the last figures hold.
        let figures = process.map(usage::of_process).unwrap_or_default();
        self.figures.extend(figures);
        let condition = process.map(|process| self.conditions.now(process, &self.figures));
        self.figures.extend(self.hardware.read());
        // Before the copy, so that no call or activity seems to last longer than it does.
        let now_ns = now_ns();
        let words = self.words()?;
        let table = TableReader::new(&words).map_err(|error| error.to_string())?;
        let mut profile = table.profile();
        if self.peer.is_none() && is_unfinished(&table) {
            profile.state = RankState::Lost;
        }
        let condition = match (profile.state, condition) {
            (RankState::Lost, _) => Some(Condition::Lost),
            // The process is on its way out.
            (RankState::Exited, _) => None,
            (RankState::Running | RankState::Finalized, condition) => condition,
        };
        let condition_now = condition.unwrap_or(Condition::Unknown);
        let ended_ns = self.control.closed_ns;
        let moment = Moment { now_ns, long_ns, condition: condition_now, ended_ns };
        profile.time = self.time_of(table.time(moment));
        profile.figures = self.figures.clone();
        usage::complete(&mut profile.figures, &table, profile.time);
        if condition.is_some() {
            profile.activities = match self.computes_beside(&table) {
                true => table.outside(moment).into_iter().collect(),
                false => table.activities(moment),
            };
        }
        self.is_moving_data = self.moves_data(&profile.activities);
        if self.is_moving_data {
            profile.activities.iter_mut().for_each(|one| one.kind.is_long = false);
        }
        Ok(ReadRank { profile, words, now_ns })
    }

    /// Whether it moved data in a call on a file when its profile was read last: then it works, and
    /// waits in no call.
    pub(crate) fn is_moving_data(&self) -> bool {
        self.is_moving_data
    }

    /// Whether a thread is in a call on a file, and the process reads or writes.
    fn moves_data(&mut self, activities: &[Activity]) -> bool {
        let Some(process) = self.process() else { return false };
        activities.iter().any(is_on_file) && self.file_use.moves_data(process)
    }

    /// Whether a thread computes outside of MPI while others are inside.
    fn computes_beside(&mut self, table: &TableReader<'_>) -> bool {
        let outside: Vec<u32> = table.threads_outside().collect();
        let Some(process) = self.process() else { return false };
        let is_split = !outside.is_empty() && table.threads_inside().next().is_some();
        is_split && self.thread_use.any_computes(process, &outside)
    }
}

fn is_unfinished(table: &TableReader<'_>) -> bool {
    table.state() == RankState::Running || table.is_finalizing()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(rank: u32, size: u32) -> [u8; 64] {
        let mut bytes = [0_u8; 64];
        bytes[..8].copy_from_slice(b"SWHELLO1");
        for (at, word) in [(8, 3), (12, rank), (16, size), (20, 77)] {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[24..32].copy_from_slice(&4096_u64.to_le_bytes());
        bytes[40..48].copy_from_slice(&8192_u64.to_le_bytes());
        bytes
    }

    #[test]
    fn a_hello_is_read_as_it_is_drawn() {
        let expected = Hello {
            world_rank: 3,
            world_size: 8,
            pid: 77,
            table_bytes: 4096,
            is_spawned: false,
            events_bytes: 8192,
        };
        assert_eq!(Hello::parse(&hello(3, 8)), Ok(expected));
    }

    #[test]
    fn a_process_of_another_user_is_told_once_for_each_user() {
        let mut foreign = ForeignUsers::default();
        let line = foreign.line(1001).expect("the first of this user");
        assert!(line.starts_with("a process of user 1001 asked to be watched"), "{line}");
        assert_eq!(foreign.line(1001), None);
        let told = (2000..2100).filter(|&user| foreign.line(user).is_some()).count();
        assert_eq!(told, FOREIGN_USERS_MAX - 1);
    }

    #[test]
    fn a_hello_of_another_release_or_of_no_rank_is_refused() {
        let mut other = hello(3, 8);
        other[8] = 1;
        assert!(Hello::parse(&other).unwrap_err().contains("different releases"));
        assert!(Hello::parse(&hello(8, 8)).unwrap_err().contains("rank 8 of 8"));
        assert!(Hello::parse(&[0; 64]).is_err());
    }
}
