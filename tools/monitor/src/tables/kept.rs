//! Tables of ranks whose processes have ended, read from the files that these have kept in a
//! folder: all of one host, as a leaf would have them.

use std::fs::File;
use std::os::fd::OwnedFd;

use sapwood_profile::{Moment, TableReader};
use sapwood_trace::{CallKind, EventFile, Presence, Standing};
use sapwood_transport::SharedTable;

use super::{RankTable, Tables};
use crate::rank_control::RankControl;

/// No process has this number.
const NO_PROCESS: i32 = i32::MAX;
/// In a table, the word that says when counting began, by the host's monotonic clock.
const STARTED_WORD: usize = 40 / 8;

/// What a kept table says of its rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptHeader {
    pub(crate) rank: u32,
    pub(crate) world_size: u32,
    pub(crate) host: String,
    pub(crate) program: String,
    /// Whether `MPI_Comm_spawn` started it, so that it is of another world.
    pub(crate) is_spawned: bool,
}

/// The table of a rank, and its events as they are in their file.
pub(crate) struct KeptRank {
    pub(crate) header: KeptHeader,
    table: SharedTable,
    events: OwnedFd,
    events_bytes: u64,
}

impl KeptRank {
    /// Looks at both files of a rank; `events` has this size.
    ///
    /// # Errors
    /// Which of the two is wrong, and one line that says why.
    pub(crate) fn read(table: File, events: File) -> Result<Self, KeptError> {
        let table_bytes = length(&table).map_err(KeptError::Table)?;
        let table = SharedTable::open(table.into(), usize::try_from(table_bytes).unwrap_or(0));
        let table = table.map_err(|error| KeptError::Table(error.to_string()))?;
        let whole = RankTable::without_process(table, RankControl::new(None, NO_PROCESS), 0);
        let words = whole.words().map_err(KeptError::Table)?;
        let reader = TableReader::new(&words);
        let reader = reader.map_err(|error| KeptError::Table(error.to_string()))?;
        let profile = reader.profile();
        let header = KeptHeader {
            rank: profile.mpi_rank,
            world_size: profile.world_size,
            host: profile.host,
            program: profile.program,
            is_spawned: reader.is_spawned(),
        };
        let events_bytes = length(&events).map_err(KeptError::Events)?;
        let events = OwnedFd::from(events);
        let one = Self { header, table: whole.table, events, events_bytes };
        one.check_events().map_err(KeptError::Events)?;
        Ok(one)
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
        let control = RankControl::new(None, NO_PROCESS);
        self.ranks.insert(rank, RankTable::without_process(kept.table, control, world_size));
        Ok(())
    }

    /// Once all ranks are here: their calls are said to last until the last moment at which one of
    /// the host is known to have entered or left a call. When the processes ended is not known.
    pub(crate) fn close_kept(&mut self) -> KeptTime {
        let times = self.ranks.values().filter_map(RankTable::kept_time);
        let whole = |all: KeptTime, one: KeptTime| KeptTime {
            begin_ns: all.begin_ns.min(one.begin_ns),
            last_ns: all.last_ns.max(one.last_ns),
        };
        let time = times.reduce(whole).unwrap_or_default();
        self.ranks.values_mut().for_each(|rank| rank.control.closed_ns = Some(time.last_ns));
        time
    }

    /// Where the ranks stood at the last moment of their host: those that were in a call wait in
    /// it, as far as is known.
    pub(crate) fn stood_last(&mut self, world_size: u32, last_ns: u64) -> Standing {
        let mut standing = self.standing(world_size, 0);
        standing.is_past = true;
        for (rank, posture) in &mut standing.postures {
            let Some(last) = self.ranks.get(rank).and_then(|rank| rank.last(last_ns)) else {
                continue;
            };
            // The clock of the machine that reads the files says nothing of them.
            posture.for_ns = last.for_ns;
            posture.presence = match (posture.presence, posture.call) {
                (Presence::Lost, Some(_)) if last.is_finalizing => Presence::Finalizing,
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

fn length(file: &File) -> Result<u64, String> {
    file.metadata().map(|file| file.len()).map_err(|error| error.to_string())
}
