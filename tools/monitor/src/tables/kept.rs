//! Tables of ranks that are read from the files that these have kept in a folder: all of one host,
//! as a leaf would have them. Most have ended; those that run on this machine are looked at, too.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::process::{FlockType, Pid, PidfdFlags, fcntl_getlk, pidfd_open};
use sapwood::RankSet;
use sapwood_launch::own_host_name;
use sapwood_profile::{Moment, TableReader};
use sapwood_trace::{CallKind, EventFile, Presence, Source, Standing};
use sapwood_transport::SharedTable;

use super::{RankTable, Tables};
use crate::host_time::now_ns;
use crate::presence::Presence as Process;
use crate::rank_control::RankControl;

/// No process has this number.
const NO_PROCESS: i32 = i32::MAX;
/// In a table, the word that says when counting began, by the host's monotonic clock.
const STARTED_WORD: usize = 40 / 8;
/// The word by which a launcher tells a run from others, and the one that says when the file was
/// made.
const RUN_WORD: usize = 408 / 8;
const MADE_WORD: usize = 416 / 8;
/// The processes of one run are in `MPI_Init` together, as far apart as this at most.
const RUN_APART_NS: u64 = 10_000_000_000;

/// What a kept table says of its rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptHeader {
    pub(crate) rank: u32,
    pub(crate) world_size: u32,
    pub(crate) host: String,
    pub(crate) program: String,
    /// Whether `MPI_Comm_spawn` started it, so that it is of another world.
    pub(crate) is_spawned: bool,
    /// By which its launcher tells the run from others; 0 if it does not.
    pub(crate) run: u64,
    /// When its file was made, in nanoseconds since 1970; 0 if that is not known.
    pub(crate) made_ns: u64,
    /// From then until the last moment of which the file knows.
    pub(crate) lasted_ns: u64,
}

impl KeptHeader {
    /// Whether it is of a run that had ended when this one began.
    pub(crate) const fn is_before(&self, other: &Self) -> bool {
        let apart_ns = other.made_ns.saturating_sub(self.made_ns);
        self.made_ns != 0 && apart_ns > RUN_APART_NS && apart_ns > self.lasted_ns
    }
}

/// The process of kept files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeptProcess {
    Ended,
    /// It runs here under this number.
    Here(Pid),
    /// It runs on another host, or where its number is not known.
    Elsewhere,
}

impl KeptProcess {
    /// By the lock that it has on its table for as long as it lives.
    fn of(table: &File) -> Self {
        match fcntl_getlk(table, &FlockType::WriteLock.into()) {
            Ok(Some(lock)) => lock.pid.map_or(Self::Elsewhere, Self::Here),
            _ => Self::Ended,
        }
    }

    fn attached(self) -> Option<Process> {
        let Self::Here(process) = self else { return None };
        let pidfd = pidfd_open(process, PidfdFlags::empty()).ok()?;
        Some(Process::Attached { process: process.as_raw_pid(), pidfd })
    }
}

/// The table of a rank, and its events as they are in their file.
pub(crate) struct KeptRank {
    pub(crate) header: KeptHeader,
    process: KeptProcess,
    table: SharedTable,
    events: OwnedFd,
    events_bytes: u64,
    /// The last moment of which the table knows, by the host's monotonic clock; none if it knows
    /// none.
    last_ns: Option<u64>,
}

