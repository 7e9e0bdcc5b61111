//! The end of a copy that gets the files: takes what the source says, in any state in which an
//! interrupted copy may have left things, and says what is lacking.
//!
//! Of each file the receiver knows how much of its data, from its beginning, is right. A block
//! that does not follow on that, or has another digest, is not taken: the file stays lacking, and
//! is asked for again. So whatever gets lost on the way, a file gets its name only when it is
//! whole.
//! Long work is done in steps, so that the host can answer meanwhile.

mod ending;
mod files;
mod reading;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::reading::Reading;
use super::blocks::Beginning;
use super::held::Held;
use super::manifest::{Entry, Kind, Manifest};
use super::protocol::{Complaints, Message, Outcome, State, Terms};
use super::store::{Store, Trouble};

/// Most files of which beginnings are kept open until the source has judged them, if nothing else
/// is said.
const KEPT_OPEN_MAX: usize = 200;

/// How a file is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Lacking,
    There,
    Failed,
}

/// A beginning of a file that is there.
struct Begun {
    /// None for a file that has its name already.
    file: Option<Held>,
    offset: u64,
    beginning: Beginning,
}

/// What is to be done.
enum Phase {
    /// Entries come.
    Manifest,
    /// Folders are made and beginnings read, from this entry on.
    Preparing(u64, Option<Box<Reading>>),
    /// Beginnings are offered, from this entry on.
    Offering(u64),
    /// Files come.
    Receiving,
    /// Links are made, from this entry on.
    Linking(u64),
    /// Folders are finished, down from this entry.
    Closing(u64),
    Over,
}

/// What one step gave.
pub(super) enum Step {
    /// Something to say to the source.
    Say(Message<'static>),
    /// Something was done; there is more to do.
    Busy,
    /// There is nothing to do before something comes.
    Nothing,
}

/// Where things go.
struct Place {
    destination: PathBuf,
    names: Vec<Vec<u8>>,
    terms: Terms,
}

/// The end that gets the files.
pub(super) struct Receiver {
    /// Until it is opened.
    place: Option<Place>,
    store: Option<Store>,
    kept_open_max: usize,
    manifest: Manifest,
    progress: Vec<Progress>,
    phase: Phase,
    is_planned: bool,
    begun: BTreeMap<u64, Begun>,
    current: Option<(u64, Begun)>,
    failed_roots: Vec<u32>,
    complaints: Complaints,
    is_lacking: bool,
    is_anew: bool,
    there_bytes: u64,
    there_files: u64,
    /// Bytes of what was there already that were read.
    read_bytes: u64,
    /// Bytes that were written and checked.
    pub(super) taken_bytes: u64,
}

impl Receiver {
    /// Gets ready to put sources of these names there. Opens nothing before it has the whole list
    /// of what will come.
    pub(super) fn new(destination: &Path, names: &[Vec<u8>], terms: Terms) -> Self {
        let (destination, names) = (destination.to_path_buf(), names.to_vec());
        Self {
            place: Some(Place { destination, names, terms }),
            store: None,
            kept_open_max: KEPT_OPEN_MAX,
            manifest: Manifest::default(),
            progress: Vec::new(),
            phase: Phase::Manifest,
            is_planned: false,
            begun: BTreeMap::new(),
            current: None,
            failed_roots: Vec::new(),
            complaints: Complaints::default(),
            is_lacking: false,
            is_anew: terms.is_anew,
            there_bytes: 0,
            there_files: 0,
            read_bytes: 0,
            taken_bytes: 0,
        }
    }

    /// The same, which keeps no more beginnings of files open.
    pub(super) fn keeping_open(self, most: usize) -> Self {
        Self { kept_open_max: most, ..self }
    }

    /// Whether it will open its place next.
    pub(super) fn is_about_to_open(&self) -> bool {
        matches!(self.phase, Phase::Preparing(..)) && self.place.is_some()
    }

    /// Closes everything, whether it is over or not.
    pub(super) fn let_go(&mut self) {
        self.abandon();
        self.store = None;
        if !self.is_over() {
            (self.phase, self.is_lacking) = (Phase::Over, true);
        }
    }

    /// How it is doing.
    pub(super) fn outcome(&self) -> Outcome {
        let state = match self.phase {
            Phase::Over if self.is_lacking => State::Lacking,
            Phase::Over => State::Done { files: self.there_files, bytes: self.there_bytes },
            _ => {
                let all = self.manifest.data_bytes();
                State::Going(thousandths(self.bytes_there().min(all), all), self.work_alone())
            }
        };
        // Complaints are told once everything is over.
        let is_over = matches!(state, State::Done { .. });
        let complaints = if is_over { self.complaints.clone() } else { Complaints::default() };
        Outcome { state, complaints }
    }

