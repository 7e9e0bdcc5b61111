//! One rank's side of control at its leaf: settings go into its control page, and what it says
//! there, and how it ends, comes back. `bindings/mpi/shim/control.h` draws the page.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::time::Duration;

use sapwood::{RankSet, Values, ValuesRef, Wave};
use sapwood_profile::Cause;
use sapwood_report::nanoseconds;
use sapwood_transport::{ControlPage, Departing, Departure};

use super::control::request::{RunSettings, ranges, rank_set};
use super::host_time::now_ns;
use super::open_files::open_files;

/// What the memory file of a control page is called in the list of a process's descriptors.
const PAGE_NAME: &str = "/memfd:sapwood-control";

pub(crate) const PENDING: usize = 16;
pub(crate) const CHANGE: usize = 20;
pub(crate) const GROUPS: usize = 24;
pub(crate) const FLAGS: usize = 28;
pub(crate) const INTERVAL: usize = 32;
pub(crate) const SAMPLING: usize = 40;
pub(crate) const TAKEN: usize = 64;
pub(crate) const ARMED: usize = 72;
pub(crate) const OBEYED: usize = 128;
pub(crate) const END: usize = 132;
pub(crate) const CODE: usize = 136;
pub(crate) const WANTS_ADVICE: usize = 140;
pub(crate) const ENDED: usize = 144;
pub(crate) const PARTLY: usize = 152;
pub(crate) const SEQUENCE: usize = 256;
pub(crate) const ENTRIES: usize = 260;
pub(crate) const ENTRIES_MAX: usize = 59;
pub(crate) const ENTRY: usize = 320;
pub(crate) const ENTRY_BYTES: usize = 64;
pub(crate) const SELECTED: u32 = 1;
pub(crate) const TRACING: u32 = 2;
const EXITED: u32 = 1;
const ABORTED: u32 = 2;
const MAGIC: u64 = u64::from_le_bytes(*b"SWCONTRL");

/// How long the system may take to say how a process ended.
pub(crate) const SETTLING: Duration = Duration::from_secs(1);

/// What a leaf knows of one rank beside its table.
#[derive(Debug)]
pub(crate) struct RankControl {
    pub(crate) page: Option<ControlPage>,
    /// Whether it is written from here; another watcher may do that.
    is_ours: Cell<bool>,
    departing: Departing,
    departure: Option<Departure>,
    /// When its connection was seen to have closed, by the monotonic clock.
    pub(crate) closed_ns: Option<u64>,
    /// The last mark whose snapshot was copied or passed over.
    pub(crate) taken: u64,
    /// Marks that had been left out when those of this rank were begun to be taken; none before. A
    /// rank that is attached to has reached marks of which no leaf knows.
    pub(crate) left_out_before: Option<u64>,
}

/// A question on the control stream.
pub(crate) struct ControlQuestion {
    pub(crate) wave: Wave,
    /// The program has ended: what the system has not said by now it will not say.
    pub(crate) is_last: bool,
    /// The ranks whose ends the front-end knows.
    pub(crate) known_ends: RankSet,
    pub(crate) settings: RunSettings,
}

impl ControlQuestion {
    /// `%uld` wave to answer in, `%ud` whether it is the last one, `%aud` ranges of ranks whose
    /// ends are known, and the settings.
    pub(crate) fn encode(&self) -> Values {
        let values = Values::new()
            .scalar(self.wave)
            .scalar(u32::from(self.is_last))
            .array(&ranges(&self.known_ends));
        self.settings.push(values)
    }

    pub(crate) fn decode(values: ValuesRef<'_>) -> Result<Self, sapwood::Error> {
        Ok(Self {
            wave: values.scalar(0)?,
            is_last: values.scalar::<u32>(1)? != 0,
            known_ends: rank_set(values.array(2)?),
            settings: RunSettings::read(values, 3)?,
        })
    }
}