impl KeptRank {
    /// Looks at both files of a rank; `events` has this size.
    ///
    /// # Errors
    /// Which of the two is wrong, and one line that says why.
    pub(crate) fn read(table: File, events: File) -> Result<Self, KeptError> {
        let process = KeptProcess::of(&table);
        let table_bytes = length(&table).map_err(KeptError::Table)?;
        let table = SharedTable::open(table.into(), usize::try_from(table_bytes).unwrap_or(0));
        let table = table.map_err(|error| KeptError::Table(error.to_string()))?;
        let whole = RankTable::without_process(table, RankControl::new(None, NO_PROCESS), 0);
        let words = whole.words().map_err(KeptError::Table)?;
        let reader = TableReader::new(&words);
        let reader = reader.map_err(|error| KeptError::Table(error.to_string()))?;
        let profile = reader.profile();
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        let process = match process {
            KeptProcess::Here(_) if profile.host != own_host_name() => KeptProcess::Elsewhere,
            process => process,
        };
        let known = whole.kept_time();
        let time = known.unwrap_or_default();
        let header = KeptHeader {
            rank: profile.mpi_rank,
            world_size: profile.world_size,
            host: profile.host,
            program: profile.program,
            is_spawned: reader.is_spawned(),
            run: word(RUN_WORD),
            made_ns: word(MADE_WORD),
            lasted_ns: time.last_ns.saturating_sub(time.begin_ns),
        };
        let events_bytes = length(&events).map_err(KeptError::Events)?;
        let events = OwnedFd::from(events);
        let last_ns = known.map(|time| time.last_ns);
        let one = Self { header, process, table: whole.table, events, events_bytes, last_ns };
        one.check_events().map_err(KeptError::Events)?;
        Ok(one)
    }

    /// Whether its process runs.
    pub(crate) fn is_alive(&self) -> bool {
        self.process != KeptProcess::Ended
    }

    /// Whether the other file is the same rank's and is whole.
    fn check_events(&self) -> Result<(), String> {
        let file = self.events.try_clone().map_err(|error| error.to_string())?;
        let bytes = usize::try_from(self.events_bytes).unwrap_or(usize::MAX);
        let file = SharedTable::open(file, bytes).map_err(|error| error.to_string())?;
        let words = file.copy_words(0..sapwood_trace::HEADER_WORDS.min(file.words()));
        let words = words.map_err(|error| error.to_string())?;
        let header = EventFile::read(&words, file.words()).map_err(|error| error.to_string())?;
        if (header.rank, header.world_size) == (self.header.rank, self.header.world_size) {
            return Ok(());
        }
        Err(format!(
            "it is of rank {} of {}, and the table beside it of rank {} of {}",
            header.rank, header.world_size, self.header.rank, self.header.world_size
        ))
    }
}

/// Which file of a rank cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeptError {
    Table(String),
    Events(String),
}

/// From the begin of a host's ranks to the last moment of which their files know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptTime {
    pub(crate) begin_ns: u64,
    pub(crate) last_ns: u64,
}

impl Tables {
    /// Of one host, without ranks.
    pub(crate) fn of_files() -> Self {
        Self::without_listener()
    }

    /// Takes in the files of a rank.
    ///
    /// # Errors
    /// One line when its events cannot be read any more.
    pub(crate) fn keep(&mut self, kept: KeptRank) -> Result<(), String> {
        let KeptHeader { rank, world_size, .. } = kept.header;
        self.waits.admit(rank, kept.events, kept.events_bytes)?;
        match kept.process {
            KeptProcess::Here(_) => {}
            KeptProcess::Ended => {
                self.waits.note_written(rank, kept.last_ns.unwrap_or(u64::MAX));
            }
            KeptProcess::Elsewhere => self.waits.note_written(rank, u64::MAX),
        }
        let peer = kept.process.attached();
        let control = RankControl::new(None, peer.as_ref().map_or(NO_PROCESS, Process::process));
        let table = RankTable::without_process(kept.table, control, world_size);
        self.ranks.insert(rank, RankTable { peer, ..table });
        Ok(())
    }

    /// The ranks that run on this machine.
    pub(crate) fn attended(&self) -> RankSet {
        let attended = self.ranks.iter().filter(|(_, rank)| rank.peer.is_some());
        attended.map(|(&rank, _)| rank).collect()
    }

