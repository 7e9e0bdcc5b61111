//! The end of a copy that gets the files: takes what the source says, in any state in which an
//! interrupted copy may have left things, and says what is lacking.
//!
//! Of each file the receiver knows how much of its data, from its beginning, is right. A block
//! that does not follow on that, or has another digest, is not taken: the file stays lacking, and
//! is asked for again. So whatever gets lost on the way, a file gets its name only when it is
//! whole.
//! Long work is done in steps, so that the host can answer meanwhile.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use super::blocks::{BLOCK_BYTES, Beginning, Digest, block_digest};
use super::held::Held;
use super::manifest::{Content, Entry, Kind, Manifest};
use super::protocol::{Complaints, Message, Outcome, State, Terms};
use super::store::{Present, Store, Trouble};

/// Most files of which beginnings are kept open until the source has judged them, if nothing else
/// is said.
const KEPT_OPEN_MAX: usize = 200;

/// Bytes that are read in one step.
const STEP_BYTES: u64 = 4 << 20;

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

/// A file of which the beginning is being read.
struct Reading {
    present: Present,
    offset: u64,
    beginning: Beginning,
    /// Up to here in the file, holes have been looked at.
    looked_to: u64,
    /// Whether nothing but zeros stands in holes.
    is_empty_in_holes: bool,
    read_bytes: u64,
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
                None => Err("an entry breaks the rules"),
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

    /// What was begun of the current file is kept, to go on from there.
    fn suspend(&mut self) {
        if let Some((entry, begun)) = self.current.take()
            && begun.offset > 0
            && self.begun.len() < self.kept_open_max
        {
            self.begun.insert(entry, begun);
        }
    }

    fn go_on(&mut self, entry: u64) {
        self.suspend();
        self.current = self.begun.remove(&entry).map(|begun| (entry, begun));
    }

    fn take_part(&mut self, entry: u64, offset: u64, digest: &Digest, bytes: &[u8]) {
        let is_current = self.current.as_ref().is_some_and(|(current, _)| *current == entry);
        if offset == 0 {
            if !is_current {
                self.suspend();
            }
            if !self.begin(entry) {
                return;
            }
        } else if !is_current {
            return;
        }
        let Some((_, begun)) = &mut self.current else { return };
        let content = self.manifest.entries()[entry as usize].content();
        let Some(content) = content else { return };
        let left = content.data_bytes() - begun.offset;
        if offset != begun.offset
            || bytes.len() as u64 != left.min(BLOCK_BYTES as u64)
            || block_digest(bytes) != *digest
        {
            return;
        }
        let Some(file) = &mut begun.file else { return };
        match write(file, content, offset, bytes) {
            Ok(()) => {
                begun.offset += bytes.len() as u64;
                begun.beginning.add(digest);
                self.taken_bytes += bytes.len() as u64;
            }
            Err(error) => {
                self.discard(entry);
                self.fail(entry, &error.into());
            }
        }
    }

    /// Begins the current file from nothing. Gives whether that was possible.
    fn begin(&mut self, entry: u64) -> bool {
        self.current = None;
        self.begun.remove(&entry);
        let Some(store) = &mut self.store else { return false };
        match store.begin_file(&self.manifest.entries()[entry as usize]) {
            Ok(file) => {
                let beginning = Beginning::default();
                self.current = Some((entry, Begun { file: Some(file), offset: 0, beginning }));
                true
            }
            Err(trouble) => {
                self.fail(entry, &trouble);
                false
            }
        }
    }

