//! The files of a folder in which ranks have kept their events; `bindings/mpi/shim/events_folder.h`
//! says what they are called. They are read as foreign ones: nothing is taken for granted of them,
//! and none of them is mapped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::{Resource, getrlimit, setrlimit};
use sapwood::RankSet;
use sapwood_command_line::exit::Failure;

use super::unread::Reasons;
use crate::events_folder::{EVENTS_END, TABLE_END, rank_of, stem};
use crate::tables::{KeptError, KeptRank, Tables};

/// Files that are named one by one, at most.
const NOTES_MAX: usize = 64;

/// What a folder holds.
pub(super) struct KeptFolder {
    /// The ranks of each host.
    pub(super) hosts: Vec<Tables>,
    pub(super) world_size: u32,
    pub(super) program: String,
    /// The ranks whose files can be read.
    pub(super) ranks: RankSet,
    /// Of these, those whose processes run.
    pub(super) living: RankSet,
    /// When the newest of them was made, in seconds since 1970; 0 if that is not known.
    pub(super) made_s: u64,
    /// A line for each file that cannot.
    pub(super) notes: Vec<String>,
    /// The same by the rank of which the file is said to be.
    pub(super) reasons: Reasons,
}

/// Each rank has two files, which stay open.
fn open_as_many_as_allowed() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where that is refused, ranks without a descriptor are named as such.
    let _ = setrlimit(Resource::Nofile, limit);
}

impl KeptFolder {
    /// Reads what is there.
    ///
    /// # Errors
    /// [`Failure`] when nothing can be read, or two files are of one rank.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let mut notes = Notes::default();
        open_as_many_as_allowed();
        let stems = stems(folder)?;
        let ranks: Vec<(PathBuf, KeptRank)> = stems
            .into_iter()
            .filter_map(|stem| Some((stem.clone(), read_rank(&stem, &mut notes)?)))
            .collect();
        if let Some([one, other]) = two_runs(&ranks) {
            return Err(of_two_runs(folder, ":", [one, other]));
        }
        let world_size = most_common(ranks.iter().map(|(_, rank)| rank.header.world_size));
        let Some(world_size) = world_size else {
            let notes = notes.lines();
            let why = notes.first().map_or_else(String::new, |first| format!(": {first}"));
            return Err(Failure::usage(format!(
                "'{}' holds no event file that can be read{why}; 'sapwood trace why \
                 --events-folder DIR' leaves them in DIR",
                folder.display()
            )));
        };
        let mut kept = Self {
            hosts: Vec::new(),
            world_size,
            program: String::new(),
            ranks: RankSet::new(),
            living: RankSet::new(),
            made_s: 0,
            notes: Vec::new(),
            reasons: Reasons::new(),
        };
        let mut hosts: BTreeMap<String, Tables> = BTreeMap::new();
        let mut taken: BTreeMap<u32, PathBuf> = BTreeMap::new();
        for (stem, rank) in ranks {
            let number = rank.header.rank;
            if let Some(other) = taken.get(&number) {
                let what = format!(", rank {number} is in both:");
                return Err(of_two_runs(folder, &what, [other, &stem]));
            }
            if kept.take(&stem, rank, &mut hosts, &mut notes) {
                taken.insert(number, stem);
            }
        }
        kept.hosts = hosts.into_values().collect();
        kept.reasons = std::mem::take(&mut notes.reasons);
        kept.notes = notes.lines();
        Ok(kept)
    }

    /// Takes in the files of a rank, if they are of this program; whether they were.
    fn take(
        &mut self,
        stem: &Path,
        rank: KeptRank,
        hosts: &mut BTreeMap<String, Tables>,
        notes: &mut Notes,
    ) -> bool {
        let header = rank.header.clone();
        let is_alive = rank.is_alive();
        if header.world_size != self.world_size {
            notes.add(
                stem,
                TABLE_END,
                &format!(
                    "it is of a program with {} ranks, and most files are of one with {}",
                    header.world_size, self.world_size
                ),
            );
            return false;
        }
        let host = hosts.entry(header.host).or_insert_with(Tables::of_files);
        if let Err(reason) = host.keep(rank) {
            notes.add(stem, EVENTS_END, &reason);
            return false;
        }
        self.ranks.insert(header.rank);
        self.made_s = self.made_s.max(header.made_ns / 1_000_000_000);
        if is_alive {
            self.living.insert(header.rank);
        }
        if self.program.is_empty() {
            self.program = header.program;
        }
        true
    }
}

