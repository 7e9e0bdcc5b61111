//! The front-end's half of gathering: a receiver for each host, which puts what comes into a folder
//! of that host's name.
//!
//! All hosts say at once what they have. Only a bounded number is written at a time, as each has
//! some files open; the others wait for the word that their files are wanted until one of these
//! is done.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rustix::process::{Resource, getrlimit};
use sapwood::{Answer, Rank, RankSet, Stream};

use super::protocol::{Complaints, Message, NOTHING_MORE, State, Terms};
use super::receiver::{Receiver, Step};
use super::results::Results;
use sapwood_command_line::exit::Failure;
use sapwood_hosts::substitution::substitute;
use sapwood_hosts::unanswered::said;

/// Steps of one receiver before the others have their turn.
const STEPS_MAX: usize = 16;

/// Most hosts that are written at a time. What comes from them shares one link in any case.
const OPEN_MAX: usize = 64;

/// Most beginnings of files that a receiver keeps open. Files come one after another, so there are
/// more only where copies were interrupted several times.
const KEPT_OPEN_MAX: usize = 8;

/// Descriptors that a receiver has open for each source, and besides: folders on the way to a file,
/// and the file.
const DESCRIPTORS_PER_SOURCE: usize = 2;
const DESCRIPTORS_EACH: usize = KEPT_OPEN_MAX + 4;

/// Descriptors that are left for links that come while the copy goes on.
const DESCRIPTORS_SPARE: usize = 64;

/// The front-end of a gathering.
pub(super) struct Gather {
    pub(super) data: Stream,
    hosts: Vec<String>,
    names: Vec<Vec<u8>>,
    destination: PathBuf,
    terms: Terms,
    substitutes: bool,
    receivers: BTreeMap<Rank, Receiver>,
    /// Hosts that may have something to do.
    busy: BTreeSet<Rank>,
    /// Hosts that have files open, and how many these may be.
    open: BTreeSet<Rank>,
    open_max: usize,
    /// Hosts that wait until others are done.
    waiting: BTreeSet<Rank>,
    /// Those whose outcome has been taken into account.
    settled: RankSet,
    /// Hosts that have been told that nothing more is wanted.
    refused: RankSet,
    /// Hosts from which nothing more comes.
    gone: RankSet,
    /// Hosts that have said nothing for long.
    silent: RankSet,
    steps: u64,
}

impl Gather {
    pub(super) fn begin(
        data: Stream,
        hosts: Vec<String>,
        names: Vec<Vec<u8>>,
        destination: PathBuf,
        terms: Terms,
        substitutes: bool,
    ) -> Self {
        // What goes into a host's own folder has the name that it has there.
        let terms = Terms { is_into: true, is_exact: false, ..terms };
        Self {
            data,
            open_max: open_max(names.len()),
            hosts,
            names,
            destination,
            terms,
            substitutes,
            receivers: BTreeMap::new(),
            busy: BTreeSet::new(),
            open: BTreeSet::new(),
            waiting: BTreeSet::new(),
            settled: RankSet::new(),
            refused: RankSet::new(),
            gone: RankSet::new(),
            silent: RankSet::new(),
            steps: 0,
        }
    }

    /// Takes what a source says.
    pub(super) fn take(&mut self, answer: &Answer) {
        let (Some(packet), Some(rank)) = (&answer.packet, answer.contributors.as_ref().first())
        else {
            return;
        };
        let Some(message) = Message::decode(packet.tag(), packet.values()) else { return };
        let Some(host) = self.hosts.get(rank as usize) else { return };
        let (destination, terms) = (&self.destination, self.terms);
        let name = |name: &Vec<u8>| match std::str::from_utf8(name) {
            Ok(text) if self.substitutes => substitute(text, host, rank as usize).into_bytes(),
            _ => name.clone(),
        };
        let names = &self.names;
        let receiver = self.receivers.entry(rank).or_insert_with(|| {
            let folder = destination.join(host);
            // Where it cannot be made, the receiver says why nothing can be put there.
            let _ = std::fs::create_dir_all(&folder);
            let names = names.iter().map(name).collect::<Vec<_>>();
            Receiver::new(&folder, &names, terms).keeping_open(KEPT_OPEN_MAX)
        });
        receiver.take(&message);
        self.busy.insert(rank);
        self.silent.subtract(RankSet::range(rank, rank).as_ref());
    }

    /// Nothing more comes from these hosts.
    pub(super) fn lose(&mut self, ranks: &RankSet) {
        self.gone.union_with(ranks.as_ref());
        self.waiting.retain(|rank| !ranks.contains(*rank));
    }

    /// These hosts are not waited for. They may still come back.
    pub(super) fn pass_over(&mut self, ranks: &RankSet) {
        self.silent.union_with(ranks.as_ref());
    }