impl RankControl {
    /// Of a rank that has handed over this page. If it has handed over none, one that its process
    /// has left open is taken: such a page is only read before the front-end says that it controls
    /// the job.
    pub(crate) fn new(handed: Option<ControlPage>, process: i32) -> Self {
        let handed = handed.filter(is_control_page);
        let is_ours = Cell::new(handed.is_some());
        let left_out_before = handed.is_some().then_some(0);
        if let Some(page) = &handed {
            page.store(ARMED, 1);
        }
        let page = handed.or_else(|| control_page(page_file(process)?.into()));
        let departing = Departing::new(process);
        let (departure, closed_ns, taken) = (None, None, 0);
        Self { page, is_ours, departing, departure, closed_ns, taken, left_out_before }
    }

    /// Its process has closed the connection, just now. What the system says of its end is looked
    /// at once, before its parent waits for it.
    pub(crate) fn note_closed(&mut self) {
        self.closed_ns = Some(now_ns());
        self.departure = self.departing.look();
    }

    /// Whether its page is written from here.
    pub(crate) fn is_ours(&self) -> bool {
        self.is_ours.get()
    }

    /// A word of its page. That it wants advice is nothing to one that does not write the page.
    pub(crate) fn load(&self, at: usize) -> u32 {
        if at == WANTS_ADVICE && !self.is_ours.get() {
            return 0;
        }
        self.page.as_ref().map_or(0, |page| page.load(at))
    }

    /// Whether its settings have left out time or calls, so that it has no division of time.
    pub(crate) fn is_partly_counted(&self) -> bool {
        self.load(PARTLY) != 0
    }

    /// How its process ended and when, by the monotonic clock; none if it has not, or that is not
    /// known yet.
    pub(crate) fn end(&mut self, is_last: bool) -> Option<(Cause, u64)> {
        let closed = self.closed_ns?;
        let ended = self.page.as_ref().map_or(0, |page| page.load_long(ENDED));
        let code = self.load(CODE).cast_signed();
        match self.load(END) {
            EXITED => return Some((Cause::Code(code), ended)),
            ABORTED => return Some((Cause::Abort(code), ended)),
            _ => {}
        }
        self.departure = self.departure.or_else(|| self.departing.look());
        let is_settled = is_last || now_ns().saturating_sub(closed) >= nanoseconds(SETTLING);
        match self.departure {
            Some(Departure::Code(code)) => Some((Cause::Code(code), closed)),
            Some(Departure::Signal(number)) => Some((Cause::Signal(number), closed)),
            None => is_settled.then_some((Cause::Unknown, closed)),
        }
    }

    /// Writes the settings into the page, unless they are there, or another watcher writes it.
    pub(crate) fn set(&self, settings: &RunSettings, rank: u32) {
        let Some(page) = &self.page else { return };
        self.is_ours.set(settings.uncontrolled.is_none());
        if !self.is_ours.get() || page.load(CHANGE) == settings.change {
            return;
        }
        let selected = if settings.selects(rank) { SELECTED } else { 0 };
        let tracing = if settings.is_tracing { TRACING } else { 0 };
        page.store(GROUPS, settings.groups);
        page.store(FLAGS, selected | tracing);
        page.store_long(INTERVAL, settings.interval.map_or(0, nanoseconds));
        page.store_long(SAMPLING, nanoseconds(settings.sampling));
        page.store(CHANGE, settings.change);
        page.store(PENDING, 1);
    }
}

/// The control page in a file; none if there is none in it, or one of another release.
pub(crate) fn control_page(file: OwnedFd) -> Option<ControlPage> {
    ControlPage::map(file).ok().filter(is_control_page)
}

fn is_control_page(page: &ControlPage) -> bool {
    page.load_long(0) == MAGIC && page.load(8) == 1
}

/// The file of a process's control page; none if it has none open.
pub(crate) fn page_file(process: i32) -> Option<File> {
    let page = open_files(process).ok()?.find(|file| file.is_called(PAGE_NAME))?;
    OpenOptions::new().read(true).write(true).open(page.path).ok()
}
