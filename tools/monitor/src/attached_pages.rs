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
use sapwood_transport::ControlPage;

use super::control::request::RunSettings;
use super::presence::Attachable;
use super::rank_control::{
    CHANGE, FLAGS, GROUPS, SAMPLING, SELECTED, TRACING, control_page, page_file,
};

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
    /// Of the program, which may have ranks on other hosts.
    world_size: u32,
    /// Why not all ranks have a page; none if they have.
    lack: Option<String>,
    is_held: bool,
}

/// What one rank has left open beside its table.
struct RankPage {
    rank: u32,
    /// What is locked.
    file: File,
    page: ControlPage,
    events: Option<File>,
}

impl AttachedPages {
    /// Looks for the pages of ranks.
    pub(crate) fn of(ranks: &BTreeMap<u32, Attachable>) -> Self {
        let (mut pages, mut started, mut without) = (Vec::new(), RankSet::new(), RankSet::new());
        for (&rank, found) in ranks {
            match RankPage::of(rank, found.process) {
                Some(page) => {
                    let events = found.events.as_ref().and_then(|events| events.try_clone().ok());
                    pages.push(RankPage { events, ..page });
                }
                None if is_told_of_leaves(found.process) => started.insert(rank),
                None => without.insert(rank),
            }
        }
        let world_size = ranks.values().next().map_or(0, |rank| rank.world_size);
        Self { pages, world_size, lack: lack(&started, &without), is_held: false }
    }

    /// A line for the user, if settings from before leave out what ranks do.
    pub(crate) fn switched_off_line(&self) -> Option<String> {
        let off = self.switched_off();
        (!off.is_empty()).then(|| {
            format!(
                "calls of {} are not counted, as 'sapwood mpi control --ranks' has left them out; \
                 'sapwood mpi control --ranks all' has all ranks count again",
                ranks_text(&off.to_string())
            )
        })
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
        let is_whole = self.pages.iter().all(|one| one.file.try_lock().is_ok());
        if !is_whole {
            // Of those that were not locked this is no error.
            self.pages.iter().for_each(|one| drop(one.file.unlock()));
        }
        is_whole
    }

    fn read(&self, settings: &mut RunSettings) {
        let pages = self.pages.iter().map(|one| &one.page);
        let Some(latest) = pages.max_by_key(|page| page.load(CHANGE)) else { return };
        settings.change = latest.load(CHANGE);
        if settings.change == 0 {
            // By the environment that it was started with the job may record.
            settings.is_tracing = self.pages.iter().any(RankPage::records);
            return;
        }
        settings.groups = latest.load(GROUPS);
        settings.is_tracing = latest.load(FLAGS) & TRACING != 0;
        settings.sampling = Duration::from_nanos(latest.load_long(SAMPLING));
        settings.ranks = self.selected();
    }

    /// The ranks that count; empty for all. Where none of this host does, ranks of other hosts were
    /// chosen: all of these, as it is not known here which.
    fn selected(&self) -> RankSet {
        let off = self.switched_off();
        let Some(last) = self.world_size.checked_sub(1).filter(|_| !off.is_empty()) else {
            return RankSet::new();
        };
        let here: RankSet = self.pages.iter().map(|one| one.rank).collect();
        let on = here.difference(off.as_ref());
        if on.is_empty() { RankSet::range(0, last).difference(off.as_ref()) } else { on }
    }

    /// The ranks of this host that the settings leave out.
    fn switched_off(&self) -> RankSet {
        let is_off = |one: &&RankPage| one.page.load(FLAGS) & SELECTED == 0;
        self.pages.iter().filter(is_off).map(|one| one.rank).collect()
    }
}

impl RankPage {
    /// The page of a process; none if it has left none open.
    fn of(rank: u32, process: i32) -> Option<Self> {
        let file = page_file(process)?;
        let page = control_page(file.try_clone().ok()?.into())?;
        Some(Self { rank, file, page, events: None })
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
        let page = |rank| RankPage::of(rank, process).expect("this process has a page");
        let pages = (0..ranks).map(page).collect();
        AttachedPages { pages, world_size: 4, lack: None, is_held: false }
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
        assert_eq!((others.change, &others.uncontrolled), (1, &None));

        leaf.set(&others.changed(&chosen("3"), 4).expect("it has the page"), 0);
        drop(second);
        ranks_that_were_left_out_are_told_and_can_be_had_back(process);
    }

    fn chosen(ranks: &str) -> ControlRequest {
        ControlRequest { ranks: Some(ranks.to_owned()), ..ControlRequest::default() }
    }

    /// Of four ranks, that of this process is rank 0, and rank 3 was chosen.
    fn ranks_that_were_left_out_are_told_and_can_be_had_back(process: i32) {
        let (mut third, mut found) = (attached(1, process), settings());
        third.follow(&mut found);
        assert_eq!(found.ranks.to_string(), "1-3", "it is not known which of the others");
        let line = third.switched_off_line().expect("there is one");
        assert!(line.starts_with("calls of rank 0 are not counted"), "{line}");
        let undone = found.changed(&chosen("all"), 4).expect("it has the page");
        assert_eq!(undone.change, found.change + 1, "it is a change");
        RankControl::new(None, process).set(&undone, 0);
        assert_eq!((third.switched_off_line(), third.selected()), (None, RankSet::new()));
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
