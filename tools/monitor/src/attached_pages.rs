//! The control pages of a job that is attached to: which ranks have left one, whether this process
//! alone may have them written, and which settings they hold.
//!
//! A rank that found no leaf keeps its page open under a name, as its table. The front-end locks
//! the pages as long as it runs, so that of several that are attached to a job one controls it; its
//! leaves write them (`rank_control`). Settings stay in the pages when it ends: the next one begins
//! with them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use sapwood::RankSet;
use sapwood_report::ranks_text;

use super::control::request::RunSettings;
use super::presence::Attachable;
use super::rank_control::{CHANGE, FLAGS, GROUPS, SAMPLING, SELECTED, TRACING, page_file};

/// The part of a page that a leaf has written when its settings are in place.
const SETTINGS_BYTES: usize = 48;
/// Where an event file says whether its rank records, and how; `bindings/mpi/shim/events.h`.
const EVENTS_STATE: u64 = 64;
const RECORDING: u32 = 1;
/// The variable by which `sapwood mpi` tells ranks of their leaves.
const LEAVES_VARIABLE: &[u8] = b"SAPWOOD_MPI_LEAVES=";
/// Why settings are refused while another front-end has the lock.
const HELD: &str = "another 'sapwood mpi attach' controls this job; name that one by --network";

/// The pages of the ranks of a job.
pub(crate) struct AttachedPages {
    pages: Vec<RankPage>,
    /// Why not all ranks have a page; none if they have.
    lack: Option<String>,
    is_held: bool,
}

/// What one rank has left open beside its table.
struct RankPage {
    rank: u32,
    page: File,
    events: Option<File>,
}

/// The settings in a page.
struct PageSettings {
    rank: u32,
    change: u32,
    groups: u32,
    flags: u32,
    sampling: Duration,
}

impl AttachedPages {
    /// Looks for the pages of ranks.
    pub(crate) fn of(ranks: &BTreeMap<u32, Attachable>) -> Self {
        let (mut pages, mut started, mut without) = (Vec::new(), RankSet::new(), RankSet::new());
        for (&rank, found) in ranks {
            match page_file(found.process) {
                Some(page) => {
                    let events = found.events.as_ref().and_then(|events| events.try_clone().ok());
                    pages.push(RankPage { rank, page, events });
                }
                None if is_told_of_leaves(found.process) => started.insert(rank),
                None => without.insert(rank),
            }
        }
        Self { pages, lack: lack(&started, &without), is_held: false }
    }

    /// Makes the settings those of the pages, and says in them why ranks cannot be told others.
    /// To be called again: another front-end may end, and leave the pages to this one.
    pub(crate) fn follow(&mut self, settings: &mut RunSettings) {
        if self.is_held {
            return;
        }
        if self.lack.is_some() {
            settings.uncontrolled.clone_from(&self.lack);
            return;
        }
        // First, so that no leaf changes what is read.
        self.is_held = self.lock();
        self.read(settings);
        settings.uncontrolled = (!self.is_held).then(|| HELD.to_owned());
        if !self.is_held {
            // The number is of the other's changes, of which ranks report to that one.
            settings.change = 0;
        }
    }

    /// Locks all pages or none.
    fn lock(&self) -> bool {
        let is_whole = self.pages.iter().all(|one| one.page.try_lock().is_ok());
        if !is_whole {
            // Of those that were not locked this is no error.
            self.pages.iter().for_each(|one| drop(one.page.unlock()));
        }
        is_whole
    }

    fn read(&self, settings: &mut RunSettings) {
        let all: Vec<PageSettings> = self.pages.iter().filter_map(RankPage::settings).collect();
        let Some(latest) = all.iter().max_by_key(|one| one.change) else { return };
        settings.change = latest.change;
        if latest.change == 0 {
            // By the environment that it was started with the job may record.
            settings.is_tracing = self.pages.iter().any(RankPage::records);
            return;
        }
        settings.groups = latest.groups;
        settings.is_tracing = latest.flags & TRACING != 0;
        settings.sampling = latest.sampling;
        let is_selected = |one: &PageSettings| one.flags & SELECTED != 0;
        settings.ranks = match all.iter().all(is_selected) {
            true => RankSet::new(),
            false => all.iter().filter(|one| is_selected(one)).map(|one| one.rank).collect(),
        };
    }
}

