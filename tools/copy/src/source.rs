//! The end of a copy that has the files: reads them, and says what each receiver lacks.
//!
//! A source serves one or many receivers, which it knows by their ranks. What all lack is said
//! once to all of them. It never waits for a receiver: each step gives a message or nothing, and
//! its driver sends when there is room.
//!
//! A file that is not what the manifest says, before or after it was read, is *spoilt*: receivers
//! throw away what they have of it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use rustix::fs::OFlags;
use sapwood::{Rank, RankSet};

use super::blocks::{BLOCK_BYTES, Beginning, Digest, block_digest};
use super::manifest::Content;
use super::protocol::Message;
use super::scan::{Found, Stamp, words};

/// Encoded entries that go in one message are not much longer than this.
const ENTRIES_BYTES: usize = 32 << 10;

/// Most beginnings of files that are kept in mind for all receivers together, 64 bytes or more
/// each. For one that is offered behind these the receiver gets that file from its beginning.
const CLAIMS_MAX: usize = 4 << 20;

/// Ranges of entries, first and behind-the-last, in order.
type Ranges = Vec<(u64, u64)>;

/// What one step gave.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// Something to say to these receivers.
    Say(RankSet, Message<'a>),
    /// Something was done; there is more to do.
    Busy,
    /// Everything has been said.
    Nothing,
}

/// A beginning of a file that a receiver has.
struct Claim {
    rank: Rank,
    length: u64,
    digest: Digest,
}

/// A file that is being said.
struct Open {
    entry: u64,
    file: File,
    content: Content,
    data_bytes: u64,
    offset: u64,
    beginning: Beginning,
    /// Hosts that are told what comes next.
    active: RankSet,
    /// The longest first.
    claims: Vec<Claim>,
    /// Those whose claim was wrong: they are told everything once the others have it.
    refused: RankSet,
}

/// What is to be said next.
enum Phase {
    /// Entries from this one on.
    Entries(u64),
    /// Nothing before receivers are ready.
    Waiting,
    /// The files from this entry on.
    Files(u64),
}

/// The end of a file's data.
struct Ending {
    entry: u64,
    digest: Digest,
    /// The hosts to which it is to be said.
    to: RankSet,
}

/// The end that has the files.
pub(super) struct Source {
    pub(super) found: Found,
    phase: Phase,
    /// Hosts that are told the manifest.
    listeners: RankSet,
    /// What each host lacks; those that lack the same together.
    wants: Vec<(Ranges, RankSet)>,
    claims: BTreeMap<u64, Vec<Claim>>,
    /// How many of these there were in this round.
    claims_count: usize,
    open: Option<Open>,
    /// What is to be said next.
    ending: Option<Ending>,
    spoilt: RankSet,
    buffer: Vec<u8>,
    said_bytes: u64,
    said_files: u64,
    steps: u64,
}

impl Source {
    pub(super) fn new(found: Found) -> Self {
        Self {
            found,
            phase: Phase::Waiting,
            listeners: RankSet::new(),
            wants: Vec::new(),
            claims: BTreeMap::new(),
            claims_count: 0,
            open: None,
            ending: None,
            spoilt: RankSet::new(),
            buffer: vec![0; BLOCK_BYTES],
            said_bytes: 0,
            said_files: 0,
            steps: 0,
        }
    }

    /// Bytes of data, and files, that were said.
    pub(super) fn said(&self) -> (u64, u64) {
        (self.said_bytes, self.said_files)
    }

    /// How many steps were done.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Begins to tell these receivers the manifest from an entry on.
    pub(super) fn announce(&mut self, to: RankSet, from: u64) {
        self.listeners = to;
        self.phase = Phase::Entries(from);
    }

    /// Forgets what each host lacks: all will say it again.
    pub(super) fn begin_round(&mut self) {
        self.phase = Phase::Waiting;
        self.spoilt = RankSet::new();
        self.wants.clear();
        self.claims.clear();
        self.claims_count = 0;
        (self.open, self.ending) = (None, None);
    }

    /// A receiver has this beginning of a file.
    pub(super) fn offer(&mut self, rank: Rank, entry: u64, length: u64, digest: Digest) {
        if self.claims_count >= CLAIMS_MAX {
            return;
        }
        self.claims_count += 1;
        self.claims.entry(entry).or_default().push(Claim { rank, length, digest });
    }

    /// A receiver lacks this, but for what it has offered.
    pub(super) fn want(&mut self, rank: Rank, lacking: Vec<(u64, u64)>) {
        match self.wants.iter_mut().find(|(ranges, _)| *ranges == lacking) {
            Some((_, ranks)) => ranks.insert(rank),
            None => self.wants.push((lacking, RankSet::range(rank, rank))),
        }
    }

    /// Begins to say the files that are wanted.
    pub(super) fn serve(&mut self) {
        self.phase = Phase::Files(0);
    }

