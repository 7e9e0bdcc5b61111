//! A tree that another process keeps up, as a command sees it.
//!
//! The command's own conductor runs here, with this process's standard streams, signals, files and
//! working directory. Only packets pass through the daemon. What the command does not take stays
//! with the daemon, and so in the windows of its streams.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use sapwood::{Answer, Error, RankSet, Recipients, StreamId, Tag, Values};
use sapwood_topology::NodeSet;
use sapwood_transport::{Interest, Poller};

use super::Found;
use super::message::{
    Description, Line, Part, Reply, Request, absence_of_text, gone, ranks, to_answer,
};
use crate::absence::{Absence, everyone};
use crate::selection::Reach;
use crate::tree_access::{Channels, StandardInput, Tree};
use sapwood_command_line::exit::{Failure, complain_all};

/// Most bytes of standard input on their way to the daemon.
const INPUT_BYTES_MAX: usize = 256 << 10;

/// How long the daemon may take to open streams.
const BEGIN_TIME: Duration = Duration::from_secs(10);

/// A borrowed tree.
pub struct SharedTree {
    description: Description,
    line: Line,
    poller: Poller,
    wants_write: bool,
    /// What has come on the streams that are open.
    answers: BTreeMap<StreamId, VecDeque<Answer>>,
    /// Bytes of standard input that the daemon has not passed on yet, by stream.
    under_way: BTreeMap<StreamId, usize>,
    /// The hosts that are not there, and why.
    absent: Absence,
    everyone: RankSet,
    losses: Absence,
    begun: Option<Result<Channels, String>>,
    is_gone: bool,
    /// The hosts that were silent in the last command, and what the daemon was told of this one.
    suspects: RankSet,
    told: (RankSet, RankSet),
}

/// A tree that covers these hosts and reaches them in this way, and under which ranks; none if
/// nothing of the kind is up. Of several it is the one in which the fewest of these hosts are
/// missing, and of those the first by its name.
///
/// # Errors
/// Where the tree was asked for by its name, and is not there, does not cover the hosts, or reaches
/// them in another way than the user says.
pub fn find(
    hosts: &NodeSet,
    reach: &Reach,
    name: Option<&str>,
) -> Result<Option<(SharedTree, RankSet)>, Failure> {
    let terms = reach.terms();
    let Some(name) = name else {
        // What cannot be trusted or read is of no use, and none is needed.
        let trees = super::all().unwrap_or_default();
        let usable = trees.into_iter().filter(|tree| tree.description.terms == terms);
        let covers = |tree: Found| Some((tree.ranks_of(hosts).ok()?, tree));
        // They come by their names, and of equals the first is taken.
        let best = usable.filter_map(covers).min_by_key(|(ranks, tree)| tree.missing(ranks));
        let Some((ranks, tree)) = best else {
            complain_all(&super::ended(|_, ending| ending.may_have_served(&terms, hosts)));
            return Ok(None);
        };
        return Ok(Some((SharedTree::new(tree)?, ranks)));
    };
    let tree = super::named(Some(name))?;
    let theirs = &tree.description.terms;
    if reach.is_particular() && *theirs != terms {
        let text = format!("tree '{name}' reaches its hosts by {theirs}, not by {terms}");
        return Err(Failure::usage(text));
    }
    let ranks = tree.ranks_of(hosts).map_err(|others| {
        Failure::usage(format!("tree '{name}' does not have {others}; it has {}", tree.hosts()))
    })?;
    Ok(Some((SharedTree::new(tree)?, ranks)))
}

impl Found {
    fn hosts(&self) -> &str {
        &self.description.hosts
    }

    /// How many of these ranks are not there.
    fn missing(&self, ranks: &RankSet) -> u64 {
        let mut missing = RankSet::new();
        for (absent, _) in absence_of_text(&self.description.absent).unwrap_or_default() {
            missing.union_with(absent.as_ref());
        }
        missing.intersect_with(ranks.as_ref());
        missing.len()
    }

    /// The ranks of these hosts, in the same order, or those that the tree does not have.
    fn ranks_of(&self, hosts: &NodeSet) -> Result<RankSet, NodeSet> {
        let Ok(known) = self.hosts().parse::<NodeSet>() else { return Err(hosts.clone()) };
        let others = hosts.difference(&known);
        if !others.is_empty() {
            return Err(others);
        }
        // Sets have one order, of which a part keeps its own.
        let mut wanted = hosts.iter().peekable();
        let mut found = RankSet::new();
        for (rank, host) in (0..).zip(known.iter()) {
            if wanted.next_if_eq(&host).is_some() {
                found.insert(rank);
            }
        }
        if wanted.peek().is_some() { Err(hosts.clone()) } else { Ok(found) }
    }
}