    /// A number that changes while work is done for which nothing has to come, which may take
    /// long: what is there is read, links are made, folders finished.
    fn work_alone(&self) -> u32 {
        let (at, read) = match &self.phase {
            Phase::Preparing(at, reading) => {
                (*at, self.read_bytes + reading.as_ref().map_or(0, |reading| reading.read_bytes))
            }
            Phase::Linking(at) | Phase::Closing(at) => (*at, 0),
            _ => return 0,
        };
        let entries = thousandths(at, self.manifest.len());
        entries.wrapping_add(thousandths(read, self.manifest.data_bytes()))
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// Bytes of data of all files, as far as the manifest is known.
    pub(super) fn planned_bytes(&self) -> u64 {
        self.manifest.data_bytes()
    }

    /// Bytes of data that are there.
    pub(super) fn bytes_there(&self) -> u64 {
        self.there_bytes + self.current.as_ref().map_or(0, |(_, begun)| begun.offset)
    }

    /// The source wants to know once more what is lacking.
    pub(super) fn say_again(&mut self) {
        self.suspend();
        match self.phase {
            Phase::Over if !self.is_lacking => {}
            // It is said at the end anyway, or there is nothing left to say.
            Phase::Preparing(..) | Phase::Linking(_) | Phase::Closing(_) => {}
            _ => self.phase = Phase::Offering(0),
        }
    }

    /// Nothing more will come. What was begun stays for the next copy, unless that is not wanted.
    pub(super) fn abandon(&mut self) {
        let begun = std::mem::take(&mut self.begun).into_iter().chain(self.current.take());
        let unfinished: Vec<u64> = begun.map(|(entry, _)| entry).collect();
        if !self.is_anew {
            return;
        }
        let Some(store) = &mut self.store else { return };
        for entry in unfinished {
            store.discard(&self.manifest.entries()[entry as usize]);
        }
        store.remove_new_trees();
    }

    /// Takes what the source says.
    pub(super) fn take(&mut self, message: &Message<'_>) {
        match *message {
            Message::Entries { first, encoded } => self.take_entries(first, encoded),
            Message::Planned { count } if matches!(self.phase, Phase::Manifest) => {
                if self.manifest.len() == count {
                    self.is_planned = true;
                    self.progress = vec![Progress::Lacking; count as usize];
                    self.phase = Phase::Preparing(0, None);
                } else {
                    self.phase = Phase::Offering(0);
                }
            }
            Message::Finish if matches!(self.phase, Phase::Receiving) => self.begin_end(),
            Message::Accept { entry } if self.is_wanted(entry) => self.go_on(entry),
            Message::Part { entry, offset, digest, bytes } if self.is_wanted(entry) => {
                self.take_part(entry, offset, &digest, bytes);
            }
            Message::End { entry, digest } if self.is_wanted(entry) => {
                self.end_file(entry, &digest)
            }
            Message::Spoilt { entry } if self.is_wanted(entry) => self.drop_file(entry),
            _ => {}
        }
    }

    /// Whether a file is lacking and comes now.
    fn is_wanted(&self, entry: u64) -> bool {
        let is_lacking = |entry: usize| {
            self.progress.get(entry) == Some(&Progress::Lacking)
                && self.manifest.entries()[entry].content().is_some()
        };
        matches!(self.phase, Phase::Receiving) && usize::try_from(entry).is_ok_and(is_lacking)
    }

    fn take_entries(&mut self, first: u64, encoded: &[u8]) {
        let known = self.manifest.len();
        if !matches!(self.phase, Phase::Manifest) || first > known {
            return;
        }
        let (mut rest, mut at) = (encoded, first);
        while !rest.is_empty() {
            let added = match Entry::decode(&mut rest) {
                None => {
                    Err("internal error: invalid entry in the list of files; install the same \
                     release on all hosts, else report this line")
                }
                Some(_) if at < known => Ok(()),
                Some(entry) => self.manifest.add(entry),
            };
            at += 1;
            if let Err(flaw) = added {
                self.complaints.add("the list of files", flaw);
                self.phase = Phase::Over;
                return;
            }
        }
    }

    /// Does the next thing.
    pub(super) fn step(&mut self) -> Step {
        match &mut self.phase {
            Phase::Preparing(..) if self.place.is_some() => {
                self.open_place();
                Step::Busy
            }
            Phase::Preparing(at, reading) => {
                let (at, reading) = (*at, reading.take());
                self.prepare(at, reading);
                Step::Busy
            }
            Phase::Offering(from) => {
                let from = *from;
                self.offer(from)
            }
            Phase::Linking(at) => {
                let at = *at;
                self.link(at);
                Step::Busy
            }
            Phase::Closing(at) => {
                let at = *at;
                self.close(at);
                Step::Busy
            }
            Phase::Manifest | Phase::Receiving | Phase::Over => Step::Nothing,
        }
    }

    fn open_place(&mut self) {
        let Some(Place { destination, names, terms }) = self.place.take() else { return };
        match Store::locate(&destination, &names, terms) {
            Ok(store) => self.store = Some(store),
            Err((path, trouble)) => {
                self.complaints.add(path.display().to_string(), trouble.reason);
                self.phase = Phase::Over;
            }
        }
    }

    fn prepare(&mut self, at: u64, reading: Option<Box<Reading>>) {
        if let Some(mut reading) = reading {
            let content = self.manifest.entries()[at as usize].content();
            let Some(content) = content else { return };
            if !reading.go_on(content) || !reading.look_at_holes(content) {
                self.phase = Phase::Preparing(at, Some(reading));
                return;
            }
            self.read_bytes += reading.read_bytes;
            let is_of_use = match reading.present.is_final {
                true => reading.is_empty_in_holes && reading.offset == reading.present.length,
                false => {
                    self.begun.len() < self.kept_open_max && reading.keeps_what_is_read(content)
                }
            };
            let Reading { present, offset, beginning, .. } = *reading;
            if is_of_use {
                let file = (!present.is_final).then_some(present.file);
                self.begun.insert(at, Begun { file, offset, beginning });
            }
            self.phase = Phase::Preparing(at + 1, None);
            return;
        }
        let (Some(store), Some(entry)) =
            (&mut self.store, self.manifest.entries().get(at as usize))
        else {
            self.phase = Phase::Offering(0);
            return;
        };
        self.phase = Phase::Preparing(at + 1, None);
        let prepared = match (&entry.kind, entry.path.is_empty()) {
            (_, true) => store.begin_root(entry),
            (Kind::Folder, false) => store.make_folder(entry),
            _ => Ok(()),
        };
        if let Err(trouble) = prepared {
            return self.fail(at, &trouble);
        }
        if entry.content().is_some()
            && !store.is_fresh(entry.root)
            && let Some(present) = store.find(entry)
        {
            self.phase = Phase::Preparing(at, Some(Box::new(Reading::begin(present))));
        }
    }

    fn offer(&mut self, from: u64) -> Step {
        if let Some((&entry, begun)) = self.begun.range(from..).next() {
            self.phase = Phase::Offering(entry + 1);
            let (length, digest) = (begun.offset, begun.beginning.digest());
            return Step::Say(Message::Offer { entry, length, digest });
        }
        self.phase = if self.is_planned { Phase::Receiving } else { Phase::Manifest };
        self.is_lacking = false;
        let known = self.manifest.len() + u64::from(self.is_planned);
        Step::Say(Message::Ready { known, lacking: self.lacking() })
    }

    /// Ranges of entries whose files are lacking; what is no file may be in them.
    fn lacking(&self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let mut is_broken = true;
        for (at, (progress, entry)) in (0..).zip(self.progress.iter().zip(self.manifest.entries()))
        {
            if entry.content().is_none() {
                continue;
            }
            let is_lacking = *progress == Progress::Lacking;
            match ranges.last_mut() {
                Some((_, to)) if is_lacking && !is_broken => *to = at + 1,
                _ if is_lacking => ranges.push((at, at + 1)),
                _ => {}
            }
            is_broken = !is_lacking;
        }
        ranges
    }

    fn fail_root(&mut self, entry: u64) {
        let root = self.manifest.entries()[entry as usize].root;
        if !self.failed_roots.contains(&root) {
            self.failed_roots.push(root);
        }
    }

    fn fail(&mut self, entry: u64, trouble: &Trouble) {
        let meant = &self.manifest.entries()[entry as usize];
        let shown = self.store.as_ref().map(|store| store.shown(meant)).unwrap_or_default();
        self.complaints.add(shown, trouble.reason.clone());
        if let Some(progress) = self.progress.get_mut(entry as usize) {
            *progress = Progress::Failed;
        }
        if meant.path.is_empty() {
            // Nothing can be put below a source that has no place.
            let root = meant.root;
            let entries = self.manifest.entries().iter();
            for (progress, below) in self.progress.iter_mut().zip(entries) {
                if below.root == root {
                    *progress = Progress::Failed;
                }
            }
            let next =
                (0..).zip(self.manifest.entries()).find(|(at, it)| *at > entry && it.root > root);
            if let Phase::Preparing(at, _) = &mut self.phase {
                *at = next.map_or(self.manifest.len(), |(at, _)| at);
            }
        }
        self.fail_root(entry);
        if trouble.is_fatal {
            self.stop(trouble.is_full);
        }
    }

    /// Nothing more can be written on this host. Where room is lacking, none is taken.
    fn stop(&mut self, is_full: bool) {
        self.current = None;
        let begun = std::mem::take(&mut self.begun).into_iter();
        let parts: Vec<u64> =
            begun.filter(|(_, begun)| begun.file.is_some()).map(|(entry, _)| entry).collect();
        self.phase = Phase::Over;
        self.is_lacking = false;
        let Some(store) = self.store.as_mut().filter(|_| is_full) else { return };
        for entry in parts {
            store.discard(&self.manifest.entries()[entry as usize]);
        }
        store.remove_new_trees();
    }
}

fn thousandths(part: u64, all: u64) -> u32 {
    (u128::from(part) * 1000 / u128::from(all.max(1))) as u32
}