    /// A receiver is not there any more.
    pub(super) fn lose(&mut self, ranks: &RankSet) {
        let gone = ranks.as_ref();
        self.listeners.subtract(gone);
        self.spoilt.subtract(gone);
        for (_, wanting) in &mut self.wants {
            wanting.subtract(gone);
        }
        if let Some(open) = &mut self.open {
            open.active.subtract(gone);
            open.refused.subtract(gone);
            open.claims.retain(|claim| !gone.contains(claim.rank));
        }
        for claims in self.claims.values_mut() {
            claims.retain(|claim| !gone.contains(claim.rank));
        }
        if let Some(ending) = &mut self.ending {
            ending.to.subtract(gone);
        }
    }

    /// Does the next thing.
    pub(super) fn step(&mut self) -> Step<'_> {
        self.steps += u64::from(!matches!(self.phase, Phase::Waiting));
        match self.phase {
            Phase::Waiting => Step::Nothing,
            Phase::Entries(from) => self.say_entries(from),
            Phase::Files(at) => self.say_files(at),
        }
    }

    fn say_entries(&mut self, from: u64) -> Step<'_> {
        let to = self.listeners.clone();
        if to.is_empty() {
            self.phase = Phase::Waiting;
            return Step::Nothing;
        }
        let entries = self.found.manifest.entries();
        let count = entries.len() as u64;
        self.buffer.clear();
        let mut next = from;
        while next < count && self.buffer.len() < ENTRIES_BYTES {
            entries[next as usize].encode(&mut self.buffer);
            next += 1;
        }
        if next == from {
            self.phase = Phase::Waiting;
            return Step::Say(to, Message::Planned { count });
        }
        self.phase = Phase::Entries(next);
        Step::Say(to, Message::Entries { first: from, encoded: &self.buffer })
    }

    fn say_files(&mut self, at: u64) -> Step<'_> {
        if !self.spoilt.is_empty() {
            self.phase = Phase::Files(at + 1);
            let to = std::mem::take(&mut self.spoilt);
            return Step::Say(to, Message::Spoilt { entry: at });
        }
        if let Some(Ending { entry, digest, to }) = self.ending.take() {
            return match to.is_empty() {
                true => Step::Busy,
                false => Step::Say(to, Message::End { entry, digest }),
            };
        }
        if self.open.is_some() {
            return self.say_more();
        }
        let entries = self.found.manifest.entries();
        let is_wanted = |entry: &u64| self.wants.iter().any(|(ranges, _)| contains(ranges, *entry));
        let files =
            (at..entries.len() as u64).filter(|&entry| entries[entry as usize].content().is_some());
        let Some(next) = files.into_iter().find(is_wanted) else {
            self.phase = Phase::Waiting;
            let mut to = RankSet::new();
            for (_, ranks) in &self.wants {
                to.union_with(ranks.as_ref());
            }
            self.begin_round();
            return if to.is_empty() { Step::Nothing } else { Step::Say(to, Message::Finish) };
        };
        self.phase = Phase::Files(next);
        let mut to = RankSet::new();
        for (ranges, ranks) in &self.wants {
            if contains(ranges, next) {
                to.union_with(ranks.as_ref());
            }
        }
        if to.is_empty() {
            self.phase = Phase::Files(next + 1);
            return Step::Busy;
        }
        self.begin(next, to);
        Step::Busy
    }

    /// Opens a file for the hosts that lack it.
    fn begin(&mut self, entry: u64, mut to: RankSet) {
        let meant = &self.found.manifest.entries()[entry as usize];
        let Some(content) = meant.content().cloned() else { return };
        let path = self.found.path_of(meant);
        // A link's place was taken by the user's own choice only where he named it.
        let flags = if meant.path.is_empty() { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = (flags | OFlags::NONBLOCK).bits();
        let opened = OpenOptions::new().read(true).custom_flags(flags as i32).open(path);
        let reason = match opened {
            Ok(file) if content.size == 0 && has_more(&file) => UNKNOWN_LENGTH.to_string(),
            Ok(file) if self.is_unchanged(entry, &file) => {
                let mut claims = self.claims.remove(&entry).unwrap_or_default();
                claims.retain(|claim| to.contains(claim.rank));
                claims.sort_by_key(|claim| std::cmp::Reverse(claim.length));
                to.subtract(claims.iter().map(|claim| claim.rank).collect::<RankSet>().as_ref());
                self.open = Some(Open {
                    entry,
                    file,
                    data_bytes: content.data_bytes(),
                    content,
                    offset: 0,
                    beginning: Beginning::default(),
                    active: to,
                    claims,
                    refused: RankSet::new(),
                });
                return;
            }
            Ok(_) => CHANGED.to_string(),
            Err(error) => words(&error),
        };
        self.spoil(entry, to, &reason);
    }

    fn is_unchanged(&self, entry: u64, file: &File) -> bool {
        let stamp = self.found.stamps[entry as usize];
        file.metadata().is_ok_and(|metadata| Stamp::of(&metadata) == stamp)
    }

    fn spoil(&mut self, entry: u64, to: RankSet, reason: &str) {
        let path = self.found.path_of(&self.found.manifest.entries()[entry as usize]);
        self.found.complaints.add(path.display().to_string(), reason);
        self.open = None;
        self.spoilt = to;
    }

    /// The next block of the open file, or its end.
    fn say_more(&mut self) -> Step<'_> {
        let Some(open) = &mut self.open else { return Step::Busy };
        let accepted = open.judge_claims();
        if !accepted.is_empty() {
            open.active.union_with(accepted.as_ref());
            return Step::Say(accepted, Message::Accept { entry: open.entry });
        }
        if open.active.is_empty() && open.claims.is_empty() && open.refused.is_empty() {
            let entry = open.entry;
            self.open = None;
            self.phase = Phase::Files(entry + 1);
            return Step::Busy;
        }
        let left = open.data_bytes - open.offset;
        // Where the data is awaited only by receivers that claim less than all, nothing is left
        // out.
        if left == 0 || open.active.is_empty() && open.claims.is_empty() {
            return self.end_file();
        }
        let length = left.min(BLOCK_BYTES as u64) as usize;
        self.buffer.resize(length, 0);
        let entry = open.entry;
        if let Err(error) = open.read(&mut self.buffer) {
            let mut to = open.active.clone();
            to.union_with(open.refused.as_ref());
            to.union_with(open.claims.iter().map(|claim| claim.rank).collect::<RankSet>().as_ref());
            let is_short = error.kind() == std::io::ErrorKind::UnexpectedEof;
            let reason = if is_short { CHANGED.to_string() } else { words(&error) };
            self.spoil(entry, to, &reason);
            return Step::Busy;
        }
        let digest = block_digest(&self.buffer);
        let offset = open.offset;
        open.beginning.add(&digest);
        open.offset += length as u64;
        if open.active.is_empty() {
            return Step::Busy;
        }
        self.said_bytes += length as u64;
        let to = open.active.clone();
        Step::Say(to, Message::Part { entry, offset, digest, bytes: &self.buffer })
    }

    /// Says the end of the open file, and begins it once more for those whose claims were wrong.
    fn end_file(&mut self) -> Step<'_> {
        let Some(open) = self.open.take() else { return Step::Busy };
        let entry = open.entry;
        let mut everybody = open.active.clone();
        everybody.union_with(open.refused.as_ref());
        if !self.is_unchanged(entry, &open.file) {
            self.spoil(entry, everybody, CHANGED);
            return Step::Busy;
        }
        self.said_files += u64::from(!open.active.is_empty());
        let (digest, to) = (open.beginning.digest(), open.active);
        self.ending = Some(Ending { entry, digest, to });
        match open.refused.is_empty() {
            true => self.phase = Phase::Files(entry + 1),
            false => {
                self.open = Some(Open {
                    offset: 0,
                    beginning: Beginning::default(),
                    active: open.refused,
                    claims: Vec::new(),
                    refused: RankSet::new(),
                    ..open
                });
            }
        }
        Step::Busy
    }
}

