//! The tree that a command runs through, which is owned by this process, or another one that keeps
//! it up between commands.
//!
//! Owns what a conductor needs of a tree, [`Tree`], and the tree of this process, [`Owned`].
//! `persistent::shared` has the other one. Back-ends are known by their rank in the tree, of
//! which a command may use some only.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use sapwood::{
    Answer, Error, Network, Policy, PreparedName, RankSet, Recipients, Stream, StreamId, Tag,
    Topology, Values, WaveRule,
};

use crate::absence::{Absence, Reasons, below, everyone, name_in};
use crate::notices::Notices;
use crate::unanswered::said;

/// After the first answer to a wave, those that stay silent are waited for this time, in
/// milliseconds.
pub const WAVE_MILLISECONDS: u32 = 5000;

/// The same where some of them were silent in the last command already.
const SUSPECT_WAVE_MILLISECONDS: u32 = 1000;

/// What the user cannot change of a command's streams. Tests can, which do not wait for hours.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Flow {
    /// Bytes that may be under way over each link; the usual ones if none are named.
    #[arg(long, hide = true)]
    window_bytes: Option<u32>,
    /// After the first answer to a wave, those that stay silent are waited for this time, in
    /// milliseconds.
    #[arg(long, hide = true, default_value_t = WAVE_MILLISECONDS)]
    wave_milliseconds: u32,
}

/// Whether a command has standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandardInput {
    /// What the caller reads is passed on to it.
    Passed,
    /// It has none.
    Closed,
}

/// The streams of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    pub control: StreamId,
    pub live: StreamId,
    /// Standard input's, if the command has any.
    pub input: Option<StreamId>,
}

impl Channels {
    pub fn all(self) -> impl Iterator<Item = StreamId> {
        [Some(self.control), Some(self.live), self.input].into_iter().flatten()
    }
}

/// A tree whose back-ends are agents, one for each host.
pub trait Tree {
    /// The hosts that are there now.
    fn connected(&self) -> RankSet;

    /// Which of the tree's hosts are not there, and why.
    fn absent(&self) -> Absence;

    /// Whether hosts may still come that were to be there from the beginning.
    fn is_starting(&mut self) -> bool {
        false
    }

    /// The hosts that have gone since the last call, and why.
    fn take_losses(&mut self) -> Absence;

    /// The hosts that are there as far as is known, and were silent in the last command.
    fn suspects(&self) -> RankSet;

    /// The hosts that are silent in a command, and those heard in it.
    fn note_silence(&mut self, silent: &RankSet, heard: &RankSet);

    /// Opens the streams of a command.
    ///
    /// # Errors
    /// When a member is not there, or the tree fails.
    fn begin(&mut self, members: &RankSet, input: StandardInput) -> Result<Channels, Error>;

    /// Closes them: agents end what is left of the command.
    fn end(&mut self, channels: Channels);

    /// Sends to some members of a stream, or to all where `to` is empty.
    ///
    /// # Errors
    /// [`Error::Misuse`] where no member is left, else when the tree fails.
    fn send(
        &mut self,
        stream: StreamId,
        to: &Recipients,
        tag: Tag,
        values: Values,
    ) -> Result<(), Error>;

    /// The same, if that need not wait; whether it was sent.
    ///
    /// # Errors
    /// As [`Tree::send`].
    fn try_send(
        &mut self,
        stream: StreamId,
        to: &Recipients,
        tag: Tag,
        values: Values,
    ) -> Result<bool, Error> {
        let has_room = self.has_room(stream);
        if has_room {
            self.send(stream, to, tag, values)?;
        }
        Ok(has_room)
    }

    /// Whether more standard input can be sent without piling up.
    fn has_room(&self, stream: StreamId) -> bool;

    /// The next answer on a stream, if it is there.
    ///
    /// # Errors
    /// When the tree fails.
    fn take(&mut self, stream: StreamId) -> Result<Option<Answer>, Error>;

    /// How many answers are there.
    fn waiting(&self, stream: StreamId) -> usize;