impl RankPage {
    fn settings(&self) -> Option<PageSettings> {
        let mut bytes = [0; SETTINGS_BYTES];
        self.page.read_exact_at(&mut bytes, 0).ok()?;
        let word =
            |at: usize| bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        let sampling_ns =
            bytes[SAMPLING..].first_chunk().map_or(0, |long| u64::from_le_bytes(*long));
        Some(PageSettings {
            rank: self.rank,
            change: word(CHANGE),
            groups: word(GROUPS),
            flags: word(FLAGS),
            sampling: Duration::from_nanos(sampling_ns),
        })
    }

    /// Whether the rank records its calls.
    fn records(&self) -> bool {
        let mut state = [0; 4];
        let events = self.events.as_ref();
        let read = events.map(|events| events.read_exact_at(&mut state, EVENTS_STATE));
        read.is_some_and(|read| read.is_ok()) && u32::from_le_bytes(state) & RECORDING != 0
    }
}

/// Whether `sapwood mpi` has started a process, or what started it.
fn is_told_of_leaves(process: i32) -> bool {
    let variables = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    variables.split(|&byte| byte == 0).any(|variable| variable.starts_with(LEAVES_VARIABLE))
}

/// Why these ranks have no page; none if there are none of them.
fn lack(started: &RankSet, without: &RankSet) -> Option<String> {
    if !started.is_empty() {
        let ranks = ranks_text(&started.to_string());
        return Some(format!(
            "only the 'sapwood mpi' that started {ranks} can control them; name that one by \
             --network"
        ));
    }
    let ranks = ranks_text(&without.to_string());
    (!without.is_empty()).then(|| {
        format!(
            "the shim of {ranks} has left no control page: it is of an earlier release, or \
             SAPWOOD_MPI_TRANSPORT names another transport than tree"
        )
    })
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    use super::*;
    use crate::control::ControlRequest;
    use crate::rank_control::RankControl;

    fn settings() -> RunSettings {
        RunSettings::new(Duration::from_secs(1))
    }

    fn attached(ranks: u32, process: i32) -> AttachedPages {
        let page = |rank| {
            let page = page_file(process).expect("this process has a page");
            RankPage { rank, page, events: None }
        };
        AttachedPages { pages: (0..ranks).map(page).collect(), lack: None, is_held: false }
    }

    /// As the shim makes it.
    fn page() -> File {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let page = File::from(memfd_create("sapwood-control", flags).expect("memory"));
        page.set_len(4096).expect("memory");
        page.write_all_at(b"SWCONTRL\x01", 0).expect("memory");
        fcntl_add_seals(&page, SealFlags::SHRINK).expect("a seal");
        page
    }

    #[test]
    fn one_front_end_has_the_pages_and_leaves_them_to_the_next() {
        let _page = page();
        let process = std::process::id().cast_signed();
        let (mut first, mut second) = (attached(1, process), attached(1, process));
        let (mut own, mut others) = (settings(), settings());
        first.follow(&mut own);
        second.follow(&mut others);
        let (tracing, sampling_s) = (Some(true), Some(0.5));
        let request = ControlRequest { tracing, sampling_s, ..ControlRequest::default() };
        assert!(others.changed(&request, 1).expect_err("it is held").contains("another 'sapwood"));
        let changed = own.changed(&request, 1).expect("it has the page");

        let leaf = RankControl::new(None, process);
        leaf.set(&RunSettings { uncontrolled: Some(String::new()), ..changed.clone() }, 0);
        assert_eq!(leaf.load(CHANGE), 0, "a leaf of another front-end writes nothing");
        leaf.set(&changed, 0);
        assert_eq!(leaf.load(CHANGE), 1);

        second.follow(&mut others);
        let half = Duration::from_millis(500);
        assert_eq!((others.change, others.is_tracing, others.sampling), (0, true, half));
        drop(first);
        second.follow(&mut others);
        assert_eq!((others.change, others.uncontrolled), (1, None));
    }

    #[test]
    fn the_reason_why_there_is_no_page_names_the_ranks() {
        assert_eq!(lack(&RankSet::new(), &RankSet::new()), None);
        let some = RankSet::range(0, 2);
        let started = lack(&some, &RankSet::new()).expect("there are some");
        assert!(started.starts_with("only the 'sapwood mpi' that started ranks 0-2 can"));
        let without = lack(&RankSet::new(), &some).expect("there are some");
        assert!(without.contains("the shim of ranks 0-2 has left no control page"), "{without}");
    }
}