/// Files of two ranks that are not of one run, as far as their launcher or their times say so.
fn two_runs(ranks: &[(PathBuf, KeptRank)]) -> Option<[&Path; 2]> {
    let mut named = ranks.iter().filter(|one| one.1.header.run != 0);
    let first = named.next();
    let unlike = |one: &&(PathBuf, KeptRank)| {
        first.is_some_and(|first| one.1.header.run != first.1.header.run)
    };
    let other = named.find(unlike);
    let by_name = first.zip(other);
    // A run that was over before some file was made was so before the newest one was made.
    let newest = ranks.iter().max_by_key(|one| one.1.header.made_ns);
    let is_before = |one: &&(PathBuf, KeptRank)| {
        newest.is_some_and(|newest| one.1.header.is_before(&newest.1.header))
    };
    let by_time = ranks.iter().find(is_before).zip(newest);
    by_name.or(by_time).map(|(one, other)| [one.0.as_path(), other.0.as_path()])
}

fn of_two_runs(folder: &Path, what: &str, stems: [&Path; 2]) -> Failure {
    let [one, other] = stems.map(|stem| stem.file_name().unwrap_or_default().to_string_lossy());
    Failure::usage(format!(
        "'{}' holds files of two runs{what} '{one}' and '{other}'; give each run a folder of its \
         own, or move one run's files away",
        folder.display()
    ))
}

/// Lines for files that cannot be read.
#[derive(Default)]
struct Notes {
    lines: Vec<String>,
    /// Those beyond the last line.
    more: usize,
    reasons: Reasons,
}

impl Notes {
    fn add(&mut self, stem: &Path, end: &str, reason: &str) {
        let name = stem.file_name().and_then(|name| name.to_str());
        if let Some(rank) = name.and_then(rank_of) {
            self.reasons.entry(rank).or_insert_with(|| reason.to_owned());
        }
        if self.lines.len() == NOTES_MAX {
            self.more += 1;
            return;
        }
        let file = with_end(stem, end);
        self.lines.push(format!("'{}' is left out: {reason}", file.display()));
    }

    fn lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("{} more files are left out", self.more));
        }
        self.lines
    }
}

/// The names of ranks' files without what they end with, sorted.
fn stems(folder: &Path) -> Result<BTreeSet<PathBuf>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::usage(format!("'{}' cannot be read: {error}", folder.display()))
    };
    let mut stems = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        stems.extend(name.to_str().and_then(stem).map(|stem| folder.join(stem)));
    }
    Ok(stems)
}

/// Both files of a rank, if they can be read and are of this program's world.
fn read_rank(stem: &Path, notes: &mut Notes) -> Option<KeptRank> {
    let mut opened = |end: &str| match open(&with_end(stem, end)) {
        Ok(file) => Some(file),
        Err(error) => {
            notes.add(stem, end, &error.to_string());
            None
        }
    };
    let (table, events) = (opened(TABLE_END)?, opened(EVENTS_END)?);
    match KeptRank::read(table, events) {
        Ok(rank) if rank.header.is_spawned => {
            notes.add(stem, TABLE_END, "MPI_Comm_spawn started its process");
            None
        }
        Ok(rank) => Some(rank),
        Err(KeptError::Table(reason)) => {
            notes.add(stem, TABLE_END, &reason);
            None
        }
        Err(KeptError::Events(reason)) => {
            notes.add(stem, EVENTS_END, &reason);
            None
        }
    }
}

/// Opens a file, and waits for nothing that is none.
pub(super) fn open(path: &Path) -> std::io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn with_end(stem: &Path, end: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The most common of some numbers, the larger one of equally common ones; none of none.
fn most_common(numbers: impl Iterator<Item = u32>) -> Option<u32> {
    let mut times: BTreeMap<u32, usize> = BTreeMap::new();
    numbers.for_each(|number| *times.entry(number).or_default() += 1);
    times.into_iter().max_by_key(|&(number, times)| (times, number)).map(|(number, _)| number)
}
