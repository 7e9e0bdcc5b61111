//! One command that borrows the tree, seen from the daemon.
//!
//! The daemon's loop waits for no command: what a stream has no room for stays here, bounded by
//! what a command may have under way, and what a command does not read stays in the stream.

use std::collections::{BTreeMap, VecDeque};

use sapwood::{Error, Recipients, StreamId};
use sapwood_transport::{Interest, Link, Poller};

use super::message::{Description, Line, Part, Reply, Request, ranks};
use crate::absence::Absence;
use crate::tree_access::{Channels, StandardInput, Tree};

/// What may wait for a command to read it, in bytes, before its streams are left alone.
const UNREAD_BYTES_MAX: usize = 1 << 20;

/// What may wait for room in the tree, in bytes. A command of ours never has so much under way.
const UNSENT_BYTES_MAX: usize = 16 << 20;

/// A command, or several one after another, of one process.
pub(crate) struct Session {
    line: Line,
    token: u64,
    interest: Interest,
    channels: Vec<Channels>,
    /// What has no room in the tree yet, by stream, in order.
    unsent: BTreeMap<StreamId, VecDeque<(Recipients, Part)>>,
    unsent_bytes: usize,
    is_gone: bool,
}

/// What the daemon has to do besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Nothing,
    /// The tree is to end.
    Stop,
}

impl Session {
    /// A client that has just come, and is told which tree this is.
    ///
    /// # Errors
    /// When the system fails this process.
    pub(crate) fn welcome(
        link: Link,
        token: u64,
        poller: &Poller,
        description: Description,
    ) -> Result<Self, Error> {
        let mut session = Self {
            line: Line::new(link),
            token,
            interest: Interest::READ,
            channels: Vec::new(),
            unsent: BTreeMap::new(),
            unsent_bytes: 0,
            is_gone: false,
        };
        session.enter(token, poller, description)?;
        Ok(session)
    }

    /// Goes from a daemon's loop, to be taken in by that of another tree.
    ///
    /// # Errors
    /// When the system fails this process.
    pub(crate) fn leave(&self, poller: &Poller) -> Result<(), Error> {
        Ok(poller.remove(self.line.link())?)
    }

    /// Is taken in by a daemon's loop, and told which tree this is.
    ///
    /// # Errors
    /// When the system fails this process.
    pub(crate) fn enter(
        &mut self,
        token: u64,
        poller: &Poller,
        description: Description,
    ) -> Result<(), Error> {
        poller.add(self.line.link(), token, self.interest)?;
        self.token = token;
        self.line.push(&Reply::Description(description));
        Ok(())
    }