    /// Lets what is readable there end a turn.
    ///
    /// # Errors
    /// Where this cannot be waited for, as for a regular file.
    fn watch(&mut self, descriptor: BorrowedFd<'_>) -> Result<(), Error>;

    /// Does so no more.
    ///
    /// # Errors
    /// Where it was not watched.
    fn unwatch(&mut self, descriptor: BorrowedFd<'_>) -> Result<(), Error>;

    /// Has what was sent leave.
    ///
    /// # Errors
    /// When the tree fails.
    fn flush(&mut self) -> Result<(), Error>;

    /// Waits until something happens, at most for `timeout`.
    ///
    /// # Errors
    /// When the tree fails.
    fn turn(&mut self, timeout: Duration) -> Result<(), Error>;
}

/// A tree of this process's.
pub struct Owned {
    network: Network,
    /// By rank.
    hosts: Vec<String>,
    streams: BTreeMap<StreamId, Stream>,
    flow: Flow,
    reasons: Reasons,
    losses: Absence,
    suspects: RankSet,
}

impl Owned {
    /// Of a network that is open, with one back-end for each of the hosts.
    pub fn new<H: ToString>(network: Network, hosts: &[H]) -> Self {
        let hosts: Vec<String> = hosts.iter().map(H::to_string).collect();
        let reasons = Reasons::new(hosts.len());
        let (streams, losses) = (BTreeMap::new(), Vec::new());
        let flow = Flow { window_bytes: None, wave_milliseconds: WAVE_MILLISECONDS };
        let suspects = RankSet::new();
        let mut tree = Self { network, hosts, streams, flow, reasons, losses, suspects };
        tree.take_events();
        tree
    }

    /// The same, whose streams will flow in another way than usual.
    pub fn flowing(self, flow: Flow) -> Self {
        Self { flow, ..self }
    }

    /// Which processes it was to have.
    pub fn topology(&self) -> &Topology {
        self.network.topology()
    }

    /// Has other processes find another tree of this process under the name that it was published
    /// by, or none where that fails. Whether the other one has the name.
    pub fn leave_name_to(&mut self, successor: Option<&mut PreparedName>) -> bool {
        let left = successor.map(|name| self.network.name().leave_to(name));
        let has_left = matches!(left, Some(Ok(true)));
        if !has_left {
            self.network.unpublish();
        }
        has_left
    }

    /// Ends the tree.
    ///
    /// # Errors
    /// When the system fails this process.
    pub fn close(mut self) -> Result<(), Error> {
        self.streams.clear();
        self.network.close()
    }

    fn take_events(&mut self) {
        let mut notices = Notices::default();
        while let Some(event) = self.network.next_event() {
            notices.take(&event);
            let (network, hosts) = (&self.network, self.hosts.len());
            self.losses.extend(self.reasons.note(&event, |rank| below(network, rank, hosts)));
        }
        notices.tell();
    }

    fn everyone(&self) -> RankSet {
        everyone(self.hosts.len())
    }
}

impl Tree for Owned {
    fn connected(&self) -> RankSet {
        let mut connected = self.network.everyone().ranks().clone();
        connected.intersect_with(self.everyone().as_ref());
        connected
    }

    fn absent(&self) -> Absence {
        self.reasons.absence(&self.connected(), name_in(&self.hosts))
    }

    fn is_starting(&mut self) -> bool {
        self.network.is_starting()
    }

    fn take_losses(&mut self) -> Absence {
        self.take_events();
        std::mem::take(&mut self.losses)
    }

    fn suspects(&self) -> RankSet {
        self.suspects.clone()
    }

    fn note_silence(&mut self, silent: &RankSet, heard: &RankSet) {
        self.suspects.subtract(heard.as_ref());
        self.suspects.union_with(silent.as_ref());
    }

    fn begin(&mut self, members: &RankSet, input: StandardInput) -> Result<Channels, Error> {
        let has_suspects = members.as_ref().intersects(self.suspects.as_ref());
        // Those that were lost since the caller looked are told to it as losses.
        let mut there = self.connected();
        there.intersect_with(members.as_ref());
        let members = if there.is_empty() { members } else { &there };
        let members = self.network.communicator(members.iter());
        // A caller with something for several of them takes the lower numbers first.
        let most = if has_suspects { SUSPECT_WAVE_MILLISECONDS } else { u32::MAX };
        let rule = WaveRule::Timeout { milliseconds: self.flow.wave_milliseconds.min(most) };
        let mut control = self.network.stream(&members).up("classes").wave(rule);
        if let Some(bytes) = self.flow.window_bytes {
            control = control.window_bytes(bytes);
        }
        let control = control.open()?;
        let live = self.network.stream(&members).wave(WaveRule::Immediate).policy(Policy::Block);
        let live = live.open()?;
        let input = match input {
            StandardInput::Passed => Some(self.network.stream(&members).open()?),
            StandardInput::Closed => None,
        };
        let channels = Channels {
            control: control.id(),
            live: live.id(),
            input: input.as_ref().map(Stream::id),
        };
        let streams = [Some(control), Some(live), input].into_iter().flatten();
        self.streams.extend(streams.map(|stream| (stream.id(), stream)));
        Ok(channels)
    }

    fn end(&mut self, channels: Channels) {
        for stream in channels.all() {
            self.streams.remove(&stream);
        }
    }

    fn send(
        &mut self,
        stream: StreamId,
        to: &Recipients,
        tag: Tag,
        values: Values,
    ) -> Result<(), Error> {
        match self.streams.get_mut(&stream) {
            Some(stream) => said(stream.send_to_ranks(to.clone(), tag, values)),
            None => Ok(()),
        }
    }

    fn try_send(
        &mut self,
        stream: StreamId,
        to: &Recipients,
        tag: Tag,
        values: Values,
    ) -> Result<bool, Error> {
        let Some(stream) = self.streams.get_mut(&stream) else { return Ok(true) };
        match stream.try_send_to_ranks(to.clone(), tag, values) {
            Err(Error::WouldWait { .. }) => Ok(false),
            sent => said(sent).map(|()| true),
        }
    }

    fn has_room(&self, stream: StreamId) -> bool {
        self.streams.get(&stream).is_some_and(|stream| stream.has_room().unwrap_or(false))
    }

    fn take(&mut self, stream: StreamId) -> Result<Option<Answer>, Error> {
        match self.streams.get_mut(&stream) {
            // What waits is given at once, whichever hosts are gone.
            Some(stream) if stream.waiting() > 0 => stream.recv().map(Some),
            _ => Ok(None),
        }
    }

    fn waiting(&self, stream: StreamId) -> usize {
        self.streams.get(&stream).map_or(0, Stream::waiting)
    }

    fn watch(&mut self, descriptor: BorrowedFd<'_>) -> Result<(), Error> {
        self.network.watch(descriptor)
    }

    fn unwatch(&mut self, descriptor: BorrowedFd<'_>) -> Result<(), Error> {
        self.network.unwatch(descriptor)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.network.flush()
    }

    fn turn(&mut self, timeout: Duration) -> Result<(), Error> {
        self.network.turn(timeout).map(|_| ())
    }
}