    /// How many steps were done.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Does what can be done. Gives whether there is more to do at once.
    ///
    /// # Errors
    /// [`Failure`] when the network fails.
    pub(super) fn work(&mut self) -> Result<bool, Failure> {
        self.close_gone();
        if self.has_turn() {
            self.busy.append(&mut self.waiting);
        }
        for rank in self.busy.clone() {
            if !self.may_work(rank) {
                continue;
            }
            let Some(receiver) = self.receivers.get_mut(&rank) else { continue };
            for _ in 0..STEPS_MAX {
                if !self.data.has_room().unwrap_or(false) {
                    return Ok(false);
                }
                self.steps += 1;
                match receiver.step() {
                    Step::Say(message) => {
                        let (tag, values) = message.encode();
                        said(self.data.send_to(rank, tag, values))?;
                    }
                    Step::Busy => {}
                    Step::Nothing => {
                        self.busy.remove(&rank);
                        // The host would wait for a word, or send what is not taken.
                        if receiver.is_over() && !self.refused.contains(rank) {
                            self.refused.insert(rank);
                            let ready = Message::Ready { known: NOTHING_MORE, lacking: Vec::new() };
                            let (tag, values) = ready.encode();
                            said(self.data.send_to(rank, tag, values))?;
                        }
                        if receiver.is_over() {
                            self.close(rank);
                        }
                        break;
                    }
                }
            }
        }
        Ok(!self.busy.is_empty() || self.has_turn())
    }

    /// Whether a host waits and need not.
    fn has_turn(&self) -> bool {
        !self.waiting.is_empty() && self.open.len() < self.open_max
    }

    /// Whether this one is not to wait until others are done.
    fn may_work(&mut self, rank: Rank) -> bool {
        let is_opening = self.receivers.get(&rank).is_some_and(Receiver::is_about_to_open);
        if !is_opening {
            return true;
        }
        if self.open.len() < self.open_max && !self.gone.contains(rank) {
            self.open.insert(rank);
            return true;
        }
        self.busy.remove(&rank);
        if !self.gone.contains(rank) {
            self.waiting.insert(rank);
        }
        false
    }

    /// This one needs no files any more.
    fn close(&mut self, rank: Rank) {
        if let Some(receiver) = self.receivers.get_mut(&rank) {
            receiver.let_go();
        }
        self.open.remove(&rank);
    }

    /// Hosts from which nothing comes are not waited for. Where none has to be, they may come back.
    fn close_gone(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let is_gone = |rank: &Rank| {
            let is_away = self.gone.contains(*rank) || self.silent.contains(*rank);
            is_away && !self.busy.contains(rank)
        };
        let gone: Vec<Rank> = self.open.iter().copied().filter(is_gone).collect();
        for rank in gone {
            self.close(rank);
        }
    }

    /// Bytes of data that came from hosts.
    pub(super) fn taken_bytes(&self) -> u64 {
        self.receivers.values().map(|receiver| receiver.taken_bytes).sum()
    }

    /// Adds what the receivers have to say of hosts that have sent everything. Gives whether all
    /// of these are done.
    pub(super) fn settle(&mut self, results: &mut Results) -> bool {
        let mut are_done = true;
        for (&rank, receiver) in &self.receivers {
            if self.settled.contains(rank) || results.outcome(rank).is_none() {
                continue;
            }
            if !receiver.is_over() {
                if self.gone.contains(rank) && !self.busy.contains(&rank) {
                    results.withdraw(rank, "was lost before all of its files had arrived");
                } else {
                    are_done = false;
                }
                continue;
            }
            let outcome = receiver.outcome();
            let mut complaints = outcome.complaints;
            if outcome.state == State::Lacking {
                complaints = Complaints::default();
                let folder = self.destination.join(&self.hosts[rank as usize]);
                complaints.add(folder.display().to_string(), "did not arrive completely");
            }
            results.complain(rank, &complaints);
            self.settled.insert(rank);
        }
        are_done
    }

    /// Bytes that came, and that will have come, as far as that is known.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let each = self.receivers.values();
        each.fold((0, 0), |(there, planned), receiver| {
            let planned = planned.saturating_add(receiver.planned_bytes());
            (there + receiver.bytes_there(), planned)
        })
    }

    /// Ends what is not over.
    pub(super) fn abandon(&mut self) {
        for receiver in self.receivers.values_mut() {
            receiver.abandon();
        }
    }
}

/// How many hosts can be written at a time with the descriptors that this process has left.
fn open_max(sources: usize) -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let taken = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) + DESCRIPTORS_SPARE;
    let free = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(taken);
    (free / (DESCRIPTORS_PER_SOURCE * sources + DESCRIPTORS_EACH)).clamp(1, OPEN_MAX)
}