    /// Once all ranks are here: the calls of those that have ended are said to last until the last
    /// moment at which one of the host is known to have entered or left a call. When the processes
    /// ended is not known. Where some of them run that moment is now.
    pub(crate) fn close_kept(&mut self) -> KeptTime {
        let times = self.ranks.values().filter_map(RankTable::kept_time);
        let whole = |all: KeptTime, one: KeptTime| KeptTime {
            begin_ns: all.begin_ns.min(one.begin_ns),
            last_ns: all.last_ns.max(one.last_ns),
        };
        let mut time = times.reduce(whole).unwrap_or_default();
        let ended = self.ranks.values_mut().filter(|rank| rank.peer.is_none());
        ended.for_each(|rank| rank.control.closed_ns = Some(time.last_ns));
        if !self.attended().is_empty() {
            time.last_ns = time.last_ns.max(now_ns());
        }
        time
    }

    /// Where the ranks stood at the last moment of their host, if these of the job's run: those
    /// that were in a call wait in it, as far as is known; where some run, the others have died.
    pub(crate) fn stood_last(
        &mut self,
        living: &RankSet,
        world_size: u32,
        last_ns: u64,
    ) -> Standing {
        let mut standing = self.standing(world_size, 0);
        let is_over = living.is_empty();
        standing.source = if is_over { Source::FilesOfEnded } else { Source::Files };
        for (rank, posture) in &mut standing.postures {
            let ended = self.ranks.get(rank).filter(|rank| rank.peer.is_none());
            let Some(last) = ended.and_then(|rank| rank.last(last_ns)) else { continue };
            // The clock of the machine that reads the files says nothing of them.
            posture.for_ns = last.for_ns;
            posture.unrecorded_ns = self.waits.unrecorded_ns(*rank, last_ns);
            let lives = living.contains(*rank);
            posture.presence = match (posture.presence, posture.call) {
                (Presence::Lost, _) if !lives && !is_over => Presence::Lost,
                (Presence::Lost, Some(_)) if last.is_finalizing => Presence::Finalizing,
                (Presence::Lost, _) if lives => Presence::Running,
                (Presence::Lost, Some(call)) if call.kind != CallKind::Poll => Presence::Running,
                (presence, _) => presence,
            };
        }
        standing
    }
}

/// What a rank did last.
struct LastDoing {
    /// For how long it is known to have done so.
    for_ns: u64,
    is_finalizing: bool,
}

impl RankTable {
    fn kept_time(&self) -> Option<KeptTime> {
        let words = self.words().ok()?;
        let table = TableReader::new(&words).ok()?;
        let begin_ns = words.get(STARTED_WORD).copied()?;
        // By which the begins of activities are known from how long they last.
        let moment = Moment { now_ns: u64::MAX, ..Moment::default() };
        let begins = table.activities(moment).into_iter().map(|one| u64::MAX - one.for_ns);
        Some(KeptTime { begin_ns, last_ns: begins.max().unwrap_or(begin_ns).max(begin_ns) })
    }

    /// What it did at a moment behind all that its table knows.
    fn last(&self, last_ns: u64) -> Option<LastDoing> {
        let words = self.words().ok()?;
        let table = TableReader::new(&words).ok()?;
        let moment = Moment { now_ns: last_ns, ..Moment::default() };
        let calls = table.calls(moment).into_iter().map(|call| call.for_ns);
        let outside = || table.outside(moment).map_or(0, |activity| activity.for_ns);
        let for_ns = calls.max().unwrap_or_else(outside);
        Some(LastDoing { for_ns, is_finalizing: table.is_finalizing() })
    }
}

/// Bytes of a file, which are whole words.
fn length(file: &File) -> Result<u64, String> {
    let file = file.metadata().map_err(|error| error.to_string())?;
    let bytes = file.len();
    let is_cut = file.is_file() && (bytes == 0 || !bytes.is_multiple_of(8));
    if is_cut { Err(format!("it is cut: it has {bytes} bytes")) } else { Ok(bytes) }
}