impl SharedTree {
    fn new(tree: Found) -> Result<Self, Failure> {
        let Found { description, line } = tree;
        let failed = |error| Failure::own(&format!("cannot use the tree that is up: {error}"));
        let poller = Poller::new().map_err(failed)?;
        poller.add(line.link(), 0, Interest::READ).map_err(failed)?;
        let absent = absence_of_text(&description.absent).unwrap_or_default();
        let hosts = description.hosts.parse::<NodeSet>().map_or(0, |hosts| hosts.len());
        let everyone = everyone(hosts);
        let suspects = ranks(&description.suspects).unwrap_or_default();
        Ok(Self {
            description,
            line,
            poller,
            wants_write: false,
            answers: BTreeMap::new(),
            under_way: BTreeMap::new(),
            absent,
            everyone,
            losses: Vec::new(),
            begun: None,
            is_gone: false,
            suspects,
            told: Default::default(),
        })
    }

    /// How hosts that this tree had lost before are reached when they are back; nothing where none
    /// of these hosts was lost.
    pub fn way_back(&self, ranks: &RankSet) -> Option<String> {
        let lost = absence_of_text(&self.description.absent)?;
        let is_meant = lost.iter().any(|(lost, _)| lost.as_ref().intersects(ranks.as_ref()));
        is_meant.then(|| self.description.way_back())
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.description.name
    }

    fn hear(&mut self) -> Result<(), Error> {
        if !self.line.read() {
            self.lose_all();
        }
        for reply in self.line.messages()? {
            match reply {
                Reply::Description(description) => {
                    self.absent = absence_of_text(&description.absent).unwrap_or_default();
                    self.suspects = ranks(&description.suspects).unwrap_or_default();
                    self.description = description;
                }
                Reply::Begun { control, live, input } => {
                    let channels = Channels { control, live, input };
                    self.answers.extend(channels.all().map(|stream| (stream, VecDeque::new())));
                    self.under_way.extend(input.map(|input| (input, 0)));
                    self.begun = Some(Ok(channels));
                }
                Reply::Refused { reason } => self.begun = Some(Err(reason)),
                Reply::Sent { stream, bytes } => {
                    if let Some(under_way) = self.under_way.get_mut(&stream) {
                        *under_way = under_way.saturating_sub(bytes);
                    }
                }
                Reply::Answer { stream, wave, contributors, is_late, packet } => {
                    let answer = to_answer(stream, wave, &contributors, is_late, packet.as_ref());
                    let answer = answer.ok_or_else(|| gone("daemon and command are of different \
                                                            releases: run 'sapwood down', then 'sapwood up'"))?;
                    // Answers to a command that has ended are dropped.
                    if let Some(answers) = self.answers.get_mut(&stream) {
                        answers.push_back(answer);
                    }
                }
                Reply::Lost { ranks: lost, reason } => {
                    let lost = ranks(&lost).unwrap_or_default();
                    self.absent.push((lost.clone(), reason.clone()));
                    self.losses.push((lost, reason));
                }
            }
        }
        Ok(())
    }

    fn lose_all(&mut self) {
        if std::mem::replace(&mut self.is_gone, true) {
            return;
        }
        let reason = format!("the tree '{}' was ended", self.name());
        // What is over stays readable, and would end every wait at once.
        let _ = self.poller.remove(self.line.link());
        self.absent.push((self.everyone.clone(), reason.clone()));
        self.losses.push((self.everyone.clone(), reason));
    }

    fn write(&mut self) -> Result<(), Error> {
        if self.is_gone {
            return Ok(());
        }
        if !self.line.write() {
            // What it has said before it went can still be read.
            return Ok(());
        }
        let wants = self.line.unwritten() > 0;
        if wants != self.wants_write {
            let interest = if wants { Interest::BOTH } else { Interest::READ };
            self.poller.modify(self.line.link(), 0, interest)?;
            self.wants_write = wants;
        }
        Ok(())
    }