    fn end_file(&mut self, entry: u64, digest: &Digest) {
        let meant = &self.manifest.entries()[entry as usize];
        let data_bytes = meant.content().map_or(0, Content::data_bytes);
        let is_current = self.current.as_ref().is_some_and(|(current, _)| *current == entry);
        if !is_current {
            self.suspend();
            if data_bytes > 0 || !self.begin(entry) {
                return;
            }
        }
        let Some((_, mut begun)) = self.current.take() else { return };
        if begun.offset < data_bytes {
            // Something was lost on the way: it goes on from there in the next round.
            self.begun.insert(entry, begun);
            return;
        }
        if begun.beginning.digest() != *digest {
            drop(begun);
            return self.discard(entry);
        }
        let Some(store) = &mut self.store else { return };
        let meant = &self.manifest.entries()[entry as usize];
        let finished = match &mut begun.file {
            Some(file) => store.finish_file(meant, file),
            None => match store.find(meant) {
                Some(present) if present.is_final => store.finish_present(meant, &present.file),
                _ => Err(Trouble::new("was changed by somebody else meanwhile")),
            },
        };
        match finished {
            Ok(()) => {
                self.progress[entry as usize] = Progress::There;
                self.there_bytes += data_bytes;
                self.there_files += 1;
            }
            Err(trouble) => {
                drop(begun);
                self.discard(entry);
                self.fail(entry, &trouble);
            }
        }
    }

    /// The source has no such file any more, and says so itself.
    fn drop_file(&mut self, entry: u64) {
        self.discard(entry);
        self.progress[entry as usize] = Progress::Failed;
        self.fail_root(entry);
    }

    /// Takes away what there is of a file.
    fn discard(&mut self, entry: u64) {
        if self.current.as_ref().is_some_and(|(current, _)| *current == entry) {
            self.current = None;
        }
        self.begun.remove(&entry);
        if let Some(store) = &mut self.store {
            store.discard(&self.manifest.entries()[entry as usize]);
        }
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

    /// Everything has been said.
    fn begin_end(&mut self) {
        self.suspend();
        if self.lacking().is_empty() {
            self.phase = Phase::Linking(0);
        } else {
            (self.phase, self.is_lacking) = (Phase::Over, true);
        }
    }

    fn link(&mut self, at: u64) {
        let entries = self.manifest.entries();
        let (Some(store), Some(entry)) = (&mut self.store, entries.get(at as usize)) else {
            self.phase = Phase::Closing(self.manifest.len());
            return;
        };
        self.phase = Phase::Linking(at + 1);
        let made = match &entry.kind {
            _ if self.progress[at as usize] == Progress::Failed => Ok(()),
            Kind::Symlink(target) => store.make_symlink(entry, target),
            Kind::HardLink(to) => match self.progress[*to as usize] {
                Progress::There => store.make_hard_link(entry, &entries[*to as usize]),
                _ => Err(Trouble::new("the file that it is another name of is lacking")),
            },
            Kind::File(_) | Kind::Folder => Ok(()),
        };
        if let Err(trouble) = made {
            self.fail(at, &trouble);
        }
    }

    fn close(&mut self, behind: u64) {
        let Some(at) = behind.checked_sub(1) else { return self.publish() };
        self.phase = Phase::Closing(at);
        let entry = &self.manifest.entries()[at as usize];
        let is_there = self.progress[at as usize] != Progress::Failed;
        // A new folder that lacks something does not get its name: the next try writes into it.
        let is_new = self.store.as_ref().is_some_and(|store| store.is_new(entry.root));
        let is_there = is_there && !(is_new && self.failed_roots.contains(&entry.root));
        if let (Kind::Folder, true, Some(store)) = (&entry.kind, is_there, &mut self.store)
            && let Err(trouble) = store.finish_folder(entry)
        {
            self.fail(at, &trouble);
        }
    }

    /// Gives new folders their names, each if it is whole.
    fn publish(&mut self) {
        self.phase = Phase::Over;
        let roots: Vec<u64> = (0..)
            .zip(self.manifest.entries())
            .filter(|(_, entry)| entry.path.is_empty() && entry.kind == Kind::Folder)
            .map(|(at, _)| at)
            .collect();
        for at in roots {
            let root = self.manifest.entries()[at as usize].root;
            let Some(store) = &mut self.store else { return };
            if self.failed_roots.contains(&root) {
                if store.is_new(root) {
                    let shown = store.shown(&self.manifest.entries()[at as usize]);
                    let kept = if self.is_anew { "" } else { KEPT };
                    self.complaints.add(shown, format!("{INCOMPLETE}{kept}"));
                }
                continue;
            }
            if let Err(trouble) = store.publish(root) {
                self.fail(at, &trouble);
            }
        }
    }
}

/// Why a new folder does not get its name.
const INCOMPLETE: &str = "is not put in its place, since parts of it are lacking";

/// What becomes of it, unless nothing is kept.
const KEPT: &str = "; what came is kept for the next try";

impl Reading {
    fn begin(present: Present) -> Self {
        Self {
            present,
            offset: 0,
            beginning: Beginning::default(),
            looked_to: 0,
            is_empty_in_holes: true,
            read_bytes: 0,
        }
    }