/// Why a file is spoilt that was written to meanwhile.
const CHANGED: &str = "was changed while it was copied";

/// Why a file of /proc is spoilt: it says that it has no bytes, and has some.
const UNKNOWN_LENGTH: &str =
    "has no length, as pipes and files of /proc; copy its content to a regular file first";

/// Whether there is something in a file that seems to be empty.
fn has_more(file: &File) -> bool {
    file.read_at(&mut [0], 0).is_ok_and(|count| count > 0)
}

impl Open {
    /// Looks at the claims that end here; gives those that are right.
    fn judge_claims(&mut self) -> RankSet {
        let mut accepted = RankSet::new();
        while let Some(claim) = self.claims.last() {
            // Only whole blocks, or the whole file, can be gone on from.
            let is_possible = claim.length <= self.data_bytes
                && (claim.length % BLOCK_BYTES as u64 == 0 || claim.length == self.data_bytes);
            if is_possible && claim.length > self.offset {
                break;
            }
            let is_right = is_possible
                && claim.length == self.offset
                && claim.digest == self.beginning.digest();
            let rank = claim.rank;
            self.claims.pop();
            if is_right { accepted.insert(rank) } else { self.refused.insert(rank) }
        }
        accepted
    }

    fn read(&self, block: &mut [u8]) -> std::io::Result<()> {
        let mut rest = block;
        for (offset, length) in self.content.places(self.offset, rest.len()) {
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(length);
            self.file.read_exact_at(part, offset)?;
            rest = behind;
        }
        Ok(())
    }
}

fn contains(ranges: &[(u64, u64)], entry: u64) -> bool {
    let at = ranges.partition_point(|&(_, to)| to <= entry);
    ranges.get(at).is_some_and(|&(from, _)| from <= entry)
}