    pub(crate) fn token(&self) -> u64 {
        self.token
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// How many commands it runs.
    pub(crate) fn commands(&self) -> usize {
        self.channels.len()
    }

    /// Reads what has come and does what it says.
    pub(crate) fn hear(&mut self, tree: &mut dyn Tree) -> Wish {
        if !self.line.read() {
            self.is_gone = true;
            return Wish::Nothing;
        }
        let Ok(requests) = self.line.messages::<Request>() else {
            self.is_gone = true;
            return Wish::Nothing;
        };
        let mut wish = Wish::Nothing;
        for request in requests {
            match request {
                Request::Begin { members, has_input } => {
                    let input = match has_input {
                        true => StandardInput::Passed,
                        false => StandardInput::Closed,
                    };
                    self.begin(&members, input, tree);
                }
                Request::Send { stream, to, packet } => self.keep(stream, to, packet),
                Request::End { control } => {
                    if let Some(at) = self.channels.iter().position(|one| one.control == control) {
                        self.end(at, tree);
                    }
                }
                Request::Silence { silent, heard } => {
                    if let (Some(silent), Some(heard)) = (ranks(&silent), ranks(&heard)) {
                        tree.note_silence(&silent, &heard);
                    }
                }
                Request::Stop => wish = Wish::Stop,
            }
        }
        wish
    }

    fn begin(&mut self, members: &str, input: StandardInput, tree: &mut dyn Tree) {
        let begun = match ranks(members) {
            Some(members) => tree.begin(&members, input).map_err(|error| error.to_string()),
            None => {
                Err("invalid ranks; daemon and command may be of different releases".to_string())
            }
        };
        match begun {
            Ok(channels) => {
                self.channels.push(channels);
                let Channels { control, live, input } = channels;
                self.line.push(&Reply::Begun { control, live, input });
            }
            Err(reason) => self.line.push(&Reply::Refused { reason }),
        }
    }

    fn keep(&mut self, stream: StreamId, to: Option<String>, packet: Part) {
        let is_own = self.channels.iter().any(|channels| channels.all().any(|id| id == stream));
        let to = match to {
            None => Some(Recipients::All),
            Some(named) => ranks(&named).map(Recipients::Only),
        };
        let (true, Some(to)) = (is_own, to) else { return };
        self.unsent_bytes += packet.bytes();
        self.unsent.entry(stream).or_default().push_back((to, packet));
        if self.unsent_bytes > UNSENT_BYTES_MAX {
            self.is_gone = true;
        }
    }

    fn end(&mut self, at: usize, tree: &mut dyn Tree) {
        let channels = self.channels.remove(at);
        for stream in channels.all() {
            for (_, packet) in self.unsent.remove(&stream).unwrap_or_default() {
                self.unsent_bytes -= packet.bytes();
            }
        }
        tree.end(channels);
    }

    /// Passes on what has room, both ways. Gives whether there is more that has.
    ///
    /// # Errors
    /// When the tree fails.
    pub(crate) fn pass_on(&mut self, tree: &mut dyn Tree) -> Result<bool, Error> {
        self.send_down(tree)?;
        let streams: Vec<StreamId> = self.channels.iter().flat_map(|one| one.all()).collect();
        for &stream in &streams {
            while self.line.unwritten() < UNREAD_BYTES_MAX
                && let Some(answer) = tree.take(stream)?
            {
                self.line.push(&Reply::answer(&answer));
            }
        }
        self.is_gone |= !self.line.write();
        let is_waiting = streams.iter().any(|&stream| tree.waiting(stream) > 0);
        Ok(is_waiting && self.line.unwritten() < UNREAD_BYTES_MAX && !self.is_gone)
    }

    fn send_down(&mut self, tree: &mut dyn Tree) -> Result<(), Error> {
        for (&stream, unsent) in &mut self.unsent {
            while tree.has_room(stream)
                && let Some((to, packet)) = unsent.pop_front()
            {
                let bytes = packet.bytes();
                self.unsent_bytes -= bytes;
                let Some(values) = packet.values() else {
                    self.is_gone = true;
                    return Ok(());
                };
                match tree.send(stream, &to, packet.tag, values) {
                    // All have gone; that was told already.
                    Ok(()) | Err(Error::Misuse(_)) => {}
                    Err(error) => return Err(error),
                }
                self.line.push(&Reply::Sent { stream, bytes });
            }
        }
        Ok(())
    }

    /// Tells that hosts are gone.
    pub(crate) fn tell(&mut self, losses: &Absence) {
        for (ranks, reason) in losses {
            let (ranks, reason) = (ranks.to_string(), reason.clone());
            self.line.push(&Reply::Lost { ranks, reason });
        }
    }

    /// Has the poller wait for what is waited for.
    ///
    /// # Errors
    /// When the system fails this process.
    pub(crate) fn watch(&mut self, poller: &Poller) -> Result<(), Error> {
        let wanted = if self.line.unwritten() > 0 { Interest::BOTH } else { Interest::READ };
        if wanted != self.interest {
            poller.modify(self.line.link(), self.token, wanted)?;
            self.interest = wanted;
        }
        Ok(())
    }

    /// Ends what it has begun.
    pub(crate) fn dismiss(mut self, tree: &mut dyn Tree, poller: &Poller) {
        // It is closed in any case.
        let _ = poller.remove(self.line.link());
        while !self.channels.is_empty() {
            self.end(0, tree);
        }
    }
}