    /// How much of the file is of use: all of it where it has its name, else what was read.
    fn end(&self, content: &Content) -> u64 {
        match (self.present.is_final, self.offset.checked_sub(1)) {
            (true, _) => content.size,
            (false, None) => 0,
            (false, Some(last)) => content.places(last, 1).first().map_or(0, |&(at, _)| at + 1),
        }
    }

    /// Looks whether holes are empty; gives whether that is known. An earlier state of the file may
    /// have had something there, and what is in no extent is in no digest.
    fn look_at_holes(&mut self, content: &Content) -> bool {
        let (end, until) = (self.end(content), self.read_bytes + STEP_BYTES);
        while self.read_bytes < until {
            let Some((from, to)) = content.hole_from(self.looked_to, end) else { return true };
            let at = match seek(&*self.present.file, SeekFrom::Data(from)) {
                Ok(at) if at < to => at,
                Ok(_) | Err(Errno::NXIO) => {
                    self.looked_to = to;
                    continue;
                }
                // A file system that knows of no holes.
                Err(_) => from,
            };
            let mut block = vec![0; (to - at).min(BLOCK_BYTES as u64) as usize];
            let is_read = self.present.file.read_exact_at(&mut block, at).is_ok();
            if !is_read || block.iter().any(|&byte| byte != 0) {
                self.is_empty_in_holes = false;
                return true;
            }
            self.looked_to = at + block.len() as u64;
            self.read_bytes += block.len() as u64;
        }
        false
    }

    /// Whether a part can be gone on from. What stands behind that is cut off, since what follows
    /// may be a hole.
    fn keeps_what_is_read(&self, content: &Content) -> bool {
        let is_cut = |end| self.present.file.set_len(end).is_ok();
        self.offset > 0 && self.is_empty_in_holes && is_cut(self.end(content))
    }

    /// Reads on; gives whether all that can be used has been read.
    fn go_on(&mut self, content: &Content) -> bool {
        let data_bytes = content.data_bytes();
        let until = self.offset + STEP_BYTES;
        while self.offset < until {
            let left = data_bytes - self.offset;
            let length = left.min(BLOCK_BYTES as u64);
            // A part of a block is of no use.
            if left == 0 || self.offset + length > self.present.length {
                return true;
            }
            let mut block = vec![0; length as usize];
            let mut rest = &mut *block;
            for (offset, length) in content.places(self.offset, length as usize) {
                let (part, behind) = std::mem::take(&mut rest).split_at_mut(length);
                if self.present.file.read_exact_at(part, offset).is_err() {
                    return true;
                }
                rest = behind;
            }
            self.beginning.add(&block_digest(&block));
            self.offset += length;
            self.read_bytes += length;
        }
        false
    }
}

fn thousandths(part: u64, all: u64) -> u32 {
    (u128::from(part) * 1000 / u128::from(all.max(1))) as u32
}

fn write(file: &mut Held, content: &Content, from: u64, bytes: &[u8]) -> std::io::Result<()> {
    let mut rest = bytes;
    for (offset, length) in content.places(from, bytes.len()) {
        let (part, behind) = rest.split_at(length);
        file.write_all_at(part, offset)?;
        rest = behind;
    }
    file.wrote(bytes.len() as u64)
}