    /// Waits for the end of the connection, which comes with the daemon's.
    ///
    /// # Errors
    /// When the system fails this process.
    pub(crate) fn wait_for_end(&mut self, limit: Duration) -> Result<bool, Error> {
        let until = Instant::now() + limit;
        while !self.is_gone && Instant::now() < until {
            self.turn(until.saturating_duration_since(Instant::now()))?;
        }
        Ok(self.is_gone)
    }

    /// Asks the daemon to end the tree.
    pub(crate) fn stop(tree: Found) -> Result<Self, Failure> {
        let mut borrowed = Self::new(tree)?;
        borrowed.line.push(&Request::Stop);
        Ok(borrowed)
    }
}

impl Tree for SharedTree {
    fn connected(&self) -> RankSet {
        let mut connected = self.everyone.clone();
        for (ranks, _) in &self.absent {
            connected.subtract(ranks.as_ref());
        }
        connected
    }

    fn absent(&self) -> Absence {
        self.absent.clone()
    }

    fn take_losses(&mut self) -> Absence {
        std::mem::take(&mut self.losses)
    }

    fn suspects(&self) -> RankSet {
        self.suspects.clone()
    }

    fn note_silence(&mut self, silent: &RankSet, heard: &RankSet) {
        if (&self.told.0, &self.told.1) == (silent, heard) {
            return;
        }
        self.told = (silent.clone(), heard.clone());
        self.suspects.subtract(heard.as_ref());
        self.suspects.union_with(silent.as_ref());
        let (silent, heard) = (silent.to_string(), heard.to_string());
        self.line.push(&Request::Silence { silent, heard });
    }

    fn begin(&mut self, members: &RankSet, input: StandardInput) -> Result<Channels, Error> {
        let has_input = input == StandardInput::Passed;
        (self.begun, self.told) = (None, Default::default());
        self.line.push(&Request::Begin { members: members.to_string(), has_input });
        let until = Instant::now() + BEGIN_TIME;
        loop {
            match self.begun.take() {
                Some(Ok(channels)) => return Ok(channels),
                Some(Err(reason)) => return Err(gone(&reason)),
                None if self.is_gone => return Err(gone("the tree was ended")),
                None => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Timeout { what: "answer from the daemon", waited: BEGIN_TIME });
            }
            self.turn(left)?;
        }
    }

    fn end(&mut self, channels: Channels) {
        self.line.push(&Request::End { control: channels.control });
        for stream in channels.all() {
            self.answers.remove(&stream);
            self.under_way.remove(&stream);
        }
        // The daemon notices the end of the connection, too.
        let _ = self.write();
    }

    fn send(
        &mut self,
        stream: StreamId,
        to: &Recipients,
        tag: Tag,
        values: Values,
    ) -> Result<(), Error> {
        let packet = Part::new(tag, values.as_ref());
        if let Some(under_way) = self.under_way.get_mut(&stream) {
            *under_way += packet.bytes();
        }
        let to = match to {
            Recipients::All => None,
            Recipients::Only(ranks) => Some(ranks.to_string()),
        };
        self.line.push(&Request::Send { stream, to, packet });
        self.write()
    }

    fn has_room(&self, stream: StreamId) -> bool {
        let under_way = self.under_way.get(&stream).copied().unwrap_or(0);
        !self.is_gone && under_way < INPUT_BYTES_MAX
    }

    fn take(&mut self, stream: StreamId) -> Result<Option<Answer>, Error> {
        Ok(self.answers.get_mut(&stream).and_then(VecDeque::pop_front))
    }

    fn waiting(&self, stream: StreamId) -> usize {
        self.answers.get(&stream).map_or(0, VecDeque::len)
    }

    fn watch(&mut self, descriptor: BorrowedFd<'_>) -> Result<(), Error> {
        Ok(self.poller.add(descriptor, 1, Interest::READ)?)
    }

    fn unwatch(&mut self, descriptor: BorrowedFd<'_>) -> Result<(), Error> {
        Ok(self.poller.remove(descriptor)?)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.write()
    }

    fn turn(&mut self, timeout: Duration) -> Result<(), Error> {
        self.write()?;
        let mut events = Vec::new();
        self.poller.wait(&mut events, Some(timeout))?;
        if !self.is_gone && events.iter().any(|event| event.token == 0) {
            self.write()?;
            self.hear()?;
        }
        Ok(())
    }
}
