//! Whether the process of a rank is there, and how its table was come by: it has handed it over and
//! keeps a connection, or the leaf has attached to it and holds its pidfd.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sapwood_launch::has_ended;
use sapwood_transport::TablePeer;

use super::open_files::{OpenFile, open_files};

/// What the memory file of a table is called in the list of a process's descriptors.
const TABLE_NAME: &str = "/memfd:sapwood-profile";
/// The same of an event file.
const EVENTS_NAME: &str = "/memfd:sapwood-events";
const MAGIC: &[u8; 8] = b"SWPROFIL";
/// The part of a table's header that is read here; `bindings/mpi/shim/table.h` draws it.
const HEADER_BYTES: usize = 256;

/// The process of a rank, as long as it lives.
pub(crate) enum Presence {
    /// It keeps the connection open over which its table came.
    Connected(TablePeer),
    /// It was found by its number.
    Attached {
        /// Its process.
        process: i32,
        /// Readable when it has ended.
        pidfd: OwnedFd,
    },
}

/// The table of a process that was started with the shim, and what it says of itself.
pub(crate) struct Attachable {
    pub(crate) process: i32,
    pub(crate) world_rank: u32,
    pub(crate) world_size: u32,
    pub(crate) abi: u32,
    pub(crate) program: String,
    pub(crate) table_bytes: u64,
    pub(crate) table: File,
    pub(crate) events: Option<File>,
    pub(crate) pidfd: OwnedFd,
}

impl Presence {
    /// Its number.
    pub(crate) fn process(&self) -> i32 {
        match self {
            Self::Connected(peer) => peer.credentials().process,
            Self::Attached { process, .. } => *process,
        }
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&mut self) -> bool {
        match self {
            Self::Connected(peer) => peer.is_closed(),
            Self::Attached { pidfd, .. } => has_ended(pidfd.as_fd()),
        }
    }
}

impl Attachable {
    /// The table of a process; none if it has none that is filled in, as a process that was forked
    /// from a rank, or one that may not be looked at.
    pub(crate) fn of(process: i32) -> Option<Self> {
        // First, so that what is read is of the process that is watched.
        let pidfd = pidfd_open(Pid::from_raw(process)?, PidfdFlags::empty()).ok()?;
        let folder = Path::new("/proc").join(process.to_string());
        let open: Vec<OpenFile> = open_files(process).ok()?.collect();
        let named = |name: &str| {
            let file = open.iter().find(|file| file.is_called(name))?;
            File::open(&file.path).ok()
        };
        let table = named(TABLE_NAME)?;
        let mut header = [0; HEADER_BYTES];
        table.read_exact_at(&mut header, 0).ok()?;
        let word = |at: usize| header[at..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        let own = own_number(&folder).unwrap_or(process);
        let is_its = header[..8] == *MAGIC && word(24) == own.cast_unsigned() && word(32) != 0;
        let program = header[112..176].split(|&byte| byte == 0).next().unwrap_or_default();
        (is_its && word(16) < word(20)).then(|| Self {
            process,
            world_rank: word(16),
            world_size: word(20),
            abi: word(28),
            program: String::from_utf8_lossy(program).into_owned(),
            table_bytes: header[208..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b)),
            table,
            events: named(EVENTS_NAME),
            pidfd,
        })
    }

    /// All tables of processes of this host that may be looked at.
    pub(crate) fn all() -> Vec<Self> {
        processes().filter_map(Self::of).collect()
    }
}

/// The processes of this host.
pub(crate) fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The file in which a rank keeps its table, as `SAPWOOD_MPI_EVENTS_DIR` has it do; none if the
/// process has none open. `bindings/mpi/shim/events_folder.h` says how it is called.
pub(crate) fn kept_table(process: i32) -> Option<PathBuf> {
    let ending = format!(".{process}.profile");
    let mut names = open_files(process).ok()?.map(|file| file.name);
    names.find(|name| {
        let name = name.file_name().and_then(OsStr::to_str).unwrap_or("");
        name.starts_with("rank-") && name.ends_with(&ending)
    })
}

/// The number by which a process knows itself, which in a container is another.
fn own_number(folder: &Path) -> Option<i32> {
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_a_rank_keeps_in_a_folder_is_found_by_its_open_file() {
        let own = std::process::id().cast_signed();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join(format!("rank-3.host.{own}.profile"));
        assert_eq!(kept_table(own), None);
        let _open = File::create(&file).expect("it may be made");
        assert_eq!(kept_table(own), fs::canonicalize(&file).ok());
        assert!(processes().any(|process| process == own));
    }
}
